"""Changes of a problem of which the effect is known: what must stay, and in which direction the rest may move.

Values are compared as the solver orders them, lexicographically. "Never worse" means: feasible stays feasible, and the tuple of
goal values does not grow. Each change says which part of a problem it leaves out, and why.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from differential import Answer, planned, refusable
from oracle.tiny import random_file

from placewright.params import SolveParams
from placewright.pipeline import plan
from placewright_models.codec import load_problem
from placewright_models.errors import InvalidProblem

File = dict[str, Any]
PARAMS = SolveParams(workers=1)
PROBLEMS = 40
"""How many problems each change is tried on."""

NAMED_LISTS = ("same_node", "same_domain", "separate_nodes", "separate_domains")


def solved(data: File) -> Answer:
    return planned(load_problem(data), PARAMS)


def values(answer: Answer) -> tuple[int, ...]:
    return tuple(answer.goals.values())


def same(before: Answer, after: Answer) -> bool:
    return before == after


def never_worse(before: Answer, after: Answer) -> bool:
    return before.status == "infeasible" or (after.status == "optimal" and values(after) <= values(before))


def never_better(before: Answer, after: Answer) -> bool:
    return never_worse(after, before)


def at_most_doubled(before: Answer, after: Answer) -> bool:
    """Twice the old placement is a placement of the doubled problem, with twice its values."""
    doubled = Answer(before.status, {name: 2 * value for name, value in before.goals.items()})
    return never_worse(doubled, after)


# Changes: each takes a problem file and a source of chance, and gives a changed file, or None where it does not apply.


def permuted(data: File, rng: Random) -> File:
    """Nodes, components and entries of rules in another order."""
    rng.shuffle(data["cluster"]["nodes"])
    names = rng.sample(list(data["components"]), len(data["components"]))
    data["components"] = {name: data["components"][name] for name in names}
    for entries in data.get("rules", {}).values():
        if isinstance(entries, list):
            for entry in entries:
                rng.shuffle(entry)
            rng.shuffle(entries)
    return data


def renamed(data: File, rng: Random) -> File:
    """Nodes, domains, units and labels get other names, in another natural order."""

    def other(name: str) -> str:
        return f"{'zyx'[len(name) % 3]}-{name[::-1]}"

    for node in data["cluster"]["nodes"]:
        node["id"] = other(node["id"])
        if "nvlink_domain" in node:
            node["nvlink_domain"] = other(node["nvlink_domain"])
        node["labels"] = {key: other(value) for key, value in node.get("labels", {}).items()}
    for component in data["components"].values():
        for key in ("node_ids", "exclude_node_ids"):
            if key in component:
                component[key] = [other(name) for name in component[key]]
    return data


def role_renamed(data: File, rng: Random) -> File | None:
    """A component gets another name; what the name stood for is written out.

    Not where the strategy or a default (train, eval, env, buffer) goes by the name.
    """
    found = [name for name in data["components"] if name not in ("train", "eval", "env", "buffer")]
    if not found:
        return None
    loaded = load_problem(data).by_name[found[0]]
    data["components"][found[0]] |= {"kind": loaded.kind, "spread": loaded.spread, "span_weight": loaded.span_weight}

    def change(value: Any) -> Any:
        if isinstance(value, dict):
            return {change(key): change(entry) for key, entry in value.items()}
        if isinstance(value, list):
            return [change(entry) for entry in value]
        return "zebra" if value == found[0] else value

    return {**data, **{key: change(data[key]) for key in ("components", "rules", "traffic") if key in data}}


def node_added(data: File, rng: Random) -> File:
    """One more node like one that is there, in a domain of its own or in none: no rule speaks of it yet.

    Not bigger than the others, since the largest node decides which groups take whole nodes.
    """
    node = copy.deepcopy(rng.choice(data["cluster"]["nodes"]))
    node["id"] = "more"
    node.pop("labels", None)
    if "nvlink_domain" in node:
        node["nvlink_domain"] = "another"
    data["cluster"]["nodes"].append(node)
    return data


def repaired(data: File, rng: Random) -> File | None:
    """Everything that is unavailable, in use or reserved becomes free.

    Not with domain_capacity, which counts what is available.
    """
    data["goals"] = [goal for goal in data["goals"] if goal != "domain_capacity"]
    changed = False
    for node in data["cluster"]["nodes"]:
        for key in ("unavailable_gpus", "reserved_cpus", "cpus_in_use", "cpus", "memory"):
            changed = node.pop(key, None) is not None or changed
    return data if changed else None


def useless_node_added(data: File, rng: Random) -> File:
    """One more node that hosts nothing."""
    data["cluster"]["nodes"].append({"id": "useless", "gpus": 4, "nvlink_domain": "rack0", "excluded": "drained"})
    return data


def everything_doubled(data: File, rng: Random) -> File | None:
    """The cluster beside itself under other names, and twice the workers of everybody.

    Not with rules that ask for one node or one domain, and not with an explicit number of per_node_of's followers.
    """
    rules = data.get("rules", {})
    for key in ("same_node", "same_domain"):
        rules.pop(key, None)
    nodes = data["cluster"]["nodes"]
    for node in copy.deepcopy(nodes):
        node["id"] += "-twin"
        if "nvlink_domain" in node:
            node["nvlink_domain"] += "-twin"
        node["labels"] = {key: f"{value}-twin" for key, value in node.get("labels", {}).items()}
        nodes.append(node)
    for component in data["components"].values():
        workers = component.get("workers")
        if isinstance(workers, dict):
            component["workers"] = {key: 2 * value for key, value in workers.items()}
        elif isinstance(workers, int):
            component["workers"] = 2 * workers
        if "nodes" in component:
            component["nodes"] *= 2
        if isinstance(component.get("per_node"), list):
            component["per_node"] *= 2
        for key in ("node_ids", "exclude_node_ids"):
            if key in component:
                component[key] += [f"{name}-twin" for name in component[key]]
    return data


def relaxed(data: File, rng: Random) -> File | None:
    """Required groups and segments become preferred."""
    changed = False
    for component in data["components"].values():
        if component.get("group", {}).get("mode") == "required":
            component["group"]["mode"] = "preferred"
            changed = True
        if component.get("segment_size") and component.get("segment_mode") == "required":
            component["segment_mode"] = "preferred"
            changed = True
    return data if changed else None


def rule_removed(data: File, rng: Random) -> File | None:
    """One entry of a rule that only forbids; share_gpus permits, and so does colocate in part."""
    rules = data.get("rules", {})
    found = [key for key in NAMED_LISTS if rules.get(key)]
    if not found:
        return None
    rules.pop(rng.choice(found))
    return data


def field_removed(data: File, rng: Random) -> File | None:
    """One field of a component that only restricts."""
    found = [
        (name, key)
        for name, component in data["components"].items()
        for key in ("nodes", "per_node", "aligned", "gpu_share", "memory", "cpus", "per_node_of")
        if key in component and not (key == "per_node_of" and component["workers"] == "auto")
    ]
    if not found:
        return None
    name, key = rng.choice(found)
    if key == "per_node_of" and "gpu_nodes_used" in data["goals"]:
        return None  # followers are not counted there
    if key == "cpus":
        data["components"][name]["cpus"] = 0
    else:
        data["components"][name].pop(key)
    return data


def sharing_permitted(data: File, rng: Random) -> File | None:
    """Two more components may share."""
    if len(data["components"]) < 2:
        return None
    rules = data.setdefault("rules", {})
    if rules.get("strategy") == "disaggregate":
        return None
    rules.setdefault("share_gpus", []).append(rng.sample(list(data["components"]), 2))
    return data


def workers_added(data: File, rng: Random) -> File | None:
    """A component without groups, segments or counts per node needs one worker more.

    The values that can fall with it, or that measure against the total, are left out.
    """
    found = [
        name
        for name, component in data["components"].items()
        if isinstance(component["workers"], int)
        and not {"group", "segment_size", "nodes", "per_node", "per_node_of"} & set(component)
        and not any(name in entry for entry in data.get("rules", {}).get("colocate", []))
        and not any(other.get("per_node_of") == name for other in data["components"].values())
    ]
    data["goals"] = [goal for goal in data["goals"] if goal not in ("traffic", "groups_split")]
    data.pop("traffic", None)
    if not found:
        return None
    data["components"][rng.choice(found)]["workers"] += 1
    return data


Change = Callable[[File, Random], File | None]
DIRECTIONS: list[tuple[Change, Callable[[Answer, Answer], bool]]] = [
    (permuted, same),
    (renamed, same),
    (role_renamed, same),
    (useless_node_added, same),
    (node_added, never_worse),
    (repaired, never_worse),
    (everything_doubled, at_most_doubled),
    (relaxed, never_worse),
    (rule_removed, never_worse),
    (field_removed, never_worse),
    (sharing_permitted, never_worse),
    (workers_added, never_better),
]


@pytest.mark.parametrize(("change", "holds"), [pytest.param(*pair, id=pair[0].__name__) for pair in DIRECTIONS])
def test_direction(change: Change, holds: Callable[[Answer, Answer], bool]) -> None:
    seen: Counter[str] = Counter()
    seed = 0
    while seen.total() < PROBLEMS:
        seed += 1
        assert seed < 4000, f"the change applies too seldom: {seen}"
        before, after = _pair(change, seed)
        if before is None or after is None:
            continue
        first, second = solved(before), solved(after)
        if "refused" in (first.status, second.status):
            continue
        assert holds(first, second), f"seed {seed}: {first} became {second}"
        seen[f"{first.status} to {second.status}"] += 1
    assert seen["optimal to optimal"] >= PROBLEMS // 6, seen


def _pair(change: Change, seed: int) -> tuple[File | None, File | None]:
    """A valid problem and the changed one; the change may leave goals out, on both sides."""
    rng = Random(seed)
    before = random_file(rng, most_nodes=3, most_components=3)
    try:
        if refusable(load_problem(before)):
            return None, None
        after = change(copy.deepcopy(before), rng)
        if after is None or not after["goals"]:
            return None, None
        before["goals"] = list(after["goals"])
        if "traffic" not in after:
            before.pop("traffic", None)
        if change is everything_doubled:
            for key in ("same_node", "same_domain"):
                before.get("rules", {}).pop(key, None)
        load_problem(before)
        load_problem(after)
    except InvalidProblem:
        return None, None
    return before, after


def test_directions_can_fail() -> None:
    low, high = Answer("optimal", {"a": 1, "b": 5}), Answer("optimal", {"a": 2, "b": 0})
    gone = Answer("infeasible")
    assert never_worse(high, low) and not never_worse(low, high) and not never_worse(low, gone) and never_worse(gone, low)
    assert not same(low, high) and not at_most_doubled(low, Answer("optimal", {"a": 2, "b": 11}))
    assert not never_better(high, low)


def test_a_counted_entry_is_its_nodes_written_out() -> None:
    """Status, values and every worker's place are the same, however the nodes are written."""
    counted = {"id": "gpu-{:02d}", "count": 7, "start": 3, "gpus": 4, "nvlink_domain": "rack{}", "nodes_per_domain": 3}
    spelled = [{"id": f"gpu-{3 + i:02d}", "gpus": 4, "nvlink_domain": f"rack{i // 3}"} for i in range(7)]
    parts = [{**counted, "count": 3}, *spelled[3:]]
    job = {
        "train": {"workers": 8, "gpus": 1, "segment_size": 2},
        "rollout": {"workers": 5, "gpus": 2},
        "env": {"workers": 9, "gpus": 0.25},
    }
    plans = [plan(load_problem({"cluster": {"nodes": nodes}, "components": job})) for nodes in ([counted], spelled, parts)]
    assert len({plan.workers["train"] for plan in plans}) == 1
    assert all(p.workers == plans[0].workers and p.goals == plans[0].goals and p.pools == plans[0].pools for p in plans)


def test_an_empty_usable_node_never_worsens_the_spans() -> None:
    """Issue 2 point 8, with the spans asked first: domain_span, then node_span."""
    for seed in range(40):
        rng = Random(seed)
        data = random_file(rng, most_nodes=3, most_components=3)
        data["goals"] = ["domain_span", "node_span"]
        data.pop("traffic", None)
        try:
            before = solved(data)
            data["cluster"]["nodes"].append({"id": "empty", "gpus": max(node["gpus"] for node in data["cluster"]["nodes"])})
            after = solved(data)
        except InvalidProblem:
            continue
        # A larger node than a component's own decides whether its groups take whole nodes: only equal sizes are added.
        if any("accelerator" in component or "node_ids" in component for component in data["components"].values()):
            continue
        if len({node["gpus"] for node in data["cluster"]["nodes"]}) == 1:
            assert never_worse(before, after), seed
