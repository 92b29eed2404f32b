"""Cheap necessary conditions: they answer in milliseconds what needs no search.

Each condition returns requirements that cannot hold together (not yet minimal), or nothing. Counting only: how many workers
of a component all nodes could hold if it were alone, and how many GPUs, CPUs and bytes components that exclude each other
need in all. Modify this file to add a condition; it must never speak of a feasible problem.
"""

from __future__ import annotations

from collections.abc import Iterator

from placewright.explain.requirements import Requirement, requirements_of
from placewright.index.job import Job
from placewright.index.topology import Topology
from placewright.model.local import Local
from placewright.node.conflicts import maximal_cliques
from placewright_models.problem import Problem


def impossible(problem: Problem, topology: Topology | None = None) -> list[Requirement]:
    """Requirements that counting alone shows to clash; empty where counting decides nothing."""
    job = Job(problem)
    counted = Counted(job, topology)
    for condition in (_alone, _gpus_in_all, _host_in_all):
        for found in condition(counted):
            return found
    return []


class Counted:
    """What counting needs: classes of nodes, and how many workers each could hold alone."""

    def __init__(self, job: Job, topology: Topology | None = None) -> None:
        self.job = job
        self.local = Local(job)
        self.topology = topology or Topology(job, job.problem.cluster.levels)
        self.sizes = self.topology.class_sizes()

    def most_alone(self, c: int) -> int:
        """Most workers of c on all nodes together if nothing else were there; segments counted per domain."""
        component = self.job.components[c]
        classes = self.topology.classes
        if component.segment_size is None or not component.segment_required:
            return sum(size * self.local.counts(classes[t], c)[-1] for t, size in self.sizes.items())
        total = 0
        for domain in self.topology.domains:
            by_size: dict[int, tuple[int, int]] = {}
            for t, nodes in domain.nodes.items():
                most = self.local.counts(classes[t], c)[-1]
                if most:
                    before, each = by_size.get(classes[t].gpus, (0, most))
                    by_size[classes[t].gpus] = (before + len(nodes), each)
            segment = component.segment_size
            total += sum(number // segment * segment * each for number, each in by_size.values())
        return total


def _alone(counted: Counted) -> Iterator[list[Requirement]]:
    """One component needs more workers than all nodes could hold if it were alone."""
    for c, component in enumerate(counted.job.components):
        if component.min_workers and component.min_workers > counted.most_alone(c):
            yield requirements_of(component)


def _gpus_in_all(counted: Counted) -> Iterator[list[Requirement]]:
    """Components that may not share GPUs need more of them than there are."""
    job = counted.job
    classes = counted.topology.classes
    for clique in maximal_cliques(tuple(range(len(job.items))), job.conflicts):
        needed, members, may = 0, [], 0
        for i in clique:
            sizes = [(job.least_gpus(c), c) for c in job.items[i].members]
            size, c = max(sizes)
            needed += size
            if size:
                members.append(c)
            may |= sum(1 << m for m in job.items[i].members)
        free = sum(size * classes[t].shape.available for t, size in counted.sizes.items() if classes[t].may & may)
        if needed > free:
            yield [Requirement("workers", job.components[c].name) for c in members]


def _host_in_all(counted: Counted) -> Iterator[list[Requirement]]:
    """All components together need more CPUs or memory than all nodes have."""
    job = counted.job
    for name, each, limits in (
        ("cpus", job.cpu_units, [c.cpu_units for c in counted.topology.classes]),
        ("memory", job.memory, [c.memory for c in counted.topology.classes]),
    ):
        needed = sum((component.min_workers or 0) * each[c] for c, component in enumerate(job.components))
        if not needed or any(limit is None for t, limit in enumerate(limits) if counted.topology.classes[t].may):
            continue
        free = sum(size * (limits[t] or 0) for t, size in counted.sizes.items() if counted.topology.classes[t].may)
        if needed > free:
            found = []
            for c, component in enumerate(job.components):
                if each[c] and component.min_workers:
                    found += [Requirement("workers", component.name), Requirement(name, component.name)]
            yield found
