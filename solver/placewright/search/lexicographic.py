"""One goal after the other: minimise, prove, hold, go on.

Each goal is searched with one thread and a fixed amount of deterministic work first; only where that does not settle it, all
threads are used, and a last canonical run with every goal held makes the answer the same on every run. Usage:
``outcome = solve(encoding, params)``. Modify this file when goals are to be searched otherwise.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import Any

from ortools.sat.python import cp_model

from placewright.model.encoding import Encoding
from placewright.params import RESTRICTED, SolveParams, apply_to
from placewright.search.highs import minimise
from placewright.search.neighbourhood import improve, is_uneven

logger = logging.getLogger(__name__)

Progress = Callable[[str, "int | None", "int | None", float], None]
"""Called with goal, best value, bound, seconds so far."""


@dataclass(slots=True)
class Outcome:
    """What the search came to.

    Attributes:
        status: ``optimal``, ``feasible`` (time ran out), ``infeasible`` (proved), or ``unknown`` (neither).
        bounds: goal name -> proven lower bound, for the goals that were searched.
        values: goal name -> value of the model's expression in the solution, searched goals only.
        value: reads a variable or expression of the encoding in the best solution; None without one.
        solve_time: seconds inside CP-SAT.
    """

    status: str
    bounds: dict[str, int] = field(default_factory=dict)
    values: dict[str, int] = field(default_factory=dict)
    value: Callable[[Any], int] | None = None
    solve_time: float = 0.0


SHORT_WORK = 0.1
"""Up to so many deterministic seconds Ctrl-C can wait; a thread of its own, with its own memory, costs a tenth of that."""
MOST_HINT = 2**62 - 1
"""Seen once in thousands of runs: a variable dropped by presolve reported as INT_MIN, which no hint may be."""
LATER_TRIES = 0.3
"""Part of the first try's work that later goals get once it failed."""
SETTLED = (cp_model.OPTIMAL, cp_model.INFEASIBLE)


class Search:
    """The state of a search over the goals of one encoding."""

    def __init__(self, encoding: Encoding, params: SolveParams, progress: Progress | None) -> None:
        self.encoding = encoding
        self.model = encoding.model
        self.params = params
        self.progress = progress
        self.started = time.perf_counter()
        self.solve_time = 0.0
        self.best: Any = None
        self.expression: Any = None
        self.first_work = params.first_work
        # Ends with this object.
        self.thread = ThreadPoolExecutor(1)
        self.parallel = False
        self.impossible = False

    @property
    def time_left(self) -> float:
        return self.params.time_limit - (time.perf_counter() - self.started)

    def value(self, expression: Any) -> int:
        """An expression's value in the best solution."""
        return expression if isinstance(expression, int) else int(self.best.value(expression))

    def alone(self, name: str = "", expression: Any = None, floor: int | None = None) -> tuple[int, int]:
        """One thread and a fixed amount of work; returns status and lower bound.

        A short try as the model stands comes first, since presolving a small model takes longer than solving it. Then the goal
        is asked to meet its bound, improved domain by domain, minimised by HiGHS where the model is linear, and by CP-SAT
        downwards from the best solution and upwards from the bound (docs/model.md, sections 6 and 7). Where a good bound is
        known already (``floor``), the try is left out.
        """
        bound = floor or 0
        if floor is None:
            upwards = expression is not None and self.best is None
            status, solver = self.run(1, self.first_work, presolve=False, upwards=upwards)
            bound = _bound(solver)
            if status in SETTLED or self.time_left <= 0.02:
                return status, bound
            # What is too hard for it now will be so for the next goal; a bound is worth having.
            self.first_work = self.params.first_work * LATER_TRIES
            self.hint()
        if expression is None:
            return self.run(1, self.params.deterministic_work)[0], bound
        steps: list[Callable[[int], tuple[int, int]]] = [self.downwards, self.branch, self.upwards]
        if is_uneven(self.encoding):
            steps = [self.any, self.near, self.branch, self.downwards, self.upwards]
        status, bound = self.probe(name, expression, max(bound, self.encoding.least(name)))
        for step in steps:
            if status in SETTLED or self.time_left <= 0.02:
                break
            self.hint()
            status, bound = step(bound)
            if self.best is not None and bound >= self.value(expression):
                return cp_model.OPTIMAL, bound
        return status, bound

    def downwards(self, bound: int) -> tuple[int, int]:
        """CP-SAT minimises as it likes."""
        status, solver = self.run(1, self.params.deterministic_work, bound=bound)
        return status, max(bound, _bound(solver))

    def upwards(self, bound: int) -> tuple[int, int]:
        """CP-SAT looks for a solution at the bound, and raises it where there is none."""
        status, solver = self.run(1, self.params.bound_work, upwards=True, bound=bound)
        return status, max(bound, _bound(solver))

    def any(self, bound: int) -> tuple[int, int]:
        """Some solution, where none is known: the steps after it start from one."""
        if self.best is None:
            model = self.model.clone()
            model.clear_objective()
            self.run(1, self.params.deterministic_work, model=model)
            self.hint()
        return cp_model.UNKNOWN, bound

    def near(self, bound: int) -> tuple[int, int]:
        """Better solutions near the best one."""
        improve(self)
        return cp_model.UNKNOWN, bound

    def probe(self, name: str, expression: Any, bound: int) -> tuple[int, int]:
        """Ask for a solution at the lower bound itself; where there is none, the bound rises by one, while that is cheap.

        With so little room much of the model is decided by what follows from it (``Goal.implied``).
        """
        if self.best is not None and bound >= self.value(expression):
            return cp_model.OPTIMAL, bound
        status = cp_model.UNKNOWN
        spent = 0.0
        while spent < self.params.probing_work and self.time_left > 0.02:
            model = self.model.clone()
            model.clear_objective()
            self.encoding.add_at_most(model, name, expression, bound)
            status, solver = self.run(1, self.params.probe_work, model=model)
            # However cheap: where nothing is possible at all, no bound is high enough.
            spent += max(solver.response_proto.deterministic_time, self.params.probing_work / 6)
            if status != cp_model.INFEASIBLE:
                break
            bound += 1
        return (cp_model.OPTIMAL if status == cp_model.OPTIMAL else cp_model.UNKNOWN), bound

    def branch(self, bound: int) -> tuple[int, int]:
        """HiGHS branches on the linear relaxation, where the model is linear; its solution becomes one of CP-SAT's."""
        seconds = self.time_left * self.params.mip_share
        if seconds <= 0:
            return cp_model.UNKNOWN, bound
        hint = None if self.best is None else self.solution()
        before = time.perf_counter()
        found = minimise(self.model, hint, seconds, self.params.seed)
        self.solve_time += time.perf_counter() - before
        if found is None:
            return cp_model.UNKNOWN, bound
        if found.values is not None:
            model = self.model.clone()
            model.clear_hints()
            model.proto.solution_hint.vars.extend(range(len(found.values)))
            model.proto.solution_hint.values.extend(found.values)
            self.run(1, model=model, fixed=True)
        bound = max(bound, found.bound)
        proved = found.proved and self.best is not None and self.value(self.expression) <= bound
        return (cp_model.OPTIMAL if proved else cp_model.UNKNOWN), bound

    def run(
        self,
        workers: int,
        deterministic: float | None = None,
        presolve: bool = True,
        upwards: bool = False,
        fixed: bool = False,
        bound: int = 0,
        model: Any = None,
    ) -> tuple[int, Any]:
        """One CP-SAT call; keeps the solution if there is one, unless the one before was better.

        Args:
            upwards: search at the lower bound, and raise it.
            fixed: every variable has its hinted value.
            bound: a lower bound of what is minimised. It is told to CP-SAT alone: as a row of the model it makes the linear
                relaxation so degenerate that HiGHS takes several times as long (docs/model.md, section 7).
            model: a copy of the model with more constraints.
        """
        solver = cp_model.CpSolver()
        # A known solution is taken up even where reading it ran into the time limit.
        time_left = max(self.time_left, 1.0) if fixed else self.time_left
        apply_to(solver, self.params, time_left, workers, presolve, deterministic=deterministic, upwards=upwards, fixed=fixed)
        if bound > 0 and model is None:
            told = self.model.clone()
            told.add(self.expression >= bound)
        else:
            told = model or self.model
        if model is not None:
            told.name = RESTRICTED
        before = time.perf_counter()
        short = deterministic is not None and deterministic <= SHORT_WORK
        status = int(solver.solve(told)) if short else self.solve(solver, told)
        self.solve_time += time.perf_counter() - before
        if status == cp_model.MODEL_INVALID:
            raise RuntimeError(f"the model is invalid, please report it: {self.model.validate()}")
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            if self.best is None or self.expression is None or solver.value(self.expression) <= self.value(self.expression):
                self.best = solver
        elif status == cp_model.INFEASIBLE and self.best is None and model is None:
            self.impossible = True
        return status, solver

    def solve(self, solver: Any, model: Any) -> int:
        """Solve so that Ctrl-C stops the search and raises ``KeyboardInterrupt``.

        CP-SAT's own handler would end only the search under way, and leave Python without one. A signal reaches Python only
        while its main thread waits in Python, so the search has a thread of its own.
        """
        if threading.current_thread() is not threading.main_thread():
            return int(solver.solve(model))
        status = self.thread.submit(solver.solve, model)
        try:
            return int(status.result())
        except BaseException:
            solver.stop_search()
            wait([status])
            raise

    def settle(self) -> None:
        """Any solution, or the proof that there is none."""
        status, _ = self.alone()
        if status == cp_model.UNKNOWN and self.time_left > 0.02:
            self.parallel = True
            self.run(self.params.workers)

    def hint(self) -> None:
        """Start the next goal from the best solution."""
        if self.best is None:
            return
        self.model.clear_hints()
        known = [(index, value) for index, value in enumerate(self.solution()) if abs(value) <= MOST_HINT]
        # In one go: a call per variable takes longer than solving a small model.
        self.model.proto.solution_hint.vars.extend([index for index, _ in known])
        self.model.proto.solution_hint.values.extend([value for _, value in known])

    def solution(self) -> list[int]:
        """The best solution, by variable index."""
        return list(self.best.response_proto.solution)

    def goal(self, name: str, expression: Any, floor: int | None = None) -> tuple[bool, int]:
        """Minimise one goal; returns whether it is proved, and its lower bound. ``floor``: a bound known already."""
        self.expression = expression
        self.model.minimize(expression)
        status, bound = self.alone(name, expression, floor)
        if status not in SETTLED and self.time_left > 0.02:
            # Not settled by the deterministic share: all threads, and a canonical run at the end.
            self.parallel = True
            self.hint()
            status, solver = self.run(self.params.workers, bound=bound)
            bound = max(bound, _bound(solver))
        if status == cp_model.INFEASIBLE:
            if not self.impossible:
                raise RuntimeError(f"goal {name} made the model infeasible, please report it")
            return False, 0
        return status == cp_model.OPTIMAL, bound


def _bound(solver: Any) -> int:
    """The proven lower bound as an integer, rounded up within float noise."""
    bound = solver.best_objective_bound
    return math.ceil(bound - 1e-6) if math.isfinite(bound) else -(2**62)


def solve(
    encoding: Encoding,
    params: SolveParams,
    progress: Progress | None = None,
    targets: Mapping[str, int] | None = None,
    floors: Mapping[str, int] | None = None,
    after_goal: Callable[[Callable[[Any], int]], None] | None = None,
) -> Outcome:
    """Search every goal of the encoding in order.

    Args:
        targets: lower bounds proved elsewhere, for an encoding that is a restriction: a goal is proved only by meeting
            its target, and the search stops at the first goal that does not.
        floors: lower bounds proved elsewhere, each valid while the goals before it have the values given here.
        after_goal: called with the reader of values after each goal.
    """
    search = Search(encoding, params, progress)
    outcome = Outcome("optimal")
    objectives = list(encoding.objectives.items())
    if all(isinstance(expression, int) for _, expression in objectives):
        # Nothing to minimise: any solution will do.
        search.settle()
    for name, expression in objectives:
        if isinstance(expression, int):
            outcome.bounds[name] = outcome.values[name] = expression
            continue
        if search.impossible:
            break
        if search.time_left <= 0.02:
            outcome.status = "feasible"
            break
        if search.best is not None and search.value(expression) <= (least := encoding.least(name)):
            # No goal is ever below zero, or below what counting says.
            proved, bound = True, least
        else:
            if targets is not None:
                if name not in targets:
                    outcome.status = "feasible"
                    break
                search.model.add(expression >= targets[name])
            search.hint()
            floor = None
            if floors and all(floors.get(goal) == value for goal, value in outcome.values.items()):
                floor = floors.get(name)
            proved, bound = search.goal(name, expression, floor)
            if search.best is None:
                break
        value = search.value(expression)
        if targets is not None:
            bound = targets.get(name, 0)
            proved = value == bound
        outcome.values[name] = value
        outcome.bounds[name] = min(bound, value)
        if progress is not None:
            progress(name, value, outcome.bounds[name], time.perf_counter() - search.started)
        logger.info("goal %s: %d, bound %d, %.2f s", name, value, bound, time.perf_counter() - search.started)
        search.model.clear_objective()
        encoding.add_at_most(search.model, name, expression, value)
        if after_goal is not None:
            after_goal(search.value)
        if not proved:
            outcome.status = "feasible"
            break
    if search.best is None:
        outcome.status = "infeasible" if search.impossible else "unknown"
        outcome.solve_time = search.solve_time
        return outcome
    if outcome.status == "optimal" and search.parallel:
        _make_canonical(search)
    outcome.value = search.value
    outcome.solve_time = search.solve_time
    return outcome


def _make_canonical(search: Search) -> None:
    """The same answer on every run: one thread, fixed seed, all goals held, no hint from the parallel search."""
    search.model.clear_hints()
    search.model.clear_objective()
    search.expression = None
    status, _ = search.run(1)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        logger.warning("the canonical run did not finish in time: this plan is optimal but may differ between runs")
