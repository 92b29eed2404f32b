"""Discovery on nodes that differ: domains from several sources, ranks, NPUs, GPUs in use; and plans on what was found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from planhelp import found, make_plan, one_each, somebody_holds

from placewright.apply import apply
from placewright.apply.view import live_nodes
from placewright.discover import discover_ray
from placewright_models.cluster import Node
from placewright_models.errors import PlanMismatch


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., Any]) -> Any:
    running = start_cluster()
    running.add_node(
        "r0",
        4,
        8,
        resources={"nvlink_domain_rack0": 1, "topo_rank": 2, "accelerator_type:H100": 1},
        labels={"block": "b0", "ray.io/gpu-domain": "gd0"},
    )
    running.add_node(
        "r1", 4, 8, resources={"nvlink_domain_rack1": 1}, labels={"topo_rank": "1", "ray.io/accelerator-type": "A100"}
    )
    running.add_node("slurm", 3, 4, visible_devices="6,4,7", labels={"my-rack": "x"})
    running.add_node("npus", 0, 4, resources={"NPU": 4})
    return running


def discovered(**options: Any) -> tuple[dict[str, dict[str, Any]], list[str]]:
    answer = discover_ray(**options)
    return {entry["id"]: entry for entry in answer["cluster"]["nodes"]}, answer["warnings"]


def test_an_idle_cluster(cluster: Any) -> None:
    nodes, warnings = discovered(address=cluster.address)
    by_name = {node.name: node for node in live_nodes()}
    assert nodes["r0"] == {
        "id": "r0",
        "gpus": 4,
        "cpus": 8,
        "memory": int(by_name["r0"].total["memory"]),
        "ip": "127.0.0.2",
        "node_name": "r0",
        "ray_node_id": by_name["r0"].ray_id,
        "nvlink_domain": "rack0",
        "topo_rank": 2,
        "accelerator": "H100",
        "labels": {"block": "b0", "ray.io/gpu-domain": "gd0"},
    }
    assert (nodes["r1"]["nvlink_domain"], nodes["r1"]["topo_rank"], nodes["r1"]["accelerator"]) == ("rack1", 1, "A100")
    assert (nodes["npus"]["gpus"], nodes["npus"]["accelerator"]) == (4, "NPU")
    assert "nvlink_domain" not in nodes["slurm"] and "topo_rank" not in nodes["slurm"]
    head = next(entry for entry in nodes.values() if entry.get("head"))
    assert (head["gpus"], head["cpus"]) == (0, 0)
    assert len(nodes) == 5
    text = "\n".join(warnings)
    assert "5 nodes have the host name" in text
    assert "NVLink domains come from resource nvlink_domain_<id>, which does not know npus, slurm" in text
    assert "label ray.io/gpu-domain names domains too, for r0; two sources are never mixed" in text


def test_the_section_is_a_valid_cluster(cluster: Any) -> None:
    codec = pytest.importorskip("placewright_models.codec")
    answer = discover_ray()
    problem = codec.load_problem({"cluster": answer["cluster"], "components": {"train": {"workers": 2, "gpus": 1}}})
    assert {node.id for node in problem.cluster.nodes} >= {"r0", "r1", "slurm", "npus"}


def test_a_label_of_the_users(cluster: Any) -> None:
    nodes, warnings = discovered(domain_label="my-rack")
    assert {node_id for node_id, entry in nodes.items() if "nvlink_domain" in entry} == {"slurm"}
    assert any("label my-rack, which does not know npus, r0, r1" in warning for warning in warnings)
    nodes, warnings = discovered(domain_label="nothing")
    assert not any("nvlink_domain" in entry for entry in nodes.values())
    assert "no node has a domain in label nothing" in warnings


def test_gpus_in_use(cluster: Any, nothing_left: None) -> None:
    with somebody_holds("r0", [1, 3]), apply(make_plan([Node("r1", 4)], {"x": [("r1", [])]}, x={"cpus": "2.5"})):
        nodes, warnings = discovered()
        assert nodes["r0"]["unavailable_gpus"] == [0, 1]
        assert any("node r0: 2 of 4 GPUs are in use; taken to be 0-1" in warning for warning in warnings)
        assert nodes["r1"]["cpus_in_use"] == 2.5
        nodes, warnings = discovered(probe_gpus=True)
        assert nodes["r0"]["unavailable_gpus"] == [1, 3]
        assert "node r0: GPUs in use: 1, 3" in warnings
        assert "unavailable_gpus" not in nodes["r1"]


def test_a_raylet_that_was_given_some_devices(nothing_left: None) -> None:
    """Slurm's CUDA_VISIBLE_DEVICES: ids are entries of that list, as text, several in hash order."""
    nodes = [Node("slurm", 8, unavailable_gpus=(0, 1, 2, 3, 5))]
    workers = {"train": one_each("slurm", [7, 4])}
    with apply(make_plan(nodes, workers)) as applied:
        assert found(applied) == workers
    with apply(make_plan(nodes, {"rollout": [("slurm", [6, 7])]})) as applied:
        assert found(applied) == {"rollout": [("slurm", [6, 7])]}
    with pytest.raises(PlanMismatch, match="node slurm: GPUs 0-1 are held by somebody else; free are 4, 6-7"):
        apply(make_plan({"slurm": 3}, {"train": one_each("slurm", [0, 1])}))


def test_accelerators_that_are_not_gpus(nothing_left: None) -> None:
    workers = {"train": one_each("npus", [3, 1])}
    with apply(make_plan({"npus": 4}, workers)) as applied:
        assert found(applied) == workers
        options = applied.options("train", 0)
        assert (options["num_gpus"], options["resources"]) == (0, {"NPU": 1.0})
