"""Numbers for sentences: what a component needs, and what each node, domain or unit can give.

Counts one component alone on the reduced problem, so every number can be checked by hand. Modify this file when a resource
gets another natural unit. It is over 400 lines because every kind of shortage has its sentence here, side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from placewright.explain.quick import Counted
from placewright.explain.shortage import free_of
from placewright.index.job import Job
from placewright.model.local import Local
from placewright.node.conflicts import maximal_cliques
from placewright_models.cluster import DOMAIN_LEVEL, Node
from placewright_models.problem import Problem
from placewright_models.quantities import UNITS, format_memory, plain_number
from placewright_models.workload import Component

_MOST_UNITS = 6


@dataclass(frozen=True, slots=True)
class Room:
    """What is needed and what there is. ``total``: the numbers are sums over the cluster."""

    sentence: str
    resource: str
    needed: float | int | None
    available: float | int | None
    per_unit: Mapping[str, float | int] = field(default_factory=dict)
    total: bool = False


class Counting:
    """Counts on one reduced problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.job = Job(problem)
        self.counted = Counted(self.job)
        self.local: Local = self.counted.local
        self.nodes: list[tuple[Node, int]] = []
        for domain in self.counted.topology.domains:
            for t, nodes in domain.nodes.items():
                self.nodes.extend((node, t) for node in nodes)

    def _alone(self, c: int, node_class: int) -> int:
        return self.local.counts(self.counted.topology.classes[node_class], c)[-1]

    def usable(self, component: Component) -> list[Node]:
        """Nodes that pass the component's filters."""
        return [node for node, _ in self.nodes if self.problem.admits(component, node)]

    def room(self, component: Component, fields: set[str]) -> Room:
        """What one component's count runs short of, given which of its fields take part."""
        if component.name not in self.job.index:
            return Room(f"{component.name} cannot be placed", "gpus", None, None)
        usable = self.usable(component)
        if not usable and fields & {"accelerator", "labels", "node_ids", "exclude_node_ids"}:
            return self._no_node(component, fields)
        if "segment_size" in fields:
            return self._segments(component)
        if "group" in fields:
            return self._groups(component)
        if "nodes" in fields and component.nodes is not None and component.per_node is None:
            return self._node_count(component, component.nodes)
        if "per_node" in fields or "nodes" in fields:
            return self._per_node(component, usable)
        if "per_node_of" in fields:
            return self._follower(component)
        if "cpus" in fields:
            return self._host(component, usable, "cpus")
        if "memory" in fields:
            return self._host(component, usable, "memory")
        return self._gpus(component, usable, fields)

    def _no_node(self, component: Component, fields: set[str]) -> Room:
        wanted = []
        if "accelerator" in fields:
            wanted.append(f"accelerator {component.accelerator}")
        if "labels" in fields:
            wanted.append("labels " + ", ".join(f"{k}={v}" for k, v in sorted(component.labels.items())))
        if "node_ids" in fields:
            wanted.append(f"id among {listed(component.node_ids or ())}")
        if "exclude_node_ids" in fields:
            wanted.append("id outside exclude_node_ids")
        resource = "accelerator" if "accelerator" in fields else "labels" if "labels" in fields else "node_ids"
        sentence = f"{component.name}: no node that may host anything has {' and '.join(wanted)}"
        return Room(sentence, resource, component.min_workers, 0)

    def _gpus(self, component: Component, usable: list[Node], fields: set[str]) -> Room:
        name, workers, width = component.name, component.min_workers or 0, component.gpus_per_worker
        c = self.job.index[name]
        filters = fields & {"accelerator", "labels", "node_ids", "exclude_node_ids"}
        where = f" on the nodes it may use ({', '.join(sorted(filters))})" if filters else ""
        resource = sorted(filters)[0] if filters else "gpus"
        if not component.gpus:
            return Room(f"{name}: {workers} workers find no node that may host them", "nodes", workers, 0)
        free = {node.id: node.available_gpus for node in usable}
        total = sum(free.values())
        shown = listed([free_of(node) for node in sorted(usable, key=lambda node: -node.available_gpus)], "; ")
        shown = shown or "no node that may host it"
        start = f" from an index that is a multiple of {width}" if "aligned" in fields else ""
        if component.fractional:
            each = component.workers_per_gpu
            needed = -(-workers // each)
            sentence = (
                f"{name}: {workers} workers of {plain_number(component.gpus)} GPU need {needed} GPUs "
                f"({each} to a GPU: a share cannot be split over two GPUs), there are {total} free{where} ({shown})"
            )
            return Room(sentence, resource, needed, total, free, total=not filters)
        fits = {node.id: self._alone(c, t) for node, t in self.nodes if self._alone(c, t)}
        longest = max((end - start + 1 for node in usable for start, end in node.runs), default=0)
        if width > max(longest, 1):
            largest = max((node.gpus for node in usable), default=0)
            what = f"largest node {largest}" if width > largest else f"no node has more than {longest} free in a row ({shown})"
            sentence = f"{name}: one worker takes {width} GPUs of one node ({width} per node), {what}{where}"
            return Room(sentence, resource, width, longest if width <= largest else largest, free)
        if width > 1:
            most = max(fits.values(), default=0)
            if most <= 1:
                such = listed(list(fits))
                count = f"{len(fits)} such node{'s' if len(fits) != 1 else ''}" + (f" ({such})" if fits else "")
                sentence = f"{name} needs {workers} nodes with {width} free GPUs{start}{where}: there is {count}"
                if len(fits) != 1:
                    sentence = sentence.replace("there is", "there are")
                return Room(sentence, resource, workers, len(fits), fits)
            sentence = (
                f"{name}: {workers} workers of {width} GPUs each on one node{start}, the nodes hold "
                f"{sum(fits.values())}{where} ({listed([f'{node}: {number}' for node, number in fits.items()])})"
            )
            return Room(sentence, resource, workers, sum(fits.values()), fits)
        sentence = f"{name}: {workers} workers of 1 GPU need {workers} GPUs, there are {total} free{where} ({shown})"
        return Room(sentence, resource, workers, total, free, total=not filters)

    def _host(self, component: Component, usable: list[Node], resource: str) -> Room:
        """CPU or memory on the nodes that have the GPUs: never called a shortage of GPUs."""
        workers = component.min_workers or 0
        able = [node for node in usable if not component.gpus or node.available_gpus]
        held = 0
        if resource == "cpus":
            each, unit = float(component.cpus), "CPUs"
            free = {node.id: (node.free_cpu_units or 0) / UNITS for node in able if node.cpus is not None}
            sizes = {node.id: float(node.cpus) for node in able if node.cpus is not None}
            held = sum(int(node.cpus_in_use + sum(o.cpus for o in node.occupied)) for node in able)

            def amount(value: float) -> str:
                return f"{value:g}"

        else:
            each, unit = component.memory, "of memory"
            free = {node.id: node.free_memory or 0 for node in able if node.memory is not None}
            sizes = {node.id: node.memory for node in able if node.memory is not None}

            def amount(value: float) -> str:
                return format_memory(int(value))

        needed, available = workers * each, sum(free.values())
        where = "nodes with free GPUs" if component.gpus else "nodes it may use"
        shown = listed([f"{node}: {amount(value)} free of {amount(sizes[node])}" for node, value in free.items()])
        sentence = (
            f"{component.name}: {workers} workers of {amount(each)} {unit} need {amount(needed)} {unit}; "
            f"the {where} have {amount(available)} free ({shown})"
        )
        if held:
            sentence += f", {held} held by others"
        if needed <= available:
            sentence += f"; each worker needs its {amount(each)} {unit} on one node"
        return Room(sentence, resource, needed, available, free, total=True)

    def _segments(self, component: Component) -> Room:
        c, segment = self.job.index[component.name], component.segment_size or 1
        classes = self.counted.topology.classes
        possible: dict[str, int] = {}
        known = False
        size = 0
        for domain in self.counted.topology.domains:
            known = known or domain.known
            by_size: dict[int, int] = {}
            for t, nodes in domain.nodes.items():
                if self._alone(c, t):
                    by_size[classes[t].gpus] = by_size.get(classes[t].gpus, 0) + len(nodes)
                    size = max(size, classes[t].gpus)
            if domain.known:
                possible[domain.name] = sum(number // segment for number in by_size.values())
        workers = component.min_workers or 0
        size = size or self.job.problem.largest_node(component)
        needed = -(-workers * component.gpus_per_worker // max(1, size * segment))
        if component.segment_required and not known:
            return Room(
                f"{component.name} needs {needed} segments of {segment} nodes and no node has domain information "
                "(nvlink_domain)",
                "segments",
                needed,
                0,
            )
        total = sum(possible.values())
        shown = listed([f"{name}: {number}" for name, number in possible.items()])
        sentence = (
            f"{component.name} needs {needed} segments of {segment} whole nodes inside one NVLink domain; "
            f"{total} are possible ({shown})"
        )
        return Room(sentence, "segments", needed, total, possible)

    def _groups(self, component: Component) -> Room:
        group = component.group
        assert group is not None
        c = self.job.index[component.name]
        classes = self.counted.topology.classes
        workers, k = component.min_workers or 0, group.workers
        needed = workers // k
        units: dict[str, dict[int, int]] = {}
        whole = self.job.whole_node_group(c)
        for node, t in self.nodes:
            most = self._alone(c, t)
            if most:
                level, name = self.problem.cluster.unit_or_node(node, group.within)
                inside = units.setdefault(name or level, {})
                size = classes[t].gpus if whole else 0
                inside[size] = inside.get(size, 0) + (1 if whole else most)
        possible = {
            name: sum(
                number // ((self.job.nodes_per_group(c, size) or number + 1) if whole else k) for size, number in inside.items()
            )
            for name, inside in units.items()
        }
        total = sum(possible.values())
        what = f"{k} workers of {plain_number(component.gpus)} GPU{'s' if component.gpus > 1 else ''}"
        shown = listed([f"{name}: {number}" for name, number in possible.items()]) or "none"
        sentence = f"{component.name} needs {needed} groups of {what} inside one {group.within}; {total} are possible ({shown})"
        if whole:
            sentence += f"; a group of {k * component.gpus_per_worker} GPUs is wider than a node and takes whole nodes"
            sizes = {node.gpus for node, t in self.nodes if node.gpus and self.problem.admits(component, node)}
            if not any(self.job.nodes_per_group(c, size) for size in sizes):
                shown = listed([str(size) for size in sorted(sizes)])
                sentence += f", but it is no multiple of the GPUs of any node it may use ({shown})"
            if group.within == DOMAIN_LEVEL and not any(node.nvlink_domain for node, _ in self.nodes):
                sentence += ", and no node has domain information"
        return Room(sentence, "groups", needed, total, possible)

    def _per_node(self, component: Component, usable: list[Node]) -> Room:
        per_node = component.per_node
        numbers = sorted(per_node, reverse=True) if isinstance(per_node, tuple) else None
        each = numbers[0] if numbers else per_node if isinstance(per_node, int) else 1
        workers = component.min_workers or 0
        nodes = len(numbers) if numbers else component.nodes or -(-workers // max(1, int(each)))
        gpus = component.gpus * int(each)
        needed_gpus = -(-gpus // 1)
        c = self.job.index[component.name]
        able = {node.id: self._alone(c, t) for node, t in self.nodes}
        fitting = [node for node in usable if able.get(node.id, 0) >= int(each)]
        short = [node for node in usable if node.gpus and node not in fitting]
        shown = listed([f"{node.id} has {node.available_gpus}, needs {needed_gpus}" for node in short], "; ")
        sentence = (
            f"{component.name} needs {nodes} nodes with {int(each)} workers ({needed_gpus} GPUs) each; "
            f"{len(fitting)} such ({listed([node.id for node in fitting]) or 'none'})"
        )
        if shown:
            sentence += f"; {shown}"
        free = {node.id: node.available_gpus for node in usable}
        return Room(sentence, "nodes", nodes, len(fitting), free)

    def _node_count(self, component: Component, nodes: int) -> Room:
        """An exact number of nodes: too few can host the component, or so many do not hold its workers."""
        c, workers = self.job.index[component.name], component.min_workers or 0
        able = {node.id: number for node, t in self.nodes if (number := self._alone(c, t))}
        exactly = f"exactly {nodes} node{'s' if nodes != 1 else ''}"
        if len(able) < nodes:
            sentence = f"{component.name} must use {exactly}, {len(able)} can host it ({listed(list(able)) or 'none'})"
            return Room(sentence, "nodes", nodes, len(able), able)
        most = sorted(able.items(), key=lambda item: -item[1])[:nodes]
        total = sum(number for _, number in most)
        shown = listed([f"{node}: {number}" for node, number in most])
        sentence = f"{component.name}: {workers} workers on {exactly}, those with most room hold {total} ({shown})"
        return Room(sentence, "nodes", workers, total, able)

    def _follower(self, component: Component) -> Room:
        """One worker on each node of another component: its nodes and this component's must be the same."""
        c, workers = self.job.index[component.name], component.min_workers or 0
        leader = self.problem.by_name[component.per_node_of or component.name]
        able = [node.id for node, t in self.nodes if self._alone(c, t) and self._alone(self.job.index[leader.name], t)]
        most = len(able) if leader.max_workers is None else min(len(able), leader.max_workers)
        sentence = (
            f"{component.name}: {workers} workers, one on each node of {leader.name}, need {workers} nodes; "
            f"{leader.name} can be on {most} at most ({listed(able) or 'no node can host both'})"
        )
        return Room(sentence, "nodes", workers, most, dict.fromkeys(able, 1))

    def total_room(self, fields: set[str]) -> Room:
        """What several components together run short of."""
        job = self.job
        for resource, each, unit in (("cpus", job.cpu_units, "CPUs"), ("memory", job.memory, "of memory")):
            if resource in fields:
                needed = sum((component.min_workers or 0) * each[c] for c, component in enumerate(job.components))
                nodes = [node for node, t in self.nodes if self.counted.topology.classes[t].may]
                free = {
                    node.id: (node.free_cpu_units if resource == "cpus" else node.free_memory) or 0
                    for node in nodes
                    if (node.cpus if resource == "cpus" else node.memory) is not None
                }

                def amount(value: float, resource: str = resource) -> str:
                    return f"{value / UNITS:g}" if resource == "cpus" else format_memory(int(value))

                shown = listed([f"{node}: {amount(value)}" for node, value in free.items()])
                names = " + ".join(
                    f"{component.name} {amount((component.min_workers or 0) * each[c])}"
                    for c, component in enumerate(job.components)
                    if each[c]
                )
                available = sum(free.values())
                sentence = (
                    f"together they need {amount(needed)} {unit} ({names}); "
                    f"there are {amount(available)} free where they may lie ({shown})"
                )
                scale = UNITS if resource == "cpus" else 1
                per_unit = {node: value / scale for node, value in free.items()}
                return Room(sentence, resource, needed / scale, available / scale, per_unit, total=True)
        return self._gpu_total()

    def _gpu_total(self) -> Room:
        job, problem = self.job, self.problem
        shares = [c for c in range(job.count) if job.share[c] is not None]
        total = sum(job.share[c] or 0 for c in shares)
        free = {node.id: node.available_gpus for node, t in self.nodes if self.counted.topology.classes[t].may}
        available = sum(free.values())
        cliques = maximal_cliques(tuple(range(len(job.items))), job.conflicts)
        best: tuple[int, list[str]] = (0, [])
        for clique in cliques:
            parts, needed = [], 0
            for i in clique:
                sizes = {c: job.least_gpus(c) for c in job.items[i].members}
                c = max(sizes, key=lambda member: sizes[member])
                needed += sizes[c]
                parts.append(f"{job.components[c].name} {sizes[c]}")
            if needed > best[0]:
                best = (needed, parts)
        names = [component.name for component in job.components]
        if total > UNITS and best[0] <= available and len(shares) > 1:
            text = " + ".join(f"{job.components[c].name} {(job.share[c] or 0) / UNITS:g}" for c in shares)
            sentence = f"{text} = {total / UNITS:g} of one GPU, more than 1, and there are {available} GPUs for {listed(names)}"
            return Room(sentence, "gpus", total / UNITS, 1, free)
        shown = listed([free_of(problem.node_by_id[node]) for node in sorted(free, key=lambda n: -free[n])], "; ")
        sentence = (
            f"{listed(names)} may not share GPUs and need {best[0]} ({' + '.join(best[1])}), "
            f"there are {available} free ({shown})"
        )
        if best[0] <= available:
            sentence = f"{listed(names)} do not fit together on {available} free GPUs ({shown}) the way they may share"
        return Room(sentence, "gpus", best[0], available, free, total=True)

    def rule_numbers(self, place: str, names: tuple[str, ...]) -> str:
        """For a rule over nodes or domains: how many each component needs alone, and how many there are."""
        if "colocate" in place:
            return self._same_gpus(names)
        if "same_" in place:
            return self._in_one_unit(names, "domain" in place)
        if "separate" not in place:
            return ""
        by_domain = "domains" in place
        needs, total = [], 0
        for name in names:
            if name not in self.job.index:
                continue
            c = self.job.index[name]
            workers = self.job.components[c].min_workers or 0
            rooms: dict[str, int] = {}
            for node, t in self.nodes:
                key = "/".join(self.problem.cluster.unit_or_node(node, DOMAIN_LEVEL)) if by_domain else node.id
                rooms[key] = rooms.get(key, 0) + self._alone(c, t)
            fewest, left = 0, workers
            for room in sorted(rooms.values(), reverse=True):
                if left <= 0 or room <= 0:
                    break
                fewest, left = fewest + 1, left - room
            needs.append(f"{name} {fewest}")
            total += fewest
        unit = "domains" if by_domain else "nodes"
        usable = {
            "/".join(self.problem.cluster.unit_or_node(node, DOMAIN_LEVEL)) if by_domain else node.id
            for node, t in self.nodes
            if self.counted.topology.classes[t].may
        }
        return f": they need at least {total} {unit} of their own ({', '.join(needs)}), there are {len(usable)}"

    def _same_gpus(self, names: tuple[str, ...]) -> str:
        """How many GPUs each of several components takes that must take the same ones."""
        members = [name for name in names if name in self.problem.by_name]
        takes = []
        for name in members:
            component = self.problem.by_name[name]
            workers, gpus = component.max_workers or 0, component.gpus
            least = -(-(component.min_workers or 0) // component.workers_per_gpu) if component.fractional else None
            takes.append(f"{name} {plain_number(workers * gpus) if least is None else f'{least} to {workers}'}")
        return f": GPUs that they take: {', '.join(takes)}"

    def _in_one_unit(self, names: tuple[str, ...], by_domain: bool) -> str:
        """What several components need together, and what each node or domain has, for what is short somewhere."""
        chosen = [self.problem.by_name[name] for name in names if name in self.problem.by_name]
        needs = [sum(((c.min_workers or 0) * c.gpus for c in chosen), Decimal(0))]
        needs.append(sum(((c.min_workers or 0) * c.cpus for c in chosen), Decimal(0)))
        rooms: dict[str, list[Decimal | None]] = {}
        for node, t in self.nodes:
            if not self.counted.topology.classes[t].may:
                continue
            key = "/".join(self.problem.cluster.unit_or_node(node, DOMAIN_LEVEL)[1:]) if by_domain else node.id
            room = rooms.setdefault(key, [Decimal(0), Decimal(0)])
            cpus = None if node.free_cpu_units is None else Decimal(node.free_cpu_units) / UNITS
            room[0] = (room[0] or Decimal(0)) + node.available_gpus
            room[1] = None if room[1] is None or cpus is None else room[1] + cpus

        def amounts(gpus: Decimal | None, cpus: Decimal | None) -> str:
            text = f"{plain_number(gpus or Decimal(0))} GPUs"
            if needs[1]:
                text += f" and {'any number of' if cpus is None else plain_number(cpus)} CPUs"
            return text

        shown = [f"{key} {amounts(*room)}" for key, room in rooms.items()]
        wanted = amounts(*needs)
        return f": together {wanted}; free in one {'domain' if by_domain else 'node'}: {listed(shown) or 'none'}"


def listed(names: list[str] | tuple[str, ...], joint: str = ", ") -> str:
    """Names for a sentence, cut after a few.

    >>> listed(["a", "b"])
    'a, b'
    """
    shown = joint.join(list(names)[:_MOST_UNITS])
    return shown if len(names) <= _MOST_UNITS else f"{shown}{joint}{len(names) - _MOST_UNITS} more"
