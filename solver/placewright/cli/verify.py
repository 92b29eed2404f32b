"""``placewright verify``: an independent check of a plan file. Modify this file when checking gets another option."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from placewright.cli.base import EXIT_INVALID, CommandFailed, NoColor, PlanFile, Quiet, Verbose
from placewright.cli.reading import ClusterFile
from placewright_models.problem import Problem


def verify(
    plan: PlanFile,
    problem: Annotated[
        Path | None, typer.Option("--problem", "-p", metavar="FILE", help="Check against this problem, not the one inside.")
    ] = None,
    cluster: ClusterFile = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
) -> None:
    """Check a plan without the solver: every rule, goal and number.

    Ends 0 where the plan is right, 1 with each difference named where it is not.

    \b
    placewright verify plan.json
    placewright verify plan.json --problem problem.yaml
    """
    from placewright.cli.output import put
    from placewright.verify import verify as check
    from placewright_models.codec import load_plan, load_problem
    from placewright_models.errors import PlanMismatch

    asked: Problem | None = None
    if problem is not None:
        asked = load_problem(problem, cluster)
    elif cluster is not None:
        raise CommandFailed("--cluster needs --problem: the problem inside a plan has its cluster", EXIT_INVALID)
    read = load_plan(plan, asked)
    try:
        check(read.problem, read)
    except PlanMismatch as mismatch:
        raise PlanMismatch(mismatch.differences, f"{plan}: the plan is wrong") from None
    if not quiet:
        workers = sum(map(len, read.workers.values()))
        put(f"{plan}: the plan is right ({workers:,} workers, {len(read.goals)} goals, every rule checked)\n")
