"""Several accelerator types in one cluster, components that want a certain one and others that take any."""

from __future__ import annotations

from benchmarks.registry import GOALS, Data, register


def build(seed: int, domains: int) -> Data:
    """Of four domains two are H100 (16 x 8), one A100 (16 x 8), one GB200 (18 x 4). The seed changes nothing."""
    quarter = max(1, domains // 4)
    rows: list[Data] = []
    for kind, racks, nodes, gpus in (("H100", 2 * quarter, 16, 8), ("A100", quarter, 16, 8), ("GB200", quarter, 18, 4)):
        row: Data = {"id": f"{kind.lower()}-{{}}", "count": racks * nodes, "gpus": gpus, "accelerator": kind}
        rows.append({**row, "nvlink_domain": f"{kind.lower()}rack{{}}", "nodes_per_domain": nodes})
    h100, a100, gb200 = 2 * quarter * 128, quarter * 128, quarter * 72
    components: dict[str, Data] = {
        "train": {"workers": int(h100 * 0.5 / 8) // 2 * 2, "gpus": 8, "segment_size": 2, "accelerator": "H100"},
        "rollout": {"workers": int(gb200 * 0.9 / 4), "gpus": 4, "accelerator": "GB200"},
        "reward": {"workers": int(a100 * 0.6 / 2), "gpus": 2, "accelerator": "A100"},
        "env": {"workers": int((h100 + a100) * 0.3), "gpus": 1},
    }
    return {
        "cluster": {"nodes": rows},
        "components": {name: {**component, "span_weight": 1} for name, component in components.items()},
        "goals": list(GOALS),
    }


PEERS = ("first-fit",)
register(
    "mixed",
    "H100, A100 and GB200 domains in one cluster; three components ask for one type, env takes any",
    build,
    {"domains": 4},
    {
        "mixed-500": {"size": {"domains": 4}, "group": "growth", "peers": PEERS},
        "mixed-5k": {"size": {"domains": 40}, "group": "growth", "peer_limit": 20.0},
        "mixed-50k": {"size": {"domains": 400}, "group": "growth", "peers": PEERS},
        "mixed-500k": {"size": {"domains": 4000}, "group": "growth", "peers": PEERS},
    },
)
