"""The GPUs of one node as the layout sees them, and how much of them a set of counts asks for.

Usage: ``Shape.of(node)`` for the node, ``demand(job, counts)`` for the lengths of its items. Modify this file when the
node-local geometry changes (say, GPUs on two PCIe switches).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from placewright.index.job import Job
from placewright_models.quantities import UNITS
from placewright_models.ranges import Range


class Shape(NamedTuple):
    """Size of the node and its maximal runs of available GPU indices."""

    gpus: int
    runs: tuple[Range, ...]

    @property
    def available(self) -> int:
        return sum(end - start + 1 for start, end in self.runs)

    @property
    def whole(self) -> bool:
        """Every GPU of the node is available."""
        return self.available == self.gpus

    def lengths(self) -> tuple[int, ...]:
        return tuple(end - start + 1 for start, end in self.runs)


class Piece(NamedTuple):
    """What one item asks of a node: ``blocks`` of the item's width, or between ``least`` and ``most`` GPUs for shares."""

    item: int
    blocks: int
    least: int
    most: int


def demand(job: Job, counts: Sequence[int]) -> list[Piece] | None:
    """The pieces of every item present under ``counts`` (workers per component); None where colocation cannot hold.

    A colocated set has one GPU set: whole members fix its size, fractional members must be able to touch exactly it.
    """
    pieces: list[Piece] = []
    for index, item in enumerate(job.items):
        present = [counts[c] for c in item.members]
        if not any(present):
            continue
        if not all(present):
            return None
        least, most = 0, 10**9
        if item.whole:
            sizes = {counts[c] * job.width[c] for c in item.whole}
            size = sizes.pop()
            if sizes or size % item.width:
                return None
            least = most = size
        for c in item.fractional:
            room = job.per_gpu[c]
            if item.share:
                room = min(room, (UNITS - item.share) // (job.share[c] or 1))
            if room <= 0:
                return None
            fewest = -(-counts[c] // room)
            if item.whole:
                if not fewest <= least <= counts[c]:
                    return None
            else:
                least, most = max(least, fewest), min(most, counts[c])
        if least > most:
            return None
        pieces.append(Piece(index, least // item.width if item.width else 0, least, most))
    return pieces
