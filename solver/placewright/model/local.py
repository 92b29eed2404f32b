"""What may lie on one node of a class: the node-local rules, collected from the list of rules.

A node-local rule says its part through hooks (``Rule.node_counts``, ``Rule.apart``, ``Rule.follows``); GPU layout, CPU and
memory are here since every pattern needs them. Modify this file only when a node-local rule fits none of the hooks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from placewright.index.job import Job
from placewright.index.topology import NodeClass
from placewright.node.conflicts import cotree, has_prime, maximal_cliques
from placewright.node.fits import Fits
from placewright.rules import RULES


class Resource(NamedTuple):
    """A capacity of a node: GPUs for ``items`` that exclude each other, or a weighted sum of workers."""

    capacity: int
    items: tuple[int, ...] = ()
    weights: tuple[int, ...] = ()

    def used(self, job: Job, members: Sequence[int], numbers: Sequence[int]) -> int:
        """How much these numbers of workers of ``members`` (one component, or one colocated set) take."""
        if self.weights:
            return sum(self.weights[c] * number for c, number in zip(members, numbers, strict=True))
        c, number = members[0], numbers[0]
        if not number or job.item_of.get(c) not in self.items:
            return 0
        sizes = [number * job.width[c] for c, number in zip(members, numbers, strict=True) if not job.fractional[c]]
        # Shares alone: the fewest GPUs, under which every member of a colocated set fits (node/shape.py).
        return sizes[0] if sizes else max(-(-n // job.per_gpu[c]) for c, n in zip(members, numbers, strict=True))


class Local:
    """Node-local meaning of a job; answers are remembered per class."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.fits = Fits(job)
        self._leader = dict(pair for rule in RULES for pair in rule.follows(job))
        # Leaders first: whom a follower follows may itself follow another.
        self.follows = sorted(self._leader.items(), key=lambda pair: (self.depth(pair[0]), pair))
        self._counts: dict[tuple[NodeClass, int], Sequence[int]] = {}
        self._apart: dict[bool, list[tuple[int, int]]] = {}

    def depth(self, c: int) -> int:
        """How many components stand before c in its line of leaders."""
        return 1 + self.depth(self._leader[c]) if c in self._leader else 0

    def counts(self, node_class: NodeClass, c: int) -> Sequence[int]:
        """The numbers of workers of c that may lie on such a node when alone there, ascending, always with 0."""
        key = (node_class, c)
        known = self._counts.get(key)
        if known is None:
            known = self._counts[key] = self._count(node_class, c)
        return known

    def usable(self, node_class: NodeClass) -> bool:
        """Whether any component may lie on such a node."""
        return any(len(self.counts(node_class, c)) > 1 for c in range(self.job.count))

    def _count(self, node_class: NodeClass, c: int) -> Sequence[int]:
        job = self.job
        component = job.components[c]
        if not node_class.may >> c & 1:
            return [0]
        most = component.max_workers if component.max_workers is not None else 1
        if component.per_node_of is not None:
            most = min(most, 1)
        if job.cpu_units[c] and node_class.cpu_units is not None:
            most = min(most, node_class.cpu_units // job.cpu_units[c])
        if job.memory[c] and node_class.memory is not None:
            most = min(most, node_class.memory // job.memory[c])
        if job.needs_gpu[c]:
            most = min(most, self._most_on_gpus(node_class, c))
        counts: Sequence[int] = range(most + 1)
        for rule in RULES:
            counts = rule.node_counts(job, c, node_class, counts)
        # A range stays a range: a CPU-only component may allow millions.
        return counts if counts and counts[0] == 0 else [0, *counts]

    def _most_on_gpus(self, node_class: NodeClass, c: int) -> int:
        job, shape = self.job, node_class.shape
        if job.fractional[c]:
            return shape.available * job.per_gpu[c]
        bound = sum(length // job.width[c] for length in shape.lengths())
        if not job.components[c].aligned or any(len(item.members) > 1 and c in item.members for item in job.items):
            return bound
        while bound and not self.fits(shape, self._alone(c, bound)):
            bound -= 1
        return bound

    def _alone(self, c: int, count: int) -> list[int]:
        counts = [0] * self.job.count
        counts[c] = count
        return counts

    def apart(self, node_class: NodeClass) -> list[tuple[int, int]]:
        """Pairs that no node of this class may host together."""
        known = self._apart.get(node_class.no_domain)
        if known is None:
            known = [pair for rule in RULES for pair in rule.apart(self.job, node_class)]
            self._apart[node_class.no_domain] = known
        return known

    def resources(self, node_class: NodeClass) -> list[Resource]:
        """What can be counted on a node of the class: GPUs per set of components that exclude each other, CPU, memory.

        Necessary always; sufficient where ``countable`` says so.
        """
        job = self.job
        found = [
            Resource(node_class.shape.available, items=clique)
            for clique in maximal_cliques(tuple(range(len(job.items))), job.conflicts)
        ]
        if node_class.cpu_units is not None:
            found.append(Resource(node_class.cpu_units, weights=tuple(job.cpu_units)))
        if node_class.memory is not None:
            found.append(Resource(node_class.memory, weights=tuple(job.memory)))
        return found

    def countable(self, node_class: NodeClass) -> bool:
        """Whether GPU layouts on such a node follow from counting alone (see node/conflicts.py)."""
        job = self.job
        here = [i for i, item in enumerate(job.items) if any(node_class.may >> c & 1 for c in item.members)]
        if not here or has_prime(cotree(tuple(here), job.conflicts)):
            return not here
        items = [job.items[i] for i in here]
        if any(job.share_coupled[i] or job.self_coupled[i] for i in here) or any(item.aligned > 1 for item in items):
            return False
        return len(node_class.shape.runs) <= 1 or not any(item.width > 1 for item in items)

    def resources_fit(self, node_class: NodeClass, counts: Sequence[int]) -> bool:
        """CPU and memory of everything on the node (H6)."""
        job = self.job
        if node_class.cpu_units is not None:
            if sum(n * units for n, units in zip(counts, job.cpu_units, strict=True)) > node_class.cpu_units:
                return False
        if node_class.memory is not None:
            if sum(n * size for n, size in zip(counts, job.memory, strict=True)) > node_class.memory:
                return False
        return True
