"""NVLink domains from the label ``nvidia.com/gpu.clique``, which NVIDIA's device plugin sets: ``<cluster uuid>.<clique id>``.

A uuid of zeros means that the node's fabric is not set up. Modify this file when NVIDIA changes that label.
"""

from __future__ import annotations

from placewright.apply.view import LiveNode
from placewright.discover.source import TopologySource, valid_domain

LABEL = "nvidia.com/gpu.clique"


def _read(node: LiveNode) -> str | None:
    value = node.labels.get(LABEL)
    if value is not None and valid_domain(value.rpartition(".")[0] or value) is None:
        return "0"
    return value


SOURCE = TopologySource(f"label {LABEL}", _read)
