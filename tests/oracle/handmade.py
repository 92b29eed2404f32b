"""Plans written by hand, for tests of the verifier.

``workers("a:0-3 a:4-7 b")`` reads as two workers on GPUs 0-3 and 4-7 of node a and one without GPU on node b; ``plan_of`` makes
a whole plan of workers, with pools, idle and goals as they should be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from placewright.facts import Facts
from placewright.goals import GOAL_BY_NAME
from placewright.verify import expected_goals
from placewright_models.codec import load_problem
from placewright_models.plan import GoalValue, Idle, Plan, Pool, PoolNode, Worker
from placewright_models.problem import Problem
from placewright_models.ranges import Range, indices_of, ranges_of


def workers(text: str) -> tuple[Worker, ...]:
    """Workers from a line: node, and after a colon the ranges, with a plus between several."""
    found = []
    for word in text.split():
        node, _, ranges = word.partition(":")
        parts: list[Range] = []
        for part in filter(None, ranges.split("+")):
            start, _, end = part.partition("-")
            parts.append((int(start), int(end or start)))
        found.append(Worker(node, tuple(parts)))
    return tuple(found)


def placement(**lines: str) -> dict[str, tuple[Worker, ...]]:
    """Component -> workers, from lines."""
    return {name: workers(line) for name, line in lines.items()}


def problem(nodes: Mapping[str, Mapping[str, Any]], components: Mapping[str, Any], **rest: Any) -> Problem:
    """A loaded problem; ``rest`` holds rules and traffic, goals, levels."""
    cluster: dict[str, Any] = {"nodes": [{"id": name, **fields} for name, fields in nodes.items()]}
    for key in ("levels", "schedule_on_head"):
        if key in rest:
            cluster[key] = rest.pop(key)
    found: dict[str, Any] = {"cluster": cluster, "components": dict(components)}
    for key in ("traffic", "goals"):
        if key in rest:
            found[key] = rest.pop(key)
    if rest:
        found["rules"] = rest
    return load_problem(found)


def plan_of(
    asked: Problem,
    placed: Mapping[str, Sequence[Worker]],
    previous: Plan | None = None,
    status: str = "optimal",
) -> Plan:
    """The plan that these workers make, computed the slow and obvious way."""
    facts = Facts(asked, placed, previous)
    names = expected_goals(asked, previous is not None)
    values = [GOAL_BY_NAME[name].measure(facts) for name in names]
    nodes = asked.cluster.nodes
    used = {
        node.id: {i for ws in placed.values() for w in ws if w.node_id == node.id for i in indices_of(w.ranges)}
        for node in nodes
    }
    hosts = {w.node_id for ws in placed.values() for w in ws}
    pools = []
    for title, members in asked.pools():
        on_nodes = []
        for node in nodes:
            here = {
                name: ranges_of(i for w in placed[name] if w.node_id == node.id for i in indices_of(w.ranges))
                for name in members
                if any(w.node_id == node.id for w in placed.get(name, ()))
            }
            if here:
                on_nodes.append(PoolNode(node.id, node.gpus, here))
        pools.append(Pool(title, tuple(on_nodes)))
    usable = [n for n in nodes if n.excluded is None and (not n.head or asked.cluster.schedule_on_head)]
    free = {n.id: ranges_of(set(indices_of(n.runs)) - used[n.id]) for n in usable}
    return Plan(
        status=status,
        solver="cp-sat",
        goals=tuple(GoalValue(name, value, value) for name, value in zip(names, values, strict=True)),
        pools=tuple(pools),
        workers={name: tuple(ws) for name, ws in placed.items()},
        idle=Idle(
            gpus=sum(len(indices_of(ranges)) for ranges in free.values()),
            nodes=tuple(n.id for n in usable if n.id not in hosts),
            ranges={name: ranges for name, ranges in free.items() if ranges},
        ),
        warnings=(),
        problem=asked,
    )
