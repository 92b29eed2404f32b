"""H12: no node hosts two of the listed components.

Modify this file when separation may be softer than no common node.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from placewright.facts import Facts
from placewright.rules.rule import Rule

if TYPE_CHECKING:
    from placewright.index.job import Job
    from placewright.index.topology import NodeClass


class SeparateNodes(Rule):
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

    def apart(self, job: Job, node_class: NodeClass) -> Iterator[tuple[int, int]]:
        """No node hosts two of them."""
        for names in job.problem.rules.separate_nodes:
            yield from combinations(job.names(names), 2)
