"""What a goal's value means in this plan, as one plain sentence each.

Each goal has one function from the plan's facts to a sentence, listed in ``SENTENCES``; a goal without one says nothing.
Modify this file when a goal is added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from placewright.export.limits import tight_in_domains, tight_in_nodes
from placewright_models.plan import GoalValue, Plan
from placewright_models.problem import Problem
from placewright_models.workload import Component

Counts = Mapping[str, Counter[str]]
"""Component -> node id -> workers there."""

Tight = Callable[[Problem, Component, int, int], str]
"""Why a component with so many workers cannot lie on fewer units."""

MOST_NAMED = 4
"""Most components named in a sentence."""

MOST_NODES = 20_000
"""Largest cluster of which it is counted out what a component needs."""


def sentence(plan: Plan, goal: GoalValue) -> str:
    """The goal's value in words."""
    say = SENTENCES.get(goal.name)
    return say(plan, goal.value) if say is not None else ""


def _counts(plan: Plan) -> Counts:
    return {name: Counter(worker.node_id for worker in workers) for name, workers in plan.workers.items()}


def _unplaced(plan: Plan, value: int) -> str:
    if not value:
        return "every worker has its place"
    short = [
        f"{component.name} got {len(plan.workers.get(component.name, ())):,} of {component.max_workers:,}"
        for component in plan.problem.components
        if component.elastic
        and component.max_workers is not None
        and len(plan.workers.get(component.name, ())) < component.max_workers
    ]
    return _listed(short) + ("" if plan.idle.gpus else "; no GPU is left")


def _moves(_: Plan, value: int) -> str:
    return f"{value:,} of the workers of the previous plan move" if value else "no worker of the previous plan moves"


def _groups_split(plan: Plan, value: int) -> str:
    if value:
        return f"{value:,} preferred {'group or segment is' if value == 1 else 'groups or segments are'} split"
    preferred = any(
        (component.group is not None and not component.group.required)
        or (component.segment_size is not None and not component.segment_required)
        for component in plan.problem.components
    )
    return "no preferred group or segment is split" if preferred else "there are no preferred groups to split"


def _domain_span(plan: Plan, value: int) -> str:
    nodes = plan.problem.node_by_id
    where: dict[str, int] = {}
    for name, counts in _counts(plan).items():
        domains = [nodes[node_id].nvlink_domain for node_id in counts]
        where[name] = len(set(domains) - {None}) + domains.count(None)
    known = any(node.nvlink_domain is not None for node in plan.problem.cluster.nodes)
    return _spans(plan, where, "NVLink domains" if known else "no NVLink domains known, so nodes count", tight_in_domains)


def _node_span(plan: Plan, value: int) -> str:
    return _spans(plan, {name: len(counts) for name, counts in _counts(plan).items()}, "nodes", tight_in_nodes)


def _spans(plan: Plan, where: Mapping[str, int], noun: str, tight: Tight) -> str:
    weighted = [component for component in plan.problem.components if component.span_weight]
    if not weighted:
        return "no component has a span_weight"
    why: dict[str, str] = {}
    if len(plan.problem.cluster.nodes) <= MOST_NODES:
        for component in weighted:
            if where.get(component.name, 0) > 1:
                workers = len(plan.workers.get(component.name, ()))
                why[component.name] = tight(plan.problem, component, workers, where[component.name])
    same = set(why.values())
    shared = same.pop() if len(same) == 1 else ""
    spans = _listed(_span(component, where.get(component.name, 0), why if not shared else {}) for component in weighted)
    if shared:
        spans += f"; {'its' if len(weighted) == 1 else 'their'} {shared} need as many"
    return f"{noun}: {spans}"


def _span(component: Component, count: int, why: Mapping[str, str]) -> str:
    reason = why.get(component.name, "")
    notes = [f"its {reason} need as many"] if reason else []
    if component.span_weight != 1:
        notes.append(f"each counts {component.span_weight:,}")
    shown = f" ({', '.join(notes)})" if notes else ""
    return f"{component.name} {count:,}{shown}"


def _traffic(plan: Plan, value: int) -> str:
    if not plan.problem.traffic:
        return "the problem names no traffic"
    pairs = _listed(" and ".join(pair.between) for pair in plan.problem.traffic)
    if not value:
        return f"split in equal proportion everywhere: {pairs}"
    counts = _counts(plan)
    alone = [_without_partner(counts, *pair.between) for pair in plan.problem.traffic]
    return _listed(
        f"{share:.0%} of {pair.between[0]} has no {pair.between[1]} on its node"
        for pair, share in zip(plan.problem.traffic, alone, strict=True)
    )


def _without_partner(counts: Counts, first: str, second: str) -> float:
    """Share of the first component's workers that have no partner of the second on their node."""
    a, b = counts.get(first, Counter()), counts.get(second, Counter())
    total_a, total_b = sum(a.values()), sum(b.values())
    if not total_a or not total_b:
        return 0.0
    return sum(max(0.0, count / total_a - b[node] / total_b) for node, count in a.items())


def _gpu_nodes_used(plan: Plan, value: int) -> str:
    if not value:
        return "no worker without GPU lies on a node that has GPUs"
    return f"{value:,} workers without GPU lie on nodes that have GPUs"


def _nodes_used(plan: Plan, value: int) -> str:
    return f"nodes that host anything, of {len(plan.problem.cluster.nodes):,}"


def _evenness(plan: Plan, value: int) -> str:
    counts = _counts(plan)
    spread = []
    for component in plan.problem.components:
        here = counts.get(component.name)
        if component.spread == "even" and here:
            low, high = min(here.values()), max(here.values())
            spread.append(f"{component.name} {low:,} a node" if low == high else f"{component.name} {low:,} to {high:,} a node")
    return "workers squared, summed over nodes: " + _listed(spread) if spread else "no component asks to be spread evenly"


def _domain_capacity(plan: Plan, value: int) -> str:
    return "GPUs of the domains in use, free ones included"


def _listed(items: Iterable[str]) -> str:
    found = list(items)
    more = f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else ""
    return ", ".join(found[:MOST_NAMED]) + more


SENTENCES: Mapping[str, Callable[[Plan, int], str]] = {
    "unplaced": _unplaced,
    "moves": _moves,
    "groups_split": _groups_split,
    "domain_span": _domain_span,
    "traffic": _traffic,
    "node_span": _node_span,
    "gpu_nodes_used": _gpu_nodes_used,
    "nodes_used": _nodes_used,
    "evenness": _evenness,
    "domain_capacity": _domain_capacity,
}
"""Goal -> its sentence."""
