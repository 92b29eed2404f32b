"""groups_split: preferred groups and segments that do not lie inside one unit.

Modify this file when a split group is counted otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placewright.facts import Facts
from placewright.frame.features import Hosts, Quotient
from placewright.frame.frame import by_size
from placewright.frame.needs import Needs
from placewright.goals.goal import Goal
from placewright_models.cluster import CLUSTER_LEVEL, DOMAIN_LEVEL, NODE_LEVEL
from placewright_models.workload import Component, Group

if TYPE_CHECKING:
    from placewright.frame.frame import Frame
    from placewright.index.job import Job
    from placewright.index.topology import Topology


class GroupsSplit(Goal):
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

    def needs(self, job: Job) -> Needs:
        """Preferred groups, in all and per unit; their exact counts where a single node is a unit."""
        exact, per_place, groups = set(), set(), set()
        for c, component in enumerate(job.components):
            group = component.group
            if group is None or group.required or group.within == CLUSTER_LEVEL:
                continue
            if group.within == NODE_LEVEL or job.unknown_somewhere(group.within):
                exact.add(c)
            if group.within != NODE_LEVEL:
                groups.add((c, group.within))
                if not job.whole_node_group(c):
                    per_place.add(c)
        return Needs(frozenset(exact), frozenset(per_place), frozenset(groups))

    def per_domain(self, job: Job, topology: Topology) -> bool:
        """Wholeness is counted domain by domain."""
        return any(
            (component.segment_size is not None and not component.segment_required)
            or (component.group is not None and not component.group.required and component.group.within != NODE_LEVEL)
            for component in job.components
        )

    def expression(self, frame: Frame) -> Any:
        """All groups minus those kept whole, each kept group a whole number per unit."""
        total: Any = 0
        for c, component in enumerate(frame.job.components):
            group = component.group
            if group is not None and not group.required and group.within != CLUSTER_LEVEL:
                # The rule of groups ties these to the workers.
                (everywhere,) = frame.units(CLUSTER_LEVEL)
                total += sum(frame.groups(everywhere, c).values()) - self._kept(frame, c, group)
            if component.segment_size is not None and not component.segment_required:
                total += self._segments(frame, c, component.segment_size)
        return total

    def _kept(self, frame: Frame, c: int, group: Group) -> Any:
        """Groups that are inside one unit (at most that many)."""
        whole_nodes = frame.job.whole_node_group(c)
        if group.within == NODE_LEVEL:
            return 0 if whole_nodes else frame.total(Quotient(c, group.workers))
        kept: Any = 0
        for unit in frame.units(group.within):
            if unit.alone:
                # One group of whole nodes fills at least two.
                kept += 0 if whole_nodes else sum(some.total(Quotient(c, group.workers)) for some in unit.nodes)
                continue
            for size, whole in frame.groups(unit, c).items():
                if size:
                    hosts = sum(some.total(Hosts((c,))) for some in by_size(unit.nodes)[size])
                    frame.add((frame.job.nodes_per_group(c, size) or 1) * whole <= hosts)
                else:
                    frame.add(group.workers * whole <= frame.workers(unit.nodes, c))
                kept += whole
        return kept

    def _segments(self, frame: Frame, c: int, nodes_each: int) -> Any:
        """Segments in all minus whole segments per domain, by node size."""
        total: Any = 0
        for size, nodes in by_size(frame.nodes).items():
            hosts = sum(some.total(Hosts((c,))) for some in nodes)
            if not isinstance(hosts, int):
                in_all = frame.number(f"split.segments{c}.{size}")
                frame.add(hosts == nodes_each * in_all)
                total += in_all
        for unit in frame.units(DOMAIN_LEVEL):
            if unit.alone:
                continue
            mixed = frame.mixed(unit, c)
            for size, nodes in by_size(unit.nodes).items():
                hosts = sum(some.total(Hosts((c,))) for some in nodes)
                if isinstance(hosts, int):
                    continue
                whole = frame.number(f"{unit.name}.split.segments{c}.{size}")
                frame.add(nodes_each * whole <= hosts)
                if mixed is not None:
                    there = sum(len(n) for t, n in mixed.domain.nodes.items() if frame.topology.classes[t].gpus == size)
                    frame.add(whole <= there // nodes_each * mixed.hosting)
                total -= whole
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
