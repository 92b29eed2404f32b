"""What several families build from: the four-component job and lists of nodes.

Modify this file when the job of the issue's table changes.
"""

from __future__ import annotations

from random import Random
from typing import Any

from benchmarks.registry import GOALS, Data

A_NODES, A_DOMAINS, A_PER_DOMAIN, A_GPUS = 12_512, 782, 16, 8
A_TRAIN, A_ROLLOUT, A_REWARD, A_ENV = 4_378, 8_758, 4_003, 10_009
"""Workers of instance A: 8, 4, 2 and 1 GPUs each, 88 % of 100,096 GPUs."""
SHARES = {
    "train": A_TRAIN * 8 / (A_NODES * A_GPUS),
    "rollout": A_ROLLOUT * 4 / (A_NODES * A_GPUS),
    "reward": A_REWARD * 2 / (A_NODES * A_GPUS),
    "env": A_ENV / (A_NODES * A_GPUS),
}
"""Part of all GPUs that each component takes in A."""


def four(train: int, rollout: int, reward: int, env: int, train_gpus: int = 8, segment_size: int = 2) -> Data:
    """The four components with these numbers of workers, span_weight 1."""
    components: dict[str, Any] = {
        "train": {"workers": train, "gpus": train_gpus, "segment_size": segment_size, "span_weight": 1},
        "rollout": {"workers": rollout, "gpus": 4, "span_weight": 1},
        "reward": {"workers": reward, "gpus": 2, "span_weight": 1},
        "env": {"workers": env, "gpus": 1, "span_weight": 1},
    }
    return {"components": components, "goals": list(GOALS)}


def four_of(gpus: float, train_gpus: int = 8, segment_size: int = 2, part: float = 1.0) -> Data:
    """The four components in A's proportions on so many GPUs, segments rounded down."""
    train = int(SHARES["train"] * gpus * part / train_gpus) // segment_size * segment_size
    return four(
        max(train, segment_size),
        max(1, int(SHARES["rollout"] * gpus * part / 4)),
        max(1, int(SHARES["reward"] * gpus * part / 2)),
        max(1, int(SHARES["env"] * gpus * part)),
        train_gpus,
        segment_size,
    )


def degraded_nodes(rng: Random, domains: int, per_domain: int = 16, gone: float = 0.02, worn: float = 0.01) -> list[Data]:
    """Nodes of 8 GPUs; each is missing with probability ``gone``, and has 7, 6 or 4 GPUs left with probability ``worn``."""
    nodes: list[Data] = []
    for n in range(domains * per_domain):
        fate, left = rng.random(), rng.choice((7, 6, 4))
        if fate < gone:
            continue
        node: Data = {"id": f"node-{n}", "gpus": 8, "nvlink_domain": f"rack{n // per_domain}"}
        if fate < gone + worn:
            node["unavailable_gpus"] = list(range(left, 8))
        nodes.append(node)
    return nodes


def available(nodes: list[Data]) -> int:
    """GPUs that the nodes have left."""
    return sum(node["gpus"] - len(node.get("unavailable_gpus", ())) for node in nodes)
