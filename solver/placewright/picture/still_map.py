"""The map of a still picture: strips of GPU cells, names, pool outlines, markers for workers without GPU.

``StillMap(brush, scene, arrangement, unit, x, y).draw()`` draws with one cell ``unit`` inches wide. Modify this file to change
how a node looks; ``map.js`` draws the same for pages, so change both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from placewright.picture.arrangement import (
    LABEL_SIZE,
    MARKER,
    NODE_GAP,
    ROW,
    Arrangement,
    Box,
    shortened,
    strip_width,
)
from placewright.picture.brush import FAINT, INK, POINT, Brush, text_width
from placewright.picture.colours import text_on
from placewright.picture.scene import FREE, OCCUPIED, UNAVAILABLE, Content, Domain, Scene, SceneNode, Tile
from placewright_models.ranges import indices_of

POOL_DASHES: tuple[Any, ...] = ("solid", (0, (3, 1.5)), (0, (1, 1)), (0, (4, 1.2, 1, 1.2)))
"""How pools are outlined, in their order."""

PANEL, PANEL_EDGE = "#f6f8fa", "#d8dee4"
IDLE, IDLE_EDGE = "#ffffff", "#afb8c1"
UNAVAILABLE_FILL, OCCUPIED_FILL, MARK = "#d0d7de", "#eaeef2", "#848d97"
SMALL_FILL = {FREE: "#e4e8ed", OCCUPIED: "#afb8c1", UNAVAILABLE: "#6e7781"}
"""Cells without worker in overview."""
LEAST_TEXT = 4.2
MOST_TEXT = 10.5
PAD = 0.06
"""Room around a tile inside its cell."""
"""Points below which text is left out."""


class Span(NamedTuple):
    """Cells of one row that an outline encloses, in cells from the map's corner."""

    left: float
    right: float
    y: float


class StillMap:
    """Draws one arrangement at one place of a sheet."""

    def __init__(self, brush: Brush, scene: Scene, where: Arrangement, unit: float, x: float, y: float) -> None:
        self.brush = brush
        self.scene = scene
        self.where = where
        self.unit = unit
        self.x = x
        self.y = y

    def draw(self) -> None:
        """The whole map."""
        positions = self.where.positions(self.scene)
        for box in self.where.boxes:
            if not self.where.overview:
                self._panel(box)
        for node, (x, y) in zip(self.scene.nodes, positions, strict=True):
            if self.where.overview:
                self._small_node(self.scene.content(node), x, y)
            else:
                self._node(node, self.scene.content(node), x, y)
        if self.where.overview:
            self._row_labels()
        if len(self.scene.pools) > 1:
            self._outlines(positions)

    # Detail

    def _panel(self, box: Box) -> None:
        domain = self.scene.domains[box.domain]
        count = box.end - box.start
        columns = -(-count // box.rows)
        left, top = box.x - self.where.gutter, box.y - 0.95
        size = self._points(LABEL_SIZE)
        self._box(
            left - 0.1, top, columns * self.where.column + 0.3, box.rows * ROW + 0.95,
            PANEL, edge=PANEL_EDGE, line=0.6, radius=0.18, layer=1,
        )
        name, detail = domain_title(domain, self.scene)
        x = self.x + (left + 0.25) * self.unit
        y = self.y + (top + 0.45) * self.unit
        if name:
            self.brush.text(x, y, name, size, bold=True)
            x += text_width(name, size, True) + 0.35 * self.unit
        room = self.x + (left + columns * self.where.column) * self.unit - x
        if text_width(detail, size * 0.86) <= room:
            self.brush.text(x, y, detail, size * 0.86, colour=FAINT)

    def _node(self, node: SceneNode, content: Content, x: float, y: float) -> None:
        size = self._points(LABEL_SIZE)
        colour = FAINT if content.excluded else INK
        self.brush.text(
            self.x + (x - 0.28) * self.unit, self.y + (y + 0.5) * self.unit, shortened(node.id), size, colour=colour, align="right"
        )
        if not content.gpus:
            self._box(x + 0.04, y + 0.16, 0.92, 0.68, PANEL, edge=IDLE_EDGE, line=0.6, radius=0.12)
            self._label(x + 0.5, y + 0.5, "CPU", 0.32, FAINT, 0.9)
        held = {gpu for tile in content.tiles for gpu in range(tile.start, tile.end + 1)}
        for gpu, state in enumerate(content.states):
            if gpu not in held:
                self.bare_cell(self.brush, self.x + (x + gpu + PAD) * self.unit, self.y + (y + PAD) * self.unit,
                               (1 - 2 * PAD) * self.unit, state)
        indices = {number: indices_of(ranges) for number, ranges in zip(content.components, node.workers, strict=True)}
        for tile in content.tiles:
            self._tile(tile, indices[tile.component], x, y)
        at = x + strip_width(content.gpus) + 0.45
        for number, count in content.without_gpu:
            colour = self.scene.roles[number].colour
            self._box(at - 0.17, y + 0.33, 0.34, 0.34, colour, radius=0.17, edge=INK, line=0.3)
            text = f"×{count:,}"
            self.brush.text(self.x + (at + 0.27) * self.unit, self.y + (y + 0.5) * self.unit, text, size * 0.86, colour=FAINT)
            at += MARKER

    def _tile(self, tile: Tile, indices: list[int], x: float, y: float) -> None:
        colour = self.scene.roles[tile.component].colour
        lane = (1 - 2 * PAD) / tile.lanes
        top = y + PAD + tile.lane * lane
        left, wide = x + tile.start + PAD, tile.end - tile.start + 1 - 2 * PAD
        self._box(left, top, wide, lane, colour, radius=0.1 if tile.lanes == 1 else 0.0)
        for gpu in range(tile.start + 1, tile.end + 1):
            at = self.x + (x + gpu) * self.unit
            ends = (self.y + (top + lane * 0.78) * self.unit, self.y + (top + lane) * self.unit)
            self.brush.line([(at, ends[0]), (at, ends[1])], "#ffffffb0", 0.7)
        first, last = indices[tile.place], indices[tile.place + tile.count - 1]
        texts = [str(first)] if tile.count == 1 else [f"{first}-{last}", f"×{tile.count}"]
        for text in texts:
            if self._label(left + wide / 2, top + lane / 2, text, min(0.36, lane * 0.74), text_on(colour), wide - 0.16):
                return

    def _label(self, x: float, y: float, text: str, size: float, colour: str, room: float) -> bool:
        """Text centred at a point, smaller where it must be; False where it would be too small to read."""
        points = self._points(size)
        wide = text_width(text, points)
        points = min(points, points * room * self.unit / wide)
        if points < LEAST_TEXT:
            return False
        self.brush.text(self.x + x * self.unit, self.y + y * self.unit, text, points, colour=colour, align="center")
        return True

    @staticmethod
    def bare_cell(brush: Brush, x: float, y: float, size: float, state: str) -> None:
        """A GPU without worker: idle is empty, unavailable is crossed, held by other plans is striped."""
        if state == FREE:
            brush.box(x, y, size, size, IDLE, edge=IDLE_EDGE, line=0.6, radius=size * 0.11)
            return
        fill = OCCUPIED_FILL if state == OCCUPIED else UNAVAILABLE_FILL
        brush.box(x, y, size, size, fill, edge=IDLE_EDGE, line=0.6, radius=size * 0.11)
        a, b, m = size * 0.3, size * 0.7, size / 2
        if state == OCCUPIED:
            for p, q in (((0.12, 0.5), (0.5, 0.12)), ((0.12, 0.88), (0.88, 0.12)), ((0.5, 0.88), (0.88, 0.5))):
                brush.line([(x + p[0] * size, y + p[1] * size), (x + q[0] * size, y + q[1] * size)], MARK, 0.8)
        else:
            for start, end in (((a, a), (b, b)), ((a, b), (b, a))):
                brush.line([(x + start[0], y + start[1]), (x + end[0], y + end[1])], MARK, max(0.7, m * 7), cap="round")

    # Overview

    def _small_node(self, content: Content, x: float, y: float) -> None:
        if not content.gpus:
            self._box(x, y, 1, 1, IDLE_EDGE)
        held = {gpu for tile in content.tiles for gpu in range(tile.start, tile.end + 1)}
        for state, start, end in _runs((content.states[gpu], gpu) for gpu in range(content.gpus) if gpu not in held):
            self._box(x + start, y, end - start + 1, 1, SMALL_FILL[state])
        for (number, lane, lanes), start, end in _runs(
            ((tile.component, tile.lane, tile.lanes), gpu) for tile in content.tiles for gpu in range(tile.start, tile.end + 1)
        ):
            self._box(x + start, y + lane / lanes, end - start + 1, 1 / lanes, self.scene.roles[number].colour)

    def _row_labels(self) -> None:
        last: tuple[float, float] | None = None
        for box in self.where.boxes:
            y = self.y + (box.y + 0.5) * self.unit
            if last is not None and last[0] == box.x and y - last[1] < 8.5 * POINT:
                continue
            domain = self.scene.domains[box.domain]
            name = domain.name if domain.name is not None and domain.start == box.start else self.scene.nodes[box.start].id
            size = 6.2
            room = (self.where.gutter - 1.2) * self.unit
            shown = shortened(name, 14)
            size = min(size, size * room / text_width(shown, size))
            self.brush.text(self.x + (box.x - 1) * self.unit, y, shown, size, colour=FAINT, align="right")
            last = (box.x, y)

    # Pools

    def _outlines(self, positions: list[tuple[float, float]]) -> None:
        overview = self.where.overview
        line, reach = (0.7, 0.2) if overview else (1.2, 0.07)
        for pool in range(len(self.scene.pools)):
            spans: list[Span] = []
            for node, (x, y) in zip(self.scene.nodes, positions, strict=True):
                span = pool_span(self.scene.content(node), pool, whole=overview)
                if span is None:
                    continue
                left, right = x + span[0], x + span[1] + 1
                if overview and spans and spans[-1].y == y and left - spans[-1].right <= NODE_GAP + 1e-6 and left > spans[-1].left:
                    spans[-1] = Span(spans[-1].left, right, y)
                else:
                    spans.append(Span(left, right, y))
            side = reach if overview else -0.02  # pools may meet between two cells of a node
            for first, last in _stacked(spans, self.where.row):
                self.brush.outline(
                    self.x + (first.left - side) * self.unit, self.y + (first.y - reach) * self.unit,
                    (first.right - first.left + 2 * side) * self.unit, (last.y + 1 - first.y + 2 * reach) * self.unit,
                    INK, line=line, dashes=POOL_DASHES[pool % len(POOL_DASHES)], radius=0.16 * self.unit,
                )

    def _box(self, x: float, y: float, width: float, height: float, fill: str, *, radius: float = 0.0, **how: Any) -> None:
        unit = self.unit
        self.brush.box(
            self.x + x * unit, self.y + y * unit, width * unit, height * unit, fill, radius=radius * unit, **how
        )

    def _points(self, cells: float) -> float:
        return min(MOST_TEXT, cells * self.unit / POINT)


def domain_title(domain: Domain, scene: Scene) -> tuple[str, str]:
    """A domain's name, and what more there is to say about it."""
    count = f"{domain.end - domain.start:,} node{'' if domain.end - domain.start == 1 else 's'}"
    where = f", {domain.above}" if domain.above else ""
    if domain.name is not None:
        return shortened(domain.name), f"{count}{where}"
    bare = all(not scene.content(node).gpus for node in scene.nodes[domain.start : domain.end])
    return "", f"{count} without GPU{where}" if bare else f"{count}, NVLink domain unknown{where}"


def pool_span(content: Content, pool: int, whole: bool) -> tuple[int, int] | None:
    """First and last cell that the pool's outline encloses on a node; ``whole`` widens it to the node where it is alone."""
    with_cells = [entry for entry in content.pools if entry[2] >= 0]
    for number, first, last in content.pools:
        if number == pool:
            if not content.gpus:
                return (0, 0)
            if last < 0:
                return None
            return (0, content.gpus - 1) if whole and len(with_cells) == 1 else (first, last)
    return None


def _stacked(spans: Iterable[Span], row: float) -> Iterable[tuple[Span, Span]]:
    """Equal spans directly below each other, as the first and the last of each stack."""
    ending: dict[tuple[float, float, float], tuple[Span, Span]] = {}
    done: list[tuple[Span, Span]] = []
    for span in spans:
        above = (round(span.left, 3), round(span.right, 3), round(span.y - row, 3))
        first, _ = ending.pop(above, (span, span))
        key = (*above[:2], round(span.y, 3))
        if key in ending:
            done.append(ending[key])
        ending[key] = (first, span)
    return [*done, *ending.values()]


def _runs(cells: Iterable[tuple[Any, int]]) -> list[tuple[Any, int, int]]:
    """Neighbouring cells with the same key, as (key, first, last)."""
    found: list[tuple[Any, int, int]] = []
    for key, at in cells:
        if found and found[-1][0] == key and found[-1][2] in (at, at - 1):
            found[-1] = (key, found[-1][1], at)
        else:
            found.append((key, at, at))
    return found
