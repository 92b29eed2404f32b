"""Numbers that rules and goals add up over nodes, each said twice: for a pattern of counts, and for a node's variables.

A feature is a small value object. ``of`` evaluates it on the counts of one node (a pattern is then a constant
coefficient), ``express`` builds it from a node's integer variables. Modify this file when a goal or a rule must sum
something new over nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class NodeVariables(Protocol):
    """One node with a variable per component: ``x[c]`` workers (an expression), at most ``most[c]``."""

    @property
    def name(self) -> str:
        """Unique in the model."""
        ...

    @property
    def model(self) -> Any:
        """The ``CpModel``."""
        ...

    @property
    def x(self) -> Sequence[Any]:
        """Workers of each component."""
        ...

    @property
    def most(self) -> Sequence[int]:
        """The most workers of each component."""
        ...

    def hosts(self, components: tuple[int, ...]) -> Any:
        """1 where the node hosts any of the components, as an expression."""
        ...


@dataclass(frozen=True, slots=True)
class Workers:
    """Workers of a component (exact components only in patterns)."""

    c: int

    def of(self, counts: Sequence[int]) -> int:
        return counts[self.c]

    def express(self, node: NodeVariables) -> Any:
        return node.x[self.c]


@dataclass(frozen=True, slots=True)
class Hosts:
    """1 where the node hosts any of the components."""

    components: tuple[int, ...]

    def of(self, counts: Sequence[int]) -> int:
        return int(any(counts[c] for c in self.components))

    def express(self, node: NodeVariables) -> Any:
        return node.hosts(self.components)


@dataclass(frozen=True, slots=True)
class Equals:
    """1 where the node holds exactly ``value`` workers of the component."""

    c: int
    value: int

    def of(self, counts: Sequence[int]) -> int:
        return int(counts[self.c] == self.value)

    def express(self, node: NodeVariables) -> Any:
        model, x = node.model, node.x[self.c]
        equal = model.new_bool_var(f"{node.name}.equals{self.c}.{self.value}")
        model.add(x == self.value).only_enforce_if(equal)
        model.add(x != self.value).only_enforce_if(~equal)
        return equal


@dataclass(frozen=True, slots=True)
class Quotient:
    """Whole groups of ``size`` workers on the node (at most that many in variables: maximise it)."""

    c: int
    size: int

    def of(self, counts: Sequence[int]) -> int:
        return counts[self.c] // self.size

    def express(self, node: NodeVariables) -> Any:
        quotient = node.model.new_int_var(0, node.most[self.c] // self.size, f"{node.name}.groups{self.c}.{self.size}")
        node.model.add(self.size * quotient <= node.x[self.c])
        return quotient


@dataclass(frozen=True, slots=True)
class Square:
    """The square of the component's workers on the node."""

    c: int

    def of(self, counts: Sequence[int]) -> int:
        return counts[self.c] ** 2

    def express(self, node: NodeVariables) -> Any:
        most = node.most[self.c]
        if most <= 1:
            return node.x[self.c]
        square = node.model.new_int_var(0, most * most, f"{node.name}.square{self.c}")
        node.model.add_multiplication_equality(square, [node.x[self.c], node.x[self.c]])
        return square


@dataclass(frozen=True, slots=True)
class Excess:
    """max(0, weight_b * x_a - weight_a * x_b): workers of a without their share of b (at least that in variables)."""

    a: int
    b: int
    weight_a: int
    weight_b: int

    def of(self, counts: Sequence[int]) -> int:
        return max(0, self.weight_b * counts[self.a] - self.weight_a * counts[self.b])

    def express(self, node: NodeVariables) -> Any:
        most = self.weight_b * node.most[self.a]
        if not most:
            return 0
        excess = node.model.new_int_var(0, most, f"{node.name}.excess{self.a}.{self.b}")
        node.model.add(excess >= self.weight_b * node.x[self.a] - self.weight_a * node.x[self.b])
        return excess


Feature = Workers | Hosts | Equals | Quotient | Square | Excess
