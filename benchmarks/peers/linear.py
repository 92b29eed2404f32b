"""The textbook model: one variable per component and node. Solver-neutral rows, so that CP-SAT and HiGHS get the same.

x[c,n] workers of c on n; on[c,n] whether there are any; host[c,d] whether domain d has any; used[n]. No classes, no patterns,
no bounds, no symmetry breaking. Components that share GPUs need GPU indices and are refused. Modify this file only to make
the baseline more able, never to make it clever: that is what the package itself is for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import gcd, inf

from benchmarks.peers.peer import CannotExpress, Counts, TooLarge
from placewright.index.job import Job
from placewright_models.problem import Problem

Terms = list[tuple[int, int]]
"""(coefficient, variable)."""
MOST_VARIABLES = 450_000


@dataclass
class Linear:
    """Rows over integer variables; objectives in order."""

    problem: Problem
    low: list[int] = field(default_factory=list)
    high: list[int] = field(default_factory=list)
    rows: list[tuple[Terms, float, float]] = field(default_factory=list)
    objectives: list[tuple[str, Terms, int]] = field(default_factory=list)
    x: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.job = Job(self.problem)
        self.nodes = list(self.problem.cluster.nodes)
        self.on: dict[tuple[int, int], int] = {}
        self.total: list[Terms] = []
        if 2 * self.job.count * len(self.nodes) > MOST_VARIABLES:
            raise TooLarge(f"about {2 * self.job.count * len(self.nodes):,} variables")
        self._refuse()
        self._nodes()
        for c in range(self.job.count):
            self._component(c)
        for goal in self.problem.goals:
            terms, constant = self._goal(goal)
            self.objectives.append((goal, _merged(terms), constant))

    def var(self, low: int, high: int) -> int:
        """A new integer variable."""
        self.low.append(low)
        self.high.append(high)
        return len(self.low) - 1

    def row(self, terms: Terms, low: float = -inf, high: float = inf) -> None:
        """A new constraint low <= terms <= high."""
        self.rows.append((_merged(terms), low, high))

    def _refuse(self) -> None:
        if self.problem.sharing_pairs:
            raise CannotExpress("components that share GPUs need GPU indices")
        rules = self.problem.rules
        for name in ("same_node", "same_domain", "separate_nodes", "separate_domains"):
            if getattr(rules, name):
                raise CannotExpress(name)
        for component in self.job.components:
            if component.aligned or component.per_node is not None or component.nodes is not None:
                raise CannotExpress(f"{component.name}: aligned, per_node or nodes")

    def _whole(self, c: int) -> bool:
        return self.job.components[c].segment_size is not None or self.job.whole_node_group(c)

    def _whole_count(self, c: int, n: int) -> int:
        node, width = self.nodes[n], self.job.width[c]
        component = self.job.components[c]
        if not width or not node.gpus or node.unusable_gpus or node.gpus % width:
            return 0
        if component.segment_size is not None and component.segment_required and node.nvlink_domain is None:
            return 0
        if self.job.whole_node_group(c):
            assert component.group is not None
            unit = self.problem.cluster.unit(node, component.group.within)
            if self.job.nodes_per_group(c, node.gpus) is None or (component.group.required and unit is None):
                return 0
        return node.gpus // width

    def _nodes(self) -> None:
        job = self.job
        for n, node in enumerate(self.nodes):
            runs = [end - start + 1 for start, end in node.runs]
            load: list[Terms] = [[] for _ in runs]
            cpus: Terms = []
            memory: Terms = []
            for c, component in enumerate(job.components):
                if not self.problem.admits(component, node):
                    continue
                width = job.width[c]
                most = component.max_workers if component.max_workers is not None else 1
                if component.fractional:
                    most = min(most, sum(runs) * job.per_gpu[c])
                elif width:
                    most = min(most, sum(run // width for run in runs))
                if self._whole(c):
                    most = min(most, self._whole_count(c, n))
                if not most:
                    continue
                x = self.x[c, n] = self.var(0, most)
                on = self.on[c, n] = self.var(0, 1)
                if self._whole(c):
                    whole = self._whole_count(c, n)
                    self.row([(1, x), (-whole, on)], 0, 0)
                else:
                    self.row([(1, x), (-most, on)], high=0)
                    self.row([(1, x), (-1, on)], low=0)
                if component.fractional:
                    parts = [self.var(0, run) for run in runs]
                    self.row([(1, x), *((-job.per_gpu[c], part) for part in parts)], high=0)
                    for r, part in enumerate(parts):
                        load[r].append((1, part))
                elif width and len(runs) == 1:
                    load[0].append((width, x))
                elif width:
                    blocks = [self.var(0, run // width) for run in runs]
                    self.row([(1, x), *((-1, block) for block in blocks)], 0, 0)
                    for r, block in enumerate(blocks):
                        load[r].append((width, block))
                cpus.append((job.cpu_units[c], x))
                memory.append((job.memory[c], x))
            for terms, run in zip(load, runs, strict=True):
                if terms:
                    self.row(terms, high=run)
            if node.free_cpu_units is not None and cpus:
                self.row(cpus, high=node.free_cpu_units)
            if node.free_memory is not None and any(size for size, _ in memory):
                self.row(memory, high=node.free_memory)

    def _component(self, c: int) -> None:
        component = self.job.components[c]
        total: Terms = [(1, self.x[c, n]) for n in range(len(self.nodes)) if (c, n) in self.x]
        self.total.append(total)
        if component.per_node_of is not None:
            other = self.job.index[component.per_node_of]
            for n in range(len(self.nodes)):
                here: Terms = [(1, self.x[c, n])] if (c, n) in self.x else []
                here += [(-1, self.on[other, n])] if (other, n) in self.on else []
                if here:
                    self.row(here, 0, 0)
        if component.min_workers is not None and component.max_workers is not None:
            self.row(total, component.min_workers, component.max_workers)
        if component.segment_size is not None:
            level = "nvlink_domain" if component.segment_required else "cluster"
            for members in self._units(level, by_size=True).values():
                self._multiple([(1, self.on[c, n]) for n in members if (c, n) in self.on], component.segment_size)
        group = component.group
        if group is not None:
            level = group.within if group.required else "cluster"
            if self.job.whole_node_group(c):
                for (_, size), members in self._units(level, by_size=True).items():
                    nodes = self.job.nodes_per_group(c, size)
                    if nodes:
                        self._multiple([(1, self.on[c, n]) for n in members if (c, n) in self.on], nodes)
            else:
                for members in self._units(level).values():
                    self._multiple([(1, self.x[c, n]) for n in members if (c, n) in self.x], group.workers)

    def _multiple(self, terms: Terms, of: int) -> None:
        if terms and of > 1:
            most = sum(coefficient * self.high[v] for coefficient, v in terms) // of
            self.row([*terms, (-of, self.var(0, most))], 0, 0)

    def _units(self, level: str, by_size: bool = False) -> dict[tuple[tuple[str, str], int], list[int]]:
        found: dict[tuple[tuple[str, str], int], list[int]] = {}
        for n, node in enumerate(self.nodes):
            unit = self.problem.cluster.unit_or_node(node, level)
            found.setdefault((unit, node.gpus if by_size else 0), []).append(n)
        return found

    def _any(self, literals: Iterable[int]) -> int | None:
        """A 0/1 variable that is at least each of these."""
        given = list(literals)
        if not given:
            return None
        literal = self.var(0, 1)
        for one in given:
            self.row([(1, literal), (-1, one)], low=0)
        return literal

    def _hosting(self, members: Sequence[int], components: Iterable[int]) -> int | None:
        return self._any(self.on[c, n] for c in components for n in members if (c, n) in self.on)

    def _goal(self, name: str) -> tuple[Terms, int]:
        job, components = self.job, self.job.components
        everything = range(job.count)
        domains = self._units("nvlink_domain")
        terms: Terms = []
        if name == "unplaced":
            elastic = [c for c in everything if components[c].elastic and components[c].max_workers is not None]
            terms = [(-components[c].priority * k, v) for c in elastic for k, v in self.total[c]]
            return terms, sum(components[c].priority * (components[c].max_workers or 0) for c in elastic)
        if name == "domain_span":
            for c in everything:
                if weight := components[c].span_weight:
                    hosts = [self._hosting(members, [c]) for members in domains.values()]
                    terms += [(weight, host) for host in hosts if host is not None]
        elif name == "node_span":
            terms = [(components[c].span_weight, on) for (c, _), on in self.on.items() if components[c].span_weight]
        elif name == "nodes_used":
            used = [self._hosting([n], everything) for n in range(len(self.nodes))]
            terms = [(1, one) for one in used if one is not None]
        elif name == "domain_capacity":
            for members in domains.values():
                capacity = sum(
                    self.nodes[n].available_gpus
                    for n in members
                    if any(self.problem.admits(component, self.nodes[n]) for component in components)
                )
                host = self._hosting(members, everything)
                if host is not None and capacity:
                    terms.append((capacity, host))
        elif name == "gpu_nodes_used":
            counted = {c for c in everything if not components[c].gpus and components[c].per_node_of is None}
            terms = [(1, x) for (c, n), x in self.x.items() if c in counted and self.nodes[n].gpus]
        elif name == "evenness":
            for (c, _), x in self.x.items():
                if components[c].spread == "even":
                    steps = [self.var(0, 1) for _ in range(self.high[x])]
                    self.row([(1, x), *((-1, step) for step in steps)], 0, 0)
                    terms += [(2 * v + 1, step) for v, step in enumerate(steps)]
        elif name == "traffic":
            for entry in self.problem.traffic:
                a, b = (job.index[component] for component in entry.between)
                terms += [(entry.weight, excess) for excess in self._traffic(a, b)]
        elif name == "groups_split":
            for c in everything:
                terms += self._split(c)
        else:
            raise CannotExpress(name)
        return terms, 0

    def _traffic(self, a: int, b: int) -> list[int]:
        sizes = [self.job.components[c].max_workers for c in (a, b)]
        if sizes[0] is None or sizes[1] is None:
            raise CannotExpress("traffic with an automatic count")
        common = gcd(sizes[0], sizes[1]) or 1
        w_a, w_b = sizes[0] // common, sizes[1] // common
        places = [[n] for n in range(len(self.nodes))]
        known = self._units("nvlink_domain").items()
        places += [members for ((kind, _), _), members in known if kind != "node"]
        found = []
        for members in places:
            excess = self.var(0, w_b * sizes[0])
            terms: Terms = [(1, excess)]
            terms += [(-w_b, self.x[a, n]) for n in members if (a, n) in self.x]
            terms += [(w_a, self.x[b, n]) for n in members if (b, n) in self.x]
            self.row(terms, low=0)
            found.append(excess)
        return found

    def _kept(self, terms: Terms, by: int) -> int:
        most = sum(self.high[v] for _, v in terms) // by
        kept = self.var(0, most)
        self.row([*terms, (-by, kept)], low=0)
        return kept

    def _split(self, c: int) -> Terms:
        component = self.job.components[c]
        terms: Terms = []
        group = component.group
        if group is not None and not group.required:
            if self.job.whole_node_group(c):
                terms += self._split_nodes(c, group.within, None)
            else:
                in_all = self.var(0, 10**7)
                self.row([*self.total[c], (-group.workers, in_all)], 0, 0)
                terms.append((1, in_all))
                for members in self._units(group.within).values():
                    here = [(1, self.x[c, n]) for n in members if (c, n) in self.x]
                    if here:
                        terms.append((-1, self._kept(here, group.workers)))
        if component.segment_size is not None and not component.segment_required:
            terms += self._split_nodes(c, "nvlink_domain", component.segment_size)
        return terms

    def _split_nodes(self, c: int, level: str, segment: int | None) -> Terms:
        terms: Terms = []
        for within, sign in (("cluster", 1), (level, -1)):
            for ((kind, _), size), members in self._units(within, by_size=True).items():
                nodes = segment or self.job.nodes_per_group(c, size)
                here = [(1, self.on[c, n]) for n in members if (c, n) in self.on]
                if not nodes or not here or (sign < 0 and kind == "node"):
                    continue
                if sign > 0:
                    in_all = self.var(0, len(here) // nodes)
                    self.row([*here, (-nodes, in_all)], 0, 0)
                    terms.append((1, in_all))
                else:
                    terms.append((-1, self._kept(here, nodes)))
        return terms

    def counts(self, values: Sequence[int]) -> Counts:
        """A solution as counts."""
        found: dict[str, list[int]] = {}
        for (c, n), x in self.x.items():
            if values[x]:
                found.setdefault(self.nodes[n].id, [0] * self.job.count)[c] = values[x]
        return {node_id: tuple(counts) for node_id, counts in found.items()}


def _merged(terms: Terms) -> Terms:
    """Each variable once."""
    found: dict[int, int] = {}
    for coefficient, variable in terms:
        found[variable] = found.get(variable, 0) + coefficient
    return [(coefficient, variable) for variable, coefficient in found.items() if coefficient]
