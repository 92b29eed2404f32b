"""Valid bounds, added as constraints: fewest nodes and domains that hold a component, or components that exclude each other.

Each is one line of counting, largest places first (knapsack bounds). They close most of the gap that the relaxation leaves
(docs/model.md, section 5). Usage: ``add_bounds(encoding)`` once everything else is there. Modify this file to add a bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from placewright.encode.areas import Area, EqualDomains
from placewright.encode.cells import Cell
from placewright.encode.features import Hosts
from placewright.layout.span import maximal_cliques

if TYPE_CHECKING:
    from placewright.encode.encoding import Encoding


def add_bounds(encoding: Encoding) -> None:
    """Add every bound to the model."""
    for c in range(encoding.job.count):
        _bound_alone(encoding, c)
    _bound_together(encoding)


def _bound_alone(encoding: Encoding, c: int) -> None:
    """Fewest nodes and fewest domains that can hold the component alone, largest first (knapsack bounds)."""
    least = encoding.job.components[c].min_workers or 0
    if not least:
        return
    per_node: list[tuple[int, int]] = []
    per_domain: list[tuple[int, int]] = []
    for area in encoding.areas:
        for domains, capacity in _capacities(encoding, area, c):
            per_domain.append((capacity, domains))
    for cell in _cells_once(encoding):
        per_node.append((encoding.local.counts(cell.node_class, c)[-1], cell.size))
    nodes = fewest(per_node, least)
    if nodes is not None and nodes > 1:
        encoding.add(encoding.total(Hosts((c,))) >= nodes)
    domains_needed = fewest(per_domain, least)
    if domains_needed is not None and domains_needed > 1:
        encoding.add(sum(area.hosting((c,)) for area in encoding.areas) >= domains_needed)


def _bound_together(encoding: Encoding) -> None:
    """Components that may not share GPUs need so many in all: fewest nodes, and fewest domains, that hold them."""
    job = encoding.job
    per_node = [(cell.node_class.shape.available, cell.size) for cell in _cells_once(encoding)]
    per_domain = [
        (
            sum(encoding.topology.classes[t].shape.available * len(n) for t, n in area.domains[0].nodes.items()),
            len(area.domains),
        )
        for area in encoding.areas
    ]
    for clique in maximal_cliques(tuple(range(len(job.items))), job.conflicts):
        if len(clique) < 2:
            continue
        members = tuple(sorted(c for i in clique for c in job.items[i].members))
        needed = sum(max(job.least_gpus(c) for c in job.items[i].members) for i in clique)
        nodes = fewest(per_node, needed)
        if nodes is not None and nodes > 1:
            encoding.add(encoding.total(Hosts(members)) >= nodes)
        domains = fewest(per_domain, needed)
        if domains is not None and domains > 1 and "domain_capacity" in encoding.objectives:
            # The goal made the Booleans for "hosts anything" already, so this bound costs one constraint.
            everything = tuple(range(job.count))
            encoding.add(sum(area.hosting(everything) for area in encoding.areas) >= domains)
            encoding.add(encoding.objectives["domain_capacity"] >= needed)


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
