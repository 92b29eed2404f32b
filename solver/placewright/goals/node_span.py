"""node_span: over how many nodes components reach, by their span_weight.

Modify this file when reach over nodes is counted otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from placewright.encode.features import Hosts
from placewright.facts import Facts
from placewright.goals.goal import Goal

if TYPE_CHECKING:
    from placewright.encode.encoding import Encoding


class NodeSpan(Goal):
    """Sum over all components of span_weight x number of nodes that host it."""

    name = "node_span"

    def measure(self, facts: Facts) -> int:
        """Counts nodes per component."""
        return sum(component.span_weight * len(facts.x[component.name]) for component in facts.problem.components)

    def expression(self, encoding: Encoding) -> Any:
        """Nodes whose pattern holds each component."""
        return sum(
            component.span_weight * encoding.total(Hosts((c,)))
            for c, component in enumerate(encoding.job.components)
            if component.span_weight
        )

    def least(self, encoding: Encoding) -> int:
        """Fewest nodes of each component, and of those that exclude each other together."""
        bounds = encoding.bounds
        return bounds.least_span(_weights(encoding), bounds.nodes, "nodes")

    def implied(self, encoding: Encoding, value: int) -> Iterator[Any]:
        """Few nodes are shared, for the same reason as with domains (domain_span)."""
        bounds = encoding.bounds
        for components, most in bounds.most_shared(_weights(encoding), bounds.nodes, "nodes", value):
            shared = encoding.shared_nodes(components)
            if shared is not None:
                yield shared <= most


def _weights(encoding: Encoding) -> list[int]:
    return [component.span_weight for component in encoding.job.components]
