"""The greedy solver: the reference where it applies, first-fit everywhere else; whatever it returns is verified.

Modify this file when the greedy solver answers more, or when a rule gets a new corner for first-fit.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from rlightning_cases import ROWS, load_row
from strategies import problems

import placewright_models.codec as codec
from placewright.greedy import GreedyFailed, plan_greedy
from placewright.greedy.first_fit.placing import first_fit
from placewright.greedy.reference.plan import reference_applies
from placewright.index.job import Job
from placewright.verify import violations
from placewright_models.errors import PlanMismatch
from placewright_models.plan import Plan

OPTIMA = [json.loads(line) for line in (Path(__file__).parents[1] / "vectors" / "optima.jsonl").read_text().splitlines()]
ROWS_AS_PROBLEMS = [row for row in ROWS if load_row(row) is not None]


def plan(problem: dict[str, Any]) -> Plan:
    return plan_greedy(codec.load_problem(problem), time.perf_counter())


def nodes(*gpus: int, **fields: Any) -> dict[str, Any]:
    return {"nodes": [{"id": f"n{i}", "gpus": count, **fields} for i, count in enumerate(gpus)]}


# First-fit


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(problems())
def test_what_first_fit_finds_is_a_plan(data: dict[str, Any]) -> None:
    problem = codec.load_problem(data)
    found = first_fit(Job(problem))
    if found is not None and not reference_applies(problem):
        assert violations(problem, plan_greedy(problem, time.perf_counter())) == []


def test_first_fit_nearly_always_finds_what_exists() -> None:
    outcomes: Counter[tuple[str, bool]] = Counter()
    for row in OPTIMA:
        found = first_fit(Job(codec.load_problem(row["problem"])))
        outcomes[row["expect"]["status"], found is not None] += 1
    assert outcomes["infeasible", True] == 0
    assert outcomes["optimal", False] <= 1


@pytest.mark.timeout(60)
def test_a_hundred_thousand_gpus_in_seconds() -> None:
    problem = codec.load_problem(
        {
            "cluster": {
                "nodes": [{"id": "gpu-{}", "count": 12_512, "gpus": 8, "nvlink_domain": "rack{}", "nodes_per_domain": 16}]
            },
            "components": {
                "train": {"workers": 4378, "gpus": 8, "segment_size": 2},
                "rollout": {"workers": 8758, "gpus": 4},
                "reward": {"workers": 4003, "gpus": 2},
                "env": {"workers": 10_009, "gpus": 1},
            },
            "goals": ["domain_span", "node_span", "nodes_used"],
        }
    )
    started = time.process_time()
    found = plan_greedy(problem, time.perf_counter())
    assert time.process_time() - started < 15
    assert (found.status, found.solver) == ("greedy", "greedy")
    assert [goal.bound for goal in found.goals] == [None] * 3
    assert found.goal("nodes_used").value == 11_009


def test_failing_is_not_a_proof() -> None:
    with pytest.raises(GreedyFailed, match="one may exist: use solver='cp-sat'"):
        plan({"cluster": nodes(4), "components": {"train": {"workers": 5, "gpus": 1}}})


def test_elastic_components_grow_after_everything_has_its_place() -> None:
    found = plan(
        {
            "cluster": nodes(8, 8),
            "components": {
                "rollout": {"workers": {"min": 1, "max": 9}, "gpus": 4},
                "train": {"workers": 6, "gpus": 1},
            },
        }
    )
    assert len(found.workers["rollout"]) == 2
    assert found.goal("unplaced").value == 7


def test_colocated_sets_grow_together() -> None:
    found = plan(
        {
            "cluster": nodes(8, 8),
            "components": {
                "actor": {"workers": {"min": 2, "max": 32}, "gpus": 1},
                "rollout": {"workers": {"min": 1, "max": 7}, "gpus": 2},
            },
            "rules": {"colocate": [["actor", "rollout"]]},
        }
    )
    assert (len(found.workers["actor"]), len(found.workers["rollout"])) == (14, 7)


def test_one_of_a_same_node_party_that_does_not_fit_moves_all() -> None:
    found = plan(
        {
            "cluster": nodes(4, 8),
            "components": {"driver": {"workers": 4, "gpus": 1}, "judge": {"workers": 1, "gpus": 2}},
            "rules": {"same_node": [["driver", "judge"]]},
        }
    )
    assert {worker.node_id for workers in found.workers.values() for worker in workers} == {"n1"}


def test_workers_without_gpu_prefer_nodes_without_gpus() -> None:
    found = plan({"cluster": nodes(8, 0), "components": {"env": {"workers": 3}}})
    assert {worker.node_id for worker in found.workers["env"]} == {"n1"}


# The reference


@pytest.mark.parametrize("row", ROWS_AS_PROBLEMS, ids=[row["id"] for row in ROWS_AS_PROBLEMS])
def test_recorded_plan_through_the_solver(row: dict[str, Any]) -> None:
    """Every recorded case that is a problem of ours: the reference's exception, or its ranges, or a named difference."""
    problem = codec.load_problem(load_row(row))
    assert reference_applies(problem)
    expect = row["expect"]
    if expect["status"] == "error":
        with pytest.raises((ValueError, RuntimeError)) as caught:
            plan_greedy(problem, 0.0)
        assert str(caught.value) == expect["error"]["message"]
        assert expect["error"]["type"] in {parent.__name__ for parent in caught.type.__mro__}
        return
    try:
        found = plan_greedy(problem, 0.0)
    except PlanMismatch:
        return
    ranges: dict[tuple[str, str], set[int]] = {}
    for pool in expect["pools"]:
        for node in pool["nodes"]:
            for name, pairs in node["allocations"].items():
                for start, end in pairs:
                    ranges.setdefault((name, node["node_id"]), set()).update(range(int(start), int(end) + 1))
    seen: dict[tuple[str, str], set[int]] = {}
    for name, workers in found.workers.items():
        for worker in workers:
            if worker.ranges:
                for start, end in worker.ranges:
                    seen.setdefault((name, worker.node_id), set()).update(range(start, end + 1))
    assert seen == ranges


@pytest.mark.parametrize(
    "change",
    [
        {"rules": {"strategy": None}},
        {"rules": {"share_gpus": [["eval", "env"]]}},
        {"train": {"spread": "even"}},
        {"train": {"aligned": True}},
        {"train": {"workers": {"min": 1, "max": 2}}},
        {"node": {"unavailable_gpus": [0]}},
        {"node": {"cpus_in_use": 1}},
        {"node": {"excluded": "drained"}},
    ],
    ids=str,
)
def test_one_more_rule_or_restriction_is_not_the_reference(change: dict[str, Any]) -> None:
    base: dict[str, Any] = {
        "cluster": nodes(8, cpus=64, **change.get("node", {})),
        "components": {
            "train": {"workers": 2, "gpus": 1, **change.get("train", {})},
            "eval": {"workers": 1, "gpus": 1},
            "env": {"workers": 1, "gpus": 1},
        },
        "rules": {"strategy": "disaggregate", **change.get("rules", {})},
    }
    base["rules"] = {key: value for key, value in base["rules"].items() if value is not None}
    assert not reference_applies(codec.load_problem(base))


def test_the_reference_keeps_discovery_order() -> None:
    cluster = {"nodes": [{"id": "b", "gpus": 2, "cpus": 8}, {"id": "a", "gpus": 2, "cpus": 8}]}
    found = plan(
        {
            "cluster": cluster,
            "components": {name: {"workers": 2, "gpus": 1} for name in ("train", "eval")} | {"buffer": {"workers": "auto"}},
            "rules": {"strategy": "disaggregate"},
        }
    )
    assert [worker.node_id for worker in found.workers["train"]] == ["b", "b"]
    assert [worker.node_id for worker in found.workers["eval"]] == ["a", "a"]
    assert [worker.node_id for worker in found.workers["buffer"]] == ["b"]
    assert [node.node_id for node in found.pools[0].nodes] == ["b"]


@pytest.mark.parametrize(
    ("sizes", "components", "strategy", "difference"),
    [
        ((2, 2), {"train": (1, 1), "eval": (1, 2)}, "disaggregate", "eval worker 0"),
        ((2,), {"train": (3, 0.5)}, "disaggregate", "train has 2 workers placed where 3 are asked"),
        ((1,), {"env": (1, 0)}, "disaggregate", "env has 0 workers placed where 1 are asked"),
    ],
)
def test_a_broken_rule_is_a_difference(
    sizes: tuple[int, ...], components: dict[str, tuple[int, float]], strategy: str, difference: str
) -> None:
    needs = {name: {"workers": count, "gpus": gpus} for name, (count, gpus) in components.items()}
    with pytest.raises(PlanMismatch) as caught:
        plan({"cluster": nodes(*sizes, cpus=64), "components": needs, "rules": {"strategy": strategy}})
    assert difference in str(caught.value)


def test_greedy_does_not_import_ortools() -> None:
    code = (
        "import sys, placewright.greedy, placewright.greedy.first_fit.placing, placewright.greedy.reference.plan;"
        "assert not [name for name in sys.modules if name.startswith('ortools')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
