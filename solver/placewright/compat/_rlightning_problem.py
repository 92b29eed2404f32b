"""Between RLightning's words and ours: its scheduling and cluster as a problem, our plan as its resource pools.

Usage: through :mod:`placewright.compat.rlightning` and :mod:`placewright.compat.rlightning_config`.

When to modify: when RLightning's scheduling gets a new field, or its pools another form.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placewright.greedy.reference.planner import ComponentScheduling, Scheduling
from placewright.greedy.reference.resource_pool import NodeResource, ResourcePool
from placewright_models.plan import Plan

POOLS = {"disaggregate": ("train_pool", "rollout_pool"), "colocate": ("global_pool",)}
"""Pools that a strategy always has, also where one is empty."""


class PlannedPool(ResourcePool):
    """A pool whose configuration names its nodes and their sizes, so that it reloads to the same nodes (defect D13)."""

    def to_yaml_dict(self) -> dict[str, Any]:
        """The pool as an entry of a manual configuration: ``node_ids``, and ``num_gpus`` per node."""
        entry = super().to_yaml_dict()
        head = {
            "name": entry.pop("name"),
            "num_node": entry.pop("num_node"),
            "num_gpus": [node.total_gpus for node in self.nodes],
            "node_ids": self.node_ids,
        }
        entry.pop("num_gpus")
        return {**head, **entry}


@dataclass(frozen=True)
class Kind:
    """Workers of one kind: the component that stands for them in a problem, and RLightning's own component."""

    name: str
    component: str
    scheduling: Scheduling

    @property
    def count(self) -> int:
        """How many workers; an automatic number counts as none."""
        return self.scheduling.worker_num if isinstance(self.scheduling.worker_num, int) else 0


@dataclass(frozen=True)
class Kinds:
    """Everything that is scheduled. Groups of env workers that need different amounts are components of their own."""

    all: tuple[Kind, ...] = field(default=())

    @classmethod
    def of(cls, scheduling: ComponentScheduling) -> Kinds:
        """The kinds of a scheduling; groups of equal env workers are one kind."""
        found = [
            Kind(name, name, worker)
            for name, worker in (
                ("train", scheduling.train_worker),
                ("eval", scheduling.eval_worker),
                ("buffer", scheduling.buffer_worker),
            )
            if worker is not None
        ]
        groups = [group for group in scheduling.env_worker or () if isinstance(group.worker_num, int)]
        needs = {(group.num_gpus, group.num_cpus, _names(group.node_list)) for group in groups}
        if len(needs) == 1:
            total = sum(int(group.worker_num) for group in groups)
            first = groups[0]
            found.append(Kind("env", "env", Scheduling(total, first.num_cpus, first.num_gpus, first.node_list)))
        else:
            found += [Kind(f"env-{index}", "env", group) for index, group in enumerate(groups)]
        return cls(tuple(found))

    def named(self, component: str) -> tuple[Kind, ...]:
        """The kinds of one of RLightning's components, in the order of its workers."""
        return tuple(kind for kind in self.all if kind.component == component)

    @property
    def loose_buffer(self) -> bool:
        """Whether the buffer could also do without the nodes of train: it has GPUs of its own and a number of workers."""
        return any(kind.count and kind.scheduling.num_gpus for kind in self.named("buffer"))

    def components(self, loose_buffer: bool = False) -> dict[str, dict[str, Any]]:
        """The components section of a problem.

        The buffer has one worker per node with train, whatever number is written; with ``loose_buffer`` so many as are
        written, anywhere.
        """
        trains = sum(kind.count for kind in self.named("train"))
        section: dict[str, dict[str, Any]] = {}
        for kind in self.all:
            entry: dict[str, Any] = {"workers": kind.count, "gpus": kind.scheduling.num_gpus, "cpus": kind.scheduling.num_cpus}
            if kind.component == "buffer":
                if trains and not loose_buffer:
                    entry |= {"workers": "auto", "per_node_of": "train"}
                elif kind.scheduling.worker_num == "auto":
                    entry["workers"] = 0
            if kind.scheduling.node_list:
                entry["node_ids"] = list(_names(kind.scheduling.node_list))
            if kind.name != kind.component:
                entry["kind"] = "helpers"
            section[kind.name] = entry
        return section

    def share_gpus(self, env_strategy: str) -> list[list[str]]:
        """Sharing between groups of env workers: shares with each other as one component would, each with eval if it may."""
        groups = [kind.name for kind in self.named("env")]
        if len(groups) < 2:
            return []
        parts = [kind.name for kind in self.named("env") if 0 < kind.scheduling.num_gpus < 1]
        lists = [parts] if len(parts) > 1 else []
        if env_strategy == "device-colocate" and self.named("eval"):
            lists += [["eval", name] for name in groups]
        return lists

    def traffic(self) -> list[dict[str, Any]]:
        """Env workers talk to eval workers."""
        if not self.named("eval"):
            return []
        return [{"between": [kind.name, "eval"], "weight": 1} for kind in self.named("env")]

    def locate(self, component: str, index: int) -> tuple[str, int]:
        """Component of the plan and index there of RLightning's worker ``index``.

        Raises:
            IndexError: if there are not so many workers.
        """
        for kind in self.named(component):
            if kind.component == "buffer" or index < kind.count:
                return kind.name, index
            index -= kind.count
        raise IndexError(f"{component} has fewer workers than that: index {index} past its last one")


def _names(node_list: str | Sequence[str] | None) -> tuple[str, ...]:
    if not node_list:
        return ()
    names = node_list.split(",") if isinstance(node_list, str) else node_list
    return tuple(name.strip() for name in names)


def cluster_section(resources: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The cluster section of a problem from RLightning's ``node_id_to_resources``; CPUs that are not said are unlimited."""
    nodes = []
    for node_id, entry in resources.items():
        node: dict[str, Any] = {"id": node_id, "gpus": int(entry.get("GPU", 0))}
        if "CPU" in entry:
            node["cpus"] = entry["CPU"]
        node.update({key: entry[key] for key in ("ip", "node_name") if entry.get(key)})
        nodes.append(node)
    return {"nodes": nodes}


def problem_section(
    kinds: Kinds, cluster: Mapping[str, Any], strategy: str, env_strategy: str, loose_buffer: bool = False
) -> dict[str, Any]:
    """The whole problem as plain data, as ``load_problem`` reads it."""
    rules: dict[str, Any] = {"strategy": strategy, "env_strategy": env_strategy}
    lists = kinds.share_gpus(env_strategy)
    if lists:
        rules["share_gpus"] = lists
    components = kinds.components(loose_buffer)
    problem: dict[str, Any] = {"cluster": dict(cluster), "components": components, "rules": rules}
    if kinds.traffic():
        problem["traffic"] = kinds.traffic()
    return problem


def planned_pools(
    plan: Plan, kinds: Kinds, nodes: Mapping[str, NodeResource], always: Iterable[str] = ()
) -> dict[str, ResourcePool]:
    """The plan's pools in RLightning's form, each with its own components only, also where two pools meet on a node (D6)."""
    owner = {kind.name: kind.component for kind in kinds.all}
    pools: dict[str, ResourcePool] = {name: PlannedPool(name, []) for name in always}
    for pool in plan.pools:
        found: list[NodeResource] = []
        for place in pool.nodes:
            node = nodes[place.node_id].copy()
            node.allocations.clear()
            for name, ranges in place.allocations.items():
                node.allocations.setdefault(owner.get(name, name), []).extend(ranges)
            last = max((end for ranges in node.allocations.values() for _, end in ranges), default=-1)
            node.gpu_cursor = node.max_allocated_gpus = last + 1
            found.append(node)
        pools[pool.name] = PlannedPool(pool.name, found)
    return pools
