"""domain_span: over how many NVLink domains components reach, by their span_weight.

Modify this file when reach is counted at another level.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placewright.facts import Facts
from placewright.goals.span import Span

if TYPE_CHECKING:
    from placewright.frame.frame import Frame


class DomainSpan(Span):
    """Sum over all components of span_weight x number of domains that host it; an unknown node is a domain of its own."""

    name = "domain_span"
    level = "domains"

    def measure(self, facts: Facts) -> int:
        """Counts domains per component."""
        domains = facts.domains
        return sum(
            component.span_weight * len({domains[node_id] for node_id in facts.x[component.name]})
            for component in facts.problem.components
            if component.span_weight
        )

    def expression(self, frame: Frame) -> Any:
        """Domains that may host each component."""
        return sum(
            component.span_weight * domains.hosting((c,))
            for domains in frame.domains
            for c, component in enumerate(frame.job.components)
            if component.span_weight
        )
