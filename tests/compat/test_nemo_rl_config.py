"""NeMo-RL's recipes as problems, and checked: will they start?

The recipes are the values of real files of NVIDIA-NeMo/RL, examples/configs/recipes/llm/, named at each. Modify this file
when NeMo-RL's configuration or its choice of nodes changes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import placewright
from placewright.compat.nemo_rl_config import check_nemo_rl, import_nemo_rl, read_settings
from placewright_models.codec import load_problem
from placewright_models.errors import InvalidProblem

# examples/configs/grpo_math_1B.yaml, the fields that place
BASE: dict[str, Any] = {
    "policy": {
        "dtensor_cfg": {"enabled": True, "tensor_parallel_size": 1, "context_parallel_size": 1},
        "megatron_cfg": {
            "enabled": False,
            "tensor_model_parallel_size": 1,
            "expert_tensor_parallel_size": 1,
            "expert_model_parallel_size": 1,
            "pipeline_model_parallel_size": 1,
            "context_parallel_size": 1,
        },
        "generation": {
            "backend": "vllm",
            "vllm_cfg": {"tensor_parallel_size": 1, "pipeline_parallel_size": 1, "expert_parallel_size": 1},
            "colocated": {"enabled": True, "resources": {"gpus_per_node": None, "num_nodes": None}},
        },
    },
    "cluster": {"gpus_per_node": 1, "num_nodes": 1},
}
# performance/grpo-qwen3-235b-16n8g.yaml @1b37cb8
QWEN_16N8G: dict[str, Any] = {
    "defaults": "./grpo_math_1B.yaml",
    "policy": {
        "dtensor_cfg": {"enabled": False},
        "megatron_cfg": {
            "enabled": True,
            "tensor_model_parallel_size": 2,
            "pipeline_model_parallel_size": 8,
            "context_parallel_size": 2,
            "expert_model_parallel_size": 16,
        },
        "generation": {"vllm_cfg": {"tensor_parallel_size": 16, "async_engine": True}},
    },
    "cluster": {"gpus_per_node": 8, "num_nodes": 16},
}
# performance/grpo-qwen3-235b-32n8g-async-1off.yaml @d8f9995
QWEN_32N8G_ASYNC: dict[str, Any] = {
    "defaults": "./16n8g.yaml",
    "policy": {
        "generation": {
            "colocated": {"enabled": False, "resources": {"num_nodes": 16, "gpus_per_node": 8}},
            "vllm_cfg": {"tensor_parallel_size": 8},
        }
    },
    "cluster": {"gpus_per_node": 8, "num_nodes": 32},
}
# performance/grpo-qwen3-235b-32n4g-async-1off.yaml @2b804ff
QWEN_32N4G_ASYNC: dict[str, Any] = {
    "defaults": ["./32n8g-async.yaml"],
    "policy": {
        "megatron_cfg": {"pipeline_model_parallel_size": 4},
        "generation": {"colocated": {"resources": {"gpus_per_node": 4}}, "vllm_cfg": {"tensor_parallel_size": 8}},
    },
    "cluster": {"gpus_per_node": 4, "num_nodes": 32},
}
# performance/grpo-nemotron3-super-120BA12B-32n4g-async-1off.yaml @6686acc
NEMOTRON: dict[str, Any] = {
    "policy": {
        "dtensor_cfg": {"enabled": False},
        "megatron_cfg": {"enabled": True, "tensor_model_parallel_size": 2, "expert_model_parallel_size": 16},
        "generation": {
            "backend": "vllm",
            "colocated": {"enabled": False, "resources": {"gpus_per_node": 4, "num_nodes": 16}},
            "vllm_cfg": {"async_engine": True, "tensor_parallel_size": 4},
        },
    },
    "cluster": {"gpus_per_node": 4, "num_nodes": 32, "segment_size": 8},
}
# grpo-gptoss-20b-8n4g-megatron.yaml @3e7a7a0 on top of grpo-gptoss-20b-8n8g-megatron.yaml
GPTOSS: dict[str, Any] = {
    "policy": {
        "megatron_cfg": {"enabled": True, "tensor_model_parallel_size": 1, "expert_model_parallel_size": 8},
        "generation": {"backend": "vllm", "vllm_cfg": {"tensor_parallel_size": 1}, "colocated": {"enabled": True}},
    },
    "cluster": {"gpus_per_node": 4, "num_nodes": 8, "segment_size": 8},
}


def racks(*sizes: int, gpus: int = 4, cpus: int = 144) -> dict[str, Any]:
    """Racks of so many nodes, ranks in order."""
    found: list[dict[str, Any]] = []
    for rack, size in enumerate(sizes):
        for place in range(size):
            entry = {"id": f"r{rack}-{place:02d}", "gpus": gpus, "cpus": cpus, "ip": f"10.0.{rack}.{place + 1}"}
            found.append({**entry, "nvlink_domain": f"rack{rack}", "topo_rank": len(found) + 1})
    return {"nodes": found}


def nodes(*gpus: int, cpus: int = 64) -> dict[str, Any]:
    return {"nodes": [{"id": f"n{i}", "gpus": count, "cpus": cpus} for i, count in enumerate(gpus)]}


def small(num_nodes: int, gpus: int, **cluster: int) -> dict[str, Any]:
    return {**BASE, "cluster": {"num_nodes": num_nodes, "gpus_per_node": gpus, **cluster}}


def separate(num_nodes: int, gpus: int, generation: int, tensor: int = 1, **cluster: int) -> dict[str, Any]:
    config = small(num_nodes, gpus, **cluster)
    section = {
        "backend": "vllm",
        "vllm_cfg": {"tensor_parallel_size": tensor},
        "colocated": {"enabled": False, "resources": {"num_nodes": generation, "gpus_per_node": gpus}},
    }
    return {**config, "policy": {**config["policy"], "generation": section}}


@pytest.fixture
def recipes(tmp_path: Path) -> Path:
    for name, data in (
        ("grpo_math_1B", BASE),
        ("16n8g", QWEN_16N8G),
        ("32n8g-async", QWEN_32N8G_ASYNC),
        ("32n4g-async", QWEN_32N4G_ASYNC),
    ):
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(data))
    return tmp_path


class TestImport:
    def test_a_recipe_on_top_of_three_others(self, recipes: Path) -> None:
        found = import_nemo_rl(recipes / "32n4g-async.yaml", racks(18, 18))
        policy, generation = found["components"]["policy"], found["components"]["generation"]
        assert (policy["workers"], policy["per_node"]) == (64, 4)
        assert policy["group"] == {"workers": 16, "within": "nvlink_domain", "mode": "preferred"}
        assert generation["group"]["workers"] == 8
        assert found["rules"]["separate_nodes"] == [["policy", "generation"]] or found["rules"]["separate_nodes"] == [
            ["generation", "policy"]
        ]
        assert placewright.plan(load_problem(found)).goal("groups_split").value == 0

    def test_colocated(self, recipes: Path) -> None:
        found = import_nemo_rl(recipes / "16n8g.yaml", {"nodes": [{"id": "n{}", "count": 16, "gpus": 8, "cpus": 224}]})
        assert sorted(found["rules"]["colocate"][0]) == ["generation", "policy"]
        assert found["components"]["policy"]["cpus"] == 2
        assert found["components"]["generation"]["cpus"] == 0

    def test_segments(self) -> None:
        found = import_nemo_rl(NEMOTRON, racks(18, 18))
        assert found["components"]["policy"]["segment_size"] == 8
        assert found["components"]["policy"]["group"] == {"workers": 16, "within": "nvlink_domain", "mode": "required"}
        assert "segment_size" not in found["components"]["generation"]
        plan = placewright.plan(load_problem(found))
        assert plan.status == "optimal"

    def test_reward_model_and_teachers(self) -> None:
        config = {
            **small(8, 8),
            "data": {"default": {"env_name": "reward_model"}},
            "env": {"reward_model": {"resources": {"num_nodes": 1, "gpus_per_node": 8}}},
            "on_policy_distillation": {
                "enabled": True,
                "teacher_model_by_agent_name": {"math": "/a", "code": "/b"},
                "non_colocated_teachers": {"enabled": True, "default_teacher_cfg": {"num_nodes": 2, "gpus_per_node": 8}},
            },
        }
        counts = {name: c["workers"] for name, c in import_nemo_rl(config, nodes(*[8] * 8))["components"].items()}
        assert counts == {"generation": 24, "policy": 24, "reward": 8, "teacher-0": 16, "teacher-1": 16}

    def test_one_node_is_split_by_gpus(self) -> None:
        config = separate(1, 8, 1)
        config["policy"]["generation"]["colocated"]["resources"] = {"gpus_per_node": 2, "num_nodes": None}
        found = import_nemo_rl(config, nodes(8))
        assert {name: c["workers"] for name, c in found["components"].items()} == {"policy": 6, "generation": 2}
        assert "separate_nodes" not in found.get("rules", {})

    def test_sft_has_no_generation(self) -> None:
        config = {"policy": {"dtensor_cfg": {"tensor_parallel_size": 4}}, "cluster": {"num_nodes": 2, "gpus_per_node": 8}}
        assert list(import_nemo_rl(config, nodes(8, 8))["components"]) == ["policy"]

    def test_what_nemo_rl_refuses_is_invalid(self) -> None:
        config = separate(2, 8, 1)
        config["policy"]["generation"]["colocated"]["resources"] = {"num_nodes": 1, "gpus_per_node": None}
        with pytest.raises(InvalidProblem, match=r"must be set and equal to cluster\.gpus_per_node 8"):
            import_nemo_rl(config, nodes(8, 8))
        assert check_nemo_rl(config, nodes(8, 8)).verdict == "fails"
        with pytest.raises(InvalidProblem, match="no node is left for training"):
            import_nemo_rl(separate(2, 8, 2), nodes(8, 8))

    def test_missing_numbers(self) -> None:
        with pytest.raises(InvalidProblem, match=r"cluster\.num_nodes"):
            read_settings({"policy": {}})

    def test_files_that_name_themselves(self, tmp_path: Path) -> None:
        path = tmp_path / "a.yaml"
        path.write_text("defaults: ./a.yaml\n")
        with pytest.raises(InvalidProblem, match="names itself"):
            import_nemo_rl(path, nodes(8))


class TestCheck:
    def test_real_recipes_start_on_their_hardware(self, recipes: Path) -> None:
        assert check_nemo_rl(recipes / "16n8g.yaml", nodes(*[8] * 16)).starts
        assert check_nemo_rl(recipes / "32n4g-async.yaml", racks(16, 16)).starts
        assert check_nemo_rl(NEMOTRON, racks(18, 18)).starts
        assert check_nemo_rl(GPTOSS, racks(8)).starts

    def test_segments_that_no_rack_holds(self) -> None:
        # the Slurm allocation of examples/nemo-rl-gptoss-8n4g.yaml: 5 nodes of one rack, 4 of another
        report = check_nemo_rl(GPTOSS, racks(5, 4))
        assert report.verdict == "fails"
        assert "Cannot form 1 complete segments of 8 nodes" in report.findings[0]
        assert any("1 segments of 8 whole nodes" in finding for finding in report.findings)
        assert report.change == "cluster.segment_size=4"
        assert check_nemo_rl(GPTOSS, racks(5, 4), ["cluster.segment_size=4"]).starts

    def test_training_takes_the_segments_of_inference(self) -> None:
        # defect N2
        report = check_nemo_rl(separate(3, 4, 2, tensor=8, segment_size=1), racks(2, 1))
        assert report.verdict == "fails"
        assert "nodes of generation" in report.findings[0]
        assert report.change.startswith("a placement exists")

    def test_groups_over_racks(self) -> None:
        # no segments asked, so Ray takes nodes as they come: experts in parallel over 8 GPUs lie in two racks
        config = {**GPTOSS, "cluster": {"num_nodes": 4, "gpus_per_node": 4}}
        report = check_nemo_rl(config, racks(1, 4))
        assert report.verdict == "splits"
        assert "2 NVLink domains (rack0, rack1)" in report.findings[0]
        assert "cluster.segment_size=" in report.change
        assert check_nemo_rl(config, racks(1, 4), ["cluster.segment_size=4"]).starts

    def test_logical_nodes_are_cut(self) -> None:
        report = check_nemo_rl(small(2, 3), nodes(4, 2))
        assert report.verdict == "splits"
        assert "logical node 1 of policy, 3 GPUs, is cut over" in report.findings[0]
        assert any("n1 has 2, needs 3" in finding for finding in report.findings)
        assert "cluster.gpus_per_node=2 cluster.num_nodes=3" in report.change

    def test_cpus_are_short(self) -> None:
        report = check_nemo_rl(small(2, 8), nodes(8, 8, cpus=12))
        assert report.verdict == "fails"
        assert "Not enough CPUs available. Requested 32 CPUs, but only 24" in report.findings[0]
        assert any("CPUs" in finding for finding in report.findings[1:])
        cluster = {"nodes": [*nodes(8, cpus=8)["nodes"], {"id": "host", "gpus": 0, "cpus": 64}]}
        report = check_nemo_rl(small(1, 8), cluster)
        assert report.verdict == "hangs"
        assert "waits" in report.findings[0]

    def test_too_few_gpus(self) -> None:
        report = check_nemo_rl(small(4, 8), nodes(8, 8, 8))
        assert report.verdict == "fails"
        assert "Not enough GPUs available. Requested 32 GPUs, but only 24" in report.findings[0]
        assert report.change.startswith("cluster.num_nodes=3")

    def test_one_group_spread_over_more_nodes(self) -> None:
        config = small(2, 8)
        config["policy"] = {**BASE["policy"], "generation": {"backend": "vllm", "vllm_cfg": {"tensor_parallel_size": 16}}}
        assert check_nemo_rl(config, nodes(8, 8)).starts
        report = check_nemo_rl(config, nodes(8, 8, 8, 8))
        assert report.verdict == "splits"
        assert "on 4 of 4 nodes" in report.findings[0]

    def test_replicas_that_do_not_divide(self) -> None:
        config = small(1, 8)
        config["policy"] = {"megatron_cfg": {"enabled": True, "tensor_model_parallel_size": 3}}
        assert "a model replica is 3 GPUs" in check_nemo_rl(config, nodes(8)).findings[0]

    def test_segments_without_domains_are_noted(self) -> None:
        report = check_nemo_rl(GPTOSS, nodes(*[4] * 8))
        assert report.starts
        assert any("no node tells its NVLink domain" in note for note in report.notes)
