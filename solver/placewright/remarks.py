"""Warnings that a plan carries: true things about a valid plan that its user would rather know before starting the job.

Each remark is one function over problem and workers, listed in ``REMARKS``. Modify this file to add one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from placewright_models.plan import Worker
from placewright_models.problem import Problem
from placewright_models.quantities import natural_key

Workers = Mapping[str, tuple[Worker, ...]]


def uneven_ranks(problem: Problem, workers: Workers) -> Iterator[str]:
    """Collective components whose nodes hold different numbers of ranks: some communicators dead-lock on them."""
    for component in problem.components:
        if component.kind == "collective" and component.per_node_of is None and component.gpus > 0:
            numbers = sorted(set(Counter(worker.node_id for worker in workers[component.name]).values()))
            if len(numbers) > 1:
                text = ", ".join(map(str, numbers[:-1]))
                yield f"uneven ranks per node: {component.name} has {text} and {numbers[-1]}"


def collective_without_gpu(problem: Problem, workers: Workers) -> Iterator[str]:
    """Ranks without a GPU: nearly always a forgotten ``gpus``."""
    for component in problem.components:
        if component.kind == "collective" and not component.gpus and workers[component.name]:
            yield f"{component.name} is {component.kind} and its workers have no GPU: write gpus if they should have one"


def missing_topology(problem: Problem, workers: Workers) -> Iterator[str]:
    """Components that ask for topology and lie on nodes that have none."""
    known = {node.id: node.nvlink_domain is not None for node in problem.cluster.nodes}
    for component in problem.components:
        asks = component.segment_size is not None or (component.group is not None and component.group.within != "node")
        unknown = sorted({worker.node_id for worker in workers[component.name] if not known[worker.node_id]}, key=natural_key)
        if asks and unknown:
            what = "segments" if component.segment_size is not None else "groups"
            count, have = (f"{len(unknown)} nodes", "have") if len(unknown) > 1 else ("1 node", "has")
            yield (
                f"no domain information: {count} of {component.name} (first {unknown[0]}) {have} no nvlink_domain, "
                f"so its {what} follow the natural order there"
            )


def at_minimum(problem: Problem, workers: Workers) -> Iterator[str]:
    """Elastic components that got no more than their minimum."""
    for component in problem.components:
        if component.elastic and len(workers[component.name]) == component.min_workers:
            yield f"{component.name} is at its minimum of {component.min_workers} workers (at most {component.max_workers})"


def group_wider_than_segment(problem: Problem, workers: Workers) -> Iterator[str]:
    """Groups that cannot lie inside one segment: their traffic leaves it."""
    sizes = {node.id: node.gpus for node in problem.cluster.nodes}
    for component in problem.components:
        if component.group is None or component.segment_size is None or not workers[component.name]:
            continue
        largest = max(sizes[worker.node_id] for worker in workers[component.name])
        inside = component.segment_size * largest // max(1, component.gpus_per_worker)
        if component.group.workers > inside:
            yield (
                f"{component.name}: a group of {component.group.workers} workers is wider than its segment, "
                f"which holds {inside} ({component.segment_size} nodes of {largest} GPUs)"
            )


REMARKS: tuple[Callable[[Problem, Workers], Iterator[str]], ...] = (
    uneven_ranks,
    collective_without_gpu,
    missing_topology,
    at_minimum,
    group_wider_than_segment,
)
"""Every remark, in the order in which plans list them."""


def remarks(problem: Problem, workers: Workers) -> tuple[str, ...]:
    """All warnings of a plan."""
    return tuple(text for remark in REMARKS for text in remark(problem, workers))
