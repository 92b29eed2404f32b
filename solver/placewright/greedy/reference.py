"""The RLightning reference planner, to the letter: the same answers, the same exceptions, the same number types.

What: `ResourcePoolPlanner` takes what the workers need (`ComponentScheduling`) and a cluster, and fills
`ResourcePool`s node by node, largest node first. `plan_reference` is the way in for the rest of the library. The
result is raw: it may break hard rules of this library, and nothing here checks that.

Source: written from the words of reference.md, section 1, and checked against the recorded cases in
tests/vectors/{greedy,node,manual}.jsonl. Class, method and attribute names are RLightning's own, so that
compat/rlightning.py can hand these classes out. ``D1`` to ``D19`` below are the defects listed in reference.md,
section 2; they are kept on purpose.

When to modify: only when reference.md or a recorded case shows that the reference behaves otherwise. Better planning
belongs into the solver or into another greedy planner, never in here.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from placewright.greedy.manual import component_entries, parse_index_string, select_nodes, split_range_by_nodes

logger = logging.getLogger(__name__)


@dataclass
class Scheduling:
    """What the workers of one kind need: how many there are, and the CPUs and GPUs of each."""

    worker_num: int | str
    num_cpus: int
    num_gpus: float
    node_list: list[str] | None = None

    def total_gpus(self) -> float:
        """GPUs of all workers; 0.0 (a float) while the number of workers is "auto"."""
        return 0.0 if isinstance(self.worker_num, str) else self.worker_num * self.num_gpus

    def total_cpus(self) -> int:
        """CPUs of all workers; 0 while the number of workers is "auto"."""
        return 0 if isinstance(self.worker_num, str) else self.worker_num * self.num_cpus

    def to_dict(self) -> dict[str, Any]:
        """The fields as a dictionary."""
        return {
            "worker_num": self.worker_num,
            "num_cpus": self.num_cpus,
            "num_gpus": self.num_gpus,
            "node_list": self.node_list,
        }


@dataclass
class ComponentScheduling:
    """What all components of a job need; a component that is None needs nothing."""

    env_worker: list[Scheduling] | None = None
    train_worker: Scheduling | None = None
    eval_worker: Scheduling | None = None
    buffer_worker: Scheduling | None = None

    def get_component_requirements(self, component_type: str) -> tuple[float, int]:
        """GPUs and CPUs of one component: train, eval, env or buffer."""
        if component_type == "env":
            if not self.env_worker:
                return 0, 0
            # The sum starts from a float, so any env group makes the need a float: "required 8.0".
            return (
                sum((group.total_gpus() for group in self.env_worker), 0.0),
                sum(group.total_cpus() for group in self.env_worker),
            )
        single = {"train": self.train_worker, "eval": self.eval_worker, "buffer": self.buffer_worker}
        if component_type not in single:
            raise ValueError(f"Invalid component type: {component_type}")
        worker = single[component_type]
        return (0, 0) if worker is None else (worker.total_gpus(), worker.total_cpus())

    def train_pool_requirements(self) -> tuple[float, int]:
        """GPUs and CPUs of train and buffer together (D8: a buffer's GPUs count as train GPUs)."""
        train_gpus, train_cpus = self.get_component_requirements("train")
        buffer_gpus, buffer_cpus = self.get_component_requirements("buffer")
        return train_gpus + buffer_gpus, train_cpus + buffer_cpus

    def rollout_pool_requirements(self) -> tuple[float, int]:
        """GPUs and CPUs of env and eval side by side, whatever the env strategy."""
        env_gpus, env_cpus = self.get_component_requirements("env")
        eval_gpus, eval_cpus = self.get_component_requirements("eval")
        return env_gpus + eval_gpus, env_cpus + eval_cpus

    def infer_auto_buffer_worker_num(self, cluster_info: Mapping[str, Any]) -> None:
        """Resolve an "auto" buffer without planning: train GPUs over the GPUs of the first node, rounded up (D19)."""
        if self.buffer_worker is not None and self.buffer_worker.worker_num == "auto":
            first = next(iter(cluster_info["node_id_to_resources"].values()))
            self.buffer_worker.worker_num = math.ceil(self.get_component_requirements("train")[0] / first["GPU"])

    def adjust_buffer_worker_num(self, train_node_count: int) -> None:
        """Give the buffer one worker per node that hosts train."""
        assert self.buffer_worker is not None
        self.buffer_worker.worker_num = train_node_count


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
        name, nodes, sizes = select_nodes(pool_cfg, cluster_nodes, used_node_ids or ())
        offsets = list(accumulate(sizes, initial=0))
        for component, value in component_entries(pool_cfg):
            for start, end in cls._parse_index_str(value):
                for node, first, last in split_range_by_nodes(start, end, offsets, f"[{name}] {component}: "):
                    nodes[node].allocations.setdefault(component, []).append((first, last))
        return cls(name=name, nodes=nodes)


class ResourcePoolPlanner:
    """Plans the pools of a job on a cluster, or loads them from a manual configuration.

    `cluster_info` is ``{"node_id_to_resources": {id: {"ip": ..., "CPU": ..., "GPU": ...}}}``, in discovery order. The
    planner works on one set of node objects: planning a second time finds what the first one left (D12).
    """

    def __init__(self, scheduling: ComponentScheduling, cluster_info: Mapping[str, Any] | None = None) -> None:
        self.scheduling = scheduling
        self.resource_summary: dict[str, float] = {}
        self._cluster_info = cluster_info
        self._nodes: dict[str, NodeResource] = {}
        self._resource_pools: dict[str, ResourcePool] = {}

    def _read_cluster_info(self) -> Mapping[str, Any]:
        """The cluster to plan on; a subclass may ask a live cluster where none was given."""
        if self._cluster_info is None:
            raise ValueError("ResourcePoolPlanner needs cluster_info: without Ray there is no cluster to discover")
        return self._cluster_info

    def discover_cluster_resources(self) -> dict[str, NodeResource]:
        """Make the node objects, nothing allocated, from the cluster's description."""
        self._nodes = {
            node_id: NodeResource(
                node_id=node_id,
                ip=resources.get("ip", ""),
                # Ray reports resources as floats; the reference's messages and ranges show whole numbers.
                total_cpus=int(resources.get("CPU", 0)),
                total_gpus=int(resources.get("GPU", 0)),
            )
            for node_id, resources in self._read_cluster_info()["node_id_to_resources"].items()
        }
        return self._nodes

    def _known_nodes(self) -> dict[str, NodeResource]:
        return self._nodes or self.discover_cluster_resources()

    def validate_scheduling(self, strategy: str = "disaggregate", env_strategy: str = "default") -> tuple[bool, str]:
        """Compare the needs with the totals of the cluster, only these (D7): (True, "") or (False, what is short)."""
        self.resource_summary = {}
        nodes = self._known_nodes().values()
        train_gpus, train_cpus = self.scheduling.train_pool_requirements()
        env_gpus, env_cpus = self.scheduling.get_component_requirements("env")
        eval_gpus, eval_cpus = self.scheduling.get_component_requirements("eval")
        # max() returns its first argument when both are equal, which decides between 4 and 4.0.
        rollout_gpus = max(env_gpus, eval_gpus) if env_strategy == "device-colocate" else env_gpus + eval_gpus
        if strategy == "disaggregate":
            required_gpus = train_gpus + rollout_gpus
        elif strategy == "colocate":
            required_gpus = max(train_gpus, rollout_gpus)
        else:
            raise ValueError(f"Unknown placement strategy: {strategy}")
        total_gpus = sum(node.total_gpus for node in nodes)
        if required_gpus > total_gpus:
            return False, f"Insufficient GPUs: required {required_gpus}, available {total_gpus}"
        required_cpus = train_cpus + eval_cpus + env_cpus
        total_cpus = sum(node.total_cpus for node in nodes)
        if required_cpus > total_cpus:
            return False, f"Insufficient CPUs: required {required_cpus}, available {total_cpus}"
        self.resource_summary = {
            "train_pool_required_gpus": train_gpus,
            "rollout_pool_required_gpus": rollout_gpus,
            "env_required_gpus": env_gpus,
            "eval_required_gpus": eval_gpus,
        }
        return True, ""

    def plan_resource_pools(
        self,
        strategy: str = "disaggregate",
        env_strategy: str = "default",
    ) -> dict[str, ResourcePool]:
        """Plan the pools and return all pools by name; ValueError or RuntimeError where the reference raises it."""
        valid, message = self.validate_scheduling(strategy, env_strategy)
        if not valid:
            raise ValueError(f"Resource validation failed: {message}")
        # sorted() is stable: nodes of equal size keep their discovery order.
        nodes = sorted(self._known_nodes().values(), key=lambda node: node.total_gpus, reverse=True)
        if strategy == "disaggregate":
            pools = self._plan_disaggregate_pools(nodes, env_strategy)
        else:
            pools = self._plan_colocate_pools(nodes, env_strategy)
        for pool in pools:
            self._resource_pools[pool.name] = pool
            # This reads the pool's components, so a second planning on the same nodes leaves them as they are.
            logger.info("Pool %s: %s", pool.name, pool.to_yaml_dict())
        return self._resource_pools

    def _plan_disaggregate_pools(self, nodes: Sequence[NodeResource], env_strategy: str) -> list[ResourcePool]:
        """Train first, then eval and env on what is left; a node of both is booked in the train pool only (D6)."""
        train_left = self.resource_summary["train_pool_required_gpus"]
        train_nodes: list[NodeResource] = []
        for node in nodes:
            if train_left <= 0:
                break
            if node.is_empty:
                continue
            amount = min(node.available_gpus, train_left)
            node.allocate(amount, ["train"])
            train_nodes.append(node)
            train_left -= amount

        env_left = self.resource_summary["env_required_gpus"]
        eval_left = self.resource_summary["eval_required_gpus"]
        train_node_ids = {node.node_id for node in train_nodes}
        rollout_nodes: list[NodeResource] = []
        for node in nodes:
            if env_left <= 0 and eval_left <= 0:
                break
            if node.is_empty:
                continue
            amount = min(node.available_gpus, eval_left)
            if amount > 0:
                node.allocate(amount, ["eval"], consume=env_strategy != "device-colocate")
                eval_left -= amount
            amount = min(node.available_gpus, env_left)
            if amount > 0:
                node.allocate(amount, ["env"])
                env_left -= amount
            if node.node_id not in train_node_ids:
                rollout_nodes.append(node)
        return [ResourcePool("train_pool", train_nodes), ResourcePool("rollout_pool", rollout_nodes)]

    def _plan_colocate_pools(self, nodes: Sequence[NodeResource], env_strategy: str) -> list[ResourcePool]:
        """Train from index 0 of each node, eval and env over it."""
        train_left = self.resource_summary["train_pool_required_gpus"]
        env_left = self.resource_summary["env_required_gpus"]
        eval_left = self.resource_summary["eval_required_gpus"]
        pool_nodes: list[NodeResource] = []
        for node in nodes:
            if train_left <= 0 and eval_left <= 0 and env_left <= 0:
                break
            if node.is_empty:
                continue
            # Read once: after eval took its part this is stale, and env may ask for more than there is (D1).
            available = node.available_gpus
            if train_left > 0:
                amount = min(available, train_left)
                node.allocate(amount, ["train"], consume=False)
                train_left -= amount
            amount = min(available, eval_left)
            if amount > 0:
                node.allocate(amount, ["eval"], consume=env_strategy != "device-colocate")
                eval_left -= amount
            pool_nodes.append(node)
            amount = min(available, env_left)
            if amount > 0:
                node.allocate(amount, ["env"])
                env_left -= amount
        return [ResourcePool("global_pool", pool_nodes)]

    def load_manual_resource_pools(self, resource_pool_cfg: Iterable[Mapping[str, Any]]) -> dict[str, ResourcePool]:
        """Load the pools of a manual configuration in order; nothing is stored if one fails."""
        pools: dict[str, ResourcePool] = {}
        used_node_ids: set[str] = set()
        for pool_cfg in resource_pool_cfg:
            pool = ResourcePool.from_yaml_dict(pool_cfg, self._known_nodes(), used_node_ids)
            used_node_ids.update(pool.node_ids)
            pools[pool.name] = pool
        self._resource_pools = pools
        return pools

    def get_resource_pools(self, pool_name: str | None = None) -> dict[str, ResourcePool] | ResourcePool | None:
        """All pools by name, or the one of that name (None if there is none)."""
        return self._resource_pools if pool_name is None else self._resource_pools.get(pool_name)

    def get_pool_for_component(self, component_type: str) -> ResourcePool | None:
        """The first pool that lists the component."""
        return next((pool for pool in self._resource_pools.values() if component_type in pool.component_types), None)

    def get_component_node_count(self, component_type: str) -> int:
        """How many nodes, over all pools, have ranges of the component."""
        return sum(pool.get_component_node_count(component_type) for pool in self._resource_pools.values())

    def to_yaml_config(self) -> list[dict[str, Any]]:
        """The pools as a manual configuration."""
        return [pool.to_yaml_dict() for pool in self._resource_pools.values()]

    def summary(self) -> dict[str, Any]:
        """The cluster's totals, every pool, and the manual configuration."""
        nodes = self._known_nodes().values()
        return {
            "cluster": {
                "n_nodes": len(nodes),
                "total_gpus": sum(node.total_gpus for node in nodes),
                "total_cpus": sum(node.total_cpus for node in nodes),
            },
            "pools": {name: pool.to_dict() for name, pool in self._resource_pools.items()},
            "yaml_config": self.to_yaml_config(),
        }


def plan_reference(
    nodes: Iterable[NodeResource], scheduling: ComponentScheduling, strategy: str, env_strategy: str = "default"
) -> ResourcePoolPlanner:
    """Plan as the reference does and return the planner: pools, resource summary and all views of them.

    `nodes` are in discovery order and stay as they are; the planner makes its own. Raises what the reference raises.
    """
    resources = {node.node_id: {"ip": node.ip, "CPU": node.total_cpus, "GPU": node.total_gpus} for node in nodes}
    planner = ResourcePoolPlanner(scheduling, {"node_id_to_resources": resources})
    planner.plan_resource_pools(strategy, env_strategy)
    return planner
