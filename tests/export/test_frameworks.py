"""Exports for verl and NeMo-RL and the rank environments: what they say, and how they refuse."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
import yaml

import placewright
from placewright.compat._verl_planned import cut, pool_slots
from placewright.compat.verl_config import check_verl
from placewright.export import ExportRefused, export
from placewright_models.errors import PlanMismatch
from placewright_models.plan import Plan

EIGHT_AND_FOUR = {
    "nodes": [
        {"id": "a", "gpus": 8, "cpus": 96, "ip": "10.0.0.10"},
        {"id": "b", "gpus": 4, "cpus": 96, "ip": "10.0.0.9"},
    ]
}


def plan_of(components: dict[str, Any], cluster: dict[str, Any], **rules: Any) -> Plan:
    return placewright.plan(placewright.load_problem({"cluster": cluster, "components": components, "rules": rules}))


def equal(count: int, gpus: int, **fields: Any) -> dict[str, Any]:
    return {"nodes": [{"id": f"n{i}", "gpus": gpus, "cpus": 96, "ip": f"10.0.0.{i + 1}", **fields} for i in range(count)]}


def causes(plan: Plan, target: str) -> str:
    with pytest.raises(ExportRefused) as refusal:
        export(plan, target)
    assert refusal.value.causes
    return "\n".join(refusal.value.causes)


class TestVerl:
    def test_unequal_nodes_become_groups_of_one_size_by_ip(self) -> None:
        components = {"actor": {"workers": 12, "gpus": 1, "cpus": 3}, "rollout": {"workers": 3, "gpus": 4, "cpus": 0}}
        made = plan_of(components, EIGHT_AND_FOUR, pools={"global_pool": ["actor", "rollout"]}, colocate=[["actor", "rollout"]])
        data = yaml.safe_load(export(made, "verl"))
        assert data["trainer"] == {"nnodes": 3, "n_gpus_per_node": 4}
        assert data["resource_pool_spec"] == {"global_pool": [4, 4, 4]}
        assert data["nodes"] == {"global_pool": ["b", "a", "a"]}
        assert data["gpus"] == {"global_pool": ["0-3", "0-3", "4-7"]}
        assert data["mapping"] == {"actor": "global_pool", "rollout": "global_pool"}
        overrides = ["trainer.nnodes=3", "trainer.n_gpus_per_node=4", "algorithm.adv_estimator=grpo"]
        assert check_verl({}, EIGHT_AND_FOUR, overrides).starts
        slots = pool_slots(made, "trainer_pool", 12)
        assert slots is not None
        assert [node for node, _ in cut("global_pool", slots, [4, 4, 4])] == ["b", "a", "a"]
        assert cut("global_pool", slots, [8, 4]) == (("a", tuple(range(8))), ("b", (0, 1, 2, 3)))
        with pytest.raises(PlanMismatch, match="nnodes=3, n_gpus_per_node=4"):
            cut("global_pool", slots, [6, 6])

    def test_standalone_replicas_have_pools_of_their_own(self) -> None:
        components = {"actor": {"workers": 4, "gpus": 1}, "rollout": {"workers": 2, "gpus": 2}, "env": {"workers": 2}}
        pools = {"global_pool": ["actor", "env"], "rollout_pool": ["rollout"]}
        made = plan_of(components, equal(1, 8), pools=pools)
        text = export(made, "verl")
        data = yaml.safe_load(text)
        assert data["resource_pool_spec"] == {"global_pool": [4], "rollout_pool_0": [2], "rollout_pool_1": [2]}
        assert data["actor_rollout_ref"] == {"hybrid_engine": False, "rollout": {"nnodes": 2, "n_gpus_per_node": 2}}
        assert "GPUs only: env" in text
        assert pool_slots(made, "rollout_pool_1", 2) == (("n0", (6, 7)),)
        assert pool_slots(made, "rollout_pool_6", 2, first_replica=5) == (("n0", (6, 7)),)
        assert pool_slots(made, "critic_pool", 2) is None
        with pytest.raises(PlanMismatch, match="replica 2 of rollout"):
            pool_slots(made, "rollout_pool_2", 2)

    @pytest.mark.parametrize(
        ("components", "rules", "words"),
        [
            ({"actor": {"workers": 4, "gpus": 0.5}}, {}, "actor holds a share"),
            ({"train": {"workers": 1, "gpus": 4}}, {}, "starts a process for each GPU"),
            (
                {"actor": {"workers": 4, "gpus": 1}, "critic": {"workers": 2, "gpus": 1}},
                {},
                "gives every role all GPUs of its pool",
            ),
            (
                {"actor": {"workers": 4, "gpus": 1}, "critic": {"workers": 4, "gpus": 1}},
                {"pools": {"a": ["actor"], "b": ["critic"]}, "colocate": [["actor", "critic"]]},
                "pools a and b share GPU",
            ),
        ],
    )
    def test_refused(self, components: dict[str, Any], rules: dict[str, Any], words: str) -> None:
        assert words in causes(plan_of(components, equal(1, 8), **rules), "verl")

    def test_engines_that_are_no_ranks_in_a_row(self) -> None:
        components = {"actor": {"workers": 12, "gpus": 1}, "rollout": {"workers": 3, "gpus": 4}}
        cluster = {"nodes": [{"id": f"n{i}", "gpus": 6, "unavailable_gpus": []} for i in range(2)]}
        made = plan_of(
            {"actor": components["actor"], "rollout": {"workers": 2, "gpus": 4}}, cluster, share_gpus=[["actor", "rollout"]]
        )
        assert "rollout has GPUs" in causes(made, "verl")


class TestNemoRl:
    def test_settings_and_pins(self) -> None:
        components = {
            "policy": {"workers": 8, "gpus": 1, "segment_size": 2},
            "generation": {"workers": 1, "gpus": 4, "nodes": 1},
            "env": {"workers": 2},
        }
        made = plan_of(components, equal(3, 4, nvlink_domain="rack"), separate_nodes=[["policy", "generation"]])
        text = export(made, "nemo-rl")
        data = yaml.safe_load(text)
        assert data["cluster"] == {"num_nodes": 3, "gpus_per_node": 4, "segment_size": 2}
        colocated = {"enabled": False, "resources": {"num_nodes": 1, "gpus_per_node": 4}}
        assert data["policy"] == {"generation": {"colocated": colocated}}
        pins = data["node_resource_constraints"]
        assert pins["policy"] == [{"node:10.0.0.1": 0.001}, {"node:10.0.0.2": 0.001}]
        assert pins["generation"] == [{"node:10.0.0.3": 0.001}]
        assert "GPUs only: env" in text

    def test_colocated(self) -> None:
        components = {"policy": {"workers": 8, "gpus": 1}, "generation": {"workers": 2, "gpus": 4}}
        data = yaml.safe_load(export(plan_of(components, equal(2, 4), colocate=[["policy", "generation"]]), "nemo-rl"))
        assert data["cluster"] == {"num_nodes": 2, "gpus_per_node": 4}
        assert data["policy"] == {"generation": {"colocated": {"enabled": True}}}

    def test_one_node_is_split(self) -> None:
        made = plan_of({"policy": {"workers": 6, "gpus": 1}, "generation": {"workers": 2, "gpus": 1}}, equal(1, 8))
        data = yaml.safe_load(export(made, "nemo-rl"))
        assert data["cluster"] == {"num_nodes": 1, "gpus_per_node": 8}
        assert data["policy"]["generation"]["colocated"]["resources"] == {"num_nodes": 1, "gpus_per_node": 2}

    @pytest.mark.parametrize(
        ("components", "cluster", "words"),
        [
            ({"policy": {"workers": 4, "gpus": 0.5}}, equal(1, 4), "policy holds shares"),
            ({"policy": {"workers": 12, "gpus": 1}}, EIGHT_AND_FOUR, "nodes of different numbers of GPUs (a 8, b 4)"),
            ({"policy": {"workers": 8, "gpus": 1, "per_node": 4}}, equal(2, 8), "whole nodes only"),
            ({"policy": {"workers": 4, "gpus": 1}}, {"nodes": [{"id": "x", "gpus": 4}]}, "node x has no ip"),
        ],
    )
    def test_refused(self, components: dict[str, Any], cluster: dict[str, Any], words: str) -> None:
        assert words in causes(plan_of(components, cluster), "nemo-rl")

    def test_two_nodes_of_one_ip(self) -> None:
        cluster = {"nodes": [{"id": f"n{i}", "gpus": 4, "ip": "10.0.0.1"} for i in range(2)]}
        assert "which pins neither" in causes(plan_of({"policy": {"workers": 4, "gpus": 1}}, cluster), "nemo-rl")


def test_rank_environments() -> None:
    made = plan_of({"train": {"workers": 4, "gpus": 1, "per_node": 2}, "rollout": {"workers": 1, "gpus": 2}}, equal(2, 4))
    lines = [line for line in export(made, "env").splitlines() if not line.startswith("#")]
    found = [dict(part.split("=", 1) for part in shlex.split(line)) for line in lines]
    train = [entry for entry in found if entry["COMPONENT"] == "train"]
    assert [entry["RANK"] for entry in train] == ["0", "1", "2", "3"]
    assert [entry["LOCAL_RANK"] for entry in train] == ["0", "1", "0", "1"]
    assert {entry["WORLD_SIZE"] for entry in train} == {"4"}
    assert {entry["LOCAL_WORLD_SIZE"] for entry in train} == {"2"}
    assert [entry["NODE"] for entry in train] == [worker.node_id for worker in made.workers["train"]]
    assert {entry["MASTER_ADDR"] for entry in train} == {"10.0.0.1"}
    assert found[-1]["CUDA_VISIBLE_DEVICES"] == "2,3"
