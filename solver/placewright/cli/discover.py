"""``placewright discover``: a problem's cluster section from a running Ray cluster.

Modify this file when discovery gets another option.
"""

from __future__ import annotations

from typing import Annotated

import typer

from placewright.cli.base import NoColor, Output, Quiet, Verbose, say
from placewright.cli.reading import Address, discover_cluster


def discover(
    address: Address = None,
    probe_gpus: Annotated[
        bool, typer.Option("--probe-gpus", help="Find out which GPUs are in use, by holding the free ones for a moment.")
    ] = False,
    domain_label: Annotated[
        str | None, typer.Option("--domain-label", metavar="LABEL", help="Ray node label that names the NVLink domain.")
    ] = None,
    timeout: Annotated[float, typer.Option("--timeout", metavar="S", help="Seconds to wait for the probes.")] = 60.0,
    output: Output = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
) -> None:
    """Write the cluster section from a running Ray cluster.

    \b
    placewright discover -o cluster.yaml
    placewright plan job.yaml --cluster cluster.yaml
    """
    import json

    from placewright.cli.output import check_output, put
    from placewright_models.codec import dump_yaml

    check_output(output)
    cluster = discover_cluster(address, quiet, probe_gpus=probe_gpus, domain_label=domain_label, timeout=timeout)
    as_json = output is not None and output.suffix.lower() == ".json"
    put(json.dumps(cluster, indent=2) + "\n" if as_json else dump_yaml(cluster), output)
    if output is not None:
        say(f"{output}: {len(cluster['cluster']['nodes'])} nodes", quiet)
