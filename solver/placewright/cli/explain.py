"""``placewright explain``: why there is no plan. Modify this file when explanations are shown otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from placewright.cli.base import EXIT_INFEASIBLE, EXIT_INVALID, CommandFailed, NoColor, ProblemFile, Quiet, Verbose
from placewright.cli.plan import Seed, TimeLimit, Workers
from placewright.cli.reading import Address, ClusterFile, Exclude, Occupied, Overlay, read_problem, time_limit_ok
from placewright_models.errors import InfeasibleProblem

FORMATS = ("text", "json")


def explain(
    problem: ProblemFile,
    cluster: ClusterFile = None,
    address: Address = None,
    exclude: Exclude = None,
    overlay: Overlay = None,
    occupied: Occupied = None,
    time_limit: TimeLimit = 30.0,
    workers: Workers = None,
    seed: Seed = 0,
    format: Annotated[str, typer.Option("--format", "-f", metavar="NAME", help="text or json.")] = "text",
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
) -> None:
    """Say why a problem has no plan.

    Names a minimal set of requirements that cannot hold together, in numbers.
    Ends 3 with the reasons where there is no plan, 0 where there is one, 4 where time ran out before either was known.

    \b
    placewright explain problem.yaml
    placewright explain problem.yaml --format json
    """
    import json

    from placewright.cli.output import put
    from placewright.cli.progress import Progress
    from placewright.params import SolveParams
    from placewright.pipeline import plan as solve

    if format not in FORMATS:
        raise CommandFailed(f"--format {format}: write {' or '.join(FORMATS)}", EXIT_INVALID)
    params = SolveParams(time_limit=time_limit_ok(time_limit), seed=seed)
    if workers is not None:
        params = params.with_(workers=workers)
    asked = read_problem(problem, cluster, exclude, overlay, occupied, address, quiet)
    refusal: InfeasibleProblem | None = None
    try:
        with Progress(quiet=quiet):
            # Whether there is a plan does not depend on the goals, and without them it is known sooner.
            solve(replace(asked, goals=()), params=params, time_limit=time_limit)
    except InfeasibleProblem as error:
        refusal = error
    reasons = refusal.reasons if refusal is not None else ()
    if format == "json":
        data = {"feasible": refusal is None, "reasons": [reason.to_dict() for reason in reasons]}
        put(json.dumps(data, indent=2, ensure_ascii=False) + "\n")
    elif refusal is None:
        put("a plan exists\n")
    else:
        put(_text(refusal))
    if refusal is not None:
        raise typer.Exit(EXIT_INFEASIBLE)


def _text(refusal: InfeasibleProblem) -> str:
    reasons = refusal.reasons
    head = "no placement exists"
    if len(reasons) > 1:
        head += f": these {len(reasons)} requirements cannot hold together; dropping any one ends this conflict"
    lines = [head, *(f"  {reason.requirement}: {reason.sentence}" for reason in reasons)]
    # What the exception says beyond its reasons: the note.
    noted = str(refusal).splitlines()[1 + len(reasons) :]
    return "\n".join([*lines, *noted]) + "\n"
