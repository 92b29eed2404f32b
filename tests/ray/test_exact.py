"""Exact physical GPUs on two nodes of eight and a node without: gaps, other starts, other jobs, shares, many random plans."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from planhelp import found, make_plan, one_each, see_from_actors

from placewright import apply as apply_package
from placewright.apply import apply
from placewright_models.errors import PlanMismatch

NODES = {"n0": 8, "n1": 8, "c0": 0}


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., Any]) -> Any:
    return start_cluster(("n0", 8, 32), ("n1", 8, 32), ("c0", 0, 8))


CASES = {
    "everything, in order": {"train": one_each("n0", range(8)) + one_each("n1", range(8))},
    "a gap": {"train": one_each("n0", [0, 1]), "eval": one_each("n0", [4, 5])},
    "starts above zero": {"train": one_each("n0", [4, 5, 6, 7])},
    "ranks against the ids": {"train": one_each("n1", [3, 2, 1, 0]) + one_each("n0", [6, 5])},
    "nodes interleaved": {"train": [("n0", [1]), ("n1", [1]), ("n0", [3]), ("n1", [5])]},
    "workers of several GPUs": {"rollout": [("n0", [2, 3]), ("n0", [4, 5]), ("n1", [4, 5, 6, 7])]},
    "a GPU-less node": {"train": one_each("n0", [7]), "buffer": [("c0", []), ("n0", [])]},
}


@pytest.mark.parametrize("name", CASES)
def test_every_worker_has_the_planned_gpus(name: str, nothing_left: None) -> None:
    plan = make_plan(NODES, CASES[name])
    with apply(plan, timeout=60) as applied:
        print(applied)
        assert found(applied) == found_form(CASES[name])
        assert see_from_actors(applied) == found_form(CASES[name])


def found_form(workers: Any) -> dict[str, list[tuple[str, list[int]]]]:
    return {name: [(node, sorted(ids)) for node, ids in placed] for name, placed in workers.items()}
