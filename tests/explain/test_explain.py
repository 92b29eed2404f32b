"""Why not: every kind of explanation with its sentence, minimality, exact maxima, and counting before solving.

Minimality is asked of the brute force, which shares no code with the solver: the listed requirements together are infeasible,
and without any one of them the rest is satisfiable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracle import brute_force
from oracle.tiny import random_file
from ortools.sat.python import cp_model

from placewright.explain.core import Questions
from placewright.explain.quick import impossible
from placewright.explain.requirements import Requirement, all_requirements, alone, keep_only
from placewright.params import SolveParams
from placewright.pipeline import plan
from placewright_models.codec import load_problem
from placewright_models.errors import InfeasibleProblem, InvalidProblem, Reason
from placewright_models.problem import Problem

PARAMS = SolveParams(workers=1)


def node(name: str, gpus: int = 8, **fields: Any) -> dict[str, Any]:
    return {"id": name, "gpus": gpus, **fields}


def asked(nodes: Sequence[dict[str, Any]], components: dict[str, Any], **rules: Any) -> Problem:
    return load_problem({"cluster": {"nodes": list(nodes)}, "components": components, "rules": rules})


def refusal(problem: Problem) -> InfeasibleProblem:
    with pytest.raises(InfeasibleProblem) as caught:
        plan(problem, params=PARAMS)
    return caught.value


def requirements(problem: Problem, reasons: Sequence[Reason]) -> list[Requirement]:
    """The requirements that the reasons name; every reason names one."""
    by_place = {requirement.place: requirement for requirement in all_requirements(problem)}
    return [by_place[reason.requirement] for reason in reasons]


def by_brute_force(problem: Problem) -> bool:
    return brute_force.solve(replace(problem, goals=()), budget=400_000).status == "optimal"


def assert_minimal(problem: Problem, reasons: Sequence[Reason], feasible: Any = by_brute_force) -> None:
    core = requirements(problem, reasons)
    assert len(set(core)) == len(core) > 0
    assert not feasible(keep_only(problem, core)), "the listed requirements can hold together"
    for dropped in core:
        rest = [other for other in core if other != dropped]
        assert feasible(keep_only(problem, rest)), f"not minimal: without {dropped.place} the rest still clashes"


def by_questions(problem: Problem) -> bool | None:
    return Questions(problem, PARAMS).feasible(problem)


RACKS = [node(f"a{i}", 4, nvlink_domain="A") for i in range(5)] + [node(f"b{i}", 4, nvlink_domain="B") for i in range(3)]
HELD = {"occupied": [{"plan": "other-job", "gpus": [4, 5, 6, 7]}]}

KINDS: dict[str, tuple[Problem, dict[str, Any]]] = {
    "too few GPUs in all": (
        asked([node("n0"), node("n1")], {"train": {"workers": 10, "gpus": 1}, "rollout": {"workers": 5, "gpus": 2}}),
        {
            "has": ["need 20", "train 10", "rollout 10", "16 free", "whole job asks 20 GPUs"],
            "resource": "gpus",
            "needed": 20,
            "available": 16,
            "shortage": "too small",
            "places": {"components.train.workers", "components.rollout.workers"},
        },
    ),
    "one component's count": (
        asked([node("n0"), node("n1")], {"train": {"workers": 17, "gpus": 1}}),
        {
            "has": ["17 workers of 1 GPU need 17 GPUs", "16 free", "at most 16 of 17 workers fit"],
            "most": 16,
            "needed": 17,
            "available": 16,
        },
    ),
    "enough GPUs but no node large enough": (
        asked([node("n0"), node("n1", 4), node("n2", 4)], {"train": {"workers": 2, "gpus": 8}}),
        {
            "has": ["train needs 2 nodes with 8 free GPUs", "1 such node (n0)"],
            "needed": 2,
            "available": 1,
            "most": 1,
            "shortage": "too small",
            "places": {"components.train.workers"},
        },
    ),
    "worker wider than every node": (
        asked(
            [node(f"n{i}", 4) for i in range(3)], {"policy": {"workers": 8, "gpus": 1}, "teacher": {"workers": 1, "gpus": 8}}
        ),
        {
            "has": ["teacher", "8 per node", "largest node 4"],
            "not": ["policy"],
            "most": 0,
            "places": {"components.teacher.workers"},
        },
    ),
    "fragmented": (
        asked([node("n0", unavailable_gpus=[3, 7])], {"train": {"workers": 1, "gpus": 5}}),
        {"has": ["takes 5 GPUs of one node", "more than 3 free in a row", "fragmented"], "shortage": "fragmented", "most": 0},
    ),
    "occupied": (
        asked([node("n0", unavailable_gpus=[0])], {"train": {"workers": 8, "gpus": 1}}),
        {"has": ["n0: free 7 of 8", "would fit if the cluster were idle"], "shortage": "occupied", "most": 7},
    ),
    "occupied by another plan": (
        asked([node("n0", **HELD)], {"train": {"workers": 8, "gpus": 1}}),
        {"has": ["free 4 of 8", "4-7 held by other-job", "occupied by other-job"], "shortage": "occupied", "most": 4},
    ),
    "occupied CPUs": (
        asked([node("n0", cpus=32, cpus_in_use=12)], {"train": {"workers": 8, "gpus": 1, "cpus": 3}}),
        {
            "has": ["24 CPUs", "20 free", "12 held"],
            "not": ["not enough GPUs"],
            "resource": "cpus",
            "shortage": "occupied",
            "most": 6,
        },
    ),
    "CPU short on the GPU node while the cluster has plenty": (
        asked([node("A", 8, cpus=10), node("B", 0, cpus=200)], {"train": {"workers": 8, "gpus": 1, "cpus": 3}}),
        {
            "has": [
                "8 workers of 3 CPUs need 24 CPUs",
                "nodes with free GPUs have 10 free",
                "A: 10 free of 10",
                "at most 3 of 8",
            ],
            "not": ["GPUs need", "GPUs, there are"],
            "resource": "cpus",
            "needed": 24,
            "available": 10,
            "most": 3,
            "places": {"components.train.workers", "components.train.cpus"},
        },
    ),
    "CPUs in all": (
        asked([node("n0", cpus=12)], {"env": {"workers": 8, "cpus": 1}, "train": {"workers": 8, "gpus": 1, "cpus": 1}}),
        {
            "has": ["need 16 CPUs", "train 8", "env 8", "12 free", "whole job asks 16 CPUs"],
            "resource": "cpus",
            "needed": 16,
            "available": 12,
        },
    ),
    "memory": (
        asked([node("n0", memory="64GiB")], {"train": {"workers": 8, "gpus": 1, "memory": "16GiB"}}),
        {
            "has": ["128 GiB", "64 GiB free"],
            "resource": "memory",
            "most": 4,
            "places": {"components.train.workers", "components.train.memory"},
        },
    ),
    "segments": (
        asked(RACKS, {"train": {"workers": 32, "gpus": 1, "segment_size": 2}}),
        {
            "has": ["needs 4 segments of 2 whole nodes", "3 are possible", "A: 2", "B: 1"],
            "resource": "segments",
            "needed": 4,
            "available": 3,
            "per_unit": {"A": 2, "B": 1},
            "most": 24,
        },
    ),
    "segments without domain information": (
        asked([node(f"a{i}", 4) for i in range(4)], {"train": {"workers": 16, "gpus": 1, "segment_size": 2}}),
        {"has": ["no node has domain information"], "resource": "segments", "available": 0, "most": 0},
    ),
    "group over domain": (
        asked(
            [node(f"a{i}", 8, nvlink_domain=f"r{i}") for i in range(4)], {"rollout": {"replicas": 2, "gpus_per_replica": 16}}
        ),
        {
            "has": ["needs 2 groups of 16 workers", "inside one nvlink_domain", "0 are possible", "r0: 0"],
            "resource": "groups",
            "most": 0,
        },
    ),
    "group of narrow workers over domain": (
        asked(
            [node(f"a{i}", 4, nvlink_domain=f"r{i}") for i in range(3)],
            {
                "rollout": {"workers": 9, "gpus": 1, "group": {"workers": 3, "within": "nvlink_domain"}},
                "ref": {"workers": 3, "gpus": 1, "group": {"workers": 3, "within": "nvlink_domain"}},
            },
        ),
        {"has": ["group"], "places_include": {"components.rollout.group", "components.ref.group"}},
    ),
    "pinned to nodes that are too small": (
        asked([node("n0", 2), node("n1", 8)], {"train": {"workers": 1, "gpus": 4, "node_ids": ["n0"]}}),
        {
            "has": ["one worker takes 4 GPUs", "largest node 2", "node_ids", "may only use n0"],
            "resource": "node_ids",
            "most": 0,
            "places": {"components.train.workers", "components.train.node_ids"},
        },
    ),
    "accelerator that no node has": (
        asked([node("n0", accelerator="A100")], {"train": {"workers": 2, "gpus": 1, "accelerator": "H100"}}),
        {"has": ["accelerator H100"], "resource": "accelerator", "most": 0},
    ),
    "label that no node has": (
        asked([node("n0")], {"train": {"workers": 2, "gpus": 1, "labels": {"disk": "nvme"}}}),
        {"has": ["disk=nvme"], "resource": "labels", "most": 0},
    ),
    "sharing rules that force more GPUs than there are": (
        asked(
            [node("n0", 5)],
            {name: {"workers": 1, "gpus": 2} for name in "abcde"},
            share_gpus=[["a", "c"], ["a", "d"], ["b", "d"], ["b", "e"], ["c", "e"]],
        ),
        {
            "has": ["do not fit together on 5 free GPUs", "the way they may share"],
            "resource": "gpus",
            "places": {f"components.{name}.workers" for name in "abcde"},
        },
    ),
    "shares over one": (
        asked(
            [node("n0"), node("n1")],
            {"rollout": {"workers": 16, "gpus": 1, "gpu_share": 1.0}, "helper": {"workers": 16, "gpus": 0.01}},
            share_gpus=[["rollout", "helper"]],
        ),
        {
            "has": ["rollout", "helper", "1.01"],
            "places": {"components.rollout.workers", "components.rollout.gpu_share", "components.helper.workers"},
        },
    ),
    "a share cannot be split": (
        asked([node("n0", 2)], {"eval": {"workers": 5, "gpus": 0.4}}),
        {"has": ["a share cannot be split over two GPUs", "need 3 GPUs", "at most 4 of 5"], "most": 4},
    ),
    "same_domain with CPU short": (
        asked(
            [node("n0", 8, cpus=4, nvlink_domain="a"), node("n1", 8, cpus=64, nvlink_domain="b")],
            {"train": {"workers": 8, "gpus": 1, "cpus": 0, "node_ids": ["n0"]}, "env": {"workers": 8, "cpus": 1}},
            same_domain=[["train", "env"]],
        ),
        {
            "has": ["all workers of train and env must be in one NVLink domain", "env needs 1 CPUs per worker (8 CPUs in all)"],
            "resource": "domains",
            "places": {
                "rules.same_domain[0]",
                "components.env.workers",
                "components.env.cpus",
                "components.train.workers",
                "components.train.node_ids",
            },
        },
    ),
    "separate_nodes with too few nodes": (
        asked(
            [node("n0")],
            {"train": {"workers": 2, "gpus": 1}, "rollout": {"workers": 2, "gpus": 1}},
            separate_nodes=[["train", "rollout"]],
        ),
        {
            "has": ["no node may host two of train and rollout", "at least 2 nodes", "there are 1"],
            "resource": "nodes",
            "places": {"rules.separate_nodes[0]", "components.train.workers", "components.rollout.workers"},
        },
    ),
    "separate_domains with too few domains": (
        asked(
            [node("n0", nvlink_domain="r"), node("n1", nvlink_domain="r")],
            {"train": {"workers": 2, "gpus": 1}, "rollout": {"workers": 2, "gpus": 1}},
            separate_domains=[["train", "rollout"]],
        ),
        {"has": ["no NVLink domain may host two", "at least 2 domains", "there are 1"], "resource": "domains"},
    ),
    "same_node": (
        asked([node("n0", 2), node("n1", 2)], {"train": {"workers": 3, "gpus": 1}}, same_node=[["train"]]),
        {"has": ["all workers of train must be on one node"], "places": {"rules.same_node[0]", "components.train.workers"}},
    ),
    "colocate": (
        asked(
            [node("n0", 8)],
            {"actor": {"workers": 3, "gpus": 1}, "rollout": {"workers": 1, "gpus": 2}},
            colocate=[["actor", "rollout"]],
        ),
        {"has": ["actor and rollout must use exactly the same GPUs"], "resource": "sharing"},
    ),
    "per_node": (
        asked(
            [node("n0", 4, cpus=32), node("n1", 2, cpus=32)], {"train": {"workers": 6, "gpus": 1, "per_node": 3, "nodes": 2}}
        ),
        {
            "has": ["n1 has 2, needs 3", "2 nodes with 3 workers"],
            "not": ["6 GPUs"],
            "places_include": {"components.train.per_node"},
        },
    ),
    "several satisfiable requirements that clash together": (
        asked(
            [node("n0", 4, nvlink_domain="r"), node("n1", 4, nvlink_domain="s")],
            {
                "train": {"workers": 4, "gpus": 1},
                "ref": {"workers": 4, "gpus": 1},
                "env": {"workers": 1},
                "driver": {"workers": 1},
            },
            same_node=[["train", "driver"], ["ref", "env"]],
            separate_nodes=[["train", "ref"]],
            same_domain=[["driver", "env"]],
        ),
        {
            "has": ["cannot hold together"],
            "places_include": {"rules.same_domain[0]", "rules.same_node[0]", "rules.same_node[1]"},
        },
    ),
}
"""Kind of refusal -> a problem and what its answer must and must not say."""


@pytest.mark.parametrize("kind", KINDS)
def test_kind_of_refusal(kind: str) -> None:
    problem, said = KINDS[kind]
    error = refusal(problem)
    text, first = str(error), error.reasons[0]
    for words in said["has"]:
        assert words in text, (words, text)
    for words in said.get("not", ()):
        assert words not in text, (words, text)
    places = {reason.requirement for reason in error.reasons}
    assert places == said.get("places", places)
    assert said.get("places_include", set()) <= places
    for key in ("resource", "needed", "available", "shortage", "per_unit"):
        if key in said:
            assert getattr(first, key) == said[key], key
    if "most" in said:
        assert first.most_workers == said["most"]
        assert most_by_questions(problem, error) == said["most"]
    assert all(reason.sentence and "\n" not in reason.sentence for reason in error.reasons)
    assert all(reason.to_dict()["requirement"] == reason.requirement for reason in error.reasons)
    assert_minimal(problem, error.reasons, by_questions)


def most_by_questions(problem: Problem, error: InfeasibleProblem) -> int | None:
    """The largest count of the first reason's component that is feasible, tried one by one."""
    name = error.reasons[0].components[0]
    reduced = alone(problem, name)
    best = None
    for workers in range(problem.by_name[name].max_workers or 0):
        components = tuple(
            replace(c, min_workers=workers, max_workers=workers) if c.name == name else c for c in reduced.components
        )
        if by_questions(replace(reduced, components=components)):
            best = workers
    return best


TINY = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@TINY
@given(st.randoms(use_true_random=False))
def test_reasons_are_minimal_and_maxima_exact_on_tiny_problems(rng: Random) -> None:
    try:
        problem = load_problem(random_file(rng, most_nodes=3, most_components=3))
        assume("traffic" not in problem.goals)
        plan(problem, params=PARAMS)
    except InvalidProblem:
        assume(False)
        return
    except InfeasibleProblem as error:
        found = error
    else:
        assume(False)
        return
    assert_minimal(problem, found.reasons)
    for reason in found.reasons:
        if reason.most_workers is not None:
            assert_most(problem, found.reasons, reason)
    quick = impossible(problem)
    if quick:
        assert not by_brute_force(keep_only(problem, quick)), "a cheap condition named requirements that can hold"


def assert_most(problem: Problem, reasons: Sequence[Reason], reason: Reason) -> None:
    """The most workers of the reason's one component, by brute force over all that it asks.

    Where no number of workers will do, it is counted over the listed requirements.
    """
    (name,) = reason.components
    most = problem.by_name[name].max_workers
    for reduced in (alone(problem, name), keep_only(problem, requirements(problem, reasons))):
        components = tuple(replace(c, min_workers=0, priority=1) if c.name == name else c for c in reduced.components)
        found = brute_force.solve(replace(reduced, components=components, goals=("unplaced",)), budget=400_000)
        if found.status == "optimal":
            break
    assert found.status == "optimal" and most is not None
    assert reason.most_workers == most - found.goals["unplaced"]


@TINY
@given(st.randoms(use_true_random=False))
def test_cheap_conditions_never_speak_of_a_feasible_problem(rng: Random) -> None:
    try:
        problem = load_problem(random_file(rng, most_nodes=3, most_components=3))
    except InvalidProblem:
        assume(False)
        return
    if impossible(problem):
        assert not by_brute_force(problem)


def test_minimality_check_can_fail() -> None:
    problem, _ = KINDS["one component's count"]
    reasons = list(refusal(problem).reasons)
    more = replace(reasons[0], requirement="components.train.cpus")
    with pytest.raises(AssertionError, match="not minimal"):
        assert_minimal(problem, [*reasons, more])
    with pytest.raises(AssertionError, match="can hold together"):
        assert_minimal(problem, [more])


LARGE = {"id": "n{}", "count": 12_512, "gpus": 8, "cpus": 64, "memory": "1TiB", "nvlink_domain": "r{}", "nodes_per_domain": 16}


@pytest.mark.parametrize(
    ("components", "fields"),
    [
        ({"train": {"workers": 100_097, "gpus": 1}}, {"workers", "cpus"}),
        ({"train": {"workers": 50_000, "gpus": 1}, "rollout": {"workers": 13_000, "gpus": 4}}, {"workers"}),
        ({"train": {"workers": 100_000, "gpus": 1, "cpus": 9}}, {"workers", "cpus"}),
        ({"train": {"workers": 12_513, "gpus": 8, "segment_size": 3}}, {"workers", "cpus", "segment_size"}),
        ({"env": {"workers": 500_481, "gpus": 0.18, "cpus": 0}}, {"workers"}),
        ({"train": {"workers": 50_000, "gpus": 1, "cpus": 8}, "env": {"workers": 401_000, "cpus": 1}}, {"workers", "cpus"}),
        ({"train": {"workers": 12_513, "gpus": 8, "cpus": 0, "memory": "1TiB"}}, {"workers", "memory"}),
        ({"teacher": {"workers": 1, "gpus": 16, "cpus": 0}}, {"workers"}),
    ],
)
def test_counting_answers_at_12512_nodes_without_a_solver(
    components: dict[str, Any], fields: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = asked([LARGE], components)
    monkeypatch.setattr(cp_model.CpSolver, "solve", None)
    found = impossible(problem)
    assert {requirement.field for requirement in found} == fields


def test_explain_names_every_fault_in_a_large_cluster() -> None:
    """The whole answer at 12,512 nodes: one sentence, a few nodes named, the exact maximum."""
    error = refusal(asked([LARGE], {"train": {"workers": 100_097, "gpus": 1}}))
    (reason,) = error.reasons
    assert reason.most_workers == 100_096
    assert len(reason.sentence) < 400 and "12506 more" in reason.sentence
    assert len(reason.per_unit) <= 64
