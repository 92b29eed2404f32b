"""Small random clusters, 6 to 20 nodes: how often does a rule find a plan where one exists, and how good is it?"""

from __future__ import annotations

from random import Random

from benchmarks.families._random import random_problem
from benchmarks.registry import Data, register


def build(seed: int) -> Data:
    """Two to four domains of three to five nodes, 65 to 100 % of the GPUs asked."""
    return random_problem(Random(seed), (2, 4), (3, 5), (0.65, 1.0))


register(
    "small",
    "random jobs with segments on 6 to 20 slightly degraded nodes, 65 to 100 % of the GPUs asked",
    build,
    {},
    {f"small-{seed}": {"seed": seed, "group": "sample", "time_limit": 10.0, "peer_limit": 5.0} for seed in range(1, 41)},
    smoke_count=3,
)
