"""RLightning's planner with CP-SAT behind it, and its description of the cluster from Ray.

Usage: through :mod:`placewright.compat.rlightning`.

When to modify: when RLightning's planner gets another public name.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from placewright.compat._rlightning_manual import read_pools
from placewright.compat._rlightning_problem import POOLS, Kinds, cluster_section, planned_pools, problem_section
from placewright.greedy.reference.manual import plain_mapping
from placewright.greedy.reference.planner import ComponentScheduling, ResourcePool
from placewright.greedy.reference.planner import ResourcePoolPlanner as _ReferencePlanner
from placewright.params import SolveParams
from placewright_models.codec import load_problem
from placewright_models.errors import InfeasibleProblem
from placewright_models.plan import Plan, Worker
from placewright_models.problem import Problem

logger = logging.getLogger(__name__)


class InfeasibleScheduling(InfeasibleProblem, ValueError):
    """No placement exists; a ValueError too, as RLightning's callers expect."""


def get_cluster_resources() -> dict[str, Any]:
    """RLightning's description of the live Ray cluster, alive nodes only, with Ray's node names added."""
    from placewright.apply.view import live_nodes

    return {
        "node_id_to_resources": {
            node.ray_id: {
                "node_id": node.ray_id,
                "ip": node.ip,
                "CPU": node.total.get("CPU", 0),
                "GPU": node.gpus,
                "node_name": node.name,
            }
            for node in live_nodes()
            if node.alive
        }
    }


class ResourcePoolPlanner(_ReferencePlanner):
    """Plans pools for a scheduling, or reads manual ones.

    Args:
        scheduling: what the components need.
        cluster_info: RLightning's description of the cluster; None asks Ray.
        solver: ``cp-sat``, or ``greedy`` for RLightning's own planner to the letter.
        time_limit: seconds for CP-SAT.

    Attributes:
        plan: the plan behind the pools, None in greedy mode and before planning.
    """

    def __init__(
        self,
        scheduling: ComponentScheduling,
        cluster_info: Mapping[str, Any] | None = None,
        solver: str = "cp-sat",
        time_limit: float = 30.0,
    ) -> None:
        if solver not in ("cp-sat", "greedy"):
            raise ValueError(f"solver {solver!r} is neither 'cp-sat' nor 'greedy'")
        super().__init__(scheduling, cluster_info)
        self.solver = solver
        self.time_limit = time_limit
        self.plan: Plan | None = None

    def _read_cluster_info(self) -> Mapping[str, Any]:
        if self._cluster_info is None:
            self._cluster_info = get_cluster_resources()
        return self._cluster_info

    @property
    def _kinds(self) -> Kinds:
        return Kinds.of(self.scheduling)

    def problem(
        self, strategy: str = "disaggregate", env_strategy: str = "default", loose_buffer: bool = False
    ) -> Problem:
        """The problem that the scheduling is on this cluster; with ``loose_buffer`` the buffer need not be beside train.

        Raises:
            InvalidProblem: if the scheduling cannot be right on any cluster.
        """
        cluster = cluster_section(self._read_cluster_info()["node_id_to_resources"])
        return load_problem(problem_section(self._kinds, cluster, strategy, env_strategy, loose_buffer))

    def validate_scheduling(self, strategy: str = "disaggregate", env_strategy: str = "default") -> tuple[bool, str]:
        """(True, "") or (False, why not): by the cluster's totals (greedy), or by all that counting can show, per node too."""
        if self.solver == "greedy":
            return super().validate_scheduling(strategy, env_strategy)
        from placewright.explain import quick_reasons

        self.resource_summary = {}
        self._known_nodes()
        _, _, needs = self._requirements(strategy, env_strategy)
        try:
            problem = self.problem(strategy, env_strategy, self._kinds.loose_buffer)
            quick_reasons(problem, SolveParams(time_limit=self.time_limit))
        except InfeasibleProblem as error:
            return False, str(error)
        self.resource_summary = needs
        return True, ""

    def plan_resource_pools(
        self, strategy: str = "disaggregate", env_strategy: str = "default"
    ) -> dict[str, ResourcePool]:
        """Plan the pools; every call plans anew (D12).

        Raises:
            ValueError: unknown strategy; or ``InfeasibleScheduling`` with the reasons where no placement exists.
        """
        if self.solver == "greedy":
            return super().plan_resource_pools(strategy, env_strategy)
        nodes = self._known_nodes()
        _, _, needs = self._requirements(strategy, env_strategy)
        self.resource_summary = {}
        kinds = self._kinds
        buffer = self.scheduling.buffer_worker
        if buffer is not None and buffer.worker_num != "auto" and kinds.named("train"):
            logger.warning("buffer worker_num %s is ignored: one worker on each node with train", buffer.worker_num)
        self.plan = self._solve(strategy, env_strategy, kinds)
        self.resource_summary = needs
        self._resource_pools = planned_pools(self.plan, kinds, nodes, POOLS[strategy])
        return self._resource_pools

    def _solve(self, strategy: str, env_strategy: str, kinds: Kinds) -> Plan:
        """The buffer beside train where that is possible, else, if it has GPUs of its own, anywhere (D10)."""
        from placewright.pipeline import plan

        try:
            return plan(self.problem(strategy, env_strategy), time_limit=self.time_limit)
        except InfeasibleProblem as error:
            if not kinds.loose_buffer:
                raise InfeasibleScheduling(error.reasons) from error
        try:
            return plan(self.problem(strategy, env_strategy, loose_buffer=True), time_limit=self.time_limit)
        except InfeasibleProblem as error:
            raise InfeasibleScheduling(error.reasons) from error

    def load_manual_resource_pools(
        self,
        resource_pool_cfg: Iterable[Any],
        strategy: str | None = None,
        env_strategy: str | None = None,
        share_gpus: Sequence[Sequence[str]] = (),
    ) -> dict[str, ResourcePool]:
        """Load manual pools; nothing is stored if one is refused.

        Args:
            resource_pool_cfg: the entries of ``resource_pool``, mappings or configuration objects.
            strategy: ``colocate`` lets train share GPUs with every other component.
            env_strategy: ``device-colocate`` lets eval and env share.
            share_gpus: lists of components that may share.

        Raises:
            InvalidProblem: (a ValueError) with all faults and their numbers; in greedy mode what RLightning raises.
        """
        configs = [resource_pool_cfg] if isinstance(resource_pool_cfg, Mapping) else list(resource_pool_cfg)
        if self.solver == "greedy":
            return super().load_manual_resource_pools([plain_mapping(config) for config in configs])
        shared = [frozenset(names) for names in share_gpus]
        if env_strategy == "device-colocate":
            shared.append(frozenset(("eval", "env")))

        def may_share(first: str, second: str) -> bool:
            together = {first, second}
            return (strategy == "colocate" and "train" in together) or any(together <= names for names in shared)

        resources = self._read_cluster_info()["node_id_to_resources"]
        cpus = {node_id: entry.get("CPU") for node_id, entry in resources.items()}
        pools, placed = read_pools(configs, self._known_nodes(), self._kinds, may_share, cpus)
        self.plan = self._manual_plan(pools, placed)
        self._resource_pools = pools
        return pools

    def _manual_plan(self, pools: Mapping[str, ResourcePool], placed: Mapping[str, tuple[Worker, ...]]) -> Plan:
        """The written pools as a plan, to apply; it is as it is, and no goal was looked at."""
        from placewright.decode.workers import pools_and_idle

        kinds = {kind.name: kind for kind in self._kinds.all}
        owner: dict[str, str] = {}
        for name, pool in pools.items():
            for component in pool.component_types:
                owner.setdefault(component, name)
        components = {}
        members: dict[str, list[str]] = {}
        for name, workers in placed.items():
            kind = kinds.get(name)
            gpus, cpus = (1, 0) if kind is None else (kind.scheduling.num_gpus, kind.scheduling.num_cpus)
            components[name] = {"workers": len(workers), "gpus": gpus, "cpus": cpus}
            component = name if kind is None else kind.component
            members.setdefault(owner.get(component, next(iter(pools), "global_pool")), []).append(name)
        overlapping = [sorted(placed)] if len(placed) > 1 else []
        problem = load_problem(
            {
                "cluster": cluster_section(self._read_cluster_info()["node_id_to_resources"]),
                "components": components,
                "rules": {"pools": members, "share_gpus": overlapping} if placed else {},
                "goals": [],
            }
        )
        workers_by_name = {component.name: placed[component.name] for component in problem.components}
        found, idle = pools_and_idle(problem, problem.cluster.topological_order(), workers_by_name)
        return Plan("greedy", "manual", (), found, workers_by_name, idle, (), problem)

    def locate(self, component_type: str, worker_index: int) -> tuple[str, int]:
        """Component and index in ``plan`` of RLightning's worker: groups of env workers may be several components there.

        Raises:
            IndexError: if there is no such worker.
        """
        return self._kinds.locate(component_type, worker_index)
