"""Hypothesis strategies for valid problems, over every field and every rule of the problem file.

``problems()`` draws the plain data of a problem that ``load_problem`` accepts; nothing is filtered, everything is valid by
construction. Whether a plan exists is left open. Modify this file when the problem file gets a new field or rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from placewright_models.workload import DEFAULT_GOALS

NAMES = ("train", "rollout", "eval", "env", "reward", "actor", "ref", "buffer", "driver", "judge2", "judge10")
LEVELS = ("zone", "block")
ACCELERATORS = ("H100", "A100")
SHARES = (0.0001, 0.05, 0.18, 0.25, 0.33, 0.5, 0.6, 1 / 7, 0.9999)


@st.composite
def clusters(draw: st.DrawFn, max_nodes: int = 6) -> dict[str, Any]:
    """The cluster section: explicit and counted nodes, levels that form a tree, degraded and excluded nodes."""
    levels = list(LEVELS[: draw(st.integers(0, 2))])
    uniform = draw(st.booleans())
    size = draw(st.sampled_from([1, 2, 4, 8]))
    nodes: list[dict[str, Any]] = []
    total = draw(st.integers(1, max_nodes))
    if total > 2 and draw(st.booleans()):
        count = draw(st.integers(1, total))
        row: dict[str, Any] = {"id": draw(st.sampled_from(["gpu-{}", "gpu-{:03d}"])), "count": count, "gpus": size}
        if draw(st.booleans()):
            row["start"] = draw(st.integers(0, 20))
        if draw(st.booleans()):
            row |= {"nvlink_domain": "row{}", "nodes_per_domain": draw(st.integers(1, 3))}
        row |= draw(_properties(size, []))
        nodes.append(row)
        total -= count
    for index in range(total):
        gpus = size if uniform else draw(st.sampled_from([0, 1, 2, 4, 8]))
        node: dict[str, Any] = {"id": f"node-{index}", "gpus": gpus}
        labels: dict[str, str] = {}
        domain = draw(st.none() | st.integers(0, 3))
        if domain is not None:
            node["nvlink_domain"] = f"rack{domain}"
            # Levels follow from the domain, so that no domain is ever under two labels.
            if draw(st.integers(0, 4)):
                labels = {"zone": f"z{domain // 2}", "block": f"b{domain}"}
        node |= draw(_properties(gpus, [labels]))
        nodes.append(node)
    cluster: dict[str, Any] = {"nodes": draw(st.permutations(nodes))}
    if levels:
        cluster["levels"] = levels
    if draw(st.booleans()):
        cluster["schedule_on_head"] = draw(st.booleans())
    return cluster


@st.composite
def _properties(draw: st.DrawFn, gpus: int, labels: Sequence[dict[str, str]]) -> dict[str, Any]:
    """Optional properties of a node, most of them seldom."""
    found: dict[str, Any] = {}

    def seldom() -> bool:
        return draw(st.integers(0, 5)) == 5

    if draw(st.booleans()):
        found["cpus"] = draw(st.sampled_from([0, 4, 7.5, 16, 64]))
        if seldom():
            found["cpus_in_use"] = min(found["cpus"], draw(st.sampled_from([0, 1, 2.25, 4])))
        if seldom():
            found["reserved_cpus"] = min(found["cpus"], 2)
    if seldom():
        found["memory"] = draw(st.sampled_from(["8GiB", "1.5TiB", 2**34]))
        found["memory_in_use"] = draw(st.sampled_from([0, "1GiB", 2**20]))
    if draw(st.booleans()):
        found["topo_rank"] = draw(st.integers(1, 9))
    if seldom():
        found["accelerator"] = draw(st.sampled_from(ACCELERATORS))
    if gpus and seldom():
        found["unavailable_gpus"] = draw(st.lists(st.integers(0, gpus - 1), unique=True, max_size=2))
    if gpus and seldom():
        held = draw(st.lists(st.integers(0, gpus - 1), unique=True, max_size=2))
        found["occupied"] = [{"plan": "other", "gpus": held, "cpus": draw(st.sampled_from([0, 1.5])), "memory": "1MiB"}]
    if seldom():
        found["excluded"] = draw(st.sampled_from(["drained", True, False]))
    if seldom():
        found["head"] = True
    written = dict(labels[0]) if labels else {}
    if seldom():
        written["disk"] = draw(st.sampled_from(["nvme", "7"]))
    if written:
        found["labels"] = written
    return found


@st.composite
def components(draw: st.DrawFn, name: str, others: Sequence[str], cluster: dict[str, Any], max_workers: int) -> dict[str, Any]:
    """One component; ``others`` are names that its ``per_node_of`` may point to without closing a circle."""
    form = draw(st.sampled_from(["plain", "plain", "plain", "elastic", "replicas", "list", "product", "follower", "follower"]))
    if form == "follower" and (others or name == "buffer"):
        return draw(_follower(name, others, max_workers))
    found: dict[str, Any] = {}
    gpus: float = draw(st.sampled_from([0, 1, 1, 1, 2, 4, 8, -1]))
    gpus = draw(st.sampled_from(SHARES)) if gpus < 0 else gpus
    segment = draw(st.integers(1, 2)) if gpus >= 1 and draw(st.integers(0, 4)) == 4 else 1
    group = draw(st.integers(1, 4)) if draw(st.integers(0, 3)) == 3 else 1
    unit = math.lcm(segment, group)
    most = max(1, max_workers // unit)
    if form == "replicas":
        width = draw(st.sampled_from([1, 2, 4, 16]))
        found |= {"replicas": draw(st.integers(0, max(1, max_workers // width))), "gpus_per_replica": width}
        gpus, segment = width, 1
        if draw(st.booleans()):
            found["group"] = {"within": draw(_level(cluster))}
    else:
        found |= draw(_counts(form, unit, most))
        if gpus or draw(st.booleans()):
            found["gpus"] = gpus
        if group > 1:
            found["group"] = {"workers": group}
            if draw(st.booleans()):
                found["group"]["within"] = draw(_level(cluster))
            if draw(st.booleans()):
                found["group"]["mode"] = draw(st.sampled_from(["required", "preferred"]))
        if segment > 1 or (gpus >= 1 and draw(st.integers(0, 6)) == 6):
            found["segment_size"] = segment
            found["segment_mode"] = draw(st.sampled_from(["required", "preferred"]))
    if gpus >= 1 and draw(st.integers(0, 3)) == 3:
        found["gpu_share"] = draw(st.sampled_from([0.0001, 0.05, 0.4, 0.5, 1]))
    found |= draw(_extras(cluster))
    return found


@st.composite
def _follower(draw: st.DrawFn, name: str, others: Sequence[str], max_workers: int) -> dict[str, Any]:
    found: dict[str, Any] = {"cpus": draw(st.sampled_from([0, 1]))}
    if name == "buffer" and "train" in others and draw(st.booleans()):
        return found | {"workers": "auto"}
    if not others:
        return found | {"workers": draw(st.integers(0, 2))}
    found["per_node_of"] = draw(st.sampled_from(list(others)))
    if draw(st.integers(0, 3)) == 3:
        found["workers"] = draw(st.integers(0, min(3, max_workers)))
    elif draw(st.booleans()):
        found["workers"] = "auto"
    return found


@st.composite
def _counts(draw: st.DrawFn, form: str, unit: int, most: int) -> dict[str, Any]:
    if form == "elastic":
        low, high = sorted((draw(st.integers(0, most)), draw(st.integers(0, most))))
        return {"workers": {"min": low * unit, "max": high * unit}, "priority": draw(st.integers(0, 3))}
    if form == "list" and unit == 1:
        counts = draw(st.lists(st.integers(1, 4), min_size=1, max_size=3))
        return {"per_node": counts} | ({"workers": sum(counts)} if draw(st.booleans()) else {})
    if form == "product" and unit == 1:
        nodes, each = draw(st.integers(1, 3)), draw(st.integers(1, 4))
        return {"nodes": nodes, "per_node": each} | ({"workers": nodes * each} if draw(st.booleans()) else {})
    return {"workers": draw(st.integers(0, most)) * unit}


def _level(cluster: dict[str, Any]) -> st.SearchStrategy[str]:
    return st.sampled_from(["node", "nvlink_domain", *cluster.get("levels", ()), "cluster"])


@st.composite
def _extras(draw: st.DrawFn, cluster: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}

    def seldom() -> bool:
        return draw(st.integers(0, 7)) == 7

    if draw(st.booleans()):
        found["cpus"] = draw(st.sampled_from([0, 0.5, 1, 2]))
    if seldom():
        found["memory"] = draw(st.sampled_from([0, "1GiB", 2**30]))
    if seldom():
        found["kind"] = draw(st.sampled_from(["collective", "replicas", "helpers"]))
    if seldom():
        found["accelerator"] = draw(st.sampled_from(ACCELERATORS))
    if seldom():
        found["labels"] = {"disk": "nvme"}
    ids = [node["id"] for node in cluster["nodes"] if "count" not in node]
    if ids and seldom():
        found["node_ids"] = draw(st.lists(st.sampled_from(ids), unique=True, min_size=1))
    elif ids and seldom():
        found["exclude_node_ids"] = draw(st.lists(st.sampled_from(ids), unique=True))
    if seldom():
        found["spread"] = draw(st.sampled_from(["pack", "even"]))
    if draw(st.booleans()):
        found["span_weight"] = draw(st.integers(0, 3))
    if seldom():
        found["aligned"] = draw(st.booleans())
    return found


class _Joined:
    """Which components some rule already puts together."""

    def __init__(self, names: Sequence[str]) -> None:
        self.part = {name: name for name in names}

    def join(self, members: Sequence[str]) -> None:
        old = {self.part[name] for name in members}
        for name, part in self.part.items():
            if part in old:
                self.part[name] = self.part[members[0]]

    def apart(self, members: Sequence[str]) -> bool:
        return len({self.part[name] for name in members}) == len(members)


@st.composite
def rules(draw: st.DrawFn, job: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The rules section for these components, free of contradictions between its lists."""
    names = list(job)
    found: dict[str, Any] = {}
    pool_of = dict.fromkeys(names, "global_pool")
    if draw(st.booleans()):
        found["strategy"] = draw(st.sampled_from(["disaggregate", "colocate"]))
        if draw(st.booleans()):
            found["env_strategy"] = draw(st.sampled_from(["default", "device-colocate"]))
    if found.get("strategy") == "disaggregate":
        pool_of = {name: "train_pool" if name in ("train", "buffer") else "rollout_pool" for name in names}
    if names and draw(st.integers(0, 3)) == 3:
        pool_of = {name: draw(st.sampled_from(["left_pool", "right_pool"])) for name in names}
        found["pools"] = {pool: [name for name in names if pool_of[name] == pool] for pool in sorted(set(pool_of.values()))}
    pools = [[name for name in names if pool_of[name] == pool] for pool in sorted(set(pool_of.values()))]
    if found.get("strategy") != "disaggregate":
        pools = [names]
    nodes, domains = _Joined(names), _Joined(names)
    for name, component in job.items():
        target = component.get("per_node_of", "train" if component.get("workers") == "auto" else None)
        if target is not None:
            nodes.join([name, target])
            domains.join([name, target])
    for pool in pools:
        with_gpus = [name for name in pool if job[name].get("gpus", 0) or "gpus_per_replica" in job[name]]
        if len(pool) > 1 and draw(st.booleans()):
            found.setdefault("share_gpus", []).append(draw(_some(pool, 2)))
        if len(with_gpus) > 1 and draw(st.integers(0, 4)) == 4:
            members = draw(_some(with_gpus, 2))
            found.setdefault("colocate", []).append(members)
            nodes.join(members)
            domains.join(members)
    for key, least in (("same_node", 1), ("same_domain", 1), ("separate_nodes", 2), ("separate_domains", 2)):
        if len(names) < least or draw(st.integers(0, 5)) < 5:
            continue
        members = draw(_some(names, least))
        if key == "same_node":
            nodes.join(members)
        if key in ("same_node", "same_domain"):
            domains.join(members)
        elif not (nodes if key == "separate_nodes" else domains).apart(members):
            continue
        found[key] = [members]
    return found


def _some(names: Sequence[str], least: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(list(names)), unique=True, min_size=least, max_size=3)


@st.composite
def problems(draw: st.DrawFn, max_nodes: int = 6, max_components: int = 4, max_workers: int = 12) -> dict[str, Any]:
    """Plain data of a valid problem; a plan may exist or not."""
    cluster = draw(clusters(max_nodes))
    # Most of what can go wrong needs two components, so few and none are drawn seldom.
    count = draw(st.sampled_from([*range(1, max_components + 1)] * 3 + [0]))
    names = draw(st.permutations(NAMES))[:count]
    # Followers point only to names before them, so that per_node_of never goes round in a circle.
    names.sort(key=lambda name: name == "buffer")
    job = {name: draw(components(name, names[:index], cluster, max_workers)) for index, name in enumerate(names)}
    problem: dict[str, Any] = {"cluster": cluster, "components": {name: job[name] for name in draw(st.permutations(names))}}
    written = draw(rules(job))
    if written:
        problem["rules"] = written
    if len(names) > 1 and draw(st.integers(0, 2)) == 2:
        pairs = draw(st.lists(_some(names, 2).map(lambda pair: tuple(sorted(pair[:2]))), unique=True, max_size=2))
        problem["traffic"] = [{"between": list(pair), "weight": draw(st.integers(0, 3))} for pair in pairs]
    if draw(st.booleans()):
        problem["goals"] = draw(st.lists(st.sampled_from(DEFAULT_GOALS), unique=True))
    return problem
