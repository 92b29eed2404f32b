"""Every export target: what it says, that it loses nothing it claims to keep, and how it refuses."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

import placewright
from placewright.export import TARGETS, ExportRefused, export, rlightning, target_for_file
from placewright.export.text import MOST_KINDS, lines, write_text
from placewright.greedy.reference.planner import ComponentScheduling, ResourcePoolPlanner
from placewright_models.codec import plan_from_dict
from placewright_models.plan import Plan

UNEQUAL: dict[str, Any] = {
    "cluster": {
        "nodes": [
            {"id": "small", "gpus": 4, "cpus": 32},
            {"id": "holed", "gpus": 8, "cpus": 64, "unavailable_gpus": [2]},
            {"id": "big", "gpus": 16, "cpus": 64},
            {"id": "host", "gpus": 0, "cpus": 64},
        ]
    },
    "components": {
        "train": {"workers": 10, "gpus": 1, "spread": "even", "nodes": 3},
        "rollout": {"workers": 3, "gpus": 2},
        "env": {"workers": 12, "gpus": 0.25},
        "buffer": {"workers": "auto"},
        "driver": {"workers": 1, "cpus": 40},
    },
    "rules": {"strategy": "disaggregate", "share_gpus": [["rollout", "env"]]},
}


@pytest.fixture(scope="module")
def plan() -> Plan:
    return placewright.plan(placewright.load_problem(UNEQUAL))


@pytest.fixture(scope="module")
def large() -> Plan:
    problem: dict[str, Any] = {
        "cluster": {
            "nodes": [{"id": "gpu-{:05d}", "count": 12512, "gpus": 8, "nvlink_domain": "rack{}", "nodes_per_domain": 16}]
        },
        "components": {"train": {"workers": 4378, "gpus": 8, "segment_size": 2}, "rollout": {"workers": 8758, "gpus": 4}},
        "goals": ["domain_span", "node_span", "nodes_used"],
    }
    return placewright.plan(placewright.load_problem(problem))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_every_target_writes_text_that_ends_in_a_newline(target: Any, plan: Plan) -> None:
    try:
        text = target.write(plan)
    except ExportRefused as refusal:
        # A framework's format may refuse this plan, but says why.
        assert target.name in ("verl", "nemo-rl")
        assert refusal.causes
        return
    assert text.endswith("\n")
    assert text == export(plan, target.name)
    assert target.summary
    for suffix in target.suffixes:
        assert target_for_file(f"plan{suffix.upper()}") is target


def test_names_are_unique_and_wrong_ones_are_told() -> None:
    assert len({target.name for target in TARGETS}) == len(TARGETS)
    assert target_for_file("plan.docx") is None


def test_an_unknown_format_is_refused(plan: Plan) -> None:
    with pytest.raises(placewright.InvalidProblem, match=r"jason is not a format.*json"):
        export(plan, "jason")


@pytest.mark.parametrize(("name", "load"), [("json", json.loads), ("yaml", yaml.safe_load)])
def test_data_formats_keep_everything(name: str, load: Any, plan: Plan) -> None:
    data = load(export(plan, name))
    assert data == json.loads(json.dumps(plan.to_dict()))
    again = plan_from_dict(data)
    placewright.verify(plan.problem, again)
    assert again.to_dict() == plan.to_dict()


def test_json_has_a_line_for_each_node(plan: Plan) -> None:
    text = export(plan, "json")
    for pool in plan.pools:
        for node in pool.nodes:
            assert len([line for line in text.splitlines() if f'"node_id": "{node.node_id}"' in line]) >= 1


# RLightning


def reload(plan: Plan, text: str) -> dict[str, dict[str, dict[str, list[tuple[int, int]]]]]:
    """What RLightning's own manual mode makes of the text: pool -> node -> component -> ranges."""
    resources = {
        node.ray_node_id or node.id: {"ip": node.ip or "", "CPU": 1, "GPU": node.gpus} for node in plan.problem.cluster.nodes
    }
    planner = ResourcePoolPlanner(_scheduling(), {"node_id_to_resources": resources})
    pools = planner.load_manual_resource_pools(yaml.safe_load(text)["resource_pool"])
    return {
        name: {node.node_id: {c: list(ranges) for c, ranges in node.allocations.items()} for node in pool.nodes}
        for name, pool in pools.items()
    }


def _scheduling() -> ComponentScheduling:
    # Manual mode does not look at it.
    return object.__new__(ComponentScheduling)


def wanted(plan: Plan) -> dict[str, dict[str, dict[str, list[tuple[int, int]]]]]:
    return {
        pool.name: {node.node_id: {c: list(ranges) for c, ranges in node.allocations.items() if ranges} for node in pool.nodes}
        for pool in plan.pools
        if any(ranges for node in pool.nodes for ranges in node.allocations.values())
    }


def test_rlightning_reloads_to_the_same_nodes_and_ranges_on_unequal_nodes(plan: Plan) -> None:
    text = export(plan, "rlightning")
    assert reload(plan, text) == wanted(plan)
    data = yaml.safe_load(text)
    assert data["placement"] == {"mode": "manual"}
    for pool in data["resource_pool"]:
        assert pool["num_node"] == len(pool["num_gpus"]) == len(pool["node_ids"])


def test_rlightning_says_what_it_leaves_out(plan: Plan) -> None:
    comments = [line for line in export(plan, "rlightning").splitlines() if line.startswith("#")]
    assert any("buffer" in line and "driver" in line for line in comments)
    assert any("env" in line and "Shares" in line for line in comments)


def test_rlightning_reloads_equal_nodes() -> None:
    problem: dict[str, Any] = {
        "cluster": {"nodes": [{"id": "n{}", "count": 4, "gpus": 8}]},
        "components": {name: {"workers": 8, "gpus": 1} for name in ("train", "eval", "env")},
        "rules": {"strategy": "disaggregate", "env_strategy": "device-colocate"},
    }
    made = placewright.plan(placewright.load_problem(problem))
    assert reload(made, export(made, "rlightning")) == wanted(made)


def test_rlightning_reloads_a_node_that_lies_in_two_pools() -> None:
    problem: dict[str, Any] = {
        "cluster": {"nodes": [{"id": "7", "gpus": 8}, {"id": "10", "gpus": 4}]},
        "components": {
            "train": {"workers": 5, "gpus": 1},
            "rollout": {"workers": 1, "gpus": 1},
            "eval": {"workers": 3, "gpus": 2},
        },
        "rules": {"strategy": "disaggregate"},
    }
    made = placewright.plan(placewright.load_problem(problem))
    assert reload(made, export(made, "rlightning")) == wanted(made)


def test_rlightning_names_nodes_as_ray_does_where_it_can() -> None:
    problem: dict[str, Any] = {
        "cluster": {"nodes": [{"id": f"n{i}", "gpus": 2, "ray_node_id": "ab" * 14 + str(i)} for i in range(2)]},
        "components": {"train": {"workers": 3, "gpus": 1}},
    }
    made = placewright.plan(placewright.load_problem(problem))
    pool = rlightning.resource_pools(made)[0]
    assert pool["node_ids"] == ["ab" * 14 + "0", "ab" * 14 + "1"]
    assert pool["train"] == "0-1, 2"


def test_rlightning_refuses_names_it_keeps_for_itself() -> None:
    problem: dict[str, Any] = {
        "cluster": {"nodes": [{"id": "n0", "gpus": 2}]},
        "components": {"num_gpus": {"workers": 2, "gpus": 1}},
    }
    made = placewright.plan(placewright.load_problem(problem))
    with pytest.raises(ExportRefused, match="num_gpus cannot be told from the pool key num_gpus") as refusal:
        export(made, "rlightning")
    assert len(refusal.value.causes) == 1


# The table


def test_the_table_names_everything(plan: Plan) -> None:
    text = write_text(plan)
    for pool in plan.pools:
        assert pool.name in text
        for node in pool.nodes:
            assert node.node_id in text
    for component in plan.problem.components:
        assert re.search(rf"\b{component.name}\b.*\b{component.kind}\b", text)
    for goal in plan.goals:
        row = next(line for line in text.splitlines() if line.startswith(goal.name))
        assert f"{goal.value:,}" in row
        assert "proved" in row
        assert len(row.split("proved")[1].strip()) > 10
    assert f"idle: {plan.idle.gpus} GPU" in text


def test_every_goal_has_a_sentence() -> None:
    from placewright.export.goal_sentences import SENTENCES
    from placewright_models.workload import GOAL_NAMES

    assert set(SENTENCES) == set(GOAL_NAMES)


@pytest.mark.parametrize("width", [60, 80, 100])
def test_lines_fit_a_terminal(width: int, plan: Plan) -> None:
    wide = [line.text for line in lines(plan, width) if len(line.text) > max(width, 80)]
    assert not wide


def test_folding_loses_no_word(plan: Plan) -> None:
    def words(text: str) -> list[str]:
        return sorted(re.findall(r"\S+", text))

    assert words("\n".join(line.text for line in lines(plan, 80))) == words(write_text(plan))


def test_a_plan_for_12512_nodes_is_a_page(large: Plan) -> None:
    text = write_text(large)
    assert len(text.splitlines()) < MOST_KINDS
    assert "gpu-00000..gpu-" in text
    assert re.search(r"train +collective +0-7 +0-4377 \(4,378, 1 a node\)", text)
    shown = sum(int(number.replace(",", "")) for number in re.findall(r"\(([\d,]+) nodes\) +8 ", text))
    singles = len(re.findall(r"^(?:global_pool)? +gpu-\d+ +8 ", text, re.MULTILINE))
    assert shown + singles == len({worker.node_id for workers in large.workers.values() for worker in workers})


def test_an_empty_plan_is_shown() -> None:
    made = placewright.plan(placewright.load_problem({"cluster": {"nodes": [{"id": "n0", "gpus": 2}]}, "components": {}}))
    text = write_text(made)
    assert "0 workers on 0 of 1 node, 0 of 2 available GPUs used" in text
    assert "hosts nothing" in text
    for target in TARGETS:
        assert target.write(made)


def test_unproved_goals_are_not_called_proved(plan: Plan) -> None:
    from dataclasses import replace

    goals = (replace(plan.goals[0], bound=None), replace(plan.goals[1], value=3, bound=1), *plan.goals[2:])
    text = write_text(replace(plan, goals=goals, status="feasible"))
    assert "time ran out" in text
    assert "measured only" in text
    assert "may be improved" in text
