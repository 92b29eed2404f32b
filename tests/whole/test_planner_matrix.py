"""The matrix: every rule's two halves against each other on every tiny placement, every goal's two halves likewise.

For each instance all placements are enumerated (every multiset of GPU subsets of the right size, on available or unavailable
GPUs, on any node). For each count matrix the encoding, pinned to these counts, must be feasible exactly when some placement
with these counts passes every rule's check; and a rule's instance must hold count matrices that this rule alone refuses. For
each goal the expression, minimised under pinned counts, must be what the measure says. ``INSTANCES`` and ``GOAL_INSTANCES``
are looked up by the names in ``RULES`` and ``GOALS``: one without an instance fails.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, combinations_with_replacement, product
from random import Random
from typing import Any

import pytest
from oracle.handmade import problem
from oracle.tiny import random_problem
from ortools.sat.python import cp_model

from placewright.facts import Facts
from placewright.goals import GOALS
from placewright.model.cells import NodeCell, PatternCell
from placewright.model.encoding import Encoding
from placewright.model.instance import Prepared
from placewright.params import SolveParams
from placewright.pipeline import plan
from placewright.rules import RULES
from placewright_models.errors import InfeasibleProblem, InvalidProblem
from placewright_models.plan import Worker
from placewright_models.problem import Problem
from placewright_models.ranges import ranges_of

Counts = tuple[tuple[int, ...], ...]
"""Per node the number of workers of each component."""

PINNED = {
    "patterns": SolveParams(workers=1, break_symmetry=False, one_by_one_domains=10**6),
    "node by node": SolveParams(workers=1, break_symmetry=False, one_by_one_domains=10**6, pattern_limit=0),
}
"""Encodings in which every domain is told apart, so that counts can be given node by node."""
TOGETHER = SolveParams(workers=1, one_by_one_domains=0)


def two(*racks: str | None, gpus: int = 2, **fields: Any) -> dict[str, dict[str, Any]]:
    """Nodes a, b, c in these domains."""
    return {
        name: {"gpus": gpus, **fields, **({} if rack is None else {"nvlink_domain": rack})}
        for name, rack in zip("abcd", racks, strict=False)
    }


SOME = {"workers": {"min": 0, "max": 2}, "gpus": 1}
MORE = {"workers": {"min": 0, "max": 4}, "gpus": 1}

INSTANCES: dict[str, list[Problem]] = {
    "all_placed": [
        problem(two("r", "s"), {"train": {"workers": 2, "gpus": 1}}),
        problem(two("r", "s"), {"train": {"workers": {"min": 1, "max": 3}, "gpus": 1}}),
        problem(two("r", None), {"env": {"workers": 2}}),
    ],
    "whole_workers": [
        problem({"a": {"gpus": 3, "unavailable_gpus": [1]}}, {"train": {"workers": {"min": 0, "max": 1}, "gpus": 2}}),
        problem(
            {"a": {"gpus": 5, "unavailable_gpus": [2]}},
            {"train": {"workers": {"min": 0, "max": 2}, "gpus": 2}, "ref": {"workers": {"min": 0, "max": 1}, "gpus": 1}},
        ),
    ],
    "capacity": [
        problem(
            {"a": {"gpus": 3, "unavailable_gpus": [2]}, "b": {"gpus": 1, "occupied": [{"plan": "p", "gpus": [0]}]}},
            {"train": MORE},
        ),
        problem({"a": {"gpus": 3, "unavailable_gpus": [0]}}, {"env": {"workers": {"min": 0, "max": 5}, "gpus": 0.5}}),
    ],
    "sharing": [
        problem(two("r"), {"train": SOME, "ref": SOME}),
        problem(
            {"a": {"gpus": 2}}, {"actor": SOME, "rollout": SOME, "env": SOME}, share_gpus=[["env", "actor"], ["env", "rollout"]]
        ),
        problem(two("r", gpus=3), {"train": SOME, "eval": SOME, "env": SOME}, strategy="colocate"),
        problem(
            two("r", gpus=2),
            {"train": SOME, "eval": SOME, "env": SOME},
            strategy="disaggregate",
            env_strategy="device-colocate",
        ),
    ],
    "shares": [
        problem(two("r"), {"env": {"workers": {"min": 0, "max": 5}, "gpus": 0.34}}),
        problem(
            two("r"),
            {"actor": {**SOME, "gpu_share": 0.7}, "reward": {**SOME, "gpu_share": 0.5}},
            share_gpus=[["actor", "reward"]],
        ),
        problem(
            two("r"),
            {"actor": {**SOME, "gpu_share": 0.5}, "env": {"workers": {"min": 0, "max": 4}, "gpus": 0.18}},
            share_gpus=[["actor", "env"]],
        ),
    ],
    "host_resources": [
        problem(two("r", "s", cpus=2), {"train": {**SOME, "cpus": 1}, "env": {"workers": {"min": 0, "max": 3}, "cpus": 0.5}}),
        problem(two("r", memory=3), {"train": {**SOME, "memory": 2}, "env": {"workers": {"min": 0, "max": 2}, "memory": 1}}),
        problem({"a": {"gpus": 2, "cpus": 3, "reserved_cpus": 0.5, "cpus_in_use": 1}}, {"train": SOME}),
    ],
    "contiguous": [
        # GPUs 1 to 4 are free: the aligned pair can only lie on 2-3, which leaves 1 and 4 for the others.
        problem(
            {"a": {"gpus": 5, "unavailable_gpus": [0]}},
            {"train": SOME, "rollout": {"workers": {"min": 0, "max": 1}, "gpus": 2, "aligned": True}},
        ),
    ],
    "groups": [
        problem(two("r", "s"), {"rollout": {**MORE, "group": {"workers": 2, "within": "nvlink_domain"}}}),
        problem(two("r", "r", None), {"rollout": {**MORE, "group": {"workers": 2, "within": "nvlink_domain"}}}),
        problem(two("r", "s"), {"rollout": {**MORE, "group": {"workers": 2, "within": "node"}}}),
        problem(two("r", "r", "s"), {"rollout": {**MORE, "group": {"workers": 4, "within": "nvlink_domain"}}}),
        problem(
            two("r", "s", None), {"rollout": {**MORE, "group": {"workers": 4, "within": "nvlink_domain", "mode": "preferred"}}}
        ),
        problem(
            {
                "a": {"gpus": 2, "nvlink_domain": "r"},
                "b": {"gpus": 1, "nvlink_domain": "r"},
                "c": {"gpus": 1, "nvlink_domain": "s"},
            },
            {"rollout": {**MORE, "group": {"workers": 4, "within": "cluster"}}},
        ),
        problem(
            {name: {"gpus": 1, "nvlink_domain": name, "labels": {"block": name[0]}} for name in ("x1", "x2", "y1")},
            {"rollout": {**MORE, "group": {"workers": 2, "within": "block"}}},
            levels=["block"],
        ),
    ],
    "segments": [
        problem(two("r", "r", "s", gpus=1), {"train": {"workers": {"min": 0, "max": 4}, "gpus": 1, "segment_size": 2}}),
        problem(two("r", "r", None), {"train": {"workers": {"min": 0, "max": 4}, "gpus": 1, "segment_size": 2}}),
        problem(two("r", None, gpus=1), {"train": {"workers": {"min": 0, "max": 2}, "gpus": 1, "segment_size": 1}}),
        problem(
            two("r", None, gpus=1),
            {"train": {"workers": {"min": 0, "max": 2}, "gpus": 1, "segment_size": 1, "segment_mode": "preferred"}},
        ),
        problem(
            {
                "a": {"gpus": 2, "nvlink_domain": "r"},
                "b": {"gpus": 1, "nvlink_domain": "r"},
                "c": {"gpus": 1, "nvlink_domain": "r"},
            },
            {"train": {"workers": {"min": 0, "max": 4}, "gpus": 1, "segment_size": 2}},
        ),
        problem(
            {"a": {"gpus": 2, "nvlink_domain": "r", "unavailable_gpus": [1]}, "b": {"gpus": 2, "nvlink_domain": "r"}},
            {"train": {"workers": {"min": 0, "max": 4}, "gpus": 1, "segment_size": 1}},
        ),
        problem(
            two("r", "s", gpus=2),
            {
                "train": {"workers": {"min": 0, "max": 4}, "gpus": 1, "segment_size": 1},
                "ref": {"workers": {"min": 0, "max": 1}, "gpus": 2, "segment_size": 1},
            },
        ),
    ],
    "per_node_of": [
        problem(two("r", "s"), {"train": SOME, "buffer": {"workers": "auto", "per_node_of": "train"}}),
        problem(two("r", "s"), {"train": SOME, "buffer": {"workers": 1, "per_node_of": "train"}}),
        problem(
            two("r", "s", cpus=1),
            {"train": {**SOME, "cpus": 0}, "buffer": {"workers": "auto", "per_node_of": "train", "gpus": 1}},
        ),
    ],
    "node_filters": [
        problem({"a": {"gpus": 2, "accelerator": "H100"}, "b": {"gpus": 2}}, {"train": {**SOME, "accelerator": "H100"}}),
        problem(
            {"a": {"gpus": 2, "labels": {"disk": "nvme"}}, "b": {"gpus": 2}}, {"train": {**SOME, "labels": {"disk": "nvme"}}}
        ),
        problem(
            two("r", "s"),
            {"train": {**SOME, "node_ids": ["b"]}, "env": {"workers": {"min": 0, "max": 2}, "exclude_node_ids": ["b"]}},
        ),
        problem({"a": {"gpus": 2, "head": True}, "b": {"gpus": 2, "excluded": "drained"}, "c": {"gpus": 1}}, {"train": SOME}),
    ],
    "colocate": [
        problem(two("r", "s"), {"actor": SOME, "ref": SOME}, colocate=[["actor", "ref"]]),
        problem(
            {"a": {"gpus": 4}},
            {"actor": MORE, "rollout": {"workers": {"min": 0, "max": 2}, "gpus": 2}},
            colocate=[["actor", "rollout"]],
        ),
        problem(two("r"), {"actor": SOME, "env": {"workers": {"min": 0, "max": 4}, "gpus": 0.5}}, colocate=[["actor", "env"]]),
    ],
    "same_node": [
        problem(
            two("r", "r"),
            {"driver": {"workers": {"min": 0, "max": 1}}, "env": {"workers": {"min": 0, "max": 2}}},
            same_node=[["driver", "env"]],
        ),
        problem(two("r", "s", None, gpus=1), {"train": SOME}, same_node=[["train"]]),
    ],
    "same_domain": [
        problem(
            two("r", "r", "s", gpus=1),
            {"train": SOME, "env": {"workers": {"min": 0, "max": 1}}},
            same_domain=[["train", "env"]],
        ),
        problem(two("r", None, None, gpus=1), {"train": SOME}, same_domain=[["train"]]),
    ],
    "separate_nodes": [
        problem(two("r", "r"), {"train": SOME, "rollout": SOME}, separate_nodes=[["train", "rollout"]]),
        problem(two("r", None), {"train": SOME, "env": {"workers": {"min": 0, "max": 2}}}, separate_nodes=[["train", "env"]]),
    ],
    "separate_domains": [
        problem(two("r", "r", "s", gpus=1), {"train": SOME, "rollout": SOME}, separate_domains=[["train", "rollout"]]),
        problem(
            two("r", None, None),
            {"train": {"workers": {"min": 0, "max": 2}}, "env": {"workers": {"min": 0, "max": 2}}},
            separate_domains=[["train", "env"]],
        ),
    ],
    "node_count": [
        problem(two("r", "s", gpus=1), {"train": {**SOME, "nodes": 2}}),
        problem(two("r", None), {"env": {"workers": {"min": 0, "max": 3}, "nodes": 1}}),
    ],
    "per_node": [
        problem(two("r", "s"), {"train": {**MORE, "per_node": 2}}),
        problem(two("r", "s", None), {"train": {"per_node": [2, 1], "gpus": 1}}),
    ],
    "aligned": [
        problem(
            {"a": {"gpus": 5, "unavailable_gpus": [0]}},
            {"train": {"workers": {"min": 0, "max": 2}, "gpus": 2, "aligned": True}},
        ),
        problem(
            {"a": {"gpus": 4, "unavailable_gpus": [0]}},
            {
                "train": {"workers": {"min": 0, "max": 1}, "gpus": 2, "aligned": True},
                "ref": {"workers": {"min": 0, "max": 1}, "gpus": 1, "aligned": True},
            },
        ),
    ],
}
"""Rule -> instances in which it has something to say."""

SILENT = {"pools": "it is about the pools section of a finished plan (see decode/test_decode.py); nothing that counts decide"}
"""Rules that refuse no counts, and why."""

GOAL_INSTANCES: dict[str, list[Problem]] = {
    "unplaced": [
        problem(
            two("r", "s"),
            {"train": {**SOME, "priority": 3}, "ref": {**SOME, "priority": 0}, "env": {"workers": 1}},
            goals=["unplaced"],
        ),
    ],
    "groups_split": [
        problem(
            two("r", "s", None),
            {"rollout": {**MORE, "group": {"workers": 2, "within": "nvlink_domain", "mode": "preferred"}}},
            goals=["groups_split"],
        ),
        problem(
            two("r", "r", "s", gpus=1),
            {
                "rollout": {**MORE, "group": {"workers": 2, "within": "cluster", "mode": "preferred"}},
                "ref": {**SOME, "group": {"workers": 2, "within": "node", "mode": "preferred"}},
            },
            goals=["groups_split"],
        ),
        problem(
            two("r", "s", None, gpus=1),
            {"train": {**SOME, "segment_size": 2, "segment_mode": "preferred"}},
            goals=["groups_split"],
        ),
        problem(
            two("r", "s", None, gpus=1),
            {"train": {**SOME, "segment_size": 1, "segment_mode": "preferred"}},
            goals=["groups_split"],
        ),
        problem(
            two("r", "r", "s", "s", gpus=1),
            {"rollout": {**MORE, "group": {"workers": 2, "within": "nvlink_domain", "mode": "preferred"}}},
            goals=["groups_split"],
        ),
        problem(
            {name: {"gpus": 1, "nvlink_domain": name, "labels": {"block": name[0]}} for name in ("x1", "x2", "y1")},
            {"rollout": {**MORE, "group": {"workers": 2, "within": "block", "mode": "preferred"}}},
            levels=["block"],
            goals=["groups_split"],
        ),
    ],
    "domain_span": [
        problem(
            two("r", "r", "s", None, gpus=1),
            {"train": {**SOME, "span_weight": 3}, "env": {"workers": {"min": 0, "max": 2}, "span_weight": 1}},
            goals=["domain_span"],
        ),
        problem(
            two("r", "s", gpus=1),
            {"train": SOME, "ref": {"workers": {"min": 0, "max": 1}, "gpus": 1, "span_weight": 0}},
            goals=["domain_span"],
        ),
    ],
    "traffic": [
        problem(
            two("r", "r", "s"),
            {"eval": SOME, "env": SOME},
            traffic=[{"between": ["eval", "env"], "weight": 2}],
            goals=["traffic"],
        ),
        problem(
            two("r", None),
            {"eval": {"workers": 1, "gpus": 1}, "env": {"workers": 2}},
            traffic=[{"between": ["env", "eval"]}],
            goals=["traffic"],
        ),
    ],
    "node_span": [
        problem(
            two("r", "s", None),
            {"train": {**SOME, "span_weight": 2}, "env": {"workers": {"min": 0, "max": 2}, "span_weight": 1}},
            goals=["node_span"],
        ),
    ],
    "gpu_nodes_used": [
        problem(
            {"a": {"gpus": 2}, "b": {"gpus": 0}, "c": {"gpus": 1, "unavailable_gpus": [0]}},
            {"env": {"workers": {"min": 0, "max": 2}}, "driver": {"workers": {"min": 0, "max": 1}}},
            goals=["gpu_nodes_used"],
        ),
    ],
    "nodes_used": [
        problem(two("r", "s", None), {"train": SOME, "env": {"workers": {"min": 0, "max": 2}}}, goals=["nodes_used"]),
    ],
    "evenness": [
        problem(two("r", "s", None), {"env": {"workers": {"min": 0, "max": 4}, "spread": "even"}}, goals=["evenness"]),
        problem(
            two("r", "s"),
            {"env": {"workers": {"min": 0, "max": 4}}, "eval": SOME},
            traffic=[{"between": ["env", "eval"]}],
            goals=["evenness"],
        ),
    ],
    "domain_capacity": [
        problem(
            {
                "a": {"gpus": 2, "nvlink_domain": "r"},
                "b": {"gpus": 2, "nvlink_domain": "r", "unavailable_gpus": [0]},
                "c": {"gpus": 1},
                "d": {"gpus": 4, "nvlink_domain": "r", "excluded": "drained"},
            },
            {"train": SOME, "env": {"workers": {"min": 0, "max": 1}, "spread": "pack"}},
            goals=["domain_capacity"],
        ),
    ],
}

WITHOUT_EXPRESSION = {"moves": "planning against a previous plan is refused; the measure alone is tested in test_verify.py"}
LOOSE = {"evenness"}
"""Goals that the pattern encoding states for the best distribution within the patterns, not for given counts."""


# Every placement of an instance

MOST_PLACEMENTS = 12_000


class TooManyPlacements(Exception):
    """The instance is not tiny."""


def spots(asked: Problem, name: str) -> list[Worker]:
    """Every place a worker could be written down for: any GPUs of the right number, available or not, on any node."""
    component = asked.by_name[name]
    width = 0 if not component.gpus else max(1, int(component.gpus))
    return [
        Worker(node.id, ranges_of(chosen)) for node in asked.cluster.nodes for chosen in combinations(range(node.gpus), width)
    ]


def placements(asked: Problem) -> Iterator[dict[str, tuple[Worker, ...]]]:
    """Every placement with at most one worker more than asked, workers of one component in topological order of units."""
    names = [component.name for component in asked.components]
    choices = []
    for component in asked.components:
        most = len(asked.cluster.nodes) if component.max_workers is None else component.max_workers + 1
        listed = [ws for k in range(most + 1) for ws in combinations_with_replacement(spots(asked, component.name), k)]
        choices.append([in_order(asked, component.name, workers) for workers in listed])
    total = 1
    for listed in choices:
        total *= len(listed)
    if total > MOST_PLACEMENTS:
        raise TooManyPlacements(total)
    for picked in product(*choices):
        yield dict(zip(names, picked, strict=True))


def in_order(asked: Problem, name: str, workers: Sequence[Worker]) -> tuple[Worker, ...]:
    """Workers of one unit together, whole units' worth first: the order in which groups are whole where they can be."""
    group = asked.by_name[name].group
    level = "cluster" if group is None else group.within
    nodes = asked.node_by_id
    return tuple(sorted(workers, key=lambda w: (asked.cluster.unit_or_node(nodes[w.node_id], level), nodes[w.node_id].gpus, w)))


def counts_of(asked: Problem, placed: Mapping[str, Sequence[Worker]]) -> Counts:
    found = {name: Counter(worker.node_id for worker in workers) for name, workers in placed.items()}
    return tuple(tuple(found[c.name][node.id] for c in asked.components) for node in asked.cluster.nodes)


def by_checks(asked: Problem) -> tuple[dict[Counts, dict[str, tuple[Worker, ...]]], set[Counts], dict[str, set[Counts]]]:
    """Counts with a placement that passes every check (and that placement); all counts; rule -> counts it alone refuses."""
    passed: dict[Counts, dict[str, tuple[Worker, ...]]] = {}
    every: set[Counts] = set()
    refused: dict[str, set[Counts]] = {}
    for placed in placements(asked):
        counts = counts_of(asked, placed)
        every.add(counts)
        if counts in passed:
            continue
        facts = Facts(asked, placed)
        broken = []
        for rule in RULES:
            if next(iter(rule.check(facts)), None) is not None:
                broken.append(rule.name)
                if len(broken) > 1:
                    break
        if not broken:
            passed[counts] = placed
        elif len(broken) == 1:
            refused.setdefault(broken[0], set()).add(counts)
    return passed, every, {rule: found - set(passed) for rule, found in refused.items()}


# The encoding, pinned to counts


def pinned(encoding: Encoding, counts: Counts) -> Any:
    """A copy of the encoding's model in which every node holds these counts; None where it has no place for them.

    Transport between the nodes' counts and the patterns: a pattern stands for its exact counts, and for anything from one
    up to its number in loose components.
    """
    job = encoding.job
    model = encoding.model.clone()
    given = dict(zip((node.id for node in encoding.problem.cluster.nodes), counts, strict=True))
    for c, placed in enumerate(encoding.placed):
        total = sum(vector[c] for vector in counts)
        if isinstance(placed, int):
            if placed != total:
                return None
        else:
            model.add(placed == total)
    seen: set[str] = set()
    for area in encoding.areas:
        for cell, domains in zip(area.cells, area.nodes, strict=True):
            nodes = [node.id for domain in domains for node in domain]
            seen.update(nodes)
            vectors = [given[node] for node in nodes]
            if isinstance(cell, NodeCell):
                if not _pin_node(model, cell, vectors[0]):
                    return None
                continue
            assert isinstance(cell, PatternCell)
            if not _pin_patterns(model, encoding, cell, vectors):
                return None
    if any(any(vector) for node, vector in given.items() if node not in seen):
        return None
    assert job.count == len(counts[0])
    return model


def _pin_node(model: Any, cell: NodeCell, vector: Sequence[int]) -> bool:
    for x, number in zip(cell.variables.x, vector, strict=True):
        if isinstance(x, int):
            if x != number:
                return False
        else:
            model.add(x == number)
    return True


def _pin_patterns(model: Any, encoding: Encoding, cell: PatternCell, vectors: Sequence[Sequence[int]]) -> bool:
    asked = Counter(tuple(vector) for vector in vectors if any(vector))
    inflow: dict[int, list[Any]] = {p: [] for p in range(len(cell.patterns))}
    for vector, number in asked.items():
        flows = []
        for p, pattern in enumerate(cell.patterns):
            if all(
                n == most if c in cell.exact else (n > 0) == (most > 0) and n <= most
                for c, (n, most) in enumerate(zip(vector, pattern, strict=True))
            ):
                flows.append(model.new_int_var(0, number, f"flow{len(model.proto.variables)}"))
                inflow[p].append(flows[-1])
        if not flows:
            return False
        model.add(sum(flows) == number)
    for p, flows in inflow.items():
        model.add(cell.count[p] == sum(flows))
    for c, workers in cell.numbers.items():
        model.add(workers == sum(vector[c] for vector in vectors))
    return True


def solve(model: Any, objective: Any = None) -> int | None:
    """The least value of the objective (0 without one); None where the model is infeasible."""
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.cp_model_presolve = objective is not None and not isinstance(objective, int)
    if objective is not None:
        model.minimize(objective)
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return None
    assert status == cp_model.OPTIMAL, (solver.status_name(status), model.validate())
    return 0 if objective is None else int(solver.value(objective))


def compare(asked: Problem, passed: set[Counts], every: set[Counts]) -> None:
    """Both halves on all counts, in every pinned encoding; and on the whole instance where equal domains go together."""
    for name, params in PINNED.items():
        encoding = Encoding(Prepared(asked, params))
        for counts in sorted(every):
            model = pinned(encoding, counts)
            feasible = model is not None and solve(model) is not None
            assert feasible == (counts in passed), f"{name}: {counts} {'feasible' if feasible else 'infeasible'} in the model"
    assert (solve(Encoding(Prepared(asked, TOGETHER)).model) is not None) == bool(passed)


def rule_instances() -> Iterator[Any]:
    for rule in RULES:
        for index in range(len(INSTANCES.get(rule.name, ()))):
            yield pytest.param(rule.name, index, id=f"{rule.name}-{index}")


@pytest.mark.parametrize(("rule", "index"), list(rule_instances()))
def test_rule_says_the_same_twice(rule: str, index: int) -> None:
    asked = INSTANCES[rule][index]
    passed, every, refused = by_checks(asked)
    assert passed and set(passed) < every
    compare(asked, set(passed), every)
    if index == 0:
        assert refused.get(rule), f"{rule} alone refuses nothing in its first instance"


@pytest.mark.parametrize("rule", [rule.name for rule in RULES])
def test_every_rule_is_covered(rule: str) -> None:
    assert (rule in INSTANCES) != (rule in SILENT), f"add an instance for {rule} to INSTANCES"


def test_nothing_is_listed_that_is_no_rule_or_goal() -> None:
    assert {*INSTANCES, *SILENT} == {rule.name for rule in RULES}
    assert {*GOAL_INSTANCES, *WITHOUT_EXPRESSION} == {goal.name for goal in GOALS}


def test_silent_rules_refuse_no_counts() -> None:
    for instances in INSTANCES.values():
        _, _, refused = by_checks(instances[0])
        assert not set(SILENT) & set(refused)


@pytest.mark.parametrize("block", range(4))
def test_all_rules_together_on_random_instances(block: int) -> None:
    """Rules meet: random problems of two nodes and two components, small enough for every placement."""
    done = 0
    for seed in range(block * 1000, block * 1000 + 1000):
        asked = random_problem(Random(seed), most_nodes=2, most_components=2)
        if sum(node.gpus for node in asked.cluster.nodes) > 6 or any((c.max_workers or 0) > 3 for c in asked.components):
            continue
        try:
            passed, every, _ = by_checks(asked)
        except TooManyPlacements:
            continue
        if not passed:
            continue
        try:
            Encoding(Prepared(asked, PINNED["patterns"]))
        except InvalidProblem:
            continue  # traffic of `workers: auto`
        compare(asked, set(passed), every)
        done += 1
        if done == 12:
            break
    assert done == 12


# Goals


def goal_instances() -> Iterator[Any]:
    for goal in GOALS:
        for index in range(len(GOAL_INSTANCES.get(goal.name, ()))):
            yield pytest.param(goal.name, index, id=f"{goal.name}-{index}")


@pytest.mark.parametrize(("name", "index"), list(goal_instances()))
def test_goal_says_the_same_twice(name: str, index: int) -> None:
    asked = GOAL_INSTANCES[name][index]
    goal = next(goal for goal in GOALS if goal.name == name)
    passed, _, _ = by_checks(asked)
    measured = {counts: goal.measure(Facts(asked, placed)) for counts, placed in passed.items()}
    assert len(set(measured.values())) > 1, "the instance says nothing about the goal"
    for encoding_name, params in PINNED.items():
        encoding = Encoding(Prepared(asked, params))
        for counts, value in sorted(measured.items()):
            found = solve(pinned(encoding, counts), encoding.objectives[name])
            assert found is not None
            if encoding_name == "patterns" and name in LOOSE and not encoding.needs.exact:
                assert found <= value, counts
            else:
                assert found == value, (encoding_name, counts)
        assert solve(encoding.model.clone(), encoding.objectives[name]) == min(measured.values())
    together = Encoding(Prepared(asked, TOGETHER))
    assert solve(together.model.clone(), together.objectives[name]) == min(measured.values())


@pytest.mark.parametrize("goal", [goal.name for goal in GOALS])
def test_every_goal_is_covered(goal: str) -> None:
    assert (goal in GOAL_INSTANCES) != (goal in WITHOUT_EXPRESSION), f"add an instance for {goal} to GOAL_INSTANCES"


def test_moves_is_refused_as_long_as_it_has_no_expression() -> None:
    asked = problem(two("r"), {"train": {"workers": 1, "gpus": 1}}, goals=["nodes_used"])
    with pytest.raises(InvalidProblem, match="previous plan"):
        plan(asked, previous=plan(asked))


def test_the_matrix_can_fail() -> None:
    """Wrong counts on either side are noticed."""
    asked = INSTANCES["sharing"][0]
    passed, every, _ = by_checks(asked)
    with pytest.raises(AssertionError, match="in the model"):
        compare(asked, set(list(passed)[1:]), every)
    refused = next(counts for counts in sorted(every) if counts not in passed)
    with pytest.raises(AssertionError, match="in the model"):
        compare(asked, {*passed, refused}, every)


def test_an_instance_without_any_placement_is_infeasible() -> None:
    asked = problem(two("r"), {"train": {"workers": 3, "gpus": 1}})
    assert not by_checks(asked)[0]
    with pytest.raises(InfeasibleProblem):
        plan(asked)
