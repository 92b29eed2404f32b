"""A whole RL job: eight components that share GPUs. Instances F (8 nodes) and G (1,024 nodes, traffic and groups)."""

from __future__ import annotations

from typing import Any

from benchmarks.registry import GOALS, Data, register


def build(seed: int, times: int = 1, traffic: bool = False, groups: bool = False) -> Data:
    """The job of 8 nodes, ``times`` as large. The seed changes nothing.

    ref lies on train's GPUs; reward takes turns with critic; eval and env use GPUs of rollout.
    """
    counts = {"train": 32, "ref": 32, "critic": 8, "reward": 4, "rollout": 4, "eval": 8, "env": 40}
    gpus = {"train": 1, "ref": 1, "critic": 1, "reward": 2, "rollout": 4, "eval": 1, "env": 0.2}
    components: dict[str, Any] = {
        name: {"workers": count * times, "gpus": gpus[name], "span_weight": 1} for name, count in counts.items()
    }
    components["buffer"] = {"workers": "auto", "per_node_of": "train", "span_weight": 1}
    if groups:
        components["train"]["group"] = {"workers": 32, "within": "nvlink_domain", "mode": "required"}
        components["rollout"]["group"] = {"workers": 4, "within": "nvlink_domain", "mode": "preferred"}
    row: Data = {"id": "node-{}", "count": 8 * times, "gpus": 8, "cpus": 128}
    row |= {"nvlink_domain": "rack{}", "nodes_per_domain": 16 if times > 1 else 4}
    data: Data = {
        "cluster": {"nodes": [row]},
        "components": components,
        "rules": {
            "colocate": [["train", "ref"]],
            "share_gpus": [["critic", "reward"], ["rollout", "eval"], ["rollout", "env"]],
        },
    }
    goals = list(GOALS)
    if traffic:
        data["traffic"] = [{"between": ["env", "eval"], "weight": 1}, {"between": ["rollout", "reward"], "weight": 1}]
        goals.insert(1, "traffic")
    if groups:
        goals.insert(0, "groups_split")
    return {**data, "goals": goals}


LARGE = {"times": 128, "traffic": True, "groups": True}
register(
    "eight_roles",
    "train, rollout, ref, reward, critic, env, eval and buffer that share GPUs; G adds traffic and groups",
    build,
    {"times": 2, "traffic": True, "groups": True},
    {
        "F": {"size": {"times": 1}, "peer_limit": 10.0},
        "F-default": {"size": {"times": 1}, "default": True, "peers": ()},
        "G": {"size": LARGE},
        "G-default": {"size": LARGE, "default": True, "peers": ()},
        "eight-500": {"size": {**LARGE, "times": 8}, "group": "growth", "time_limit": 20.0, "peers": ("first-fit",)},
        "eight-2k": {"size": {**LARGE, "times": 32}, "group": "growth", "time_limit": 20.0, "peers": ("first-fit",)},
    },
)
