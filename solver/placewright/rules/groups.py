"""H8, groups: workers that talk all the time lie inside one unit of the level they name.

A group wider than the component's largest node is made of whole nodes of one size; a narrower one may straddle nodes inside
its unit. ``preferred`` softens only "inside one unit". Modify this file when groups get another shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from placewright.facts import Facts, Unit, some
from placewright.frame.features import Hosts
from placewright.frame.frame import by_size
from placewright.frame.needs import Needs
from placewright.rules.rule import Rule
from placewright.rules.segments import whole_node_counts
from placewright_models.cluster import CLUSTER_LEVEL, NODE_LEVEL
from placewright_models.workload import Component, Group

if TYPE_CHECKING:
    from placewright.frame.frame import Frame
    from placewright.index.job import Job
    from placewright.index.topology import NodeClass, Topology


class Groups(Rule):
    """Each unit holds whole groups (required), the parts that stay hard otherwise, and no group's workers are mixed up."""

    name = "groups"
    code = "H8"

    def check(self, facts: Facts) -> Iterator[str]:
        """Counts per unit, then, where the counts are right, the workers of every single group by index."""
        for component in facts.problem.components:
            group = component.group
            if group is None or not facts.x[component.name]:
                continue
            wrong = list(
                _whole_nodes(facts, component, group)
                if facts.takes_whole_nodes(component)
                else _straddling(facts, component, group)
            )
            if not wrong and group.required and group.workers > 1:
                wrong = list(_members(facts, component, group))
            yield from wrong

    def node_counts(self, job: Job, c: int, node_class: NodeClass, counts: Sequence[int]) -> Sequence[int]:
        """Whole nodes for groups wider than a node; multiples of the group where a node is its own unit."""
        group = job.components[c].group
        if group is None:
            return counts
        if job.whole_node_group(c):
            alone = group.within == NODE_LEVEL or group.within in node_class.unknown
            if job.nodes_per_group(c, node_class.gpus) is None or (group.required and alone):
                return (0,)
            return whole_node_counts(job, c, node_class, counts)
        if group.required and (group.within == NODE_LEVEL or group.within in node_class.unknown):
            return [n for n in counts if n % group.workers == 0]
        return counts

    def needs(self, job: Job) -> Needs:
        """Exact: groups of whole nodes, and those that are, or would rather be, on one node somewhere; groups per unit."""
        exact, per_place, groups, levels = set(), set(), set(), set()
        for c, component in enumerate(job.components):
            group = component.group
            if group is None:
                continue
            levels.add(group.within)
            if job.whole_node_group(c) or group.within == NODE_LEVEL or job.unknown_somewhere(group.within):
                exact.add(c)
            if not (group.required and group.within == NODE_LEVEL):
                level = _counted_at(group)
                groups.add((c, level))
                if level != CLUSTER_LEVEL and not job.whole_node_group(c):
                    per_place.add(c)
        return Needs(frozenset(exact), frozenset(per_place), frozenset(groups), levels=frozenset(levels))

    def per_domain(self, job: Job, topology: Topology) -> bool:
        """Any group that looks at domains or at levels above them."""
        return any(
            component.group is not None and component.group.within not in (NODE_LEVEL, CLUSTER_LEVEL)
            for component in job.components
        )

    def encode(self, frame: Frame) -> None:
        """Whole groups per unit (required), or over the cluster (preferred)."""
        for c, component in enumerate(frame.job.components):
            group = component.group
            if group is None or (group.required and group.within == NODE_LEVEL):
                continue
            level = _counted_at(group)
            for unit in frame.units(level):
                if unit.alone:
                    continue
                for size, groups in frame.groups(unit, c).items():
                    if size:
                        hosts = sum(some.total(Hosts((c,))) for some in by_size(unit.nodes)[size])
                        frame.add(hosts == (frame.job.nodes_per_group(c, size) or 1) * groups)
                    else:
                        workers = frame.placed[c] if level == CLUSTER_LEVEL else frame.workers(unit.nodes, c)
                        frame.add(workers == group.workers * groups)


def _counted_at(group: Group) -> str:
    """The level in each unit of which there is a whole number of groups."""
    return group.within if group.required else CLUSTER_LEVEL


def _straddling(facts: Facts, component: Component, group: Group) -> Iterator[str]:
    if group.required:
        for unit, count in facts.workers_per_unit(component, group.within).items():
            if count % group.workers:
                yield f"{_in(unit)} holds {count} workers of {component.name}, not a multiple of its groups of {group.workers}"
        return
    total = sum(facts.x[component.name].values())
    if total % group.workers:
        yield f"{component.name} has {total} workers, not a multiple of its groups of {group.workers}"


def _whole_nodes(facts: Facts, component: Component, group: Group) -> Iterator[str]:
    per_group: dict[int, int] = {}
    for node_id in facts.x[component.name]:
        size = facts.nodes[node_id].gpus
        nodes = facts.nodes_per_group(component, size)
        if nodes is None:
            yield (
                f"{component.name} is on {node_id} with {size} GPUs, "
                f"of which no group of {group.workers} x {component.gpus_per_worker} GPUs can be made"
            )
            continue
        per_group[size] = nodes
        if not facts.is_whole(component, node_id):
            yield f"{component.name} has groups wider than a node and does not hold the whole of {node_id}"
    totals: dict[int, int] = {}
    for (unit, size), count in facts.nodes_per_unit(component, group.within).items():
        totals[size] = totals.get(size, 0) + count
        if group.required and size in per_group and count % per_group[size]:
            yield (
                f"{_in(unit)} gives {component.name} {count} nodes of {size} GPUs, "
                f"not a multiple of the {per_group[size]} that one group fills"
            )
    for size, count in totals.items():
        # Preferred groups may straddle units but still fill nodes of one size.
        if not group.required and size in per_group and count % per_group[size]:
            yield (
                f"{component.name} holds {count} nodes of {size} GPUs, "
                f"not a multiple of the {per_group[size]} that one group fills"
            )


def _members(facts: Facts, component: Component, group: Group) -> Iterator[str]:
    """Group j is workers jk..jk+k-1: right counts are worth nothing if the workers are numbered across units."""
    units = facts.units(group.within)
    workers = facts.workers[component.name]
    whole = facts.takes_whole_nodes(component)
    for start in range(0, len(workers), group.workers):
        nodes = {worker.node_id for worker in workers[start : start + group.workers]}
        if len(nodes) == 1 or not nodes <= units.keys():
            continue
        who = f"{component.name} workers {start} to {start + group.workers - 1} are one group and"
        if len({units[node_id] for node_id in nodes}) > 1:
            yield f"{who} lie on {some(sorted(nodes))}, not in one {group.within}"
        elif whole:
            sizes = {facts.nodes[node_id].gpus for node_id in nodes}
            if len(sizes) > 1 or len(nodes) != facts.nodes_per_group(component, sizes.pop()):
                yield f"{who} do not fill whole nodes of one size: {some(sorted(nodes))}"


def _in(unit: Unit) -> str:
    level, name = unit
    return f"{level} {name}".strip()
