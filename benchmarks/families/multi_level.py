"""Three levels above the node: zones of blocks of racks, groups that should stay inside one. Instance I."""

from __future__ import annotations

from benchmarks.registry import GOALS, Data, register


def build(seed: int, zones: int = 4, blocks: int = 8, racks: int = 8, nodes: int = 16) -> Data:
    """``zones`` of ``blocks`` of ``racks`` of ``nodes`` with 8 GPUs; racks are the NVLink domains.

    train's groups should stay inside a block, critic's inside a zone, rollout's inside a rack. Group sizes do not divide
    blocks and racks, so that keeping them whole costs room. The seed changes nothing.
    """
    rows: list[Data] = []
    for zone in range(zones):
        for block in range(blocks):
            name = f"z{zone}b{block}"
            row: Data = {"id": f"{name}n{{}}", "count": racks * nodes, "gpus": 8}
            row |= {"nvlink_domain": f"{name}rack{{}}", "nodes_per_domain": nodes}
            rows.append({**row, "labels": {"zone": f"z{zone}", "block": name}})
    per_rack = nodes * 8
    per_block = per_rack * racks
    total = zones * blocks * per_block
    train_group = max(2, per_block // 8 * 3 // 8)  # in 8-GPU workers: three eighths of a block
    critic_group = max(2, per_block // 8)  # in 8-GPU workers: one block's worth, anywhere inside a zone
    rollout_group = max(2, per_rack * 3 // 64 * 2)  # in 4-GPU workers: three eighths of a rack, whole nodes
    components: dict[str, Data] = {
        "train": {
            "workers": int(total * 0.35 / 8) // train_group * train_group,
            "gpus": 8,
            "group": {"workers": train_group, "within": "block", "mode": "preferred"},
        },
        "critic": {
            "workers": max(1, int(total * 0.15 / 8) // critic_group) * critic_group,
            "gpus": 8,
            "group": {"workers": critic_group, "within": "zone", "mode": "preferred"},
        },
        "rollout": {
            "workers": int(total * 0.25 / 4) // rollout_group * rollout_group,
            "gpus": 4,
            "group": {"workers": rollout_group, "within": "nvlink_domain", "mode": "preferred"},
        },
        "env": {"workers": int(total * 0.05), "gpus": 1},
    }
    return {
        "cluster": {"levels": ["zone", "block"], "nodes": rows},
        "components": {name: {**component, "span_weight": 1} for name, component in components.items()},
        "goals": ["groups_split", *GOALS],
    }


PEERS = ("first-fit",)
register(
    "multi_level",
    "zone, block and rack above the node; groups of whole nodes and of engines that should stay inside one",
    build,
    {"zones": 2, "blocks": 2, "racks": 2, "nodes": 4},
    {
        "I": {"size": {"zones": 4}, "peer_limit": 20.0},
        "I-default": {"size": {"zones": 4}, "default": True, "peers": ()},
        "levels-500": {
            "size": {"zones": 2, "blocks": 2, "racks": 4, "nodes": 4},
            "group": "growth",
            "time_limit": 20.0,
            "peers": PEERS,
        },
        "levels-4k": {"size": {"zones": 2, "blocks": 4, "racks": 4}, "group": "growth", "time_limit": 20.0, "peers": PEERS},
    },
)
