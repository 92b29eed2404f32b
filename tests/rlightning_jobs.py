"""Small schedulings and clusters in RLightning's words, and what its drop-in makes of them.

Modify this file when the drop-in's tests need another form of input.
"""

from __future__ import annotations

from typing import Any

from placewright.compat.rlightning import ComponentScheduling, ResourcePoolPlanner, Scheduling


def info(*gpus: int, cpus: int | tuple[int, ...] | None = 64) -> dict[str, Any]:
    amounts = [cpus] * len(gpus) if not isinstance(cpus, tuple) else list(cpus)
    nodes = {
        f"n{i}": {"ip": f"10.0.0.{i}", "GPU": count} | ({} if amounts[i] is None else {"CPU": amounts[i]})
        for i, count in enumerate(gpus)
    }
    return {"node_id_to_resources": nodes}


def needs(
    train: tuple[float, ...] | None = None,
    evaluation: tuple[float, ...] | None = None,
    env: tuple[float, ...] | list[tuple[float, ...]] | None = None,
    buffer: tuple[Any, ...] | None = None,
) -> ComponentScheduling:
    """Needs as (workers, GPUs, CPUs = 1)."""

    def worker(amounts: tuple[Any, ...] | None) -> Scheduling | None:
        return None if amounts is None else Scheduling(amounts[0], amounts[2] if len(amounts) > 2 else 1, amounts[1])

    groups = [env] if isinstance(env, tuple) else env
    return ComponentScheduling(
        env_worker=None if groups is None else [worker(group) for group in groups],  # type: ignore[misc]
        train_worker=worker(train),
        eval_worker=worker(evaluation),
        buffer_worker=worker(buffer),
    )


def allocations(planner: ResourcePoolPlanner) -> dict[str, dict[str, dict[str, list[Any]]]]:
    pools = planner.get_resource_pools()
    assert isinstance(pools, dict)
    return {
        name: {node.node_id: {key: list(ranges) for key, ranges in node.allocations.items()} for node in pool.nodes}
        for name, pool in pools.items()
    }


def manual(
    pool: dict[str, Any],
    cluster: dict[str, Any],
    scheduling: ComponentScheduling | None = None,
    solver: str = "cp-sat",
    **rules: Any,
) -> dict[str, dict[str, dict[str, list[Any]]]]:
    planner = ResourcePoolPlanner(scheduling or ComponentScheduling(), cluster, solver=solver)
    planner.load_manual_resource_pools([{"name": "pool", "num_node": 1, **pool}], **rules)
    return allocations(planner)
