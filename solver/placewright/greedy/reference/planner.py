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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placewright.greedy.reference.resource_pool import ComponentAllocation, NodeResource, ResourcePool

logger = logging.getLogger(__name__)


@dataclass
class Scheduling:
    """What the workers of one kind need: how many there are, and the CPUs and GPUs of each."""

    worker_num: int | str
    num_cpus: float
    num_gpus: float
    node_list: list[str] | None = None

    def total_gpus(self) -> float:
        """GPUs of all workers; 0.0 (a float) while the number of workers is "auto"."""
        return 0.0 if isinstance(self.worker_num, str) else self.worker_num * self.num_gpus

    def total_cpus(self) -> float:
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

    def get_component_requirements(self, component_type: str) -> tuple[float, float]:
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

    def to_dict(self) -> dict[str, Any]:
        """The needs of every component as dictionaries; None for a component that needs nothing."""
        single = {"train": self.train_worker, "eval": self.eval_worker, "buffer": self.buffer_worker}
        return {
            "env": [group.to_dict() for group in self.env_worker] if self.env_worker else None,
            **{name: None if worker is None else worker.to_dict() for name, worker in single.items()},
        }

    def summary(self) -> str:
        """The needs in a few lines for people."""
        lines = ["Component scheduling:"]
        for name, worker in (("train", self.train_worker), ("eval", self.eval_worker), ("buffer", self.buffer_worker)):
            if worker is not None:
                lines.append(f"  {name}: {worker.worker_num} workers of {worker.num_gpus} GPUs and {worker.num_cpus} CPUs")
        for group in self.env_worker or ():
            lines.append(f"  env: {group.worker_num} workers of {group.num_gpus} GPUs and {group.num_cpus} CPUs")
        for name, (gpus, cpus) in (
            ("train pool", self.train_pool_requirements()),
            ("rollout pool", self.rollout_pool_requirements()),
        ):
            lines.append(f"  {name}: {gpus} GPUs, {cpus} CPUs")
        return "\n".join(lines)

    def train_pool_requirements(self) -> tuple[float, float]:
        """GPUs and CPUs of train and buffer together (D8: a buffer's GPUs count as train GPUs)."""
        train_gpus, train_cpus = self.get_component_requirements("train")
        buffer_gpus, buffer_cpus = self.get_component_requirements("buffer")
        return train_gpus + buffer_gpus, train_cpus + buffer_cpus

    def rollout_pool_requirements(self) -> tuple[float, float]:
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
        required_gpus, required_cpus, needs = self._requirements(strategy, env_strategy)
        total_gpus = sum(node.total_gpus for node in nodes)
        if required_gpus > total_gpus:
            return False, f"Insufficient GPUs: required {required_gpus}, available {total_gpus}"
        total_cpus = sum(node.total_cpus for node in nodes)
        if required_cpus > total_cpus:
            return False, f"Insufficient CPUs: required {required_cpus}, available {total_cpus}"
        self.resource_summary = needs
        return True, ""

    def _requirements(self, strategy: str, env_strategy: str) -> tuple[float, float, dict[str, float]]:
        """GPUs and CPUs of everything, and the summary per pool and component."""
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
        needs = {
            "train_pool_required_gpus": train_gpus,
            "rollout_pool_required_gpus": rollout_gpus,
            "env_required_gpus": env_gpus,
            "eval_required_gpus": eval_gpus,
        }
        return required_gpus, train_cpus + eval_cpus + env_cpus, needs

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

    def get_cluster_info(self) -> Mapping[str, Any] | None:
        """The description of the cluster as given."""
        return self._cluster_info

    def get_node_resources(self) -> dict[str, NodeResource]:
        """The node objects by id; none before the cluster was read."""
        return self._nodes

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


__all__ = [
    "ComponentAllocation",
    "ComponentScheduling",
    "NodeResource",
    "ResourcePool",
    "ResourcePoolPlanner",
    "Scheduling",
    "plan_reference",
]
