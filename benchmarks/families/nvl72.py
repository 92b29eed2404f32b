"""NVL72 racks: 18 nodes of 4 GPUs to a domain, train in segments of 16 nodes. Instance B and its growth curve."""

from __future__ import annotations

from benchmarks.families._parts import SHARES, four_of
from benchmarks.registry import Data, register

PART = 0.8 / sum(SHARES.values())
"""A's proportions, scaled so that four fifths of the GPUs are used."""


def build(seed: int, domains: int) -> Data:
    """``domains`` racks. The seed changes nothing."""
    data = four_of(domains * 72, train_gpus=4, segment_size=16, part=PART)
    row = {"id": "node-{}", "count": domains * 18, "gpus": 4, "nvlink_domain": "rack{}", "nodes_per_domain": 18}
    return {"cluster": {"nodes": [row]}, **data}


PEERS = ("first-fit", "nemo-rl", "slurm-block", "kueue-best-fit", "kueue-least-free", "kai-binpack")
register(
    "nvl72",
    "NVL72 racks of 18 nodes with 4 GPUs; four components on 80 % of the GPUs, train in segments of 16 nodes",
    build,
    {"domains": 4},
    {
        "B": {"size": {"domains": 6940}, "time_limit": 60.0, "peer_limit": 60.0, "peers": PEERS},
        "B-default": {"size": {"domains": 6940}, "time_limit": 60.0, "default": True, "peers": ()},
        "nvl72-1k": {"size": {"domains": 14}, "group": "growth", "peers": ("first-fit",)},
        "nvl72-10k": {"size": {"domains": 139}, "group": "growth", "peers": ("first-fit",)},
        "nvl72-100k": {"size": {"domains": 1389}, "group": "growth", "peers": ("first-fit",)},
    },
)
