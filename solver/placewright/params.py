"""Every setting of a run, as one frozen value; the only file that names CP-SAT parameters.

Usage: ``plan(problem, time_limit=10)`` or ``plan(problem, params=SolveParams(...))``; ``SolveParams.from_toml(path)`` reads a
file. Modify this file when a run gets another setting.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from placewright_models.errors import Fault, InvalidProblem

RESTRICTED = "restricted"
"""Name of a CP-SAT model with constraints that the problem does not have: its bound says nothing of the problem."""


@dataclass(frozen=True, slots=True)
class SolveParams:
    """How to solve.

    Attributes:
        time_limit: seconds over all goals together.
        workers: solver threads.
        seed: random seed of the solver.
        log: let the solver write its own log to stderr.
        least_work: deterministic seconds for asking whether every component can lie on its fewest nodes.
        first_work: deterministic seconds per goal for a first try without presolve.
        probe_work: deterministic seconds for asking whether a goal meets its lower bound.
        probing_work: once such questions took so many of them, the goal is minimised instead.
        deal_work: deterministic seconds for dealing a relaxation's counts out to single domains.
        neighbourhood_work: deterministic seconds for improving a solution a few domains at a time.
        mip_share: part of the time left that HiGHS gets for a goal that was not settled by then; 0 for none.
        deterministic_work: CP-SAT's deterministic seconds per goal on one thread before all threads are used.
        bound_work: deterministic seconds per goal of searching upwards from the bound after that.
        break_symmetry: order provably equal nodes.
        merge_classes: treat node classes with the same patterns as one.
        pattern_limit: node classes with more patterns than this are encoded node by node.
        one_by_one_domains: up to so many domains are always counted one by one.
        most_levels: evenness counts nodes per number of workers up to this number, beyond it uses a closed form.
        staged_above: with more pattern variables than this, bounds come from a relaxation and plans from a restriction first.
        together_ratio: equal domains are counted together where that takes at most so many times the variables.
        by_set_below: the stronger of two relaxations is tried with at most so many variables.
        most_sets: equal domains are counted together where at most so many sets of components may lie in one.
    """

    time_limit: float = 30.0
    workers: int = 2
    seed: int = 0
    log: bool = False
    least_work: float = 0.03
    first_work: float = 0.06
    probe_work: float = 0.3
    probing_work: float = 0.3
    deal_work: float = 0.3
    neighbourhood_work: float = 1.0
    mip_share: float = 0.8
    deterministic_work: float = 4.0
    bound_work: float = 10.0
    break_symmetry: bool = True
    merge_classes: bool = True
    pattern_limit: int = 1500
    one_by_one_domains: int = 2
    together_ratio: float = 2.0
    most_sets: int = 63
    most_levels: int = 256
    staged_above: int = 1000
    by_set_below: int = 8000

    def __post_init__(self) -> None:
        faults = []
        limit = self.time_limit
        if isinstance(limit, bool) or not isinstance(limit, (int, float)) or limit != limit:
            faults.append(Fault("time_limit", f"{limit!r} is not a number of seconds", "write a number such as 30"))
        for name, least, most in (("workers", 1, 1024), ("seed", 0, 2**31 - 1)):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                faults.append(Fault(name, f"{value!r} is out of range", f"a whole number from {least} to {most}"))
        if faults:
            raise InvalidProblem(faults)

    def with_(self, **changes: Any) -> SolveParams:
        """The same settings with some changed."""
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The settings as plain data, for records of runs."""
        return asdict(self)

    @staticmethod
    def from_toml(path: str | Path) -> SolveParams:
        """Settings from a TOML file; unknown names are refused.

        Raises:
            TypeError: if the file names a setting that there is not.
        """
        try:
            import tomllib
        except ModuleNotFoundError:  # Python 3.10
            import tomli as tomllib  # type: ignore[import-not-found,no-redef]
        return SolveParams(**tomllib.loads(Path(path).read_text()))


def apply_to(
    solver: Any,
    params: SolveParams,
    time_left: float,
    workers: int | None = None,
    presolve: bool = True,
    *,
    deterministic: float | None = None,
    upwards: bool = False,
    fixed: bool = False,
) -> None:
    """Set a ``CpSolver`` up.

    Args:
        deterministic: deterministic seconds, no limit if None.
        upwards: search at the lower bound, and raise it.
        fixed: every variable has its hinted value.
    """
    parameters = solver.parameters
    parameters.max_time_in_seconds = max(0.01, time_left)
    parameters.num_workers = workers or params.workers
    parameters.random_seed = params.seed
    parameters.cp_model_presolve = presolve
    parameters.use_objective_lb_search = upwards
    parameters.fix_variables_to_their_hinted_value = fixed
    if deterministic is not None:
        parameters.max_deterministic_time = deterministic
    parameters.log_search_progress = params.log
    # See lexicographic.Search.solve.
    parameters.catch_sigint_signal = False
    if parameters.num_workers == 1:
        # The counting models are close to their linear relaxation (measured in docs/model.md).
        parameters.linearization_level = 2
    parameters.log_to_stdout = False
    if params.log:
        import sys

        solver.log_callback = lambda text: print(text, file=sys.stderr)


def small_solver() -> Any:
    """A ``CpSolver`` for models that take milliseconds: one thread, and Python keeps its handler of Ctrl-C."""
    from ortools.sat.python import cp_model

    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.catch_sigint_signal = False
    return solver
