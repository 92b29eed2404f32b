"""Valid bounds: fewest nodes and domains that hold a component, or components that exclude each other.

Each is one line of counting, largest places first (knapsack bounds). They are added as constraints, they say where the search
for a goal starts, and they bound how many places components may share once a goal is held (docs/model.md, section 5). Usage:
``bounds = Bounds(local, topology)``, and ``bounds.add_to(encoding)`` once a model is there. Modify this file to add a bound.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from placewright.frame.features import Hosts
from placewright.frame.frame import Place
from placewright.index.topology import Domain, NodeClass, Topology
from placewright.model.local import Local
from placewright.node.conflicts import maximal_cliques

if TYPE_CHECKING:
    from placewright.model.encoding import Encoding


@dataclass(frozen=True, slots=True)
class Together:
    """Components that may not share GPUs, the GPUs they need, and the fewest places of each level whose GPUs hold them all."""

    members: tuple[int, ...]
    gpus: int
    places: Mapping[Place, int]


class _Domains(NamedTuple):
    """Interchangeable domains: how many, one of them, and its nodes by class."""

    number: int
    one: Domain
    nodes: Mapping[NodeClass, int]


class Bounds:
    """What counting says of one problem.

    Attributes:
        alone: per level and component the fewest places that hold it alone; of domains, with segments rounded down.
        together: the same for every maximal set of components that exclude each other.
    """

    def __init__(self, local: Local, topology: Topology) -> None:
        self.job = local.job
        self._local = local
        self._classes = topology.classes
        self._domains = [
            _Domains(len(domains), domains[0], {self._classes[t]: len(nodes) for t, nodes in domains[0].nodes.items()})
            for domains in topology.domain_classes()
        ]
        self._cliques = maximal_cliques(tuple(range(len(self.job.items))), self.job.conflicts)
        count = self.job.count
        self.alone: dict[Place, list[int]] = {"nodes": [0] * count, "domains": [0] * count}
        for c in range(count):
            self._count_alone(c)
        for follower, leader in local.follows:
            # It lies on the same nodes.
            for places in self.alone.values():
                places[follower] = places[leader]
        self.together = list(self._count_together())

    def _nodes(self) -> Iterator[tuple[NodeClass, int]]:
        """Node classes on which something may lie, with their numbers of nodes."""
        for domains in self._domains:
            for node_class, number in domains.nodes.items():
                if self._local.usable(node_class):
                    yield node_class, number * domains.number

    def _count_alone(self, c: int) -> None:
        least = self.job.components[c].min_workers or 0
        if not least:
            return
        for level, places in self.alone.items():
            # None: there is too little in all, which the model finds itself.
            places[c] = fewest(self._capacities(level, c), least) or 0

    def _capacities(self, level: Place, c: int) -> list[tuple[int, int]]:
        """(most workers of c that a place holds alone, number of such places)."""
        if level == "nodes":
            return [(self._local.counts(node_class, c)[-1], number) for node_class, number in self._nodes()]
        return [(self._capacity(domains, c), domains.number) for domains in self._domains]

    def _capacity(self, domains: _Domains, c: int) -> int:
        """Most workers of c that one of the domains holds alone."""
        component = self.job.components[c]
        total = 0
        by_size: dict[int, tuple[int, int]] = {}
        for node_class, number in domains.nodes.items():
            most = self._local.counts(node_class, c)[-1]
            if component.segment_size is not None and component.segment_required and most and domains.one.known:
                before, each = by_size.get(node_class.gpus, (0, most))
                by_size[node_class.gpus] = (before + number, each)
            else:
                total += most * number
        segment = component.segment_size or 1
        return total + sum(number // segment * segment * each for number, each in by_size.values())

    def _count_together(self) -> Iterator[Together]:
        job = self.job
        per_node = [(node_class.shape.available, number) for node_class, number in self._nodes()]
        per_domain = [(domains.one.capacity, domains.number) for domains in self._domains]
        for clique in self._cliques:
            if len(clique) > 1:
                members = tuple(sorted(c for i in clique for c in job.items[i].members))
                needed = sum(max(job.least_gpus(c) for c in job.items[i].members) for i in clique)
                places: dict[Place, int] = {"nodes": fewest(per_node, needed) or 0, "domains": fewest(per_domain, needed) or 0}
                yield Together(members, needed, places)

    def add_to(self, encoding: Encoding) -> None:
        """Add every bound to a model of the problem."""
        for c in range(self.job.count):
            if self.alone["nodes"][c] > 1:
                encoding.add(encoding.total(Hosts((c,))) >= self.alone["nodes"][c])
            if self.alone["domains"][c] > 1:
                encoding.add(sum(area.hosting((c,)) for area in encoding.areas) >= self.alone["domains"][c])
        for group in self.together:
            if group.places["nodes"] > 1:
                encoding.add(encoding.total(Hosts(group.members)) >= group.places["nodes"])
            if group.places["domains"] > 1 and "domain_capacity" in encoding.objectives:
                # The goal made the Booleans for "hosts anything" already, so this bound costs one constraint.
                everything = tuple(range(self.job.count))
                encoding.add(sum(area.hosting(everything) for area in encoding.areas) >= group.places["domains"])
                encoding.add(encoding.objectives["domain_capacity"] >= group.gpus)

    # What follows for the goals that count places per component

    def least_span(self, level: Place) -> int:
        """The least sum of span_weight x places, given the fewest of each component and of those that exclude each other."""
        weights, alone = self._weights(), self.alone[level]
        more = 0
        for group in self.together:
            missing = group.places[level] - sum(alone[c] for c in group.members)
            more = max(more, missing * min(weights[c] for c in group.members))
        return self._span_alone(level) + more

    def most_shared(self, level: Place, value: int) -> Iterator[tuple[tuple[int, ...], int]]:
        """Sets of components, and how many places they may share where the span is at most ``value``.

        A place that hosts k of them counts k - 1. Counted once per component they have at most sum(alone) + floor((value -
        least) / smallest weight) places, and at least as many different places as hold them all.
        """
        weights, alone = self._weights(), self.alone[level]
        spare = value - self._span_alone(level)
        for group in self.together:
            cheapest = min(weights[c] for c in group.members)
            if cheapest > 0:
                most = sum(alone[c] for c in group.members) + spare // cheapest
                yield group.members, most - group.places[level]

    def fewest_each(self, level: Place, value: int | None = None) -> list[int]:
        """Per component the fewest workers in a place that hosts it, where the span is at most ``value``; 0 says nothing.

        With n places for it, the others hold at most what the n - 1 largest hold.

        Args:
            value: of node_span or domain_span; its least if not given.
        """
        weights = self._weights()
        spare = (self.least_span(level) if value is None else value) - self._span_alone(level)
        found: list[int] = []
        for c, component in enumerate(self.job.components):
            places = self.alone[level][c] + spare // weights[c] if weights[c] else 0
            others = largest(self._capacities(level, c), places - 1)
            found.append(max(0, (component.min_workers or 0) - others) if places else 0)
        return found

    def may_lie_together(self, members: Collection[int], domain: Domain, fewest_each: Sequence[int]) -> bool:
        """Whether the domain has GPUs for so many workers (one at least) of each of the components."""
        job = self.job
        for clique in self._cliques:
            here = [[c for c in job.items[i].members if c in members] for i in clique]
            needed = sum(max((job.gpus_for(c, max(1, fewest_each[c])) for c in item), default=0) for item in here)
            if needed > domain.capacity:
                return False
        return True

    def _weights(self) -> list[int]:
        return [component.span_weight for component in self.job.components]

    def _span_alone(self, level: Place) -> int:
        return sum(weight * places for weight, places in zip(self._weights(), self.alone[level], strict=True))


def fewest(capacities: list[tuple[int, int]], needed: int) -> int | None:
    """How many of the largest capacities (capacity, number of such) reach ``needed``; None where all together do not.

    >>> fewest([(8, 2), (4, 10)], 20)
    3
    """
    used = 0
    for capacity, number in sorted(capacities, reverse=True):
        if capacity <= 0:
            break
        whole = min(number, -(-needed // capacity))
        used += whole
        needed -= whole * capacity
        if needed <= 0:
            return used
    return None


def largest(capacities: list[tuple[int, int]], number: int) -> int:
    """What so many of the largest capacities (capacity, number of such) come to.

    >>> largest([(8, 2), (4, 10)], 3)
    20
    """
    total = 0
    for capacity, there in sorted(capacities, reverse=True):
        taken = max(0, min(there, number))
        total += taken * capacity
        number -= taken
    return total
