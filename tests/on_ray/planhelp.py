"""Plans made by hand, so that these tests need no solver; and actors that say where they run.

    plan = make_plan({"n0": 8}, {"train": [("n0", [0]), ("n0", [1])]})

A worker is (node id, GPU ids); the component's ``gpus`` follows from the ids unless a share is given.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

from placewright_models.cluster import Cluster, Node
from placewright_models.plan import Idle, Plan, Worker
from placewright_models.problem import Problem
from placewright_models.ranges import ranges_of
from placewright_models.workload import Component, Rules

Workers = Mapping[str, Sequence[tuple[str, Sequence[int]]]]


def make_plan(
    nodes: Mapping[str, int] | Sequence[Node],
    workers: Workers,
    *,
    pools: Mapping[str, Sequence[str]] | None = None,
    **fields: Mapping[str, Any],
) -> Plan:
    """A plan on these nodes (name -> GPUs, CPUs unlimited) with these workers.

    Args:
        nodes: the cluster.
        workers: component -> (node id, GPU ids) of each worker.
        pools: pool -> components; one pool for all if not given.
        fields: component -> fields of it that differ from the defaults (cpus 0, gpus by the ids).
    """
    cluster = Cluster(
        tuple(nodes) if not isinstance(nodes, Mapping) else tuple(Node(name, gpus) for name, gpus in nodes.items())
    )
    components = []
    for name, placed in workers.items():
        values: dict[str, Any] = {"gpus": Decimal(len(placed[0][1])), "cpus": Decimal(0), **fields.get(name, {})}
        for key in ("gpus", "cpus", "gpu_share"):
            if values.get(key) is not None:
                values[key] = Decimal(str(values[key]))
        components.append(Component(name, len(placed), len(placed), **values))
    rules = Rules(pools=tuple((pool, tuple(names)) for pool, names in (pools or {"global_pool": list(workers)}).items()))
    return Plan(
        status="optimal",
        solver="by hand",
        goals=(),
        pools=(),
        workers={name: tuple(Worker(node, ranges_of(ids)) for node, ids in placed) for name, placed in workers.items()},
        idle=Idle(),
        warnings=(),
        problem=Problem(cluster, tuple(components), rules),
    )


def found(applied: Any) -> dict[str, list[tuple[str, list[int]]]]:
    """What was read back, in the form that ``make_plan`` takes."""
    return {name: [(worker.node_id, sorted(worker.gpu_ids)) for worker in workers] for name, workers in applied.workers.items()}


def one_each(node: str, ids: Sequence[int]) -> list[tuple[str, list[int]]]:
    """Workers of one GPU each on a node."""
    return [(node, [gpu]) for gpu in ids]


def see_from_actors(applied: Any, limit: float = 60.0) -> dict[str, list[tuple[str, list[int]]]]:
    """Start a real actor for every worker, all at once, and ask each for its node's ip and its GPU ids."""
    import ray

    class Eye:
        def see(self) -> tuple[str, list[int]]:
            import ray

            context = ray.get_runtime_context()
            return context.get_node_id(), sorted(int(gpu) for gpu in context.get_accelerator_ids()["GPU"])

    names = {worker.ray_node_id: worker.node_id for workers in applied.workers.values() for worker in workers}
    actors = {
        name: [ray.remote(Eye).options(**applied.options(name, index)).remote() for index in range(len(workers))]
        for name, workers in applied.workers.items()
    }
    answers = {name: ray.get([actor.see.remote() for actor in eyes], timeout=limit) for name, eyes in actors.items()}
    for eyes in actors.values():
        for actor in eyes:
            ray.kill(actor)
    return {name: [(names[node], ids) for node, ids in seen] for name, seen in answers.items()}


@contextmanager
def somebody_holds(node_name: str, ids: Sequence[int]) -> Iterator[None]:
    """Another job holds exactly these GPUs of a node: all free ones are held, and the others let go."""
    from placewright.apply.exact import hold_free
    from placewright.apply.groups import Ledger
    from placewright.apply.view import live_nodes

    node = next(node for node in live_nodes() if node.alive and node.name == node_name)
    ledger = Ledger("somebody/")
    try:
        held = hold_free({node_name: node}, ledger, time.monotonic() + 60, lambda waiting: TimeoutError(str(waiting)))[
            node_name
        ]
        ledger.remove([group for gpu, group in held.items() if gpu not in ids])
        yield
    finally:
        ledger.remove_all()
