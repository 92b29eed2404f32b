"""What keeps a goal from being better, where that takes one line of counting: "its GPUs need as many".

Each of ``_NEEDS`` says how many workers of a component one node can hold at most, from one field and those before it. The
first by which the component needs as many nodes (or NVLink domains) as the plan uses is named. Where none is, nothing is
said: the proof is then not a matter of counting. Modify this file when a field limits how much of a component a node can hold.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache

from placewright_models.cluster import Node
from placewright_models.problem import Problem
from placewright_models.workload import Component

Most = Callable[[Component, Node], int]


def tight_in_nodes(problem: Problem, component: Component, workers: int, used: int) -> str:
    """Why the component cannot lie on fewer nodes than ``used``; empty where counting does not say."""
    for name, most in _NEEDS:
        if _fewest((most(component, node) for node in _allowed(problem, component)), workers) == used:
            return name
    return ""


def tight_in_domains(problem: Problem, component: Component, workers: int, used: int) -> str:
    """The same for NVLink domains; a node without one is a domain of its own."""
    for name, most in _NEEDS:
        room: dict[str, list[int]] = defaultdict(list)
        for node in _allowed(problem, component):
            room[node.id if node.nvlink_domain is None else f"domain {node.nvlink_domain}"].append(most(component, node))
        if _fewest(map(sum, room.values()), workers) == used:
            return name
        size = component.segment_size
        if size is not None and component.segment_required:
            hosts = [sorted(filter(None, here), reverse=True) for here in room.values()]
            if _fewest((sum(here[: len(here) // size * size]) for here in hosts), workers) == used:
                return "segments"
    return ""


def _allowed(problem: Problem, component: Component) -> Iterable[Node]:
    return (node for node in problem.cluster.nodes if problem.admits(component, node))


def _fewest(room: Iterable[int], workers: int) -> int:
    """How many of them hold the workers, largest first; -1 where all together do not."""
    count = 0
    for here in sorted(room, reverse=True):
        if workers <= 0:
            return count
        workers -= here
        count += 1
    return count if workers <= 0 else -1


@cache
def _runs(gpus: int, unusable: tuple[int, ...], width: int) -> int:
    from placewright_models.ranges import available_runs

    return sum((end - start + 1) // width for start, end in available_runs(gpus, unusable))


def _by_gpus(component: Component, node: Node) -> int:
    if component.gpus >= 1:
        return _runs(node.gpus, node.unusable_gpus, component.gpus_per_worker)
    return node.available_gpus * component.workers_per_gpu


def _by_cpus(component: Component, node: Node) -> int:
    most = _by_gpus(component, node) if component.gpus else 10**9
    if component.cpu_units and node.free_cpu_units is not None:
        most = min(most, node.free_cpu_units // component.cpu_units)
    return most


def _by_memory(component: Component, node: Node) -> int:
    most = _by_cpus(component, node)
    if component.memory and node.free_memory is not None:
        most = min(most, node.free_memory // component.memory)
    return most


def _by_group(component: Component, node: Node) -> int:
    most = _by_memory(component, node)
    group = component.group
    if group is not None and group.required and group.within == "node" and group.workers:
        most -= most % group.workers
    return most


def _by_per_node(component: Component, node: Node) -> int:
    most = _by_group(component, node)
    if isinstance(component.per_node, int):
        return component.per_node if most >= component.per_node else 0
    return most


_NEEDS: tuple[tuple[str, Most], ...] = (
    ("GPUs", _by_gpus),
    ("CPUs", _by_cpus),
    ("memory needs", _by_memory),
    ("groups", _by_group),
    ("workers per node", _by_per_node),
)
"""In the order in which they are asked; each holds those before it."""
