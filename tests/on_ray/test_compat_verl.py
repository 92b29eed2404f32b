"""verl's pools from a plan on real Ray: groups, order, split pools; and verl's own worker group on them where it is installed.

Modify this file when verl makes its pools or workers in another way.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from planhelp import make_plan, one_each
from verl_stand_ins import load_verl

from placewright.compat._ray_rooms import Rooms
from placewright.compat.verl import RayResourcePool, split_resource_pool, worker_layout
from placewright_models.cluster import Node
from placewright_models.errors import PlanMismatch
from placewright_models.plan import Plan

# As text 127.0.0.10 stands before 127.0.0.9; the plan's order is left, right.
NODES = [
    Node("left", 4, ip="127.0.0.10", topo_rank=1),
    Node("right", 2, ip="127.0.0.9", topo_rank=2),
]


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., Any]) -> Any:
    started = start_cluster()
    started.add_node("left", 4, 8, ip="127.0.0.10")
    started.add_node("right", 2, 4, ip="127.0.0.9")
    return started


@pytest.fixture
def plan_file(tmp_path: Path) -> Iterator[Callable[[Plan], None]]:
    def write(plan: Plan) -> None:
        path = tmp_path / "plan.json"
        path.write_text(json.dumps(plan.to_dict()))
        os.environ["PLACEWRIGHT_PLAN"] = str(path)

    yield write
    os.environ.pop("PLACEWRIGHT_PLAN", None)
    os.environ.pop("PLACEWRIGHT_ORDER", None)


def full_plan() -> Plan:
    """All six GPUs for an actor, engines of two over them."""
    return make_plan(
        NODES,
        {
            "actor": [*one_each("left", [0, 1, 2, 3]), *one_each("right", [0, 1])],
            "rollout": [("left", [0, 1]), ("left", [2, 3]), ("right", [0, 1])],
        },
    )


def split_plan() -> Plan:
    """The actor's GPUs are not the first of its nodes; two replicas have GPUs of their own."""
    plan = make_plan(
        NODES,
        {"actor": [*one_each("left", [2, 3])], "rollout": [("right", [0, 1]), ("left", [0, 1])]},
        pools={"global_pool": ["actor"], "rollout_pool": ["rollout"]},
    )
    # A plan file keeps pools that were written.
    return replace(plan, problem=replace(plan.problem, rules=replace(plan.problem.rules, explicit_pools=True)))


def seen(places: Sequence[tuple[Any, int]]) -> list[tuple[str, list[int]]]:
    """Node name and GPU ids from inside (group, bundle), each with a real actor."""
    import ray
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    class Eye:
        def see(self) -> tuple[str, list[int]]:
            import ray

            context = ray.get_runtime_context()
            return context.get_node_id(), sorted(int(gpu) for gpu in context.get_accelerator_ids()["GPU"])

    names = {node["NodeID"]: node["NodeName"] for node in ray.nodes()}
    eyes = [
        ray.remote(Eye)
        .options(num_cpus=1, num_gpus=0.1, scheduling_strategy=PlacementGroupSchedulingStrategy(group, bundle))
        .remote()
        for group, bundle in places
    ]
    found = ray.get([eye.see.remote() for eye in eyes], timeout=60)
    for eye in eyes:
        ray.kill(eye)
    return [(names[node], gpus) for node, gpus in found]


def ranks(pool: RayResourcePool) -> list[tuple[str, list[int]]]:
    return seen([(slot.group, slot.bundle) for slot in worker_layout(pool)])


RIGHT = one_each("right", [0, 1])
LEFT = one_each("left", [0, 1, 2, 3])


class TestPoolsFromAPlan:
    def test_unequal_nodes_are_groups_of_one_size_in_order_of_ip(self, cluster: Any, nothing_left: None) -> None:
        pool = RayResourcePool.from_plan(full_plan(), "global_pool", max_colocate_count=2)
        try:
            assert pool.store == [2, 2, 2]
            groups = pool.get_placement_groups()
            assert groups is pool.get_placement_groups()
            assert [group.bundle_count for group in groups] == [2, 2, 2]
            assert groups[0].bundle_specs[0]["CPU"] == 2
            assert ranks(pool) == [*RIGHT, *LEFT]
            parts = split_resource_pool(pool, 2)
            assert [ranks(part) for part in parts] == [RIGHT, LEFT[:2], LEFT[2:]]
            again = split_resource_pool(split_resource_pool(pool, [2, 4])[1], 2)
            assert ranks(again[1]) == LEFT[2:]
        finally:
            pool.shutdown()  # type: ignore[attr-defined]

    def test_order_topology_and_exact_gpus(self, cluster: Any, nothing_left: None) -> None:
        plan = make_plan(NODES, {"actor": [("left", [1]), ("left", [3]), ("right", [1])]})
        pool = RayResourcePool.from_plan(plan, "global_pool", max_colocate_count=1, order="topology")
        try:
            assert ranks(pool) == [("left", [1]), ("left", [3]), ("right", [1])]
        finally:
            pool.shutdown()  # type: ignore[attr-defined]

    def test_what_does_not_come_out_even_says_the_numbers(self, cluster: Any) -> None:
        with pytest.raises(PlanMismatch, match=r"\[3, 3\] in verl.*nnodes=3, n_gpus_per_node=2"):
            RayResourcePool.from_plan(full_plan(), "global_pool", [3, 3])
        assert RayResourcePool.from_plan(full_plan(), "global_pool", [4, 2]).store == [4, 2]
        with pytest.raises(KeyError, match="no pool other"):
            RayResourcePool.from_plan(full_plan(), "other")

    def test_too_few_cpus_are_refused_before_anything_is_made(self, cluster: Any, nothing_left: None) -> None:
        pool = RayResourcePool.from_plan(full_plan(), "global_pool", max_colocate_count=3)
        with pytest.raises(PlanMismatch, match="short of CPUs"):
            pool.get_placement_groups()

    def test_ray_takes_the_node_that_keeps_most_free(self, cluster: Any, nothing_left: None) -> None:
        # What the check of configurations relies on.
        import ray
        from ray.util.placement_group import placement_group, remove_placement_group

        for _ in range(3):
            group = placement_group([{"GPU": 1, "CPU": 1}] * 2, strategy="STRICT_PACK")
            assert group.wait(30)
            node = ray.util.placement_group_table(group)["bundles_to_node_id"][0]
            names = {entry["NodeID"]: entry["NodeName"] for entry in ray.nodes()}
            remove_placement_group(group)
            rooms = Rooms([Node("right", 2, cpus=4), Node("left", 4, cpus=8)])  # type: ignore[arg-type]
            assert names[node] == "left" == rooms.strict_pack(2, 2)
            import time

            time.sleep(0.5)


@pytest.fixture(scope="module")
def verl(cluster: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    # The variable must be set when verl is imported; which plan it names is looked up for each pool.
    os.environ["PLACEWRIGHT_PLAN"] = "set"
    try:
        return load_verl(tmp_path_factory.mktemp("entry"))
    finally:
        del os.environ["PLACEWRIGHT_PLAN"]


def run_workers(verl: Any, pool: Any) -> list[tuple[str, list[int], str]]:
    """verl's own RayWorkerGroup on the pool: node, GPU ids and RANK of each of its workers, in its order."""
    import ray

    class Eye:
        def __init__(self) -> None:
            pass

        def see(self) -> tuple[str, list[int], str]:
            import os

            import ray

            context = ray.get_runtime_context()
            gpus = sorted(int(gpu) for gpu in context.get_accelerator_ids()["GPU"])
            return context.get_node_id(), gpus, f"{os.environ['RANK']}/{os.environ['WORLD_SIZE']}"

    names = {node["NodeID"]: node["NodeName"] for node in ray.nodes()}
    group = verl.RayWorkerGroup(
        resource_pool=pool,
        ray_cls_with_init=verl.RayClassWithInitArgs(cls=ray.remote(num_cpus=1)(Eye)),
        # Its own task for this would import torch on the worker.
        master_addr="127.0.0.1",
        master_port="29500",
    )
    found = ray.get([worker.see.remote() for worker in group.workers], timeout=60)
    for worker in group.workers:
        ray.kill(worker)
    return [(names[node], gpus, rank) for node, gpus, rank in found]


@pytest.fixture
def made(nothing_left: None) -> Iterator[list[Any]]:
    """Pools of verl that the plan placed; their groups are removed after the test."""
    pools: list[Any] = []
    yield pools
    for pool in pools:
        if hasattr(pool, "_placewright"):
            pool._placewright.remove_all()


class TestInsideVerl:
    def test_worker_group_runs_unchanged_on_our_pools(self, verl: Any, nothing_left: None) -> None:
        plan = make_plan(NODES, {"actor": [*one_each("left", [2, 3]), *RIGHT]})
        pool = RayResourcePool.from_plan(plan, "global_pool", max_colocate_count=2)
        try:
            # verl sorts plain pools once more, by the text of the ip.
            assert [(node, gpus) for node, gpus, _ in run_workers(verl, pool)] == [*LEFT[2:], *RIGHT]
            parts = split_resource_pool(pool, 2)
            assert isinstance(parts[1], verl.SubRayResourcePool)
            assert run_workers(verl, parts[1]) == [("left", [2], "0/2"), ("left", [3], "1/2")]
        finally:
            pool.shutdown()  # type: ignore[attr-defined]

    def test_verls_own_pool_is_on_the_plan(self, verl: Any, plan_file: Any, made: list[Any]) -> None:
        plan_file(full_plan())
        manager = verl.ResourcePoolManager({"global_pool": [2, 2, 2]}, {0: "global_pool"}, max_colocate_count=2)
        manager.create_resource_pool()
        pool = manager.get_resource_pool(0)
        made.append(pool)
        assert type(pool) is verl.RayResourcePool
        expected = [*RIGHT, *LEFT]
        assert run_workers(verl, pool) == [(node, gpus, f"{rank}/6") for rank, (node, gpus) in enumerate(expected)]
        parts = verl.split_resource_pool(pool, 2)
        assert [(node, gpus) for node, gpus, _ in run_workers(verl, parts[2])] == LEFT[2:]

    def test_order_topology(self, verl: Any, plan_file: Any, made: list[Any]) -> None:
        plan_file(full_plan())
        os.environ["PLACEWRIGHT_ORDER"] = "topology"
        pool = verl.RayResourcePool([2, 2, 2], name_prefix="trainer_pool", max_colocate_count=2)
        made.append(pool)
        assert [(node, gpus) for node, gpus, _ in run_workers(verl, pool)] == [*LEFT, *RIGHT]

    def test_pools_of_standalone_replicas(self, verl: Any, plan_file: Any, made: list[Any]) -> None:
        plan_file(split_plan())
        actor = verl.RayResourcePool([2], name_prefix="global_pool", max_colocate_count=2)
        made.append(actor)
        assert [(node, gpus) for node, gpus, _ in run_workers(verl, actor)] == LEFT[2:]
        for index, expected in enumerate([RIGHT, LEFT[:2]]):
            # As verl's RolloutReplica.init_standalone does.
            name = f"rollout_pool_{index}"
            manager = verl.ResourcePoolManager({name: [2]}, None, max_colocate_count=2)
            manager.create_resource_pool()
            made.append(manager.resource_pool_dict[name])
            assert [(node, gpus) for node, gpus, _ in run_workers(verl, made[-1])] == expected

    def test_another_shape_than_planned_is_an_error(self, verl: Any, plan_file: Any, made: list[Any]) -> None:
        plan_file(full_plan())
        with pytest.raises(PlanMismatch, match="nnodes=3, n_gpus_per_node=2"):
            verl.RayResourcePool([3, 3], name_prefix="global_pool").get_placement_groups()

    def test_an_unreadable_plan_is_an_error(self, verl: Any, plan_file: Any) -> None:
        os.environ["PLACEWRIGHT_PLAN"] = "/nowhere/plan.json"
        with pytest.raises(Exception, match=r"/nowhere/plan\.json"):
            verl.RayResourcePool([2], name_prefix="global_pool").get_placement_groups()

    def test_pools_that_the_plan_does_not_know_are_verls(self, verl: Any, plan_file: Any, made: list[Any]) -> None:
        from ray.util.placement_group import remove_placement_group

        plan_file(full_plan())
        pool = verl.RayResourcePool([2], name_prefix="something", max_colocate_count=2)
        groups = pool.get_placement_groups()
        assert not hasattr(pool, "_placewright")
        for group in groups:
            remove_placement_group(group)

    def test_nothing_happens_without_a_plan(self, verl: Any, nothing_left: None) -> None:
        from ray.util.placement_group import remove_placement_group

        pool = verl.RayResourcePool([2], name_prefix="global_pool", max_colocate_count=1)
        for group in pool.get_placement_groups():
            remove_placement_group(group)
        assert not hasattr(pool, "_placewright")
