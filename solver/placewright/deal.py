"""From counts over equal domains to single domains: the pooled solution dealt out, and checked by the exact model.

The relaxation of ``staged.py`` says how many nodes of which pattern lie in a class of equal domains and how many of those
domains host each component. ``deal`` looks for a plan with exactly these counts in which every goal keeps its relaxed value;
such a plan is optimal. Each class of domains is then a small problem of its own, and the hint often solves it already.
Modify this file when counts are dealt out otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from placewright.encode.areas import Area, Part, PooledDomains
from placewright.encode.encoding import Encoding
from placewright.encode.patterns import Pattern
from placewright.layout.span import maximal_cliques
from placewright.lexicographic import Outcome, Search
from placewright.params import SolveParams

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
                over = pooled.number(f"{area.name}.crowding")
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
    wanted = {id(area): _counts(area, value) for area in pooled.areas}
    only: dict[Any, set[Pattern]] = defaultdict(set)
    for counts in wanted.values():
        for t, held in counts.items():
            only[pooled.topology.classes[t]].update(held)
    dealt = Encoding(pooled.prepared, only=only)
    cells = {(id(area.domains[0]), cell.node_class): cell for area in dealt.areas for cell in area.cells}
    for area in pooled.areas:
        for t, held in wanted[id(area)].items():
            node_class = pooled.topology.classes[t]
            here = [cells[id(domain), node_class] for domain in area.domains if (id(domain), node_class) in cells]
            for pattern in only[node_class]:
                counters = [cell.count[cell.patterns.index(pattern)] for cell in here]  # type: ignore[attr-defined]
                dealt.add(sum(counters) == held.get(pattern, 0))
        if area.single_nodes:
            continue
        for domain, counts in zip(area.domains, _spread(area, wanted[id(area)], value), strict=True):
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


def _counts(area: Area, value: Value) -> Counts:
    """What the pooled solution has in the area."""
    found: Counts = {}
    for part in area.parts:
        for t, held in _of_part(area, part, value).items():
            here = found.setdefault(t, {})
            for pattern, number in held.items():
                here[pattern] = here.get(pattern, 0) + number
    return found


def _of_part(area: Area, part: Part, value: Value) -> Counts:
    found: Counts = {}
    for cell, nodes in zip(area.cells, area.nodes, strict=True):
        if any(cell is other for other in part.cells):
            t = next(t for t, there in area.domains[0].nodes.items() if there is nodes[0])
            found[t] = dict(cell.contents(value))
    return found


def _spread(area: Area, wanted: Counts, value: Value) -> list[Counts]:
    """A guess for each domain: patterns that belong together go evenly to as many domains as host them."""
    room = [{t: len(nodes) for t, nodes in domain.nodes.items()} for domain in area.domains]
    dealt: list[Counts] = [{t: {} for t in wanted} for _ in area.domains]
    first = 0
    for hosting, held_here in _bundles(area, value):
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


def _bundles(area: Area, value: Value) -> Iterator[tuple[int, list[tuple[int, Pattern, int]]]]:
    """(number of domains, what lies in them): by set of components where the relaxation has sets, else by support."""
    for part in area.parts:
        by_support: dict[tuple[int, ...], list[tuple[int, Pattern, int]]] = defaultdict(list)
        for t, held in _of_part(area, part, value).items():
            for pattern, number in held.items():
                support = () if part.members else tuple(c for c, n in enumerate(pattern) if n)
                by_support[support].append((t, pattern, number))
        for support, here in sorted(by_support.items()):
            hosting = [value(area.hosting((c,))) for c in support] if support else [value(part.number())]
            yield max(1, min(hosting)), here
