"""traffic: how far two components are from being split in the same proportion, over nodes and over known domains.

Modify this file when a missing local partner is counted otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from placewright.facts import Facts
from placewright_models.workload import Component


class TrafficCost:
    """Per pair (a, b): weight x sum of max(0, W_b x[a] - W_a x[b]) over nodes, plus the same over known domains."""

    name = "traffic"

    def measure(self, facts: Facts) -> int:
        """W is a component's total, its maximum where elastic, both divided by their common divisor."""
        total = 0
        for entry in facts.problem.traffic:
            first, second = (facts.problem.by_name[name] for name in entry.between)
            total += entry.weight * self.pair(facts, first, second)
        return total

    def pair(self, facts: Facts, first: Component, second: Component) -> int:
        """The cost of one pair without its weight."""
        w_first, w_second = _total(facts, first), _total(facts, second)
        common = gcd(w_first, w_second) or 1
        w_first, w_second = w_first // common, w_second // common
        a, b = facts.x[first.name], facts.x[second.name]
        return _excess(a, b, w_first, w_second) + _excess(_by_domain(facts, a), _by_domain(facts, b), w_first, w_second)


def _total(facts: Facts, component: Component) -> int:
    return len(facts.workers[component.name]) if component.max_workers is None else component.max_workers


def _excess(a: Mapping[str, int], b: Mapping[str, int], w_a: int, w_b: int) -> int:
    # Where a is absent the term is never positive, so a's places are enough.
    return sum(max(0, w_b * count - w_a * b.get(place, 0)) for place, count in a.items())


def _by_domain(facts: Facts, counts: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for node_id, count in counts.items():
        domain = facts.nodes[node_id].nvlink_domain
        if domain is not None:
            found[domain] = found.get(domain, 0) + count
    return found
