"""Tiny random problems over all rules and goals, small enough for brute force.

``random_problem(rng)`` draws a problem file and loads it; draws that are invalid are drawn again. The result depends on the
state of ``rng`` alone.
"""

from __future__ import annotations

from random import Random
from typing import Any

from placewright_models.codec import load_problem
from placewright_models.errors import InvalidProblem
from placewright_models.problem import Problem

GOALS = (
    "unplaced",
    "groups_split",
    "domain_span",
    "traffic",
    "node_span",
    "gpu_nodes_used",
    "nodes_used",
    "evenness",
    "domain_capacity",
)
NAMES = ("train", "rollout", "eval", "env", "actor", "ref", "reward", "buffer")


def random_problem(rng: Random, most_nodes: int = 4, most_components: int = 4) -> Problem:
    """One valid tiny problem."""
    while True:
        try:
            return load_problem(random_file(rng, most_nodes, most_components))
        except InvalidProblem:
            continue


def random_file(rng: Random, most_nodes: int = 4, most_components: int = 4) -> dict[str, Any]:
    """One tiny problem file, not always valid."""
    levels = rng.choice([[], [], ["block"], ["zone", "block"]])
    sizes = rng.choice([[4], [4], [2], [4, 2], [4, 3, 0], [2, 3], [4, 4, 0]])
    nodes = [random_node(rng, index, sizes, levels) for index in range(rng.randint(1, most_nodes))]
    names = rng.sample(NAMES, rng.randint(1, most_components))
    components = {name: random_component(rng, name, names, nodes, levels) for name in names}
    found: dict[str, Any] = {"cluster": {"nodes": nodes}, "components": components}
    if levels:
        found["cluster"]["levels"] = levels
    if rng.random() < 0.1:
        found["cluster"]["schedule_on_head"] = True
    rules = random_rules(rng, names)
    if rules:
        found["rules"] = rules
    if rng.random() < 0.3 and len(names) > 1:
        found["traffic"] = [{"between": rng.sample(names, 2), "weight": rng.randint(1, 3)}]
    found["goals"] = rng.sample(GOALS, rng.randint(1, len(GOALS))) if rng.random() < 0.7 else list(GOALS)
    return found


def random_node(rng: Random, index: int, sizes: list[int], levels: list[str]) -> dict[str, Any]:
    node: dict[str, Any] = {"id": f"n{index}", "gpus": rng.choice(sizes)}
    half = index // 2
    if rng.random() < 0.85:
        node["nvlink_domain"] = f"rack{half}"
    if levels:
        # Nested as a real topology: two nodes to a domain and block, everything in one zone or two.
        labels = {"block": f"b{half}"} if rng.random() < 0.9 or "nvlink_domain" in node else {}
        if "zone" in levels:
            labels["zone"] = f"z{index // 3 if 'nvlink_domain' not in node else half // 2}"
        node["labels"] = labels
    if rng.random() < 0.3:
        node["cpus"] = rng.choice([1, 2, 3, 4.5, 8])
        if rng.random() < 0.3:
            node["reserved_cpus"] = rng.choice([0.5, 1])
    if rng.random() < 0.15:
        node["memory"] = rng.choice([2, 4])
    if rng.random() < 0.3:
        node["topo_rank"] = rng.randint(1, 4)
    if rng.random() < 0.2:
        node["accelerator"] = rng.choice(["H100", "A100"])
    if node["gpus"] and rng.random() < 0.2:
        node["unavailable_gpus"] = rng.sample(range(node["gpus"]), rng.randint(1, max(1, node["gpus"] // 2)))
    if rng.random() < 0.05:
        node["head"] = True
    if rng.random() < 0.04:
        node["excluded"] = "drained"
    return node


def random_component(
    rng: Random, name: str, names: list[str], nodes: list[dict[str, Any]], levels: list[str]
) -> dict[str, Any]:
    fields: dict[str, Any] = {"workers": rng.choice([1, 1, 2, 2, 2, 3, 4, 4, 6])}
    fields["gpus"] = rng.choice([0, 0, 1, 1, 1, 1, 1, 2, 2, 3, 0.5, 0.34, 0.18])
    if rng.random() < 0.5:
        fields["cpus"] = rng.choice([0, 0.5, 1, 2])
    if rng.random() < 0.1:
        fields["memory"] = 1
    if fields["gpus"] >= 1 and rng.random() < 0.15:
        fields["gpu_share"] = rng.choice([0.5, 0.3, 0.66, 1])
    if rng.random() < 0.25:
        low = rng.randint(0, fields["workers"])
        fields["workers"] = {"min": low, "max": max(1, fields["workers"])}
        fields["priority"] = rng.randint(1, 3)
    if rng.random() < 0.25:
        within = rng.choice(["node", "nvlink_domain", "cluster", *levels])
        mode = rng.choice(["required", "preferred", "preferred"])
        fields["group"] = {"workers": rng.choice([1, 2, 2, 3, 4]), "within": within, "mode": mode}
    if fields["gpus"] >= 1 and rng.random() < 0.2:
        fields["segment_size"] = rng.choice([1, 1, 2, 2, 3])
        fields["segment_mode"] = rng.choice(["required", "preferred", "preferred"])
    if rng.random() < 0.08:
        fields["nodes"] = rng.randint(1, 3)
    if rng.random() < 0.08:
        fields["per_node"] = rng.choice([1, 2, 3])
    elif rng.random() < 0.05:
        fields["per_node"] = [rng.randint(1, 3) for _ in range(rng.randint(1, 3))]
        fields["workers"] = sum(fields["per_node"])
    if rng.random() < 0.2:
        fields["spread"] = rng.choice(["pack", "even"])
    if rng.random() < 0.3:
        fields["span_weight"] = rng.randint(0, 2)
    if rng.random() < 0.15:
        fields["aligned"] = True
    if rng.random() < 0.05:
        fields["accelerator"] = rng.choice(["H100", "A100"])
    if rng.random() < 0.05:
        fields["node_ids"] = [node["id"] for node in rng.sample(nodes, rng.randint(1, len(nodes)))]
    if rng.random() < 0.05:
        fields["exclude_node_ids"] = [rng.choice(nodes)["id"]]
    others = [other for other in names if other != name]
    if others and rng.random() < (0.6 if name == "buffer" else 0.08):
        fields = {"workers": "auto", "per_node_of": rng.choice(others), "gpus": rng.choice([0, 0, 0, 1]), "cpus": 1}
        if rng.random() < 0.3:
            fields["workers"] = rng.randint(1, len(nodes))
    return fields


def random_rules(rng: Random, names: list[str]) -> dict[str, Any]:
    rules: dict[str, Any] = {}
    if rng.random() < 0.3:
        rules["strategy"] = rng.choice(["disaggregate", "colocate"])
        if rng.random() < 0.5:
            rules["env_strategy"] = rng.choice(["default", "device-colocate"])
    if len(names) > 1:
        for key, chance in (
            ("share_gpus", 0.35),
            ("colocate", 0.12),
            ("same_domain", 0.06),
            ("same_node", 0.06),
            ("separate_nodes", 0.12),
            ("separate_domains", 0.08),
        ):
            if rng.random() < chance:
                rules[key] = [rng.sample(names, min(len(names), rng.choice([2, 2, 3])))]
                if key == "share_gpus" and rng.random() < 0.4:
                    rules[key].append(rng.sample(names, 2))
    return rules
