"""Middle-sized random clusters, 40 to 120 nodes: the same question where proofs get harder."""

from __future__ import annotations

from random import Random

from benchmarks.families._random import random_problem
from benchmarks.registry import Data, register


def build(seed: int, domains: int = 8) -> Data:
    """Eight domains or so of four to twelve nodes, 80 to 98 % of the GPUs asked."""
    return random_problem(Random(seed), (domains - 2, domains + 4), (4, 12), (0.8, 0.98))


register(
    "middle",
    "random jobs with segments on about 40 to 120 slightly degraded nodes, 80 to 98 % of the GPUs asked",
    build,
    {"domains": 4},
    {f"middle-{seed}": {"seed": seed, "group": "sample", "time_limit": 10.0, "peer_limit": 5.0} for seed in range(1, 13)},
)
