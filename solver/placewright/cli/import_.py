"""``placewright import``: a framework's configuration as a problem. Modify this file when importing gets another option."""

from __future__ import annotations

from placewright.cli.base import NoColor, Output, Quiet, Verbose, say
from placewright.cli.framework import (
    ClusterOption,
    ConfigFile,
    CpusPerNode,
    Framework,
    GpusPerNode,
    Nodes,
    Overrides,
    assumed,
    hardware,
    importer,
    known_framework,
    read_config,
)
from placewright.cli.reading import Address


def import_(
    config: ConfigFile,
    overrides: Overrides = None,
    framework: Framework = ...,  # type: ignore[assignment]
    cluster: ClusterOption = None,
    address: Address = None,
    nodes: Nodes = None,
    gpus_per_node: GpusPerNode = None,
    cpus_per_node: CpusPerNode = None,
    output: Output = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
) -> None:
    """Make a problem of another framework's configuration.

    What the framework assumes is written out.

    \b
    placewright import --from verl ppo_trainer.yaml --cluster cluster.yaml -o problem.yaml
    placewright import --from nemo-rl recipe.yaml --nodes 8 --gpus-per-node 8 | placewright plan /dev/stdin
    """
    import json

    from placewright.cli.output import check_output, put
    from placewright_models.codec import dump_yaml

    name = known_framework(framework)
    check_output(output)
    there = hardware(cluster, address, nodes, gpus_per_node, cpus_per_node, quiet)
    data = read_config(name, config)
    problem = importer(name)(data, there, overrides or [])
    as_json = output is not None and output.suffix.lower() == ".json"
    put(json.dumps(problem, indent=2) + "\n" if as_json else dump_yaml(problem), output)
    for note in assumed(name, data, overrides or []):
        say(f"note: {note}", quiet)
    if output is not None:
        say(f"{output}: {len(problem['components'])} components (from {name})", quiet)
