"""Greedy planners: ``reference`` is RLightning's planner to the letter, ``first_fit`` honours every rule of this library.

Usage: ``plan_greedy(problem, started)``, which ``placewright.plan(problem, solver="greedy")`` calls. Nothing here needs
OR-Tools, but for rare layouts of single nodes. When to modify: when there is another greedy planner to choose from.
"""

from __future__ import annotations

from placewright_models.errors import PlacewrightError
from placewright_models.plan import Plan
from placewright_models.problem import Problem


class GreedyFailed(PlacewrightError):
    """No plan was found, which proves nothing."""


class ReferenceRefused(GreedyFailed, ValueError):
    """The reference refuses the problem: its ValueError, in its words."""


class ReferenceStopped(GreedyFailed, RuntimeError):
    """The reference stops half-way: its RuntimeError, in its words."""


def plan_greedy(problem: Problem, started: float) -> Plan:
    """The reference's answer where the problem is one it knows, else first-fit's; verified, status ``greedy``.

    Args:
        problem: what is asked.
        started: ``time.perf_counter()`` at the start of planning.

    Raises:
        GreedyFailed: first-fit found no plan; one may exist.
        ReferenceRefused, ReferenceStopped: the ValueError or RuntimeError of the reference.
        PlanMismatch: the reference's answer breaks a hard rule.
    """
    from placewright.greedy.reference.plan import reference_applies, reference_workers
    from placewright.pipeline import finish

    if reference_applies(problem):
        try:
            workers = reference_workers(problem)
        except ValueError as error:
            raise ReferenceRefused(str(error)) from error
        except RuntimeError as error:
            raise ReferenceStopped(str(error)) from error
        return finish(problem, list(problem.cluster.nodes), workers, started, "greedy", "greedy", {})
    from placewright.greedy.first_fit.placing import first_fit
    from placewright.index.job import Job

    found = first_fit(Job(problem))
    if found is None:
        raise GreedyFailed("first-fit found no plan; one may exist: use solver='cp-sat'")
    return finish(problem, problem.cluster.topological_order(), found, started, "greedy", "greedy", {})


__all__ = ["GreedyFailed", "ReferenceRefused", "ReferenceStopped", "plan_greedy"]
