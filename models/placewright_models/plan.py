"""The answer: which worker sits on which GPUs of which node, what each goal came to, and the problem it answers.

Nothing here knows a solver. The JSON form is ``placewright/plan/1`` of design.md section 6. Modify this file when the plan
itself says something new; keep old files readable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from placewright_models.problem import Problem
from placewright_models.ranges import Range

PLAN_FORMAT = "placewright/plan/1"


class Worker(NamedTuple):
    """Where one worker sits: its node and its GPU ranges (empty without GPU; the one GPU for a share)."""

    node_id: str
    ranges: tuple[Range, ...]


@dataclass(frozen=True, slots=True)
class GoalValue:
    """What a goal came to, and the proven lower bound; ``bound`` None where time ran out before it was searched."""

    name: str
    value: int
    bound: int | None

    @property
    def proved(self) -> bool:
        return self.bound == self.value


@dataclass(frozen=True, slots=True)
class PoolNode:
    """One node of a pool: its size and the ranges of each of the pool's components there."""

    node_id: str
    gpus: int
    allocations: Mapping[str, tuple[Range, ...]]


@dataclass(frozen=True, slots=True)
class Pool:
    """A named set of nodes (topological order) with the pool's components on them."""

    name: str
    nodes: tuple[PoolNode, ...]


@dataclass(frozen=True, slots=True)
class Idle:
    """What the job leaves free: available GPUs nobody uses, nodes that host nothing, free ranges per node."""

    gpus: int = 0
    nodes: tuple[str, ...] = ()
    ranges: Mapping[str, tuple[Range, ...]] = field(default_factory=dict)


@dataclass(frozen=True, repr=False)
class Plan:
    """A placement of every worker. ``status`` is ``optimal``, ``feasible`` or ``greedy``."""

    status: str
    solver: str
    goals: tuple[GoalValue, ...]
    pools: tuple[Pool, ...]
    workers: Mapping[str, tuple[Worker, ...]]
    idle: Idle
    warnings: tuple[str, ...]
    problem: Problem
    wall_time_s: float = 0.0

    def __repr__(self) -> str:
        """One line: how many workers on how many nodes, and what the goals came to."""
        count = sum(len(placed) for placed in self.workers.values())
        nodes = len({worker.node_id for placed in self.workers.values() for worker in placed})
        goals = ", ".join(f"{g.name} {g.value}" + ("" if g.proved else f" (bound {g.bound})") for g in self.goals)
        return f"<Plan {self.status}: {count} workers on {nodes} of {len(self.problem.cluster.nodes)} nodes; {goals}>"

    def goal(self, name: str) -> GoalValue:
        """The goal of that name.

        Raises:
            KeyError: if the goal was not chosen.
        """
        for goal in self.goals:
            if goal.name == name:
                return goal
        raise KeyError(name)

    def figure(self) -> Any:
        """A picture of the plan as a matplotlib figure, drawn by whoever registered ``placewright.figure``.

        The models know no drawing: the placewright wheel registers its own, which needs ``placewright[picture]``.

        Raises:
            LookupError: if nothing is registered, because placewright itself is not installed.
        """
        from importlib.metadata import entry_points

        for entry in entry_points(group="placewright.figure"):
            return entry.load()(self)
        raise LookupError("nothing draws plans here: install placewright[picture]")

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data, ready for JSON (design.md section 6)."""
        from placewright_models.codec import problem_to_dict

        return {
            "format": PLAN_FORMAT,
            "status": self.status,
            "solver": self.solver,
            "wall_time_s": round(self.wall_time_s, 6),
            "goals": [{"name": goal.name, "value": goal.value, "bound": goal.bound} for goal in self.goals],
            "pools": [
                {
                    "name": pool.name,
                    "nodes": [
                        {
                            "node_id": node.node_id,
                            "gpus": node.gpus,
                            "allocations": {
                                name: [list(pair) for pair in ranges] for name, ranges in node.allocations.items()
                            },
                        }
                        for node in pool.nodes
                    ],
                }
                for pool in self.pools
            ],
            "workers": {
                name: [[worker.node_id, [list(pair) for pair in worker.ranges]] for worker in workers]
                for name, workers in self.workers.items()
            },
            "idle": {
                "gpus": self.idle.gpus,
                "nodes": list(self.idle.nodes),
                "ranges": {node: [list(pair) for pair in ranges] for node, ranges in self.idle.ranges.items()},
            },
            "warnings": list(self.warnings),
            "problem": problem_to_dict(self.problem, discovery_order=self.solver == "greedy"),
        }

    @staticmethod
    def from_dict(data: Mapping[str, Any], problem: Problem | None = None) -> Plan:
        """Read a plan from plain data; ``problem`` replaces the one inside.

        Raises:
            InvalidProblem: if the data is not a plan, or carries an invalid problem.
        """
        from placewright_models.codec import plan_from_dict

        return plan_from_dict(data, problem)
