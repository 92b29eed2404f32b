"""verl's pools: ``resource_pool_spec``, trainer.nnodes and n_gpus_per_node, and the node of each group.

verl gives every role of a pool all GPUs of it, one process each, in groups of one size that lie on one node each. Where a
plan's nodes differ they are cut into groups of the greatest common size: 8 + 4 GPUs are three groups of 4. The file says
what to write into verl's configuration; the nodes and GPUs themselves come into force through ``PLACEWRIGHT_PLAN``
(docs/verl.md). Modify this file when verl's pools change.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from placewright.compat._verl_base import ip_key
from placewright.export.target import ExportRefused, Target
from placewright_models.codec import dump_yaml
from placewright_models.plan import Plan, Worker
from placewright_models.ranges import format_ranges, indices_of, ranges_of

REPLICAS = ("rollout", "generation")
"""Components that verl starts as one pool for each replica where they have GPUs of their own."""
ORDERS = ("ip", "topology")
"""Rank orders of a pool's nodes: verl's own by ip (as numbers), or the plan's topological order."""

Slots = tuple[tuple[str, tuple[int, ...]], ...]
"""GPUs by node, in rank order."""


@dataclass(frozen=True)
class VerlPool:
    """A pool in verl's form: groups of GPUs on one node each, in rank order, and the roles on them."""

    name: str
    groups: Slots
    roles: tuple[str, ...]

    @property
    def store(self) -> list[int]:
        """Processes per group: verl's ``process_on_nodes``."""
        return [len(gpus) for _, gpus in self.groups]


def slots_of(plan: Plan, workers: Iterable[Worker], order: str = "ip") -> Slots:
    """The GPUs of workers by node: nodes by ip read as numbers (id where there is none), or in topological order."""
    gpus: dict[str, set[int]] = {}
    for worker in workers:
        if worker.ranges:
            gpus.setdefault(worker.node_id, set()).update(indices_of(worker.ranges))
    known = plan.problem.node_by_id
    if order == "topology":
        names = [node.id for node in plan.problem.cluster.topological_order() if node.id in gpus]
    else:
        names = sorted(gpus, key=lambda name: ip_key(known[name].ip or name))
    return tuple((name, tuple(sorted(gpus[name]))) for name in names)


def even_groups(slots: Slots) -> Slots:
    """The nodes cut into groups of the greatest common size."""
    size = math.gcd(*(len(gpus) for _, gpus in slots))
    return tuple((node, gpus[at : at + size]) for node, gpus in slots for at in range(0, len(gpus), size))


def pool_members(plan: Plan) -> dict[str, list[str]]:
    """Components with GPUs, by pool."""
    return {
        pool: [name for name in members if any(worker.ranges for worker in plan.workers.get(name, ()))]
        for pool, members in plan.problem.pools()
    }


def ordered_pools(plan: Plan) -> tuple[list[VerlPool], str]:
    """All pools in verl's form, and the order of nodes that makes engines of ranks in a row: by ip unless only topology does.

    Raises:
        ExportRefused: if the plan says what verl's pools cannot in either order.
    """
    try:
        return verl_pools(plan), "ip"
    except ExportRefused as refusal:
        try:
            return verl_pools(plan, "topology"), "topology"
        except ExportRefused:
            raise refusal from None


def verl_pools(plan: Plan, order: str = "ip") -> list[VerlPool]:
    """All pools of a plan in verl's form, with the nodes in one of ``ORDERS``.

    Raises:
        ExportRefused: if the plan says what verl's pools cannot.
    """
    causes: list[str] = []
    pools: list[VerlPool] = []
    for pool, members in pool_members(plan).items():
        if not members:
            continue
        causes += _shapes(plan, members)
        if len(members) == 1 and members[0] in REPLICAS and pool != "global_pool":
            pools += [
                VerlPool(f"rollout_pool_{index}", even_groups(slots_of(plan, workers, order)), (members[0],))
                for index, workers in enumerate(_replicas(plan, members[0]))
            ]
            continue
        slots = slots_of(plan, (worker for name in members for worker in plan.workers[name]), order)
        groups = even_groups(slots)
        for name in members:
            causes += _covers(plan, pool, name, slots, groups)
        pools.append(VerlPool(pool, groups, tuple(members)))
    causes += _shared(pools)
    if causes:
        raise ExportRefused("verl", causes)
    return pools


def _replicas(plan: Plan, name: str) -> list[tuple[Worker, ...]]:
    """The workers of each replica: a worker, or a group of one-GPU workers."""
    group = plan.problem.by_name[name].group
    width = group.workers if group is not None else 1
    workers = plan.workers[name]
    return [workers[at : at + width] for at in range(0, len(workers), width)]


def _shapes(plan: Plan, members: Iterable[str]) -> list[str]:
    causes = []
    for name in members:
        component = plan.problem.by_name[name]
        if component.share_units is not None:
            causes.append(f"{name} holds a share of each GPU; verl gives every role of a pool 1/max_colocate_count of its GPUs")
        elif component.kind == "collective" and component.gpus_per_worker > 1:
            causes.append(f"{name} has workers of {component.gpus_per_worker} GPUs; verl starts a process for each GPU")
    return causes


def _covers(plan: Plan, pool: str, name: str, slots: Slots, groups: Slots) -> list[str]:
    """Why the component is not what verl makes of a role: on all GPUs of its pool, an engine on consecutive ranks."""
    own = dict(slots_of(plan, plan.workers[name]))
    for node, gpus in slots:
        if own.get(node, ()) != gpus:
            there = f"GPUs {format_ranges(ranges_of(own[node]))}" if own.get(node) else "no GPUs"
            return [
                f"{name} has {there} of {node}, its pool {pool} has {format_ranges(ranges_of(gpus))} there; verl gives "
                f"every role all GPUs of its pool: put {name} into a pool of its own, or colocate it"
            ]
    size = len(groups[0][1])
    replicas = _replicas(plan, name)
    width = sum(len(indices_of(worker.ranges)) for worker in replicas[0])
    if width == 1:
        return []
    if size % width and width % size:
        return [f"{name} is {width} GPUs wide and {pool} has groups of {size}; one must divide the other"]
    ranks = [(node, gpu) for node, gpus in groups for gpu in gpus]
    runs = {frozenset(ranks[at : at + width]) for at in range(0, len(ranks), width)}
    for index, workers in enumerate(replicas):
        gpus_there = frozenset((worker.node_id, gpu) for worker in workers for gpu in indices_of(worker.ranges))
        if gpus_there not in runs:
            where = ", ".join(f"{worker.node_id}:{format_ranges(worker.ranges)}" for worker in workers)
            return [f"replica {index} of {name} lies on {where}, which are not {width} ranks in a row, by ip or by topology"]
    return []


def _shared(pools: Iterable[VerlPool]) -> list[str]:
    owner: dict[tuple[str, int], str] = {}
    causes: dict[tuple[str, str], str] = {}
    for pool in pools:
        for node, gpus in pool.groups:
            for gpu in gpus:
                other = owner.setdefault((node, gpu), pool.name)
                if other != pool.name:
                    text = f"pools {other} and {pool.name} share GPU {gpu} of {node}; verl's pools have GPUs of their own"
                    causes.setdefault((other, pool.name), text)
    return list(causes.values())


def write_verl(plan: Plan) -> str:
    """The pools as YAML text, with comments on what has no word in verl."""
    pools, order = ordered_pools(plan)
    trainer = next((pool for pool in pools if not pool.name.startswith("rollout_pool_")), None)
    replicas = [pool for pool in pools if pool.name.startswith("rollout_pool_")]
    data: dict[str, Any] = {}
    if trainer is not None:
        data["trainer"] = _uniform(trainer)
    if replicas:
        rollout = {"nnodes": sum(len(pool.groups) for pool in replicas), "n_gpus_per_node": replicas[0].store[0]}
        data["actor_rollout_ref"] = {"hybrid_engine": False, "rollout": rollout}
    for section, name in (("reward", "reward_pool"), ("distillation", "teacher_pool")):
        own = next((pool for pool in pools if pool.name == name and pool is not trainer), None)
        if own is not None:
            entry = _uniform(own)
            data[section] = {"reward_model": {"enable_resource_pool": True, **entry}} if section == "reward" else entry
    data["resource_pool_spec"] = {pool.name: pool.store for pool in pools}
    data["mapping"] = {role: pool.name for pool in pools if pool not in replicas for role in pool.roles}
    data["nodes"] = {pool.name: [node for node, _ in pool.groups] for pool in pools}
    data["gpus"] = {pool.name: [format_ranges(ranges_of(gpus)) for _, gpus in pool.groups] for pool in pools}
    lines = [
        "# verl: trainer, reward, ... are its configuration; resource_pool_spec and mapping what its pool manager takes.",
        "# nodes and gpus are where each group lies. They come into force with PLACEWRIGHT_PLAN set to the plan.",
    ]
    if order == "topology":
        lines.append("# Engines are ranks in a row only in topological order: set PLACEWRIGHT_ORDER=topology as well.")
    said = {role for pool in pools for role in pool.roles}
    silent = [name for name, workers in plan.workers.items() if workers and name not in said]
    if silent:
        lines.append(f"# Not said here, since verl's pools hold GPUs only: {', '.join(silent)}.")
    return "\n".join(lines) + "\n" + dump_yaml(data)


def _uniform(pool: VerlPool) -> Mapping[str, int]:
    return {"nnodes": len(pool.groups), "n_gpus_per_node": pool.store[0]}


TARGET = Target("verl", "verl's resource pools", write_verl)
