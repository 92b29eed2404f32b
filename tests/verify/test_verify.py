"""The verifier on plans written by hand: every rule at its edge, every goal's value, every number of a plan.

``CASES`` and ``VALUES`` must cover every rule in ``RULES`` and every goal in ``GOALS``; one added without a case fails here.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

import pytest
from oracle.handmade import placement, plan_of, problem, workers

from placewright.facts import Facts
from placewright.goals import GOAL_BY_NAME, GOALS
from placewright.rules import RULES
from placewright.verify import verify, violations
from placewright_models.cluster import Cluster, Node
from placewright_models.errors import PlanMismatch
from placewright_models.plan import GoalValue, Idle, Plan, Pool, PoolNode, Worker
from placewright_models.problem import Problem
from placewright_models.workload import Component, Rules

EIGHT: dict[str, Any] = {"gpus": 8}
FOUR: dict[str, Any] = {"gpus": 4}


class Case(NamedTuple):
    """A placement that a rule accepts or refuses, as near to the edge as it gets."""

    rule: str
    accepted: bool
    what: str
    problem: Problem
    workers: Mapping[str, Sequence[Worker]]


def racks(*names: str | None, gpus: int = 4, **fields: Any) -> dict[str, dict[str, Any]]:
    """Nodes a, b, c, ... in these domains; None is an unknown one."""
    found = {}
    for node, rack in zip("abcdefgh", names, strict=False):
        found[node] = {"gpus": gpus, **fields, **({} if rack is None else {"nvlink_domain": rack})}
    return found


def pairs(rule: str, what: str, asked: Problem, good: Mapping[str, Any], bad: Mapping[str, Any]) -> list[Case]:
    """The same problem with an accepted and a refused placement."""
    return [Case(rule, True, what, asked, good), Case(rule, False, what, asked, bad)]


def cases() -> list[Case]:
    one = {"a": EIGHT}
    train = {"workers": 2, "gpus": 1}
    found: list[Case] = []
    found += pairs("all_placed", "count", problem(one, {"train": train}), placement(train="a:0 a:1"), placement(train="a:0"))
    found += pairs(
        "all_placed", "one too many", problem(one, {"train": train}), placement(train="a:0 a:1"), placement(train="a:0 a:1 a:2")
    )
    elastic = problem(one, {"train": {"workers": {"min": 1, "max": 2}, "gpus": 1}})
    found += pairs("all_placed", "least", elastic, placement(train="a:0"), placement(train=""))
    found += pairs("all_placed", "most", elastic, placement(train="a:0 a:1"), placement(train="a:0 a:1 a:2"))
    found += pairs(
        "all_placed", "stranger", problem(one, {"train": train}), placement(train="a:0 a:1"), placement(train="a:0 a:1", x="a")
    )
    wide = problem(one, {"train": {"workers": 1, "gpus": 4}})
    found += pairs("whole_workers", "width", wide, placement(train="a:0-3"), placement(train="a:0-2"))
    found += pairs("whole_workers", "consecutive", wide, placement(train="a:4-7"), placement(train="a:0-1+4-5"))
    found += pairs(
        "whole_workers",
        "no GPU",
        problem(one, {"buffer": {"workers": 1}}),
        placement(buffer="a"),
        placement(buffer="a:0"),
    )
    found += pairs(
        "whole_workers",
        "a share lies on one GPU",
        problem(one, {"env": {"workers": 1, "gpus": 0.5}}),
        placement(env="a:0"),
        placement(env="a:0-1"),
    )
    found += pairs("capacity", "outside", wide, placement(train="a:4-7"), placement(train="a:5-8"))
    found += pairs("capacity", "negative", wide, placement(train="a:0-3"), {"train": (Worker("a", ((-1, 2),)),)})
    holed = problem({"a": {"gpus": 8, "unavailable_gpus": [2]}}, {"train": {"workers": 1, "gpus": 2}})
    found += pairs("capacity", "unavailable", holed, placement(train="a:0-1"), placement(train="a:1-2"))
    two = {"actor": {"workers": 1, "gpus": 2}, "ref": {"workers": 1, "gpus": 2}}
    found += pairs(
        "sharing", "apart", problem(one, two), placement(actor="a:0-1", ref="a:2-3"), placement(actor="a:0-1", ref="a:1-2")
    )
    found += pairs(
        "sharing", "own workers", problem(one, {"train": train}), placement(train="a:0 a:1"), placement(train="a:0 a:0")
    )
    three = {**two, "env": {"workers": 1, "gpus": 2}}
    relation = problem(one, three, share_gpus=[["env", "actor"], ["env", "ref"]])
    found += pairs(
        "sharing",
        "pairs, not transitive",
        relation,
        placement(actor="a:0-1", ref="a:2-3", env="a:1-2"),
        placement(actor="a:0-1", ref="a:1-2", env="a:1-2"),
    )
    halves = problem(one, {"env": {"workers": 5, "gpus": 0.6}})
    found += pairs("shares", "5 x 0.6", halves, placement(env="a:0 a:1 a:2 a:3 a:4"), placement(env="a:0 a:0 a:1 a:2 a:3"))
    trio = {
        "env": {"workers": 1, "gpus": 0.33},
        "eval": {"workers": 1, "gpus": 0.56},
        "reward": {"workers": 1, "gpus": 0.11},
    }
    everyone = {"share_gpus": [["env", "eval", "reward"]]}
    on_zero = placement(env="a:0", eval="a:0", reward="a:0")
    more = {**trio, "reward": {"workers": 1, "gpus": 0.1101}}
    found.append(Case("shares", True, "0.33 + 0.56 + 0.11", problem(one, trio, **everyone), on_zero))
    found.append(Case("shares", False, "one unit more", problem(one, more, **everyone), on_zero))
    seventh = problem(one, {"env": {"workers": 8, "gpus": 1 / 7}})
    found += pairs("shares", "7 x 1/7", seventh, placement(env="a:0 " * 7 + "a:1"), placement(env="a:0 " * 8))
    held = {"actor": {"workers": 1, "gpus": 1, "gpu_share": 1}, "env": {"workers": 1, "gpus": 0.01}}
    found += pairs(
        "shares",
        "1.0 + 0.01",
        problem(one, held, share_gpus=[["actor", "env"]]),
        placement(actor="a:0", env="a:1"),
        placement(actor="a:0", env="a:0"),
    )
    turns = {"actor": {"workers": 1, "gpus": 1}, "env": {"workers": 2, "gpus": 0.5}}
    found.append(
        Case(
            "shares",
            True,
            "who gives no share takes turns",
            problem(one, turns, share_gpus=[["actor", "env"]]),
            placement(actor="a:0", env="a:0 a:0"),
        )
    )
    cpus = {"a": {"gpus": 0, "cpus": 2.5, "reserved_cpus": 0.5}, "b": {"gpus": 0, "cpus": 8}}
    found += pairs(
        "host_resources",
        "CPUs, reserved ones apart",
        problem(cpus, {"env": {"workers": 3, "cpus": 1}}),
        placement(env="a a b"),
        placement(env="a a a"),
    )
    memory = {"a": {"gpus": 0, "memory": "2GiB"}, "b": {"gpus": 0}}
    found += pairs(
        "host_resources",
        "memory",
        problem(memory, {"env": {"workers": 3, "cpus": 0, "memory": "1GiB"}}),
        placement(env="a a b"),
        placement(env="a a a"),
    )
    found += pairs(
        "contiguous", "one range", problem(one, {"train": train}), placement(train="a:1 a:2"), placement(train="a:1 a:3")
    )
    found.append(Case("contiguous", True, "holes refuse nothing", holed, placement(train="a:0-1")))
    gap = problem({"a": {"gpus": 8, "unavailable_gpus": [2]}}, {"train": train})
    found.append(Case("contiguous", True, "over a hole", gap, placement(train="a:1 a:3")))
    edge = problem({"a": {"gpus": 8, "unavailable_gpus": [7]}}, {"train": train})
    found.append(Case("contiguous", False, "unavailable at the end is no hole", edge, placement(train="a:1 a:3")))
    found += group_cases() + segment_cases() + other_cases()
    return found


def group_cases() -> list[Case]:
    def grouped(
        nodes: dict[str, Any], k: int, within: str, count: int, gpus: int = 1, mode: str = "required", **rest: Any
    ) -> Problem:
        group = {"workers": k, "within": within, "mode": mode}
        return problem(nodes, {"train": {"workers": count, "gpus": gpus, "group": group}}, **rest)

    found: list[Case] = []
    two = racks("r0", "r0")
    found += pairs(
        "groups",
        "within node",
        grouped(two, 2, "node", 4),
        placement(train="a:0 a:1 b:0 b:1"),
        placement(train="a:0 a:1 a:2 b:0"),
    )
    found += pairs(
        "groups",
        "straddling in a domain",
        grouped(racks("r0", "r0", "r1"), 3, "nvlink_domain", 3),
        placement(train="a:0 a:1 b:0"),
        placement(train="a:0 a:1 c:0"),
    )
    found += pairs(
        "groups",
        "unknown node serves a group on it alone",
        grouped(racks("r0", "r0", None), 2, "nvlink_domain", 4),
        placement(train="c:0 c:1 a:0 b:0"),
        placement(train="c:0 c:1 c:2 a:0"),
    )
    found += pairs(
        "groups",
        "workers of one group are numbered together",
        grouped(racks("r0", "r1"), 2, "nvlink_domain", 4),
        placement(train="a:0 a:1 b:0 b:1"),
        placement(train="a:0 b:0 a:1 b:1"),
    )
    blocks = {
        name: {"gpus": 4, "nvlink_domain": f"r{name}", "labels": {"block": block}}
        for name, block in zip("abc", "xxy", strict=True)
    }
    found += pairs(
        "groups",
        "declared level",
        grouped(blocks, 4, "block", 4, levels=["block"]),
        placement(train="a:0 a:1 b:0 b:1"),
        placement(train="a:0 a:1 c:0 c:1"),
    )
    wide = grouped(racks("r0", "r0", "r1", "r1", None, None), 8, "nvlink_domain", 8)
    found += pairs(
        "groups",
        "whole-node group in one domain",
        wide,
        placement(train="a:0 a:1 a:2 a:3 b:0 b:1 b:2 b:3"),
        placement(train="a:0 a:1 a:2 a:3 c:0 c:1 c:2 c:3"),
    )
    found.append(
        Case("groups", False, "unknown nodes serve no wide group", wide, placement(train="e:0 e:1 e:2 e:3 f:0 f:1 f:2 f:3"))
    )
    found.append(
        Case("groups", False, "nodes are whole", grouped(racks("r0", "r0", "r0"), 8, "nvlink_domain", 8),
             placement(train="a:0 a:1 a:2 b:0 b:1 b:2 c:0 c:1"))
    )  # fmt: skip
    mixed = {"a": {"gpus": 8, "nvlink_domain": "r0"}, **{n: {"gpus": 4, "nvlink_domain": "r0"} for n in "bcde"}}
    found += pairs(
        "groups",
        "one node size",
        grouped(mixed, 4, "nvlink_domain", 4, gpus=4),
        placement(train="b:0-3 c:0-3 d:0-3 e:0-3"),
        placement(train="a:0-3 a:4-7 b:0-3 c:0-3"),
    )
    soft = grouped(racks("r0", "r1"), 2, "nvlink_domain", 4, mode="preferred")
    found.append(Case("groups", True, "preferred may be split", soft, placement(train="a:0 a:1 a:2 b:0")))
    soft_wide = grouped(racks("r0", "r1", None), 8, "nvlink_domain", 8, mode="preferred")
    found += pairs(
        "groups",
        "preferred keeps whole nodes",
        soft_wide,
        placement(train="a:0 a:1 a:2 a:3 c:0 c:1 c:2 c:3"),
        placement(train="a:0 a:1 a:2 b:0 b:1 b:2 c:0 c:1"),
    )
    return found


def segment_cases() -> list[Case]:
    def segmented(nodes: dict[str, Any], size: int, count: int, gpus: int = 4, mode: str = "required") -> Problem:
        fields = {"workers": count, "gpus": gpus, "segment_size": size, "segment_mode": mode}
        return problem(nodes, {"train": fields})

    found = pairs(
        "segments",
        "per domain",
        segmented(racks("r0", "r0", "r1", "r1"), 2, 2),
        placement(train="a:0-3 b:0-3"),
        placement(train="a:0-3 c:0-3"),
    )
    found += pairs(
        "segments",
        "unknown nodes serve none, not even of one",
        segmented(racks("r0", None), 1, 1),
        placement(train="a:0-3"),
        placement(train="b:0-3"),
    )
    mixed = {"a": {"gpus": 8, "nvlink_domain": "r0"}, **{n: {"gpus": 4, "nvlink_domain": "r0"} for n in "bc"}}
    found += pairs(
        "segments",
        "one node size",
        segmented(mixed, 2, 2),
        placement(train="b:0-3 c:0-3"),
        placement(train="a:0-3 b:0-3"),
    )
    found.append(
        Case(
            "segments",
            False,
            "equal counts, mixed sizes",
            segmented(mixed, 2, 6, gpus=2),
            placement(train="a:0-1 a:2-3 a:4-5 a:6-7 b:0-1 b:2-3"),
        )
    )
    degraded = {"a": {"gpus": 4, "nvlink_domain": "r0", "unavailable_gpus": [3]}, "b": {"gpus": 4, "nvlink_domain": "r0"}}
    found.append(
        Case(
            "segments",
            False,
            "degraded nodes are not whole",
            segmented(degraded, 1, 3, gpus=1),
            placement(train="a:0 a:1 a:2"),
        )
    )
    found.append(Case("segments", False, "undivided size", segmented(racks("r0"), 1, 1, gpus=3), placement(train="a:0-2")))
    soft = segmented(racks("r0", "r1", None), 2, 2, mode="preferred")
    found.append(Case("segments", True, "preferred may be split", soft, placement(train="a:0-3 c:0-3")))
    three = segmented({**racks("r0", "r1"), "c": {"gpus": 8}}, 2, 4, mode="preferred")
    found.append(Case("segments", False, "preferred keeps one size", three, placement(train="a:0-3 b:0-3 c:0-3 c:4-7")))
    return found


def other_cases() -> list[Case]:
    two, one = racks("r0", "r1"), {"a": EIGHT}
    found: list[Case] = []
    helped = problem(two, {"train": {"workers": 2, "gpus": 1}, "buffer": {"workers": "auto", "per_node_of": "train"}})
    found += pairs(
        "per_node_of", "on each", helped, placement(train="a:0 b:0", buffer="a b"), placement(train="a:0 b:0", buffer="a")
    )
    found += pairs(
        "per_node_of", "only one", helped, placement(train="a:0 a:1", buffer="a"), placement(train="a:0 a:1", buffer="a a")
    )
    found.append(Case("per_node_of", False, "not elsewhere", helped, placement(train="a:0 a:1", buffer="a b")))
    kinds = {
        "a": {"gpus": 4, "accelerator": "H100", "labels": {"disk": "fast"}},
        "b": {"gpus": 4, "accelerator": "A100", "labels": {"disk": "slow"}},
        "c": {"gpus": 4},
        "head": {"gpus": 4, "head": True},
        "gone": {"gpus": 4, "excluded": "drained"},
    }
    on_a, on_b = placement(train="a:0"), placement(train="b:0")
    for what, fields in (
        ("accelerator", {"accelerator": "H100"}),
        ("labels", {"labels": {"disk": "fast"}}),
        ("node_ids", {"node_ids": ["a", "c"]}),
        ("exclude_node_ids", {"exclude_node_ids": ["b"]}),
    ):
        found += pairs("node_filters", what, problem(kinds, {"train": {"workers": 1, "gpus": 1, **fields}}), on_a, on_b)
    plain = problem(kinds, {"train": {"workers": 1, "gpus": 1}})
    for what, node in (("head", "head"), ("excluded", "gone"), ("no such node", "zz")):
        found += pairs("node_filters", what, plain, on_a, placement(train=f"{node}:0"))
    with_head = problem(kinds, {"train": {"workers": 1, "gpus": 1}}, schedule_on_head=True)
    found.append(Case("node_filters", True, "schedule_on_head", with_head, placement(train="head:0")))
    engines = problem(
        {"a": EIGHT, "b": EIGHT},
        {"actor": {"workers": 4, "gpus": 1}, "rollout": {"workers": 1, "gpus": 4}},
        colocate=[["actor", "rollout"]],
    )
    found += pairs(
        "colocate",
        "k-GPU workers over one-GPU workers",
        engines,
        placement(actor="a:0 a:1 a:2 a:3", rollout="a:0-3"),
        placement(actor="a:1 a:2 a:3 a:4", rollout="a:0-3"),
    )
    found.append(Case("colocate", False, "other node", engines, placement(actor="b:0 b:1 b:2 b:3", rollout="a:0-3")))
    same = {"driver": {"workers": 1}, "env": {"workers": 2}}
    found += pairs(
        "same_node", "all workers", problem(two, same, same_node=[["driver", "env"]]),
        placement(driver="a", env="a a"), placement(driver="a", env="a b"),
    )  # fmt: skip
    found += pairs(
        "same_domain", "all workers", problem(racks("r0", "r0", "r1"), same, same_domain=[["driver", "env"]]),
        placement(driver="a", env="a b"), placement(driver="a", env="b c"),
    )  # fmt: skip
    found.append(
        Case("same_domain", False, "unknown nodes", problem(racks(None, None), same, same_domain=[["driver", "env"]]),
             placement(driver="a", env="a b"))
    )  # fmt: skip
    found += pairs(
        "separate_nodes", "pairwise", problem(two, same, separate_nodes=[["driver", "env"]]),
        placement(driver="a", env="b b"), placement(driver="a", env="a b"),
    )  # fmt: skip
    found += pairs(
        "separate_domains", "pairwise", problem(racks("r0", "r0", "r1"), same, separate_domains=[["driver", "env"]]),
        placement(driver="a", env="c c"), placement(driver="a", env="b b"),
    )  # fmt: skip
    found += pairs(
        "node_count", "exactly", problem(two, {"train": {"workers": 2, "gpus": 1, "nodes": 2}}),
        placement(train="a:0 b:0"), placement(train="a:0 a:1"),
    )  # fmt: skip
    found += pairs(
        "per_node", "a number", problem(racks("r0", "r0", "r0"), {"train": {"workers": 4, "gpus": 1, "per_node": 2}}),
        placement(train="a:0 a:1 c:0 c:1"), placement(train="a:0 a:1 b:0 c:0"),
    )  # fmt: skip
    found += pairs(
        "per_node", "a multiset", problem(racks("r0", "r0", "r0"), {"train": {"gpus": 1, "per_node": [1, 3]}}),
        placement(train="a:0 a:1 a:2 c:0"), placement(train="a:0 a:1 c:0 c:1"),
    )  # fmt: skip
    aligned = problem(one, {"train": {"workers": 1, "gpus": 4, "aligned": True}})
    found += pairs("aligned", "start", aligned, placement(train="a:4-7"), placement(train="a:2-5"))
    return found


CASES = cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.what}-{'yes' if case.accepted else 'no'}")
def test_rule_at_its_edge(case: Case) -> None:
    facts = Facts(case.problem, case.workers)
    found = {rule.name: list(rule.check(facts)) for rule in RULES}
    if case.accepted:
        assert not any(found.values()), found
    else:
        assert found[case.rule], found
        assert all(sentence and "\n" not in sentence for sentence in found[case.rule])


def test_pools_at_their_edge() -> None:
    nodes = {"a": EIGHT, "b": EIGHT}
    parts = {"train": {"workers": 2, "gpus": 2}, "rollout": {"workers": 1, "gpus": 4}, "buffer": {"workers": 1}}
    asked = problem(nodes, parts, strategy="disaggregate")
    plan = plan_of(asked, placement(train="a:0-1 a:2-3", rollout="a:4-7", buffer="b"))
    rule = next(rule for rule in RULES if rule.name == "pools")
    assert not list(rule.check(Facts(asked, plan)))
    train, rollout = plan.pools
    a, b = train.nodes
    wrong: list[tuple[Pool, ...]] = [
        (train,),
        (rollout, train, train),
        (replace(train, nodes=(a,)), rollout),
        (replace(train, nodes=(a, a, b)), rollout),
        (replace(train, nodes=(replace(a, gpus=4), b)), rollout),
        (replace(train, nodes=(replace(a, allocations={"train": ((0, 2),)}), b)), rollout),
        (replace(train, nodes=(replace(a, allocations={**a.allocations, "rollout": ((4, 7),)}), b)), rollout),
        (replace(train, nodes=(a, replace(b, allocations={**b.allocations, "train": ()}))), rollout),
        (replace(train, nodes=(a, b, PoolNode("zz", 8, {}))), rollout),
        (train, rollout, Pool("other", ())),
    ]
    for pools in wrong:
        assert list(rule.check(Facts(asked, replace(plan, pools=pools)))), pools
    homeless = Problem(asked.cluster, asked.components, replace(asked.rules, pools=asked.rules.pools[:1]))
    assert any("rollout is in 0 pools" in text for text in rule.check(Facts(homeless, plan.workers)))


def test_every_rule_has_cases_on_both_sides() -> None:
    for rule in RULES:
        sides = {case.accepted for case in CASES if case.rule == rule.name}
        assert sides == {True, False} or rule.name == "pools", f"no edge test for rule {rule.name}"
    assert {case.rule for case in CASES} <= {rule.name for rule in RULES}


class Value(NamedTuple):
    """What a goal comes to in a placement."""

    goal: str
    value: int
    problem: Problem
    workers: Mapping[str, Sequence[Worker]]
    previous: Mapping[str, Sequence[Worker]] | None = None


def values() -> list[Value]:
    two, three = racks("r0", "r0"), racks("r0", "r0", "r1")
    found: list[Value] = []
    elastic = problem(
        two,
        {
            "train": {"workers": {"min": 0, "max": 3}, "gpus": 1, "priority": 5},
            "rollout": {"workers": {"min": 1, "max": 2}, "gpus": 1},
        },
    )
    found.append(Value("unplaced", 5 * 2 + 1, elastic, placement(train="a:0", rollout="b:0")))
    found.append(Value("unplaced", 0, elastic, placement(train="a:0 a:1 a:2", rollout="b:0 b:1")))
    train = problem(three, {"train": {"workers": 3, "gpus": 1}})
    before = placement(train="a:0 a:1 b:0 c:0")
    found.append(Value("moves", 0, train, placement(train="a:0 a:1 b:0"), before))
    found.append(Value("moves", 1, train, placement(train="c:0 a:1 b:1"), before))
    found.append(Value("moves", 0, train, placement(train="c:0 a:1 b:1")))
    env = problem(three, {"env": {"workers": 3, "gpus": 0.3}})
    found.append(Value("moves", 1, env, placement(env="a:0 a:0 a:0"), placement(env="a:0 a:0 b:0 b:0")))

    def grouped(nodes: dict[str, Any], **fields: Any) -> Problem:
        return problem(nodes, {"train": {"workers": 4, "gpus": 1, **fields}})

    soft = grouped(three, group={"workers": 2, "within": "nvlink_domain", "mode": "preferred"})
    found.append(Value("groups_split", 0, soft, placement(train="a:0 b:0 c:0 c:1")))
    found.append(Value("groups_split", 1, soft, placement(train="a:0 a:1 a:2 c:0")))
    wide = problem(
        racks("r0", "r1", None),
        {"train": {"workers": 8, "gpus": 1, "group": {"workers": 8, "within": "nvlink_domain", "mode": "preferred"}}},
    )
    found.append(Value("groups_split", 1, wide, placement(train="a:0 a:1 a:2 a:3 c:0 c:1 c:2 c:3")))
    single = problem(racks("r0", None), {"train": {"workers": 2, "gpus": 4, "segment_size": 1, "segment_mode": "preferred"}})
    found.append(Value("groups_split", 1, single, placement(train="a:0-3 b:0-3")))
    required = grouped(three, group={"workers": 2, "within": "nvlink_domain", "mode": "required"})
    found.append(Value("groups_split", 0, required, placement(train="a:0 a:1 a:2 c:0")))
    spans = problem(
        racks("r0", "r0", "r1", None, None),
        {"train": {"workers": 3, "gpus": 1, "span_weight": 2}, "rollout": {"workers": 1, "gpus": 1}},
    )
    placed = placement(train="a:0 b:0 c:0", rollout="d:0")
    found += [Value("domain_span", 4, spans, placed), Value("node_span", 6, spans, placed)]
    found += [
        Value("domain_span", 6, spans, placement(train="a:0 d:0 e:0", rollout="a:1")),
        Value("node_span", 2, spans, placement(train="a:0 a:1 a:2", rollout="a:3")),
    ]
    talk = problem(
        three,
        {"env": {"workers": 4, "gpus": 0.1}, "eval": {"workers": 2, "gpus": 1}},
        traffic=[{"between": ["env", "eval"], "weight": 3}],
    )
    found.append(Value("traffic", 0, talk, placement(env="a:0 a:0 c:0 c:0", eval="a:1 c:1")))
    # Node a lacks partners for 4 of env (W_eval 1 x 4), b has too many; the domain r0 is in proportion.
    found.append(Value("traffic", 3 * 4, talk, placement(env="a:0 a:0 a:0 a:0", eval="b:0 b:1")))
    found.append(Value("traffic", 3 * (2 + 2), talk, placement(env="a:0 a:0 a:0 a:0", eval="a:1 c:0")))
    helpers = problem(
        {**two, "cpu": {"gpus": 0}},
        {
            "train": {"workers": 1, "gpus": 1},
            "env": {"workers": 3},
            "buffer": {"workers": "auto", "per_node_of": "train"},
        },
    )
    found.append(Value("gpu_nodes_used", 2, helpers, placement(train="a:0", env="a b cpu", buffer="a")))
    found.append(Value("gpu_nodes_used", 0, helpers, placement(train="a:0", env="cpu cpu cpu", buffer="a")))
    found.append(Value("nodes_used", 3, helpers, placement(train="a:0", env="a b cpu", buffer="a")))
    found.append(Value("nodes_used", 1, helpers, placement(train="a:0", env="a a a", buffer="a")))
    # env and buffer are helpers and so even by default; train packs.
    found.append(Value("evenness", 3 + 1, helpers, placement(train="a:0", env="a b cpu", buffer="a")))
    found.append(Value("evenness", 4 + 1 + 1, helpers, placement(train="a:0", env="a a cpu", buffer="a")))
    capacity = problem(
        {
            **racks("r0", "r0", None),
            "x": {"gpus": 4, "nvlink_domain": "r0", "excluded": "drained"},
            "y": {"gpus": 4, "nvlink_domain": "r0", "unavailable_gpus": [1]},
            "z": {"gpus": 4, "nvlink_domain": "r0", "accelerator": "A100"},
        },
        {"train": {"workers": 1, "gpus": 1, "exclude_node_ids": ["z"]}},
    )
    found.append(Value("domain_capacity", 4 + 4 + 3, capacity, placement(train="a:0")))
    found.append(Value("domain_capacity", 4, capacity, placement(train="c:0")))
    return found


VALUES = values()


@pytest.mark.parametrize("case", VALUES, ids=lambda case: f"{case.goal}-{case.value}")
def test_goal_value(case: Value) -> None:
    assert GOAL_BY_NAME[case.goal].measure(Facts(case.problem, case.workers, case.previous)) == case.value


def test_every_goal_has_two_values() -> None:
    for goal in GOALS:
        assert len({case.value for case in VALUES if case.goal == goal.name}) >= 2, f"no value tests for goal {goal.name}"


def example() -> Plan:
    """A right plan with two pools, a hole, a spare node, a head and an excluded node."""
    nodes = {
        **racks("r0", "r0", "r1", gpus=8),
        "d": {"gpus": 8, "unavailable_gpus": [0, 4]},
        "head": {"gpus": 2, "head": True},
        "gone": {"gpus": 8, "excluded": "drained"},
    }
    asked = problem(
        nodes,
        {
            "train": {"workers": 2, "gpus": 4},
            "rollout": {"workers": {"min": 1, "max": 3}, "gpus": 2},
            "env": {"workers": 4, "gpus": 0.25},
            "buffer": {"workers": "auto", "per_node_of": "train"},
        },
        strategy="disaggregate",
    )
    return plan_of(asked, placement(train="a:0-3 a:4-7", rollout="b:0-1 d:1-2", env="b:2 b:2 b:2 b:2", buffer="a"))


def test_right_plan_is_accepted() -> None:
    plan = example()
    verify(plan.problem, plan)
    assert plan.idle.nodes == ("c",)
    assert plan.idle.ranges == {"b": ((3, 7),), "c": ((0, 7),), "d": ((3, 3), (5, 7))}


def spoiled() -> list[tuple[str, Plan]]:
    plan = example()
    first, *rest = plan.goals
    idle = plan.idle
    return [
        ("goal value", replace(plan, goals=(GoalValue(first.name, first.value + 1, first.value + 1), *rest))),
        ("bound above value", replace(plan, status="feasible", goals=(replace(first, bound=first.value + 1), *rest))),
        ("optimal without proof", replace(plan, goals=(replace(first, bound=None), *rest))),
        ("optimal with a gap", replace(plan, goals=(replace(first, bound=first.value - 1), *rest))),
        ("status", replace(plan, status="fine")),
        ("goal missing", replace(plan, goals=tuple(rest))),
        ("goals in another order", replace(plan, goals=(*rest, first))),
        ("moves without a previous plan", replace(plan, goals=(first, GoalValue("moves", 0, 0), *rest))),
        ("no such goal", replace(plan, goals=(*plan.goals, GoalValue("beauty", 0, 0)))),
        ("idle count", replace(plan, idle=replace(idle, gpus=idle.gpus + 1))),
        ("idle node missing", replace(plan, idle=replace(idle, nodes=()))),
        ("used node idle", replace(plan, idle=replace(idle, nodes=("c", "a")))),
        ("excluded node idle", replace(plan, idle=replace(idle, nodes=("c", "gone")))),
        ("idle node twice", replace(plan, idle=replace(idle, nodes=("c", "c")))),
        ("idle range shifted", replace(plan, idle=replace(idle, ranges={**idle.ranges, "b": ((2, 6),)}))),
        ("idle range missing", replace(plan, idle=replace(idle, ranges={"b": ((3, 7),)}))),
        ("idle range invented", replace(plan, idle=replace(idle, ranges={**idle.ranges, "a": ((0, 0),)}))),
        ("pool missing", replace(plan, pools=plan.pools[:1])),
        ("worker shifted", replace(plan, workers={**plan.workers, "rollout": workers("b:0-1 d:2-3")})),
        ("worker missing", replace(plan, workers={**plan.workers, "train": workers("a:0-3")})),
    ]


@pytest.mark.parametrize(("what", "plan"), spoiled(), ids=lambda value: value if isinstance(value, str) else "")
def test_spoiled_plan_is_refused(what: str, plan: Plan) -> None:
    with pytest.raises(PlanMismatch) as refusal:
        verify(plan.problem, plan)
    assert refusal.value.differences, what


def test_feasible_and_greedy_need_no_proof() -> None:
    plan = example()
    for status in ("feasible", "greedy"):
        goals = tuple(replace(goal, bound=None) for goal in plan.goals)
        verify(plan.problem, replace(plan, status=status, goals=goals))


def test_moves_are_reported_right_after_unplaced() -> None:
    before = example()
    after = plan_of(before.problem, {**before.workers, "rollout": workers("b:0-1 d:5-6")}, previous=before)
    assert [goal.name for goal in after.goals][:2] == ["unplaced", "moves"]
    assert after.goal("moves").value == 1
    verify(before.problem, after, before)
    assert violations(before.problem, replace(after, goals=before.goals), before)
    shifted = (after.goals[0], GoalValue("moves", 0, 0), *after.goals[2:])
    assert violations(before.problem, replace(after, goals=shifted), before) == ["goals: moves is 1 and the plan says 0"]


@pytest.mark.parametrize(
    "placed",
    [
        {},
        {"nobody": workers("a:0")},
        {"train": workers("zz:0-3 a:0-3")},
        {"train": (Worker("a", ((0, 10**12),)), Worker("a", ((5, 2),)))},
        {"train": (Worker("a", ((0, 1), (1, 2))),)},
        {"buffer": workers("zz zz"), "env": workers("head:7 gone:9")},
    ],
    ids=["empty", "stranger", "unknown node", "endless and backward", "overlapping", "odd"],
)
def test_malformed_plan_is_named_not_raised(placed: dict[str, tuple[Worker, ...]]) -> None:
    plan = example()
    found = violations(plan.problem, replace(plan, workers=placed, pools=(), idle=Idle()))
    assert found
    assert all(isinstance(text, str) for text in found)


def test_problem_without_components_or_nodes() -> None:
    asked = problem(racks("r0"), {})
    verify(asked, plan_of(asked, {}))
    empty = Problem(Cluster(()), (Component("train", 1, 1),), Rules(pools=(("global_pool", ("train",)),)))
    assert violations(empty, plan_of(empty, {"train": ()}))


def test_verify_imports_no_solver() -> None:
    code = (
        "import sys, placewright.verify; "
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'ortools', 'ray', 'networkx'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_large_plan_is_verified_quickly() -> None:
    nodes = tuple(Node(f"n{i}", gpus=8, cpus=Decimal(64), nvlink_domain=f"r{i // 16}") for i in range(12_512))
    counts = (("train", 4_378, 8, 2), ("rollout", 8_758, 4, None), ("reward", 4_003, 2, None), ("env", 10_009, 1, None))
    asked = Problem(
        Cluster(nodes),
        tuple(Component(name, count, count, gpus=Decimal(gpus), segment_size=s) for name, count, gpus, s in counts),
        Rules(pools=(("global_pool", tuple(entry[0] for entry in counts)),)),
        goals=("domain_span", "node_span"),
    )
    placed: dict[str, tuple[Worker, ...]] = {}
    node = 0
    for name, count, gpus, _ in counts:
        fit = 8 // gpus
        placed[name] = tuple(
            Worker(f"n{node + i // fit}", ((i % fit * gpus, i % fit * gpus + gpus - 1),)) for i in range(count)
        )
        node += -(-count // fit)
    plan = Plan("feasible", "cp-sat", (), (), placed, Idle(), (), asked)
    started = time.process_time()
    found = violations(asked, plan)
    spent = time.process_time() - started
    # The workers are right; the empty pools, idle and goals are not.
    assert {text.split(" ")[0].rstrip(":") for text in found} == {"pools", "idle", "goals"}
    assert spent < 3, f"{spent:.2f} s; about 0.3 s where nothing else runs"
