"""A brute-force planner for tiny problems: every count matrix, every GPU layout, the lexicographically best goals.

``solve(problem)`` enumerates x[c, n] node by node (nodes alike in everything take counts in one order only), decides per
node by exhaustive search whether some GPU layout exists for the counts there, and keeps the best tuple of goal values.
Shares no code with the verifier or the solver's model. ``TooLarge`` says that the problem is beyond its budget.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import product
from math import gcd

from oracle.reading import Previous, Reading
from placewright_models.problem import Problem

Vector = tuple[int, ...]
"""Workers of each component on one node."""


class TooLarge(Exception):
    """The problem needs more steps than the budget allows."""


@dataclass(frozen=True)
class Answer:
    """``optimal`` with every goal's value in order, or ``infeasible``. ``x`` is one best count matrix, by node."""

    status: str
    goals: dict[str, int] = field(default_factory=dict)
    x: tuple[Vector, ...] = ()


def solve(problem: Problem, previous: Previous | None = None, budget: int = 300_000) -> Answer:
    """The best goal values over all placements of the problem.

    Raises:
        TooLarge: where the search passes ``budget`` steps.
    """
    return Search(Reading(problem, previous), budget).run()


class Search:
    """One run: ``vectors`` are a node's own choices, ``allowed`` the rules over nodes, ``goal`` one goal's value."""

    def __init__(self, reading: Reading, budget: int) -> None:
        self.r = reading
        self.budget = budget
        self.layouts: dict[object, int | None] = {}

    def spend(self, steps: int = 1) -> None:
        self.budget -= steps
        if self.budget < 0:
            raise TooLarge

    def run(self) -> Answer:
        r = self.r
        # Widest choice last, alike nodes next to each other.
        order = sorted(range(len(r.nodes)), key=lambda n: (repr(self.looks(n)), n))
        options: list[list[tuple[Vector, int]]] = []
        for place, n in enumerate(order):
            alike = place and self.looks(order[place - 1]) == self.looks(n)
            options.append(options[-1] if alike else self.vectors(n))
        size = range(len(r.components))
        bounds = [r.bounds(c) for c in size]
        most_after = [[0] * len(r.components) for _ in range(len(order) + 1)]
        for place in reversed(range(len(order))):
            for c in size:
                here = max((vector[c] for vector, _ in options[place]), default=0)
                most_after[place][c] = most_after[place + 1][c] + here
        best: tuple[int, ...] | None = None
        best_x: tuple[Vector, ...] = ()
        chosen: list[int] = [0] * len(order)

        def descend(place: int, totals: list[int], kept: int) -> None:
            nonlocal best, best_x
            self.spend()
            if any(totals[c] > bounds[c][1] or totals[c] + most_after[place][c] < bounds[c][0] for c in size):
                return
            if place == len(order):
                x: list[Vector] = [()] * len(order)
                for position, n in enumerate(order):
                    x[n] = options[position][chosen[position]][0]
                if self.allowed(x):
                    value = tuple(self.goal(goal, x, kept) for goal in r.goals)
                    if best is None or value < best:
                        best, best_x = value, tuple(x)
                return
            alike = place > 0 and options[place] is options[place - 1]
            for pick in range(chosen[place - 1] if alike else 0, len(options[place])):
                vector, kept_here = options[place][pick]
                chosen[place] = pick
                descend(place + 1, [totals[c] + vector[c] for c in size], kept + kept_here)

        descend(0, [0 for _ in size], 0)
        if best is None:
            return Answer("infeasible")
        return Answer("optimal", dict(zip(r.goals, best, strict=True)), best_x)

    def looks(self, n: int) -> object:
        """Everything that rules and goals see of a node: nodes that look the same may be swapped."""
        r = self.r
        node = r.nodes[n]
        levels = [r.unit_or_self(n, level) if node.labels.get(level) else None for level in r.problem.cluster.levels]
        return (
            node.gpus,
            r.free[n],
            r.cpus[n],
            r.memory[n],
            node.nvlink_domain,
            levels,
            [r.admitted[c][n] for c in range(len(r.components))],
            [sorted(r.kept_before(c, n).items()) for c in range(len(r.components))],
        )

    # One node

    def vectors(self, n: int) -> list[tuple[Vector, int]]:
        """Every combination of counts that the node can hold, with the most workers that stay where they were."""
        r = self.r
        ranges = [self.counts(c, n) for c in range(len(r.components))]
        found: list[tuple[Vector, int]] = []
        for vector in product(*ranges):
            self.spend()
            if not self.fits(vector, n):
                continue
            kept = self.layout(vector, n)
            if kept is not None:
                found.append((vector, kept))
        return found

    def counts(self, c: int, n: int) -> list[int]:
        """Counts of one component that its own rules allow on the node."""
        r = self.r
        component = r.components[c]
        if not r.admitted[c][n]:
            return [0]
        most = r.bounds(c)[1]
        share = r.share(c)
        if r.fractional(c):
            assert share is not None
            most = min(most, len(r.free[n]) * (10000 // share))
        elif r.width(c):
            most = min(most, len(r.free[n]) // r.width(c))
        cpus, memory = r.cpus[n], r.memory[n]
        if cpus is not None and int(component.cpus * 10000):
            most = min(most, cpus // int(component.cpus * 10000))
        if memory is not None and component.memory:
            most = min(most, memory // component.memory)
        allowed = set(range(most + 1))
        if component.per_node_of is not None:
            allowed &= {0, 1}
        if isinstance(component.per_node, int):
            allowed &= {0, component.per_node}
        elif component.per_node is not None:
            allowed &= {0, *component.per_node}
        if r.needs_whole_nodes(c):
            whole = r.whole_count(c, n)
            allowed &= {0} if whole is None else {0, whole}
        if component.group is not None and component.group.mode == "required" and not r.whole_node_groups[c]:
            # A node that is a unit by itself: `within: node`, or unknown at the level.
            if component.group.within == "node" or r.unit(n, component.group.within) is None:
                allowed = {count for count in allowed if count % component.group.workers == 0}
        return sorted(allowed)

    def fits(self, vector: Vector, n: int) -> bool:
        """CPU, memory, one per node of another component, separate nodes."""
        r = self.r
        cpus, memory = r.cpus[n], r.memory[n]
        asked = [int(component.cpus * 10000) for component in r.components]
        if cpus is not None and sum(count * each for count, each in zip(vector, asked, strict=True)) > cpus:
            return False
        if memory is not None and sum(vector[c] * r.components[c].memory for c in range(len(vector))) > memory:
            return False
        for c, component in enumerate(r.components):
            if component.per_node_of is not None:
                if (vector[c] == 1) != (vector[r.place[component.per_node_of]] > 0):
                    return False
        apart = r.problem.rules.separate_nodes
        return all(sum(vector[r.place[name]] > 0 for name in set(entry)) <= 1 for entry in apart)

    def layout(self, vector: Vector, n: int) -> int | None:
        """Whether the counts have a GPU layout on the node; if so, the most workers that can stay where they were."""
        r = self.r
        before = [r.kept_before(c, n) for c in range(len(vector))]
        key = (r.nodes[n].gpus, r.free[n], vector, tuple(frozenset(counter.items()) for counter in before))
        if key not in self.layouts:
            self.layouts[key] = self._layout(vector, n, before)
        return self.layouts[key]

    def _layout(self, vector: Vector, n: int, before: list[Counter[tuple[tuple[int, int], ...]]]) -> int | None:
        r = self.r
        kept_without_gpu = 0
        choices: list[tuple[int, list[tuple[tuple[int, ...], int]]]] = []
        for c, count in enumerate(vector):
            if r.components[c].gpus == 0:
                kept_without_gpu += min(count, before[c][()])
            else:
                # Components without a worker stay in: a colocated partner must then be absent too.
                choices.append((c, list(self.uses(c, count, n, before[c]))))
        choices.sort(key=lambda entry: len(entry[1]))
        together = {c: members for members in r.same_gpus for c in members}
        best: int | None = None
        none_before = not any(before)

        def place(position: int, placed: list[tuple[int, tuple[int, ...]]], kept: int) -> None:
            nonlocal best
            self.spend()
            if best is not None and none_before:
                return
            if position == len(choices):
                best = kept if best is None else max(best, kept)
                return
            c, uses = choices[position]
            for use, kept_here in uses:
                if all(self.compatible(c, use, other, use_there, together) for other, use_there in placed):
                    if self.within_shares([*placed, (c, use)]):
                        place(position + 1, [*placed, (c, use)], kept + kept_here)

        place(0, [], kept_without_gpu)
        return best

    def compatible(
        self, a: int, use_a: tuple[int, ...], b: int, use_b: tuple[int, ...], together: dict[int, frozenset[int]]
    ) -> bool:
        """Whether two components' uses of the node's GPUs go together, shares apart."""
        if b in together.get(a, ()):
            return all((x > 0) == (y > 0) for x, y in zip(use_a, use_b, strict=True))
        if (a, b) in self.r.may_share:
            return True
        return not any(x and y for x, y in zip(use_a, use_b, strict=True))

    def within_shares(self, placed: list[tuple[int, tuple[int, ...]]]) -> bool:
        giving = [(share, use) for c, use in placed if (share := self.r.share(c)) is not None]
        return not giving or all(sum(share * use[i] for share, use in giving) <= 10000 for i in range(len(giving[0][1])))

    def uses(
        self, c: int, count: int, n: int, before: Counter[tuple[tuple[int, int], ...]]
    ) -> Iterator[tuple[tuple[int, ...], int]]:
        """Every way to put the workers on the node's GPUs, as workers per GPU index, with the workers that stay."""
        r = self.r
        size, free = r.nodes[n].gpus, r.free[n]
        width = r.width(c)
        best: dict[tuple[int, ...], int] = {}
        layouts = self.shares_on(c, count, size, free) if r.fractional(c) else self.starts_on(c, count, free, width)
        for positions in layouts:
            self.spend()
            use = [0] * size
            for start in positions:
                for index in range(start, start + (width or 1)):
                    use[index] += 1
            used = [index for index in range(size) if use[index]]
            if used and r.consecutive(n) and used[-1] - used[0] + 1 != len(used):
                continue
            here = Counter(((start, start + (width or 1) - 1),) for start in positions)
            kept = (here & before).total()
            key = tuple(use)
            best[key] = max(best.get(key, 0), kept)
        yield from best.items()

    def starts_on(self, c: int, count: int, free: tuple[int, ...], width: int, first: int = 0) -> Iterator[list[int]]:
        """Every choice of ``count`` disjoint starts of whole workers, ascending."""
        if count == 0:
            yield []
            return
        for start in free:
            if start < first or any(index not in free for index in range(start, start + width)):
                continue
            if self.r.components[c].aligned and start % width:
                continue
            for rest in self.starts_on(c, count - 1, free, width, start + width):
                yield [start, *rest]

    def shares_on(self, c: int, count: int, size: int, free: tuple[int, ...]) -> Iterator[list[int]]:
        """Every choice of a GPU for each of ``count`` alike fractional workers."""
        share = self.r.share(c)
        assert share is not None
        per_gpu = 10000 // share

        def spread(position: int, left: int) -> Iterator[list[int]]:
            if left == 0:
                yield []
                return
            if position == len(free):
                return
            for here in range(min(per_gpu, left) + 1):
                for rest in spread(position + 1, left - here):
                    yield [free[position]] * here + rest

        yield from spread(0, count)

    # The whole cluster

    def allowed(self, x: list[Vector]) -> bool:
        """Rules that look at more than one node."""
        r = self.r
        everywhere = range(len(x))
        for c, component in enumerate(r.components):
            hosts = [n for n in everywhere if x[n][c]]
            if component.nodes is not None and len(hosts) != component.nodes:
                return False
            if isinstance(component.per_node, tuple) and sorted(x[n][c] for n in hosts) != sorted(component.per_node):
                return False
            if component.segment_size is not None:
                level = "nvlink_domain" if component.segment_mode == "required" else "cluster"
                if not self.in_multiples(hosts, level, lambda _, s=component.segment_size: s):
                    return False
            if component.group is None:
                continue
            required = component.group.mode == "required"
            if r.whole_node_groups[c]:
                level = component.group.within if required else "cluster"
                if not self.in_multiples(hosts, level, lambda size, c=c: r.nodes_of_group(c, size)):
                    return False
            else:
                per_unit: Counter[object] = Counter()
                for n in hosts:
                    per_unit[r.unit_or_self(n, component.group.within) if required else None] += x[n][c]
                if any(count % component.group.workers for count in per_unit.values()):
                    return False
        rules = r.problem.rules
        domain = [r.unit_or_self(n, "nvlink_domain") for n in everywhere]

        def hosts_of(name: str) -> list[int]:
            return [n for n in everywhere if x[n][r.place[name]]]

        for entry in rules.same_node:
            if len({n for name in entry for n in hosts_of(name)}) > 1:
                return False
        for entry in rules.same_domain:
            if len({domain[n] for name in entry for n in hosts_of(name)}) > 1:
                return False
        for entry in rules.separate_domains:
            seen: set[object] = set()
            for name in dict.fromkeys(entry):
                mine = {domain[n] for n in hosts_of(name)}
                if mine & seen:
                    return False
                seen |= mine
        return True

    def in_multiples(self, hosts: list[int], level: str, multiple: Callable[[int], int]) -> bool:
        """Nodes per unit and size come in multiples."""
        counted: Counter[tuple[object, int]] = Counter()
        for n in hosts:
            counted[self.r.unit_or_self(n, level), self.r.nodes[n].gpus] += 1
        return all(count % multiple(size) == 0 for (_, size), count in counted.items())

    # Goals

    def goal(self, name: str, x: list[Vector], kept: int) -> int:
        r = self.r
        everywhere = range(len(x))
        components = list(enumerate(r.components))
        domain = [r.unit_or_self(n, "nvlink_domain") for n in everywhere]
        total = [sum(x[n][c] for n in everywhere) for c, _ in components]
        if name == "unplaced":
            return sum(
                component.priority * (component.max_workers - total[c])
                for c, component in components
                if component.max_workers is not None and component.max_workers != component.min_workers
            )
        if name == "moves":
            assert r.previous is not None
            return sum(min(len(r.previous.get(component.name, ())), total[c]) for c, component in components) - kept
        if name == "domain_span":
            return sum(component.span_weight * len({domain[n] for n in everywhere if x[n][c]}) for c, component in components)
        if name == "node_span":
            return sum(component.span_weight * sum(x[n][c] > 0 for n in everywhere) for c, component in components)
        if name == "gpu_nodes_used":
            return sum(
                x[n][c]
                for c, component in components
                if component.gpus == 0 and component.per_node_of is None
                for n in everywhere
                if r.nodes[n].gpus > 0
            )
        if name == "nodes_used":
            return sum(any(x[n]) for n in everywhere)
        if name == "evenness":
            return sum(x[n][c] ** 2 for c, component in components if component.spread == "even" for n in everywhere)
        if name == "domain_capacity":
            touched = {domain[n] for n in everywhere if any(x[n])}
            usable = [any(r.admitted[c][n] for c, _ in components) for n in everywhere]
            return sum(len(r.free[n]) for n in everywhere if usable[n] and domain[n] in touched)
        if name == "traffic":
            return sum(entry.weight * self.traffic(entry.between, x, total) for entry in r.problem.traffic)
        assert name == "groups_split", name
        return sum(self.split(c, x) for c, _ in components)

    def traffic(self, between: tuple[str, str], x: list[Vector], total: list[int]) -> int:
        r = self.r
        a, b = (r.place[name] for name in between)
        wanted = []
        for c in (a, b):
            most = r.components[c].max_workers
            wanted.append(total[c] if most is None else most)
        common = gcd(*wanted) or 1
        w_a, w_b = wanted[0] // common, wanted[1] // common
        cost = sum(max(0, w_b * here[a] - w_a * here[b]) for here in x)
        per_domain: dict[str, list[int]] = {}
        for n, here in enumerate(x):
            name = r.nodes[n].nvlink_domain
            if name is not None:
                counts = per_domain.setdefault(name, [0, 0])
                counts[0] += here[a]
                counts[1] += here[b]
        return cost + sum(max(0, w_b * counts[0] - w_a * counts[1]) for counts in per_domain.values())

    def split(self, c: int, x: list[Vector]) -> int:
        """Preferred groups and segments of one component that are not inside one unit."""
        r = self.r
        component = r.components[c]
        hosts = [n for n in range(len(x)) if x[n][c]]
        cost = 0
        if component.group is not None and component.group.mode == "preferred":
            k, level = component.group.workers, component.group.within
            if r.whole_node_groups[c]:
                for size in {r.nodes[n].gpus for n in hosts}:
                    m = r.nodes_of_group(c, size)
                    per_unit = Counter(r.unit_or_self(n, level) for n in hosts if r.nodes[n].gpus == size)
                    cost += per_unit.total() // m - sum(count // m for count in per_unit.values())
            else:
                per_unit = Counter()
                for n in hosts:
                    per_unit[r.unit_or_self(n, level)] += x[n][c]
                cost += per_unit.total() // k - sum(count // k for count in per_unit.values())
        if component.segment_size is not None and component.segment_mode == "preferred":
            s = component.segment_size
            for size in {r.nodes[n].gpus for n in hosts}:
                of_size = [n for n in hosts if r.nodes[n].gpus == size]
                known = Counter(r.unit(n, "nvlink_domain") for n in of_size if r.unit(n, "nvlink_domain") is not None)
                cost += len(of_size) // s - sum(count // s for count in known.values())
        return cost
