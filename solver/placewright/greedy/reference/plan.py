"""The RLightning reference as a solver of this library: which problems it may answer, and its answer as workers.

Usage: ``if reference_applies(problem): workers = reference_workers(problem)``. The reference only knows totals of GPUs per
component and hands out ranges; here workers are cut from those ranges in order, so that a worker which the reference cuts in
two, or forgets, shows as a difference when the plan is verified. When to modify: when a problem gets a new field that could
mean something the reference does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields, replace

from placewright.greedy.reference.planner import ComponentScheduling, NodeResource, ResourcePool, Scheduling, plan_reference
from placewright_models.cluster import Node
from placewright_models.plan import Worker
from placewright_models.problem import Problem
from placewright_models.quantities import UNITS, plain_number, units_of
from placewright_models.ranges import Range, indices_of, ranges_of
from placewright_models.workload import KIND_BY_NAME, Component, Rules

REFERENCE_COMPONENTS = ("train", "eval", "env", "buffer")
_COUNTS = {"name", "min_workers", "max_workers", "gpus", "cpus", "per_node_of"}


def reference_applies(problem: Problem) -> bool:
    """Whether the problem says nothing that the reference does not know (design.md section 7).

    Topology (domains, ranks, levels, labels, accelerators) restricts nothing by itself and traffic is a goal, so both may
    be there.
    """
    rules = problem.rules
    plain = Rules(strategy=rules.strategy, env_strategy=rules.env_strategy, pools=rules.pools)
    return (
        rules.strategy is not None
        and rules == plain
        and all(_plain_component(component) for component in problem.components)
        and not any(_restricted(node, problem.cluster.schedule_on_head) for node in problem.cluster.nodes)
    )


def _plain_component(component: Component) -> bool:
    if component.name not in REFERENCE_COMPONENTS or component.elastic:
        return False
    if component.per_node_of is not None and (component.name, component.per_node_of) != ("buffer", "train"):
        return False
    kind = KIND_BY_NAME.get(component.name) or ("collective" if component.gpus else "helpers")
    plain = Component(
        component.name,
        component.min_workers,
        component.max_workers,
        kind=kind,
        spread="even" if kind == "helpers" else "pack",
        span_weight=int(kind == "collective"),
    )
    plain = replace(plain, **{field.name: getattr(component, field.name) for field in fields(plain) if field.name in _COUNTS})
    return plain == component


def _restricted(node: Node, schedule_on_head: bool) -> bool:
    return bool(
        node.unusable_gpus
        or node.excluded is not None
        or (node.head and not schedule_on_head)
        or node.cpus_in_use
        or node.reserved_cpus
        or any(held.cpus for held in node.occupied)
    )


def reference_scheduling(components: Sequence[Component]) -> ComponentScheduling:
    """The components as the reference takes them: whole numbers as ints, shares as floats."""
    found = {
        component.name: Scheduling(
            "auto" if component.max_workers is None else component.max_workers,
            plain_number(component.cpus),
            plain_number(component.gpus),
        )
        for component in components
    }
    return ComponentScheduling(
        env_worker=[found["env"]] if "env" in found else None,
        train_worker=found.get("train"),
        eval_worker=found.get("eval"),
        buffer_worker=found.get("buffer"),
    )


def reference_workers(problem: Problem) -> dict[str, tuple[Worker, ...]]:
    """What the reference plans, as workers; a ValueError or RuntimeError where the reference raises it."""
    scheduling = reference_scheduling(problem.components)
    # A node without a number of CPUs has enough of them for anything that is asked.
    plenty = sum((int(component.cpus) + 1) * (component.max_workers or 0) for component in problem.components)
    nodes = [
        NodeResource(node.id, node.ip or "", plenty if node.cpus is None else int(node.cpus), node.gpus)
        for node in problem.cluster.nodes
    ]
    planner = plan_reference(nodes, scheduling, problem.rules.strategy or "", problem.rules.env_strategy or "default")
    pools = planner.get_resource_pools()
    assert isinstance(pools, dict)
    return workers_of_pools(pools.values(), problem.components)


def workers_of_pools(pools: Iterable[ResourcePool], components: Sequence[Component]) -> dict[str, tuple[Worker, ...]]:
    """Workers cut from the pools' ranges, in the order of pools, nodes and ranges.

    Whole workers take the next GPUs, wherever a range ends; shares are packed, as many on a GPU as fit; the buffer has one
    worker on each node with train. There are fewer workers than asked where the ranges hold no more.
    """
    ranges: dict[str, dict[str, list[Range]]] = {}
    for pool in pools:
        for node in pool.nodes:
            for name, found in node.allocations.items():
                here = ranges.setdefault(name, {}).setdefault(node.node_id, [])
                here.extend((int(start), int(end)) for start, end in found)
    return {component.name: tuple(_cut(component, ranges)) for component in components}


def _cut(component: Component, ranges: dict[str, dict[str, list[Range]]]) -> list[Worker]:
    if component.name == "buffer":
        return [Worker(node_id, ()) for node_id in ranges.get("train", {})]
    count = component.max_workers or 0
    spots = [(node_id, gpu) for node_id, found in ranges.get(component.name, {}).items() for gpu in indices_of(found)]
    if component.fractional:
        each = UNITS // units_of(component.gpus)
        return [Worker(node_id, ((gpu, gpu),)) for node_id, gpu in spots for _ in range(each)][:count]
    width = component.gpus_per_worker
    if not width:
        return []
    found_workers: list[Worker] = []
    for first in range(0, min(len(spots), count * width), width):
        piece = spots[first : first + width]
        # A worker that the reference cuts over two nodes (D5) keeps the part on its first node: the verifier names it.
        node_id = piece[0][0]
        found_workers.append(Worker(node_id, ranges_of(gpu for where, gpu in piece if where == node_id)))
    return found_workers
