"""Random problems in the words that most peers know: whole GPUs, segments, one component after another, no sharing.

The job fills a cluster that is a little degraded, so that a careless choice early leaves no room later. Modify this file
when the peers learn more words.
"""

from __future__ import annotations

from random import Random

from benchmarks.registry import GOALS, Data


def random_problem(rng: Random, domains: tuple[int, int], nodes: tuple[int, int], fill: tuple[float, float]) -> Data:
    """One problem; whether it has a plan is left open."""
    found: list[Data] = []
    for domain in range(rng.randint(*domains)):
        for _ in range(rng.randint(*nodes)):
            node: Data = {"id": f"n{len(found)}", "gpus": 8, "nvlink_domain": f"rack{domain}", "topo_rank": len(found) + 1}
            if rng.random() < 0.08:
                node["unavailable_gpus"] = list(range(rng.choice((7, 6, 4)), 8))
            found.append(node)
    total = sum(8 - len(node.get("unavailable_gpus", ())) for node in found)
    wanted = total * rng.uniform(*fill)
    segment = rng.choice((1, 2, 2, 3, 4))
    split = [rng.uniform(0.5, 1.5) for _ in range(3)]
    train, rollout, reward = (wanted * part / sum(split) for part in split)
    train_gpus, engine = rng.choice((8, 8, 4)), rng.choice((4, 4, 8))
    components = {
        "train": {
            "workers": max(1, int(train / 8 / segment)) * segment * (8 // train_gpus),
            "gpus": train_gpus,
            "segment_size": segment,
        },
        "rollout": {"workers": max(1, int(rollout / engine)), "gpus": engine},
        "reward": {"workers": max(1, int(reward / 2)), "gpus": rng.choice((1, 2))},
    }
    if rng.random() < 0.4:
        second = rng.choice((2, 3))
        components["critic"] = {"workers": second, "gpus": 8, "segment_size": second}
    return {
        "cluster": {"nodes": found},
        "components": {name: {**component, "span_weight": 1} for name, component in components.items()},
        "goals": list(GOALS),
    }
