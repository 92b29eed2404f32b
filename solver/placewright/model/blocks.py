"""Areas: one NVLink domain, many together by the set of components that they host, or equal nodes without a domain.

Counting domains together loses nothing for the rules and goals that allow it (``Rule.per_domain``); the proof is in
``docs/model.md``. An area knows its cells and how many of its domains host a component. Modify this file when domains get
another encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from placewright.frame.features import Hosts
from placewright.frame.frame import one
from placewright.index.topology import Domain
from placewright.model.cells import Cell
from placewright_models.cluster import Node

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


def sum_known(expressions: Iterable[Any | None]) -> Any | None:
    """The sum, None where one of them is."""
    total: Any = 0
    for expression in expressions:
        if expression is None:
            return None
        total = total + expression
    return total


def times(weight: int, expression: Any) -> Any:
    """The product; a plain 0 where the weight is: OR-Tools 9.12 cannot add its own constants."""
    return weight * expression if weight else 0


@dataclass(slots=True)
class Part:
    """Cells of an area under one choice of components that may lie there: what rules and goals see of domains.

    ``choices``: of each class of equal domains, how many made this choice (an expression), and all domains of the class;
    ``members``: those components, None for all.
    """

    area: Area
    name: str
    choices: list[tuple[Any, list[Domain]]]
    members: frozenset[int] | None = None
    cells: list[Cell] = field(default_factory=list)

    @property
    def known(self) -> bool:
        """False for nodes without a domain."""
        return not self.area.single_nodes

    @property
    def nodes(self) -> Sequence[Cell]:
        """The cells, as rules call them."""
        return self.cells

    def number(self, weight: Callable[[Domain], int] = one) -> Any:
        """How many domains made this choice, or what they weigh (equal domains weigh the same)."""
        # A new sum each time: sums of OR-Tools change in place when something is added to them.
        return sum(times(weight(domains[0]), number) for number, domains in self.choices)

    def most(self, weight: Callable[[Domain], int]) -> int:
        """What they weigh at most."""
        return sum(weight(domains[0]) * len(domains) for _, domains in self.choices)

    def hosting(self, components: tuple[int, ...], weight: Callable[[Domain], int] = one) -> Any:
        """How many of these domains host any of the components (at least)."""
        return self.area.hosting_in(self, components, weight)

    def may_host(self, c: int, weight: Callable[[Domain], int] = one) -> Any:
        """How many of these domains may host the component."""
        return self.area.may_host(self, c, weight)


class Area:
    """Domains counted together, with their cells.

    Attributes:
        domains: the domains, topological order; for nodes without a domain, one domain per node.
        nodes: for each cell (by position in ``cells``) the nodes of each domain that it stands for.
        units: level -> unit name, for the levels that matter; None where unknown.
    """

    def __init__(self, domains: Sequence[Domain], name: str) -> None:
        self.domains = list(domains)
        self.name = name
        self.parts: list[Part] = []
        self.cells: list[Cell] = []
        self.nodes: list[list[list[Node]]] = []

    @property
    def single_nodes(self) -> bool:
        """Each node of the area is a domain of its own."""
        return not self.domains[0].known

    def part(self, name: str, choices: list[tuple[Any, list[Domain]]], members: frozenset[int] | None = None) -> Part:
        """A new part of the area."""
        self.parts.append(Part(self, name, choices, members))
        return self.parts[-1]

    def add(self, part: Part, cell: Cell, nodes: list[list[Node]]) -> None:
        """Put a cell into a part; ``nodes`` holds, per domain, the nodes that the cell stands for."""
        part.cells.append(cell)
        self.cells.append(cell)
        self.nodes.append(nodes)

    def hosting(self, components: tuple[int, ...], weight: Callable[[Domain], int] = one) -> Any:
        """How many domains of the area host any of the components (at least; minimise or bound it from above).

        Args:
            weight: what a domain counts; the same for equal domains.
        """
        return sum(part.hosting(components, weight) for part in self.parts)

    def hosting_in(self, part: Part, components: tuple[int, ...], weight: Callable[[Domain], int] = one) -> Any:
        """The same of one part."""
        raise NotImplementedError

    def shared(self, components: tuple[int, ...]) -> Any | None:
        """Hosted components beyond the first, summed over the domains; None where that would need more variables."""
        return None

    def may_host(self, part: Part, c: int, weight: Callable[[Domain], int] = one) -> Any:
        """How many domains of the part may host the component, or what they weigh, as an expression."""
        raise NotImplementedError


class SingleNodes(Area):
    """Equal nodes without a known domain: each is a domain, so domains are counted as nodes."""

    def hosting_in(self, part: Part, components: tuple[int, ...], weight: Callable[[Domain], int] = one) -> Any:
        return times(weight(self.domains[0]), sum(cell.total(Hosts(components)) for cell in self.cells))

    def shared(self, components: tuple[int, ...]) -> Any | None:
        return sum_known(cell.shared(components) for cell in self.cells)

    def may_host(self, part: Part, c: int, weight: Callable[[Domain], int] = one) -> Any:
        return self.hosting_in(part, (c,), weight)


class HostedDomains(Area):
    """Equal domains with a number per component: how many of them host it."""

    def __init__(self, model: cp_model.CpModel, domains: Sequence[Domain], name: str, count: int) -> None:
        super().__init__(domains, name)
        self.model = model
        self.hosts = [model.new_int_var(0, len(domains), f"{name}.hosts{c}") for c in range(count)]
        self._any: dict[tuple[int, ...], Any] = {}

    def link(self, c: int) -> None:
        """No more nodes host c than the domains that host it have."""
        for cell in self.cells:
            hosting = cell.total(Hosts((c,)))
            if not isinstance(hosting, int):
                self.model.add(hosting <= cell.size // len(self.domains) * self.hosts[c])

    def hosting_in(self, part: Part, components: tuple[int, ...], weight: Callable[[Domain], int] = one) -> Any:
        if len(components) == 1:
            return times(weight(self.domains[0]), self.hosts[components[0]])
        known = self._any.get(components)
        if known is None:
            known = self._any[components] = self.model.new_int_var(0, len(self.domains), f"{self.name}.hosts{components}")
            for c in components:
                self.model.add(known >= self.hosts[c])
        return times(weight(self.domains[0]), known)

    def may_host(self, part: Part, c: int, weight: Callable[[Domain], int] = one) -> Any:
        return times(weight(self.domains[0]), self.hosts[c])


class OneDomain(HostedDomains):
    """One domain: it hosts a component or not."""


class PooledDomains(HostedDomains):
    """Several equal domains as if their nodes could be mixed freely: a relaxation, for bounds only (see staged.py)."""


class DomainsBySet(Area):
    """Domains, equal or not, by the set of components that they may host.

    How many domains of each class chose each set is a variable; nodes of equal domains and unequal ones are counted together
    where the set is the same.
    """

    def _sharing(self, components: tuple[int, ...]) -> list[tuple[Part, int]]:
        """Parts that may host any of the components, and how many of them."""
        wanted = frozenset(components)
        return [(part, hosted) for part in self.parts if (hosted := len(wanted & (part.members or frozenset())))]

    def hosting_in(self, part: Part, components: tuple[int, ...], weight: Callable[[Domain], int] = one) -> Any:
        return part.number(weight) if part.members is not None and not part.members.isdisjoint(components) else 0

    def shared(self, components: tuple[int, ...]) -> Any | None:
        return sum((hosted - 1) * part.number() for part, hosted in self._sharing(components) if hosted > 1)

    def may_host(self, part: Part, c: int, weight: Callable[[Domain], int] = one) -> Any:
        return part.number(weight) if part.members is not None and c in part.members else 0
