"""What the RLightning tests share: the recorded cases, and what they record of pools and planners.

Modify this file when the recorded cases get another form.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parent / "vectors"
COMPONENTS = ("train", "eval", "env", "buffer")


def rows_of(name: str) -> list[dict[str, Any]]:
    """The recorded cases of one file."""
    return [json.loads(line) for line in (VECTORS / f"{name}.jsonl").read_text().splitlines()]


ROWS = rows_of("greedy")
MANUAL_ROWS = rows_of("manual")
NODE_ROWS = rows_of("node")


def cluster_info(row: Mapping[str, Any]) -> dict[str, Any]:
    """The row's nodes as RLightning describes a cluster."""
    return {
        "node_id_to_resources": {
            node["node_id"]: {"node_id": node["node_id"], "ip": node["ip"], "CPU": node["cpus"], "GPU": node["gpus"]}
            for node in row["nodes"]
        }
    }


def observed_node(node: Any) -> dict[str, Any]:
    """The state of a NodeResource."""
    return {
        "allocations": node.allocations,
        "gpu_cursor": node.gpu_cursor,
        "max_allocated_gpus": node.max_allocated_gpus,
        "available_gpus": node.available_gpus,
        "is_empty": node.is_empty,
    }


def observed_pool(pool: Any) -> dict[str, Any]:
    """What the vectors record of a pool."""
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
                **observed_node(node),
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


def observed_planner(planner: Any, pools: Mapping[str, Any]) -> dict[str, Any]:
    """What the vectors record of a planner; component types are sorted, as in the vectors."""
    summary = planner.summary()
    assert summary.pop("yaml_config") == planner.to_yaml_config()
    for pool in summary["pools"].values():
        pool["component_types"].sort()
    owners = {name: planner.get_pool_for_component(name) for name in COMPONENTS}
    return {
        "status": "ok",
        "pools": [observed_pool(pool) for pool in pools.values()],
        "yaml_config": planner.to_yaml_config(),
        "summary": summary,
        "component_node_count": {name: planner.get_component_node_count(name) for name in COMPONENTS},
        "pool_for_component": {name: None if pool is None else pool.name for name, pool in owners.items()},
    }


def as_text(value: object) -> str:
    """JSON with sorted keys: unlike ==, it tells 4 from 4.0, and a range may be a tuple or a list."""
    return json.dumps(value, sort_keys=True, indent=1)


def load_row(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """A planning case as a problem; None where a problem cannot say it (several env groups, unknown strategies, 1.0 GPUs)."""
    needs = row["scheduling"]
    groups = needs["env"] or []
    if row["strategy"] not in ("disaggregate", "colocate") or row["env_strategy"] not in ("default", "device-colocate"):
        return None
    given = {name: needs[name] for name in ("train", "eval", "buffer") if needs[name] is not None}
    if len(groups) > 1 or any(type(group["worker_num"]) is not int for group in groups):
        return None
    given.update(zip(("env",), groups, strict=False))
    components: dict[str, Any] = {}
    for name, worker in given.items():
        gpus = worker["num_gpus"]
        if worker["worker_num"] == "auto" and (name != "buffer" or "train" not in given):
            return None
        if gpus < 0 or (isinstance(gpus, float) and (gpus > 1 or gpus.is_integer())):
            return None
        components[name] = {"workers": worker["worker_num"], "gpus": gpus, "cpus": worker["num_cpus"]}
    return {
        "cluster": {
            "nodes": [{"id": node["node_id"], "gpus": node["gpus"], "cpus": node["cpus"]} for node in row["nodes"]]
        },
        "components": components,
        "rules": {"strategy": row["strategy"], "env_strategy": row["env_strategy"]},
    }
