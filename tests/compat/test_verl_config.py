"""verl's configurations as problems, and checked: will they start?

The configurations are the values of real files of verl (volcengine/verl, now verl-project/verl), named at each, and the verl
cases of the field cases (issues 2596, 1182 and pull request 6663 there). Modify this file when verl's configuration changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import placewright
from placewright.compat.verl_config import check_verl, import_verl, read_settings
from placewright_models.codec import load_problem
from placewright_models.errors import InvalidProblem
from placewright_models.ranges import indices_of

# verl/trainer/config/_generated_ppo_trainer.yaml of release 0.9.1, the fields that place
DEFAULTS: dict[str, Any] = {
    "actor_rollout_ref": {
        "actor": {"ulysses_sequence_parallel_size": 1, "use_kl_loss": False},
        "rollout": {
            "name": "???",
            "nnodes": 0,
            "n_gpus_per_node": "${oc.select:trainer.n_gpus_per_node,8}",
            "tensor_model_parallel_size": 2,
            "data_parallel_size": 1,
            "pipeline_model_parallel_size": 1,
        },
        "hybrid_engine": True,
    },
    "critic": {"enable": None},
    "reward": {"reward_model": {"enable": False, "enable_resource_pool": False, "n_gpus_per_node": 8, "nnodes": 0}},
    "algorithm": {"adv_estimator": "gae", "use_kl_in_reward": False},
    "distillation": {"enabled": False, "n_gpus_per_node": 8, "nnodes": 0},
    "trainer": {"nnodes": 1, "n_gpus_per_node": 8},
}
# examples/grpo_trainer/run_qwen2-7b.sh @03aefba
QWEN2_7B = [
    "algorithm.adv_estimator=grpo",
    "actor_rollout_ref.actor.use_kl_loss=True",
    "actor_rollout_ref.rollout.tensor_model_parallel_size=2",
    "trainer.n_gpus_per_node=8",
    "trainer.nnodes=1",
]
# examples/grpo_trainer/run_qwen3-236b_megatron.sh @4beea36
QWEN3_236B = [
    "algorithm.adv_estimator=grpo",
    "actor_rollout_ref.actor.use_kl_loss=False",
    "actor_rollout_ref.actor.megatron.pipeline_model_parallel_size=8",
    "actor_rollout_ref.actor.megatron.tensor_model_parallel_size=4",
    "actor_rollout_ref.actor.megatron.expert_model_parallel_size=4",
    "actor_rollout_ref.rollout.tensor_model_parallel_size=8",
    "trainer.n_gpus_per_node=8",
    "trainer.nnodes=32",
]
# recipe/one_step_off_policy/shell/grpo_0.6b_gsm8k_fsdp2_2_6.sh @1aa50bc
ONE_STEP_OFF = [
    "algorithm.adv_estimator=grpo",
    "actor_rollout_ref.hybrid_engine=False",
    "actor_rollout_ref.actor.use_kl_loss=True",
    "actor_rollout_ref.rollout.tensor_model_parallel_size=1",
    "trainer.nnodes=1",
    "trainer.n_gpus_per_node=6",
    "rollout.nnodes=1",
    "rollout.n_gpus_per_node=2",
]
GRPO = ["algorithm.adv_estimator=grpo"]


def nodes(*gpus: int, cpus: float | None = 96, **fields: Any) -> dict[str, Any]:
    return {"nodes": [{"id": f"n{i}", "gpus": count, "cpus": cpus, **fields} for i, count in enumerate(gpus)]}


def sized(nnodes: int, n_gpus: int, tensor: int = 1, *more: str) -> list[str]:
    rollout = f"actor_rollout_ref.rollout.tensor_model_parallel_size={tensor}"
    return [*GRPO, f"trainer.nnodes={nnodes}", f"trainer.n_gpus_per_node={n_gpus}", rollout, *more]


class Container:
    """A configuration object with a mapping's methods that is none, as OmegaConf's."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def keys(self) -> Any:
        return self._data.keys()

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __getitem__(self, key: str) -> Any:
        value = self._data[key]
        return Container(value) if isinstance(value, dict) else value


class TestImport:
    def test_qwen2_7b(self) -> None:
        found = import_verl(DEFAULTS, nodes(8), QWEN2_7B)
        counts = {name: (entry["workers"], entry["gpus"], entry["cpus"]) for name, entry in found["components"].items()}
        assert counts == {"actor": (8, 1, 3), "ref": (8, 1, 0), "rollout": (4, 2, 0)}
        assert found["rules"]["pools"] == {"global_pool": ["actor", "ref", "rollout"]}
        assert found["rules"]["colocate"] == [["actor", "rollout", "ref"]]
        assert placewright.plan(load_problem(found)).status == "optimal"

    def test_gae_has_a_critic(self) -> None:
        assert "critic" in import_verl(DEFAULTS, nodes(8))["components"]
        assert "critic" not in import_verl(DEFAULTS, nodes(8), ["critic.enable=false"])["components"]

    def test_qwen3_236b(self) -> None:
        found = import_verl(DEFAULTS, {"nodes": [{"id": "h20-{}", "count": 32, "gpus": 8, "cpus": 192}]}, QWEN3_236B)
        assert found["components"]["actor"]["workers"] == 256
        assert found["components"]["actor"]["group"] == {"workers": 8, "within": "node", "mode": "required"}
        assert found["components"]["rollout"]["workers"] == 32

    def test_one_step_off_policy_has_a_pool_for_the_rollout(self) -> None:
        found = import_verl(DEFAULTS, nodes(8), ONE_STEP_OFF)
        assert found["rules"]["pools"] == {"global_pool": ["actor", "ref"], "rollout_pool": ["rollout"]}
        assert found["components"]["rollout"]["cpus"] == 2
        plan = placewright.plan(load_problem(found))
        used = [(w.node_id, i) for name in ("actor", "rollout") for w in plan.workers[name] for i in indices_of(w.ranges)]
        assert len(set(used)) == 8

    def test_pools_of_their_own_for_reward_model_and_teacher(self) -> None:
        overrides = [
            *QWEN2_7B,
            "reward.reward_model.enable=true",
            "reward.reward_model.enable_resource_pool=true",
            "reward.reward_model.nnodes=1",
            "reward.reward_model.n_gpus_per_node=4",
            "distillation.enabled=true",
            "distillation.nnodes=1",
            "distillation.n_gpus_per_node=4",
        ]
        found = import_verl(DEFAULTS, nodes(8, 8), overrides)
        assert found["rules"]["pools"]["reward_pool"] == ["reward"]
        assert found["components"]["reward"]["workers"] == 2
        assert found["components"]["teacher"]["workers"] == 4
        assert check_verl(DEFAULTS, nodes(8, 8), overrides).starts

    def test_spec_and_mapping(self) -> None:
        # examples/split_placement/split_monkey_patch.py: actor, ref and rollout in one pool, the critic in another
        config = {
            "resource_pool_spec": {"actor_rollout_ref_pool": [4, 4], "critic_pool": [4, 4]},
            "mapping": {
                "Role.ActorRollout": "actor_rollout_ref_pool",
                "Role.RefPolicy": "actor_rollout_ref_pool",
                "critic": "critic_pool",
            },
            **{key: DEFAULTS[key] for key in ("actor_rollout_ref", "algorithm")},
        }
        found = import_verl(config, nodes(8, 8))
        assert found["rules"]["pools"] == {"actor_rollout_ref_pool": ["actor", "ref", "rollout"], "critic_pool": ["critic"]}
        assert check_verl(config, nodes(8, 8)).starts

    def test_replicas_wider_than_a_node(self) -> None:
        found = import_verl(DEFAULTS, nodes(8, 8), sized(2, 8, 16))
        assert found["components"]["rollout"]["group"]["workers"] == 16
        assert found["components"]["rollout"]["group"]["mode"] == "preferred"

    def test_objects_files_and_references(self, tmp_path: Path) -> None:
        import yaml

        wanted = import_verl(DEFAULTS, nodes(8), QWEN2_7B)
        assert import_verl(Container(DEFAULTS), nodes(8), QWEN2_7B) == wanted
        path = tmp_path / "trainer.yaml"
        path.write_text(yaml.safe_dump(DEFAULTS))
        assert import_verl(path, nodes(8), QWEN2_7B) == wanted
        settings = read_settings(DEFAULTS, ["actor_rollout_ref.rollout.nnodes=2", "trainer.n_gpus_per_node=4"])
        assert settings.standalone == (4, 4)

    @pytest.mark.parametrize(
        ("overrides", "words"),
        [
            (["trainer.nnodes=0"], "trainer.nnodes: 0 is not a whole number"),
            (["trainer.nnodes=two"], "'two' is not a whole number"),
            (["trainer"], "no override"),
            (["resource_pool_spec.a=8"], "write name: "),
            (["resource_pool_spec.a=[8]", "mapping.actor=b"], "there is no pool b"),
            (["resource_pool_spec.a=[8]", "mapping.boss=a"], "is no role of verl"),
        ],
    )
    def test_wrong_configurations_say_what_is_wrong(self, overrides: list[str], words: str) -> None:
        with pytest.raises(InvalidProblem, match=words.replace("[", r"\[")):
            import_verl(DEFAULTS, nodes(8), overrides)


class TestCheck:
    @pytest.mark.parametrize(
        ("overrides", "cluster"), [(QWEN2_7B, nodes(8)), (QWEN3_236B, nodes(*[8] * 32)), (ONE_STEP_OFF, nodes(8))]
    )
    def test_real_configurations_start_on_their_hardware(self, overrides: list[str], cluster: dict[str, Any]) -> None:
        report = check_verl(DEFAULTS, cluster, overrides)
        assert report.verdict == "starts"
        assert report.exit_code == 0
        assert any("max_colocate_count" in note for note in report.notes)

    def test_four_and_two_gpus(self) -> None:
        # issue 2596: 2 x 3 passes the check of the total and waits for ever
        report = check_verl(DEFAULTS, nodes(4, 2), sized(2, 3))
        assert report.verdict == "hangs"
        assert report.exit_code == 3
        text = str(report)
        assert "group 2 of 2 of global_pool asks 3 GPUs" in text
        assert "n1 2 GPUs" in text
        assert "total" not in text.lower()
        assert "trainer.nnodes=3 trainer.n_gpus_per_node=2 (the same 6 GPUs" in report.change
        assert check_verl(DEFAULTS, nodes(4, 2), sized(3, 2)).starts

    def test_eight_and_four_gpus(self) -> None:
        # issue 1182: two nodes of 8 and 4 GPUs, engines of 4
        report = check_verl(DEFAULTS, nodes(8, 4), sized(2, 6, 4))
        assert report.verdict == "hangs"
        assert "trainer.nnodes=3 trainer.n_gpus_per_node=4" in report.change
        assert check_verl(DEFAULTS, nodes(8, 4), sized(3, 4, 4)).starts

    def test_eight_four_and_four(self) -> None:
        report = check_verl(DEFAULTS, nodes(8, 4, 4), sized(2, 8))
        assert report.verdict == "hangs"
        assert any("2 groups of 8 workers" in finding and "n0: 1" in finding for finding in report.findings)

    def test_cpus_are_short_on_a_node(self) -> None:
        # pull request 6663: the sums of GPUs and CPUs pass, the node with the GPUs has 10 CPUs
        cluster = {"nodes": [{"id": "A", "gpus": 8, "cpus": 10}, {"id": "B", "gpus": 0, "cpus": 200}]}
        report = check_verl(DEFAULTS, cluster, sized(1, 8))
        assert report.verdict == "hangs"
        text = "\n".join(report.findings)
        assert "24 CPUs" in text
        assert "A: 10 free of 10" in text
        assert "at most 3 of 8" in text
        assert "not enough GPUs" not in str(report)
        assert check_verl(DEFAULTS, cluster, sized(1, 3)).starts

    def test_cpus_held_by_others(self) -> None:
        cluster = {"nodes": [{"id": "A", "gpus": 8, "cpus": 32, "cpus_in_use": 12}]}
        report = check_verl(DEFAULTS, cluster, sized(1, 8))
        assert report.verdict == "hangs"
        assert any("20 free of 32" in finding for finding in report.findings)

    def test_gpus_in_use_fail_the_check_of_the_total(self) -> None:
        # issue 5954: 7 of 8 free
        cluster = {"nodes": [{"id": "n0", "gpus": 8, "cpus": 96, "unavailable_gpus": [0]}]}
        report = check_verl(DEFAULTS, cluster, sized(1, 8))
        assert report.verdict == "fails"
        assert "Total available GPUs 7 is less than total desired GPUs 8" in report.findings[0]
        assert report.change.startswith("trainer.nnodes=1 trainer.n_gpus_per_node=7")

    def test_holes_do_not_matter_to_ray(self) -> None:
        cluster = {"nodes": [{"id": "n0", "gpus": 8, "cpus": 96, "unavailable_gpus": [3]}]}
        assert check_verl(DEFAULTS, cluster, sized(1, 7)).starts

    def test_engines_cut_over_nodes(self) -> None:
        report = check_verl(DEFAULTS, nodes(8, 8), sized(2, 6, 4))
        assert report.verdict == "splits"
        assert "rollout replica 1 of 4 GPUs is cut over n0 and n1" in report.findings
        assert "trainer.nnodes=3 trainer.n_gpus_per_node=4" in report.change

    def test_engines_over_domains(self) -> None:
        # addresses go by text: 10.0.0.10 stands before 10.0.0.9, so ranks 8-15 are not in one rack
        cluster = {
            "nodes": [
                {"id": f"n{i}", "gpus": 4, "ip": f"10.0.0.{i}", "nvlink_domain": "left" if i < 10 else "right"}
                for i in range(8, 12)
            ]
        }
        assert check_verl(DEFAULTS, cluster, sized(4, 4, 8)).starts
        cluster["nodes"][2]["nvlink_domain"] = "left"
        cluster["nodes"][0]["nvlink_domain"] = "right"
        report = check_verl(DEFAULTS, cluster, sized(4, 4, 8))
        assert report.verdict == "splits"
        assert "NVLink domains left and right" in report.findings[0]
        assert "PLACEWRIGHT_PLAN" in report.change

    def test_engines_that_do_not_divide(self) -> None:
        assert "is not divisible by 4" in check_verl(DEFAULTS, nodes(8), sized(1, 6, 4)).findings[0]
        report = check_verl(DEFAULTS, nodes(8, 8, 8, 8), sized(4, 6, 8))
        assert report.verdict == "fails"
        assert "must be divisible by gpus_per_node 6" in report.findings[0]

    @pytest.mark.parametrize(("counts", "verdict"), [([4, 2], "fails"), ([2, 4], "hangs")])
    def test_unequal_pools(self, counts: list[int], verdict: str) -> None:
        config = {**DEFAULTS, "resource_pool_spec": {"p": counts}, "mapping": {"actor": "p"}}
        cluster = {"nodes": [{"id": f"n{i}", "gpus": gpus, "ip": f"10.0.0.{i}"} for i, gpus in enumerate(counts)]}
        report = check_verl(config, cluster)
        assert report.verdict == verdict
        assert "resource_pool_spec.p=[2, 2, 2]" in report.change

    def test_a_small_pool_takes_the_large_node(self) -> None:
        config = {**DEFAULTS, "resource_pool_spec": {"a": [4], "b": [8]}, "mapping": {"critic": "a", "actor": "b"}}
        report = check_verl(config, nodes(8, 4), GRPO)
        assert report.verdict == "hangs"
        assert "group 1 of 1 of b asks 8 GPUs" in report.findings[0]
        assert "a placement exists" in report.change

    def test_too_few_for_the_replicas(self) -> None:
        report = check_verl(DEFAULTS, nodes(7), ONE_STEP_OFF)
        assert report.verdict == "fails"
        assert "Total available GPUs 0" in report.findings[0]
