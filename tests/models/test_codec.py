"""Problems and plans through files and plain data and back.

When to modify: when the problem file or the plan file gets a new field.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

from placewright_models.cluster import Cluster, Node, Occupation
from placewright_models.codec import check_goals, dump_yaml, load_plan, load_problem, plan_from_dict, problem_to_dict
from placewright_models.errors import InvalidProblem
from placewright_models.plan import PLAN_FORMAT, GoalValue, Idle, Plan, Pool, PoolNode, Worker
from placewright_models.problem import Problem
from placewright_models.reading.text import read_mapping
from placewright_models.workload import DEFAULT_GOALS, Group, Traffic

ROOT = Path(__file__).parents[2]
NODES = {"nodes": [{"id": "n0", "gpus": 8}, {"id": "n1", "gpus": 8}]}


def load(components: dict[str, Any], cluster: dict[str, Any] | None = None, **sections: Any) -> Problem:
    return load_problem({"cluster": cluster or NODES, "components": components, **sections})


def in_order(problem: Problem) -> Problem:
    cluster = problem.cluster
    return replace(problem, cluster=replace(cluster, nodes=tuple(sorted(cluster.nodes, key=lambda node: node.id))))


def shuffled(data: Any, random_: random.Random) -> Any:
    """The same mapping with its keys in another order, at every depth."""
    if isinstance(data, dict):
        keys = list(data)
        random_.shuffle(keys)
        return {key: shuffled(data[key], random_) for key in keys}
    return [shuffled(item, random_) for item in data] if isinstance(data, list) else data


# Round trips


@settings(max_examples=150, deadline=None)
@given(problems())
def test_a_problem_comes_back_from_its_plain_data(data: dict[str, Any]) -> None:
    problem = load_problem(data)
    written = problem_to_dict(problem)
    assert in_order(load_problem(written)) == in_order(problem)
    assert problem_to_dict(load_problem(written)) == written
    assert load_problem(problem_to_dict(problem, discovery_order=True)) == problem


@settings(max_examples=40, deadline=None)
@given(problems())
def test_a_problem_comes_back_from_yaml_and_json_text(tmp_path_factory: pytest.TempPathFactory, data: dict[str, Any]) -> None:
    folder = tmp_path_factory.mktemp("files")
    written = problem_to_dict(load_problem(data))
    (folder / "p.yaml").write_text(dump_yaml(written), encoding="utf-8")
    (folder / "p.json").write_text(json.dumps(written), encoding="utf-8")
    assert load_problem(folder / "p.yaml") == load_problem(str(folder / "p.json")) == load_problem(written)


@settings(max_examples=60, deadline=None)
@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(data: dict[str, Any], random_: random.Random) -> None:
    other = shuffled(data, random_)
    random_.shuffle(other["cluster"]["nodes"])
    assert json.dumps(problem_to_dict(load_problem(other))) == json.dumps(problem_to_dict(load_problem(data)))


def test_every_recorded_optimum_has_a_valid_problem() -> None:
    lines = (ROOT / "tests/vectors/optima.jsonl").read_text().splitlines()
    for line in lines:
        problem = load_problem(json.loads(line)["problem"])
        assert load_problem(problem_to_dict(problem, discovery_order=True)) == problem


# What the file means


def test_an_empty_job_is_valid() -> None:
    problem = load_problem({"cluster": {"nodes": []}})
    assert problem.components == () and problem.rules.pools == () and problem.goals == DEFAULT_GOALS
    assert load_problem({"cluster": NODES, "components": None, "rules": None, "traffic": None, "goals": None}).components == ()


def test_kinds_follow_from_name_gpus_and_share() -> None:
    problem = load(
        {
            "train": {"workers": 1, "gpus": 1},
            "eval": {"workers": 1, "gpus": 1},
            "env": {"workers": 1, "gpus": 1},
            "other": {"workers": 1, "gpus": 1},
            "shared": {"workers": 1, "gpus": 1, "gpu_share": 0.5},
            "driver": {"workers": 1},
            "ref": {"workers": 1, "gpus": 1, "kind": "helpers", "spread": "pack", "span_weight": 2},
        }
    )
    found = {c.name: (c.kind, c.spread, c.span_weight) for c in problem.components}
    assert found == {
        "train": ("collective", "pack", 1),
        "eval": ("replicas", "pack", 0),
        "env": ("helpers", "even", 0),
        "other": ("collective", "pack", 1),
        "shared": ("helpers", "even", 0),
        "driver": ("helpers", "even", 0),
        "ref": ("helpers", "pack", 2),
    }


def test_counted_entries_are_numbered_from_start_and_domains_by_position() -> None:
    row = {
        "id": "gpu-{:03d}",
        "count": 5,
        "start": 7,
        "gpus": 4,
        "nvlink_domain": "rack{}",
        "nodes_per_domain": 2,
        "ip": "10.0.0.{}",
    }
    nodes = load_problem({"cluster": {"nodes": [row]}}).cluster.nodes
    assert [node.id for node in nodes] == ["gpu-007", "gpu-008", "gpu-009", "gpu-010", "gpu-011"]
    assert [node.nvlink_domain for node in nodes] == ["rack0", "rack0", "rack1", "rack1", "rack2"]
    assert [node.ip for node in nodes] == [f"10.0.0.{number}" for number in range(7, 12)]


def test_replicas_that_fit_a_node_are_workers() -> None:
    rollout = load({"rollout": {"replicas": 3, "gpus_per_replica": 8}}).by_name["rollout"]
    assert (rollout.max_workers, rollout.gpus, rollout.group) == (3, 8, None)


def test_replicas_wider_than_every_usable_node_are_groups() -> None:
    rollout = load({"rollout": {"replicas": 4, "gpus_per_replica": 16}}).by_name["rollout"]
    assert (rollout.max_workers, rollout.gpus, rollout.group) == (64, 1, Group(16, "cluster"))
    cluster = {"nodes": [*NODES["nodes"], {"id": "big", "gpus": 16, "nvlink_domain": "d", "excluded": "drained"}]}
    rollout = load({"rollout": {"replicas": 4, "gpus_per_replica": 16, "group": {"mode": "preferred"}}}, cluster).by_name[
        "rollout"
    ]
    assert (rollout.max_workers, rollout.group) == (64, Group(16, "nvlink_domain", "preferred"))


def test_replicas_may_be_elastic() -> None:
    rollout = load({"rollout": {"replicas": {"min": 1, "max": 2}, "gpus_per_replica": 16}}).by_name["rollout"]
    assert (rollout.min_workers, rollout.max_workers) == (16, 32)


def test_counts_follow_from_per_node() -> None:
    problem = load({"a": {"per_node": [8, 7], "gpus": 1}, "b": {"nodes": 2, "per_node": 3}, "c": {"per_node_of": "a"}})
    assert [c.max_workers for c in problem.components] == [15, 6, None]
    assert problem.by_name["a"].per_node == (7, 8)


def test_buffer_auto_follows_train() -> None:
    problem = load({"train": {"workers": 2, "gpus": 1}, "buffer": {"workers": "auto"}})
    buffer = problem.by_name["buffer"]
    assert buffer.auto and buffer.per_node_of == "train"
    assert load_problem(problem_to_dict(problem)) == problem


def test_default_pools() -> None:
    job = {name: {"workers": 1} for name in ("env", "buffer", "train", "rollout")}
    assert load(job).rules.pools == (("global_pool", ("train", "rollout", "env", "buffer")),)
    disaggregated = load(job, rules={"strategy": "disaggregate"}).rules.pools
    assert disaggregated == (("train_pool", ("train", "buffer")), ("rollout_pool", ("rollout", "env")))
    alone = load({"env": {"workers": 1}}, rules={"strategy": "disaggregate"}).rules.pools
    assert alone == (("rollout_pool", ("env",)),)


def test_decimals_and_memory_are_exact() -> None:
    node = {"id": "n", "gpus": 1, "cpus": 7.3, "memory": "1.5GiB", "reserved_cpus": 0.1}
    problem = load({"env": {"workers": 1, "gpus": 0.1, "cpus": 0.3, "memory": "2KiB"}}, {"nodes": [node]})
    assert problem.cluster.nodes[0].cpus == Decimal("7.3") and problem.cluster.nodes[0].memory == 3 * 2**29
    assert problem.cluster.nodes[0].free_cpu_units == 72_000
    assert problem.by_name["env"].gpus == Decimal("0.1") and problem.by_name["env"].memory == 2048


def test_traffic_weight_defaults_to_one() -> None:
    job = {"env": {"workers": 1}, "eval": {"workers": 1}}
    assert load(job, traffic=[{"between": ["env", "eval"]}]).traffic == (Traffic(("env", "eval"), 1),)


def test_numbers_as_names_are_taken_as_their_digits() -> None:
    cluster = {"nodes": [{"id": 7, "gpus": 1, "labels": {"slot": 3}}]}
    problem = load({"a": {"workers": 1, "node_ids": [7], "labels": {"slot": 3}}}, cluster)
    assert problem.cluster.nodes[0].id == "7" and problem.by_name["a"].node_ids == ("7",)
    assert problem.by_name["a"].labels == {"slot": "3"}


def test_occupation_is_written_and_read_again() -> None:
    held = Occupation("other", (1, 2), Decimal("1.5"), 1024)
    problem = Problem(Cluster((Node("n", 4, occupied=(held,)),)))
    assert load_problem(problem_to_dict(problem)).cluster.nodes[0].occupied == (held,)


def test_goals_that_need_a_previous_plan() -> None:
    problem = load({"a": {"workers": 1}}, goals=["unplaced", "moves"])
    check_goals(problem, has_previous=True)
    with pytest.raises(InvalidProblem, match=r"goals\[1\]: moves without a previous plan"):
        check_goals(problem, has_previous=False)
    check_goals(load({}), has_previous=False)


# One source or two


def test_cluster_and_job_in_two_sources(tmp_path: Path) -> None:
    job = {"components": {"a": {"workers": 1}}}
    whole = load_problem({"cluster": NODES, **job})
    (tmp_path / "bare.yaml").write_text(dump_yaml(NODES))
    (tmp_path / "wrapped.json").write_text(json.dumps({"cluster": NODES}))
    for cluster in (NODES, {"cluster": NODES}, tmp_path / "bare.yaml", str(tmp_path / "wrapped.json"), whole.cluster):
        assert load_problem(job, cluster) == whole


# Speed and weight


def test_a_large_counted_cluster_loads_quickly() -> None:
    row = {"id": "gpu-{:06d}", "count": 125_000, "gpus": 8, "cpus": 128, "nvlink_domain": "rack{}", "nodes_per_domain": 16}
    began = time.process_time()
    problem = load_problem({"cluster": {"nodes": [row]}, "components": {"rollout": {"replicas": 4, "gpus_per_replica": 16}}})
    assert len(problem.cluster.nodes) == 125_000
    # About 0.8 s on two shared cores; the margin is for a busy machine.
    assert time.process_time() - began < 5


def test_importing_the_codec_stays_light() -> None:
    heavy = "('pydantic', 'networkx', 'yaml', 'ortools')"
    code = f"import sys, placewright_models.codec; print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT / "models")
    assert done.stdout.strip() == "[]"


# Plans


def a_plan() -> Plan:
    problem = load({"train": {"workers": 2, "gpus": 1}, "buffer": {"workers": "auto"}})
    return Plan(
        status="optimal",
        solver="cp-sat",
        goals=(GoalValue("node_span", 1, 1), GoalValue("evenness", 3, None)),
        pools=(Pool("global_pool", (PoolNode("n0", 8, {"train": ((0, 1),), "buffer": ()}),)),),
        workers={"train": (Worker("n0", ((0, 0),)), Worker("n0", ((1, 1),))), "buffer": (Worker("n0", ()),)},
        idle=Idle(14, ("n1",), {"n0": ((2, 7),), "n1": ((0, 7),)}),
        warnings=("a warning",),
        problem=problem,
        wall_time_s=0.5,
    )


def test_a_plan_comes_back_from_its_file(tmp_path: Path) -> None:
    plan = a_plan()
    (tmp_path / "plan.json").write_text(json.dumps(plan.to_dict()))
    (tmp_path / "plan.yaml").write_text(dump_yaml(plan.to_dict()))
    assert load_plan(tmp_path / "plan.json") == load_plan(tmp_path / "plan.yaml") == plan
    assert Plan.from_dict(plan.to_dict()) == plan


def test_a_given_problem_replaces_the_one_inside() -> None:
    data = a_plan().to_dict()
    data["problem"] = "nonsense"
    other = load({})
    assert plan_from_dict(data, other).problem is other


BROKEN_PLANS: list[tuple[str, Any, str]] = [
    ("format", "placewright/plan/9", r"format: 'placewright/plan/9' is not a format"),
    ("format", None, r"format: is missing: this is not a plan"),
    ("status", "optimall", r"status: 'optimall' is not a status \(did you mean optimal\?\)"),
    ("solver", 3, r"solver: 3 is not text"),
    ("wall_time_s", "fast", r"wall_time_s: 'fast' is not a number"),
    ("goals", {"a": 1}, r"goals: .* is not a list"),
    ("goals", [{"value": 1}], r"goals\[0\]\.name: is missing"),
    ("goals", [{"name": "moves", "value": True}], r"goals\[0\]\.value: true is not a whole number"),
    ("goals", [{"name": "moves", "value": 1, "bound": "x"}], r"goals\[0\]\.bound: 'x' is not a whole number"),
    ("pools", [{"name": "p"}], r"pools\[0\]\.nodes: is missing"),
    (
        "pools",
        [{"name": "p", "nodes": [{"node_id": 1, "gpus": 8, "allocations": {}}]}],
        r"pools\[0\]\.nodes\[0\]\.node_id: 1 is not text",
    ),
    (
        "pools",
        [{"name": "p", "nodes": [{"node_id": "n", "gpus": 8, "allocations": []}]}],
        r"allocations: \[\] is not a mapping",
    ),
    ("workers", [], r"workers: \[\] is not a mapping"),
    ("workers", {"a": 1}, r"workers\.a: 1 is not a list"),
    ("workers", {"a": [["n0"]]}, r"workers\.a\[0\]: \['n0'\] is not a worker"),
    ("workers", {"a": [["n0", [[0, "1"]]]]}, r"workers\.a\[0\]: \[0, '1'\] is not a range"),
    ("workers", {"a": [["n0", [[3, 1]]]]}, r"is not a range"),
    ("workers", {"a": [["n0", [[-1, 1]]]]}, r"is not a range"),
    ("workers", {"a": [["n0", [[0, True]]]]}, r"is not a range"),
    ("workers", {"a": [["n0", [[0, 10**12]]]]}, r"is not a range"),
    ("workers", {1: []}, r"the key 1 is not text"),
    ("idle", [], r"idle: \[\] is not a mapping"),
    ("idle", {"gpus": -0.5}, r"idle\.gpus: -0\.5 is not a whole number"),
    ("warnings", [1], r"warnings\[0\]: 1 is not text"),
    ("problem", {"cluster": {"nodes": [{"id": ""}]}}, r"problem\.cluster\.nodes\[0\]\.id: the name is empty"),
    ("problem", 5, r"problem: 5 is not a mapping"),
]


@pytest.mark.parametrize(("key", "value", "message"), BROKEN_PLANS)
def test_a_malformed_plan_is_refused(key: str, value: Any, message: str) -> None:
    data = a_plan().to_dict() | {key: value}
    if value is None:
        del data[key]
    with pytest.raises(InvalidProblem, match=message):
        plan_from_dict(data)


@pytest.mark.parametrize("key", ["status", "goals", "pools", "workers", "idle", "problem"])
def test_a_plan_without_one_of_its_keys_is_refused(key: str) -> None:
    data = a_plan().to_dict()
    del data[key]
    with pytest.raises(InvalidProblem, match=f"{key}: is missing"):
        plan_from_dict(data)


def test_a_file_that_is_no_plan_at_all_stops_early() -> None:
    with pytest.raises(InvalidProblem) as caught:
        plan_from_dict({"format": PLAN_FORMAT, "workers": {"a": [0] * 10_000}})
    assert len(caught.value.faults) == 100


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["status", "goals", "pools", "workers", "idle", "warnings", "wall_time_s", "solver", "problem"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=8,
        ),
    )
)
def test_arbitrary_plans_raise_nothing_but_invalid_problem(data: dict[str, Any]) -> None:
    try:
        plan_from_dict(a_plan().to_dict() | data)
    except InvalidProblem as error:
        assert error.faults


# YAML out


def test_yaml_keeps_order_and_writes_no_aliases() -> None:
    shared = [1, 2]
    text = dump_yaml({"b": shared, "a": shared})
    assert text == "b: [1, 2]\na: [1, 2]\n"


def test_yaml_quotes_what_would_read_as_something_else(tmp_path: Path) -> None:
    data = {"ids": ["no", "1e3", "012", "1:30", "null", "2024-01-01", "ä"]}
    (tmp_path / "x.yaml").write_text(dump_yaml(data), encoding="utf-8")
    assert read_mapping(tmp_path / "x.yaml") == data
