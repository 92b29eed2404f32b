"""Where the outlines of pools run: one rectangle around the neighbouring cells of a pool, as large as it can be.

Pools may meet between two cells of a node, so outlines keep inside their own cells' edges. Modify this file to change what an
outline encloses; how it looks is up to ``still_map.py`` and ``map.js``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from placewright.picture.arrangement import NODE_GAP, Arrangement
from placewright.picture.scene import Content, Scene


class Outline(NamedTuple):
    """A rectangle in cells from the map's corner."""

    pool: int
    x: float
    y: float
    width: float
    height: float


class _Span(NamedTuple):
    left: float
    right: float
    y: float


def outlines(scene: Scene, where: Arrangement, positions: list[tuple[float, float]]) -> list[Outline]:
    """Outlines of every pool; none where there is only one pool."""
    if len(scene.pools) < 2:
        return []
    side, reach = (0.2, 0.1) if where.overview else (-0.02, 0.07)
    found: list[Outline] = []
    for pool in range(len(scene.pools)):
        spans: list[_Span] = []
        for node, (x, y) in zip(scene.nodes, positions, strict=True):
            span = _cells(scene.content(node), pool, whole=where.overview)
            if span is None:
                continue
            left, right = x + span[0], x + span[1] + 1
            last = spans[-1] if spans else None
            if where.overview and last is not None and last.y == y and -1e-6 <= left - last.right <= NODE_GAP + 1e-6:
                spans[-1] = _Span(last.left, right, y)
            else:
                spans.append(_Span(left, right, y))
        for first, last in _stacked(spans, where.row):
            width, height = first.right - first.left + 2 * side, last.y + 1 - first.y + 2 * reach
            found.append(Outline(pool, first.left - side, first.y - reach, width, height))
    return found


def _cells(content: Content, pool: int, whole: bool) -> tuple[int, int] | None:
    """First and last cell that the outline encloses on a node; ``whole`` widens it to the node where the pool is alone."""
    with_cells = [entry for entry in content.pools if entry[2] >= 0]
    for number, first, last in content.pools:
        if number == pool:
            if not content.gpus:
                return (0, 0)
            if last < 0:
                return None
            return (0, content.gpus - 1) if whole and len(with_cells) == 1 else (first, last)
    return None


def _stacked(spans: Iterable[_Span], row: float) -> list[tuple[_Span, _Span]]:
    """Equal spans directly below each other, as the first and the last of each stack."""
    ending: dict[tuple[float, float, float], tuple[_Span, _Span]] = {}
    for span in spans:
        above = (round(span.left, 3), round(span.right, 3), round(span.y - row, 3))
        first, _ = ending.pop(above, (span, span))
        ending[(*above[:2], round(span.y, 3))] = (first, span)
    return list(ending.values())
