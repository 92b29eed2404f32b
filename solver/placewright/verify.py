"""The independent reader of a problem and a plan: every rule checked, every number of the plan computed again.

``violations`` lists what is wrong, ``verify`` raises ``PlanMismatch`` with that list. It shares no code with the solver's
model and needs neither OR-Tools nor Ray nor networkx, so a plan file can be verified anywhere. Modify this file when a plan
says something new that can be right or wrong; a new rule or goal needs no change here.
"""

from __future__ import annotations

from collections.abc import Iterator

from placewright.facts import Facts, available_mask
from placewright.goals import GOAL_BY_NAME
from placewright.rules import RULES
from placewright_models.errors import PlanMismatch
from placewright_models.plan import Plan
from placewright_models.problem import Problem
from placewright_models.ranges import Ranges, format_ranges

STATUSES = ("optimal", "feasible", "greedy")
"""Every status a plan can have."""


def verify(problem: Problem, plan: Plan, previous: Plan | None = None) -> None:
    """Check a plan against a problem.

    Args:
        problem: what was asked.
        plan: the answer; its own ``problem`` is not looked at.
        previous: the plan before, where the plan was made with one (goal ``moves``).

    Raises:
        PlanMismatch: if any rule is broken or any number in the plan is not what its workers say.
    """
    found = violations(problem, plan, previous)
    if found:
        raise PlanMismatch(found)


def violations(problem: Problem, plan: Plan, previous: Plan | None = None) -> list[str]:
    """Every difference between problem and plan, one plain sentence each; empty where the plan is right."""
    facts = Facts(problem, plan, previous)
    found = [f"{rule.name} ({rule.code}): {text}" for rule in RULES for text in rule.check(facts)]
    found += _status(plan)
    found += _goals(facts, plan)
    found += _idle(facts, plan)
    return found


def expected_goals(problem: Problem, with_previous: bool) -> tuple[str, ...]:
    """Names of the goals that a plan reports: the problem's, and ``moves`` right after ``unplaced`` with a previous plan.

    >>> from placewright_models.cluster import Cluster
    >>> expected_goals(Problem(Cluster(()), goals=("unplaced", "node_span")), with_previous=True)
    ('unplaced', 'moves', 'node_span')
    """
    if not with_previous or "moves" in problem.goals:
        return problem.goals
    place = problem.goals.index("unplaced") + 1 if "unplaced" in problem.goals else 0
    return (*problem.goals[:place], "moves", *problem.goals[place:])


def _status(plan: Plan) -> Iterator[str]:
    if plan.status not in STATUSES:
        yield f"status: {plan.status!r} is none of {', '.join(STATUSES)}"
    if plan.status == "optimal":
        for goal in plan.goals:
            if not goal.proved:
                bound = "no bound" if goal.bound is None else f"bound {goal.bound}"
                yield f"status: optimal, but goal {goal.name} has value {goal.value} and {bound}"


def _goals(facts: Facts, plan: Plan) -> Iterator[str]:
    names = tuple(goal.name for goal in plan.goals)
    expected = expected_goals(facts.problem, facts.previous is not None)
    if names != expected:
        if "moves" in names and facts.previous is None:
            yield "goals: moves can only be computed again with the previous plan, which was not given"
        else:
            yield f"goals: the plan reports {', '.join(names) or 'none'} and should report {', '.join(expected) or 'none'}"
    for goal in plan.goals:
        known = GOAL_BY_NAME.get(goal.name)
        if known is None:
            yield f"goals: there is no goal {goal.name}"
            continue
        if goal.name != "moves" or facts.previous is not None:
            value = known.measure(facts)
            if goal.value != value:
                yield f"goals: {goal.name} is {value} and the plan says {goal.value}"
        if goal.bound is not None and goal.bound > goal.value:
            yield f"goals: {goal.name} has bound {goal.bound} above its value {goal.value}"


def _idle(facts: Facts, plan: Plan) -> Iterator[str]:
    """Idle is what this job could have used: a node that hosts nothing by rule (excluded, head) is not idle."""
    heads = facts.problem.cluster.schedule_on_head
    used: dict[str, int] = {}
    for masks in facts.masks.values():
        for node_id, mask in masks.items():
            used[node_id] = used.get(node_id, 0) | mask
    gpus = 0
    nodes: dict[str, None] = {}
    ranges: dict[str, Ranges] = {}
    for node in facts.problem.cluster.nodes:
        if node.excluded is not None or (node.head and not heads):
            continue
        free = available_mask(node) & ~used.get(node.id, 0)
        if node.id not in facts.on:
            nodes[node.id] = None
        if free:
            ranges[node.id] = facts.ranges(free)
            gpus += free.bit_count()
    if plan.idle.gpus != gpus:
        yield f"idle: {gpus} GPUs are free and the plan says {plan.idle.gpus}"
    listed = set(plan.idle.nodes)
    if len(listed) != len(plan.idle.nodes):
        yield "idle: the plan lists a node twice"
    for node_id in plan.idle.nodes:
        if node_id not in nodes:
            yield f"idle: {node_id} is listed as idle and is not"
    for node_id in nodes:
        if node_id not in listed:
            yield f"idle: {node_id} hosts nothing and is not listed"
    for node_id, free_ranges in ranges.items():
        said = tuple(plan.idle.ranges.get(node_id, ()))
        if said != free_ranges:
            text = format_ranges(said) or "none"
            yield f"idle: GPUs {format_ranges(free_ranges)} of {node_id} are free and the plan says {text}"
    for node_id, said in plan.idle.ranges.items():
        if said and node_id not in ranges:
            yield f"idle: GPUs {format_ranges(said)} of {node_id} are listed as free and are not"
