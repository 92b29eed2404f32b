"""Where the time of one plan goes, measured from outside: the package itself knows nothing of it.

``Stopwatch`` wraps the functions of the stages for as long as it is entered. A stage has only its own time: in solvers it is
``solve`` wherever it was called from. Each CP-SAT call also leaves a trace of value and bound over time. Modify this file
when a stage gets another function; a missing one is listed in ``missing`` and breaks nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from placewright.params import RESTRICTED

STAGES = (
    ("placewright.index.job", "Job.__init__", "build"),
    ("placewright.index.topology", "Topology.__init__", "build"),
    ("placewright.model.encoding", "Encoding.__init__", "build"),
    ("placewright.search.lexicographic", "solve", "search"),
    ("placewright.search.lexicographic", "minimise", "solve"),
    ("placewright.search.staged", "deal", "search"),
    ("placewright.explain", "quick_reasons", "explain"),
    ("placewright.explain", "explain", "explain"),
    ("placewright.decode.workers", "decode_counts", "decode"),
    ("placewright.decode.workers", "place_workers", "decode"),
    ("placewright.decode.workers", "pools_and_idle", "decode"),
    ("placewright.pipeline", "verify", "verify"),
)
"""(module, function or method, stage). ``search`` is the search's own work between solver calls: hints, bounds."""
_MOST_POINTS = 400


class Stopwatch:
    """Times of stages, CP-SAT calls and goals while entered.

    Attributes:
        times: stage -> seconds.
        calls: one entry a CP-SAT call: start, seconds, status, workers, and its trace of [seconds, value, bound].
        goals: what ``progress`` was told, with the time.
        missing: stages' functions that are not there.
    """

    def __init__(self) -> None:
        self.times: dict[str, float] = {}
        self.calls: list[dict[str, Any]] = []
        self.goals: list[dict[str, Any]] = []
        self.missing: list[str] = []
        self._stack: list[tuple[str, float]] = []
        self._undo: list[tuple[Any, str, Any]] = []
        self.started = 0.0

    def __enter__(self) -> Stopwatch:
        for module_name, name, stage in STAGES:
            try:
                home: Any = import_module(module_name)
            except ImportError:
                self.missing.append(module_name)
                continue
            *owners, last = name.split(".")
            for owner in owners:
                home = getattr(home, owner, None)
            function = getattr(home, last, None)
            if function is None:
                self.missing.append(f"{module_name}.{name}")
                continue
            self._replace(home, last, self._timed(function, stage))
        from ortools.sat.python import cp_model

        self._replace(cp_model.CpSolver, "solve", self._solve(cp_model.CpSolver.solve))
        self.started = time.perf_counter()
        return self

    def __exit__(self, *error: object) -> None:
        for home, name, function in reversed(self._undo):
            setattr(home, name, function)

    def _replace(self, home: Any, name: str, function: Any) -> None:
        self._undo.append((home, name, getattr(home, name)))
        setattr(home, name, function)

    def _enter(self, stage: str) -> None:
        now = time.perf_counter()
        if self._stack:
            outer, since = self._stack[-1]
            self.times[outer] = self.times.get(outer, 0.0) + now - since
        self._stack.append((stage, now))

    def _leave(self) -> None:
        now = time.perf_counter()
        stage, since = self._stack.pop()
        self.times[stage] = self.times.get(stage, 0.0) + now - since
        if self._stack:
            self._stack[-1] = (self._stack[-1][0], now)

    def _timed(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            self._enter(stage)
            try:
                return function(*arguments, **options)
            finally:
                self._leave()

        return timed

    def _solve(self, function: Callable[..., Any]) -> Callable[..., Any]:
        from ortools.sat.python import cp_model

        watch = self

        class Tracer(cp_model.CpSolverSolutionCallback):  # type: ignore[misc]
            def __init__(self, trace: list[list[Any]], since: float) -> None:
                super().__init__()
                self.trace, self.since = trace, since

            def on_solution_callback(self) -> None:
                if len(self.trace) < _MOST_POINTS:
                    now = time.perf_counter() - self.since
                    self.trace.append([round(now, 4), self.objective_value, self.best_objective_bound])

        def solve(solver: Any, model: Any, callback: Any = None) -> Any:
            watch._enter("solve")
            since = time.perf_counter()
            trace: list[list[Any]] = []
            # A restricted model's bound is none of the problem's.
            whole = model.name != RESTRICTED
            optimise = model.has_objective() and whole
            if optimise and callback is None:
                callback = Tracer(trace, since)
            if optimise and solver.best_bound_callback is None:
                solver.best_bound_callback = lambda bound: (
                    trace.append([round(time.perf_counter() - since, 4), None, bound]) if len(trace) < _MOST_POINTS else None
                )
            try:
                status = function(solver, model, callback) if callback is not None else function(solver, model)
            finally:
                watch._leave()
            seconds = time.perf_counter() - since
            entry: dict[str, Any] = {"start": round(since - watch.started, 4), "seconds": round(seconds, 4)}
            entry |= {"status": solver.status_name(status), "workers": solver.parameters.num_workers}
            if optimise and status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
                trace.append([round(seconds, 4), solver.objective_value, solver.best_objective_bound])
                entry["trace"] = trace
            watch.calls.append(entry)
            return status

        return solve

    def progress(self, name: str, value: int | None, bound: int | None, seconds: float) -> None:
        """To be handed to ``plan``."""
        now = round(time.perf_counter() - self.started, 4)
        self.goals.append({"name": name, "value": value, "bound": bound, "at": now})

    def goal_times(self) -> list[dict[str, Any]]:
        """Per goal: its value, bound, and the seconds that CP-SAT spent on it."""
        found = []
        before = -1.0
        for goal in self.goals:
            here = [call for call in self.calls if before <= call["start"] < goal["at"]]
            seconds = round(sum(call["seconds"] for call in here), 4)
            found.append({**goal, "solve": seconds, "calls": len(here)})
            for call in here:
                call["goal"] = goal["name"]
            before = goal["at"]
        return found
