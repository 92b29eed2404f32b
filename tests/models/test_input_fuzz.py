"""Whatever the input is, reading it either succeeds or raises InvalidProblem with its faults.

When to modify: when the problem file gets new keys (add them to WORDS, so that the structures come near valid ones).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

from placewright_models.codec import load_problem
from placewright_models.errors import InvalidProblem

SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["auto", "a", "n0", "node"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | st.integers(), inner, max_size=3),
    max_leaves=10,
)
WORDS = """
cluster nodes id count start gpus cpus memory levels labels occupied plan components a b train buffer workers min max group
within mode segment_size per_node per_node_of replicas gpus_per_replica rules pools colocate share_gpus same_node separate_nodes
traffic between weight goals node_ids unavailable_gpus excluded
"""
KEYS = st.sampled_from(WORDS.split())
STRUCTURES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4), max_leaves=15
)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(KEYS, STRUCTURES | VALUES, max_size=5))
def test_arbitrary_structures_raise_nothing_but_invalid_problem(data: dict[str, Any]) -> None:
    try:
        load_problem(data)
    except InvalidProblem as error:
        assert error.faults and str(error)


def _paths(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else ()
    return [path, *(found for key, value in inner for found in _paths(value, (*path, key)))]


def _replaced(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    copy = dict(data) if isinstance(data, Mapping) else list(data)
    copy[path[0]] = _replaced(copy[path[0]], path[1:], value)
    return copy


@settings(max_examples=200, deadline=None)
@given(problems(), st.data())
def test_one_wrong_value_anywhere_raises_nothing_but_invalid_problem(problem: dict[str, Any], data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(_paths(problem)[1:]))
    try:
        load_problem(_replaced(problem, path, data.draw(VALUES)))
    except InvalidProblem as error:
        assert error.faults and str(error)


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_arbitrary_bytes_raise_nothing_but_invalid_problem(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    folder = tmp_path_factory.mktemp("bytes")
    for name in ("p.yaml", "p.json"):
        with pytest.raises(InvalidProblem):
            (folder / name).write_bytes(content)
            load_problem(folder / name)
