"""RLightning's manual pools read strictly (the default mode of the drop-in): decoded exactly, or refused with the numbers.

FC numbers are the cases of field_cases.yaml. Modify this file when manual configurations get another form.
"""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from rlightning_jobs import allocations, info, manual, needs

from placewright.compat.rlightning import ComponentScheduling, ResourcePoolPlanner
from placewright_models.errors import InvalidProblem


@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    ("ranges", "scheduling", "names"),
    [
        ({"train": "4-9"}, needs(train=(6, 1)), ["train", "8", "9", "0-7"]),
        ({"train": "0-3", "eval": "2-5"}, needs(train=(4, 1), evaluation=(4, 1)), ["train", "eval", "2", "3"]),
        ({"train": "7-4"}, needs(train=(4, 1)), ["7-4"]),
        ({"train": [0, 1, 2, 3]}, needs(train=(4, 1)), ["train", "[0, 1, 2, 3]"]),
        ({"train": "0-2"}, needs(train=(4, 1)), ["train", "4 workers", "3 GPUs"]),
        ({"train": "0-1,1-2"}, needs(train=(3, 1)), ["train", "1"]),
        ({"train": "0-1, x"}, needs(train=(2, 1)), ["train", "'x'"]),
        ({"train": True}, needs(train=(1, 1)), ["train", "True"]),
        ({"train": -1}, needs(train=(1, 1)), ["train", "'-1'"]),
    ],
)
def test_fc_13_bad_ranges_are_refused_with_the_numbers(
    ranges: dict[str, Any], scheduling: ComponentScheduling, names: list[str]
) -> None:
    started = time.process_time()
    with pytest.raises(InvalidProblem) as caught:
        manual(ranges, info(8), scheduling, strategy="disaggregate")
    assert time.process_time() - started < 1
    for name in names:
        assert name in str(caught.value)


def test_all_faults_at_once() -> None:
    with pytest.raises(InvalidProblem) as caught:
        manual({"train": "4-9", "eval": "3-1", "env": []}, info(8))
    assert len(caught.value.faults) == 3


def test_fc_14_nodes_without_gpus_are_passed_over() -> None:
    cluster = {"node_id_to_resources": {name: {"GPU": gpus, "CPU": 64} for name, gpus in (("head", 0), ("w1", 8), ("w2", 8))}}
    found = manual({"num_node": 2, "train": "0-7", "eval": "8-15"}, cluster)
    assert found == {"pool": {"w1": {"train": [(0, 7)]}, "w2": {"eval": [(0, 7)]}}}


def test_fc_36_real_manual_configurations() -> None:
    two = info(8, 8)
    assert manual({"num_node": 2, "rollout": "0-9", "inference": "10-11", "actor": "12-15"}, two) == {
        "pool": {"n0": {"rollout": [(0, 7)]}, "n1": {"rollout": [(0, 1)], "inference": [(2, 3)], "actor": [(4, 7)]}}
    }
    shared = {"share_gpus": [["env", "actor"], ["env", "rollout"]]}
    assert manual({"actor": "6-7", "rollout": "4-5", "env": "4-7"}, info(8), **shared)["pool"]["n0"]["env"] == [(4, 7)]
    scheduling = needs(train=(4, 1), evaluation=(4, 1), env=(4, 1), buffer=("auto", 0))
    planner = ResourcePoolPlanner(scheduling, info(8, 8, 8))
    pool = {"name": "global_pool", "num_node": 3, "num_gpus": 8, "env": "0-1, 8-9", "eval": "2-3, 10-11", "train": "4-5, 12-13"}
    planner.load_manual_resource_pools([pool])
    assert planner.plan is not None
    assert len(planner.plan.workers["buffer"]) == 2
    assert planner.plan.idle.nodes == ("n2",)
    assert manual({"num_node": 3, "train": "8-9"}, info(4, 8, 8)) == {"pool": {"n0": {}, "n1": {"train": [(4, 5)]}, "n2": {}}}
    planner = ResourcePoolPlanner(needs(evaluation=(5, 2)), two)
    planner.load_manual_resource_pools([{"name": "pool", "num_node": 2, "eval": "0-9"}])
    assert planner.plan is not None
    assert [worker.node_id for worker in planner.plan.workers["eval"]] == ["n0"] * 4 + ["n1"]
    with pytest.raises(InvalidProblem, match="crosses n0 and n1"):
        manual({"num_node": 2, "eval": "6-9"}, two, needs(evaluation=(1, 4)))
    with pytest.raises(InvalidProblem, match=r"pool1 and pool2 .* overlap on GPU 2-5"):
        manual({"pool1": "0-5", "pool2": "2-7"}, info(8))


def test_pools_take_nodes_of_the_size_they_name() -> None:
    assert list(manual({"num_gpus": 8, "train": "0"}, info(4, 8, 8))["pool"]) == ["n1"]
    assert list(manual({"num_node": 2, "num_gpus": [8, 4], "train": "0"}, info(4, 8, 8))["pool"]) == ["n1", "n0"]
    with pytest.raises(InvalidProblem, match="6 GPUs said of n0, which has 4"):
        manual({"num_gpus": 6, "train": "0"}, info(4, 8))
    with pytest.raises(InvalidProblem, match="3 nodes"):
        manual({"num_node": 3, "train": "0"}, info(4, 8))


def test_pools_may_meet_on_a_node_that_both_name() -> None:
    pools = [
        {"name": "a", "num_node": 1, "num_gpus": [8], "node_ids": ["n0"], "train": "0-3"},
        {"name": "b", "num_node": 1, "num_gpus": [8], "node_ids": ["n0"], "eval": "4-7"},
    ]
    planner = ResourcePoolPlanner(ComponentScheduling(), info(8))
    planner.load_manual_resource_pools(pools)
    assert allocations(planner)["b"] == {"n0": {"eval": [(4, 7)]}}
    pools[1]["eval"] = "3-7"
    with pytest.raises(InvalidProblem, match="overlap on GPU 3 of n0"):
        planner.load_manual_resource_pools(pools)
    assert allocations(planner)["b"] == {"n0": {"eval": [(4, 7)]}}


def test_manual_cpus_are_counted_per_node() -> None:
    with pytest.raises(InvalidProblem, match=r"need 8 CPUs \(train 8\) and it has 4"):
        manual({"train": "0-3"}, info(8, cpus=4), needs(train=(4, 1, 2)))


def test_manual_shares_of_several_env_groups_are_packed() -> None:
    assert manual({"env": "0"}, info(1), needs(env=[(1, 0.5), (2, 0.25)])) == {"pool": {"n0": {"env": [(0, 0)]}}}


def test_configuration_objects_are_taken() -> None:
    entry = SimpleNamespace(to_dict=lambda: {"name": "pool", "num_node": 1, "train": "0"})
    for solver in ("cp-sat", "greedy"):
        planner = ResourcePoolPlanner(ComponentScheduling(), info(1), solver=solver)
        assert list(planner.load_manual_resource_pools([entry])) == ["pool"]
