"""The RLightning reference planner against the recorded plans, one test per row of tests/vectors/greedy.jsonl.

When to modify: only together with the recorded cases. What the reference does is not ours to improve.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from rlightning_cases import ROWS, as_text, cluster_info, observed_planner

from placewright.greedy.reference.planner import (
    ComponentScheduling,
    NodeResource,
    ResourcePoolPlanner,
    Scheduling,
    plan_reference,
)


def scheduling_of(row: Mapping[str, Any]) -> ComponentScheduling:
    def worker(fields: Mapping[str, Any] | None) -> Scheduling | None:
        return None if fields is None else Scheduling(**fields)

    needs = row["scheduling"]
    return ComponentScheduling(
        env_worker=None if needs["env"] is None else [Scheduling(**group) for group in needs["env"]],
        train_worker=worker(needs["train"]),
        eval_worker=worker(needs["eval"]),
        buffer_worker=worker(needs["buffer"]),
    )


def planner_of(row: Mapping[str, Any]) -> ResourcePoolPlanner:
    return ResourcePoolPlanner(scheduling_of(row), cluster_info(row))


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_recorded_plan(row: dict[str, Any]) -> None:
    planner = planner_of(row)
    expect = row["expect"]
    if expect["status"] == "error":
        with pytest.raises((ValueError, RuntimeError)) as caught:
            planner.plan_resource_pools(row["strategy"], row["env_strategy"])
        assert {"type": caught.type.__name__, "message": str(caught.value)} == expect["error"]
        assert as_text(planner.resource_summary) == as_text(expect["resource_summary"])
        assert planner.get_resource_pools() == {}
    else:
        pools = planner.plan_resource_pools(row["strategy"], row["env_strategy"])
        seen = observed_planner(planner, pools) | {"resource_summary": planner.resource_summary}
        assert as_text(seen) == as_text(expect)


def nodes_of(*gpus: int) -> list[NodeResource]:
    return [NodeResource(f"n{i}", f"10.0.0.{i}", total_cpus=64, total_gpus=count) for i, count in enumerate(gpus)]


def scheduling(train: float = 0, evaluation: float = 0, env: float | None = None) -> ComponentScheduling:
    return ComponentScheduling(
        train_worker=Scheduling(1, 1, train),
        eval_worker=Scheduling(1, 1, evaluation),
        env_worker=None if env is None else [Scheduling(1, 1, env)],
    )


def test_plan_reference_leaves_the_nodes_alone() -> None:
    nodes = nodes_of(1, 2)
    planner = plan_reference(nodes, scheduling(train=2, evaluation=1), "disaggregate")
    assert planner.to_yaml_config() == [
        {"name": "train_pool", "num_node": 1, "num_gpus": 2, "train": "0-1"},
        {"name": "rollout_pool", "num_node": 1, "num_gpus": 1, "eval": "0"},
    ]
    assert nodes == nodes_of(1, 2)


def test_colocate_raises_on_the_stale_count() -> None:
    with pytest.raises(RuntimeError, match=r"^The number of GPUs .* but got 1 > 0$"):
        plan_reference(nodes_of(1, 1), scheduling(evaluation=1, env=1), "colocate")


def test_second_planning_on_one_planner_finds_what_the_first_left() -> None:
    resources = {"n0": {"ip": "", "CPU": 64, "GPU": 2}}
    planner = ResourcePoolPlanner(scheduling(train=1, evaluation=1), {"node_id_to_resources": resources})
    first = dict(planner.plan_resource_pools("disaggregate"))
    second = planner.plan_resource_pools("disaggregate")
    assert first["train_pool"].get_component_indices("train") == "0"
    assert [pool.num_nodes for pool in second.values()] == [0, 0]


def test_planner_without_cluster_says_so() -> None:
    with pytest.raises(ValueError, match="needs cluster_info"):
        ResourcePoolPlanner(scheduling()).plan_resource_pools()


def test_validate_scheduling_defaults_and_number_types() -> None:
    planner = ResourcePoolPlanner(
        scheduling(train=5, env=4), {"node_id_to_resources": {"n0": {"ip": "", "CPU": 8.0, "GPU": 8.0}}}
    )
    assert planner.validate_scheduling() == (False, "Insufficient GPUs: required 9.0, available 8")
    assert planner.resource_summary == {}
    assert planner.validate_scheduling("colocate") == (True, "")


def test_component_requirements() -> None:
    needs = ComponentScheduling(
        env_worker=[Scheduling(2, 4, 0.5), Scheduling(1, 2, 0)],
        train_worker=Scheduling(2, 1, 1.0),
        eval_worker=Scheduling(3, 1, 0.25),
        buffer_worker=Scheduling("auto", 7, 1),
    )
    assert needs.train_pool_requirements() == (2.0, 2)
    assert needs.rollout_pool_requirements() == (1.75, 13)
    assert repr(ComponentScheduling(env_worker=[]).get_component_requirements("env")) == "(0, 0)"
    with pytest.raises(ValueError, match="Invalid component type: learner"):
        needs.get_component_requirements("learner")


def test_buffer_worker_number() -> None:
    needs = ComponentScheduling(train_worker=Scheduling(5, 1, 1), buffer_worker=Scheduling("auto", 1, 0))
    assert needs.buffer_worker is not None
    needs.infer_auto_buffer_worker_num({"node_id_to_resources": {"a": {"GPU": 4}, "b": {"GPU": 8}}})
    assert needs.buffer_worker.worker_num == 2
    needs.adjust_buffer_worker_num(3)
    assert needs.buffer_worker.to_dict() == {"worker_num": 3, "num_cpus": 1, "num_gpus": 0, "node_list": None}
