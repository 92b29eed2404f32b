"""Problems from what the command line names: files, overlays, other plans, a running Ray cluster.

Modify this file when a problem can come from another place.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from placewright.cli.base import EXIT_INVALID, CommandFailed
from placewright_models.problem import Problem

ClusterFile = Annotated[
    str | None, typer.Option("--cluster", "-c", metavar="FILE", help="The cluster, where PROBLEM has none.")
]
Exclude = Annotated[
    list[str] | None,
    typer.Option("--exclude", metavar="NAMES", help="Nodes or NVLink domains that host nothing, with commas between."),
]
Overlay = Annotated[
    list[Path] | None,
    typer.Option("--overlay", metavar="FILE", help="What differs today: excluded nodes, bad GPUs, used CPUs. May repeat."),
]
Occupied = Annotated[
    list[Path] | None, typer.Option("--occupied", metavar="PLAN", help="A plan whose GPUs and CPUs are taken. May repeat.")
]


def read_problem(
    problem: Path,
    cluster: str | None = None,
    exclude: Sequence[str] | None = None,
    overlay: Sequence[Path] | None = None,
    occupied: Sequence[Path] | None = None,
) -> Problem:
    """The problem with its cluster and everything laid over it."""
    from placewright_models.codec import load_problem

    return load_problem(problem, cluster, exclude=exclude or (), overlays=overlay or (), occupied=occupied or ())


def time_limit_ok(seconds: float) -> float:
    """Refuse time limits that mean nothing."""
    if not 0 < seconds < 10**9:
        raise CommandFailed(f"--time-limit {seconds:g}: give seconds above 0", EXIT_INVALID)
    return seconds
