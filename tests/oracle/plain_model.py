"""A plain CP-SAT model for middle sizes: one variable per node and component, one per worker start and GPU index.

No classes, no patterns, no bounds, no symmetry breaking: slow and easy to compare with design.md line by line. Shares no
code with the verifier or the solver's model. ``solve(problem)`` minimises the goals one after the other and returns their
values; ``Undecided`` says that the time limit came first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import gcd
from time import monotonic

from ortools.sat.python import cp_model

from oracle.reading import Previous, Reading
from placewright_models.plan import Worker
from placewright_models.problem import Problem


class Undecided(Exception):
    """The time limit passed before every goal was proved."""


@dataclass(frozen=True)
class Answer:
    """``optimal`` with every goal's value in order and one best placement, or ``infeasible``."""

    status: str
    goals: dict[str, int] = field(default_factory=dict)
    workers: dict[str, tuple[Worker, ...]] = field(default_factory=dict)


def solve(problem: Problem, previous: Previous | None = None, time_limit: float = 60.0, threads: int = 1) -> Answer:
    """The best goal values.

    Raises:
        Undecided: where the time limit passes first.
    """
    plain = PlainModel(Reading(problem, previous))
    end = monotonic() + time_limit
    values: dict[str, int] = {}
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = threads
    solver.parameters.random_seed = 1
    for name in (*plain.r.goals, None):
        if name is None and values:
            break
        objective = plain.goal(name) if name is not None else 0
        plain.model.minimize(objective)
        solver.parameters.max_time_in_seconds = max(0.1, end - monotonic())
        status = solver.solve(plain.model)
        if status == cp_model.INFEASIBLE and not values:
            return Answer("infeasible")
        if status != cp_model.OPTIMAL:
            raise Undecided(f"{name}: {solver.status_name(status)} {plain.model.validate()}")
        if name is not None:
            values[name] = solver.value(objective)
            plain.model.add(objective == values[name])
        plain.hint(solver)
    return Answer("optimal", values, {r.name: plain.workers(c, solver) for c, r in enumerate(plain.r.components)})


class PlainModel:
    """The variables and rules; goals are added when they are asked for."""

    def __init__(self, reading: Reading) -> None:
        self.r = r = reading
        self.model = cp_model.CpModel()
        self.cs, self.ns = range(len(r.components)), range(len(r.nodes))
        self.at: dict[tuple[int, int, int], cp_model.IntVar] = {}
        self.kept: list[cp_model.IntVar] = []
        self.x: dict[tuple[int, int], cp_model.IntVar] = {}
        self.on: dict[tuple[int, int], cp_model.IntVar] = {}
        self.use: dict[tuple[int, int, int], cp_model.IntVar] = {}
        self.load: dict[tuple[int, int, int], cp_model.LinearExpr | int] = {}
        for c in self.cs:
            most = r.bounds(c)[1]
            for n in self.ns:
                self.x[c, n] = self.model.new_int_var(0, most if r.admitted[c][n] else 0, f"x{c},{n}")
                self.on[c, n] = self.has(self.x[c, n])
                self.gpus(c, n)
        for n in self.ns:
            self.node(n)
        for c in self.cs:
            self.component(c)
        self.rules()

    def has(self, expression: cp_model.LinearExprT) -> cp_model.IntVar:
        """A literal that says whether a count is above zero."""
        literal = self.model.new_bool_var("")
        self.model.add(expression >= 1).only_enforce_if(literal)
        self.model.add(expression <= 0).only_enforce_if(~literal)
        return literal

    def any_of(self, literals: Iterable[cp_model.IntVar]) -> cp_model.IntVar:
        """A literal that says whether one of the literals is true."""
        given = list(literals)
        literal = self.model.new_bool_var("")
        self.model.add_max_equality(literal, given) if given else self.model.add(literal == 0)
        return literal

    def multiple(self, expression: cp_model.LinearExprT, of: int, most: int) -> None:
        """The expression is a multiple of a number."""
        times = self.model.new_int_var(0, most // of, "")
        self.model.add(expression == of * times)

    # GPUs of one component on one node

    def gpus(self, c: int, n: int) -> None:
        r, model = self.r, self.model
        component, x = r.components[c], self.x[c, n]
        before = r.kept_before(c, n)
        free, width = r.free[n], r.width(c)
        if component.gpus == 0:
            if before[()]:
                self.keep(x, before[()])
            return
        if r.fractional(c):
            share = r.share(c)
            assert share is not None
            counts = {index: model.new_int_var(0, 10000 // share, "") for index in free}
            model.add(sum(counts.values()) == x)
            self.at.update({(c, n, index): count for index, count in counts.items()})
            for index in free:
                self.use[c, n, index] = self.has(counts[index])
                self.load[c, n, index] = share * counts[index]
                if before[((index, index),)]:
                    self.keep(counts[index], before[((index, index),)])
        else:
            starts = {
                start: model.new_bool_var("")
                for start in free
                if all(index in free for index in range(start, start + width)) and not (component.aligned and start % width)
            }
            model.add(sum(starts.values()) == x)
            self.at.update({(c, n, start): literal for start, literal in starts.items()})
            for start, literal in starts.items():
                ranges = ((start, start + width - 1),)
                if before[ranges]:
                    self.keep(literal, before[ranges])
            given = r.share(c)
            for index in free:
                covering = [literal for start, literal in starts.items() if start <= index < start + width]
                self.use[c, n, index] = model.new_bool_var("")
                model.add(sum(covering) == self.use[c, n, index])
                if given is not None:
                    self.load[c, n, index] = given * self.use[c, n, index]
        if r.consecutive(n) and free:
            # One range: at most one index where use begins.
            begins = []
            for index in free:
                begin = model.new_bool_var("")
                left = self.use[c, n, index - 1] if index > free[0] else 0
                model.add(begin >= self.use[c, n, index] - left)
                begins.append(begin)
            model.add(sum(begins) <= 1)

    def keep(self, count: cp_model.LinearExprT, before: int) -> None:
        kept = self.model.new_int_var(0, before, "")
        self.model.add(kept <= count)
        self.kept.append(kept)

    def node(self, n: int) -> None:
        """Sharing, shares, CPU and memory of one node."""
        r, model = self.r, self.model
        for a in self.cs:
            for b in range(a):
                together = any(a in members and b in members for members in r.same_gpus)
                for index in r.free[n]:
                    use_a, use_b = self.use.get((a, n, index)), self.use.get((b, n, index))
                    if use_a is None or use_b is None:
                        continue
                    if together:
                        model.add(use_a == use_b)
                    elif (a, b) not in r.may_share:
                        model.add_at_most_one(use_a, use_b)
        for index in r.free[n]:
            loads = [self.load[c, n, index] for c in self.cs if (c, n, index) in self.load]
            if loads:
                model.add(sum(loads) <= 10000)
        cpus, memory = r.cpus[n], r.memory[n]
        if cpus is not None:
            model.add(sum(int(r.components[c].cpus * 10000) * self.x[c, n] for c in self.cs) <= cpus)
        if memory is not None:
            model.add(sum(r.components[c].memory * self.x[c, n] for c in self.cs) <= memory)

    # One component on all nodes

    def component(self, c: int) -> None:
        r, model = self.r, self.model
        component = r.components[c]
        low, high = r.bounds(c)
        total = model.new_int_var(low, high, "")
        model.add(sum(self.x[c, n] for n in self.ns) == total)
        if component.nodes is not None:
            model.add(sum(self.on[c, n] for n in self.ns) == component.nodes)
        if isinstance(component.per_node, int):
            for n in self.ns:
                model.add(self.x[c, n] == component.per_node * self.on[c, n])
        elif component.per_node is not None:
            wanted = sorted(set(component.per_node))
            picks = {(n, value): model.new_bool_var("") for n in self.ns for value in wanted}
            for n in self.ns:
                model.add(sum(picks[n, value] for value in wanted) == self.on[c, n])
                model.add(sum(value * picks[n, value] for value in wanted) == self.x[c, n])
            for value in wanted:
                model.add(sum(picks[n, value] for n in self.ns) == component.per_node.count(value))
        if component.per_node_of is not None:
            for n in self.ns:
                model.add(self.x[c, n] == self.on[r.place[component.per_node_of], n])
        if r.needs_whole_nodes(c):
            for n in self.ns:
                whole = r.whole_count(c, n)
                model.add(self.x[c, n] == (0 if whole is None else whole * self.on[c, n]))
        if component.segment_size is not None:
            level = "nvlink_domain" if component.segment_mode == "required" else "cluster"
            for members in self.by_unit_and_size(level).values():
                self.multiple(sum(self.on[c, n] for n in members), component.segment_size, len(members))
        if component.group is not None:
            level = component.group.within if component.group.mode == "required" else "cluster"
            if r.whole_node_groups[c]:
                for (_, size), members in self.by_unit_and_size(level).items():
                    if size and (component.group.workers * r.width(c)) % size == 0:
                        self.multiple(sum(self.on[c, n] for n in members), r.nodes_of_group(c, size), len(members))
            else:
                for members in self.by_unit(level).values():
                    self.multiple(sum(self.x[c, n] for n in members), component.group.workers, high)

    def by_unit(self, level: str) -> dict[tuple[str, str], list[int]]:
        found: dict[tuple[str, str], list[int]] = {}
        for n in self.ns:
            found.setdefault(self.r.unit_or_self(n, level), []).append(n)
        return found

    def by_unit_and_size(self, level: str) -> dict[tuple[tuple[str, str], int], list[int]]:
        found: dict[tuple[tuple[str, str], int], list[int]] = {}
        for n in self.ns:
            found.setdefault((self.r.unit_or_self(n, level), self.r.nodes[n].gpus), []).append(n)
        return found

    def rules(self) -> None:
        """Same and separate nodes and domains."""
        r, model, rules = self.r, self.model, self.r.problem.rules
        nodes = {("node", str(n)): [n] for n in self.ns}
        domains = self.by_unit("nvlink_domain")
        for entries, units in ((rules.same_node, nodes), (rules.same_domain, domains)):
            for entry in entries:
                hosting = [
                    self.any_of(self.on[r.place[name], n] for name in entry for n in members) for members in units.values()
                ]
                model.add(sum(hosting) <= 1)
        for entries, units in ((rules.separate_nodes, nodes), (rules.separate_domains, domains)):
            for entry in entries:
                for members in units.values():
                    model.add_at_most_one(
                        self.any_of(self.on[r.place[name], n] for n in members) for name in dict.fromkeys(entry)
                    )

    # Goals

    def goal(self, name: str) -> cp_model.LinearExprT:
        r = self.r
        components = list(enumerate(r.components))
        domains = self.by_unit("nvlink_domain")
        total = [sum(self.x[c, n] for n in self.ns) for c in self.cs]
        if name == "unplaced":
            return sum(
                component.priority * (component.max_workers - total[c])
                for c, component in components
                if component.max_workers is not None and component.max_workers != component.min_workers
            )
        if name == "moves":
            assert r.previous is not None
            least = []
            for c, component in components:
                old = len(r.previous.get(component.name, ()))
                smaller = self.model.new_int_var(0, old, "")
                self.model.add_min_equality(smaller, [total[c], old])
                least.append(smaller)
            return sum(least) - sum(self.kept)
        if name == "domain_span":
            return sum(
                component.span_weight * self.any_of(self.on[c, n] for n in members)
                for c, component in components
                if component.span_weight
                for members in domains.values()
            )
        if name == "node_span":
            return sum(component.span_weight * self.on[c, n] for c, component in components for n in self.ns)
        if name == "gpu_nodes_used":
            return sum(
                self.x[c, n]
                for c, component in components
                if component.gpus == 0 and component.per_node_of is None
                for n in self.ns
                if r.nodes[n].gpus
            )
        if name == "nodes_used":
            return sum(self.any_of(self.on[c, n] for c in self.cs) for n in self.ns)
        if name == "evenness":
            squares = []
            for c, component in components:
                if component.spread != "even":
                    continue
                for n in self.ns:
                    most = r.bounds(c)[1]
                    square = self.model.new_int_var(0, most * most, "")
                    self.model.add_multiplication_equality(square, [self.x[c, n], self.x[c, n]])
                    squares.append(square)
            return sum(squares)
        if name == "domain_capacity":
            return sum(
                sum(len(r.free[n]) for n in members if any(r.admitted[c][n] for c in self.cs))
                * self.any_of(self.on[c, n] for c in self.cs for n in members)
                for members in domains.values()
            )
        if name == "traffic":
            return sum(entry.weight * self.traffic(*(r.place[name] for name in entry.between)) for entry in r.problem.traffic)
        assert name == "groups_split", name
        return sum(self.split(c) for c in self.cs)

    def traffic(self, a: int, b: int) -> cp_model.LinearExprT:
        r = self.r
        sizes = [r.components[c].max_workers for c in (a, b)]
        # With `auto` the total is part of the answer, and the cost no longer linear: brute force covers that.
        if None in sizes:
            raise Undecided("traffic with an automatic count")
        common = gcd(*sizes) or 1
        w_a, w_b = sizes[0] // common, sizes[1] // common
        places = [[n] for n in self.ns]
        places += [[n for n in members if r.unit(n, "nvlink_domain")] for members in self.by_unit("nvlink_domain").values()]
        cost = []
        for members in filter(None, places):
            excess = self.model.new_int_var(0, w_b * sizes[0], "")
            difference = w_b * sum(self.x[a, n] for n in members) - w_a * sum(self.x[b, n] for n in members)
            self.model.add(excess >= difference)
            cost.append(excess)
        return sum(cost)

    def whole(self, expression: cp_model.LinearExprT, by: int, most: int) -> cp_model.IntVar:
        """How often ``by`` goes into the expression."""
        times = self.model.new_int_var(0, most // by, "")
        self.model.add(by * times <= expression)
        self.model.add(by * times >= expression - (by - 1))
        return times

    def split(self, c: int) -> cp_model.LinearExprT:
        r = self.r
        component = r.components[c]
        cost: cp_model.LinearExprT = 0
        if component.group is not None and component.group.mode == "preferred":
            k, level, high = component.group.workers, component.group.within, r.bounds(c)[1]
            if r.whole_node_groups[c]:
                for here, sign in (("cluster", 1), (level, -1)):
                    for (_, size), members in self.by_unit_and_size(here).items():
                        if size and (k * r.width(c)) % size == 0:
                            count = sum(self.on[c, n] for n in members)
                            cost += sign * self.whole(count, r.nodes_of_group(c, size), len(members))
            else:
                cost += self.whole(sum(self.x[c, n] for n in self.ns), k, high)
                cost -= sum(self.whole(sum(self.x[c, n] for n in members), k, high) for members in self.by_unit(level).values())
        if component.segment_size is not None and component.segment_mode == "preferred":
            for here, sign in (("cluster", 1), ("nvlink_domain", -1)):
                for members in self.by_unit_and_size(here).values():
                    if sign == 1 or r.unit(members[0], "nvlink_domain"):
                        cost += sign * self.whole(sum(self.on[c, n] for n in members), component.segment_size, len(members))
        return cost

    def hint(self, solver: cp_model.CpSolver) -> None:
        """Start the next goal from the last answer."""
        self.model.clear_hints()
        for index in range(len(self.model.proto.variables)):
            variable = self.model.get_int_var_from_proto_index(index)
            value = solver.value(variable)
            if abs(value) < 2**62:  # OR-Tools now and then reports a variable it dropped as INT_MIN, which no hint may be
                self.model.add_hint(variable, value)

    def workers(self, c: int, solver: cp_model.CpSolver) -> tuple[Worker, ...]:
        """The component's workers, those of one group after each other."""
        r = self.r
        component, last = r.components[c], (r.width(c) or 1) - 1
        level = component.group.within if component.group is not None else "cluster"
        found: list[Worker] = []
        for n in sorted(self.ns, key=lambda n: (r.unit_or_self(n, level), r.nodes[n].gpus, n)):
            if component.gpus == 0:
                found += [Worker(r.nodes[n].id, ())] * solver.value(self.x[c, n])
            for start in r.free[n]:
                if (c, n, start) in self.at:
                    found += [Worker(r.nodes[n].id, ((start, start + last),))] * solver.value(self.at[c, n, start])
        return tuple(found)
