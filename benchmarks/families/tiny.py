"""Tiny problems over many rules: sharing, shares, groups, elastic components, CPU limits, on two to six nodes."""

from __future__ import annotations

from random import Random
from typing import Any

from benchmarks.registry import Data, register


def build(seed: int) -> Data:
    """One valid problem; default goals."""
    rng = Random(seed)
    nodes: list[Data] = []
    for index in range(rng.randint(2, 6)):
        node: Data = {"id": f"n{index}", "gpus": rng.choice((4, 8, 8)), "cpus": rng.choice((16, 32, 64))}
        if rng.random() < 0.85:
            node["nvlink_domain"] = f"rack{index // 2}"
        if rng.random() < 0.2:
            node["unavailable_gpus"] = [rng.randrange(node["gpus"])]
        nodes.append(node)
    gpus = sum(node["gpus"] for node in nodes)
    components: dict[str, Any] = {
        "train": {"workers": max(1, gpus // 3), "gpus": 1},
        "rollout": {"workers": max(1, gpus // 8), "gpus": 2},
        "reward": {"workers": rng.randint(1, 3), "gpus": rng.choice((1, 2))},
        "env": {"workers": rng.randint(2, 10), "gpus": rng.choice((0, 0.18, 0.25)), "cpus": 1},
    }
    if rng.random() < 0.5:
        components["rollout"]["workers"] = {"min": 1, "max": max(2, gpus // 6)}
    if rng.random() < 0.5:
        k = rng.choice((2, 4))
        components["train"]["workers"] = max(1, gpus // 3 // k) * k
        mode = rng.choice(("required", "preferred"))
        components["train"]["group"] = {"workers": k, "within": rng.choice(("node", "nvlink_domain")), "mode": mode}
    data: Data = {"cluster": {"nodes": nodes}, "components": components}
    if rng.random() < 0.6:
        data["rules"] = {"share_gpus": [rng.sample(sorted(components), 2)]}
    if rng.random() < 0.4:
        data["traffic"] = [{"between": ["env", "rollout"], "weight": 1}]
    return data


register(
    "tiny",
    "two to six nodes, many rules at once: sharing, shares, groups, elastic components, traffic; default goals",
    build,
    {},
    {f"tiny-{seed}": {"seed": seed, "group": "sample", "time_limit": 10.0, "peer_limit": 5.0} for seed in range(1, 21)},
    smoke_count=3,
)
