"""groups_split: preferred groups and segments that do not lie inside one unit.

Modify this file when a split group is counted otherwise.
"""

from __future__ import annotations

from placewright.facts import Facts
from placewright_models.cluster import DOMAIN_LEVEL, NODE_LEVEL
from placewright_models.workload import Component, Group


class GroupsSplit:
    """Groups in all minus whole groups per unit, summed over components with preferred groups or segments."""

    name = "groups_split"

    def measure(self, facts: Facts) -> int:
        """A component with both counts both."""
        total = 0
        for component in facts.problem.components:
            group = component.group
            if group is not None and not group.required:
                straddling = not facts.takes_whole_nodes(component)
                total += _groups(facts, component, group) if straddling else _whole_node_groups(facts, component, group)
            if component.segment_size is not None and not component.segment_required:
                total += _segments(facts, component, component.segment_size)
        return total


def _groups(facts: Facts, component: Component, group: Group) -> int:
    in_all = sum(facts.x[component.name].values()) // group.workers
    return in_all - sum(count // group.workers for count in facts.workers_per_unit(component, group.within).values())


def _whole_node_groups(facts: Facts, component: Component, group: Group) -> int:
    totals: dict[int, int] = {}
    kept = 0
    for (_, size), count in facts.nodes_per_unit(component, group.within).items():
        totals[size] = totals.get(size, 0) + count
        per_group = facts.nodes_per_group(component, size)
        # One group fills at least two nodes, so an unknown node, a unit of its own, keeps none together.
        kept += count // per_group if per_group else 0
    return sum(count // (facts.nodes_per_group(component, size) or 1) for size, count in totals.items()) - kept


def _segments(facts: Facts, component: Component, segment_size: int) -> int:
    totals: dict[int, int] = {}
    kept = 0
    for ((level, _), size), count in facts.nodes_per_unit(component, DOMAIN_LEVEL).items():
        totals[size] = totals.get(size, 0) + count
        # A node of unknown domain serves no segment, not even of one node.
        kept += 0 if level == NODE_LEVEL else count // segment_size
    return sum(count // segment_size for count in totals.values()) - kept
