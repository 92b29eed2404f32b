"""Manual pools of the RLightning reference, one test per row of tests/vectors/manual.jsonl.

On the rows with status "hang" the reference never returns; here a ValueError with the numbers is asserted.

When to modify: only together with the recorded cases.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from placewright.greedy.manual import split_range_by_nodes
from placewright.greedy.reference import ComponentScheduling, NodeResource, ResourcePool, ResourcePoolPlanner

ROWS = [json.loads(line) for line in (Path(__file__).parent / "vectors" / "manual.jsonl").read_text().splitlines()]
COMPONENTS = ("train", "eval", "env", "buffer")


def observed_pool(pool: ResourcePool) -> dict[str, Any]:
    return {
        "name": pool.name,
        "node_ids": pool.node_ids,
        "num_nodes": pool.num_nodes,
        "total_gpus": pool.total_gpus,
        "total_cpus": pool.total_cpus,
        "nodes": [
            {
                "node_id": node.node_id,
                "ip": node.ip,
                "total_cpus": node.total_cpus,
                "total_gpus": node.total_gpus,
                "allocations": node.allocations,
                "gpu_cursor": node.gpu_cursor,
                "max_allocated_gpus": node.max_allocated_gpus,
                "available_gpus": node.available_gpus,
                "is_empty": node.is_empty,
            }
            for node in pool.nodes
        ],
        "component_types_sorted": sorted(pool.component_types),
        "component_node_count": {name: pool.get_component_node_count(name) for name in COMPONENTS},
        "component_indices": {name: pool.get_component_indices(name) for name in {*COMPONENTS, *pool.component_types}},
        "component_allocations": {
            name: {
                "node_to_gpu_indices": allocation.node_to_gpu_indices,
                "index_string": allocation.to_index_string(),
                "total_gpus": allocation.total_gpus,
                "worker_count": allocation.worker_count,
            }
            for name, allocation in pool.component_allocations.items()
        },
    }


def load(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the vectors record of loading the pools of a row."""
    resources = {node["node_id"]: {"ip": node["ip"], "CPU": node["cpus"], "GPU": node["gpus"]} for node in row["nodes"]}
    planner = ResourcePoolPlanner(ComponentScheduling(), {"node_id_to_resources": resources})
    if row["via"] == "from_yaml_dict":
        used = None if row["used_node_ids"] is None else set(row["used_node_ids"])
        (pool_cfg,) = row["pools_cfg"]
        pool = ResourcePool.from_yaml_dict(pool_cfg, planner.discover_cluster_resources(), used)
        return {"status": "ok", "pools": [observed_pool(pool)], "yaml_config": [pool.to_yaml_dict()]}
    pools = planner.load_manual_resource_pools(row["pools_cfg"])
    summary = planner.summary()
    assert summary.pop("yaml_config") == planner.to_yaml_config()
    for entry in summary["pools"].values():
        entry["component_types"].sort()
    owners = {name: planner.get_pool_for_component(name) for name in COMPONENTS}
    return {
        "status": "ok",
        "pools": [observed_pool(pool) for pool in pools.values()],
        "yaml_config": planner.to_yaml_config(),
        "summary": summary,
        "component_node_count": {name: planner.get_component_node_count(name) for name in COMPONENTS},
        "pool_for_component": {name: None if pool is None else pool.name for name, pool in owners.items()},
    }


@pytest.mark.timeout(20)
@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_recorded_pools(row: dict[str, Any]) -> None:
    expect = row["expect"]
    if expect["status"] == "hang":
        message = r"^\[pool\d\] \w+: GPU index \d+ is outside the pool: its \d+ GPUs end at index \d+$"
        with pytest.raises(ValueError, match=message):
            load(row)
    elif expect["status"] == "error":
        with pytest.raises((ValueError, AssertionError, KeyError, TypeError)) as caught:
            load(row)
        assert {"type": caught.type.__name__, "message": str(caught.value)} == expect["error"]
    else:
        # As text, because == takes 4 for 4.0; a range may be a tuple or a list.
        assert json.dumps(load(row), sort_keys=True, indent=1) == json.dumps(expect, sort_keys=True, indent=1)


def cluster(*gpus: int) -> dict[str, NodeResource]:
    return {f"n{i}": NodeResource(f"n{i}", "", total_cpus=8, total_gpus=count) for i, count in enumerate(gpus)}


def test_index_outside_names_pool_component_index_and_last_index() -> None:
    with pytest.raises(ValueError) as caught:
        ResourcePool.from_yaml_dict({"name": "p", "num_node": 1, "eval": "0-2, 3-9"}, cluster(4, 4))
    assert str(caught.value) == "[p] eval: GPU index 9 is outside the pool: its 4 GPUs end at index 3"


def test_bad_number_before_the_outside_index_comes_first() -> None:
    with pytest.raises(ValueError, match="invalid literal for int"):
        ResourcePool.from_yaml_dict({"name": "p", "num_node": 1, "eval": "9, x"}, cluster(1))


def test_missing_node_number_is_a_type_error() -> None:
    with pytest.raises(TypeError):
        ResourcePool.from_yaml_dict({"name": "p"}, cluster(1))


def test_split_passes_over_nodes_without_gpus() -> None:
    assert split_range_by_nodes(0, 3, [0, 0, 2, 2, 4]) == [(1, 0, 1), (3, 0, 1)]


@pytest.mark.parametrize(
    ("value", "ranges"),
    [
        ("0-3, 8-11", [(0, 3), (8, 11)]),
        ("7-0", [(0, 7)]),
        (" 1 -  2 , ", [(1, 2)]),
        ("3--5", [(-5, 3)]),
        ("", []),
        (5, [(5, 5)]),
        (True, [(1, 1)]),
        (None, []),
        (1.0, []),
        (["0-1"], []),
    ],
)
def test_parse_index_string(value: object, ranges: list[tuple[int, int]]) -> None:
    assert ResourcePool._parse_index_str(value) == ranges


def test_nothing_is_stored_when_one_pool_fails() -> None:
    resources = {"n0": {"ip": "", "CPU": 8, "GPU": 1}}
    planner = ResourcePoolPlanner(ComponentScheduling(), {"node_id_to_resources": resources})
    with pytest.raises(ValueError, match="Not enough nodes"):
        planner.load_manual_resource_pools([{"name": "a", "num_node": 1, "train": 0}, {"name": "b", "num_node": 1}])
    assert planner.get_resource_pools() == {}
