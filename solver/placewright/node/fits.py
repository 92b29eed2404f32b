"""Whether given counts of workers fit on the GPUs of one node: the node-local half of H2, H3, H4, H5, H7, H11, aligned.

Usage: ``Fits(job)(shape, counts)``. Closed forms answer nearly always (``span.py``); otherwise a search over intervals, or
the GPU model where the node has holes. Answers are remembered. Modify this file when a new node-local GPU rule comes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

from placewright.index.job import Job
from placewright.node.conflicts import cotree, least_span
from placewright.node.gpu_model import decide
from placewright.node.intervals import Effort, TooHard, lengths_by_total, search
from placewright.node.shape import Piece, Shape, demand
from placewright_models.quantities import UNITS

Search: TypeAlias = Callable[[Shape, "tuple[int, ...]", Sequence[Piece]], bool]

_STEPS = 2_000
"""Steps of one interval search; a solver call takes about as long."""


class Fits:
    """Remembers which counts fit which node shapes; one instance per job.

    Attributes:
        hard: how many searches were given up, so that a caller with many of them can choose another way.
        searches: how many there were in all.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.hard = 0
        self.searches = 0
        self._known: dict[tuple[Shape, tuple[int, ...]], bool] = {}
        self._searched: dict[Shape, tuple[list[tuple[int, ...]], list[tuple[int, ...]]]] = {}
        # Fewer workers fit wherever more do: a layout loses them at the end of a range. Not so where GPU sets must be equal.
        self._monotone = all(len(item.members) == 1 for item in job.items)

    def __call__(self, shape: Shape, counts: Sequence[int]) -> bool:
        """Whether ``counts[c]`` workers of each component have a layout on the node."""
        if not any(counts[c] for c in self.job.item_of):
            return True
        key = (shape, tuple(count if self.job.needs_gpu[c] else 0 for c, count in enumerate(counts)))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._decide(shape, key[1])
        return known

    def _decide(self, shape: Shape, counts: tuple[int, ...]) -> bool:
        job = self.job
        pieces = demand(job, counts)
        if pieces is None or not shape.runs:
            return False
        present = tuple(piece.item for piece in pieces)
        lengths = {piece.item: piece.least for piece in pieces}
        span, exact = least_span(cotree(present, job.conflicts), lengths, job.conflicts)
        if span > shape.available:
            return False
        watched = any(job.share_coupled[piece.item] or job.self_coupled[piece.item] for piece in pieces)
        aligned = any(job.items[piece.item].aligned > 1 for piece in pieces)
        if watched and _units(job, pieces, counts) > shape.available * UNITS:
            return False
        if len(shape.runs) == 1:
            if exact and not watched and not aligned:
                return True
            return self._once(shape, counts, pieces, self._by_intervals)
        wide = [piece for piece in pieces if job.items[piece.item].width > 1]
        if not watched:
            # One-GPU pieces need no neighbours, so only the number of GPUs counts.
            if not wide and exact:
                return True
            sharing = any(not job.conflicts[a] >> b & 1 for a in present for b in present if a < b)
            if not sharing and not aligned:
                blocks = sorted(((job.items[p.item].width, p.blocks) for p in wide), reverse=True)
                return pack_runs(tuple(sorted(shape.lengths())), tuple(blocks))
        return self._once(shape, counts, pieces, self._by_model)

    def _once(self, shape: Shape, counts: tuple[int, ...], pieces: Sequence[Piece], search: Search) -> bool:
        """A search, saved where an earlier one on such a node decides: more workers fitted, or fewer did not."""
        if not self._monotone:
            self.searches += 1
            return search(shape, counts, pieces)
        fitted, failed = self._searched.setdefault(shape, ([], []))
        if any(all(a >= b for a, b in zip(other, counts, strict=True)) for other in fitted):
            return True
        if any(all(a <= b for a, b in zip(other, counts, strict=True)) for other in failed):
            return False
        self.searches += 1
        answer = search(shape, counts, pieces)
        if answer:
            fitted[:] = [other for other in fitted if any(a > b for a, b in zip(other, counts, strict=True))]
            fitted.append(counts)
        else:
            failed[:] = [other for other in failed if any(a < b for a, b in zip(other, counts, strict=True))]
            failed.append(counts)
        return answer

    def _by_model(self, shape: Shape, counts: Sequence[int], pieces: Sequence[Piece]) -> bool:
        return decide(self.job, shape, counts, [piece.item for piece in pieces])

    def _by_intervals(self, shape: Shape, counts: Sequence[int], pieces: Sequence[Piece]) -> bool:
        effort = Effort(_STEPS)
        try:
            return any(
                search(self.job, shape, counts, pieces, lengths, 0, effort) is not None
                for lengths in lengths_by_total(pieces, shape.available)
            )
        except TooHard:
            self.hard += 1
            return self._by_model(shape, counts, pieces)


def _units(job: Job, pieces: Sequence[Piece], counts: Sequence[int]) -> int:
    """Units that all shares on the node take together; each GPU has room for one whole."""
    total = 0
    for item in (job.items[piece.item] for piece in pieces):
        total += sum(counts[c] * job.width[c] * (job.share[c] or 0) for c in item.whole)
        total += sum(counts[c] * (job.share[c] or 0) for c in item.fractional)
    return total


@lru_cache(maxsize=65_536)
def pack_runs(runs: tuple[int, ...], blocks: tuple[tuple[int, int], ...]) -> bool:
    """Whether blocks (width, number), widest first, can be cut from runs of these lengths.

    One-GPU pieces are left out by the caller: they fill what is left, whose size is known.

    >>> pack_runs((3, 3), ((2, 2),)), pack_runs((3, 3), ((2, 3),))
    (True, False)
    """
    if not blocks:
        return True
    (width, number), rest = blocks[0], blocks[1:]
    if sum(run // width for run in runs) < number:
        return False

    def deal(index: int, left: int, runs_now: tuple[int, ...]) -> bool:
        if not left:
            return pack_runs(tuple(sorted(runs_now)), rest)
        if index == len(runs_now):
            return False
        for here in range(min(left, runs_now[index] // width), -1, -1):
            changed = (*runs_now[:index], runs_now[index] - here * width, *runs_now[index + 1 :])
            if deal(index + 1, left - here, changed):
                return True
        return False

    return deal(0, number, runs)
