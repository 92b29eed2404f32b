"""Arithmetic on node-local GPU index ranges; nowhere else.

A range is an inclusive interval ``(start, end)`` of node-local GPU indices. This file is used by the decoder and by the
verifier alike, so it is tested on its own (``tests/models/test_ranges.py``); keep it free of anything but ranges.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Range = tuple[int, int]
"""Inclusive interval of node-local GPU indices."""
Ranges = tuple[Range, ...]


def ranges_of(indices: Iterable[int]) -> tuple[Range, ...]:
    """The maximal ranges that cover exactly these indices, ascending.

    >>> ranges_of([0, 1, 2, 5, 7, 6])
    ((0, 2), (5, 7))
    """
    found: list[Range] = []
    for index in sorted(set(indices)):
        if found and found[-1][1] == index - 1:
            found[-1] = (found[-1][0], index)
        else:
            found.append((index, index))
    return tuple(found)


def indices_of(ranges: Iterable[Sequence[int]]) -> list[int]:
    """Every index in the ranges, in the order of the ranges.

    >>> indices_of([(0, 2), (5, 5)])
    [0, 1, 2, 5]
    """
    return [index for start, end in ranges for index in range(start, end + 1)]


def length_of(ranges: Iterable[Sequence[int]]) -> int:
    """How many indices the ranges hold, each range counted in full.

    >>> length_of([(0, 2), (5, 5)])
    4
    """
    return sum(end - start + 1 for start, end in ranges)


def available_runs(gpus: int, unavailable: Iterable[int]) -> tuple[Range, ...]:
    """Maximal ranges of available indices on a node of ``gpus`` devices.

    >>> available_runs(8, [2, 5])
    ((0, 1), (3, 4), (6, 7))
    """
    if not unavailable:
        return ((0, gpus - 1),) if gpus else ()
    gone = set(unavailable)
    return ranges_of(index for index in range(gpus) if index not in gone)


def format_ranges(ranges: Iterable[Sequence[int]]) -> str:
    """Ranges as people write them.

    >>> format_ranges([(0, 3), (6, 6)])
    '0-3, 6'
    """
    return ", ".join(str(start) if start == end else f"{start}-{end}" for start, end in ranges)
