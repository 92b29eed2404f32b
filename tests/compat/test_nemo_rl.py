"""NeMo-RL's virtual cluster: recorded cases, the cluster on a stand-in for Ray, and what NeMo-RL lacks.

The recorded cases fix the functions that exist today, defects included. N1..N8 are mended beside them: N1 and N2 in
``select_segments``, N3..N6 in ``order_bundles_by_topology``, N7 in ``node_pins``; N8 is no defect by our rules (the
nodes of a segment need not be adjacent).
"""

from __future__ import annotations

import itertools
import json
import pickle
import random
import socket
import subprocess
import sys
import types
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from placewright.compat import nemo_rl
from placewright.compat.nemo_rl import (
    ClusterConfig,
    RayVirtualCluster,
    ResourceInsufficientError,
    SegmentRole,
    check_group_span,
    node_pins,
    order_bundles_by_topology,
    select_segment_nodes,
    select_segments,
)

CASES = [json.loads(line) for line in (Path(__file__).parents[1] / "vectors" / "nemo.jsonl").read_text().splitlines()]


def as_topology(rows: list[list[Any]] | None) -> dict[str, tuple[str, int]] | None:
    return None if rows is None else {node: (domain, rank) for node, domain, rank in rows}


def as_rows(topology: dict[str, tuple[str, int]]) -> list[list[Any]]:
    return [[node, domain, rank] for node, (domain, rank) in topology.items()]


def run_case(case: dict[str, Any]) -> dict[str, Any]:
    if case["fn"] == "select_segment_nodes":
        topology = as_topology(case["topology"])
        selected, remaining = select_segment_nodes(topology or {}, case["segment_size"], case["num_nodes"])
        return {"selected": selected, "remaining": remaining}
    if case["fn"] == "prepare_segment_topology":
        role = {"role": case["role"]} if "role" in case else {}
        topology = as_topology(case.get("topology"))
        constraints, remaining, used = nemo_rl.prepare_segment_topology(
            case["segment_size"], case["num_nodes"], topology=topology, **role
        )
        return {"constraints": constraints, "remaining": remaining, "topology": as_rows(used)}
    if case["fn"] == "get_ray_cluster_topology":
        return {"topology": as_rows(nemo_rl.get_ray_cluster_topology())}
    arguments = {key: case[key] for key in ("segment_size", "gpus_per_node") if key in case}
    data = [tuple(row) for row in case["bundle_data"]]
    return {"indices": nemo_rl._sort_bundle_indices_by_topology(data, **arguments)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_recorded_case(case: dict[str, Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(nemo_rl, "ray", types.SimpleNamespace(nodes=lambda: case["ray_nodes"]))
    try:
        result = {"status": "ok"} | run_case(case)
    except Exception as error:
        result = {"status": "error", "error": {"type": type(error).__name__, "message": str(error)}}
    if "stdout" in case["expect"]:
        result["stdout"] = capsys.readouterr().out
    assert result == case["expect"]


# --- the cluster on a stand-in for Ray -------------------------------------------------------------------------------


class Group:
    def __init__(self, bundles: list[dict[str, float]], strategy: str, name: str) -> None:
        self.bundle_specs, self.strategy, self.name, self.id = bundles, strategy, name, name

    def ready(self) -> str:
        return self.name


class Stage:
    """A stand-in for the Ray of the module, and a record of what was asked of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, gpus: int = 16, cpus: int = 64) -> None:
        self.created: list[Group] = []
        self.removed: list[Group] = []
        self.slept: list[float] = []
        self.wait_error: Exception | None = None
        self.ray = mock.MagicMock()
        self.ray.cluster_resources.return_value = {"GPU": float(gpus), "CPU": float(cpus)}
        self.ray.get.side_effect = self.get
        self.ray.exceptions.GetTimeoutError = type("GetTimeoutError", (Exception,), {})
        monkeypatch.setattr(nemo_rl, "ray", self.ray)
        monkeypatch.setattr(nemo_rl, "placement_group", self.create)
        monkeypatch.setattr(nemo_rl, "remove_placement_group", self.removed.append)
        monkeypatch.setattr(nemo_rl.time, "sleep", self.slept.append)

    def create(self, bundles: list[dict[str, float]], strategy: str, name: str) -> Group:
        self.created.append(Group(bundles, strategy, name))
        return self.created[-1]

    def get(self, refs: list[Any], timeout: float | None = None) -> list[Any]:
        if timeout is not None and self.wait_error is not None:
            raise self.wait_error
        return refs


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.delenv("NRL_VIRTUAL_CLUSTER_MAX_RETRIES", raising=False)
    return Stage(monkeypatch)


def test_a_group_per_node_skips_empty_nodes(stage: Stage) -> None:
    cluster = RayVirtualCluster([2, 0, 1], max_colocated_worker_groups=3, name="c")
    groups = cluster._init_placement_groups()
    assert [(group.name, group.strategy) for group in groups] == [("c-node0", "PACK"), ("c-node2", "PACK")]
    assert groups[0].bundle_specs == [{"CPU": 3, "GPU": 1}] * 2
    assert cluster._init_placement_groups() is groups
    assert cluster.get_placement_groups() == groups
    assert (cluster.world_size(), cluster.node_count()) == (3, 2)
    assert cluster._sorted_bundle_indices is None
    assert stage.ray.get.call_args.kwargs["timeout"] == 180


def test_a_unified_group_holds_all_bundles_with_their_pins(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Any] = {}

    def reordered(pg: Any, segment_size: int | None, gpus_per_node: int | None) -> Any:
        seen.update(segment_size=segment_size, gpus_per_node=gpus_per_node)
        return [2, 0, 1], [0, 0, 1], ("d1", "d1", "d0")

    monkeypatch.setattr(nemo_rl, "get_reordered_bundle", reordered)
    pins = [{"nvlink_domain_a": 0.001}, {}]
    cluster = RayVirtualCluster([2, 1], name="c", segment_size=1, num_gpus_per_node=2, node_resource_constraints=pins)
    (group,) = cluster._init_placement_groups(strategy="PACK", use_unified_pg=True)
    assert (group.name, group.strategy) == ("c-unified", "PACK")
    pinned = {"CPU": 1, "GPU": 1, "nvlink_domain_a": 0.001}
    assert group.bundle_specs == [pinned, pinned, {"CPU": 1, "GPU": 1}]
    assert cluster._sorted_bundle_indices == [2, 0, 1]
    assert cluster._nvlink_domain_per_bundle_index == ("d1", "d1", "d0")
    assert seen == {"segment_size": 1, "gpus_per_node": 2}


def test_the_default_strategy_is_the_clusters(stage: Stage) -> None:
    cluster = RayVirtualCluster([1], use_gpus=False, placement_group_strategy="STRICT_PACK")
    (group,) = cluster._init_placement_groups(use_unified_pg=True)
    assert group.strategy == "STRICT_PACK"
    assert group.bundle_specs == [{"CPU": 1, "GPU": 0}]
    assert cluster._sorted_bundle_indices is None


def test_trimmed_bundles_are_an_error(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nemo_rl, "get_reordered_bundle", lambda pg, segment_size, gpus_per_node: ([0], [0], ("a", "a")))
    with pytest.raises(AssertionError, match="returned 1 bundle indices but the cluster has 2"):
        RayVirtualCluster([2], segment_size=1)._init_placement_groups(use_unified_pg=True)
    with pytest.raises(ValueError, match="must be initialized"):
        RayVirtualCluster([2])._get_sorted_bundle_indices()


def test_too_few_gpus_are_waited_for_with_doubling_pauses(stage: Stage, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ResourceInsufficientError, match=r"Maximum number of retries reached \(6\)"):
        RayVirtualCluster([8, 8, 8]).get_placement_groups()
    assert stage.slept == [1, 2, 4, 8, 16, 32]
    told = capsys.readouterr().out
    assert "Not enough GPUs available. Requested 24 GPUs, but only 16 are available in the cluster." in told
    assert "Retrying placement group creation... 6/6. Next retry in 32 seconds." in told


def test_resources_that_appear_end_the_waiting(stage: Stage) -> None:
    few, enough = {"GPU": 1.0, "CPU": 9.0}, {"GPU": 2.0, "CPU": 9.0}
    stage.ray.cluster_resources.side_effect = [few, few, enough]
    assert len(RayVirtualCluster([2]).get_placement_groups()) == 1
    assert stage.slept == [1, 2]


def test_too_few_cpus_are_named(stage: Stage) -> None:
    with pytest.raises(ResourceInsufficientError, match="Requested 80 CPUs, but only 64"):
        RayVirtualCluster([8], max_colocated_worker_groups=10)._create_placement_groups_internal("PACK")


@pytest.mark.parametrize(
    ("value", "error"), [("abc", ValueError), ("1.5", ValueError), ("0", AssertionError), ("-1", AssertionError)]
)
def test_bad_numbers_of_retries(value: str, error: type[Exception], stage: Stage, monkeypatch: Any) -> None:
    monkeypatch.setenv("NRL_VIRTUAL_CLUSTER_MAX_RETRIES", value)
    with pytest.raises(error):
        RayVirtualCluster([1]).get_placement_groups()


def test_the_number_of_retries_is_read_from_the_environment(stage: Stage, monkeypatch: Any) -> None:
    monkeypatch.setenv("NRL_VIRTUAL_CLUSTER_MAX_RETRIES", "2")
    with pytest.raises(ResourceInsufficientError):
        RayVirtualCluster([99]).get_placement_groups()
    assert stage.slept == [1, 2]


@pytest.mark.parametrize("builtin", [True, False])
def test_groups_that_do_not_get_ready_are_removed(builtin: bool, stage: Stage) -> None:
    stage.wait_error = TimeoutError() if builtin else stage.ray.exceptions.GetTimeoutError()
    with pytest.raises(TimeoutError, match="Timed out waiting for placement groups"):
        RayVirtualCluster([1, 1]).get_placement_groups()
    assert stage.removed == stage.created
    assert stage.slept == []


def test_other_errors_while_waiting_pass_through(stage: Stage) -> None:
    stage.wait_error = RuntimeError("connection lost")
    with pytest.raises(RuntimeError, match="connection lost"):
        RayVirtualCluster([1]).get_placement_groups()


def test_bad_arguments() -> None:
    with pytest.raises(AssertionError, match=r"length \(1\) must match bundle_ct_per_node_list length \(2\)"):
        RayVirtualCluster([1, 1], node_resource_constraints=[{}])
    with pytest.raises(AssertionError, match="greater than 0 if using GPUs"):
        RayVirtualCluster([1], num_gpus_per_node=0)
    RayVirtualCluster([1], num_gpus_per_node=0, use_gpus=False)


def test_shutdown_removes_once_and_leaves_a_gone_ray_alone(stage: Stage) -> None:
    cluster = RayVirtualCluster([1, 1])
    cluster.get_placement_groups()
    stage.ray.is_initialized.return_value = False
    assert cluster.shutdown() is True
    assert stage.removed == []
    stage.ray.is_initialized.return_value = True
    assert cluster.shutdown() is True
    assert cluster.shutdown() is True
    assert stage.removed == stage.created
    assert cluster._node_placement_groups is None


def test_shutdown_goes_on_after_a_group_that_cannot_be_removed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = RayVirtualCluster([1, 1], name="c")
    cluster.get_placement_groups()
    monkeypatch.setattr(nemo_rl, "remove_placement_group", mock.Mock(side_effect=[RuntimeError("no"), None]))
    assert cluster.shutdown() is True
    assert "Error removing placement group c-node0: no" in capsys.readouterr().out
    assert cluster._node_placement_groups is None


def test_the_finaliser_removes_the_groups(stage: Stage) -> None:
    cluster = RayVirtualCluster([1])
    cluster.get_placement_groups()
    del cluster
    assert stage.removed == stage.created


def port_task(monkeypatch: pytest.MonkeyPatch, answers: Any) -> list[Any]:
    """Replace the port task and Ray's scheduling strategy; gives the list of (group, bundle, options, range) asked."""
    asked: list[Any] = []

    def strategy(placement_group: Any, placement_group_bundle_index: int) -> Any:
        return placement_group.name, placement_group_bundle_index

    def options(scheduling_strategy: Any, num_cpus: float) -> Any:
        assert num_cpus == 0

        def remote(low: int, high: int) -> Any:
            asked.append((*scheduling_strategy, low, high))
            return answers(len(asked) - 1)

        return types.SimpleNamespace(remote=remote)

    monkeypatch.setattr(nemo_rl, "PlacementGroupSchedulingStrategy", strategy)
    monkeypatch.setattr(nemo_rl, "_get_node_ip_and_free_port", types.SimpleNamespace(options=options))
    return asked


def test_addresses_come_in_the_order_asked(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = port_task(monkeypatch, lambda number: (f"ip{number}", number))
    cluster = RayVirtualCluster([2, 2], name="c", port_range_low=10, port_range_high=20)
    found = cluster.get_available_addresses_and_ports_batch([(1, 1), (0, 0)])
    assert found == [("ip0", 0), ("ip1", 1)]
    assert asked == [("c-node1", 1, 10, 20), ("c-node0", 0, 10, 20)]
    assert cluster.get_available_address_and_port(1, 0) == ("ip2", 2)


def test_many_addresses_are_fetched_in_batches_and_keep_their_order(stage: Stage, monkeypatch: Any) -> None:
    port_task(monkeypatch, lambda number: ("ip", number))

    def wait(refs: list[Any], num_returns: int) -> tuple[list[Any], list[Any]]:
        assert num_returns <= 4
        return refs[::-1][:num_returns], refs[: len(refs) - num_returns]

    stage.ray.wait.side_effect = wait
    cluster = RayVirtualCluster([10])
    found = cluster.get_available_addresses_and_ports_batch([(7, b) for b in range(10)], batch_size=4)
    assert found == [("ip", number) for number in range(10)]
    assert stage.ray.wait.call_count == 3


def test_master_ports_are_unique_and_on_the_first_rank(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    ports = [1500, 1500, 1501]
    asked = port_task(monkeypatch, lambda number: ("ip", ports[min(number, 2)]))
    cluster = RayVirtualCluster([2], name="c")
    cluster.get_placement_groups()
    cluster._sorted_bundle_indices = [1, 0]
    assert [cluster.get_master_address_and_port() for _ in range(2)] == [("ip", 1500), ("ip", 1501)]
    assert {entry[:2] for entry in asked} == {("c-node0", 1)}
    with pytest.raises(RuntimeError, match="Failed to find a unique master port after 10 retries"):
        cluster.get_master_address_and_port()
    assert asked[0][2:] == (nemo_rl.DEFAULT_MASTER_PORT_RANGE_LOW, nemo_rl.DEFAULT_MASTER_PORT_RANGE_HIGH)


def test_bundles_are_probed_and_reordered(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    infos = [(0, "d", 2), (1, "d", 2), (0, "d", 1), (1, "d", 1)]
    nodes = {0: "n2", 1: "n2", 2: "n1", 3: "n1"}
    table = {"bundles": dict(enumerate(infos)), "bundles_to_node_id": nodes}
    options: list[dict[str, Any]] = []

    def probe(**given: Any) -> Any:
        options.append(given)
        return types.SimpleNamespace(remote=lambda: infos[given["scheduling_strategy"][1]])

    monkeypatch.setattr(nemo_rl, "placement_group_table", lambda pg: table)
    monkeypatch.setattr(nemo_rl, "_get_gpu_id_info", types.SimpleNamespace(options=probe))
    monkeypatch.setattr(
        nemo_rl,
        "PlacementGroupSchedulingStrategy",
        lambda placement_group, placement_group_bundle_index: (placement_group, placement_group_bundle_index),
    )
    assert nemo_rl.get_reordered_bundle("pg") == ([2, 3, 0, 1], [0, 1, 0, 1], ("d", "d", "d", "d"))
    assert {key: options[0][key] for key in ("num_cpus", "num_gpus", "resources")} == {
        "num_cpus": 0.01,
        "num_gpus": 0.01,
        "resources": None,
    }
    nested = nemo_rl.get_reordered_bundle("pg", segment_size=1, gpus_per_node=2, order="nested")
    assert nested[0] == [2, 3, 0, 1]


def test_the_cluster_can_ask_for_the_nested_order(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = mock.Mock(return_value=([0], [0], ("a",)))
    monkeypatch.setattr(nemo_rl, "get_reordered_bundle", seen)
    RayVirtualCluster([1], bundle_order="nested")._init_placement_groups(use_unified_pg=True)
    assert seen.call_args.kwargs["order"] == "nested"


# --- helpers -----------------------------------------------------------------------------------------------------------


def test_gpu_info_reads_the_nodes_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = mock.MagicMock()
    ray.get_gpu_ids.return_value = ["10"]
    ray.get_runtime_context().get_node_id.return_value = "n"
    ray.nodes.return_value = [{"NodeID": "m"}, {"NodeID": "n", "Resources": {"nvlink_domain_x": 1.0, "topo_rank": 3.0}}]
    monkeypatch.setattr(nemo_rl, "ray", ray)
    assert nemo_rl._get_gpu_id_info._function() == (10, "nvlink_domain_x", 3)
    ray.nodes.return_value = []
    ray.get_gpu_ids.return_value = ["MIG-1"]
    assert nemo_rl._get_gpu_id_info._function() == ("MIG-1", "unknown", -1)


def test_tasks_are_made_once_with_the_ray_of_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        ray = mock.MagicMock()
        monkeypatch.setattr(nemo_rl, "ray", ray)
        nemo_rl._get_gpu_id_info.options(num_cpus=0).remote()
        nemo_rl._get_gpu_id_info.remote()
        ray.remote.assert_called_once_with(num_gpus=1)
    nemo_rl._get_node_ip_and_free_port.remote(1, 2)
    ray.remote.assert_called_with(nemo_rl._get_node_ip_and_free_port._function)


def test_the_port_task_uses_the_modules_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nemo_rl, "_get_node_ip_local", lambda: "1.2.3.4")
    monkeypatch.setattr(nemo_rl, "_bind_socket_in_range", lambda sock, low, high, **rest: sock.bind(("", 0)) or low)
    assert nemo_rl._get_node_ip_and_free_port._function(7, 9) == ("1.2.3.4", 7)
    ray = mock.MagicMock()
    ray._private.services.get_node_ip_address.return_value = "4.3.2.1"
    monkeypatch.undo()
    monkeypatch.setattr(nemo_rl, "ray", ray)
    assert nemo_rl._get_node_ip_local() == "4.3.2.1"


@pytest.fixture
def free_block() -> int:
    """First of ten ports that are free now."""
    for low in range(20_000, 30_000, 10):
        if nemo_rl._get_free_consecutive_ports_local(low, low + 5_000, 10) == low:
            return low
    raise AssertionError("no ten free ports")


def test_ports_are_taken_from_the_half_open_range(free_block: int) -> None:
    low = free_block
    assert nemo_rl._get_free_port_local(low, low + 1) == low
    found = nemo_rl._get_free_port_local(low, low + 3, max_retries=None, excluded_ports={low, low + 2})
    assert found == low + 1
    with socket.socket() as held:
        held.bind(("", low))
        held.listen(1)
        with pytest.raises(RuntimeError, match=rf"range \[{low}, {low + 1}\) after 50 attempts"):
            nemo_rl._get_free_port_local(low, low + 1)
        with pytest.raises(RuntimeError, match="after all 1 available ports"):
            nemo_rl._get_free_port_local(low, low + 1, max_retries=None)


def test_consecutive_ports(free_block: int) -> None:
    low, find = free_block, nemo_rl._get_free_consecutive_ports_local
    assert find(low, low + 10) == low
    assert find(low, low + 10, 3, low + 4) == low + 4
    assert find(low, low + 10, 3, 1) == low
    with socket.socket() as held:
        held.bind(("", low + 2))
        held.listen(1)
        assert find(low, low + 10, 3) == low + 3
        assert find(low, low + 6, 3) == low + 3
        with pytest.raises(RuntimeError, match=rf"3 consecutive free ports in \[{low}, {low + 5}\)"):
            find(low, low + 5, 3)
    with pytest.raises(RuntimeError):
        find(low, low)
    for count in (0, -1):
        with pytest.raises(ValueError, match="consecutive must be >= 1"):
            find(low, low + 10, count)


def test_names_and_values() -> None:
    config = ClusterConfig(gpus_per_node=8, num_nodes=2, extra_key=1)
    assert (config.segment_size, config.master_port_range_low, config.extra_key) == (None, None, 1)
    executables = nemo_rl.PY_EXECUTABLES
    assert sys.executable == executables.SYSTEM
    assert f"uv run --locked --directory {nemo_rl.git_root}" == executables.BASE
    assert f"uv run --locked --extra vllm --directory {nemo_rl.git_root}" == executables.VLLM
    ranges = {name for name in nemo_rl.__all__ if name.startswith("DEFAULT_")}
    assert len(ranges) == 20
    assert all(0 < getattr(nemo_rl, name) < 9000 for name in ranges)
    assert (nemo_rl.NVLINK_DOMAIN_PREFIX, nemo_rl.TOPO_RANK_KEY) == ("nvlink_domain_", "topo_rank")
    assert (nemo_rl.NVLINK_DOMAIN_UNKNOWN, nemo_rl.TOPO_RANK_UNKNOWN) == ("unknown", -1)
    for name in nemo_rl.__all__:
        assert hasattr(nemo_rl, name)
    assert pickle.loads(pickle.dumps(nemo_rl.ray))._name == "ray"


def init_ray_with(monkeypatch: pytest.MonkeyPatch, resources: dict[str, float] | None) -> mock.MagicMock:
    ray = mock.MagicMock()
    ray.cluster_resources.return_value = resources
    ray.init.side_effect = [ConnectionError(), None] if resources is None else None
    monkeypatch.setattr(nemo_rl, "ray", ray)
    monkeypatch.setitem(sys.modules, "ray._private.runtime_env.packaging", types.ModuleType("packaging"))
    monkeypatch.setattr(nemo_rl.importlib, "reload", lambda module: module)
    monkeypatch.setattr(nemo_rl.importlib, "import_module", lambda name: sys.modules[name])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1,0")
    monkeypatch.setenv("SLURM_STEP_ID", "7")
    monkeypatch.setenv("RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES", "1")
    nemo_rl.init_ray(log_dir="logs")
    return ray


def test_init_ray_joins_a_foreign_cluster_and_one_with_the_same_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    for resources in ({"CPU": 4.0}, {"CPU": 4.0, "nrl_tag_0_1": 1.0}):
        ray = init_ray_with(monkeypatch, resources)
        ray.init.assert_called_once()
        assert ray.init.call_args.kwargs["address"] == "auto"
        env = ray.init.call_args.kwargs["runtime_env"]["env_vars"]
        assert "SLURM_STEP_ID" not in env
        assert "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES" not in env
        ray.shutdown.assert_not_called()


@pytest.mark.parametrize("resources", [None, {"nrl_tag_2_3": 1.0}])
def test_init_ray_starts_a_tagged_local_cluster(resources: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    ray = init_ray_with(monkeypatch, resources)
    ray.shutdown.assert_called_once()
    assert ray.init.call_args.kwargs["resources"] == {"nrl_tag_0_1": 1}
    assert "address" not in ray.init.call_args.kwargs
    assert ray.init.call_args.kwargs["_temp_dir"].endswith("/logs")


# --- what NeMo-RL lacks ------------------------------------------------------------------------------------------------


def domains_of(*sizes: int) -> dict[str, tuple[str, int]]:
    """A topology of domains d0, d1, ... with these many nodes, ranked in order."""
    nodes = [(f"d{domain}", f"d{domain}n{index}") for domain, size in enumerate(sizes) for index in range(size)]
    return {node: (domain, rank) for rank, (domain, node) in enumerate(nodes, start=1)}


def check_selection(topology: Any, roles: dict[str, tuple[int, int]], selected: Any, remaining: Any) -> None:
    everything = [node for nodes in selected.values() for node in nodes] + remaining
    assert sorted(everything) == sorted(topology)
    for role, (size, count) in roles.items():
        assert len(selected[role]) == count
        for domain, held in Counter(topology[node][0] for node in selected[role]).items():
            assert domain != "unknown"
            assert held % size == 0


def spans(topology: Any, selected: Any) -> tuple[int, int, int]:
    """Domains used, sum over roles, nodes of the domains used."""
    per_role = [{topology[node][0] for node in nodes} for nodes in selected.values()]
    used = set().union(*per_role)
    return len(used), sum(map(len, per_role)), sum(1 for domain, _ in topology.values() if domain in used)


def best_spans(sizes: tuple[int, ...], roles: dict[str, tuple[int, int]]) -> tuple[int, int, int] | None:
    """The same by trying every way to put segments into domains."""
    needs = [(size, count // size) for size, count in roles.values()]
    ways = [
        [
            way
            for way in itertools.product(*[range(n + 1) for _, n in needs])
            if sum(k * s for k, (s, _) in zip(way, needs, strict=True)) <= size
        ]
        for size in sizes
    ]
    best = None
    for choice in itertools.product(*ways):
        if all(sum(way[role] for way in choice) == need for role, (_, need) in enumerate(needs)):
            used = sum(size for size, way in zip(sizes, choice, strict=True) if any(way))
            score = sum(any(way) for way in choice), sum(k > 0 for way in choice for k in way), used
            best = score if best is None else min(best, score)
    return best


def test_n1_the_fewest_domains_are_used() -> None:
    topology = domains_of(1, 2)
    assert len({topology[node][0] for node in select_segment_nodes(topology, 1, 2)[0]}) == 2  # today
    selected, remaining = select_segments(topology, {"training": (1, 2)})
    assert (selected, remaining) == ({"training": ["d1n0", "d1n1"]}, ["d0n0"])


def test_n2_a_joint_choice_is_found_where_one_exists() -> None:
    topology = domains_of(2, 1)
    _, rest = select_segment_nodes(topology, 1, 1)
    with pytest.raises(ResourceInsufficientError, match="Cannot form 1 complete segments of 2 nodes"):  # today
        select_segment_nodes({node: topology[node] for node in rest}, 2, 2)
    selected, remaining = select_segments(topology, {"training": (1, 1), "inference": (2, 2)})
    assert selected == {"training": ["d1n0"], "inference": ["d0n0", "d0n1"]}
    assert remaining == []


def test_select_segments_agrees_with_trying_everything() -> None:
    rng = random.Random(5)
    outcomes = Counter[bool]()
    for _ in range(60):
        sizes = tuple(rng.randint(1, 5) for _ in range(rng.randint(1, 4)))
        roles = {f"r{role}": (s := rng.randint(1, 3), s * rng.randint(0, 2)) for role in range(rng.randint(1, 3))}
        topology = domains_of(*sizes) | {"lost": ("unknown", -1)}
        best = best_spans(sizes, roles)
        outcomes[best is not None] += 1
        if best is None:
            with pytest.raises(ResourceInsufficientError):
                select_segments(topology, roles)
            continue
        selected, remaining = select_segments(topology, roles)
        check_selection(topology, roles, selected, remaining)
        assert spans(topology, selected) == best
    assert outcomes[True] > 20
    assert outcomes[False] > 5


def test_select_segments_with_very_many_patterns_still_uses_the_fewest_domains(monkeypatch: Any) -> None:
    from placewright.compat import _nemo_segments

    roles = {"a": (1, 3), "b": (1, 4), "c": (2, 4), "d": (1, 2)}
    topology = domains_of(5, 5, 5, 2)
    exact = select_segments(topology, roles)
    monkeypatch.setattr(_nemo_segments, "_PATTERN_LIMIT", 3)
    rough = select_segments(topology, roles)
    check_selection(topology, roles, *rough)
    assert spans(topology, exact[0])[0] == spans(topology, rough[0])[0] == 3


def test_select_segments_scales_to_thousands_of_domains() -> None:
    topology = {f"n{node}": (f"d{node // 18}", node) for node in range(18 * 2000)}
    roles = {"training": (4, 16_000), "inference": (2, 8000), "teacher": (3, 300)}
    selected, remaining = select_segments(topology, roles)
    check_selection(topology, roles, selected, remaining)
    assert spans(topology, selected)[0] == 1350  # 24,300 nodes / 18


def test_select_segments_fills_in_topological_order_whatever_the_input_order() -> None:
    topology = domains_of(4, 4, 4)
    shuffled = dict(sorted(topology.items(), reverse=True))
    expected = {"a": ["d0n0", "d0n1", "d0n2", "d0n3"], "b": ["d1n0", "d1n1"]}
    for given in (topology, shuffled):
        selected, remaining = select_segments(given, {"a": (2, 4), "b": (2, 2)})
        assert selected == expected
        assert remaining == [node for node in given if node not in {*expected["a"], *expected["b"]}]


def test_select_segments_takes_roles_in_several_forms() -> None:
    topology = domains_of(4)
    expected = select_segments(topology, {"a": (2, 2), "b": (1, 1)})
    forms: list[Any] = [
        [SegmentRole("a", 2, 2), ("b", 1, 1)],
        [{"name": "a", "segment_size": 2, "num_nodes": 2}, SegmentRole("b", 1, 1)],
        {"a": {"segment_size": 2, "num_nodes": 2}, "b": SegmentRole("b", 1, 1)},
    ]
    for form in forms:
        assert select_segments(topology, form) == expected
    assert select_segments(topology, []) == ({}, list(topology))
    assert select_segments(topology, {"a": (3, 0)})[0] == {"a": []}


def test_select_segments_says_why_not_with_numbers() -> None:
    with pytest.raises(ResourceInsufficientError) as alone:
        select_segments(domains_of(3, 3), {"training": (2, 2), "inference": (4, 4)})
    assert "inference: 1 segments of 4 nodes. Nodes per domain: {'d0': 3, 'd1': 3}" in str(alone.value)
    with pytest.raises(ResourceInsufficientError) as together:
        select_segments(domains_of(3, 3), {"training": (2, 4), "inference": (2, 2)})
    assert "together for training: 2 segments of 2 nodes, inference: 1 segments of 2 nodes" in str(together.value)
    assert "Need 6 nodes total" in str(together.value)


@pytest.mark.parametrize(
    ("roles", "message"),
    [
        ({"a": (2, 3)}, "a: num_nodes .3. must be divisible by segment_size .2."),
        ({"a": (0, 2)}, "segment_size .0. must be at least 1"),
        ({"a": (1, -1)}, "must not be negative"),
        ([("a", 1, 1), ("a", 1, 1)], "name of its own"),
    ],
)
def test_select_segments_refuses_what_cannot_be_right(roles: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        select_segments(domains_of(4), roles)


def bundles(*nodes: tuple[str, str, int, int]) -> list[tuple[int, str, int, str]]:
    """Bundle data of nodes (id, domain, rank, GPUs)."""
    return [(gpu, domain, rank, node) for node, domain, rank, gpus in nodes for gpu in range(gpus)]


def test_n3_domains_of_equal_rank_are_not_interleaved() -> None:
    data = bundles(("a1", "a", 1, 1), ("b1", "b", 1, 1), ("a2", "a", 2, 1), ("b2", "b", 2, 1))
    assert nemo_rl._sort_bundle_indices_by_topology(data) == [0, 1, 2, 3]  # today
    assert order_bundles_by_topology(data) == [0, 2, 1, 3]


def test_n4_nodes_of_equal_or_unknown_rank_are_not_interleaved() -> None:
    data = bundles(("n1", "a", -1, 2), ("n2", "a", -1, 2))
    assert nemo_rl._sort_bundle_indices_by_topology(data) == [0, 2, 1, 3]  # today
    assert order_bundles_by_topology(data) == [0, 1, 2, 3]


def test_n5_trimming_drops_whole_nodes() -> None:
    data = bundles(("n1", "a", 1, 1), ("n2", "a", 2, 2), ("n3", "a", 3, 1))
    assert len(nemo_rl._sort_bundle_indices_by_topology(data, 2, 2)) == 4  # today: part of n3 stays
    assert order_bundles_by_topology(data, 2, 2) == [0, 1, 2]


def test_n6_nodes_without_a_domain_come_last_and_serve_no_segment() -> None:
    data = bundles(("lost", "unknown", -1, 1), ("n1", "a", 1, 1))
    assert nemo_rl._sort_bundle_indices_by_topology(data, 1, 1) == [0, 1]  # today
    assert order_bundles_by_topology(data) == [1, 0]
    assert order_bundles_by_topology(data, 1, 1) == [1]
    with pytest.raises(ValueError, match="segment_size"):
        order_bundles_by_topology(data, 0, 1)


def test_n7_pins_name_the_chosen_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = [
        {"NodeID": "a", "Alive": True, "NodeManagerAddress": "10.0.0.1"},
        {"NodeID": "b", "Alive": True, "NodeManagerAddress": "10.0.0.2"},
        {"NodeID": "c", "Alive": True, "NodeManagerAddress": "10.0.0.2"},
        {"NodeID": "dead", "Alive": False, "NodeManagerAddress": "10.0.0.1"},
    ]
    monkeypatch.setattr(nemo_rl, "ray", types.SimpleNamespace(nodes=lambda: nodes))
    assert node_pins(["a"]) == [{"node:10.0.0.1": 0.001}]
    with pytest.raises(ValueError, match=r"10\.0\.0\.2.*several nodes"):
        node_pins(["a", "b"])
    with pytest.raises(KeyError):
        node_pins(["dead"])


def test_group_span_by_arithmetic() -> None:
    inside = check_group_span({"tensor": 4, "pipeline": 2}, 4, segment_size=4)
    assert inside[:6] == (8, 2, False, True, True, ())
    wide = check_group_span({"tensor": 8, "expert": 4}, 4, segment_size=4)
    assert (wide.in_segment, wide.in_domain) == (False, None)
    assert "more than the 16 GPUs of a segment of 4 nodes" in wide.message
    odd = check_group_span(8, 4, segment_size=3)
    assert (odd.in_segment, odd.in_domain) == (False, None)
    assert "no divisor of the 12 GPUs" in odd.message
    assert check_group_span(2, 4)[:5] == (2, 1, True, None, True)


def test_group_span_on_a_topology() -> None:
    topology = domains_of(3, 3)
    split = check_group_span(8, 4, topology=topology)
    assert (split.in_domain, split.split) == (False, (1,))
    assert "1 groups lie in several NVLink domains, the first is group 1" in split.message
    whole = check_group_span(8, 4, segment_size=2, topology=topology, nodes=["d0n0", "d0n1", "d1n0", "d1n1"])
    assert (whole.in_segment, whole.in_domain, whole.split) == (True, True, ())
    # One group of two nodes in a segment of three: its border is never reached.
    single = check_group_span(8, 4, segment_size=3, topology=topology, nodes=["d0n0", "d0n1", "d0n2"])
    assert (single.in_segment, single.in_domain) == (True, True)
    # Nodes without a domain stand alone, whatever they are called.
    lost = {"x": ("unknown", -1), "y": ("unknown", -1)}
    assert check_group_span(8, 4, topology=lost, nodes=["x", "y"]).split == (0,)


def test_group_span_of_a_selection_lies_in_domains() -> None:
    topology = domains_of(5, 4, 3)
    selected, _ = select_segments(topology, {"training": (2, 8)})
    assert check_group_span(8, 4, segment_size=2, topology=topology, nodes=selected["training"]).in_domain is True


@pytest.mark.parametrize("bad", [{"parallel_sizes": 0}, {"gpus_per_node": 0}, {"segment_size": 0}])
def test_group_span_refuses_sizes_below_one(bad: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        check_group_span(**({"parallel_sizes": 2, "gpus_per_node": 4} | bad))


# --- importing and running -----------------------------------------------------------------------------------------------


def run_python(*arguments: str) -> subprocess.CompletedProcess[str]:
    env = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    return subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True)


def test_importing_needs_neither_ray_nor_ortools() -> None:
    done = run_python("-c", "import sys, placewright.compat.nemo_rl; print({'ray', 'ortools'} & set(sys.modules))")
    assert (done.returncode, done.stdout) == (0, "set()\n"), done.stderr


def test_an_unchanged_script_runs_on_our_module(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    package = tmp_path / "nemo_rl" / "distributed"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "virtual_cluster.py").write_text("raise ImportError('the original was imported')\n")
    script.write_text(
        "import sys\n"
        "from nemo_rl.distributed.virtual_cluster import RayVirtualCluster\n"
        "import nemo_rl.distributed.virtual_cluster as vc\n"
        "print(vc.__name__, RayVirtualCluster is vc.RayVirtualCluster, __name__, sys.argv[1:])\n"
    )
    done = run_python("-m", "placewright.compat.nemo_rl", str(script), "--config", "x")
    assert done.stdout == "placewright.compat.nemo_rl True __main__ ['--config', 'x']\n", done.stderr
    assert "usage" in run_python("-m", "placewright.compat.nemo_rl").stderr
