"""Hardly two domains alike: node counts and node sizes vary. Instance E and its growth curve."""

from __future__ import annotations

from random import Random

from benchmarks.families._parts import available, four_of
from benchmarks.registry import Data, register

SIZES = (8, 6, 4, 0)
WEIGHTS = (85, 7, 5, 3)


def build(seed: int, domains: int) -> Data:
    """Domains of 13 to 18 nodes; most nodes have 8 GPUs, the others 6, 4 or none."""
    rng = Random(seed)
    nodes: list[Data] = []
    for domain in range(domains):
        for _ in range(rng.randint(13, 18)):
            size = rng.choices(SIZES, WEIGHTS)[0]
            nodes.append({"id": f"node-{len(nodes)}", "gpus": size, "nvlink_domain": f"rack{domain}"})
    return {"cluster": {"nodes": nodes}, **four_of(available(nodes))}


PEERS = ("first-fit",)
register(
    "uneven",
    "domains of 13 to 18 nodes with 8, 6, 4 or no GPUs, hardly two alike; four components on 88 % of the GPUs",
    build,
    {"domains": 3},
    {
        "E": {"size": {"domains": 64}, "seed": 305, "time_limit": 60.0, "peer_limit": 20.0},
        "E-default": {"size": {"domains": 64}, "seed": 305, "time_limit": 30.0, "default": True, "peers": ()},
        "uneven-100": {"size": {"domains": 1}, "group": "growth", "time_limit": 20.0, "peers": PEERS},
        "uneven-1k": {"size": {"domains": 8}, "group": "growth", "time_limit": 20.0, "peers": PEERS},
        "uneven-4k": {"size": {"domains": 32}, "group": "growth", "time_limit": 20.0, "peers": PEERS},
        "uneven-16k": {"size": {"domains": 128}, "group": "growth", "time_limit": 20.0, "peers": PEERS},
        "uneven-90k": {"size": {"domains": 782}, "group": "growth", "time_limit": 60.0, "peers": PEERS},
    },
)
