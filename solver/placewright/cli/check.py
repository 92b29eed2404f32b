"""``placewright check``: will a framework start with its configuration? Modify this file when checking gets another option."""

from __future__ import annotations

from typing import Annotated

import typer

from placewright.cli.base import EXIT_INVALID, CommandFailed, NoColor, Quiet, Verbose
from placewright.cli.framework import (
    ClusterOption,
    ConfigFile,
    CpusPerNode,
    Framework,
    GpusPerNode,
    Nodes,
    Overrides,
    checker,
    hardware,
    known_framework,
    read_config,
)
from placewright.cli.reading import Address

FORMATS = ("text", "json")


def check(
    config: ConfigFile,
    overrides: Overrides = None,
    framework: Framework = ...,  # type: ignore[assignment]
    cluster: ClusterOption = None,
    address: Address = None,
    nodes: Nodes = None,
    gpus_per_node: GpusPerNode = None,
    cpus_per_node: CpusPerNode = None,
    format: Annotated[str, typer.Option("--format", "-f", metavar="NAME", help="text or json.")] = "text",
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
) -> None:
    """Say whether a framework would start as it places itself.

    And if not, why. Changes and starts nothing. Ends 0 where it starts, 3 where it fails, hangs, or cuts a worker or group
    in two.

    \b
    placewright check --from verl ppo_trainer.yaml --cluster cluster.yaml trainer.nnodes=2
    placewright check --from nemo-rl recipe.yaml --cluster ray
    placewright check --from rlightning cluster.yaml --nodes 4 --gpus-per-node 8
    """
    import json

    from placewright.cli.output import put

    name = known_framework(framework)
    if format not in FORMATS:
        raise CommandFailed(f"--format {format}: write {' or '.join(FORMATS)}", EXIT_INVALID)
    there = hardware(cluster, address, nodes, gpus_per_node, cpus_per_node, quiet)
    report = checker(name)(read_config(name, config), there, overrides or [])
    put(json.dumps(report.to_dict(), indent=2) + "\n" if format == "json" else f"{report}\n")
    if report.exit_code:
        raise typer.Exit(report.exit_code)
