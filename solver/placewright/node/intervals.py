"""Layouts on a node without holes: every item is one interval, searched by start.

``search`` finds the first layout in canonical order of starts that reaches a wanted number of used GPUs; the caller lowers
the wanted number. Exact: all starts are tried, pruned by conflicts, shares and the most GPUs that can still be used.
Modify this file when what makes one layout better than another changes (design.md H5, H7).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

from placewright.index.job import Job
from placewright.node.shape import Piece, Shape
from placewright_models.quantities import UNITS

Intervals = dict[int, tuple[int, int]]
"""Item -> (first GPU, length)."""
Split = dict[int, dict[int, int]]
"""Fractional component -> GPU -> workers there."""


class TooHard(Exception):
    """The search took more steps than it was given; the GPU model decides instead."""


class Effort:
    """A number of steps that one question may take, counted so that the answer never depends on the clock."""

    def __init__(self, steps: int = 20_000) -> None:
        self.left = steps

    def spend(self) -> None:
        """One step.

        Raises:
            TooHard: if none is left.
        """
        self.left -= 1
        if self.left < 0:
            raise TooHard


def lengths_by_total(pieces: Sequence[Piece], room: int) -> Iterator[tuple[int, ...]]:
    """All choices of item lengths of at most ``room`` GPUs, fewest GPUs for shares first (H5 comes before H7)."""
    choices = [range(piece.least, min(piece.most, room) + 1) for piece in pieces]
    yield from sorted(product(*choices), key=lambda lengths: (sum(lengths), lengths))


def split_shares(
    job: Job, counts: Sequence[int], where: Mapping[int, Sequence[int]], gpus: Sequence[int], effort: Effort | None = None
) -> Split | None:
    """Deal fractional workers to the GPUs of their items so that no GPU passes one; None where that is impossible.

    Args:
        where: item -> the GPUs it lies on. Every fractional worker's item must put at least one worker on each of them.
    """
    fractional = [c for i in where for c in job.items[i].fractional]
    base = dict.fromkeys(gpus, 0)
    for i, spots in where.items():
        for g in spots:
            base[g] += job.items[i].share
    if not fractional:
        return {} if all(units <= UNITS for units in base.values()) else None
    spots_of = {c: list(where[job.item_of[c]]) for c in fractional}
    left = {c: counts[c] for c in fractional}
    answer: Split = {c: {} for c in fractional}

    def fill(position: int) -> bool:
        if position == len(gpus):
            return not any(left.values())
        g = gpus[position]
        here = [c for c in fractional if g in spots_of[c]]
        if not here:
            return base[g] <= UNITS and fill(position + 1)

        def deal(index: int, room: int) -> bool:
            if room < 0:
                return False
            if index == len(here):
                return fill(position + 1)
            c = here[index]
            units = job.share[c] or 1
            later = sum(1 for spot in spots_of[c] if spot > g)
            most = min(job.per_gpu[c], room // units, left[c] - later)
            for number in range(most, 0, -1):
                if effort is not None:
                    effort.spend()
                left[c] -= number
                answer[c][g] = number
                if left[c] <= later * job.per_gpu[c] and deal(index + 1, room - number * units):
                    return True
                left[c] += number
            answer[c].pop(g, None)
            return False

        return deal(0, UNITS - base[g])

    return answer if fill(0) else None


def search(
    job: Job,
    shape: Shape,
    counts: Sequence[int],
    pieces: Sequence[Piece],
    lengths: Sequence[int],
    used: int,
    effort: Effort,
) -> tuple[Intervals, Split] | None:
    """The first layout, by starts in canonical order of items, that uses at least ``used`` GPUs.

    Raises:
        TooHard: if ``effort`` is used up.
    """
    first, last = shape.runs[0]
    gpus = range(first, last + 1)
    placed: Intervals = {}
    masks: list[tuple[int, int]] = []
    after = [sum(lengths[index + 1 :]) for index in range(len(pieces))]
    watch_shares = any(job.share_coupled[piece.item] or job.self_coupled[piece.item] for piece in pieces)

    def place(index: int, union: int) -> Split | None:
        if index == len(pieces):
            if union.bit_count() < used:
                return None
            where = {item: range(start, start + length) for item, (start, length) in placed.items()}
            return split_shares(job, counts, where, gpus, effort)
        item = pieces[index].item
        length = lengths[index]
        conflicts = job.conflicts[item]
        blocked = 0
        for other, mask in masks:
            if conflicts >> other & 1:
                blocked |= mask
        for start in range(first, last - length + 2):
            effort.spend()
            if start % job.items[item].aligned:
                continue
            mask = ((1 << length) - 1) << start
            if mask & blocked or (union | mask).bit_count() + after[index] < used:
                continue
            placed[item] = (start, length)
            masks.append((item, mask))
            if not watch_shares or _shares_possible(job, masks):
                found = place(index + 1, union | mask)
                if found is not None:
                    return found
            masks.pop()
            del placed[item]
        return None

    split = place(0, 0)
    return None if split is None else (placed, split)


def _shares_possible(job: Job, masks: Sequence[tuple[int, int]]) -> bool:
    """Whether no GPU passes one when every fractional item puts a single worker on each of its GPUs."""
    _newest, mask = masks[-1]
    while mask:
        bit = mask & -mask
        mask ^= bit
        units = sum(_least_units(job, item) for item, other in masks if other & bit)
        if units > UNITS:
            return False
    return True


def _least_units(job: Job, item: int) -> int:
    return job.items[item].share + sum(job.share[c] or 0 for c in job.items[item].fractional)
