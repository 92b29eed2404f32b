"""What a plan says, as plain tables that rules check and goals measure.

``Facts(problem, plan)`` reads every worker once. It never raises on a malformed plan: a component or node that is not
there, a range that lies nowhere, are kept aside (``unknown_components``, ``unknown_nodes``, ``misplaced``) for the rules to
name. GPU sets are bit masks, bit i for index i, so that a node's arithmetic is a few integer operations whatever its size.

Nothing here knows the solver's model. Modify this file when rules or goals need another view of the plan that several of
them share; a table that one rule alone needs belongs into that rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from placewright_models.cluster import DOMAIN_LEVEL, Node
from placewright_models.plan import Plan, Worker
from placewright_models.problem import Problem
from placewright_models.ranges import Ranges, ranges_of
from placewright_models.workload import Component

Unit = tuple[str, str]
"""One unit of a level: (level, name)."""


@dataclass(frozen=True, slots=True)
class Misplaced:
    """A worker whose ranges lie on no GPU of any node of the cluster."""

    component: str
    index: int
    node_id: str
    ranges: Ranges


class Facts:
    """A plan read into tables; all of them by component name, then by node id, used nodes of the cluster only.

    Attributes:
        problem: the problem the plan is read against.
        plan: the plan, or None where only workers were given.
        workers: component -> its workers as the plan lists them (empty where the plan does not name the component).
        x: component -> node id -> number of workers there.
        masks: component -> node id -> the GPUs it uses there, as a bit mask (no entry without GPU).
        repeated: component -> node id -> the GPUs used by more than one of its workers there (entries only where some are).
        shapes: component -> the different ranges its workers have, each with the index of the first such worker.
        on: node id -> the components there, in canonical order.
        unknown_components: names in the plan that the problem does not have.
        unknown_nodes: (component, node id) -> workers on a node that the cluster does not have.
        misplaced: workers whose ranges lie on no GPU that any node could have.
        previous: component -> workers of the previous plan; None where there is none.
    """

    def __init__(
        self,
        problem: Problem,
        plan_or_workers: Plan | Mapping[str, Sequence[Worker]],
        previous: Plan | Mapping[str, Sequence[Worker]] | None = None,
    ) -> None:
        self.problem = problem
        self.plan: Plan | None = plan_or_workers if isinstance(plan_or_workers, Plan) else None
        given = _workers_of(plan_or_workers)
        self.previous: Mapping[str, Sequence[Worker]] | None = None if previous is None else _workers_of(previous)
        self.nodes: dict[str, Node] = problem.node_by_id
        self.workers: dict[str, Sequence[Worker]] = {
            component.name: given.get(component.name, ()) for component in problem.components
        }
        self.unnamed_components = tuple(component.name for component in problem.components if component.name not in given)
        self.unknown_components = tuple(name for name in given if name not in self.workers)
        self.unknown_nodes: dict[tuple[str, str], int] = {}
        self.misplaced: list[Misplaced] = []
        self.x: dict[str, dict[str, int]] = {}
        self.masks: dict[str, dict[str, int]] = {}
        self.repeated: dict[str, dict[str, int]] = {}
        self.shapes: dict[str, dict[Ranges, int]] = {}
        self.on: dict[str, list[str]] = {}
        self._mask_cache: dict[Ranges, int] = {(): 0}
        self._index_cache: dict[Ranges, tuple[int, ...]] = {(): ()}
        self._range_cache: dict[int, Ranges] = {0: ()}
        self._units: dict[str, dict[str, Unit]] = {}
        self._largest: dict[str, int] = {}
        self._most_gpus = max((node.gpus for node in problem.cluster.nodes), default=0)
        for name, workers in self.workers.items():
            self._read(name, workers)

    def _read(self, name: str, workers: Sequence[Worker]) -> None:
        """One pass over a component's workers; the only loop over workers that every verification pays for."""
        nodes, cache = self.nodes, self._mask_cache
        counts: dict[str, int] = {}
        masks: dict[str, int] = {}
        repeated: dict[str, int] = {}
        shapes: dict[Ranges, int] = {}
        for index, (node_id, ranges) in enumerate(workers):
            mask = cache.get(ranges)
            if mask is None:
                mask = cache[ranges] = self._mask(ranges)
            if ranges not in shapes:
                shapes[ranges] = index
            seen = counts.get(node_id)
            if seen is None:
                if node_id not in nodes:
                    self.unknown_nodes[name, node_id] = self.unknown_nodes.get((name, node_id), 0) + 1
                    continue
                seen = 0
            counts[node_id] = seen + 1
            if mask:
                if mask < 0:
                    self.misplaced.append(Misplaced(name, index, node_id, ranges))
                    continue
                before = masks.get(node_id, 0)
                if before & mask:
                    repeated[node_id] = repeated.get(node_id, 0) | (before & mask)
                masks[node_id] = before | mask
        self.x[name], self.masks[name], self.repeated[name], self.shapes[name] = counts, masks, repeated, shapes
        for node_id in counts:
            here = self.on.get(node_id)
            if here is None:
                self.on[node_id] = [name]
            else:
                here.append(name)

    def _mask(self, ranges: Ranges) -> int:
        """The ranges as a bit mask; -1 where one lies on no GPU of any node (which also bounds the size of masks)."""
        mask = 0
        for start, end in ranges:
            if not 0 <= start <= end < self._most_gpus:
                return -1
            mask |= (2 << end) - (1 << start)
        return mask

    # One node

    @cached_property
    def available(self) -> dict[str, int]:
        """Node id -> bit mask of the GPUs that this job may use there; used nodes only."""
        return {node_id: available_mask(self.nodes[node_id]) for node_id in self.on}

    def ranges(self, mask: int) -> Ranges:
        """The maximal ranges of a bit mask."""
        found = self._range_cache.get(mask)
        if found is None:
            found = self._range_cache[mask] = ranges_of(indices(mask))
        return found

    def indices(self, ranges: Ranges) -> tuple[int, ...]:
        """Every GPU index in a worker's ranges, each once; none where they lie on no GPU of any node."""
        found = self._index_cache.get(ranges)
        if found is None:
            mask = self._mask(ranges)
            found = self._index_cache[ranges] = () if mask < 0 else tuple(indices(mask))
        return found

    def is_whole(self, component: Component, node_id: str) -> bool:
        """Whether the node has GPUs, all of them available, and the component holds every one."""
        node = self.nodes[node_id]
        full = (1 << node.gpus) - 1
        return node.gpus > 0 and self.available[node_id] == full and self.masks[component.name].get(node_id, 0) == full

    # Units above the node

    def units(self, level: str) -> dict[str, Unit]:
        """Node id -> its unit at the level, used nodes only; a node unknown there is a unit of its own."""
        found = self._units.get(level)
        if found is None:
            unit = self.problem.cluster.unit_or_node
            found = self._units[level] = {node_id: unit(self.nodes[node_id], level) for node_id in self.on}
        return found

    @property
    def domains(self) -> dict[str, Unit]:
        """Node id -> its NVLink domain, used nodes only; an unknown node is a domain of its own."""
        return self.units(DOMAIN_LEVEL)

    def has_domain(self, node_id: str) -> bool:
        """Whether the node's NVLink domain is known."""
        return self.nodes[node_id].nvlink_domain is not None

    def workers_per_unit(self, component: Component, level: str) -> dict[Unit, int]:
        """Unit -> workers of the component in it; units that host it only."""
        units = self.units(level)
        found: dict[Unit, int] = {}
        for node_id, count in self.x[component.name].items():
            unit = units[node_id]
            found[unit] = found.get(unit, 0) + count
        return found

    def nodes_per_unit(self, component: Component, level: str) -> dict[tuple[Unit, int], int]:
        """(unit, GPUs per node) -> nodes of that unit and size that host the component."""
        units, nodes = self.units(level), self.nodes
        found: dict[tuple[Unit, int], int] = {}
        for node_id in self.x[component.name]:
            key = (units[node_id], nodes[node_id].gpus)
            found[key] = found.get(key, 0) + 1
        return found

    # Groups

    def largest_node(self, component: Component) -> int:
        """Most GPUs of a node that passes the component's filters, unavailable ones counted too."""
        if component.name not in self._largest:
            self._largest[component.name] = self.problem.largest_node(component)
        return self._largest[component.name]

    def takes_whole_nodes(self, component: Component) -> bool:
        """Whether the component's groups are wider than its largest node and so are made of whole nodes (H8)."""
        if component.group is None or component.gpus < 1:
            return False
        return component.group.workers * component.gpus_per_worker > self.largest_node(component)

    def nodes_per_group(self, component: Component, size: int) -> int | None:
        """How many whole nodes of ``size`` GPUs one group fills; None where groups cannot be made of such nodes."""
        assert component.group is not None
        wanted = component.group.workers * component.gpus_per_worker
        if size == 0 or size % component.gpus_per_worker or wanted % size:
            return None
        return wanted // size


def available_mask(node: Node) -> int:
    """The GPUs of the node that are neither unavailable nor held by other plans, as a bit mask."""
    mask = (1 << node.gpus) - 1
    for index in node.unusable_gpus:
        mask &= ~(1 << index)
    return mask


def indices(mask: int) -> list[int]:
    """The indices in a bit mask, ascending.

    >>> indices(0b100110)
    [1, 2, 5]
    """
    return [index for index in range(mask.bit_length()) if mask >> index & 1]


def some(names: Iterable[str], most: int = 5) -> str:
    """Names for a sentence, cut after a few.

    >>> some(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    shown = list(names)
    text = ", ".join(shown[:most])
    return text if len(shown) <= most else f"{text} and {len(shown) - most} more"


def _workers_of(source: Plan | Mapping[str, Sequence[Worker]]) -> Mapping[str, Sequence[Worker]]:
    return source.workers if isinstance(source, Plan) else source
