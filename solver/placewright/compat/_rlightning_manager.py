"""RLightning's resource manager: plans, makes the placement groups on Ray, and tells where every worker goes.

Usage: through :mod:`placewright.compat.rlightning`.

When to modify: when RLightning's manager gets another public name.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from placewright.compat._rlightning_planner import ResourcePoolPlanner, get_cluster_resources
from placewright.compat._rlightning_problem import POOLS, Kinds
from placewright.greedy.reference.manual import plain_mapping
from placewright.greedy.reference.planner import ComponentScheduling, ResourcePool
from placewright_models.codec import dump_yaml
from placewright_models.plan import Plan


class GlobalResourceManager:
    """Plans, makes the placement groups on Ray, and tells where every worker goes. One per process, as in RLightning.

    The groups are those of ``placewright.apply``: on exactly the planned nodes and GPUs (RLightning's own pin is soft).

    Attributes:
        solver: solver of the planner made by ``initialize``.
        applied: the plan as it stands on Ray; None with the strategy ``default``, which places nothing but buffers.
    """

    _instance: ClassVar[GlobalResourceManager | None] = None
    solver = "cp-sat"

    def __new__(cls) -> GlobalResourceManager:
        if GlobalResourceManager._instance is None:
            instance = super().__new__(cls)
            instance._clear()
            GlobalResourceManager._instance = instance
        return GlobalResourceManager._instance

    @classmethod
    def get_instance(cls) -> GlobalResourceManager:
        """The manager of this process."""
        return cls()

    @classmethod
    def reset(cls) -> None:
        """Let the groups go and forget the manager."""
        if GlobalResourceManager._instance is not None:
            GlobalResourceManager._instance.cleanup()
        GlobalResourceManager._instance = None

    def _clear(self) -> None:
        self.applied: Any = None
        self._placement: dict[str, Any] | None = None
        self._scheduling: ComponentScheduling | None = None
        self._planner: ResourcePoolPlanner | None = None
        self._buffer_nodes: list[str] = []

    @property
    def is_initialized(self) -> bool:
        """Whether ``initialize`` succeeded."""
        return self._scheduling is not None

    def initialize(
        self, cluster_cfg: Any, scheduling: ComponentScheduling, config_path: str | None = None, timeout: float = 60.0
    ) -> None:
        """Plan for the live cluster and make the placement groups.

        Args:
            cluster_cfg: RLightning's cluster section (``placement``, ``resource_pool``), a mapping or an object.
            scheduling: what the components need; an automatic number of buffers is filled in.
            config_path: where an automatic plan is saved as a manual configuration.
            timeout: seconds for the groups to come up.

        Raises:
            ValueError: bad configuration, or no placement exists.
            PlanMismatch, ApplyTimeout: the plan does not stand on this cluster.
        """
        from placewright.apply import apply, rayapi

        self.cleanup()
        rayapi.connect(None, None)
        cluster = _section(cluster_cfg)
        placement = _section(cluster.get("placement") or {})
        mode = str(placement.get("mode", "auto")).lower()
        strategy = str(placement.get("strategy", "default")).lower()
        env_strategy = str(placement.get("env_strategy", "default")).lower()
        planner = ResourcePoolPlanner(scheduling, get_cluster_resources(), self.solver)
        if mode == "manual":
            if cluster.get("resource_pool") is None:
                raise ValueError("resource_pool must be provided in manual mode")
            planner.load_manual_resource_pools(cluster["resource_pool"], strategy, env_strategy)
        elif strategy == "default":
            self._buffer_nodes = _default_buffers(planner, scheduling)
        else:
            planner.plan_resource_pools(strategy, env_strategy)
        if mode == "manual" or strategy != "default":
            found = _plan_of(planner, strategy, env_strategy)
            if scheduling.buffer_worker is not None and "buffer" in found.workers:
                scheduling.adjust_buffer_worker_num(len(found.workers["buffer"]))
            self.applied = apply(found, timeout=timeout)
        self._placement = {"mode": mode, "strategy": strategy, "env_strategy": env_strategy}
        self._scheduling, self._planner = scheduling, planner
        if mode == "auto" and config_path is not None and self.applied is not None:
            self.save_yaml_config(config_path)

    def _ready(self) -> ResourcePoolPlanner:
        if self._planner is None:
            raise RuntimeError("GlobalResourceManager not initialized. Call initialize() first.")
        return self._planner

    # What workers ask

    def get_scheduling_strategy(self, component_type: str, worker_index: int = 0) -> Any:
        """Ray's scheduling strategy for the worker; "DEFAULT" only with the strategy ``default``.

        Raises:
            RuntimeError: before ``initialize``.
            KeyError, IndexError: if there is no such worker: it would run anywhere otherwise, unseen.
        """
        planner = self._ready()
        if self.applied is not None:
            return self.applied.options(*planner.locate(component_type, worker_index))["scheduling_strategy"]
        if component_type == "buffer" and self._buffer_nodes:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            return NodeAffinitySchedulingStrategy(node_id=self._buffer_nodes[worker_index], soft=False)
        return "DEFAULT"

    def get_worker_options(self, component_type: str, worker_index: int = 0) -> dict[str, Any]:
        """All options for the worker's actor: its scheduling strategy and exactly its GPUs, CPUs and memory."""
        planner = self._ready()
        if self.applied is None:
            return {"scheduling_strategy": self.get_scheduling_strategy(component_type, worker_index)}
        options: dict[str, Any] = self.applied.options(*planner.locate(component_type, worker_index))
        return options

    def get_storage_to_train_workers(self) -> dict[int, list[int]]:
        """Buffer worker -> the train workers on its node; dealt out evenly, in order, where buffers lie elsewhere."""
        nodes = self._nodes_of_workers()
        trains, buffers = nodes.get("train", []), nodes.get("buffer", [])
        if set(buffers) == set(trains):
            return {b: [rank for rank, where in enumerate(trains) if where == node] for b, node in enumerate(buffers)}
        share = [rank * len(buffers) // len(trains) for rank in range(len(trains))]
        return {b: [rank for rank, where in enumerate(share) if where == b] for b in range(len(buffers))}

    def get_component_distribution(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Node id -> component -> {"count": workers there, "ids": which}."""
        found: dict[str, dict[str, dict[str, Any]]] = {}
        for component, nodes in self._nodes_of_workers().items():
            for index, node_id in enumerate(nodes):
                entry = found.setdefault(node_id, {}).setdefault(component, {"count": 0, "ids": []})
                entry["count"] += 1
                entry["ids"].append(index)
        return found

    def _nodes_of_workers(self) -> dict[str, list[str]]:
        planner = self._ready()
        if self.applied is None:
            return {}
        workers = self.applied.plan.workers
        found: dict[str, list[str]] = {}
        for kind in Kinds.of(planner.scheduling).all:
            found.setdefault(kind.component, []).extend(worker.node_id for worker in workers.get(kind.name, ()))
        return found

    # Views

    def get_placement_config(self) -> dict[str, Any] | None:
        """Mode, strategy and env strategy in force."""
        return self._placement

    def get_scheduling(self) -> ComponentScheduling | None:
        """What the components need."""
        return self._scheduling

    def get_placement_strategy(self) -> str:
        """The strategy's name; "resource_pool" in manual mode."""
        if self._placement is None:
            return "default"
        return "resource_pool" if self._placement["mode"] == "manual" else str(self._placement["strategy"])

    def get_resource_planner(self) -> ResourcePoolPlanner | None:
        """The planner."""
        return self._planner

    def get_resource_pools(self, pool_name: str | None = None) -> dict[str, ResourcePool] | ResourcePool | None:
        """All pools by name, or the one of that name."""
        return self._ready().get_resource_pools(pool_name)

    def get_pool_for_component(self, component_type: str) -> ResourcePool | None:
        """The first pool with the component."""
        return None if self._planner is None else self._planner.get_pool_for_component(component_type)

    def get_cluster_summary(self) -> dict[str, Any]:
        """The planner's summary with strategy and distribution."""
        if self._planner is None:
            return {"error": "GlobalResourceManager not initialized"}
        return {
            **self._planner.summary(),
            "placement_strategy": self.get_placement_strategy(),
            "component_distribution": self.get_component_distribution(),
        }

    def save_yaml_config(
        self, cluster_config_path: str, filename: str = "resource_pool_auto.yaml", subdir: str = "resource_pool"
    ) -> str:
        """Write the pools as a manual configuration and return the file's path."""
        text = dump_yaml(self._ready().to_yaml_config())
        path = os.path.join(cluster_config_path, subdir, filename)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        Path(path).write_text(text, encoding="utf-8")
        return path

    def cleanup(self) -> None:
        """Let the placement groups go."""
        if self.applied is not None:
            self.applied.shutdown()
        self._clear()


def get_global_resource_manager() -> GlobalResourceManager | None:
    """The manager if it is initialised, else None."""
    instance = GlobalResourceManager.get_instance()
    return instance if instance.is_initialized else None


def _section(config: Any) -> dict[str, Any]:
    """A configuration section as a dictionary: a mapping, something with to_dict or model_dump, or plain attributes."""
    if isinstance(config, Mapping) or hasattr(config, "to_dict") or hasattr(config, "model_dump"):
        return dict(plain_mapping(config))
    return {name: getattr(config, name) for name in dir(config) if not name.startswith("_")}


def _plan_of(planner: ResourcePoolPlanner, strategy: str, env_strategy: str) -> Plan:
    """The plan to apply; in greedy mode the reference's ranges, which must keep our rules to be carried out."""
    if planner.plan is not None:
        return planner.plan
    from placewright.greedy.reference.plan import workers_of_pools
    from placewright.pipeline import finish

    started = time.perf_counter()
    known = strategy if strategy in POOLS else "colocate"
    problem = planner.problem(known, env_strategy)
    pools = planner.get_resource_pools()
    assert isinstance(pools, dict)
    workers = workers_of_pools(pools.values(), problem.components)
    return finish(problem, list(problem.cluster.nodes), workers, started, "greedy", "greedy", {})


def _default_buffers(planner: ResourcePoolPlanner, scheduling: ComponentScheduling) -> list[str]:
    """Nodes of the buffers with the strategy ``default``: an automatic number is that of the nodes that train fills (D19)."""
    buffer = scheduling.buffer_worker
    if buffer is None:
        return []
    nodes = sorted(planner.discover_cluster_resources().values(), key=lambda node: node.total_gpus, reverse=True)
    if buffer.worker_num == "auto":
        left, count = scheduling.get_component_requirements("train")[0], 0
        while left > 0 and count < len(nodes):
            left, count = left - nodes[count].total_gpus, count + 1
        buffer.worker_num = max(1, count)
    count = int(buffer.worker_num)
    if count <= 1:
        return []
    if count > len(nodes):
        raise ValueError(f"{count} buffer workers need {count} nodes and the cluster has {len(nodes)}")
    return [node.node_id for node in nodes[:count]]
