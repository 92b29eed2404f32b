"""NeMo-RL's virtual clusters on the nodes of the plan in force: the exact pin of each logical node.

Usage: through :mod:`placewright.compat.nemo_rl`; nothing happens unless ``PLACEWRIGHT_PLAN`` names a plan file.

When to modify: when NeMo-RL names its clusters or roles in another way.
"""

from __future__ import annotations

from collections.abc import Sequence

from placewright.compat._plan_in_force import plan_in_force
from placewright.export.nemo_rl import GENERATION, PIN, POLICY, role_nodes
from placewright_models.errors import PlanMismatch
from placewright_models.plan import Plan

WORDS = (
    (("inference", "generation", "rollout"), GENERATION),
    (("reward", "rm_"), ("reward",)),
    (("train", "policy", "student", "distillation", "sft", "dpo", "cluster"), POLICY),
)
"""Words in the name of a cluster or role, and the components that stand for it; the first that matches counts."""


def planned_nodes(name: str) -> list[str] | None:
    """Plan nodes of the logical nodes of a cluster or role, in topological order; None without a plan that knows it.

    Raises:
        ExportRefused: if the plan is none that NeMo-RL can carry out.
        InvalidProblem: if the plan file cannot be read.
    """
    plan = plan_in_force()
    if plan is None:
        return None
    component = component_of(plan, name)
    return None if component is None else [node for node, _ in role_nodes(plan)[component]]


def component_of(plan: Plan, name: str) -> str | None:
    """The component of the plan that a cluster or role of this name stands for."""
    present = [component for component, workers in plan.workers.items() if any(worker.ranges for worker in workers)]
    if name in present:
        return name
    letters = name.lower()
    if "teacher" in letters:
        teachers = [component for component in present if component.startswith("teacher")]
        return _teacher(teachers, letters)
    for words, components in WORDS:
        if any(word in letters for word in words):
            return next((component for component in components if component in present), None)
    return None


_seen_teachers: dict[str, str] = {}


def _teacher(teachers: Sequence[str], name: str) -> str | None:
    """Teachers are dealt out in the order in which NeMo-RL asks for them; the same name gets the same one again."""
    key = name.rpartition(":")[2].removeprefix("teacher").strip("_-: ").removesuffix("_cluster") or name
    if key not in _seen_teachers and len(_seen_teachers) < len(teachers):
        _seen_teachers[key] = teachers[len(_seen_teachers)]
    found = _seen_teachers.get(key)
    return found if found in teachers else None


def planned_pins(name: str, counts: Sequence[int]) -> list[dict[str, float]] | None:
    """The pin ``{"node:<ip>": 0.001}`` of each logical node of a cluster; None without a plan that knows it.

    Args:
        name: the cluster's name.
        counts: bundles of its logical nodes.

    Raises:
        PlanMismatch: if the plan has another number of nodes or GPUs, or the live nodes are not the plan's.
    """
    plan = plan_in_force()
    component = None if plan is None else component_of(plan, name)
    if plan is None or component is None:
        return None
    slots = role_nodes(plan)[component]
    if [len(gpus) for _, gpus in slots] != list(counts):
        told = f"{len(slots)} nodes of {len(slots[0][1])} GPUs"
        asked = f"{len(counts)} nodes of {' and '.join(map(str, dict.fromkeys(counts)))} GPUs"
        raise PlanMismatch(
            [f"{name} asks {asked}; the plan has {told} for {component}"], "NeMo-RL asks another cluster than planned"
        )
    ips = live_ips(plan, [node for node, _ in slots])
    return [{f"node:{ips[node]}": PIN} for node, _ in slots]


def live_ips(plan: Plan, names: Sequence[str]) -> dict[str, str]:
    """The live ip of plan nodes.

    Raises:
        PlanMismatch: if a node is gone, or shares its ip with another.
    """
    from placewright.apply.match import match_nodes
    from placewright.apply.view import live_nodes

    live = live_nodes()
    matched = match_nodes([plan.problem.node_by_id[name] for name in names], live)
    alive = [node.ip for node in live if node.alive]
    shared = [name for name, node in matched.items() if alive.count(node.ip) > 1]
    if shared:
        raise PlanMismatch([f"node {name} shares its ip {matched[name].ip}, which pins none" for name in shared])
    return {name: node.ip for name, node in matched.items()}


def planned_ray_ids(name: str, num_nodes: int) -> list[str] | None:
    """Ray node ids of a role's logical nodes; None without a plan that knows it.

    Raises:
        PlanMismatch: if the plan has another number of nodes, or a node is gone.
    """
    plan, names = plan_in_force(), planned_nodes(name)
    if plan is None or names is None:
        return None
    if len(names) != num_nodes:
        raise PlanMismatch(
            [f"{name} asks {num_nodes} nodes; the plan has {len(names)}"], "NeMo-RL asks another role than planned"
        )
    from placewright.apply.match import match_nodes
    from placewright.apply.view import live_nodes

    matched = match_nodes([plan.problem.node_by_id[node] for node in names], live_nodes())
    return [matched[node].ray_id for node in names]
