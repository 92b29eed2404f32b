"""NeMo-RL: cluster and generation settings, and for each logical node the exact pin ``{"node:<ip>": 0.001}``.

The pins are what ``RayVirtualCluster`` takes as ``node_resource_constraints``; NeMo-RL itself pins NVLink domains only.
They come into force with ``python -m placewright.compat.nemo_rl`` and ``PLACEWRIGHT_PLAN`` (docs/nemo-rl.md). NeMo-RL knows
whole uniform nodes, with every role on nodes of its own or all on the same. Modify this file when that changes.
"""

from __future__ import annotations

from typing import Any

from placewright.export.target import ExportRefused, Target
from placewright.export.verl import Slots, slots_of
from placewright_models.codec import dump_yaml
from placewright_models.plan import Plan
from placewright_models.ranges import format_ranges, ranges_of

POLICY = ("policy", "train", "actor")
"""Components that stand for NeMo-RL's training cluster."""
GENERATION = ("generation", "rollout", "inference")
"""Components that stand for its generation cluster."""
PIN = 0.001
"""Amount of the node's own resource that each bundle takes."""


def role_nodes(plan: Plan) -> dict[str, Slots]:
    """The GPUs of each component by node, nodes in topological order: NeMo-RL's logical nodes.

    Raises:
        ExportRefused: if the plan says what NeMo-RL cannot.
    """
    roles = {
        name: slots_of(plan, workers, "topology")
        for name, workers in plan.workers.items()
        if any(worker.ranges for worker in workers)
    }
    known = plan.problem.node_by_id
    causes: list[str] = []
    one_node = len({node for slots in roles.values() for node, _ in slots}) == 1
    for name, slots in roles.items():
        component = plan.problem.by_name[name]
        if component.share_units is not None:
            causes.append(f"{name} holds shares of GPUs; NeMo-RL gives every worker group whole GPUs")
        sizes = {node: len(gpus) for node, gpus in slots}
        if len(set(sizes.values())) > 1:
            told = ", ".join(f"{node} {size}" for node, size in list(sizes.items())[:6])
            causes.append(f"{name} has nodes of different numbers of GPUs ({told}); NeMo-RL's logical nodes are all alike")
        for node, gpus in slots:
            if len(gpus) < known[node].gpus and not one_node:
                there = f"{format_ranges(ranges_of(gpus))} of {known[node].gpus} GPUs of {node}"
                causes.append(f"{name} has {there}; with several nodes NeMo-RL takes whole nodes only")
                break
    causes += _meetings(roles)
    used = dict.fromkeys(node for slots in roles.values() for node, _ in slots)
    causes += [
        f"node {node} has no ip to pin it by: give it ip:, or plan on a discovered cluster"
        for node in used
        if not known[node].ip
    ]
    ips: dict[str, str] = {}
    for machine in plan.problem.cluster.nodes:
        if machine.ip and (machine.id in used or ips.get(machine.ip) in used):
            other = ips.setdefault(machine.ip, machine.id)
            if other != machine.id:
                causes.append(f"nodes {other} and {machine.id} have the ip {machine.ip} both, which pins neither")
        elif machine.ip:
            ips.setdefault(machine.ip, machine.id)
    if causes:
        raise ExportRefused("nemo-rl", causes)
    return roles


def _meetings(roles: dict[str, Slots]) -> list[str]:
    """Roles that lie on some of the same GPUs only."""
    causes = []
    names = list(roles)
    for index, first in enumerate(names):
        for second in names[index + 1 :]:
            ours = {(node, gpu) for node, gpus in roles[first] for gpu in gpus}
            theirs = {(node, gpu) for node, gpus in roles[second] for gpu in gpus}
            if ours & theirs and ours != theirs:
                causes.append(
                    f"{first} and {second} share {len(ours & theirs)} of {len(ours | theirs)} GPUs; NeMo-RL puts roles on the "
                    "same GPUs or on nodes of their own"
                )
    return causes


def pins(plan: Plan, slots: Slots) -> list[dict[str, float]]:
    """The exact pin of each logical node."""
    known = plan.problem.node_by_id
    return [{f"node:{known[node].ip}": PIN} for node, _ in slots]


def write_nemo_rl(plan: Plan) -> str:
    """The settings and pins as YAML text, with comments on what has no word in NeMo-RL."""
    roles = role_nodes(plan)
    policy = next((name for name in POLICY if name in roles), next(iter(roles), None))
    generation = next((name for name in GENERATION if name in roles), None)
    data: dict[str, Any] = {}
    if policy is not None:
        sets = list(dict.fromkeys(roles.values()))
        one_node = len({node for slots in sets for node, _ in slots}) == 1
        gpus = sum(len(slots[0][1]) for slots in sets) if one_node else len(roles[policy][0][1])
        cluster: dict[str, Any] = {"num_nodes": 1 if one_node else sum(map(len, sets)), "gpus_per_node": gpus}
        segment = plan.problem.by_name[policy].segment_size
        if segment is not None:
            cluster["segment_size"] = segment
        data["cluster"] = cluster
        if generation is not None and generation != policy:
            shared = roles[generation] == roles[policy]
            colocated: dict[str, Any] = {"enabled": shared}
            if not shared:
                slots = roles[generation]
                colocated["resources"] = {"num_nodes": len(slots), "gpus_per_node": len(slots[0][1])}
            data["policy"] = {"generation": {"colocated": colocated}}
    data["node_resource_constraints"] = {name: pins(plan, slots) for name, slots in roles.items()}
    data["nodes"] = {name: [node for node, _ in slots] for name, slots in roles.items()}
    lines = [
        "# NeMo-RL: cluster and policy are its configuration; node_resource_constraints is RayVirtualCluster's argument.",
        "# In force without a change of code: PLACEWRIGHT_PLAN=PLAN python -m placewright.compat.nemo_rl SCRIPT ...",
    ]
    silent = [name for name, workers in plan.workers.items() if workers and name not in roles]
    if silent:
        lines.append(f"# Not said here, since NeMo-RL's clusters hold GPUs only: {', '.join(silent)}.")
    return "\n".join(lines) + "\n" + dump_yaml(data)


TARGET = Target("nemo-rl", "NeMo-RL's cluster settings and node pins", write_nemo_rl)
