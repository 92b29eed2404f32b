"""The cluster: nodes, their GPUs, and where they stand in the topology.

Everything is frozen. Numbers are kept as the user wrote them (``Decimal``) or in exact integers. Modify this file when a
node gets a new property that rules or goals can see.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property

from placewright_models.quantities import natural_key, units_of
from placewright_models.ranges import Range, available_runs

DOMAIN_LEVEL = "nvlink_domain"
"""Name of the level just above the node."""
CLUSTER_LEVEL = "cluster"
NODE_LEVEL = "node"
UNKNOWN_RANK = float("inf")


@dataclass(frozen=True, slots=True)
class Occupation:
    """What another plan holds on a node: GPU indices, CPUs, memory in bytes. ``plan`` is that plan's name."""

    plan: str
    gpus: tuple[int, ...] = ()
    cpus: Decimal = Decimal(0)
    memory: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """One machine with ``gpus`` devices of node-local indices 0..gpus-1.

    ``cpus`` and ``memory`` None mean unlimited. ``unavailable_gpus`` are indices nobody may use; ``occupied`` is what
    other plans hold (unavailable too, but named in explanations). ``excluded`` is the reason why the node hosts nothing.
    """

    id: str
    gpus: int = 0
    cpus: Decimal | None = None
    memory: int | None = None
    ip: str | None = None
    node_name: str | None = None
    ray_node_id: str | None = None
    nvlink_domain: str | None = None
    topo_rank: int | None = None
    accelerator: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    unavailable_gpus: tuple[int, ...] = ()
    cpus_in_use: Decimal = Decimal(0)
    reserved_cpus: Decimal = Decimal(0)
    memory_in_use: int = 0
    occupied: tuple[Occupation, ...] = ()
    excluded: str | None = None
    head: bool = False

    @property
    def unusable_gpus(self) -> tuple[int, ...]:
        """Indices that are unavailable or held by other plans, ascending."""
        if not self.occupied:
            return self.unavailable_gpus
        held = {index for occupation in self.occupied for index in occupation.gpus}
        return tuple(sorted(held.union(self.unavailable_gpus)))

    @property
    def runs(self) -> tuple[Range, ...]:
        """Maximal ranges of available GPU indices."""
        return available_runs(self.gpus, self.unusable_gpus)

    @property
    def available_gpus(self) -> int:
        """How many GPUs this job may use here."""
        return self.gpus - len(self.unusable_gpus)

    @property
    def free_cpu_units(self) -> int | None:
        """CPUs left for this job in units of 1e-4; None is unlimited."""
        if self.cpus is None:
            return None
        taken = self.cpus_in_use + self.reserved_cpus + sum((held.cpus for held in self.occupied), Decimal(0))
        return max(0, units_of(self.cpus - taken))

    @property
    def free_memory(self) -> int | None:
        """Bytes left for this job; None is unlimited."""
        if self.memory is None:
            return None
        return max(0, self.memory - self.memory_in_use - sum(held.memory for held in self.occupied))

    @property
    def rank_key(self) -> float:
        """Topology rank for sorting: unknown is +infinity."""
        return UNKNOWN_RANK if self.topo_rank is None else self.topo_rank


@dataclass(frozen=True)
class Cluster:
    """Nodes in discovery order, and the declared levels above the NVLink domain, widest first."""

    nodes: tuple[Node, ...]
    levels: tuple[str, ...] = ()
    schedule_on_head: bool = False

    def unit(self, node: Node, level: str) -> tuple[str, str] | None:
        """The unit of ``level`` that holds the node, as (level, name); None where the node is unknown at that level.

        A node that is unknown at a level is a unit of its own there (see ``unit_or_node``).
        """
        if level == CLUSTER_LEVEL:
            return (CLUSTER_LEVEL, "")
        if level == NODE_LEVEL:
            return (NODE_LEVEL, node.id)
        name = node.nvlink_domain if level == DOMAIN_LEVEL else node.labels.get(level)
        return None if name is None else (level, name)

    def unit_or_node(self, node: Node, level: str) -> tuple[str, str]:
        """Like ``unit``, with a unit of its own for a node that is unknown at the level."""
        return self.unit(node, level) or (NODE_LEVEL, node.id)

    @property
    def all_levels(self) -> tuple[str, ...]:
        """Every level from the cluster down to the node."""
        return (CLUSTER_LEVEL, *self.levels, DOMAIN_LEVEL, NODE_LEVEL)

    def topological_order(self) -> list[Node]:
        """Nodes in topological order: units nested, widest level first; each unit by its least rank, then name.

        Nodes within a unit go by topology rank, then id. The order does not depend on the order of ``nodes``.
        """
        return list(self._topological)

    @cached_property
    def looks(self) -> tuple[int, ...]:
        """For each node in topological order a number: the same where nodes differ only in id, names, rank and NVLink domain.

        A node with and one without a domain never have the same.
        """
        found: dict[tuple[object, ...], int] = {}
        return tuple([found.setdefault(_look(node), len(found)) for node in self._topological])

    @cached_property
    def _topological(self) -> tuple[Node, ...]:
        return tuple(topological_order(self.nodes, (*self.levels, DOMAIN_LEVEL)))


def _look(node: Node) -> tuple[object, ...]:
    return (
        node.gpus,
        node.unavailable_gpus,
        node.occupied,
        node.cpus,
        node.cpus_in_use,
        node.reserved_cpus,
        node.memory,
        node.memory_in_use,
        node.accelerator,
        tuple(sorted(node.labels.items())) if node.labels else (),
        node.excluded is None,
        node.head,
        node.nvlink_domain is None,
    )


def topological_order(nodes: Sequence[Node], levels: Sequence[str]) -> list[Node]:
    """Sort nodes by nested units of ``levels`` (widest first), each unit by its least rank, then by its natural name."""
    least: dict[tuple[str, str], float] = {}
    paths: list[list[tuple[str, str]]] = []
    for node in nodes:
        rank = node.rank_key
        path: list[tuple[str, str]] = []
        for level in levels:
            name = node.nvlink_domain if level == DOMAIN_LEVEL else node.labels.get(level)
            unit = (NODE_LEVEL, node.id) if name is None else (level, name)
            path.append(unit)
            if rank < least.get(unit, UNKNOWN_RANK):
                least[unit] = rank
        paths.append(path)

    unit_keys: dict[tuple[str, str], tuple[float, tuple[str | int, ...], str, str]] = {}

    def unit_key(unit: tuple[str, str]) -> tuple[float, tuple[str | int, ...], str, str]:
        key = unit_keys.get(unit)
        if key is None:
            # The kind and the raw name come last so that two units never interleave even where names read alike.
            key = unit_keys[unit] = (least.get(unit, UNKNOWN_RANK), natural_key(unit[1]), unit[1], unit[0])
        return key

    decorated = [
        ([unit_key(unit) for unit in path], node.rank_key, natural_key(node.id), node.id, index)
        for index, (node, path) in enumerate(zip(nodes, paths, strict=True))
    ]
    decorated.sort()
    return [nodes[entry[-1]] for entry in decorated]
