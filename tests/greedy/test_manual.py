"""Manual pools of the RLightning reference, one test per row of tests/vectors/manual.jsonl.

On the rows with status "hang" the reference never returns; here a ValueError with the numbers is asserted.

When to modify: only together with the recorded cases.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from rlightning_cases import MANUAL_ROWS, as_text, cluster_info, observed_planner, observed_pool

from placewright.greedy.reference.manual import split_range_by_nodes
from placewright.greedy.reference.planner import ComponentScheduling, NodeResource, ResourcePool, ResourcePoolPlanner


def load(row: Mapping[str, Any]) -> dict[str, Any]:
    """What the vectors record of loading the pools of a row."""
    planner = ResourcePoolPlanner(ComponentScheduling(), cluster_info(row))
    if row["via"] == "from_yaml_dict":
        used = None if row["used_node_ids"] is None else set(row["used_node_ids"])
        (pool_cfg,) = row["pools_cfg"]
        pool = ResourcePool.from_yaml_dict(pool_cfg, planner.discover_cluster_resources(), used)
        return {"status": "ok", "pools": [observed_pool(pool)], "yaml_config": [pool.to_yaml_dict()]}
    pools = planner.load_manual_resource_pools(row["pools_cfg"])
    return observed_planner(planner, pools)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("row", MANUAL_ROWS, ids=[row["id"] for row in MANUAL_ROWS])
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
        assert as_text(load(row)) == as_text(expect)


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
