"""H10: accelerator, labels, node_ids, exclude_node_ids, head and excluded nodes.

Modify this file when a component can filter nodes by something else.
"""

from __future__ import annotations

from collections.abc import Iterator

from placewright.facts import Facts
from placewright.rules.rule import Rule
from placewright_models.cluster import Node
from placewright_models.workload import Component


class NodeFilters(Rule):
    """A component is only on nodes that exist and pass its filters."""

    name = "node_filters"
    code = "H10"

    def check(self, facts: Facts) -> Iterator[str]:
        """Every (component, node) pair once."""
        for (name, node_id), count in facts.unknown_nodes.items():
            yield f"{name} has {count} workers on {node_id}, which is not a node of the cluster"
        heads = facts.problem.cluster.schedule_on_head
        for component in facts.problem.components:
            for node_id in facts.x[component.name]:
                reason = _refusal(component, facts.nodes[node_id], heads)
                if reason:
                    yield f"{component.name} is on {node_id}, {reason}"


def _refusal(component: Component, node: Node, schedule_on_head: bool) -> str:
    """Why the node may not host the component; empty where it may."""
    if node.excluded is not None:
        return f"which is excluded ({node.excluded})"
    if node.head and not schedule_on_head:
        return "the head node, which hosts nothing"
    if component.accelerator is not None and node.accelerator != component.accelerator:
        return f"whose accelerator is {node.accelerator or 'unknown'} and not {component.accelerator}"
    if component.node_ids is not None and node.id not in component.node_ids:
        return "which is not among its node_ids"
    if node.id in component.exclude_node_ids:
        return "which its exclude_node_ids name"
    for key, value in component.labels.items():
        if node.labels.get(key) != value:
            return f"whose label {key} is {node.labels.get(key, 'not set')} and not {value}"
    return ""
