"""Plans to draw: every state a GPU can be in, and a very large one that needs no solver. For tests of pictures only."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import placewright
from placewright.decode.workers import pools_and_idle
from placewright.remarks import remarks
from placewright_models.cluster import Occupation
from placewright_models.plan import GoalValue, Plan, Worker
from placewright_models.problem import Problem


def _node(name: str, **how: Any) -> dict[str, Any]:
    return {"id": name, "gpus": 8, "cpus": 64, **how}


ONE_NODE = {
    "cluster": {"nodes": [_node("dgx")]},
    "components": {
        "train": {"workers": 4, "gpus": 1},
        "rollout": {"workers": 2, "gpus": 2, "gpu_share": 0.7},
        "reward": {"workers": 2, "gpus": 1, "gpu_share": 0.2},
        "env": {"workers": 6, "gpus": 0},
    },
    "rules": {"strategy": "disaggregate", "share_gpus": [["rollout", "reward"]]},
}

COLOCATED = {
    "cluster": {"nodes": [_node("worker-{}", count=4, start=1), {"id": "cpu-0", "gpus": 0, "cpus": 128}]},
    "components": {
        "actor": {"workers": 32, "gpus": 1},
        "ref": {"workers": 32, "gpus": 1},
        "critic": {"workers": 32, "gpus": 1},
        "rollout": {"workers": 8, "gpus": 4},
        "sim": {"workers": 12, "gpus": 0},
    },
    "rules": {"colocate": [["actor", "ref", "critic", "rollout"]]},
}

RACK_A: dict[str, Any] = {"nvlink_domain": "rackA", "labels": {"zone": "z1"}}
MIXED = {
    "cluster": {
        "levels": ["zone"],
        "nodes": [
            _node("ip-10-0-0-{}.west.internal", count=3, start=10, unavailable_gpus=[3], **RACK_A),
            _node("broken", excluded="drained", **RACK_A),
            {"id": "b{}", "count": 3, "gpus": 4, "cpus": 64, "nvlink_domain": "rackB", "labels": {"zone": "z2"}},
            {"id": "cpu-{}", "count": 2, "gpus": 0, "cpus": 64},
        ],
    },
    "components": {
        "train": {"workers": 8, "gpus": 1},
        "rollout": {"workers": 3, "gpus": 3},
        "env": {"workers": 12, "gpus": 0.25},
        "sim": {"workers": 20, "gpus": 0},
        "logger": {"workers": 3, "gpus": 0},
    },
    "rules": {"strategy": "disaggregate"},
}

RACKS = {
    "cluster": {"nodes": [_node("gpu-{:03d}", count=64, nvlink_domain="rack{}", nodes_per_domain=16)]},
    "components": {
        "train": {"workers": 256, "gpus": 1, "segment_size": 2},
        "rollout": {"workers": 40, "gpus": 4},
        "env": {"workers": 80, "gpus": 0.18},
        "buffer": {"workers": "auto", "per_node_of": "train"},
    },
    "rules": {"strategy": "disaggregate"},
}


@cache
def one_node() -> Plan:
    """One node, two pools on it, two components that share GPUs, workers without GPU."""
    return placewright.plan(placewright.load_problem(ONE_NODE))


@cache
def colocated() -> Plan:
    """Four components on each GPU, and a node without GPUs."""
    return placewright.plan(placewright.load_problem(COLOCATED))


@cache
def mixed() -> Plan:
    """Holes, an excluded node, GPUs of another plan, two node sizes, CPU nodes, shares, goals in every state of proof."""
    problem = placewright.load_problem(MIXED)
    nodes = tuple(
        dataclasses.replace(node, occupied=(Occupation("other-job", (0, 1)),)) if node.id == "b0" else node
        for node in problem.cluster.nodes
    )
    plan = placewright.plan(dataclasses.replace(problem, cluster=dataclasses.replace(problem.cluster, nodes=nodes)))
    goals = tuple(
        dataclasses.replace(goal, bound=(goal.value, None, max(0, goal.value - 1))[number % 3])
        for number, goal in enumerate(plan.goals)
    )
    return dataclasses.replace(plan, status="feasible", goals=goals)


@cache
def racks() -> Plan:
    """64 nodes in four racks."""
    return placewright.plan(placewright.load_problem(RACKS))


@cache
def huge() -> Plan:
    """12,512 nodes with 100,096 GPUs, placed by hand: training, rollout of four GPUs, environments on shares, idle nodes."""
    problem = placewright.load_problem({
        "cluster": {"nodes": [_node("gpu-{:05d}", count=12512, nvlink_domain="rack{}", nodes_per_domain=16)]},
        "components": {
            "train": {"workers": 65536, "gpus": 1},
            "rollout": {"workers": 7000, "gpus": 4},
            "env": {"workers": 4000, "gpus": 0.5},
            "buffer": {"workers": "auto", "per_node_of": "train"},
        },
        "rules": {"strategy": "disaggregate"},
    })
    names = [f"gpu-{number:05d}" for number in range(12512)]
    workers = {
        "train": tuple(Worker(names[number // 8], ((number % 8, number % 8),)) for number in range(65536)),
        "rollout": tuple(
            Worker(names[8192 + number // 2], ((number % 2 * 4, number % 2 * 4 + 3),)) for number in range(7000)
        ),
        "env": tuple(Worker(names[11692 + number // 8], ((number % 8 // 2, number % 8 // 2),)) for number in range(4000)),
        "buffer": tuple(Worker(name, ()) for name in names[:8192]),
    }
    return by_hand(problem, workers)


def by_hand(problem: Problem, workers: dict[str, tuple[Worker, ...]]) -> Plan:
    """A plan from a placement, not verified and with one goal."""
    pools, idle = pools_and_idle(problem, problem.cluster.topological_order(), workers)
    return Plan(
        status="feasible",
        solver="by hand",
        goals=(GoalValue("node_span", 8192, None),),
        pools=pools,
        workers=workers,
        idle=idle,
        warnings=remarks(problem, workers),
        problem=problem,
    )
