"""``per_node``: exact workers on each used node, or a multiset of such numbers.

Modify this file when ``per_node`` gets another form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from placewright.facts import Facts


class PerNode:
    """A number holds on every used node; a list names exactly as many nodes, in any order."""

    name = "per_node"
    code = "per_node"

    def check(self, facts: Facts) -> Iterator[str]:
        """Compares the counts per node."""
        for component in facts.problem.components:
            counts, asked = facts.x[component.name], component.per_node
            if isinstance(asked, int):
                for node_id, count in counts.items():
                    if count != asked:
                        yield f"{component.name} has {count} workers on {node_id} where per_node asks {asked}"
            elif asked is not None and Counter(counts.values()) != Counter(asked):
                found = sorted(counts.values(), reverse=True)
                wanted = sorted(asked, reverse=True)
                yield f"{component.name} has {found} workers on its nodes where per_node asks {wanted}"
