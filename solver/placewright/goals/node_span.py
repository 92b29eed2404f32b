"""node_span: over how many nodes components reach, by their span_weight.

Modify this file when reach over nodes is counted otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placewright.facts import Facts
from placewright.frame.features import Hosts
from placewright.goals.span import Span

if TYPE_CHECKING:
    from placewright.frame.frame import Frame


class NodeSpan(Span):
    """Sum over all components of span_weight x number of nodes that host it."""

    name = "node_span"
    level = "nodes"

    def measure(self, facts: Facts) -> int:
        """Counts nodes per component."""
        return sum(component.span_weight * len(facts.x[component.name]) for component in facts.problem.components)

    def expression(self, frame: Frame) -> Any:
        """Nodes whose pattern holds each component."""
        return sum(
            component.span_weight * frame.total(Hosts((c,)))
            for c, component in enumerate(frame.job.components)
            if component.span_weight
        )
