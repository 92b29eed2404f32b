"""RLightning's configurations as problems, and checked: will they start?

The configurations are the values of real files of https://github.com/zyc-bit/RLightning (commit 08396c3), named at each.
Modify this file when RLightning's configuration or its group stage changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

import placewright
from placewright.compat.rlightning_config import check_rlightning, import_rlightning
from placewright_models.codec import load_problem
from placewright_models.errors import InvalidProblem

# examples/wbc_tracking/conf/cluster/8train_8eval.yaml
WBC = """
ray_address: auto
train_worker_num: 8
eval_worker_num: 8
train_each_gpu_num: 1.0
eval_each_gpu_num: 1.0
buffer_worker_num: "auto"
remote_env: True
placement: {mode: "manual"}
resource_pool:
  - name: global_pool
    num_node: 4
    num_gpus: 8
    env: "0-1, 8-9, 16-17, 24-25"
    eval: "2-3, 10-11, 18-19, 26-27"
    train: "4-5, 12-13, 20-21, 28-29"
"""
# examples/wbc_tracking/conf/env/multi_task_x8.yaml, the fields that place
WBC_ENV = [{"name": f"isaaclab_tracking_{i}", "num_workers": 4, "num_cpus": 1, "num_gpus": 1} for i in (1, 2)]
# examples/openvla_ppo/conf/cluster/8t8e_colocate.yaml with conf/env/maniskill_x8.yaml
OPENVLA = {
    "cluster": {
        "train_worker_num": 8,
        "eval_worker_num": 8,
        "placement": {"mode": "auto", "strategy": "colocate", "env_strategy": "device-colocate"},
        "enable_offload": True,
    },
    "env": [{"name": "maniskill", "num_workers": 8, "num_cpus": 1, "num_gpus": 1}],
    "policy": {"type": "VLAPPOPolicy"},
    "buffer": {"type": "RolloutBuffer", "storage": {"device": "cpu"}},
}
# examples/openpi_ppo/conf/cluster/4t4e_manual.yaml with conf/env/libero_x4.yaml
OPENPI = {
    "cluster": {
        "train_worker_num": 4,
        "eval_worker_num": 4,
        "buffer_worker_num": 1,
        "placement": {"mode": "manual"},
        "resource_pool": [
            {"name": "global_pool", "num_node": 1, "num_gpus": 8, "env": "0-3", "eval": "0-3", "train": "4-7"}
        ],
    },
    "env": [{"name": "libero", "num_workers": 4, "num_cpus": 1, "num_gpus": 1}],
}


def nodes(*gpus: int, cpus: int = 64) -> dict[str, Any]:
    return {"nodes": [{"id": f"n{i}", "gpus": count, "cpus": cpus} for i, count in enumerate(gpus)]}


def auto(strategy: str = "disaggregate", env_strategy: str = "default", **fields: Any) -> dict[str, Any]:
    env = fields.pop("env", [])
    policy = fields.pop("policy", {})
    placement = {"mode": "auto", "strategy": strategy, "env_strategy": env_strategy}
    return {"cluster": {"placement": placement, **fields}, "env": env, "policy": policy}


class Attributes:
    """A configuration object with attributes only."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


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
    def test_whole_body_tracking(self) -> None:
        config = {"cluster": yaml.safe_load(WBC), "env": WBC_ENV, "policy": {"type": "PPO"}}
        found = import_rlightning(config, nodes(8, 8, 8, 8))
        counts = {name: entry["workers"] for name, entry in found["components"].items()}
        assert counts == {"train": 8, "eval": 8, "env": 8, "buffer": "auto"}
        assert found["traffic"] == [{"between": ["env", "eval"], "weight": 1}]
        plan = placewright.plan(load_problem(found))
        assert plan.status == "optimal"
        assert plan.goal("traffic").value == 0

    def test_cluster_section_only_takes_env_from_the_written_ranges(self) -> None:
        found = import_rlightning(yaml.safe_load(WBC), nodes(8, 8, 8, 8))
        assert found["components"]["env"]["workers"] == 8

    def test_colocated(self) -> None:
        found = import_rlightning(OPENVLA, nodes(8))
        assert found["rules"]["strategy"] == "colocate"
        assert found["rules"]["env_strategy"] == "device-colocate"
        assert placewright.plan(load_problem(found)).status == "optimal"

    def test_written_overlaps_are_sharing(self) -> None:
        found = import_rlightning(OPENPI, nodes(8))
        assert [sorted(names) for names in found["rules"]["share_gpus"]] == [["env", "eval"]]

    def test_several_pools(self) -> None:
        cluster = {
            "train_worker_num": 2,
            "eval_worker_num": 2,
            "placement": {"mode": "manual"},
            "resource_pool": [
                {"name": "a", "num_node": 1, "num_gpus": 8, "train": "0-1"},
                {"name": "b", "num_node": 1, "num_gpus": 8, "eval": "0-1", "env": 2},
            ],
        }
        found = import_rlightning(cluster, nodes(8, 8))
        assert {pool: sorted(names) for pool, names in found["rules"]["pools"].items()} == {
            "a": ["buffer", "train"],
            "b": ["env", "eval"],
        }

    def test_overrides(self) -> None:
        overrides = ["cluster.train_worker_num=4", "env.0.num_gpus=0.5", "+policy.train_num_gpus=2"]
        found = import_rlightning(OPENVLA, nodes(8, 8), overrides)
        assert found["components"]["train"] | {"workers": 4, "gpus": 2} == found["components"]["train"]
        assert found["components"]["env"]["gpus"] == 0.5
        assert OPENVLA["cluster"]["train_worker_num"] == 8
        assert import_rlightning(yaml.safe_load(WBC), nodes(8, 8), ["cluster.eval_worker_num=3"])["components"]["eval"][
            "workers"
        ] == 3

    @pytest.mark.parametrize("override", ["cluster", "=3", "env.9.num_gpus=1", "cluster.train_worker_num.x=1", "a=[1"])
    def test_bad_overrides(self, override: str) -> None:
        with pytest.raises(InvalidProblem):
            import_rlightning(OPENVLA, nodes(8), [override])

    def test_objects_are_taken_as_mappings(self) -> None:
        expected = import_rlightning(OPENVLA, nodes(8))
        assert import_rlightning(Container(OPENVLA), nodes(8)) == expected
        parts = {key: Attributes(**value) if isinstance(value, dict) else value for key, value in OPENVLA.items()}
        assert import_rlightning(Attributes(**parts), nodes(8)) == expected

    def test_all_faults_of_a_configuration_at_once(self) -> None:
        config = auto("pack", train_worker_num=-1, eval_worker_num="two")
        with pytest.raises(InvalidProblem) as caught:
            import_rlightning(config, nodes(8))
        assert len(caught.value.faults) == 3
        with pytest.raises(InvalidProblem, match="no list of pools"):
            import_rlightning({"placement": {"mode": "manual"}}, nodes(8))
        with pytest.raises(InvalidProblem, match="not a configuration"):
            import_rlightning([1], nodes(8))


class TestCheck:
    @pytest.mark.parametrize(
        ("config", "cluster"),
        [
            ({"cluster": yaml.safe_load(WBC), "env": WBC_ENV}, nodes(8, 8, 8, 8)),
            (OPENVLA, nodes(8)),
            (OPENPI, nodes(8)),
        ],
        ids=["wbc", "openvla", "openpi"],
    )
    def test_real_configurations_start(self, config: dict[str, Any], cluster: dict[str, Any]) -> None:
        report = check_rlightning(config, cluster)
        assert (report.verdict, report.exit_code, report.findings, report.change) == ("starts", 0, (), "")
        assert "will start" in str(report)

    def test_cpus_of_one_node_hang(self) -> None:
        report = check_rlightning(OPENVLA, nodes(8, cpus=24), ["cluster.buffer_worker_num=auto"])
        assert report.verdict == "hangs"
        assert "ask for 25 CPUs and it has 24" in str(report)
        assert report.exit_code == 3
        assert "CPU" in report.change

    def test_an_index_past_the_end_hangs(self) -> None:
        report = check_rlightning(yaml.safe_load(WBC), nodes(8, 8, 8, 8), ["resource_pool.0.num_node=2"])
        assert report.verdict == "hangs"
        assert "16 GPUs end at index 15" in report.findings[0]
        assert "--format rlightning" in report.change

    def test_workers_of_several_gpus_fail_and_are_split(self) -> None:
        config = auto(train_worker_num=1, eval_worker_num=1, policy={"eval_num_gpus": 2})
        report = check_rlightning(config, nodes(2, 2))
        assert report.verdict == "fails"
        assert "eval worker 0 of 2 GPUs is cut over n0 and n1" in report.findings
        assert "eval workers placed number mismatch: 0/1" in report.findings
        assert "GlobalResourceManager" in report.change

    def test_the_stale_count_fails_where_a_placement_exists(self) -> None:
        env = [{"num_workers": 1, "num_gpus": 1}]
        report = check_rlightning(auto("colocate", train_worker_num=0, env=env), nodes(1, 1))
        assert report.verdict == "fails"
        assert "got 1 > 0" in report.findings[0]
        assert "a placement exists" in report.change

    def test_too_few_gpus_names_the_most_that_fit(self) -> None:
        report = check_rlightning(auto(train_worker_num=12, eval_worker_num=0), nodes(8))
        assert report.verdict == "fails"
        assert "required 12" in report.findings[0]
        assert "train_worker_num: 8" in report.change

    def test_a_gap_shifts_the_bundles(self) -> None:
        cluster = {
            "train_worker_num": 2,
            "eval_worker_num": 2,
            "placement": {"mode": "manual"},
            "resource_pool": [{"name": "p", "num_node": 1, "num_gpus": 8, "train": "0-1", "eval": "4-5"}],
        }
        report = check_rlightning(cluster, nodes(8))
        assert report.verdict == "hangs"
        assert "2 unused GPUs of n0 lie before used ones" in report.findings[0]

    def test_more_than_ten_workers_on_a_gpu(self) -> None:
        config = auto(train_worker_num=0, eval_worker_num=0, env=[{"num_workers": 11, "num_gpus": 0.09}])
        report = check_rlightning(config, nodes(1))
        assert report.verdict == "hangs"
        assert "nowhere: 1 GPUs are left" in report.findings[0]
        config = auto(train_worker_num=0, eval_worker_num=0, env=[{"num_workers": 11, "num_gpus": 0.0909091}])
        assert not check_rlightning(config, nodes(1)).starts

    def test_default_strategy(self) -> None:
        assert check_rlightning(auto("default"), nodes(8)).starts
        report = check_rlightning(auto("default", train_worker_num=9), nodes(8))
        assert report.verdict == "hangs"
        report = check_rlightning(auto("default", buffer_worker_num="auto"), nodes(0, 8))
        assert "ZeroDivisionError" in report.findings[0]

    def test_report_as_data(self) -> None:
        report = check_rlightning(yaml.safe_load(WBC), nodes(8, 8, 8, 8))
        assert report.to_dict()["verdict"] == "starts"
        assert report.notes
