"""Range arithmetic against plain sets of indices.

When to modify: with ranges.py, on which decoder and verifier both rely.
"""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from placewright_models.ranges import available_runs, format_ranges, indices_of, length_of, ranges_of

INDICES = st.sets(st.integers(0, 40))


@given(INDICES)
def test_ranges_hold_exactly_the_indices(indices: set[int]) -> None:
    ranges = ranges_of(indices)
    assert indices_of(ranges) == sorted(indices)
    assert length_of(ranges) == len(indices)


@given(st.lists(st.integers(0, 40)))
def test_ranges_do_not_depend_on_order_or_repetition(indices: list[int]) -> None:
    assert ranges_of(indices) == ranges_of(sorted(set(indices)))


@given(INDICES)
def test_ranges_are_maximal_and_ascending(indices: set[int]) -> None:
    ranges = ranges_of(indices)
    assert all(start <= end for start, end in ranges)
    assert all(after[0] > before[1] + 1 for before, after in pairwise(ranges))


@given(st.integers(0, 40), INDICES)
def test_available_runs_are_the_rest(gpus: int, gone: set[int]) -> None:
    assert available_runs(gpus, gone) == ranges_of(set(range(gpus)) - gone)


def test_edges() -> None:
    assert ranges_of([]) == () and indices_of([]) == [] and length_of([]) == 0 and format_ranges([]) == ""
    assert available_runs(0, ()) == () and available_runs(8, ()) == ((0, 7),) and available_runs(2, [0, 1]) == ()
    assert ranges_of([1, 10, 2]) == ((1, 2), (10, 10))
    assert length_of([(0, 3), (2, 5)]) == 8, "each range counts in full"
    assert format_ranges([(0, 0), (2, 3)]) == "0, 2-3"
