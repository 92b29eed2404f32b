"""Which node holds which group, when every group must lie on one node (exact for small inputs).

Usage: ``pack([2, 1], [1, 2])`` -> ``[1, 0]``: the group of 2 goes to bin 1, the group of 1 to bin 0.

When to modify: only if verl's pools get requirements beyond a number of GPUs.
"""

from __future__ import annotations

from collections.abc import Sequence

_SEARCH_STEPS = 20_000
_SEARCH_GROUPS = 200


class PackingUndecided(Exception):
    """The search was stopped before it found a packing or proved that there is none."""


def pack(sizes: Sequence[int], capacities: Sequence[int]) -> list[int] | None:
    """A bin for each size so that no bin holds more than its capacity, or ``None`` where provably none exists.

    Sizes of 0 get bin 0 (or -1 where there are no bins). Raises :class:`PackingUndecided` when the search limit is hit.

    >>> pack([2, 1], [1, 2])
    [1, 0]
    >>> pack([2], [1, 1]) is None
    True
    """
    order = sorted((index for index, size in enumerate(sizes) if size > 0), key=lambda index: -sizes[index])
    # Any group of at least s GPUs fills one of floor(capacity / s) places: a quick proof that something is too wide.
    for size in {sizes[index] for index in order}:
        places = sum(max(capacity, 0) // size for capacity in capacities)
        if sum(1 for index in order if sizes[index] >= size) > places:
            return None
    placed = _best_fit(order, sizes, capacities)
    if placed is None:
        placed = _search(order, sizes, capacities)
    if placed is None:
        return None
    default = 0 if capacities else -1
    return [placed.get(index, default) for index in range(len(sizes))]


def _best_fit(order: Sequence[int], sizes: Sequence[int], capacities: Sequence[int]) -> dict[int, int] | None:
    """Largest group first into the fullest bin that still holds it; ``None`` proves nothing."""
    free = list(capacities)
    placed: dict[int, int] = {}
    for index in order:
        fitting = [(free[b], b) for b in range(len(free)) if free[b] >= sizes[index]]
        if not fitting:
            return None
        best = min(fitting)[1]
        free[best] -= sizes[index]
        placed[index] = best
    return placed


def _search(order: Sequence[int], sizes: Sequence[int], capacities: Sequence[int]) -> dict[int, int] | None:
    """Depth-first search over largest groups first; equal free amounts are tried once and dead ends remembered."""
    if len(order) > _SEARCH_GROUPS:
        raise PackingUndecided
    free = list(capacities)
    placed: dict[int, int] = {}
    dead: set[tuple[int, tuple[int, ...]]] = set()
    steps = 0

    def place(depth: int) -> bool:
        nonlocal steps
        if depth == len(order):
            return True
        state = (depth, tuple(sorted(free)))
        if state in dead:
            return False
        steps += 1
        if steps > _SEARCH_STEPS:
            raise PackingUndecided
        index = order[depth]
        tried: set[int] = set()
        for b, room in enumerate(free):
            if room < sizes[index] or room in tried:
                continue
            tried.add(room)
            free[b] -= sizes[index]
            placed[index] = b
            if place(depth + 1):
                return True
            free[b] += sizes[index]
            del placed[index]
        dead.add(state)
        return False

    return placed if place(0) else None
