"""Jobs in the words of the RLightning reference: train, eval, env, buffer and a strategy, nothing else."""

from __future__ import annotations

from random import Random

from benchmarks.registry import GOALS, Data, register


def build(seed: int, nodes: int = 8) -> Data:
    """Two to ``nodes`` nodes of 8 GPUs, in domains of two; pools apart."""
    rng = Random(seed)
    count = rng.randint(2, nodes)
    wanted = rng.uniform(0.5, 1.0) * count * 8
    width = rng.choice((1, 1, 2))
    rest = wanted / 2
    components: Data = {
        "train": {"workers": max(1, int(wanted / 2 / width)), "gpus": width, "cpus": 1},
        "eval": {"workers": max(1, int(rest / 2)), "gpus": 1, "cpus": 1},
        "env": {"workers": max(1, int(rest / 2 / 0.5)), "gpus": 0.5, "cpus": 1},
        "buffer": {"workers": "auto", "per_node_of": "train"},
    }
    row = {"id": "node-{}", "count": count, "gpus": 8, "cpus": 256, "nvlink_domain": "rack{}", "nodes_per_domain": 2}
    return {
        "cluster": {"nodes": [row]},
        "components": components,
        "rules": {"strategy": "disaggregate"},
        "goals": list(GOALS),
    }


register(
    "pools",
    "jobs that the RLightning reference can read: train, eval, env and buffer in two pools on 2 to 8 nodes",
    build,
    {"nodes": 4},
    {f"pools-{seed}": {"seed": seed, "group": "sample", "time_limit": 10.0, "peer_limit": 5.0} for seed in range(1, 21)},
    smoke_count=2,
)
