"""Valid bounds: fewest nodes and domains that hold a component, or components that exclude each other.

Each is one line of counting, largest places first (knapsack bounds). They are added as constraints, they say where the search
for a goal starts, and they bound how many places components may share once a goal is held (docs/model.md, section 5). Usage:
``bounds = Bounds(encoding)`` once the areas are there, ``bounds.add()`` at the end. Modify this file to add a bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from placewright.encode.areas import Area, EqualDomains
from placewright.encode.cells import Cell
from placewright.encode.features import Hosts
from placewright.layout.span import maximal_cliques

if TYPE_CHECKING:
    from placewright.encode.encoding import Encoding


Level = Literal["nodes", "domains"]


@dataclass(frozen=True, slots=True)
class Together:
    """Components that may not share GPUs, the GPUs they need, and the fewest places of each level whose GPUs hold them all."""

    members: tuple[int, ...]
    gpus: int
    places: Mapping[Level, int]


class Bounds:
    """What counting says of one encoding.

    Attributes:
        alone: per level and component the fewest places that hold it alone; of domains, with segments rounded down.
        together: the same for every maximal set of components that exclude each other.
    """

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        count = encoding.job.count
        self.alone: dict[Level, list[int]] = {"nodes": [0] * count, "domains": [0] * count}
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
        self.alone["nodes"][c] = fewest(per_node, least) or 0
        self.alone["domains"][c] = fewest(per_domain, least) or 0

    def _count_together(self) -> Iterator[Together]:
        encoding, job = self.encoding, self.encoding.job
        per_node = [(cell.node_class.shape.available, cell.size) for cell in _cells_once(encoding)]
        per_domain = [(area.domains[0].capacity, len(area.domains)) for area in encoding.areas]
        for clique in maximal_cliques(tuple(range(len(job.items))), job.conflicts):
            if len(clique) > 1:
                members = tuple(sorted(c for i in clique for c in job.items[i].members))
                needed = sum(max(job.least_gpus(c) for c in job.items[i].members) for i in clique)
                places: dict[Level, int] = {"nodes": fewest(per_node, needed) or 0, "domains": fewest(per_domain, needed) or 0}
                yield Together(members, needed, places)

    def add(self) -> None:
        """Add every bound to the model."""
        encoding = self.encoding
        for c in range(encoding.job.count):
            if self.alone["nodes"][c] > 1:
                encoding.add(encoding.total(Hosts((c,))) >= self.alone["nodes"][c])
            if self.alone["domains"][c] > 1:
                encoding.add(sum(area.hosting((c,)) for area in encoding.areas) >= self.alone["domains"][c])
        for group in self.together:
            if group.places["nodes"] > 1:
                encoding.add(encoding.total(Hosts(group.members)) >= group.places["nodes"])
            if group.places["domains"] > 1 and "domain_capacity" in encoding.objectives:
                # The goal made the Booleans for "hosts anything" already, so this bound costs one constraint.
                everything = tuple(range(encoding.job.count))
                encoding.add(sum(area.hosting(everything) for area in encoding.areas) >= group.places["domains"])
                encoding.add(encoding.objectives["domain_capacity"] >= group.gpus)

    # What follows for the goals that count places per component

    def least_span(self, level: Level) -> int:
        """The least sum of span_weight x places, given the fewest of each component and of those that exclude each other."""
        weights, alone = self._weights(), self.alone[level]
        more = 0
        for group in self.together:
            missing = group.places[level] - sum(alone[c] for c in group.members)
            more = max(more, missing * min(weights[c] for c in group.members))
        return self._span_alone(level) + more

    def most_shared(self, level: Level, value: int) -> Iterator[tuple[tuple[int, ...], int]]:
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

    def _weights(self) -> list[int]:
        return [component.span_weight for component in self.encoding.job.components]

    def _span_alone(self, level: Level) -> int:
        return sum(weight * places for weight, places in zip(self._weights(), self.alone[level], strict=True))


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
