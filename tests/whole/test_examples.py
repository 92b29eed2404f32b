"""Every file in examples/ is a valid problem with a public source, gets a proved plan, and shows what its comment says."""

from __future__ import annotations

from pathlib import Path

import pytest

import placewright
from placewright_models.plan import Plan

FOLDER = Path(__file__).resolve().parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("*.yaml"))


@pytest.fixture(scope="module")
def plans() -> dict[str, Plan]:
    return {}


def planned(plans: dict[str, Plan], name: str) -> Plan:
    if name not in plans:
        plans[name] = placewright.plan(placewright.load_problem(FOLDER / f"{name}.yaml"))
    return plans[name]


def nodes(plan: Plan, component: str) -> list[str]:
    return [worker.node_id for worker in plan.workers[component]]


def test_there_are_at_least_six() -> None:
    assert len(EXAMPLES) >= 6


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_names_its_source_and_is_proved_optimal(path: Path, plans: dict[str, Plan]) -> None:
    text = path.read_text(encoding="utf-8")
    assert "# Source: https://github.com/" in text
    assert "# Assumed: " in text
    assert "# Of interest: " in text
    plan = planned(plans, path.stem)
    assert plan.status == "optimal"
    placewright.verify(plan.problem, plan)


def test_rlightning_envs_have_their_evals_beside_them(plans: dict[str, Plan]) -> None:
    plan = planned(plans, "rlightning-wbc-4x8")
    assert plan.goal("traffic").value == 0
    assert sorted(nodes(plan, "env")) == sorted(nodes(plan, "eval"))
    assert len(set(nodes(plan, "train"))) == 1
    assert len(plan.idle.nodes) == 1


def test_rlightning_hand_written_layout_comes_back() -> None:
    text = (FOLDER / "rlightning-wbc-4x8.yaml").read_text(encoding="utf-8")
    path_free = placewright.load_problem(_with(text, "train", "eval", "env"))
    plan = placewright.plan(path_free)
    for name in ("train", "eval", "env"):
        assert [nodes(plan, name).count(f"node-{i}") for i in range(4)] == [2, 2, 2, 2]


def _with(text: str, *names: str) -> dict[str, object]:
    import yaml

    data: dict[str, object] = yaml.safe_load(text)
    for name in names:
        data["components"][name]["per_node"] = 2  # type: ignore[index]
    return data


def test_openvla_lies_three_deep(plans: dict[str, Plan]) -> None:
    plan = planned(plans, "rlightning-openvla-colocate")
    assert plan.pools[0].nodes[0].allocations == dict.fromkeys(("train", "eval", "env"), ((0, 7),))


def test_nemo_rl_takes_whole_segments(plans: dict[str, Plan]) -> None:
    plan = planned(plans, "nemo-rl-gptoss-8n4g")
    assert plan.idle.nodes == ("a05",)


def test_nemo_rl_is_refused_on_five_and_three() -> None:
    problem = placewright.load_problem(FOLDER / "nemo-rl-gptoss-8n4g.yaml", exclude=["b04"])
    with pytest.raises(placewright.InfeasibleProblem) as refusal:
        placewright.plan(problem)
    text = " ".join(reason.sentence for reason in refusal.value.reasons)
    assert "4 segments" in text
    assert "3 are possible" in text


def test_verl_engines_stay_on_one_node(plans: dict[str, Plan]) -> None:
    plan = planned(plans, "verl-8-and-4")
    assert nodes(plan, "rollout") == ["node-a", "node-a", "node-b"]
    assert any("actor has 4 and 8" in warning for warning in plan.warnings)


def test_openrlhf_pairs_lie_on_two_whole_nodes(plans: dict[str, Plan]) -> None:
    plan = planned(plans, "openrlhf-6x4")
    assert plan.idle.gpus == 0
    assert nodes(plan, "actor") == nodes(plan, "ref")
    assert nodes(plan, "critic") == nodes(plan, "reward")


def test_nvl72_segment_is_sixteen_whole_nodes(plans: dict[str, Plan]) -> None:
    plan = planned(plans, "nvl72-rack")
    assert len(set(nodes(plan, "policy"))) == 16
    assert plan.idle.gpus == 7
