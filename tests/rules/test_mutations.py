"""Planted errors, each caught by a compact suite: planner against known optima, hand-written placements against the verifier.

``PROBLEMS`` are small problems whose answers the brute force gave before anything was changed; ``planner_suite`` plans them in
two encodings, ``verifier_suite`` reads the accepted and refused placements of ``test_verify``. Every mutation is patched in,
and one of the suites must fail; without a mutation both pass. Every rule of ``RULES`` is switched off in both its halves, every
goal of ``GOALS`` is put off by one in both its halves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import pytest
import test_verify
from differential import Answer, planned
from oracle import brute_force
from oracle.handmade import plan_of, problem

from placewright.decode import workers as decode
from placewright.facts import Facts
from placewright.goals import GOAL_BY_NAME, GOALS
from placewright.index import topology
from placewright.index.job import Job
from placewright.model import blocks, cells, encoding, local, patterns
from placewright.node import arrange, fits, gpu_model, intervals, shape
from placewright.params import SolveParams
from placewright.rules import RULES
from placewright.rules import groups as groups_rule
from placewright.rules import segments as segments_rule
from placewright.rules.rule import Rule
from placewright.verify import violations
from placewright_models.plan import Worker
from placewright_models.problem import Problem

ENCODINGS = (SolveParams(workers=1, one_by_one_domains=0), SolveParams(workers=1, pattern_limit=0))
FOUR: dict[str, Any] = {"gpus": 4}


def racks(*names: str | None, gpus: int = 4, **fields: Any) -> dict[str, dict[str, Any]]:
    return test_verify.racks(*names, gpus=gpus, **fields)


def one(workers: int, gpus: float = 1, **fields: Any) -> dict[str, Any]:
    return {"workers": workers, "gpus": gpus, **fields}


PROBLEMS: dict[str, Problem] = {
    "whole workers on holes": problem(
        {"a": {"gpus": 5, "unavailable_gpus": [2]}, "b": {"gpus": 3}}, {"train": one(1, 3)}, goals=["domain_capacity"]
    ),
    "wide and narrow workers on holes": problem(
        {"a": {"gpus": 7, "unavailable_gpus": [3]}, "b": FOUR}, {"rollout": one(2, 2), "env": one(2)}, goals=["nodes_used"]
    ),
    "capacity": problem(
        {"a": {"gpus": 4, "unavailable_gpus": [0, 3]}, "b": FOUR}, {"train": one(4)}, goals=["domain_capacity"]
    ),
    "too many": problem({"a": FOUR}, {"train": one(5)}),
    "sharing": problem(
        racks("r", "r"), {"train": one(3), "ref": one(3), "eval": one(1)}, strategy="colocate", goals=["nodes_used"]
    ),
    "not sharing": problem(racks("r", "r"), {"train": one(3), "ref": one(3)}, goals=["nodes_used"]),
    "shares": problem(
        racks("r", "r", gpus=1),
        {"actor": one(1, 1, gpu_share=0.7), "env": one(2, 0.2)},
        share_gpus=[["actor", "env"]],
        goals=["nodes_used"],
    ),
    "own shares": problem(racks("r", "r", gpus=2), {"env": one(5, 0.4, spread="pack")}, goals=["nodes_used"]),
    "shares over one": problem(
        racks("r", "r", gpus=1),
        {"actor": one(1, 1, gpu_share=1), "env": one(1, 0.01)},
        share_gpus=[["actor", "env"]],
        goals=["nodes_used"],
    ),
    "shares that do not pack": problem(
        {"a": {"gpus": 2}, "b": {"gpus": 1}},
        {name: one(1, 0.6, spread="pack") for name in "xyz"},
        share_gpus=[["x", "y", "z"]],
        goals=["nodes_used"],
    ),
    "cpus": problem(racks("r", "r", cpus=3), {"train": one(4, 1, cpus=1)}, goals=["nodes_used"]),
    "memory": problem(racks("r", "r", memory=2), {"train": one(3, 1, memory=1)}, goals=["nodes_used"]),
    "contiguous": problem(
        {"a": {"gpus": 5, "unavailable_gpus": [0]}, "b": {"gpus": 2}},
        {"train": one(2), "rollout": one(1, 2, aligned=True)},
        goals=["nodes_used"],
    ),
    "five in a circle": problem(
        {"a": {"gpus": 5}, "b": {"gpus": 2}},
        {name: one(1, 2) for name in "pqrst"},
        share_gpus=[["p", "r"], ["q", "s"], ["r", "t"], ["s", "p"], ["t", "q"]],
        goals=["nodes_used"],
    ),
    "aligned": problem(
        {"a": {"gpus": 4, "unavailable_gpus": [0]}, "b": {"gpus": 2}},
        {"train": one(2, 2, aligned=True)},
        goals=["domain_capacity"],
    ),
    "aligned alone": problem({"a": {"gpus": 3, "unavailable_gpus": [0]}}, {"train": one(1, 2, aligned=True)}),
    "groups": problem(
        racks("r", "r", "s", gpus=2),
        {"train": one(4, 1, group={"workers": 4, "within": "nvlink_domain"}), "ref": one(2)},
        goals=["domain_capacity", "node_span"],
    ),
    "groups per domain": problem(
        racks("r", "r", "s", "s", gpus=5),
        {"train": one(15, 1, group={"workers": 3, "within": "nvlink_domain"})},
        goals=["node_span"],
    ),
    "groups in a node": problem(
        racks("r", "r", "r", gpus=3), {"train": one(4, 1, group={"workers": 2, "within": "node"})}, goals=["node_span"]
    ),
    "groups of whole nodes": problem(
        {
            "a": {"gpus": 2, "nvlink_domain": "r"},
            "b": {"gpus": 1, "nvlink_domain": "r"},
            "c": {"gpus": 2, "nvlink_domain": "s"},
            "d": {"gpus": 2, "nvlink_domain": "s"},
        },
        {"train": one(4, 1, group={"workers": 4, "within": "nvlink_domain"}), "ref": one(2)},
        goals=["domain_span"],
    ),
    "groups preferred": problem(
        racks("r", "s", "s", gpus=3),
        {"train": one(6, 1, group={"workers": 2, "within": "node", "mode": "preferred"})},
        goals=["node_span", "groups_split"],
    ),
    "wide groups preferred": problem(
        racks("r", "r", "s", gpus=2),
        {
            "train": one(4, 1, group={"workers": 4, "within": "nvlink_domain", "mode": "preferred"}),
            "ref": one(1, 1, node_ids=["a"]),
        },
        goals=["groups_split", "node_span"],
    ),
    "segments": problem(
        racks("r", "s", "s", gpus=2), {"train": one(2, 2, segment_size=2), "ref": one(1, 2)}, goals=["domain_span", "node_span"]
    ),
    "segments per domain": problem(racks("r", "r", "r", "s", "s", "s", gpus=1), {"train": one(6, 1, segment_size=2)}),
    "segments of mixed size": problem(
        {name: {"gpus": size, "nvlink_domain": "r"} for name, size in zip("abcd", (4, 2, 4, 2), strict=True)},
        {"train": one(6, 1, segment_size=2)},
    ),
    "segments on degraded nodes": problem(
        {name: {"gpus": 4, "nvlink_domain": "r", "unavailable_gpus": [3]} for name in "ab"},
        {"train": one(6, 1, segment_size=2)},
    ),
    "segments on unknown nodes": problem(racks(None, None, gpus=1), {"train": one(2, 1, segment_size=1)}),
    "segments preferred": problem(
        racks("r", "s", None, gpus=1), {"train": one(2, 1, segment_size=2, segment_mode="preferred")}, goals=["groups_split"]
    ),
    "per_node_of": problem(
        racks("r", "r", gpus=2), {"train": one(3), "buffer": {"workers": "auto", "per_node_of": "train"}}, goals=["node_span"]
    ),
    "per_node_of is tied": problem(
        racks("r", "r", gpus=2), {"train": one(4), "buffer": {"workers": 1, "per_node_of": "train"}}
    ),
    "filters": problem(
        {
            "a": {"gpus": 4, "accelerator": "H100"},
            "b": {"gpus": 4, "labels": {"disk": "nvme"}},
            "c": {"gpus": 4, "head": True},
            "d": {"gpus": 4, "excluded": "drained"},
        },
        {"train": one(2, 1, accelerator="H100"), "ref": one(2, 1, labels={"disk": "nvme"})},
        goals=["nodes_used"],
    ),
    "nowhere": problem({"a": {"gpus": 4, "head": True}}, {"train": one(1)}),
    "colocate": problem(
        racks("r", "r", gpus=4), {"actor": one(4), "rollout": one(2, 2)}, colocate=[["actor", "rollout"]], goals=["nodes_used"]
    ),
    "colocate is equal": problem({"a": FOUR}, {"actor": one(3), "rollout": one(2)}, colocate=[["actor", "rollout"]]),
    "same_node": problem(racks("r", "r", gpus=1), {"train": one(2)}, same_node=[["train"]]),
    "same_domain": problem(racks("r", "s", gpus=1), {"train": one(2)}, same_domain=[["train"]]),
    "separate_nodes": problem(
        racks("r", "r"), {"train": one(2), "ref": one(2)}, separate_nodes=[["train", "ref"]], goals=["nodes_used"]
    ),
    "separate_domains": problem(
        racks("r", "r", "s"), {"train": one(2), "ref": one(2)}, separate_domains=[["train", "ref"]], goals=["domain_capacity"]
    ),
    "nodes": problem(racks("r", "r"), {"train": one(2, 1, nodes=2)}, goals=["nodes_used"]),
    "per_node": problem(racks("r", "r"), {"train": one(4, 1, per_node=2)}, goals=["nodes_used"]),
    "per_node list": problem(racks("r", "r"), {"train": {"per_node": [3, 1], "gpus": 1}}, goals=["nodes_used"]),
    "goals": problem(
        {"a": {"gpus": 2, "nvlink_domain": "r"}, "b": {"gpus": 2, "nvlink_domain": "s"}, "c": {"gpus": 2}},
        {
            "train": {"workers": {"min": 3, "max": 9}, "gpus": 1, "priority": 2},
            "env": {"workers": 3},
            "ref": one(1, 1, span_weight=1, group={"workers": 1, "within": "nvlink_domain", "mode": "preferred"}),
        },
        traffic=[{"between": ["train", "env"]}],
    ),
    "elastic": problem({"a": FOUR}, {"train": {"workers": {"min": 1, "max": 6}, "gpus": 1, "priority": 3}}, goals=["unplaced"]),
    "nothing": problem({"a": FOUR}, {}),
    "traffic": problem(
        racks("r", "r", gpus=3),
        {"eval": one(3), "env": one(3)},
        traffic=[{"between": ["eval", "env"]}],
        goals=["traffic", "nodes_used"],
    ),
    "traffic by domain": problem(
        racks("r", "s", gpus=2), {"eval": one(1), "env": one(1, 2)}, traffic=[{"between": ["env", "eval"]}], goals=["traffic"]
    ),
    "gpu nodes": problem(
        {"a": FOUR, "b": {"gpus": 0, "cpus": 1}}, {"env": {"workers": 2}, "driver": {"workers": 1}}, goals=["gpu_nodes_used"]
    ),
    "evenness": problem(racks("r", "s", None, gpus=3), {"env": one(7, 1, spread="even")}, goals=["evenness"]),
}


@cache
def wanted(name: str) -> Answer:
    found = brute_force.solve(PROBLEMS[name])
    return Answer(found.status, found.goals)


def planner_suite() -> None:
    """Every problem in every encoding: status and values as brute force says, every goal proved, the plan verified."""
    for name, asked in PROBLEMS.items():
        for params in ENCODINGS:
            assert planned(asked, params) == wanted(name), name


CASES = test_verify.cases()


def verifier_suite() -> None:
    """Every refused placement is refused by its own rule, every accepted one by none; a right plan has no violation."""
    for case in CASES:
        by = {rule.name for rule in RULES for _ in rule.check(Facts(case.problem, case.workers))}
        assert (case.rule not in by) if case.accepted else (case.rule in by), (case.rule, case.what)
    asked = problem({"a": FOUR, "b": FOUR}, {"train": one(3)}, goals=["nodes_used"])
    good = plan_of(asked, {"train": (Worker("a", ((0, 0),)), Worker("a", ((1, 1),)), Worker("a", ((2, 2),)))})
    assert violations(asked, good) == []
    pools = plan_of(asked, {"train": (Worker("a", ((0, 0),)), Worker("a", ((1, 1),)), Worker("b", ((2, 2),)))}).pools
    shifted = type(good)(**{**{f: getattr(good, f) for f in good.__dataclass_fields__}, "pools": pools})
    assert any("pools" in text for text in violations(asked, shifted))


def caught(monkeypatch: pytest.MonkeyPatch, suites: Sequence[Callable[[], None]]) -> bool:
    """Whether one of the suites fails. A mutation that does not fit the code any more is an error, not a catch."""
    for suite in suites:
        try:
            suite()
        except (TypeError, AttributeError, NameError):
            raise
        except Exception:  # every other way to fail is a catch
            return True
    return False


@pytest.fixture(autouse=True, scope="module")
def _answers_before_anything_is_patched() -> None:
    for name in PROBLEMS:
        wanted(name)


def test_without_an_error_the_suites_pass() -> None:
    planner_suite()
    verifier_suite()


def test_the_suites_see_every_rule_and_goal() -> None:
    assert {case.rule for case in CASES if not case.accepted} == {rule.name for rule in RULES} - {"pools"}
    chosen = {goal for asked in PROBLEMS.values() for goal in asked.goals}
    assert chosen == {goal.name for goal in GOALS} - {"moves"}
    assert {wanted(name).status for name in PROBLEMS} == {"optimal", "infeasible"}


# A verifier that skips a rule


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_verifier_skips_a_rule(rule: Rule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(rule), "check", lambda self, facts: iter(()))
    assert caught(monkeypatch, [verifier_suite])


# A rule switched off in the model. Rules without hooks are stated where layouts and counts are made.

NO_ITEMS: Callable[..., Iterator[Any]] = lambda *arguments: iter(())  # noqa: E731


def no_hooks(rule: Rule) -> Callable[[pytest.MonkeyPatch], None]:
    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        for hook in ("node_counts", "apart", "follows", "needs", "encode"):
            monkeypatch.setattr(type(rule), hook, getattr(Rule, hook))

    return patch


def set_(target: Any, name: str, value: Any) -> Callable[[pytest.MonkeyPatch], None]:
    return lambda monkeypatch: monkeypatch.setattr(target, name, value)


def _no_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    original = encoding.Encoding._placed

    def placed(self: Any, c: int) -> Any:
        original(self, c)
        return self.model.new_int_var(0, 1000, "")

    monkeypatch.setattr(encoding.Encoding, "_placed", placed)


def _holes_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    def joined(given: shape.Shape, keep_offsets: bool) -> shape.Shape:
        return shape.Shape(given.gpus, ((0, given.available - 1),) if given.available else ())

    monkeypatch.setattr(topology, "normal_shape", joined)


def _unavailable_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(given: shape.Shape, keep_offsets: bool) -> shape.Shape:
        return shape.Shape(given.gpus, ((0, given.gpus - 1),) if given.gpus else ())

    monkeypatch.setattr(topology, "normal_shape", full)


def _all_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Job, "conflicts", property(lambda self: (0,) * len(self.items)))


def _no_contiguity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_model.GpuModel, "limit_ranges", lambda self, i, most: None)
    monkeypatch.setattr(
        fits.Fits,
        "_by_intervals",
        lambda self, given, counts, pieces: fits.decide(self.job, given, counts, [piece.item for piece in pieces]),
    )


def _no_alignment(monkeypatch: pytest.MonkeyPatch) -> None:
    original = Job._item

    def item(self: Job, members: tuple[int, ...]) -> Any:
        made = original(self, members)
        return type(made)(**{**{name: getattr(made, name) for name in made.__slots__}, "aligned": 1})

    monkeypatch.setattr(Job, "_item", item)


def _nobody_colocated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Problem, "colocated_sets", property(lambda self: ()))
    pairs = Problem.__dict__["sharing_pairs"].func
    monkeypatch.setattr(
        Problem,
        "sharing_pairs",
        property(lambda self: pairs(self) | {frozenset(entry) for entry in self.rules.colocate}),
    )


def _limitless(monkeypatch: pytest.MonkeyPatch) -> None:
    """CPU and memory of nodes forgotten."""
    original = topology._Demand.__init__

    def without(self: Any, job: Job) -> None:
        original(self, job)
        self.cpu_matters = self.memory_matters = False

    monkeypatch.setattr(topology._Demand, "__init__", without)


SWITCHED_OFF: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "all_placed": _no_bounds,
    "whole_workers": _holes_ignored,
    "capacity": _unavailable_ignored,
    "sharing": _all_share,
    "shares": set_(Job, "share_coupled", property(lambda self: (0,) * len(self.items))),
    "host_resources": _limitless,
    "contiguous": _no_contiguity,
    "node_filters": set_(Problem, "admits", lambda self, component, node: True),
    "colocate": _nobody_colocated,
    "aligned": _no_alignment,
} | {
    rule.name: no_hooks(rule)
    for rule in RULES
    if rule.name
    in {
        "groups",
        "segments",
        "per_node_of",
        "same_node",
        "same_domain",
        "separate_nodes",
        "separate_domains",
        "node_count",
        "per_node",
    }
}


@pytest.mark.parametrize("name", [rule.name for rule in RULES if rule.name != "pools"])
def test_rule_switched_off_in_the_model(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    SWITCHED_OFF[name](monkeypatch)
    assert caught(monkeypatch, [planner_suite])


# A goal off by one


@pytest.mark.parametrize("name", [goal.name for goal in GOALS if goal.name != "moves"])
@pytest.mark.parametrize("half", ["measure", "expression"])
@pytest.mark.parametrize("by", [1, -1])
def test_goal_off_by_one(name: str, half: str, by: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type(GOAL_BY_NAME[name])
    original = getattr(kind, half)
    monkeypatch.setattr(kind, half, lambda self, *arguments: original(self, *arguments) + by)
    assert caught(monkeypatch, [planner_suite])


@pytest.mark.parametrize("name", [goal.name for goal in GOALS if goal.name != "moves"])
def test_goal_not_minimised(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(GOAL_BY_NAME[name]), "expression", lambda self, encoding: 0)
    assert caught(monkeypatch, [planner_suite])


# The decoder, the layout, the encoder


def _shifted(by: int, monkeypatch: pytest.MonkeyPatch) -> None:
    original = arrange.Arrange.__call__

    def shifted(self: Any, given: shape.Shape, counts: tuple[int, ...]) -> arrange.Layout:
        made = original(self, given, counts)
        moved = {c: tuple(tuple((a + by, b + by) for a, b in ranges) for ranges in ws) for c, ws in made.workers.items()}
        return arrange.Layout(moved, made.ranges)

    monkeypatch.setattr(arrange.Arrange, "__call__", shifted)


def _pools_shifted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decode, "ranges_of", lambda found: tuple((a + 1, b + 1) for a, b in _ranges_of(found)))


_ranges_of = decode.ranges_of


def _any_size(found: Any) -> dict[int, list[Any]]:
    listed = list(found)
    return {listed[0].node_class.gpus: listed} if listed else {}


def _unknown_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    def node_counts(self: Any, job: Job, c: int, node_class: Any, counts: Sequence[int]) -> Sequence[int]:
        if job.components[c].segment_size is None:
            return counts
        return segments_rule.whole_node_counts(job, c, node_class, counts)

    monkeypatch.setattr(segments_rule.Segments, "node_counts", node_counts)


def _degraded_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    """The available GPUs of a degraded node count as the whole of it."""

    def counts_of(job: Job, c: int, node_class: Any, counts: Sequence[int]) -> Sequence[int]:
        width, free = job.width[c], node_class.shape.available
        return (0, free // width) if width and free and free % width == 0 and free // width in counts else (0,)

    monkeypatch.setattr(segments_rule, "whole_node_counts", counts_of)


def _domains_dealt_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups per domain counted over all equal domains (design.md section 9 says that this is wrong)."""
    monkeypatch.setattr(groups_rule.Groups, "per_domain", Rule.per_domain)


PLANTED: dict[str, Callable[[pytest.MonkeyPatch], None]] = {
    "decoder shifts a range to the right": lambda m: _shifted(1, m),
    "decoder shifts a range to the left": lambda m: _shifted(-1, m),
    "decoder shifts the ranges of the pools": _pools_shifted,
    "holes ignored": _holes_ignored,
    "degraded nodes taken as whole": _degraded_serves,
    "mixed sizes in a segment": set_(segments_rule, "by_size", _any_size),
    "unknown nodes serving a segment": _unknown_serves,
    "groups counted over equal domains together": _domains_dealt_together,
    "shares of one component with itself not watched": set_(
        Job, "share_coupled", property(lambda self: (0,) * len(self.items))
    ),
    "a GPU holds one share more": set_(intervals, "UNITS", 20_000),
    "spans of conflicting items not added": set_(
        fits, "least_span", lambda tree, lengths, conflicts: (max(lengths.values(), default=0), True)
    ),
    "a pair of conflicts forgotten": set_(cells, "maximal_cliques", lambda members, conflicts: [(m,) for m in members]),
    "patterns dropped as dominated that are not": set_(
        patterns, "_could_hold_more", lambda taken, usage, left: taken < len(usage) - 1
    ),
    "searched patterns dropped as dominated that are not": set_(patterns, "_undominated", lambda group: sorted(group)[:1]),
    "no pattern with two components": set_(local.Local, "apart", lambda self, node_class: [(0, 1)]),
    "a domain hosts without being counted": set_(blocks.OneDomain, "link", lambda self, c: None),
    "followers lead a life of their own": set_(
        cells.NodeVariables, "hosts", lambda self, components: self.model.new_bool_var("")
    ),
    "the last worker forgotten": set_(decode, "pack", lambda room, total: [max(0, n - 1) for n in decode_pack(room, total)]),
    "spread unevenly": set_(decode, "spread_evenly", lambda room, total: decode_pack(room, total)),
}

decode_pack = decode.pack


@pytest.mark.parametrize("name", PLANTED)
def test_planted_error(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED[name](monkeypatch)
    assert caught(monkeypatch, [planner_suite, verifier_suite])


def test_suites_pass_again_afterwards() -> None:
    planner_suite()
    verifier_suite()
