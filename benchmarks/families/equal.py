"""Equal nodes in equal domains: instance A and its growth curve."""

from __future__ import annotations

from benchmarks.families._parts import A_DOMAINS, A_ENV, A_PER_DOMAIN, A_REWARD, A_ROLLOUT, A_TRAIN, four
from benchmarks.registry import Data, register


def build(seed: int, domains: int) -> Data:
    """A with another number of domains; exactly A at 782. The seed changes nothing."""
    part = domains / A_DOMAINS
    data = four(
        max(1, round(A_TRAIN * part / 2)) * 2,
        max(1, round(A_ROLLOUT * part)),
        max(1, round(A_REWARD * part)),
        max(1, round(A_ENV * part)),
    )
    row = {"id": "node-{}", "count": domains * A_PER_DOMAIN, "gpus": 8, "nvlink_domain": "rack{}", "nodes_per_domain": 16}
    return {"cluster": {"nodes": [row]}, **data}


GROWTH = ("first-fit", "plain-cp-sat", "highs")
register(
    "equal",
    "equal nodes of 8 GPUs in equal domains of 16; four components, train in segments of 2 nodes",
    build,
    {"domains": 2},
    {
        "A": {"size": {"domains": 782}, "peer_limit": 20.0},
        "A-default": {"size": {"domains": 782}, "default": True, "peers": ()},
        "A-tenth": {"size": {"domains": 78}, "peers": ()},
        "equal-128": {"size": {"domains": 1}, "group": "growth", "peers": GROWTH, "peer_limit": 10.0},
        "equal-1k": {"size": {"domains": 8}, "group": "growth", "peers": GROWTH, "peer_limit": 10.0},
        "equal-10k": {"size": {"domains": 78}, "group": "growth", "peers": GROWTH, "peer_limit": 20.0},
        "equal-100k": {"size": {"domains": 782}, "group": "growth", "peers": ("first-fit",)},
        "equal-1M": {"size": {"domains": 7820}, "group": "growth", "time_limit": 60.0, "peers": ()},
    },
)
