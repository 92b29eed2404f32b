"""Answers: from workers to a verified plan, and to and from small files in the results folder.

A stored answer is the workers, the goals with their bounds, and the fingerprint of the instance; the instance itself is
built again from its name. ``check`` reads every stored answer back, verifies it, and lets no proved bound be beaten by any
other verified answer to the same instance. Modify this file when the stored form changes.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.registry import instances
from placewright.decode.workers import pools_and_idle
from placewright.facts import Facts
from placewright.goals import GOAL_BY_NAME
from placewright.verify import verify
from placewright_models.errors import PlanMismatch
from placewright_models.plan import GoalValue, Plan, Worker
from placewright_models.problem import Problem

Workers = Mapping[str, tuple[Worker, ...]]


def assemble(problem: Problem, workers: Workers, status: str, bounds: Mapping[str, int | None] | None = None) -> Plan:
    """The plan of these workers, every goal measured, everything verified.

    Raises:
        PlanMismatch: if it breaks a rule.
    """
    facts = Facts(problem, workers)
    bounds = bounds or {}
    goals = tuple(GoalValue(name, GOAL_BY_NAME[name].measure(facts), bounds.get(name)) for name in problem.goals)
    if status == "feasible" and all(goal.proved for goal in goals):
        # A model's helper variable may lie above what the placement really comes to.
        status = "optimal"
    return _plan(problem, workers, status, goals)


def _plan(problem: Problem, workers: Workers, status: str, goals: tuple[GoalValue, ...]) -> Plan:
    try:
        pools, idle = pools_and_idle(problem, problem.cluster.topological_order(), dict(workers))
    except (KeyError, IndexError, ValueError) as error:
        raise PlanMismatch([f"workers cannot be read: {error}"]) from error
    solver = "greedy" if status == "greedy" else "cp-sat"
    plan = Plan(status, solver, goals, pools, dict(workers), idle, (), problem)
    verify(problem, plan)
    return plan


def store(path: Path, problem: Problem, plan: Plan, fingerprint: str, instance: str) -> None:
    """Write an answer: node positions as differences, so that a regular answer packs into little."""
    position = {node.id: index for index, node in enumerate(problem.cluster.nodes)}
    written: dict[str, Any] = {}
    for name, workers in plan.workers.items():
        shapes: dict[tuple[tuple[int, int], ...], int] = {}
        places = [position[worker.node_id] for worker in workers]
        steps = [here - before for before, here in zip([0, *places], places, strict=False)]
        kinds = [shapes.setdefault(worker.ranges, len(shapes)) for worker in workers]
        written[name] = {"steps": steps, "kinds": kinds, "shapes": [list(map(list, shape)) for shape in shapes]}
    data = {
        "instance": instance,
        "fingerprint": fingerprint,
        "status": plan.status,
        "goals": [[goal.name, goal.value, goal.bound] for goal in plan.goals],
        "workers": written,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(json.dumps(data, separators=(",", ":")).encode(), mtime=0))


def load(path: Path, problem: Problem) -> Plan:
    """Read an answer back and verify it: the goal values in the file must be what its workers say.

    Raises:
        PlanMismatch: if they are not, or a rule is broken.
    """
    data = json.loads(gzip.decompress(path.read_bytes()))
    nodes = problem.cluster.nodes
    workers: dict[str, tuple[Worker, ...]] = {}
    for name, packed in data["workers"].items():
        shapes = [tuple((start, end) for start, end in shape) for shape in packed["shapes"]]
        at = 0
        found: list[Worker] = []
        for step, kind in zip(packed["steps"], packed["kinds"], strict=True):
            at += step
            found.append(Worker(nodes[at].id, shapes[kind]))
        workers[name] = tuple(found)
    goals = tuple(GoalValue(name, value, bound) for name, value, bound in data["goals"])
    return _plan(problem, workers, data["status"], goals)


def beats(values: Sequence[int], other: Sequence[GoalValue]) -> str | None:
    """Whether goal values beat the bounds of another answer, and where: one of the two would be wrong then."""
    for value, goal in zip(values, other, strict=True):
        if goal.bound is None:
            return None
        if value < goal.bound:
            return f"{goal.name} {value} is below the bound {goal.bound}"
        if value != goal.bound or goal.value != goal.bound:
            # Bounds of later goals hold only where every earlier goal is at its proved optimum.
            return None
    return None


def check(folder: Path) -> list[str]:
    """Verify every stored answer of a results folder; what is wrong, empty where all is right."""
    from benchmarks.registry import fingerprint
    from benchmarks.runs import read_records

    known = {instance.name: instance for smoke in (False, True) for instance in instances(smoke)}
    wrong: list[str] = []
    by_instance: dict[str, list[dict[str, Any]]] = {}
    for record in read_records(folder):
        if record.get("answer"):
            by_instance.setdefault(record["instance"], []).append(record)
    for name, records in by_instance.items():
        if name not in known:
            wrong.append(f"{name}: there is no such instance any more")
            continue
        data = known[name].data()
        problem = known[name].problem()
        print_ = fingerprint(data)
        plans: list[tuple[str, Plan]] = []
        for record in records:
            title = f"{name}, {record['solver']}"
            if record["fingerprint"] != print_:
                wrong.append(f"{title}: the instance is built otherwise now")
                continue
            try:
                plan = load(folder / record["answer"], problem)
            except (PlanMismatch, OSError, ValueError, KeyError, IndexError) as error:
                wrong.append(f"{title}: {error}")
                continue
            said = [(goal["name"], goal["value"], goal["bound"]) for goal in record["goals"]]
            if said != [(goal.name, goal.value, goal.bound) for goal in plan.goals]:
                wrong.append(f"{title}: the record and the stored answer report different goals")
            plans.append((record["solver"], plan))
        for solver, plan in plans:
            for other_solver, other in plans:
                found = beats([goal.value for goal in plan.goals], other.goals)
                if found:
                    wrong.append(f"{name}: {solver} beats what {other_solver} proved: {found}")
    return wrong
