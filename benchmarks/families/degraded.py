"""A fleet in use: nodes missing, others with GPUs lost. Instances C and D and the growth curve."""

from __future__ import annotations

from random import Random

from benchmarks.families._parts import A_DOMAINS, A_ENV, A_REWARD, A_ROLLOUT, A_TRAIN, degraded_nodes, four
from benchmarks.registry import Data, register


def build(seed: int, domains: int) -> Data:
    """A's domains with 2 % of the nodes gone and 1 % with 7, 6 or 4 GPUs left; 97 % of A's workload."""
    part = 0.97 * domains / A_DOMAINS
    data = four(
        max(1, int(A_TRAIN * part / 2)) * 2,
        max(1, int(A_ROLLOUT * part)),
        max(1, int(A_REWARD * part)),
        max(1, int(A_ENV * part)),
    )
    return {"cluster": {"nodes": degraded_nodes(Random(seed), domains)}, **data}


PEERS = ("first-fit", "plain-cp-sat")
register(
    "degraded",
    "domains of 16 nodes with 8 GPUs, 2 % of the nodes gone and 1 % with 7, 6 or 4 GPUs left; 97 % of A's workload",
    build,
    {"domains": 3},
    {
        "C": {"size": {"domains": 782}, "seed": 57, "peer_limit": 20.0},
        "C-default": {"size": {"domains": 782}, "seed": 57, "default": True, "peers": ()},
        "D": {"size": {"domains": 64}, "seed": 57, "peer_limit": 20.0},
        "D-default": {"size": {"domains": 64}, "seed": 57, "default": True, "peers": ()},
        "degraded-128": {"size": {"domains": 1}, "group": "growth", "peers": PEERS, "peer_limit": 10.0},
        "degraded-1k": {"size": {"domains": 8}, "group": "growth", "peers": PEERS, "peer_limit": 10.0},
        "degraded-10k": {"size": {"domains": 78}, "group": "growth", "peers": ("first-fit",)},
        "degraded-1M": {"size": {"domains": 7820}, "group": "growth", "time_limit": 60.0, "peers": ()},
    },
)
