"""Which sets of components a domain may host, and which domains are counted by them.

A domain hosts what its nodes host, so the sets are the unions of what patterns hold (docs/model.md, section 2). Usage:
``sets = Sets(prepared, patterns)``; ``sets.of(domain)``, ``sets.chosen()``. Modify this file when not all sets are needed.
"""

from __future__ import annotations

from collections.abc import Sequence

from placewright.index.topology import Domain
from placewright.model.instance import Prepared
from placewright.model.patterns import Pattern

Members = frozenset[int]


def in_order(sets: set[Members]) -> list[Members]:
    """Small sets first."""
    return sorted(sets, key=lambda members: (len(members), sorted(members)))


class Sets:
    """Sets of components by domain."""

    def __init__(
        self, prepared: Prepared, patterns: Sequence[list[Pattern] | None], within: int | None = None
    ) -> None:
        """``within``: only plans with a domain_span of at most this."""
        self.prepared = prepared
        self.patterns = patterns
        self._fewest = None if within is None else prepared.bounds.fewest_each("domains", within)
        self._supports: dict[int, list[Members]] = {}
        self._known: dict[tuple[tuple[int, ...], int], list[Members] | None] = {}

    def supports(self, t: int) -> list[Members]:
        """Of each pattern of node class t the components of which it holds any."""
        if t not in self._supports:
            self._supports[t] = [frozenset(c for c, n in enumerate(pattern) if n) for pattern in self.patterns[t] or ()]
        return self._supports[t]

    def of(self, domain: Domain) -> list[Members] | None:
        """Every set that the domain may host; None where there are too many to count, or nodes are encoded one by one."""
        # Hardly two uneven domains are equal, but most have the same classes of nodes.
        key = (tuple(sorted(domain.nodes)), domain.capacity)
        if key not in self._known:
            self._known[key] = self._of(domain)
        return self._known[key]

    def _of(self, domain: Domain) -> list[Members] | None:
        supports: set[Members] = set()
        for t in domain.nodes:
            if self.patterns[t] is None and self.prepared.usable(t):
                return None
            supports.update(self.supports(t))
        sets: set[Members] = set()
        for one in supports:
            sets |= {members for members in (one, *(one | other for other in sets)) if self._possible(members, domain)}
            if len(sets) > self.prepared.params.most_sets:
                return None
        return in_order(sets)

    def _possible(self, members: Members, domain: Domain) -> bool:
        return self._fewest is None or self.prepared.bounds.may_lie_together(members, domain, self._fewest)

    def chosen(self) -> set[int]:
        """Which classes of equal domains are counted by set: all that can be, unless that takes many more variables.

        It is the stronger relaxation, of single domains too.
        """
        prepared, params = self.prepared, self.prepared.params
        if prepared.per_domain or len(prepared.topology.domains) <= params.one_by_one_domains:
            return set()
        chosen: set[int] = set()
        every_set: set[Members] = set()
        every_class: set[int] = set()
        by_set = one_by_one = 0
        for g, domains in enumerate(prepared.topology.domain_classes()):
            usable = [t for t in domains[0].nodes if prepared.usable(t)]
            sets = self.of(domains[0]) if domains[0].known and usable else None
            if sets:
                chosen.add(g)
                every_set.update(sets)
                every_class.update(usable)
                by_set += len(sets)
                one_by_one += len(domains) * (prepared.job.count + sum(len(self.patterns[t] or []) for t in usable))
        by_set += sum(one <= members for t in every_class for one in self.supports(t) for members in every_set)
        return chosen if by_set <= params.together_ratio * one_by_one else set()
