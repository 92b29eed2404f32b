"""From counts over equal domains to single domains: the pooled solution dealt out, and checked by the exact model.

The relaxation of ``staged.py`` says how many nodes of which pattern lie in a class of equal domains and how many of those
domains host each component. ``deal`` looks for a plan with exactly these counts in which every goal keeps its relaxed value;
such a plan is optimal. Each class of domains is then a small problem of its own, and the hint often solves it already.
Modify this file when counts are dealt out otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from placewright.index.topology import Domain
from placewright.model.blocks import Area, DomainsBySet, Part, PooledDomains
from placewright.model.encoding import Encoding
from placewright.model.patterns import Pattern
from placewright.node.conflicts import maximal_cliques
from placewright.params import SolveParams
from placewright.search.lexicographic import Outcome, Search

Value = Callable[[Any], int]
Counts = dict[int, dict[Pattern, int]]
"""Node class -> pattern -> number of nodes."""


def crowding(pooled: Encoding) -> Any:
    """How many hosted components pass the number of domains: what need not lie with others is easier to deal out.

    Of components that exclude each other on GPUs, so many may be in one domain each before two must meet.
    """
    job = pooled.job
    total: Any = 0
    for area in pooled.areas:
        if isinstance(area, PooledDomains):
            for clique in maximal_cliques(tuple(range(len(job.items))), job.conflicts):
                over = pooled.number(f"{area.name}.crowding{'_'.join(map(str, clique))}")
                pooled.add(over >= sum(area.hosting(job.items[i].members) for i in clique) - len(area.domains))
                total += over
    return total


def deal(pooled: Encoding, value: Value, goals: Mapping[str, int], params: SolveParams) -> tuple[Encoding, Outcome] | None:
    """A plan with the pooled solution's counts and these values of every goal; None where none was found.

    Args:
        pooled: a relaxation of a problem that needs its domains one by one.
        value: reads the pooled solution.
        goals: goal -> value, each a proven lower bound.
    """
    wanted = [share for area in pooled.areas for share in _shares(area, value)]
    only: dict[Any, set[Pattern]] = defaultdict(set)
    for share in wanted:
        for t, held in share.counts.items():
            only[pooled.topology.classes[t]].update(held)
    dealt = Encoding(pooled.prepared, only=only)
    cells = {(id(area.domains[0]), cell.node_class): cell for area in dealt.areas for cell in area.cells}
    for share in wanted:
        for t in sorted({t for domain in share.domains for t in domain.nodes}):
            node_class, held = pooled.topology.classes[t], share.counts.get(t, {})
            here = [cells[id(domain), node_class] for domain in share.domains if (id(domain), node_class) in cells]
            for pattern in only[node_class] if here else ():
                counters = [cell.count[cell.patterns.index(pattern)] for cell in here]  # type: ignore[attr-defined]
                dealt.add(sum(counters) == held.get(pattern, 0))
        if not share.bundles:
            continue
        for domain, counts in zip(share.domains, _spread(share), strict=True):
            for t, held in counts.items():
                cell = cells[id(domain), pooled.topology.classes[t]]
                for pattern, counter in zip(cell.patterns, cell.count, strict=True):  # type: ignore[attr-defined]
                    dealt.model.add_hint(counter, held.get(pattern, 0))
    for name, expression in dealt.objectives.items():
        dealt.add(expression <= goals[name])
    search = Search(dealt, params, None)
    search.run(1, params.deal_work)
    if search.best is None:
        return None
    bounds = {name: goals[name] for name in dealt.objectives}
    return dealt, Outcome("optimal", dict(bounds), dict(bounds), search.value, search.solve_time)


class _Share(NamedTuple):
    """Interchangeable domains, the counts that they have together, and what of those lies in how many of them."""

    domains: list[Domain]
    counts: Counts
    bundles: list[tuple[int, list[tuple[int, Pattern, int]]]]


def _shares(area: Area, value: Value) -> Iterator[_Share]:
    """What the pooled solution has in the area: of each set of components, where it has those, else altogether."""
    if not isinstance(area, DomainsBySet):
        for part in area.parts:
            counts = _of_part(area, part, value)
            yield _Share(area.domains, counts, [] if area.single_nodes else _bundles(area, counts, value))
        return
    first = 0
    for part in area.parts:
        # Equal domains are interchangeable, so those that host the same set may as well be neighbours.
        domains = area.domains[first : first + value(part.number())]
        first += len(domains)
        counts = _of_part(area, part, value)
        together = [(t, pattern, number) for t, held in counts.items() for pattern, number in held.items()]
        yield _Share(domains, counts, [(len(domains), together)])
    yield _Share(area.domains[first:], {}, [])


def _of_part(area: Area, part: Part, value: Value) -> Counts:
    found: Counts = {}
    for cell, nodes in zip(area.cells, area.nodes, strict=True):
        if any(cell is other for other in part.cells):
            t = next(t for t, there in area.domains[0].nodes.items() if there is nodes[0])
            found[t] = dict(cell.contents(value))
    return found


def _spread(share: _Share) -> list[Counts]:
    """A guess for each domain: patterns that belong together go evenly to as many domains as host them."""
    room = [{t: len(nodes) for t, nodes in domain.nodes.items()} for domain in share.domains]
    dealt: list[Counts] = [{t: {} for t in share.counts} for _ in share.domains]
    first = 0
    for hosting, held_here in share.bundles:
        chosen = range(first, min(first + hosting, len(room)))
        first = min(first + hosting, len(room))
        for t, pattern, number in held_here:
            each = -(-number // max(1, len(chosen)))
            for d in (*chosen, *range(len(room))):
                taken = min(number, room[d].get(t, 0), each if d in chosen else number)
                if taken > 0:
                    room[d][t] -= taken
                    dealt[d][t][pattern] = dealt[d][t].get(pattern, 0) + taken
                    number -= taken
    return dealt


def _bundles(area: Area, counts: Counts, value: Value) -> list[tuple[int, list[tuple[int, Pattern, int]]]]:
    """(number of domains, what lies in them), by the components that patterns have."""
    by_support: dict[tuple[int, ...], list[tuple[int, Pattern, int]]] = defaultdict(list)
    for t, held in counts.items():
        for pattern, number in held.items():
            by_support[tuple(c for c, n in enumerate(pattern) if n)].append((t, pattern, number))
    return [
        (max(1, min(value(area.hosting((c,))) for c in support)), here) for support, here in sorted(by_support.items())
    ]
