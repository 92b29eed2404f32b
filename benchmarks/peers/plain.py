"""The textbook model (``linear.py``) solved goal by goal: with CP-SAT, and as a MILP with HiGHS.

Both get the same rows, two threads and the same time over all goals. Modify this file when a solver's interface changes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.peers.linear import Linear, Terms
from benchmarks.peers.peer import Found, NothingFound, Peer
from placewright_models.problem import Problem

THREADS = 2


class _Loop(Peer):
    """Goal after goal: minimise, hold, go on."""

    def solve(self, problem: Problem, time_limit: float) -> Found:
        """Counts, with bounds for the goals that were searched."""
        end = time.monotonic() + time_limit
        linear = Linear(problem)
        self.load(linear)
        found = Found(status="optimal")
        best: Sequence[int] | None = None
        goals = linear.objectives or [("", [], 0)]
        for name, terms, constant in goals:
            left = end - time.monotonic()
            if left < 0.05:
                found.status = "greedy" if best is None else "feasible"
                break
            state, values, bound = self.minimise(terms, left)
            if state == "infeasible" and best is None:
                raise NothingFound("proved infeasible", proved=True)
            best = values if values is not None else best
            if best is None:
                raise NothingFound("no solution within the time limit")
            value = sum(coefficient * best[variable] for coefficient, variable in terms)
            if state == "feasible" and terms and bound >= value:
                state = "optimal"
            if name:
                found.bounds[name] = constant + (value if state == "optimal" else min(bound, value))
            if state != "optimal":
                found.status = "feasible"
                break
            self.hold(terms, value, best)
        if best is None:
            raise NothingFound("no solution within the time limit")
        found.counts = linear.counts(best)
        return found

    def load(self, linear: Linear) -> None:
        """Make the solver's model."""
        raise NotImplementedError

    def minimise(self, terms: Terms, time_limit: float) -> tuple[str, list[int] | None, int]:
        """(``optimal``, ``feasible``, ``infeasible`` or ``unknown``; the solution; the bound)."""
        raise NotImplementedError

    def hold(self, terms: Terms, value: int, best: Sequence[int]) -> None:
        """Let the goal never get worse."""
        raise NotImplementedError


class PlainCpSat(_Loop):
    """CP-SAT with its default parameters."""

    name = "plain-cp-sat"
    what = "one CP-SAT variable per component and node, goal by goal"

    def load(self, linear: Linear) -> None:
        """One integer variable each."""
        from ortools.sat.python import cp_model

        self.model: Any = cp_model.CpModel()
        self.variables = [self.model.new_int_var(low, high, "") for low, high in zip(linear.low, linear.high, strict=True)]
        for terms, low, high in linear.rows:
            bounds = (int(low) if low > -math.inf else -(2**40), int(high) if high < math.inf else 2**40)
            self.model.add_linear_constraint(self._sum(terms), *bounds)

    def _sum(self, terms: Terms) -> Any:
        from ortools.sat.python import cp_model

        return cp_model.LinearExpr.weighted_sum([self.variables[v] for _, v in terms], [k for k, _ in terms])

    def minimise(self, terms: Terms, time_limit: float) -> tuple[str, list[int] | None, int]:
        """One call."""
        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        solver.parameters.num_workers = THREADS
        solver.parameters.max_time_in_seconds = time_limit
        solver.parameters.random_seed = 1
        if terms:
            self.model.minimize(self._sum(terms))
        else:
            self.model.clear_objective()
        status = solver.solve(self.model)
        if status == cp_model.MODEL_INVALID:
            raise RuntimeError(self.model.validate())
        if status == cp_model.INFEASIBLE:
            return "infeasible", None, 0
        if status == cp_model.UNKNOWN:
            return "unknown", None, 0
        values = [solver.value(variable) for variable in self.variables]
        state = "optimal" if status == cp_model.OPTIMAL else "feasible"
        return state, values, math.ceil(solver.best_objective_bound - 1e-6) if terms else 0

    def hold(self, terms: Terms, value: int, best: Sequence[int]) -> None:
        """A row, and the solution as hint."""
        if terms:
            self.model.add(self._sum(terms) <= value)
        self.model.clear_hints()
        for variable, at in zip(self.variables, best, strict=True):
            self.model.add_hint(variable, at)


class Highs(_Loop):
    """HiGHS with its default parameters; gaps of less than one are proofs, all goals being integer."""

    name = "highs"
    what = "the same model as a MILP with HiGHS, goal by goal"

    def load(self, linear: Linear) -> None:
        """The rows as one sparse matrix."""
        import highspy
        import numpy as np

        self.count = len(linear.low)
        model = highspy.HighsModel()
        lp = model.lp_
        lp.num_col_ = self.count
        lp.num_row_ = len(linear.rows)
        lp.col_cost_ = np.zeros(self.count)
        lp.col_lower_ = np.array(linear.low, dtype=float)
        lp.col_upper_ = np.array(linear.high, dtype=float)
        lp.row_lower_ = np.array([low for _, low, _ in linear.rows], dtype=float)
        lp.row_upper_ = np.array([high for _, _, high in linear.rows], dtype=float)
        starts, index, value = [0], [], []
        for terms, _, _ in linear.rows:
            index += [variable for _, variable in terms]
            value += [float(coefficient) for coefficient, _ in terms]
            starts.append(len(index))
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = np.array(starts, dtype=np.int32)
        lp.a_matrix_.index_ = np.array(index, dtype=np.int32)
        lp.a_matrix_.value_ = np.array(value, dtype=float)
        lp.integrality_ = [highspy.HighsVarType.kInteger] * self.count
        self.model: Any = model
        self.held: list[tuple[Terms, int]] = []
        self.start: list[float] | None = None

    def _solver(self, time_limit: float) -> Any:
        """A new solver for each goal: versions differ in whether a time limit counts earlier runs too."""
        import highspy
        import numpy as np

        make: Any = highspy.Highs
        solver = make()
        solver.silent()
        solver.setOptionValue("threads", THREADS)
        solver.setOptionValue("random_seed", 1)
        solver.setOptionValue("mip_rel_gap", 0.0)
        solver.setOptionValue("mip_abs_gap", 0.999)
        solver.setOptionValue("time_limit", time_limit)
        solver.passModel(self.model)
        for terms, value in self.held:
            indices = np.array([variable for _, variable in terms], dtype=np.int32)
            costs = np.array([float(coefficient) for coefficient, _ in terms])
            solver.addRow(-highspy.kHighsInf, float(value), len(terms), indices, costs)
        if self.start is not None:
            solution = highspy.HighsSolution()
            solution.col_value = self.start
            solver.setSolution(solution)
        return solver

    def minimise(self, terms: Terms, time_limit: float) -> tuple[str, list[int] | None, int]:
        """One call."""
        import highspy
        import numpy as np

        costs = np.zeros(self.count)
        for coefficient, variable in terms:
            costs[variable] = coefficient
        self.model.lp_.col_cost_ = costs
        solver = self._solver(time_limit)
        solver.run()
        status = solver.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return "infeasible", None, 0
        info = solver.getInfo()
        if info.primal_solution_status != 2:
            return "unknown", None, 0
        values = [round(value) for value in solver.getSolution().col_value]
        if status == highspy.HighsModelStatus.kOptimal:
            return "optimal", values, 0
        bound = info.mip_dual_bound
        return "feasible", values, math.ceil(bound - 1e-6) if math.isfinite(bound) else -(2**40)

    def hold(self, terms: Terms, value: int, best: Sequence[int]) -> None:
        """A row, and the solution as start."""
        if terms:
            self.held.append((terms, value))
        self.start = [float(at) for at in best]
