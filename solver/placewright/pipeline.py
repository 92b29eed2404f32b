"""The stages in order: problem -> encode -> solve -> decode -> verify.

Usage: ``plan(problem)``. Modify this file when a stage is added; what a stage does is in its own file.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from placewright.facts import Facts
from placewright.goals import GOAL_BY_NAME
from placewright.index.job import Job
from placewright.params import SolveParams
from placewright.remarks import remarks
from placewright.search.pause import collector_paused
from placewright.verify import verify
from placewright_models.cluster import Node
from placewright_models.errors import Fault, InvalidProblem, SolveTimeout
from placewright_models.plan import GoalValue, Plan, Worker
from placewright_models.problem import Problem

SOLVERS = ("cp-sat", "greedy")


def plan(
    problem: Problem,
    *,
    solver: str = "cp-sat",
    time_limit: float = 30.0,
    previous: Plan | None = None,
    params: SolveParams | None = None,
    progress: Any = None,
    **settings: Any,
) -> Plan:
    """Decide where every worker goes.

    Args:
        problem: what is asked.
        solver: ``cp-sat`` proves its answer optimal; ``greedy`` is first-fit, or the RLightning reference where it applies.
        time_limit: seconds over all goals together.
        previous: not supported yet (replanning); anything but None is refused.
        params: all settings at once; ``time_limit`` and ``settings`` (fields of ``SolveParams``: workers, seed, log, ...)
            are laid over it.
        progress: called with (goal, value, bound, seconds) after each goal.

    Returns:
        A plan that ``verify`` accepted, with every goal's value and proven bound.

    Raises:
        InfeasibleProblem: no placement exists; carries a minimal set of reasons.
        SolveTimeout: the time limit passed with neither a plan nor a proof.
        InvalidProblem: an argument or field that this version does not take.
        PlanMismatch: the plan failed verification: greedy reference answers that break a rule, else a bug.
    """
    started = time.perf_counter()
    if solver not in SOLVERS:
        raise InvalidProblem([Fault("solver", f"{solver!r} is no solver", f"write {' or '.join(SOLVERS)}")])
    if not isinstance(problem, Problem):
        raise InvalidProblem([Fault("problem", f"{type(problem).__name__} is not a Problem", "load_problem makes one")])
    if previous is not None or "moves" in problem.goals:
        raise InvalidProblem([Fault("goals.moves", "planning against a previous plan is not supported yet", "leave it out")])
    settings = {"time_limit": time_limit, **settings} if params is None or time_limit != 30.0 else settings
    chosen = (params or SolveParams()).with_(**settings)
    if solver == "greedy":
        from placewright.greedy import plan_greedy

        return plan_greedy(problem, started)
    return _plan_cp_sat(problem, chosen, started, progress)


def _plan_cp_sat(problem: Problem, params: SolveParams, started: float, progress: Any) -> Plan:
    from placewright.decode.workers import decode_counts, place_workers
    from placewright.explain import explain, quick_reasons
    from placewright.index.topology import Topology
    from placewright.model.instance import needed_levels
    from placewright.search.staged import solve_staged

    job = Job(problem)
    with collector_paused():
        topology = Topology(job, needed_levels(job))
    quick_reasons(problem, params, topology)
    encoding, outcome = solve_staged(problem, params, topology, progress)
    if outcome.status == "infeasible":
        raise explain(problem, params)
    if outcome.value is None:
        return _fall_back(problem, params, started)
    order = encoding.topology.order
    with collector_paused():
        workers = place_workers(encoding.job, order, decode_counts(encoding, outcome.value))
        return finish(problem, order, workers, started, outcome.status, "cp-sat", outcome.bounds)


def _fall_back(problem: Problem, params: SolveParams, started: float) -> Plan:
    """Nothing found and nothing proved in time: first-fit may still find a plan."""
    from placewright.greedy.first_fit.placing import first_fit

    workers = first_fit(Job(problem))
    if workers is None:
        raise SolveTimeout(
            f"no plan found and none proved impossible within {params.time_limit:g} s; first-fit found none either. "
            "Give more time (time_limit), or relax a rule"
        )
    note = (
        f"time ran out after {params.time_limit:g} s before the solver had a plan: "
        "this one is first-fit's, nothing of it is proved"
    )
    return finish(problem, problem.cluster.topological_order(), workers, started, "greedy", "greedy", {}, (note,))


def finish(
    problem: Problem,
    order: list[Node],
    workers: Mapping[str, tuple[Worker, ...]],
    started: float,
    status: str,
    solver: str,
    bounds: Mapping[str, int],
    notes: tuple[str, ...] = (),
) -> Plan:
    """Measure every goal from the placement, assemble the plan, and verify it independently; ``notes`` are warnings too."""
    from placewright.decode.workers import pools_and_idle

    facts = Facts(problem, workers)
    goals = tuple(GoalValue(name, GOAL_BY_NAME[name].measure(facts), bounds.get(name)) for name in problem.goals)
    pools, idle = pools_and_idle(problem, order, dict(workers))
    answer = Plan(
        status=status,
        solver=solver,
        goals=goals,
        pools=pools,
        workers=dict(workers),
        idle=idle,
        warnings=(*notes, *remarks(problem, workers)),
        problem=problem,
        wall_time_s=time.perf_counter() - started,
    )
    verify(problem, answer)
    return answer
