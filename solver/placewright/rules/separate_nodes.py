"""H12: no node hosts two of the listed components.

Modify this file when separation may be softer than no common node.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from placewright.facts import Facts


class SeparateNodes:
    """The listed components have no node in common, pair by pair."""

    name = "separate_nodes"
    code = "H12"

    def check(self, facts: Facts) -> Iterator[str]:
        """Intersects the node sets of every pair of an entry."""
        for names in facts.problem.rules.separate_nodes:
            for first, second in combinations(dict.fromkeys(names), 2):
                theirs = facts.x.get(second, {})
                for node_id in facts.x.get(first, {}):
                    if node_id in theirs:
                        yield f"{first} and {second} are both on {node_id} and must be on separate nodes"
