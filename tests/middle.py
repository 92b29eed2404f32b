"""Middle-sized problems: 6 to 12 nodes of 8 GPUs in several domains, too large for brute force, fit for the plain model.

``middle_file(rng)`` draws one; used by the oracle tests and the long run.
"""

from __future__ import annotations

from random import Random
from typing import Any

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


def middle_file(rng: Random) -> dict[str, Any]:
    """Racks of uneven size, some nodes degraded, three or four components of usual shapes, two or three rules."""
    nodes: list[dict[str, Any]] = []
    levels = rng.choice([[], ["block"], ["zone", "block"]])
    for rack in range(rng.randint(2, 4)):
        for _ in range(rng.randint(1, 4)):
            node: dict[str, Any] = {"id": f"n{len(nodes)}", "gpus": 8, "nvlink_domain": f"rack{rack}"}
            if levels:
                node["labels"] = {"block": f"b{rack // 2}", "zone": "z0"}
            if rng.random() < 0.1:
                node["unavailable_gpus"] = [rng.randint(0, 7)]
            if rng.random() < 0.15:
                node["cpus"] = rng.choice([8, 16, 20])
            nodes.append(node)
    while len(nodes) < 6:
        nodes.append({"id": f"n{len(nodes)}", "gpus": 8})
    nodes = nodes[:12]
    level = rng.choice(["nvlink_domain", *levels])
    mode = rng.choice(["required", "preferred"])
    train: dict[str, Any] = rng.choice(
        [
            {"workers": rng.choice([8, 16, 24]), "gpus": 1, "segment_size": rng.choice([1, 2]), "segment_mode": mode},
            {"workers": rng.choice([12, 16, 24]), "gpus": 1, "group": {"workers": 4, "within": level, "mode": mode}},
            {"workers": rng.choice([2, 3, 4]), "gpus": 8},
            {"workers": {"min": 8, "max": 20}, "gpus": 1},
        ]
    )
    components: dict[str, Any] = {"train": train}
    components["rollout"] = rng.choice(
        [
            {"workers": rng.choice([2, 4, 5]), "gpus": 4},
            {"replicas": rng.choice([1, 2]), "gpus_per_replica": 16, "group": {"within": level, "mode": mode}},
            {"workers": rng.choice([3, 6]), "gpus": 2, "aligned": True},
        ]
    )
    if rng.random() < 0.6:
        components["env"] = {"workers": rng.choice([6, 8, 11]), "gpus": rng.choice([0.18, 0.25, 0.5]), "cpus": 1}
    if rng.random() < 0.5:
        components["reward"] = {"workers": rng.choice([2, 3]), "gpus": 1, "spread": rng.choice(["pack", "even"])}
    if rng.random() < 0.4:
        components["buffer"] = {"workers": "auto", "per_node_of": "train", "cpus": 1}
    names = list(components)
    rules: dict[str, Any] = {}
    if rng.random() < 0.4:
        rules["share_gpus"] = [rng.sample([name for name in names if name != "buffer"], 2)]
    if rng.random() < 0.3:
        rules[rng.choice(["separate_nodes", "separate_domains"])] = [["train", "rollout"]]
    if rng.random() < 0.2 and "reward" in names:
        rules["same_domain"] = [["reward"]]
    found: dict[str, Any] = {"cluster": {"nodes": nodes}, "components": components}
    if levels:
        found["cluster"]["levels"] = levels
    if rules:
        found["rules"] = rules
    if rng.random() < 0.4:
        found["traffic"] = [{"between": rng.sample([name for name in names if name != "buffer"], 2)}]
    found["goals"] = list(GOALS) if rng.random() < 0.6 else rng.sample(GOALS, 4)
    return found


def equal_file(rng: Random) -> dict[str, Any]:
    """Several equal racks of one or two small nodes: what encodings that count equal domains together are made for."""
    size, each = rng.choice([2, 3, 4]), rng.randint(1, 2)
    nodes: list[dict[str, Any]] = []
    for rack in range(rng.randint(3, 5)):
        for _ in range(each):
            nodes.append({"id": f"n{len(nodes)}", "gpus": size, "nvlink_domain": f"rack{rack}"})
    if rng.random() < 0.3:
        nodes[0]["unavailable_gpus"] = [0]
    if rng.random() < 0.3:
        nodes += [{"id": "alone", "gpus": size}, {"id": "lonely", "gpus": size}]
    within = rng.choice(["nvlink_domain", "nvlink_domain", "cluster"])
    mode = rng.choice(["required", "preferred"])
    components: dict[str, Any] = {}
    for name in rng.sample(["train", "rollout", "ref", "env"], rng.randint(2, 3)):
        k = rng.choice([1, 2, 3])
        components[name] = rng.choice(
            [
                {"workers": k * rng.randint(1, 3), "gpus": 1, "group": {"workers": k, "within": within, "mode": mode}},
                {"workers": size * rng.randint(1, 3), "gpus": 1, "segment_size": 1, "segment_mode": mode},
                {"workers": rng.randint(1, 5), "gpus": rng.choice([0, 1, 1, 0.5]), "spread": rng.choice(["pack", "even"])},
                {"workers": {"min": 1, "max": 5}, "gpus": 1, "span_weight": 1},
            ]
        )
    names = list(components)
    found: dict[str, Any] = {"cluster": {"nodes": nodes}, "components": components, "rules": {}}
    if rng.random() < 0.4:
        found["rules"]["share_gpus"] = [names[:2]]
    if rng.random() < 0.3:
        found["rules"][rng.choice(["separate_nodes", "separate_domains", "same_domain"])] = [names[:2]]
    if rng.random() < 0.5:
        found["traffic"] = [{"between": names[:2]}]
    found["goals"] = rng.sample(GOALS, rng.randint(2, len(GOALS)))
    return found


def uneven_file(rng: Random) -> dict[str, Any]:
    """Racks of which hardly two are alike: what counting unequal domains by the set that they host is made for."""
    nodes: list[dict[str, Any]] = []
    sizes = rng.choice([[4], [4, 2], [4, 3, 2], [2, 1]])
    for rack in range(rng.randint(3, 5)):
        for _ in range(rng.randint(1, 3)):
            nodes.append({"id": f"n{len(nodes)}", "gpus": rng.choice(sizes), "nvlink_domain": f"rack{rack}"})
    for node in nodes:
        if node["gpus"] > 1 and rng.random() < 0.1:
            node["unavailable_gpus"] = [0]
    if rng.random() < 0.3:
        nodes.append({"id": "alone", "gpus": sizes[0]})
    gpus = sum(node["gpus"] for node in nodes)
    components: dict[str, Any] = {}
    for name in rng.sample(["train", "rollout", "reward", "env"], rng.randint(2, 4)):
        width = rng.choice([1, 1, 2, sizes[0]])
        workers = max(1, int(gpus * rng.uniform(0.1, 0.5)) // width)
        components[name] = {"workers": workers, "gpus": width, "span_weight": rng.choice([0, 1, 1, 2])}
    names = list(components)
    if rng.random() < 0.5:
        # One segmented component on nodes of one size is what counting together allows.
        segment = rng.randint(1, 2)
        workers = segment * rng.randint(1, 3)
        components[names[0]] = {"workers": workers, "gpus": sizes[0], "segment_size": segment, "span_weight": 1}
    found: dict[str, Any] = {"cluster": {"nodes": nodes}, "components": components, "rules": {}}
    if rng.random() < 0.3:
        found["rules"][rng.choice(["separate_nodes", "separate_domains", "same_domain", "share_gpus"])] = [names[:2]]
    if rng.random() < 0.2:
        components["buffer"] = {"workers": "auto", "per_node_of": names[0], "span_weight": 1}
    goals = [goal for goal in GOALS if goal != "traffic"]
    found["goals"] = rng.choice([["domain_span", "node_span", "nodes_used"], goals, rng.sample(goals, 4)])
    return found


def traffic_file(rng: Random) -> dict[str, Any]:
    """Equal racks, a component in groups and one that it talks to, goals in any order: what relaxations must not get wrong."""
    size, each = rng.choice([(2, 1), (2, 2), (4, 1)])
    racks = range(rng.randint(3, 5))
    nodes: list[dict[str, Any]] = [
        {"id": f"n{rack}.{n}", "gpus": size, "nvlink_domain": f"r{rack}"} for rack in racks for n in range(each)
    ]
    gpus = size * len(nodes)
    if rng.random() < 0.2:
        nodes += [{"id": f"alone{n}", "gpus": size} for n in range(rng.randint(1, 3))]
    k, width = rng.choice([1, 2, 3, 4, size, 2 * size]), rng.choice([1, 1, 1, 2, 0.5, 0.25])
    group = {"workers": k, "within": "nvlink_domain", "mode": rng.choice(["required", "preferred"])}
    groups = min(int(gpus * rng.uniform(0.2, 0.7) / width) // k, max(1, 20 // k))
    components: dict[str, Any] = {
        "train": {"workers": k * max(1, groups), "gpus": width, "group": group},
        "rollout": {"workers": max(1, int(gpus * rng.uniform(0.1, 0.4))), "gpus": rng.choice([1, 1, 2, 0.5])},
    }
    if rng.random() < 0.4:
        workers = rng.choice([4, 6, {"min": 2, "max": 4}])
        components["ref"] = {"workers": workers, "gpus": 1}
        if workers == 6:
            components["ref"]["group"] = {"workers": 3, "within": "nvlink_domain", "mode": "preferred"}
    for component in components.values():
        component["span_weight"] = rng.choice([0, 1, 1, 1, 3])
    names = list(components)
    found: dict[str, Any] = {"cluster": {"nodes": nodes}, "components": components, "rules": {}}
    if rng.random() < 0.2:
        found["rules"][rng.choice(["share_gpus", "separate_domains", "same_domain"])] = [rng.sample(names, 2)]
    if rng.random() < 0.2:
        components["buffer"] = {"workers": "auto", "per_node_of": "train", "span_weight": 1}
    found["traffic"] = [{"between": rng.sample(["train", "rollout"], 2)}]
    first = [goal for goal in ("traffic", "groups_split", "unplaced", "node_span", "nodes_used") if rng.random() < 0.5]
    rng.shuffle(first)
    later = [goal for goal in ("traffic", "nodes_used", "domain_capacity") if goal not in first and rng.random() < 0.6]
    found["goals"] = [*first, "domain_span", *later]
    return found
