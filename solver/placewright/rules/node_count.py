"""``nodes``: the component is on exactly that many nodes.

Modify this file when the number of nodes may be a range.
"""

from __future__ import annotations

from collections.abc import Iterator

from placewright.facts import Facts


class NodeCount:
    """Number of nodes that host the component."""

    name = "node_count"
    code = "nodes"

    def check(self, facts: Facts) -> Iterator[str]:
        """Counts hosting nodes."""
        for component in facts.problem.components:
            found = len(facts.x[component.name])
            if component.nodes is not None and found != component.nodes:
                yield f"{component.name} is on {found} nodes where exactly {component.nodes} are asked"
