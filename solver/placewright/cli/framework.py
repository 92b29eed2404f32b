"""What ``import`` and ``check`` share: the framework, its configuration file, and the hardware from a file, Ray or flags.

Modify this file when another framework's configuration can be read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from placewright.cli.base import EXIT_INVALID, CommandFailed
from placewright.cli.reading import RAY, discover_cluster

SECTIONS = {
    "rlightning": ("cluster", "env", "policy", "buffer", "placement", "resource_pool", "train_worker_num", "eval_worker_num"),
    "verl": ("actor_rollout_ref", "trainer", "algorithm", "critic", "reward_model", "reward", "data", "resource_pool_spec"),
    "nemo-rl": ("cluster", "policy", "grpo", "sft", "dpo", "env", "data"),
}
"""Framework -> what its configurations are made of; a file with nothing of it is another program's."""
FRAMEWORKS = tuple(SECTIONS)

Framework = Annotated[
    str,
    typer.Option("--from", metavar="NAME", help=f"{', '.join(FRAMEWORKS)}.", autocompletion=lambda: list(FRAMEWORKS)),
]
ConfigFile = Annotated[Path, typer.Argument(metavar="CONFIG", help="The framework's configuration file (YAML).")]
Overrides = Annotated[
    list[str] | None, typer.Argument(metavar="KEY=VALUE", help="Overrides, as on the framework's own command line.")
]
Nodes = Annotated[int | None, typer.Option("--nodes", min=1, metavar="N", help="In place of --cluster: N equal nodes.")]
GpusPerNode = Annotated[int | None, typer.Option("--gpus-per-node", min=1, metavar="N", help="GPUs of each of --nodes.")]
CpusPerNode = Annotated[
    float | None, typer.Option("--cpus-per-node", min=0, metavar="N", help="CPUs of each of --nodes; unlimited if not given.")
]

ClusterOption = Annotated[
    str | None, typer.Option("--cluster", "-c", metavar="FILE", help="A file with the cluster; `ray` asks a running one.")
]


def known_framework(name: str) -> str:
    """Refuse names of frameworks that are not known."""
    if name not in FRAMEWORKS:
        raise CommandFailed(f"--from {name}: write one of {', '.join(FRAMEWORKS)}", EXIT_INVALID)
    return name


def read_config(framework: str, path: Path) -> Any:
    """The configuration as plain data."""
    from placewright.compat._settings import load_file

    if not path.is_file():
        raise CommandFailed(f"{path}: there is no such file", EXIT_INVALID)
    found = load_file(path)
    if found and not any(section in found for section in SECTIONS[framework]):
        raise CommandFailed(
            f"{path}: this is no configuration of {framework}: none of {', '.join(SECTIONS[framework])} is in it", EXIT_INVALID
        )
    return found


def hardware(
    cluster: str | None, address: str | None, nodes: int | None, gpus: int | None, cpus: float | None, quiet: bool
) -> Any:
    """The cluster from a file, a running Ray cluster, or the three numbers."""
    if address is not None and cluster != RAY:
        raise CommandFailed("--address goes with --cluster ray", EXIT_INVALID)
    if cluster is not None:
        if nodes is not None or gpus is not None or cpus is not None:
            raise CommandFailed("give --cluster, or --nodes with --gpus-per-node, not both", EXIT_INVALID)
        return discover_cluster(address, quiet)["cluster"] if cluster == RAY else cluster
    if nodes is None or gpus is None:
        raise CommandFailed(
            "say what hardware there is: --cluster FILE, --cluster ray, or --nodes N --gpus-per-node N", EXIT_INVALID
        )
    entry: dict[str, Any] = {"id": "node-{}", "count": nodes, "start": 1, "gpus": gpus}
    if cpus is not None:
        entry["cpus"] = int(cpus) if cpus == int(cpus) else cpus
    return {"nodes": [entry]}


def importer(framework: str) -> Callable[[Any, Any, list[str]], dict[str, Any]]:
    """The function that makes a problem of the framework's configuration."""
    if framework == "verl":
        from placewright.compat.verl_config import import_verl

        return import_verl
    if framework == "nemo-rl":
        from placewright.compat.nemo_rl_config import import_nemo_rl

        return import_nemo_rl
    from placewright.compat.rlightning_config import import_rlightning

    return import_rlightning


def assumed(framework: str, config: Any, overrides: list[str]) -> tuple[str, ...]:
    """What was taken because the configuration does not say it."""
    from placewright.compat import nemo_rl_config, rlightning_config, verl_config

    if framework == "verl":
        return verl_config.read_settings(config, overrides).notes
    if framework == "nemo-rl":
        return nemo_rl_config.read_settings(config, overrides).notes
    return rlightning_config.read_settings(config, overrides).notes


def checker(framework: str) -> Callable[[Any, Any, list[str]], Any]:
    """The function that follows the framework's own start."""
    if framework == "verl":
        from placewright.compat.verl_config import check_verl

        return check_verl
    if framework == "nemo-rl":
        from placewright.compat.nemo_rl_config import check_nemo_rl

        return check_nemo_rl
    from placewright.compat.rlightning_config import check_rlightning

    return check_rlightning
