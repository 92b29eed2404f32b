"""Nodes and pools of the RLightning reference, to the letter: what is given out on a node, and every view of a pool.

What: `NodeResource` hands out ranges at its cursor, `ResourcePool` reads them as pool-global indices, writes them as a manual
configuration and reads such configurations. ``D`` numbers are the defects of reference.md, section 2, kept on purpose.

When to modify: only when reference.md or a recorded case shows that the reference behaves otherwise.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from placewright.greedy.reference.manual import (
    component_entries,
    parse_index_string,
    plain_mapping,
    select_nodes,
    split_range_by_nodes,
)

logger = logging.getLogger(__name__)


@dataclass
class NodeResource:
    """One node and what was given out on it; GPUs are handed out from index 0 upwards, at the cursor.

    Ranges are inclusive. They, the cursor and the maximum become floats once a list amount was fractional.
    """

    node_id: str
    ip: str
    total_cpus: int
    total_gpus: int
    allocations: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    gpu_cursor: float = 0
    max_allocated_gpus: float = 0

    @property
    def available_gpus(self) -> float:
        """GPUs from the cursor to the end."""
        return self.total_gpus - self.gpu_cursor

    @property
    def is_empty(self) -> bool:
        """Whether nothing is left to give out."""
        return self.available_gpus == 0

    @property
    def component_types(self) -> list[str]:
        """The components that have ranges here."""
        return list(self.allocations)

    def has_resources(self, cpus: float = 0, gpus: float = 0) -> bool:
        """Whether the node has that many CPUs in total (they are never consumed) and GPUs available."""
        return self.total_cpus >= cpus and self.available_gpus >= gpus

    def allocate(
        self, gpus: float | Sequence[float], component_types: Sequence[str] | None = None, consume: bool = True
    ) -> None:
        """Record ranges for the components, from the cursor, and move the cursor if `consume`.

        A list gives each component its own amount. A scalar gives *each* component the whole amount, one range after
        the other, while the cursor moves by the amount once.
        """
        components = component_types or ()
        shares = list(gpus) if isinstance(gpus, Sequence) else None
        if shares is not None and components and len(shares) != len(components):
            raise RuntimeError(f"GPU list length {len(shares)} != component_types length {len(components)}")
        # Truncating only the scalar loses GPUs of fractional workers (D2, D3).
        amount: float = int(gpus) if not isinstance(gpus, Sequence) else sum(gpus)
        if amount <= 0:
            logger.warning("Node %s: %s GPUs requested, nothing allocated", self.node_id, amount)
            return
        available = self.available_gpus
        if amount > available:
            limit = "The number of GPUs to allocate must be <= the available GPUs"
            raise RuntimeError(f"{limit}, but got {amount} > {available}")
        position = self.gpu_cursor
        for order, component in enumerate(components):
            required = int(amount if shares is None else shares[order])
            if required == 0:
                continue
            if required < 0:
                # What the components before got stays recorded, though the cursor does not move.
                raise RuntimeError(f"The number of GPUs to allocate must be greater than 0, but got {required}")
            self.allocations.setdefault(component, []).append((position, position + required - 1))
            position += required
        self.max_allocated_gpus = max(self.max_allocated_gpus, self.gpu_cursor + amount)
        if consume:
            self.gpu_cursor += amount

    def copy(self) -> NodeResource:
        """A copy that shares nothing with this node."""
        allocations = {component: list(ranges) for component, ranges in self.allocations.items()}
        return NodeResource(
            node_id=self.node_id,
            ip=self.ip,
            total_cpus=self.total_cpus,
            total_gpus=self.total_gpus,
            allocations=allocations,
            gpu_cursor=self.gpu_cursor,
            max_allocated_gpus=self.max_allocated_gpus,
        )


@dataclass
class ComponentAllocation:
    """Where one component lies in a pool, as strings of pool-global GPU indices per node."""

    component_type: str
    node_to_gpu_indices: dict[str, list[str]]
    total_gpus: float
    worker_count: int = 0

    def to_index_string(self) -> str:
        """All ranges in one string, node by node; ranges that touch are not merged."""
        return ", ".join(text for texts in self.node_to_gpu_indices.values() for text in texts)

    def get_node_index_string(self, node_id: str) -> str:
        """The ranges on one node in one string; "" where there is none."""
        return ", ".join(self.node_to_gpu_indices.get(node_id, []))

    def to_dict(self) -> dict[str, Any]:
        """The fields as a dictionary, with the index string."""
        return {
            "component_type": self.component_type,
            "node_to_gpu_indices": self.node_to_gpu_indices,
            "index_string": self.to_index_string(),
            "total_gpus": self.total_gpus,
            "worker_count": self.worker_count,
        }


@dataclass
class ResourcePool:
    """A named list of nodes and the components on them.

    Indices of a pool count through its nodes in order, by their total GPUs. What the components are and where they lie
    is read from the nodes once, at the first question.
    """

    name: str
    nodes: list[NodeResource] = field(default_factory=list)
    _component_types: list[str] | None = field(default=None, init=False, repr=False, compare=False)
    _component_allocations: dict[str, ComponentAllocation] | None = field(
        default=None,
        init=False,
        repr=False,
        compare=False,
    )

    @property
    def num_nodes(self) -> int:
        """How many nodes the pool has."""
        return len(self.nodes)

    @property
    def node_ids(self) -> list[str]:
        """The nodes' ids, in pool order."""
        return [node.node_id for node in self.nodes]

    @property
    def total_gpus(self) -> int:
        """GPUs of all nodes, given out or not."""
        return sum(node.total_gpus for node in self.nodes)

    @property
    def total_cpus(self) -> int:
        """CPUs of all nodes."""
        return sum(node.total_cpus for node in self.nodes)

    @property
    def component_types(self) -> list[str]:
        """The components on the nodes, and "buffer" wherever there is "train".

        The reference's order is that of a set, thus different in every process; here it is first seen first.
        """
        if self._component_types is None:
            types = dict.fromkeys(component for node in self.nodes for component in node.allocations)
            if "train" in types:
                types.setdefault("buffer")
            self._component_types = list(types)
        return self._component_types

    @property
    def component_allocations(self) -> dict[str, ComponentAllocation]:
        """Where each component that has ranges lies."""
        if self._component_allocations is None:
            self._rebuild_component_allocations()
        return self._component_allocations or {}

    def _rebuild_component_allocations(self) -> None:
        """Read the ranges from the nodes again."""
        found: dict[str, ComponentAllocation] = {}
        offset = 0
        for node in self.nodes:
            for component, ranges in node.allocations.items():
                allocation = found.setdefault(component, ComponentAllocation(component, {}, 0))
                texts = allocation.node_to_gpu_indices.setdefault(node.node_id, [])
                for start, end in ranges:
                    first, last = start + offset, end + offset
                    texts.append(f"{first}" if first == last else f"{first}-{last}")
                    allocation.total_gpus += end - start + 1
            offset += node.total_gpus
        self._component_allocations = found

    def get_component_indices(self, component_type: str) -> str:
        """The component's pool-global GPU indices in one string; "" if it has none (an auto-added "buffer", say)."""
        allocation = self.component_allocations.get(component_type)
        if component_type not in self.component_types or allocation is None:
            return ""
        return allocation.to_index_string()

    def get_component_node_count(self, component_type: str) -> int:
        """How many nodes have ranges of the component."""
        return sum(component_type in node.allocations for node in self.nodes)

    def _component_index_strings(self) -> dict[str, str]:
        """The index string of every component that has one."""
        strings = {component: self.get_component_indices(component) for component in self.component_types}
        return {component: text for component, text in strings.items() if text}

    def to_dict(self) -> dict[str, Any]:
        """Everything about the pool; ``num_gpus`` is the pool's total here."""
        return {
            "name": self.name,
            "num_node": self.num_nodes,
            "num_gpus": self.total_gpus,
            "node_ids": self.node_ids,
            "component_types": list(self.component_types),
            "nodes": [
                {
                    "node_id": node.node_id,
                    "ip": node.ip,
                    "total_gpus": node.total_gpus,
                    "total_cpus": node.total_cpus,
                    "allocations": {component: list(ranges) for component, ranges in node.allocations.items()},
                }
                for node in self.nodes
            ],
            **self._component_index_strings(),
        }

    def to_yaml_dict(self) -> dict[str, Any]:
        """The pool as an entry of a manual configuration, without node ids (D13).

        ``num_gpus`` is the GPUs per node if all nodes are equal, else a list per node; a pool without nodes has [].
        """
        sizes = [node.total_gpus for node in self.nodes]
        return {
            "name": self.name,
            "num_node": self.num_nodes,
            "num_gpus": sizes[0] if len(set(sizes)) == 1 else sizes,
            **self._component_index_strings(),
        }

    @staticmethod
    def _parse_index_str(value: object) -> list[tuple[int, int]]:
        """See `manual.parse_index_string`; the name is RLightning's."""
        return parse_index_string(value)

    @staticmethod
    def _split_global_range_by_nodes(start: int, end: int, node_offsets: Sequence[int]) -> list[tuple[int, int, int]]:
        """See `manual.split_range_by_nodes`; the name is RLightning's."""
        return split_range_by_nodes(start, end, node_offsets)

    @classmethod
    def from_yaml_dict(
        cls,
        pool_cfg: Mapping[str, Any],
        cluster_nodes: Mapping[str, NodeResource],
        used_node_ids: Collection[str] | None = None,
    ) -> ResourcePool:
        """Build the pool that one entry of a manual configuration describes, on copies of the cluster's nodes.

        Overlaps and duplicates are accepted, and the nodes' cursors stay where they are.
        """
        pool_cfg = plain_mapping(pool_cfg)
        name, nodes, sizes = select_nodes(pool_cfg, cluster_nodes, used_node_ids or ())
        offsets = list(accumulate(sizes, initial=0))
        for component, value in component_entries(pool_cfg):
            for start, end in cls._parse_index_str(value):
                for node, first, last in split_range_by_nodes(start, end, offsets, f"[{name}] {component}: "):
                    nodes[node].allocations.setdefault(component, []).append((first, last))
        return cls(name=name, nodes=nodes)
