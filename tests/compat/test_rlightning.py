"""RLightning's drop-in: the mended behaviour for each defect of reference.md, greedy to the letter.

Modify this file when the drop-in learns something new. The recorded cases are not ours to improve.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rlightning_cases import MANUAL_ROWS, NODE_ROWS, ROWS, as_text, cluster_info, observed_planner, observed_pool
from rlightning_jobs import allocations, info, manual, needs

from placewright.compat import rlightning as drop_in
from placewright.compat.rlightning import (
    ComponentScheduling,
    InfeasibleScheduling,
    NodeResource,
    PlannedPool,
    ResourcePool,
    ResourcePoolPlanner,
    Scheduling,
)
from placewright.verify import violations
from placewright_models.errors import InvalidProblem


def planned(
    scheduling: ComponentScheduling, cluster: dict[str, Any], strategy: str = "disaggregate", env_strategy: str = "default"
) -> ResourcePoolPlanner:
    planner = ResourcePoolPlanner(scheduling, cluster)
    planner.plan_resource_pools(strategy, env_strategy)
    assert planner.plan is not None
    assert violations(planner.plan.problem, planner.plan) == []
    return planner


class TestMended:
    """One test for each defect of reference.md, section 2, on its smallest input."""

    def test_d1_eval_and_env_beside_each_other_under_train(self) -> None:
        planner = planned(needs(evaluation=(1, 1), env=(1, 1)), info(1, 1), "colocate")
        found = allocations(planner)["global_pool"]
        assert sorted(found) == ["n0", "n1"]

    def test_d2_fractional_totals_are_not_cut(self) -> None:
        assert allocations(planned(needs(train=(3, 0.5)), info(2)))["train_pool"] == {"n0": {"train": [(0, 1)]}}

    def test_d3_less_than_one_gpu_does_not_vanish(self) -> None:
        assert allocations(planned(needs(train=(1, 0.25)), info(1)))["train_pool"] == {"n0": {"train": [(0, 0)]}}

    def test_d4_workers_of_several_gpus(self) -> None:
        planner = planned(needs(env=(1, 2)), info(2))
        assert planner.plan is not None
        assert planner.plan.workers["env"] == (("n0", ((0, 1),)),)

    @pytest.mark.parametrize(
        ("sizes", "scheduling", "strategy"),
        [
            ((2, 2), needs(train=(1, 1), evaluation=(1, 2)), "disaggregate"),
            ((2, 1), needs(evaluation=(1, 1), env=(1, 2)), "disaggregate"),
            ((3, 2), needs(env=(2, 2)), "colocate"),
        ],
    )
    def test_d5_no_worker_is_cut(self, sizes: tuple[int, ...], scheduling: ComponentScheduling, strategy: str) -> None:
        planned(scheduling, info(*sizes), strategy)

    def test_d6_each_pool_lists_its_own_components_where_they_meet(self) -> None:
        planner = planned(needs(train=(1, 1), evaluation=(1, 1)), info(2))
        assert allocations(planner) == {
            "train_pool": {"n0": {"train": [(0, 0)]}},
            "rollout_pool": {"n0": {"eval": [(1, 1)]}},
        }
        pool = planner.get_pool_for_component("eval")
        assert pool is not None
        assert pool.name == "rollout_pool"
        found = allocations(planned(needs(train=(1, 1), evaluation=(2, 1)), info(2, 1)))
        assert all("eval" not in node for node in found["train_pool"].values())

    def test_d7_cpus_are_kept_on_every_node(self) -> None:
        assert "n1" in allocations(planned(needs(train=(1, 1)), info(1, 1, cpus=(0, 2))))["train_pool"]
        with pytest.raises(InfeasibleScheduling, match="CPU"):
            planned(needs(train=(1, 1)), info(1, 1, cpus=(0, 0)))

    def test_d8_a_buffer_with_gpus_gets_them(self) -> None:
        found = allocations(planned(needs(train=(1, 1), buffer=(1, 1)), info(2)))
        assert found["train_pool"] == {"n0": {"train": [(0, 0)], "buffer": [(1, 1)]}}

    def test_d9_a_buffer_between_leaves_no_hole(self) -> None:
        planner = planned(needs(train=(1, 1), evaluation=(1, 1), buffer=(1, 1)), info(3))
        assert planner.plan is not None
        assert {name: workers[0].ranges for name, workers in planner.plan.workers.items()} == {
            "train": ((0, 0),),
            "buffer": ((1, 1),) if planner.plan.workers["buffer"][0].ranges == ((1, 1),) else ((2, 2),),
            "eval": ((2, 2),) if planner.plan.workers["buffer"][0].ranges == ((1, 1),) else ((1, 1),),
        }

    def test_d10_every_node_of_train_has_workers_of_it(self) -> None:
        planner = planned(needs(train=(4, 0.25), buffer=(1, 1)), info(1, 1))
        assert allocations(planner)["train_pool"] == {"n0": {"train": [(0, 0)]}, "n1": {"buffer": [(0, 0)]}}
        planner = planned(needs(train=(4, 0.25), buffer=(1, 1)), info(2, 2))
        assert allocations(planner)["train_pool"] == {"n0": {"train": [(0, 0)], "buffer": [(1, 1)]}}

    def test_d11_workers_without_gpu_are_in_a_pool(self) -> None:
        planner = planned(needs(env=(1, 0)), info(1))
        assert allocations(planner)["rollout_pool"] == {"n0": {"env": []}}
        assert planner.get_component_node_count("env") == 1

    def test_d12_planning_twice_gives_the_same(self) -> None:
        planner = ResourcePoolPlanner(needs(train=(1, 1), evaluation=(1, 1)), info(2))
        planner.plan_resource_pools("disaggregate")
        first = allocations(planner)
        planner.plan_resource_pools("disaggregate")
        assert allocations(planner) == first
        planner.plan_resource_pools("colocate")
        assert list(allocations(planner)) == ["global_pool"]

    @pytest.mark.parametrize("sizes", [(2, 1), (4, 4), (1, 8, 4)])
    def test_d13_the_exported_configuration_reloads_to_the_same(self, sizes: tuple[int, ...]) -> None:
        cluster = info(*sizes)
        cluster["node_id_to_resources"] = dict(reversed(cluster["node_id_to_resources"].items()))
        planner = planned(needs(train=(1, 1), evaluation=(2, 1)), cluster)
        reloaded = ResourcePoolPlanner(planner.scheduling, cluster)
        reloaded.load_manual_resource_pools(planner.to_yaml_config())
        assert allocations(reloaded) == allocations(planner)
        greedy = ResourcePoolPlanner(planner.scheduling, cluster, solver="greedy")
        greedy.load_manual_resource_pools(planner.to_yaml_config())
        assert allocations(greedy) == allocations(planner)

    @pytest.mark.timeout(5)
    def test_d14_an_index_outside_the_pool_is_refused(self) -> None:
        with pytest.raises(InvalidProblem, match="past the end"):
            manual({"train": 1}, info(1))

    def test_d15_lists_sizes_and_overlaps_are_checked(self) -> None:
        with pytest.raises(InvalidProblem, match="text is due"):
            manual({"train": ["0-1"]}, info(2))
        with pytest.raises(InvalidProblem, match="4 GPUs said of n0, which has 2"):
            manual({"train": "0", "node_ids": ["n0"], "num_gpus": [4]}, info(2))
        with pytest.raises(InvalidProblem, match="overlap on GPU 0 of n0"):
            manual({"train": "0", "eval": "0"}, info(2))

    def test_d16_workers_without_cpu_are_placed(self) -> None:
        planner = planned(needs(evaluation=(1, 1, 0)), info(1, cpus=0))
        assert planner.plan is not None
        assert planner.plan.workers["eval"] == (("n0", ((0, 0),)),)

    def test_d17_three_quarters_take_a_gpu_each(self) -> None:
        assert allocations(planned(needs(train=(4, 0.75)), info(4)))["train_pool"] == {"n0": {"train": [(0, 3)]}}

    def test_d18_no_more_nodes_than_needed(self) -> None:
        planner = planned(needs(train=(1, 1), evaluation=(2, 1)), info(2, 1))
        assert planner.get_component_node_count("eval") == 1

    def test_d19_the_cpus_of_env_workers_count(self) -> None:
        with pytest.raises(InfeasibleScheduling, match="CPU"):
            planned(needs(env=(1, 1, 4)), info(1, cpus=2))


def test_infeasible_is_a_value_error_with_reasons() -> None:
    with pytest.raises(ValueError) as caught:
        planned(needs(train=(3, 1)), info(2))
    assert isinstance(caught.value, InfeasibleScheduling)
    assert caught.value.reasons


def test_unknown_strategy_in_the_reference_s_words() -> None:
    with pytest.raises(ValueError, match=r"^Unknown placement strategy: pack$"):
        planned(needs(train=(1, 1)), info(2), "pack")
    with pytest.raises(ValueError, match="neither 'cp-sat' nor 'greedy'"):
        ResourcePoolPlanner(needs(), info(1), solver="fast")


def test_validation_knows_more_than_totals() -> None:
    planner = ResourcePoolPlanner(needs(train=(1, 2)), info(1, 1))
    valid, message = planner.validate_scheduling()
    assert not valid
    assert "train" in message
    assert planner.resource_summary == {}
    assert ResourcePoolPlanner(needs(train=(1, 1)), info(1)).validate_scheduling() == (True, "")


def test_groups_of_env_workers_that_need_different_amounts() -> None:
    planner = planned(needs(evaluation=(2, 1), env=[(2, 0.5), (1, 2), (2, 0.25)]), info(8), "disaggregate", "device-colocate")
    assert planner.plan is not None
    assert {name: len(workers) for name, workers in planner.plan.workers.items() if name.startswith("env")} == {
        "env-0": 2,
        "env-1": 1,
        "env-2": 2,
    }
    assert planner.locate("env", 0) == ("env-0", 0)
    assert planner.locate("env", 2) == ("env-1", 0)
    assert planner.locate("env", 4) == ("env-2", 1)
    with pytest.raises(IndexError):
        planner.locate("env", 5)
    assert set(allocations(planner)["rollout_pool"]["n0"]) == {"eval", "env"}


def test_node_lists_are_kept() -> None:
    scheduling = ComponentScheduling(train_worker=Scheduling(1, 1, 1, node_list="n1"))  # type: ignore[arg-type]
    assert list(allocations(planned(scheduling, info(1, 1)))["train_pool"]) == ["n1"]


def test_the_number_of_buffers_follows_train_in_any_node_order() -> None:
    for sizes in ((0, 8, 8), (8, 0, 8), (2, 8, 8)):
        planner = planned(needs(train=(8, 1), evaluation=(8, 1), buffer=("auto", 0)), info(*sizes))
        assert planner.plan is not None
        trains = {worker.node_id for worker in planner.plan.workers["train"]}
        assert [worker.node_id for worker in planner.plan.workers["buffer"]] == sorted(trains)
        assert len(trains) == 1


# Greedy: the recorded cases through the drop-in


@pytest.mark.parametrize("row", ROWS[::7], ids=[row["id"] for row in ROWS[::7]])
def test_recorded_plan(row: dict[str, Any]) -> None:
    def worker(fields: dict[str, Any] | None) -> Scheduling | None:
        return None if fields is None else Scheduling(**fields)

    given = row["scheduling"]
    scheduling = ComponentScheduling(
        env_worker=None if given["env"] is None else [Scheduling(**group) for group in given["env"]],
        train_worker=worker(given["train"]),
        eval_worker=worker(given["eval"]),
        buffer_worker=worker(given["buffer"]),
    )
    planner = ResourcePoolPlanner(scheduling, cluster_info(row), solver="greedy")
    expect = row["expect"]
    if expect["status"] == "error":
        with pytest.raises((ValueError, RuntimeError)) as caught:
            planner.plan_resource_pools(row["strategy"], row["env_strategy"])
        assert {"type": caught.type.__name__, "message": str(caught.value)} == expect["error"]
    else:
        pools = planner.plan_resource_pools(row["strategy"], row["env_strategy"])
        assert as_text(observed_planner(planner, pools) | {"resource_summary": planner.resource_summary}) == as_text(expect)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("row", MANUAL_ROWS, ids=[row["id"] for row in MANUAL_ROWS])
def test_recorded_manual_pools(row: dict[str, Any]) -> None:
    planner = ResourcePoolPlanner(ComponentScheduling(), cluster_info(row), solver="greedy")

    def load() -> dict[str, Any]:
        if row["via"] == "planner":
            return observed_planner(planner, planner.load_manual_resource_pools(row["pools_cfg"]))
        used = None if row["used_node_ids"] is None else set(row["used_node_ids"])
        pool = ResourcePool.from_yaml_dict(row["pools_cfg"][0], planner.discover_cluster_resources(), used_node_ids=used)
        return {"status": "ok", "pools": [observed_pool(pool)], "yaml_config": [pool.to_yaml_dict()]}

    expect = row["expect"]
    if expect["status"] == "ok":
        assert as_text(load()) == as_text(expect)
        return
    with pytest.raises((ValueError, AssertionError, KeyError, TypeError)) as caught:
        load()
    if expect["status"] == "error":
        assert {"type": caught.type.__name__, "message": str(caught.value)} == expect["error"]


def test_node_resources_are_the_reference_s() -> None:
    assert NODE_ROWS
    node = NodeResource("n0", "", 8, 8)
    node.allocate(2, ["train"])
    assert node.allocations == {"train": [(0, 1)]}


# The manager without Ray


def test_manager_is_one_per_process() -> None:
    manager = drop_in.GlobalResourceManager.get_instance()
    assert manager is drop_in.GlobalResourceManager()
    assert drop_in.get_global_resource_manager() is None
    assert manager.get_cluster_summary() == {"error": "GlobalResourceManager not initialized"}
    with pytest.raises(RuntimeError, match="not initialized"):
        manager.get_scheduling_strategy("train")
    drop_in.GlobalResourceManager.reset()
    assert manager is not drop_in.GlobalResourceManager()


def test_export_names_nodes_and_sizes() -> None:
    planner = planned(needs(train=(1, 1), evaluation=(2, 1)), info(2, 1))
    for pool in planner.to_yaml_config():
        assert list(pool)[:4] == ["name", "num_node", "num_gpus", "node_ids"]
    assert PlannedPool("empty", []).to_yaml_dict() == {"name": "empty", "num_node": 0, "num_gpus": [], "node_ids": []}


def test_neither_ray_nor_ortools_is_imported(tmp_path: Path) -> None:
    code = (
        "import sys, placewright.compat.rlightning, placewright.compat.rlightning_config;"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('ortools', 'ray')]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
