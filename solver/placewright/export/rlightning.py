"""RLightning's manual mode: a ``placement`` and ``resource_pool`` section for its cluster configuration file.

Each pool names its nodes (``node_ids``) with their sizes (``num_gpus``, a list), and each component's GPUs as pool-global
indices: node after node in the order of ``node_ids``, counted by ``num_gpus``. Loaded by RLightning this gives the same nodes
and the same ranges, on nodes of unequal size too. Modify this file when RLightning's manual mode changes.
"""

from __future__ import annotations

from typing import Any

from placewright.export.target import ExportRefused, Target
from placewright_models.codec import dump_yaml
from placewright_models.plan import Plan, Pool
from placewright_models.ranges import format_ranges

RESERVED_KEYS = ("name", "num_node", "num_gpus", "node_ids")
"""Keys of a pool; a component of such a name cannot be told from them."""


def resource_pools(plan: Plan) -> list[dict[str, Any]]:
    """The ``resource_pool`` list: one entry for each pool that has GPUs.

    Nodes are named by their Ray node id where the plan knows it of every node, as RLightning itself does, else by their id.

    Raises:
        ExportRefused: if the plan says what manual mode cannot.
    """
    causes = [
        f"a component named {name} cannot be told from the pool key {name}: rename it"
        for name in plan.workers
        if name in RESERVED_KEYS
    ]
    if causes:
        raise ExportRefused("rlightning", causes)
    names = _node_names(plan)
    return [_pool(pool, names) for pool in plan.pools if _has_gpus(pool)]


def write_rlightning(plan: Plan) -> str:
    """The configuration as YAML text, with comments on what manual mode has no words for."""
    pools = resource_pools(plan)
    said = {name for pool in pools for name in pool}
    silent = [name for name in plan.workers if name not in said and plan.workers[name]]
    lines = ["# RLightning, placement mode manual: indices count the GPUs of a pool's nodes in the order of node_ids."]
    if silent:
        lines.append(f"# Not said here, since manual mode places GPUs only: {', '.join(silent)}.")
    shares = [
        component.name for component in plan.problem.components if component.share_units is not None and component.name in said
    ]
    if shares:
        lines.append(f"# Shares of a GPU are set by num_gpus of the worker, not here: {', '.join(shares)}.")
    return "\n".join(lines) + "\n" + dump_yaml({"placement": {"mode": "manual"}, "resource_pool": pools})


def _node_names(plan: Plan) -> dict[str, str]:
    nodes = [plan.problem.node_by_id[node.node_id] for pool in plan.pools for node in pool.nodes]
    ray_ids = {node.id: node.ray_node_id for node in nodes if node.ray_node_id is not None}
    if len(ray_ids) == len({node.id for node in nodes}):
        return ray_ids
    return {node.id: node.id for node in nodes}


def _has_gpus(pool: Pool) -> bool:
    return any(ranges for node in pool.nodes for ranges in node.allocations.values())


def _pool(pool: Pool, names: dict[str, str]) -> dict[str, Any]:
    written: dict[str, Any] = {
        "name": pool.name,
        "num_node": len(pool.nodes),
        "num_gpus": [node.gpus for node in pool.nodes],
        "node_ids": [names[node.node_id] for node in pool.nodes],
    }
    indices: dict[str, list[tuple[int, int]]] = {}
    offset = 0
    for node in pool.nodes:
        for component, ranges in node.allocations.items():
            indices.setdefault(component, []).extend((start + offset, end + offset) for start, end in ranges)
        offset += node.gpus
    written.update({component: format_ranges(ranges) for component, ranges in indices.items() if ranges})
    return written


TARGET = Target("rlightning", "RLightning's manual resource_pool section", write_rlightning)
