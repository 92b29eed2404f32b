"""Discovery: the ``cluster:`` section of a problem from what is running.

Every topology source is one file and one entry of ``SOURCES``; to add one (Slurm, Topograph, labels of Kubernetes), write a
file like ``gpu_domain.py`` and list it here. Importing this package imports no Ray.
"""

from __future__ import annotations

from typing import Any

from placewright.discover import gpu_clique, gpu_domain, nvlink_resource
from placewright.discover.ray_cluster import discover
from placewright.discover.source import TopologySource

__all__ = ["SOURCES", "TopologySource", "discover_ray"]

SOURCES: tuple[TopologySource, ...] = (nvlink_resource.SOURCE, gpu_domain.SOURCE, gpu_clique.SOURCE)
"""Where NVLink domains are looked for; the source that knows most nodes is taken, the first among equals, never two."""


def discover_ray(
    address: str | None = None,
    probe_gpus: bool = False,
    domain_label: str | None = None,
    *,
    timeout: float = 60.0,
) -> dict[str, Any]:
    """Describe a running Ray cluster.

    Args:
        address: ``host:port`` of the cluster; None takes ``RAY_ADDRESS`` or the cluster of this machine.
        probe_gpus: find out *which* GPUs are in use, by holding all free GPUs of those nodes for about a second. Without it,
            only the number is known, and the lowest ids are taken to be in use.
        domain_label: Ray node label that names the NVLink domain, in place of ``SOURCES``.
        timeout: seconds for the probing.

    Returns:
        ``{"cluster": {"nodes": [...]}, "warnings": [...]}``: the section as plain data in the form of a problem file, and what
        is unknown or assumed, as sentences. ``id`` is a node's host name.

    Raises:
        PlacewrightError: if Ray is not installed.
        ConnectionError: if there is no cluster at the address.
        ApplyTimeout: if probing did not end in time.
    """
    return discover(SOURCES, address=address, probe_gpus=probe_gpus, domain_label=domain_label, timeout=timeout)
