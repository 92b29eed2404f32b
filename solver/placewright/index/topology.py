"""Classes of equal nodes and domains: the cluster as the encoder sees it.

Two nodes are of one class where every rule and goal sees the same: size, free runs, free CPU and memory, components that
may lie there, and at which levels they are unknown. Domains are of one class where their nodes are. Classes are what makes
a cluster of 100,000 GPUs small. Usage: ``Topology(job, needed_levels)``. Modify this file when rules can see more of a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from placewright.index.job import Job
from placewright.node.shape import Shape
from placewright_models.cluster import DOMAIN_LEVEL, Node


class NodeClass(NamedTuple):
    """What rules and goals see of one node.

    Attributes:
        shape: size and free runs; run offsets are normalised away unless some component is aligned.
        cpu_units: free CPUs in 1e-4, None where they cannot run short.
        memory: free bytes, None where they cannot run short.
        may: bit mask of the components whose filters the node passes (H10).
        unknown: levels (of those that matter) at which the node has no unit but itself.
    """

    shape: Shape
    cpu_units: int | None
    memory: int | None
    may: int
    unknown: frozenset[str]

    @property
    def gpus(self) -> int:
        return self.shape.gpus

    @property
    def no_domain(self) -> bool:
        """The node is an NVLink domain of its own."""
        return DOMAIN_LEVEL in self.unknown


@dataclass(slots=True)
class Domain:
    """One NVLink domain, or one node without: its nodes by class in topological order."""

    name: str
    known: bool
    nodes: dict[int, list[Node]] = field(default_factory=dict)
    units: tuple[tuple[str, str] | None, ...] = ()
    capacity: int = 0

    def signature(self) -> tuple[object, ...]:
        """Domains with equal signatures are interchangeable."""
        return (self.known, self.capacity, self.units, tuple(sorted((t, len(nodes)) for t, nodes in self.nodes.items())))


class Topology:
    """Nodes grouped into domains and classes, all in topological order.

    Attributes:
        order: every node in topological order.
        classes: node classes, by first appearance in canonical (sorted) order.
        domains: domains in topological order.
    """

    def __init__(self, job: Job, levels: Sequence[str]) -> None:
        """``levels``: the levels above the NVLink domain that some rule or goal looks at."""
        self.job = job
        cluster = job.problem.cluster
        self.order = cluster.topological_order()
        self.levels = tuple(level for level in cluster.levels if level in levels)
        demand = _Demand(job)
        found: dict[NodeClass, int] = {}
        by_look: dict[int, tuple[int, int]] = {}
        by_domain: dict[tuple[bool, str], Domain] = {}
        self.classes: list[NodeClass] = []
        self.domains: list[Domain] = []
        for node, look in zip(self.order, range(len(self.order)) if demand.by_id else cluster.looks, strict=True):
            known = by_look.get(look)
            if known is None:
                shape = normal_shape(Shape(node.gpus, node.runs), job.any_aligned)
                node_class = demand.classify(node, shape, self.levels)
                t = found.setdefault(node_class, len(found))
                if t == len(self.classes):
                    self.classes.append(node_class)
                known = by_look[look] = (t, shape.available if node_class.may else 0)
            t, usable = known
            place = (True, node.nvlink_domain) if node.nvlink_domain is not None else (False, node.id)
            domain = by_domain.get(place)
            if domain is None:
                domain = by_domain[place] = Domain(place[1], place[0])
                self.domains.append(domain)
            if self.levels:
                # A node without a label is unknown there; the domain's unit is that of its labelled nodes.
                units = domain.units or (None,) * len(self.levels)
                domain.units = tuple(u or cluster.unit(node, level) for u, level in zip(units, self.levels, strict=True))
            domain.nodes.setdefault(t, []).append(node)
            domain.capacity += usable

    def domain_classes(self) -> list[list[Domain]]:
        """Interchangeable domains together, in order of their first."""
        groups: dict[tuple[object, ...], list[Domain]] = {}
        for domain in self.domains:
            groups.setdefault(domain.signature(), []).append(domain)
        return list(groups.values())

    def merge(self, same: Mapping[int, int]) -> None:
        """Put the nodes of class t into class ``same[t]``; within a domain they stay in topological order."""
        if all(t == to for t, to in same.items()):
            return
        place = {node.id: index for index, node in enumerate(self.order)}
        for domain in self.domains:
            merged: dict[int, list[Node]] = {}
            for t, nodes in domain.nodes.items():
                merged.setdefault(same.get(t, t), []).extend(nodes)
            if len(merged) < len(domain.nodes):
                for nodes in merged.values():
                    nodes.sort(key=lambda node: place[node.id])
            domain.nodes = merged

    def class_sizes(self) -> Counter[int]:
        """How many nodes each class has."""
        sizes: Counter[int] = Counter()
        for domain in self.domains:
            for t, nodes in domain.nodes.items():
                sizes[t] += len(nodes)
        return sizes


def normal_shape(shape: Shape, keep_offsets: bool) -> Shape:
    """The shape with run offsets forgotten, so that a node without GPU 3 equals one without GPU 4.

    >>> normal_shape(Shape(8, ((0, 2), (4, 7))), keep_offsets=False)
    Shape(gpus=8, runs=((0, 3), (5, 7)))
    """
    if keep_offsets or shape.whole:
        return shape
    runs: list[tuple[int, int]] = []
    position = 0
    for length in sorted(shape.lengths(), reverse=True):
        runs.append((position, position + length - 1))
        position += length + 1
    return Shape(shape.gpus, tuple(runs))


class _Demand:
    """Sorts nodes into classes; forgets CPU and memory that cannot run short."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._may: dict[tuple[object, ...], int] = {}
        self._classes: dict[tuple[object, ...], NodeClass] = {}
        components = job.components
        self.by_id = any(c.node_ids is not None or c.exclude_node_ids for c in components)
        self.label_keys = sorted({key for c in components for key in c.labels})
        self.cpu_matters = any(job.cpu_units)
        self.memory_matters = any(job.memory)

    def classify(self, node: Node, shape: Shape, levels: Sequence[str]) -> NodeClass:
        labels = tuple(node.labels.get(key) for key in self.label_keys)
        may_key = (node.excluded is None, node.head, node.accelerator, labels, node.id if self.by_id else "")
        may = self._may.get(may_key)
        if may is None:
            problem = self.job.problem
            may = self._may[may_key] = sum(
                1 << c for c, component in enumerate(self.job.components) if problem.admits(component, node)
            )
        unknown = tuple(level for level in levels if level not in node.labels)
        if node.nvlink_domain is None:
            unknown = (*unknown, DOMAIN_LEVEL)
        cpu = node.free_cpu_units if self.cpu_matters else None
        memory = node.free_memory if self.memory_matters else None
        key = (shape, cpu, memory, may, unknown)
        known = self._classes.get(key)
        if known is None:
            most = [self._most_workers(c, shape) if may >> c & 1 else 0 for c in range(self.job.count)]
            if cpu is not None and cpu >= sum(n * units for n, units in zip(most, self.job.cpu_units, strict=True)):
                cpu = None
            if memory is not None and memory >= sum(n * size for n, size in zip(most, self.job.memory, strict=True)):
                memory = None
            known = self._classes[key] = NodeClass(shape, cpu, memory, may, frozenset(unknown))
        return known

    def _most_workers(self, c: int, shape: Shape) -> int:
        """A bound on the workers of c on a node of this shape, GPUs alone considered."""
        component = self.job.components[c]
        total = component.max_workers if component.max_workers is not None else 1
        if not self.job.needs_gpu[c]:
            return total
        if self.job.fractional[c]:
            return min(total, shape.available * self.job.per_gpu[c])
        return min(total, sum(length // self.job.width[c] for length in shape.lengths()))
