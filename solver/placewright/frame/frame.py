"""The model as rules and goals see it: nodes, domains and units, and sums over them. They see nothing else of it.

A rule states constraints with ``frame.add``, a goal returns an expression; both are built from what is here::

    for unit in frame.units("rack"):
        if not unit.alone:
            frame.add(frame.workers(unit.nodes, c) <= 4)

An *expression* is an int or a linear expression of OR-Tools. The order of the calls says nothing: all that a rule or goal
relies on is what the problem's rules and goals declared before (``needs.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from placewright.frame.features import Feature
from placewright.index.job import Job
from placewright.index.topology import Domain, NodeClass, Topology
from placewright_models.problem import Problem

Place = Literal["nodes", "domains"]
"""What a span counts."""


class Nodes(Protocol):
    """Equal nodes of one unit, counted together."""

    @property
    def node_class(self) -> NodeClass:
        """What a rule can see of each of them."""
        ...

    def total(self, feature: Feature) -> Any:
        """The feature summed over the nodes, as an expression."""
        ...


def one(domain: Domain) -> int:
    """Counts domains."""
    return 1


class Domains(Protocol):
    """One NVLink domain, or several counted together; or nodes without one, each of which is a domain of its own.

    A weight is the same for all domains that are equal.
    """

    @property
    def name(self) -> str:
        """Unique in the model, for names of variables."""
        ...

    @property
    def known(self) -> bool:
        """False for nodes without a domain."""
        ...

    @property
    def nodes(self) -> Sequence[Nodes]:
        """Their nodes."""
        ...

    def number(self, weight: Callable[[Domain], int] = one) -> Any:
        """How many domains there are, or what they weigh, as an expression: which of them are counted here may be open."""
        ...

    def most(self, weight: Callable[[Domain], int]) -> int:
        """What they weigh at most."""
        ...

    def hosting(self, components: tuple[int, ...], weight: Callable[[Domain], int] = one) -> Any:
        """How many host any of the components, or what those weigh (at least that: minimise it, or bound it from above)."""
        ...

    def may_host(self, c: int, weight: Callable[[Domain], int] = one) -> Any:
        """How many may host the component, or what those weigh: what c has there is at most that many domains' worth."""
        ...


@dataclass(frozen=True, slots=True)
class Unit:
    """One unit of a level: its nodes. Where ``alone``, each of them is a unit of its own. The name is unique in the model."""

    name: str
    level: str
    nodes: Sequence[Nodes]
    alone: bool = False


class Mixed(NamedTuple):
    """Equal domains whose nodes a relaxation mixes: one of them, and how many of them may host a component."""

    domain: Domain
    hosting: Any


class Together(Protocol):
    """Components that may not share GPUs."""

    @property
    def members(self) -> tuple[int, ...]:
        """The components."""
        ...

    @property
    def places(self) -> Mapping[Place, int]:
        """The fewest nodes, and the fewest domains, whose GPUs hold them all."""
        ...


class Counting(Protocol):
    """What counting alone says of the problem (model/bounds.py)."""

    @property
    def together(self) -> Sequence[Together]:
        """Every largest set of components that may not share GPUs."""
        ...

    def least_span(self, level: Place) -> int:
        """A lower bound of span_weight x places, summed over components."""
        ...

    def most_shared(self, level: Place, value: int) -> Iterator[tuple[tuple[int, ...], int]]:
        """Sets of components, and how many places they may share where the span is at most ``value``."""
        ...


class Frame(Protocol):
    """The model of one problem."""

    @property
    def job(self) -> Job:
        """Components by index."""
        ...

    @property
    def problem(self) -> Problem:
        """What is asked."""
        ...

    @property
    def topology(self) -> Topology:
        """Nodes and domains by class."""
        ...

    @property
    def placed(self) -> Sequence[Any]:
        """Per component the number of its workers: an int, or an expression where it is elastic."""
        ...

    @property
    def bounds(self) -> Counting:
        """Lower bounds by counting."""
        ...

    @property
    def nodes(self) -> Iterator[Nodes]:
        """All nodes."""
        ...

    @property
    def domains(self) -> Iterator[Domains]:
        """All domains, and the nodes without one."""
        ...

    def units(self, level: str) -> Iterator[Unit]:
        """Nodes by unit of the level."""
        ...

    def total(self, feature: Feature) -> Any:
        """The feature summed over all nodes."""
        ...

    def workers(self, nodes: Iterable[Nodes], c: int) -> Any:
        """Workers of c on these nodes; c is declared in ``Needs.per_place`` or ``Needs.exact``."""
        ...

    def most_alone(self, node_class: NodeClass, c: int) -> int:
        """The most workers of c on a node of the class where nothing else is."""
        ...

    def squares(self, c: int) -> Any:
        """Squared numbers of workers per node, summed (at least: minimise it); c is declared in ``Needs.squares``."""
        ...

    def groups(self, unit: Unit, c: int) -> Mapping[int, Any]:
        """Whole groups of c in the unit: a variable by the size of nodes that groups fill, under 0 where they fill none.

        Who declared (c, level) in ``Needs.groups`` ties them to the workers there; every other rule or goal may use them.
        Empty where nobody did.
        """
        ...

    def mixed(self, unit: Unit, c: int) -> Mixed | None:
        """What is known of the single domains of the unit; None where it is one."""
        ...

    def shared(self, level: Place, components: tuple[int, ...]) -> Any | None:
        """Hosted components beyond the first, summed over nodes or domains; None where that would need more variables."""
        ...

    def number(self, name: str, most: int = 10**8) -> Any:
        """A new variable from 0 to ``most``; the name is unique in the model.

        Raises:
            ValueError: if the name is taken.
        """
        ...

    def add(self, constraint: Any) -> None:
        """State a constraint; a plain truth value is one too."""
        ...


def by_size(nodes: Iterable[Nodes]) -> dict[int, list[Nodes]]:
    """Nodes by the number of their GPUs."""
    found: dict[int, list[Nodes]] = {}
    for some in nodes:
        found.setdefault(some.node_class.gpus, []).append(some)
    return found
