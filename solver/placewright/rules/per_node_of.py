"""H9: one worker on each node that hosts the other component, wherever that is, and none elsewhere.

Modify this file when helpers may come in another number per node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from placewright.facts import Facts
from placewright.frame.needs import Needs
from placewright.rules.rule import Rule

if TYPE_CHECKING:
    from placewright.index.job import Job


class PerNodeOf(Rule):
    """``per_node_of: train`` puts exactly one worker beside train's, on every node of train."""

    name = "per_node_of"
    code = "H9"

    def check(self, facts: Facts) -> Iterator[str]:
        """Compares the two components' nodes in both directions."""
        for component in facts.problem.components:
            other = component.per_node_of
            if other is None:
                continue
            mine, theirs = facts.x[component.name], facts.x.get(other, {})
            for node_id in theirs:
                count = mine.get(node_id, 0)
                if count != 1:
                    yield f"{component.name} has {count} workers on {node_id}, which hosts {other}, and needs one there"
            for node_id, count in mine.items():
                if node_id not in theirs:
                    yield f"{component.name} has {count} workers on {node_id}, which does not host {other}"

    def follows(self, job: Job) -> Iterator[tuple[int, int]]:
        """One worker wherever the other component is."""
        for c, component in enumerate(job.components):
            if component.per_node_of is not None:
                yield c, job.index[component.per_node_of]

    def needs(self, job: Job) -> Needs:
        """Followers: one or none on a node."""
        return Needs(exact=frozenset(c for c, component in enumerate(job.components) if component.per_node_of is not None))
