"""Cells: the nodes of one class in one area, and the variables that say what lies on them.

A *pattern cell* counts how many of its nodes have each pattern; a *node cell* is one node with a variable per component,
used where a class has too many patterns. Both answer the same questions: the sum of a feature over their nodes, and the
bounds between which the number of workers of a loose component may lie. Modify this file when nodes get a third encoding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from placewright.frame.features import Feature, Hosts, Workers
from placewright.index.topology import NodeClass
from placewright.model.local import Local
from placewright.model.patterns import Pattern
from placewright.node.conflicts import cotree, has_prime, maximal_cliques
from placewright.node.gpu_model import GpuModel

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


class Cell(Protocol):
    """Nodes of one class in one area."""

    name: str
    node_class: NodeClass
    size: int

    def total(self, feature: Feature) -> Any:
        """The feature summed over the cell's nodes, as an expression."""
        ...

    def room(self, c: int) -> Any:
        """The most workers of c that the chosen patterns hold, as an expression."""
        ...

    def least(self, c: int) -> Any:
        """The fewest workers of c that the chosen patterns hold (each hosting node holds one at least)."""
        ...

    def shared(self, components: tuple[int, ...]) -> Any | None:
        """Hosted components beyond the first, summed over the nodes; None where that would need more variables."""
        ...

    def contents(self, value: Callable[[Any], int]) -> list[tuple[Pattern, int]]:
        """After solving: patterns with the number of nodes that have them; ``value`` reads a variable."""
        ...


class PatternCell:
    """``size`` equal nodes: one integer variable per pattern (and per allowed set of components, see areas)."""

    def __init__(
        self,
        model: cp_model.CpModel,
        node_class: NodeClass,
        size: int,
        patterns: Sequence[Pattern],
        exact: frozenset[int],
        name: str,
        bound: Any = None,
    ) -> None:
        """``bound``: an expression for the number of nodes (of domains that may host the cell's set); default ``size``.

        ``numbers`` takes a variable per loose component whose workers on these nodes are asked for (``Encoding.workers``).
        """
        self.node_class = node_class
        self.size = size
        self.patterns = list(patterns)
        self.exact = exact
        self.name = name
        self.numbers: dict[int, Any] = {}
        self._totals: dict[Feature, list[Any]] = {}
        # By what they are: the same pattern has the same name in another model of the problem.
        self.count = [model.new_int_var(0, size, f"{name}.pattern{'_'.join(map(str, p))}") for p in self.patterns]
        if self.count:
            model.add(sum(self.count) <= (size if bound is None else bound))

    def _weighted(self, weights: Sequence[int]) -> Any:
        return sum(self._terms(weights))

    def _terms(self, weights: Sequence[int]) -> list[Any]:
        # Not LinearExpr.weighted_sum: OR-Tools 9.12 cannot add its result to a sum.
        return [y if w == 1 else w * y for w, y in zip(weights, self.count, strict=True) if w]

    def total(self, feature: Feature) -> Any:
        known = self._totals.get(feature)
        if known is None:
            known = self._totals[feature] = self._terms([feature.of(pattern) for pattern in self.patterns])
        # A new sum each time: sums of OR-Tools change in place when something is added to them.
        return sum(known)

    def room(self, c: int) -> Any:
        return self._weighted([pattern[c] for pattern in self.patterns])

    def least(self, c: int) -> Any:
        return self.room(c) if c in self.exact else self.total(Hosts((c,)))

    def shared(self, components: tuple[int, ...]) -> Any | None:
        return self._weighted([max(0, sum(pattern[c] > 0 for c in components) - 1) for pattern in self.patterns])

    def at_least(self, c: int, value: int) -> Any:
        """How many nodes can hold ``value`` or more workers of c."""
        return self._weighted([int(pattern[c] >= value) for pattern in self.patterns])

    def contents(self, value: Callable[[Any], int]) -> list[tuple[Pattern, int]]:
        return [(p, n) for p, y in zip(self.patterns, self.count, strict=True) if (n := value(y))]


class NodeVariables:
    """One node with an integer variable per component: ``x[c]`` workers, at most ``most[c]``."""

    def __init__(self, model: cp_model.CpModel, local: Local, node_class: NodeClass, name: str) -> None:
        from ortools.sat.python import cp_model as cp

        self.model = model
        self.name = name
        self.node_class = node_class
        self.x: list[Any] = []
        self.most: list[int] = []
        self._hosts: dict[tuple[int, ...], Any] = {}
        for c in range(local.job.count):
            counts = local.counts(node_class, c)
            self.most.append(counts[-1])
            label = f"{name}.{local.job.components[c].name}"
            self.x.append(model.new_int_var_from_domain(cp.Domain.from_values(counts), label) if len(counts) > 1 else 0)
        self._constrain(local)

    def hosts(self, components: tuple[int, ...]) -> Any:
        """Boolean: the node hosts any of the components."""
        present = tuple(c for c in components if self.most[c])
        if not present:
            return 0
        known = self._hosts.get(present)
        if known is None:
            known = self._hosts[present] = self.model.new_bool_var(f"{self.name}.hosts{present}")
            if len(present) == 1:
                x = self.x[present[0]]
                self.model.add(x >= known)
                self.model.add(x <= self.most[present[0]] * known)
            else:
                self.model.add_max_equality(known, [self.hosts((c,)) for c in present])
        return known

    def _constrain(self, local: Local) -> None:
        job, model, node_class = local.job, self.model, self.node_class
        for a, b in local.apart(node_class):
            if self.most[a] and self.most[b]:
                model.add(self.hosts((a,)) + self.hosts((b,)) <= 1)
        for follower, leader in local.follows:
            model.add(self.x[follower] == self.hosts((leader,)))
        usable = [c for c in range(job.count) if self.most[c]]
        if node_class.cpu_units is not None and any(job.cpu_units[c] for c in usable):
            model.add(sum(job.cpu_units[c] * self.x[c] for c in usable) <= node_class.cpu_units)
        if node_class.memory is not None and any(job.memory[c] for c in usable):
            model.add(sum(job.memory[c] * self.x[c] for c in usable) <= node_class.memory)
        self._lay_out(local)

    def _lay_out(self, local: Local) -> None:
        """GPU layout by clique sums where they are exact, else GPU by GPU."""
        job, shape = local.job, self.node_class.shape
        present = [i for i, item in enumerate(job.items) if any(self.most[c] for c in item.members)]
        for item in job.items:
            # A colocated set is there together or not at all.
            if not all(self.most[c] for c in item.members):
                for c in item.members:
                    if self.most[c]:
                        self.model.add(self.x[c] == 0)
        present = [i for i in present if all(self.most[c] for c in job.items[i].members)]
        if not present:
            return
        tree = cotree(tuple(present), job.conflicts)
        watched = any(job.share_coupled[i] or job.self_coupled[i] for i in present)
        grouped = any(len(job.items[i].members) > 1 or job.items[i].aligned > 1 for i in present)
        wide = any(job.items[i].width > 1 for i in present) and len(shape.runs) > 1
        if has_prime(tree) or watched or grouped or wide:
            GpuModel(self.model, job, shape, self.x, present, self.name)
            return
        lengths: dict[int, Any] = {}
        for i in present:
            c = job.items[i].members[0]
            if job.fractional[c]:
                touched = self.model.new_int_var(0, shape.available, f"{self.name}.gpus{c}")
                self.model.add(job.per_gpu[c] * touched >= self.x[c])
                lengths[i] = touched
            else:
                lengths[i] = job.width[c] * self.x[c]
        for clique in maximal_cliques(tuple(present), job.conflicts):
            self.model.add(sum(lengths[i] for i in clique) <= shape.available)


class NodeCell:
    """One node by its variables."""

    size = 1

    def __init__(self, variables: NodeVariables) -> None:
        self.variables = variables
        self.name = variables.name
        self.node_class = variables.node_class
        self._totals: dict[Feature, Any] = {}

    def total(self, feature: Feature) -> Any:
        known = self._totals.get(feature)
        if known is None:
            known = self._totals[feature] = feature.express(self.variables)
        return known

    def room(self, c: int) -> Any:
        return self.total(Workers(c))

    def least(self, c: int) -> Any:
        return self.total(Workers(c))

    def shared(self, components: tuple[int, ...]) -> Any | None:
        return None

    def contents(self, value: Callable[[Any], int]) -> list[tuple[Pattern, int]]:
        pattern = tuple(x if isinstance(x, int) else value(x) for x in self.variables.x)
        return [(pattern, 1)] if any(pattern) else []
