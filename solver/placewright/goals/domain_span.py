"""domain_span: over how many NVLink domains components reach, by their span_weight.

Modify this file when reach is counted at another level.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from placewright.facts import Facts
from placewright.goals.goal import Goal

if TYPE_CHECKING:
    from placewright.encode.encoding import Encoding


class DomainSpan(Goal):
    """Sum over all components of span_weight x number of domains that host it; an unknown node is a domain of its own."""

    name = "domain_span"

    def measure(self, facts: Facts) -> int:
        """Counts domains per component."""
        domains = facts.domains
        return sum(
            component.span_weight * len({domains[node_id] for node_id in facts.x[component.name]})
            for component in facts.problem.components
            if component.span_weight
        )

    def expression(self, encoding: Encoding) -> Any:
        """Domains that may host each component."""
        return sum(
            component.span_weight * area.hosting((c,))
            for area in encoding.areas
            for c, component in enumerate(encoding.job.components)
            if component.span_weight
        )

    def least(self, encoding: Encoding) -> int:
        """Fewest domains of each component, and of those that exclude each other together."""
        bounds = encoding.bounds
        return bounds.least_span(_weights(encoding), bounds.domains, "domains")

    def implied(self, encoding: Encoding, value: int) -> Iterator[Any]:
        """Few domains are shared: in sum there is room for few more than the fewest, and so many different ones are needed."""
        bounds = encoding.bounds
        for components, most in bounds.most_shared(_weights(encoding), bounds.domains, "domains", value):
            shared = encoding.shared_domains(components)
            if shared is not None:
                yield shared <= most


def _weights(encoding: Encoding) -> list[int]:
    return [component.span_weight for component in encoding.job.components]
