"""node_span: over how many nodes components reach, by their span_weight.

Modify this file when reach over nodes is counted otherwise.
"""

from __future__ import annotations

from placewright.facts import Facts


class NodeSpan:
    """Sum over all components of span_weight x number of nodes that host it."""

    name = "node_span"

    def measure(self, facts: Facts) -> int:
        """Counts nodes per component."""
        return sum(component.span_weight * len(facts.x[component.name]) for component in facts.problem.components)
