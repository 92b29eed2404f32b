"""Valid bounds: fewest nodes and domains that hold a component, or components that exclude each other.

Each is one line of counting, largest places first (knapsack bounds). They are added as constraints, they say where the search
for a goal starts, and they bound how many places components may share once a goal is held (docs/model.md, section 5). Usage:
``bounds = Bounds(encoding)`` once the areas are there, ``bounds.add()`` at the end. Modify this file to add a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placewright.encode.areas import Area, EqualDomains
from placewright.encode.cells import Cell
from placewright.encode.features import Hosts
from placewright.layout.span import maximal_cliques

if TYPE_CHECKING:
    from placewright.encode.encoding import Encoding


@dataclass(frozen=True, slots=True)
class Together:
    """Components that may not share GPUs, and the fewest nodes and domains whose GPUs hold them all."""

    members: tuple[int, ...]
    nodes: int
    domains: int


class Bounds:
    """What counting says of one encoding.

    Attributes:
        nodes: per component the fewest nodes that hold it alone.
        domains: per component the fewest domains that hold it alone, segments rounded down.
        together: the same for every maximal set of components that exclude each other.
    """

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        count = encoding.job.count
        self.nodes = [0] * count
        self.domains = [0] * count
        for c in range(count):
            self._count_alone(c)
        self.together = list(self._count_together())

    def _count_alone(self, c: int) -> None:
        encoding = self.encoding
        least = encoding.job.components[c].min_workers or 0
        if not least:
            return
        per_domain: list[tuple[int, int]] = []
        for area in encoding.areas:
            for domains, capacity in _capacities(encoding, area, c):
                per_domain.append((capacity, domains))
        per_node = [(encoding.local.counts(cell.node_class, c)[-1], cell.size) for cell in _cells_once(encoding)]
        # None: there is too little in all, which the model finds itself.
        self.nodes[c] = fewest(per_node, least) or 0
        self.domains[c] = fewest(per_domain, least) or 0

    def _count_together(self) -> Iterator[Together]:
        encoding, job = self.encoding, self.encoding.job
        per_node = [(cell.node_class.shape.available, cell.size) for cell in _cells_once(encoding)]
        classes = encoding.topology.classes
        per_domain = [
            (sum(classes[t].shape.available * len(n) for t, n in area.domains[0].nodes.items()), len(area.domains))
            for area in encoding.areas
        ]
        for clique in maximal_cliques(tuple(range(len(job.items))), job.conflicts):
            if len(clique) > 1:
                members = tuple(sorted(c for i in clique for c in job.items[i].members))
                needed = sum(max(job.least_gpus(c) for c in job.items[i].members) for i in clique)
                yield Together(members, fewest(per_node, needed) or 0, fewest(per_domain, needed) or 0)

    def add(self) -> None:
        """Add every bound to the model."""
        encoding = self.encoding
        for c in range(encoding.job.count):
            if self.nodes[c] > 1:
                encoding.add(encoding.total(Hosts((c,))) >= self.nodes[c])
            if self.domains[c] > 1:
                encoding.add(sum(area.hosting((c,)) for area in encoding.areas) >= self.domains[c])
        for group in self.together:
            if group.nodes > 1:
                encoding.add(encoding.total(Hosts(group.members)) >= group.nodes)
            if group.domains > 1 and "domain_capacity" in encoding.objectives:
                # The goal made the Booleans for "hosts anything" already, so this bound costs one constraint.
                everything = tuple(range(encoding.job.count))
                encoding.add(sum(area.hosting(everything) for area in encoding.areas) >= group.domains)
                needed = sum(
                    max(encoding.job.least_gpus(c) for c in item.members)
                    for item in encoding.job.items
                    if item.members[0] in group.members
                )
                encoding.add(encoding.objectives["domain_capacity"] >= needed)

    # What follows for the goals that count places per component

    def least_span(self, weights: Sequence[int], alone: Sequence[int], level: str) -> int:
        """The least sum of weights x places, given the fewest places of each component and of those that exclude each other.

        Args:
            weights: per component.
            alone: per component its fewest places (``nodes`` or ``domains``).
            level: ``nodes`` or ``domains``: which number of ``together`` counts.
        """
        least = sum(weight * places for weight, places in zip(weights, alone, strict=True))
        more = 0
        for group in self.together:
            missing = getattr(group, level) - sum(alone[c] for c in group.members)
            more = max(more, missing * min(weights[c] for c in group.members))
        return least + more

    def most_shared(
        self, weights: Sequence[int], alone: Sequence[int], level: str, value: int
    ) -> Iterator[tuple[tuple[int, ...], int]]:
        """Sets of components, and how many places they may share where the span is at most ``value``.

        A place that hosts k of them counts k - 1. Counted once per component they have at most sum(alone) + floor((value -
        least) / smallest weight) places, and at least as many different places as hold them all.
        """
        spare = value - sum(weight * places for weight, places in zip(weights, alone, strict=True))
        for group in self.together:
            cheapest = min(weights[c] for c in group.members)
            if cheapest > 0:
                most = sum(alone[c] for c in group.members) + spare // cheapest
                yield group.members, most - getattr(group, level)


def _cells_once(encoding: Encoding) -> Iterator[Cell]:
    """Cells that stand for all nodes once: of equal domains, those of the largest set of components."""
    for area in encoding.areas:
        yield from area.parts[-1].cells if isinstance(area, EqualDomains) else area.cells


def _capacities(encoding: Encoding, area: Area, c: int) -> list[tuple[int, int]]:
    """(number of domains, most workers of c that one of them holds alone)."""
    component = encoding.job.components[c]
    domain = area.domains[0]
    if area.single_nodes:
        t = next(iter(domain.nodes))
        return [(len(area.domains), encoding.local.counts(encoding.topology.classes[t], c)[-1])]
    total = 0
    by_size: dict[int, tuple[int, int]] = {}
    for t, nodes in domain.nodes.items():
        node_class = encoding.topology.classes[t]
        most = encoding.local.counts(node_class, c)[-1]
        if component.segment_size is not None and component.segment_required and most:
            before, each = by_size.get(node_class.gpus, (0, most))
            by_size[node_class.gpus] = (before + len(nodes), each)
        else:
            total += most * len(nodes)
    segment = component.segment_size or 1
    total += sum(number // segment * segment * each for number, each in by_size.values())
    return [(len(area.domains), total)]


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
