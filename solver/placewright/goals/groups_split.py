"""groups_split: preferred groups and segments that do not lie inside one unit.

Modify this file when a split group is counted otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from placewright.facts import Facts
from placewright.frame.features import Hosts, Quotient
from placewright.goals.goal import Goal
from placewright.rules.segments import by_size
from placewright_models.cluster import DOMAIN_LEVEL, NODE_LEVEL
from placewright_models.workload import Component, Group

if TYPE_CHECKING:
    from placewright.index.job import Job
    from placewright.index.topology import Topology
    from placewright.model.encoding import Encoding


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

    def exact(self, job: Job) -> Iterator[int]:
        """Preferred groups that lie on one node somewhere."""
        for c, component in enumerate(job.components):
            group = component.group
            if group is not None and not group.required:
                if group.within == NODE_LEVEL or job.unknown_somewhere(group.within):
                    yield c

    def per_domain(self, job: Job, topology: Topology) -> bool:
        """Wholeness is counted domain by domain."""
        return any(
            (component.segment_size is not None and not component.segment_required)
            or (component.group is not None and not component.group.required and component.group.within != NODE_LEVEL)
            for component in job.components
        )

    def expression(self, encoding: Encoding) -> Any:
        """All groups minus those kept whole, each kept group a whole number per unit."""
        total: Any = 0
        for c, component in enumerate(encoding.job.components):
            group = component.group
            if group is not None and not group.required:
                if encoding.job.whole_node_group(c):
                    total += self._of_nodes(encoding, c, group.within, None)
                else:
                    total += self._of_workers(encoding, c, group)
            if component.segment_size is not None and not component.segment_required:
                total += self._of_nodes(encoding, c, DOMAIN_LEVEL, component.segment_size)
        return total

    def _of_workers(self, encoding: Encoding, c: int, group: Group) -> Any:
        in_all = encoding.number(f"groups{c}")
        encoding.add(encoding.placed[c] == group.workers * in_all)
        kept: Any = 0
        if group.within == NODE_LEVEL:
            return in_all - encoding.total(Quotient(c, group.workers))
        for cells, alone in encoding.unit_cells(group.within):
            if alone:
                kept += sum(cell.total(Quotient(c, group.workers)) for cell in cells)
                continue
            whole = encoding.number(f"groups{c}.kept")
            encoding.add(group.workers * whole <= sum(encoding.workers(cell, c) for cell in cells))
            if group.within == DOMAIN_LEVEL:
                encoding.mixing.bound_groups(whole, cells, c, group.workers)
                encoding.mixing.note_groups(whole, cells, c)
            kept += whole
        return in_all - kept

    def _of_nodes(self, encoding: Encoding, c: int, level: str, segment_size: int | None) -> Any:
        """Groups of whole nodes, or segments where ``segment_size`` is given, per unit of the level and node size."""

        def nodes_of(size: int) -> int | None:
            return segment_size or encoding.job.nodes_per_group(c, size)

        total: Any = 0
        for size, cells in by_size(encoding.cells).items():
            hosts = sum(cell.total(Hosts((c,))) for cell in cells)
            nodes = nodes_of(size)
            if nodes is not None and not isinstance(hosts, int):
                in_all = encoding.number(f"groups{c}.{size}")
                encoding.add(hosts == nodes * in_all)
                total += in_all
        if level == NODE_LEVEL:
            return total
        for cells, alone in encoding.unit_cells(level):
            if alone:
                continue
            mixed = encoding.mixing.of(cells, c) if level == DOMAIN_LEVEL else None
            for size, some_cells in by_size(cells).items():
                hosts = sum(cell.total(Hosts((c,))) for cell in some_cells)
                nodes = nodes_of(size)
                if nodes is not None and not isinstance(hosts, int):
                    whole = encoding.number(f"groups{c}.{size}.kept")
                    encoding.add(nodes * whole <= hosts)
                    if mixed is not None:
                        if segment_size is None:
                            encoding.mixing.note_groups(whole, cells, c)
                        there = sum(len(n) for t, n in mixed.domain.nodes.items() if encoding.topology.classes[t].gpus == size)
                        encoding.add(whole <= there // nodes * mixed.hosting)
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
