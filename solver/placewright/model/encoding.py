"""A problem as a CP-SAT model: areas, cells, totals; the frame that rules and goals fill in.

Usage: ``encoding = Encoding(Prepared(problem, params))``; then ``encoding.objective(name)`` is a goal's expression and
``encoding.contents(value)`` reads a solution back. Which encoding each class of nodes and domains gets is decided here:
equal domains are counted together where no rule or goal needs them one by one; node patterns are counted unless a class
has too many. Modify this file when that choice changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from ortools.sat.python import cp_model

from placewright.frame.features import Feature, Workers
from placewright.frame.frame import Mixed, Nodes, Place, Unit
from placewright.frame.needs import Needs
from placewright.goals import GOAL_BY_NAME, GOALS
from placewright.index.topology import Domain, NodeClass
from placewright.model.blocks import Area, DomainsBySet, OneDomain, Part, PooledDomains, SingleNodes, sum_known
from placewright.model.cells import Cell, NodeCell, NodeVariables, PatternCell
from placewright.model.component_sets import Members, Sets, in_order
from placewright.model.even import squares
from placewright.model.group_counts import GroupCounts
from placewright.model.instance import Prepared
from placewright.model.patterns import Pattern
from placewright.rules import RULES
from placewright_models.cluster import CLUSTER_LEVEL, DOMAIN_LEVEL, NODE_LEVEL


class _Class(NamedTuple):
    """Equal domains, and the node classes in them on which something may lie."""

    domains: list[Domain]
    usable: list[int]


class Encoding:
    """The model of one problem.

    Attributes:
        placed: per component the number of its workers: an int, or a variable where it is elastic.
        areas: every area with its cells.
    """

    def __init__(
        self,
        prepared: Prepared,
        *,
        pooled: bool = False,
        by_set: bool = False,
        within: int | None = None,
        only: Mapping[NodeClass, Collection[Pattern]] | None = None,
    ) -> None:
        """Build the whole model.

        Args:
            pooled: mix the nodes of equal domains freely: a relaxation, whose optima are lower bounds.
            by_set: only those of domains that host the same set of components: a stronger relaxation, with more variables.
            within: only plans with a domain_span of at most this; fewer sets of components can then lie in one domain.
            only: the patterns that nodes of a class may have: a restriction, whose solutions are solutions.
        """
        self.prepared = prepared
        self.params = prepared.params
        self.problem = prepared.problem
        self.job = prepared.job
        self.local = prepared.local
        self.topology = prepared.topology
        self.exact = prepared.needs.exact
        self.bounds = prepared.bounds
        self.pooled = pooled
        self.by_set = by_set
        self.within = within
        self.patterns = prepared.patterns if only is None else _restricted(prepared, only)
        self.sets = Sets(prepared, self.patterns, within)
        self.model = cp_model.CpModel()
        self.areas: list[Area] = []
        self.groups = GroupCounts(self)
        self._mixed: dict[str, Part] = {}
        self._names: set[str] = set()
        self.placed: list[Any] = [self._placed(c) for c in range(self.job.count)]
        self._build()
        self.needs = self._needs()
        self._number_loose()
        for rule in RULES:
            rule.encode(self)
        # Whatever the order of the goals, the model is the same.
        expressions = {goal.name: goal.expression(self) for goal in GOALS if goal.name in self.problem.goals}
        self.objectives = {name: expressions[name] for name in self.problem.goals}
        if within is not None:
            add_to(self.model, self.objectives["domain_span"] <= within)
        self._finish()

    # Building

    def _placed(self, c: int) -> Any:
        component = self.job.components[c]
        low = component.min_workers or 0
        high = component.max_workers if component.max_workers is not None else len(self.problem.cluster.nodes)
        return low if low == high else self.model.new_int_var(low, high, f"{component.name}.workers")

    def _build(self) -> None:
        together: list[_Class] = []
        chosen = self.sets.chosen()
        for g, domains in enumerate(self.topology.domain_classes()):
            usable = [t for t in sorted(domains[0].nodes) if self.prepared.usable(t)]
            if not usable:
                continue
            if not domains[0].known:
                self._add_single_nodes(domains, usable[0], f"nodes{g}")
            elif self.pooled and len(domains) > 1:
                if self.by_set and self.sets.of(domains[0]):
                    self._add_by_set([_Class(domains, usable)], f"pool{g}")
                else:
                    self._add_pooled(domains, usable, f"pool{g}")
            elif g in chosen:
                together.append(_Class(domains, usable))
            else:
                for d, domain in enumerate(domains):
                    self._add_domain(domain, usable, f"domain{g}.{d}")
        if together:
            self._add_by_set(together, "domains")

    def _add_single_nodes(self, domains: list[Domain], t: int, name: str) -> None:
        area = SingleNodes(domains, name)
        part = area.part(name, [(len(domains), domains)])
        found = self.patterns[t]
        node_class = self.topology.classes[t]
        if found is not None:
            cell = PatternCell(self.model, node_class, len(domains), found, self.exact, name)
            area.add(part, cell, [domain.nodes[t] for domain in domains])
        else:
            for d, domain in enumerate(domains):
                variables = NodeVariables(self.model, self.local, node_class, f"{name}.{d}")
                area.add(part, NodeCell(variables), [domain.nodes[t]])
            self._order_nodes([cell for cell in area.cells if isinstance(cell, NodeCell)])
        self.areas.append(area)

    def _add_domain(self, domain: Domain, usable: list[int], name: str) -> None:
        area = OneDomain(self.model, [domain], name, self.job.count)
        part = area.part(name, [(1, [domain])])
        for t in usable:
            nodes = domain.nodes[t]
            found = self.patterns[t]
            node_class = self.topology.classes[t]
            if found is not None:
                cell = PatternCell(self.model, node_class, len(nodes), found, self.exact, f"{name}.class{t}")
                area.add(part, cell, [nodes])
                continue
            cells = []
            for n, node in enumerate(nodes):
                variables = NodeVariables(self.model, self.local, node_class, f"{name}.class{t}.{n}")
                cells.append(NodeCell(variables))
                area.add(part, cells[-1], [[node]])
            self._order_nodes(cells)
        for c in range(self.job.count):
            area.link(c)
        self.areas.append(area)

    def _add_pooled(self, domains: list[Domain], usable: list[int], name: str) -> None:
        area = PooledDomains(self.model, domains, name, self.job.count)
        part = area.part(name, [(len(domains), domains)])
        for t in usable:
            size = len(domains[0].nodes[t]) * len(domains)
            label = f"{name}.class{t}"
            cell = PatternCell(self.model, self.topology.classes[t], size, self.patterns[t] or [], self.exact, label)
            area.add(part, cell, [domain.nodes[t] for domain in domains])
        for c in range(self.job.count):
            area.link(c)
        self.areas.append(area)
        self._mixed[part.name] = part

    def _add_by_set(self, classes: list[_Class], name: str) -> None:
        area = DomainsBySet([domain for kind in classes for domain in kind.domains], name)
        choices: dict[Members, list[tuple[Any, list[Domain]]]] = {}
        for g, kind in enumerate(classes):
            numbers = []
            for members in self.sets.of(kind.domains[0]) or []:
                label = f"{name}.{g}.set{'_'.join(map(str, sorted(members)))}"
                numbers.append(self.model.new_int_var(0, len(kind.domains), label))
                choices.setdefault(members, []).append((numbers[-1], kind.domains))
            self.model.add(sum(numbers) <= len(kind.domains))
        every = sorted({t for kind in classes for t in kind.usable})
        for members in in_order(set(choices)):
            part = area.part(f"{name}.set{'_'.join(map(str, sorted(members)))}", choices[members], members)
            for t in every:
                self._add_cell(area, part, t, f"{part.name}.class{t}")
        self.areas.append(area)
        if self.pooled:
            self._mixed.update((part.name, part) for part in area.parts)

    def _add_cell(self, area: Area, part: Part, t: int, name: str) -> None:
        """The nodes of class t in domains that chose the part's set."""
        members = part.members or frozenset()
        held = zip(self.patterns[t] or [], self.sets.supports(t), strict=True)
        inside = [pattern for pattern, support in held if support <= members]

        def each(domain: Domain) -> int:
            return len(domain.nodes.get(t, ()))

        size = sum(each(domains[0]) * len(domains) for _, domains in part.choices)
        if size and inside:
            cell = PatternCell(
                self.model, self.topology.classes[t], size, inside, self.exact, name, bound=part.number(each)
            )
            area.add(part, cell, [domain.nodes.get(t, []) for domain in area.domains])

    # Symmetry: only between provably equal nodes, and switchable, so that tests can solve without. Ordering equal
    # domains was tried and lost (docs/model.md): the solver finds that symmetry itself.

    def _order_nodes(self, cells: list[NodeCell]) -> None:
        """Equal nodes in order of what they hold."""
        if self.params.break_symmetry:
            weights = [len(self.job.components) - c for c in range(self.job.count)]
            loads = [sum(w * x for w, x in zip(weights, cell.variables.x, strict=True)) for cell in cells]
            for first, second in pairwise(loads):
                self.model.add(first >= second)

    # Between building and stating: what the rules and goals declared

    def _needs(self) -> Needs:
        """What was declared, and what follows from how nodes are encoded: levels count the nodes of one encoding only."""
        needs = self.prepared.needs
        if all(isinstance(cell, PatternCell) for cell in self.cells):
            return needs
        return needs | Needs(per_place=needs.squares - needs.exact)

    def _number_loose(self) -> None:
        """A variable per cell for loose components of which somebody asks how many workers are where."""
        for c in sorted(self.needs.per_place - self.needs.exact):
            for cell in self.cells:
                if isinstance(cell, PatternCell):
                    most = max((pattern[c] for pattern in cell.patterns), default=0) * cell.size
                    if most:
                        number = cell.numbers[c] = self.number(f"{cell.name}.workers{c}", most)
                        self.model.add(number <= cell.room(c))
                        self.model.add(number >= cell.least(c))

    # What rules and goals ask (frame/frame.py)

    def add(self, constraint: Any) -> None:
        add_to(self.model, constraint)

    def number(self, name: str, most: int = 10**8) -> Any:
        if name in self._names:
            raise ValueError(f"two variables of the model would be called {name}")
        self._names.add(name)
        return self.model.new_int_var(0, most, name)

    @property
    def cells(self) -> Iterator[Cell]:
        """Every cell of every area."""
        for area in self.areas:
            yield from area.cells

    @property
    def nodes(self) -> Iterator[Cell]:
        return self.cells

    @property
    def domains(self) -> Iterator[Part]:
        for area in self.areas:
            yield from area.parts

    def total(self, feature: Feature) -> Any:
        return sum(cell.total(feature) for cell in self.cells)

    def most_alone(self, node_class: NodeClass, c: int) -> int:
        return self.local.counts(node_class, c)[-1]

    def squares(self, c: int) -> Any:
        if c not in self.needs.squares:
            raise ValueError(f"{self.job.components[c].name}: declare it in Needs.squares before asking for its squares")
        return squares(self, c)

    def mixed(self, unit: Unit, c: int) -> Mixed | None:
        part = self._mixed.get(unit.name)
        return None if part is None or not part.cells else Mixed(part.area.domains[0], part.may_host(c))

    def shared(self, level: Place, components: tuple[int, ...]) -> Any | None:
        places: Iterable[Cell | Area] = self.cells if level == "nodes" else self.areas
        return sum_known(place.shared(components) for place in places)

    def least(self, name: str) -> int:
        """A lower bound of the goal from counting."""
        return GOAL_BY_NAME[name].least(self) if name in GOAL_BY_NAME else 0

    def implied(self, name: str, value: int) -> list[Any]:
        """Constraints that follow from the goal being at most ``value``."""
        return list(GOAL_BY_NAME[name].implied(self, value)) if name in GOAL_BY_NAME else []

    def workers(self, nodes: Iterable[Nodes], c: int) -> Any:
        if c in self.needs.exact:
            return sum(some.total(Workers(c)) for some in nodes)
        if c not in self.needs.per_place:
            raise ValueError(f"{self.job.components[c].name}: declare it in Needs.per_place before asking for workers")
        return sum(some.numbers.get(c, 0) if isinstance(some, PatternCell) else some.total(Workers(c)) for some in nodes)

    def units(self, level: str) -> Iterator[Unit]:
        if level in (CLUSTER_LEVEL, NODE_LEVEL):
            yield Unit(level, level, list(self.cells), alone=level == NODE_LEVEL)
            return
        by_unit: dict[tuple[str, str], list[Cell]] = {}
        alone: list[Cell] = []
        for area in self.areas:
            if level == DOMAIN_LEVEL:
                if area.single_nodes:
                    alone.extend(area.cells)
                else:
                    yield from (Unit(part.name, level, part.cells) for part in area.parts)
                continue
            unit = area.domains[0].units[self.topology.levels.index(level)]
            for cell in area.cells:
                if level in cell.node_class.unknown or unit is None:
                    alone.append(cell)
                else:
                    by_unit.setdefault(unit, []).append(cell)
        for (_, name), cells in by_unit.items():
            yield Unit(f"unit.{level}.{name}", level, cells)
        if alone:
            yield Unit(f"alone.{level}", level, alone, alone=True)

    def hold(self, name: str, value: int) -> None:
        """The goal is at most ``value``, and no longer searched: it is known that it cannot be less."""
        expression = self.objectives[name]
        if not isinstance(expression, int):
            self.add_at_most(self.model, name, expression, value)
            self.objectives[name] = value

    def add_at_most(self, model: cp_model.CpModel, name: str, expression: Any, value: int) -> None:
        """To this model or a copy of it: the goal is at most ``value``, and what follows from that."""
        for constraint in (expression <= value, *self.implied(name, value)):
            add_to(model, constraint)

    # Finishing and reading back

    def _finish(self) -> None:
        """Tie the cells to the number of workers asked."""
        for c in range(self.job.count):
            if c in self.exact:
                self.model.add(self.total(Workers(c)) == self.placed[c])
            elif c in self.needs.per_place:
                self.add(self.workers(self.cells, c) == self.placed[c])
            else:
                self.model.add(sum(cell.room(c) for cell in self.cells) >= self.placed[c])
                self.model.add(sum(cell.least(c) for cell in self.cells) <= self.placed[c])
        self.bounds.add_to(self)

    def contents(self, value: Any) -> list[tuple[Area, Part, Cell, list[tuple[Pattern, int]]]]:
        """After solving: per cell the patterns with their numbers of nodes, empty cells left out."""
        found = []
        for area in self.areas:
            for part in area.parts:
                for cell in part.cells:
                    held = cell.contents(value)
                    if held:
                        found.append((area, part, cell, held))
        return found


def _restricted(prepared: Prepared, only: Mapping[NodeClass, Collection[Pattern]]) -> list[list[Pattern] | None]:
    """The patterns of each class that ``only`` allows."""
    return [
        None if found is None else [pattern for pattern in found if pattern in only.get(node_class, ())]
        for node_class, found in zip(prepared.topology.classes, prepared.patterns, strict=True)
    ]


def add_to(model: cp_model.CpModel, constraint: Any) -> None:
    """Add a constraint to a model; one that fell to a plain truth value is kept as such."""
    if constraint is False:
        model.add_bool_or([])
    elif constraint is not True:
        model.add(constraint)
