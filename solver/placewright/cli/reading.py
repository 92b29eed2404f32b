"""Problems from what the command line names: files, overlays, other plans, a running Ray cluster.

Modify this file when a problem can come from another place.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from placewright.cli.base import EXIT_INVALID, CommandFailed, say
from placewright_models.problem import Problem

ClusterFile = Annotated[
    str | None,
    typer.Option("--cluster", "-c", metavar="FILE", help="The cluster, where PROBLEM has none; `ray` asks a running one."),
]
Address = Annotated[
    str | None, typer.Option("--address", metavar="HOST:PORT", help="The Ray cluster; else RAY_ADDRESS, or this machine's.")
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

RAY = "ray"
"""The value of ``--cluster`` that asks a running Ray cluster."""


def read_problem(
    problem: Path,
    cluster: str | None = None,
    exclude: Sequence[str] | None = None,
    overlay: Sequence[Path] | None = None,
    occupied: Sequence[Path] | None = None,
    address: str | None = None,
    quiet: bool = False,
) -> Problem:
    """The problem with its cluster and everything laid over it."""
    from placewright_models.codec import load_problem

    if address is not None and cluster != RAY:
        raise CommandFailed("--address goes with --cluster ray", EXIT_INVALID)
    source = discover_cluster(address, quiet) if cluster == RAY else cluster
    return load_problem(problem, source, exclude=exclude or (), overlays=overlay or (), occupied=occupied or ())


def discover_cluster(address: str | None, quiet: bool, **options: Any) -> dict[str, Any]:
    """The ``cluster:`` section of a running Ray cluster, with what is unknown or assumed told on stderr."""
    from placewright.discover import discover_ray

    found = discover_ray(address, **options)
    for warning in found["warnings"]:
        say(f"Warning: {warning}", quiet)
    return {"cluster": found["cluster"]}


def time_limit_ok(seconds: float) -> float:
    """Refuse time limits that mean nothing."""
    if not 0 < seconds < 10**9:
        raise CommandFailed(f"--time-limit {seconds:g}: give seconds above 0", EXIT_INVALID)
    return seconds
