"""H9: one worker on each node that hosts the other component, wherever that is, and none elsewhere.

Modify this file when helpers may come in another number per node.
"""

from __future__ import annotations

from collections.abc import Iterator

from placewright.facts import Facts


class PerNodeOf:
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
