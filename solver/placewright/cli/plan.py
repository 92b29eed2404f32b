"""``placewright plan``: problem in, plan out. Modify this file when planning gets another option."""

from __future__ import annotations

from typing import Annotated

import typer

from placewright.cli.base import (
    EXIT_INVALID,
    CommandFailed,
    Format,
    Map,
    NoColor,
    Output,
    ProblemFile,
    Quiet,
    Verbose,
    say,
)
from placewright.cli.reading import Address, ClusterFile, Exclude, Occupied, Overlay, read_problem, time_limit_ok

SOLVERS = ("cp-sat", "greedy")

TimeLimit = Annotated[float, typer.Option("--time-limit", "-t", metavar="S", help="Seconds over all goals together.")]
Workers = Annotated[int | None, typer.Option("--workers", min=1, max=1024, metavar="N", help="Threads of the solver.")]
Seed = Annotated[int, typer.Option("--seed", min=0, max=2**31 - 1, metavar="N", help="Random seed of the solver.")]
Log = Annotated[bool, typer.Option("--log", help="Show the solver's own log on stderr.")]
Solver = Annotated[
    str,
    typer.Option("--solver", metavar="NAME", help="cp-sat (proves its plan) or greedy.", autocompletion=lambda: list(SOLVERS)),
]


def plan(
    problem: ProblemFile,
    cluster: ClusterFile = None,
    address: Address = None,
    exclude: Exclude = None,
    overlay: Overlay = None,
    occupied: Occupied = None,
    solver: Solver = "cp-sat",
    time_limit: TimeLimit = 30.0,
    workers: Workers = None,
    seed: Seed = 0,
    log: Log = False,
    format: Format = None,
    output: Output = None,
    map: Map = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
) -> None:
    """Plan a problem: which worker gets which GPUs of which node.

    Without --format the ending of FILE decides, and text is printed where there is no FILE.

    \b
    placewright plan problem.yaml
    placewright plan job.yaml --cluster cluster.yaml -o plan.json
    placewright plan problem.yaml --map map.html
    placewright plan problem.yaml --exclude node-17,rack3 --time-limit 10
    placewright plan problem.yaml --occupied other-plan.json --format yaml
    """
    from placewright.cli.output import check_map, check_output, choose_target, put_map, put_plan
    from placewright.cli.progress import Progress

    if solver not in SOLVERS:
        raise CommandFailed(f"--solver {solver}: write {' or '.join(SOLVERS)}", EXIT_INVALID)
    target = choose_target(format, output)
    check_output(output)
    check_map(map)
    time_limit = time_limit_ok(time_limit)
    asked = read_problem(problem, cluster, exclude, overlay, occupied, address, quiet)

    from placewright.params import SolveParams
    from placewright.pipeline import plan as solve

    params = SolveParams(time_limit=time_limit, seed=seed, log=log)
    if workers is not None:
        params = params.with_(workers=workers)
    with Progress(quiet=quiet or log) as progress:
        made = solve(asked, solver=solver, time_limit=time_limit, params=params, progress=progress.update)
    put_plan(made, target, output)
    put_map(made, map, quiet)
    for warning in made.warnings:
        # The table shows them itself.
        if target.name != "text" or output is not None:
            say(f"Warning: {warning}", quiet)
    if output is not None:
        goals = ", ".join(f"{goal.name} {goal.value:,}" for goal in made.goals)
        say(f"{output}: {made.status} plan ({target.name}){': ' + goals if goals else ''}", quiet)
