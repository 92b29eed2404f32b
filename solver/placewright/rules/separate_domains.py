"""H12: no NVLink domain hosts two of the listed components; an unknown node is a domain of its own.

Modify this file when separation may name another level.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from placewright.facts import Facts


class SeparateDomains:
    """The listed components have no domain in common, pair by pair."""

    name = "separate_domains"
    code = "H12"

    def check(self, facts: Facts) -> Iterator[str]:
        """Intersects the domain sets of every pair of an entry."""
        for names in facts.problem.rules.separate_domains:
            hosting = {name: dict.fromkeys(facts.domains[node_id] for node_id in facts.x.get(name, {})) for name in names}
            for first, second in combinations(hosting, 2):
                for unit in hosting[first]:
                    if unit in hosting[second]:
                        yield f"{first} and {second} are both in {' '.join(unit)} and must be in separate NVLink domains"
