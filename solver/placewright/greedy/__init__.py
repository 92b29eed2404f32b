"""Greedy planners: ``reference`` is RLightning's planner to the letter, ``first_fit`` honours every rule of this library.

Usage: ``plan_greedy(problem, started)``, which ``placewright.plan(problem, solver="greedy")`` calls. Nothing here needs
OR-Tools, but for rare layouts of single nodes. When to modify: when there is another greedy planner to choose from.
"""

from __future__ import annotations

from placewright_models.errors import PlacewrightError
from placewright_models.plan import Plan
from placewright_models.problem import Problem


class GreedyFailed(PlacewrightError):
    """First-fit found no plan, which proves nothing."""


def plan_greedy(problem: Problem, started: float) -> Plan:
    """The reference's answer where the problem is one it knows, else first-fit's; verified, status ``greedy``.

    Args:
        problem: what is asked.
        started: ``time.perf_counter()`` at the start of planning.

    Raises:
        GreedyFailed: first-fit found no plan; one may exist.
        PlanMismatch: the reference's answer breaks a hard rule.
        ValueError, RuntimeError: as the reference raises them, in its words.
    """
    from placewright.greedy.reference_plan import reference_applies, reference_workers
    from placewright.pipeline import finish

    if reference_applies(problem):
        workers = reference_workers(problem)
        return finish(problem, list(problem.cluster.nodes), workers, started, "greedy", "greedy", {})
    from placewright.greedy.first_fit import first_fit
    from placewright.job import Job

    found = first_fit(Job(problem))
    if found is None:
        raise GreedyFailed("first-fit found no plan; one may exist: use solver='cp-sat'")
    return finish(problem, problem.cluster.topological_order(), found, started, "greedy", "greedy", {})


__all__ = ["GreedyFailed", "plan_greedy"]
