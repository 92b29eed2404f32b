"""NeMo-RL's virtual cluster on real Ray: unified and per node, order by topology, ports; and a plan in force.

Modify this file when NeMo-RL makes its clusters in another way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from planhelp import make_plan, one_each

from placewright.compat import nemo_rl
from placewright_models.cluster import Node
from placewright_models.errors import PlanMismatch
from placewright_models.plan import Plan

RACKS = {"a1": ("left", 2), "a2": ("left", 1), "b1": ("right", 3)}
"""Node -> NVLink domain and topo rank; a1 starts first and comes second in the rack."""


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., Any]) -> Any:
    started = start_cluster()
    for name, (domain, rank) in RACKS.items():
        started.add_node(name, 2, 4, resources={f"nvlink_domain_{domain}": 1, "topo_rank": rank})
    return started


@pytest.fixture
def clusters(cluster: Any, nothing_left: None) -> Iterator[list[nemo_rl.RayVirtualCluster]]:
    made: list[nemo_rl.RayVirtualCluster] = []
    yield made
    for one in made:
        one.shutdown()


def names() -> dict[str, str]:
    import ray

    return {node["NodeID"]: node["NodeName"] for node in ray.nodes()}


def nodes_of(group: Any) -> list[str]:
    from ray.util.placement_group import placement_group_table

    found = placement_group_table(group)["bundles_to_node_id"]
    return [names()[found[index]] for index in range(len(found))]


def plan() -> Plan:
    """Generation on the rack of two nodes, training on the other: what first fit cannot do (N2)."""
    nodes = [
        Node(name, 2, node_name=name, ip=f"127.0.0.{index}", nvlink_domain=domain, topo_rank=rank)
        for index, (name, (domain, rank)) in enumerate(RACKS.items(), 2)
    ]
    workers = {
        "policy": one_each("b1", [0, 1]),
        "generation": [*one_each("a2", [0, 1]), *one_each("a1", [0, 1])],
    }
    made = make_plan(nodes, workers)
    return replace(made, problem=replace(made.problem, rules=replace(made.problem.rules, explicit_pools=True)))


@pytest.fixture
def plan_in_force(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plan().to_dict()))
    os.environ["PLACEWRIGHT_PLAN"] = str(path)
    yield path
    del os.environ["PLACEWRIGHT_PLAN"]


def test_unified_group_is_ordered_by_topology(clusters: list[Any]) -> None:
    cluster = nemo_rl.RayVirtualCluster([2, 2, 2], num_gpus_per_node=2, name="all", max_colocated_worker_groups=2)
    clusters.append(cluster)
    (group,) = cluster._init_placement_groups(use_unified_pg=True)
    assert cluster.world_size() == 6
    assert cluster.node_count() == 3
    order = cluster._sorted_bundle_indices
    assert order is not None
    where = nodes_of(group)
    assert [where[index] for index in order] == ["a2", "a2", "a1", "a1", "b1", "b1"]
    domains = cluster._nvlink_domain_per_bundle_index
    assert domains is not None
    assert [domains[index] for index in order] == ["nvlink_domain_left"] * 4 + ["nvlink_domain_right"] * 2


def test_groups_per_node_and_ports(clusters: list[Any]) -> None:
    cluster = nemo_rl.RayVirtualCluster(
        [2, 0, 2], num_gpus_per_node=2, name="per-node", port_range_low=23000, port_range_high=23100
    )
    clusters.append(cluster)
    groups = cluster.get_placement_groups()
    assert groups is not cluster.get_placement_groups()
    assert [len(set(nodes_of(group))) for group in groups] == [1, 1]
    assert len({nodes_of(group)[0] for group in groups}) == 2
    pairs = [(1, 0), (0, 1), (0, 0), (1, 1)]
    found = cluster.get_available_addresses_and_ports_batch(pairs)
    ips = {name: f"127.0.0.{index}" for index, name in enumerate(RACKS, 2)}
    assert [address for address, _ in found] == [ips[nodes_of(groups[group])[0]] for group, _ in pairs]
    assert all(23000 <= port < 23100 for _, port in found)
    masters = {cluster.get_master_address_and_port() for _ in range(3)}
    assert len({port for _, port in masters}) == 3


def test_domains_are_pinned_and_exact_pins_are_exact(clusters: list[Any]) -> None:
    constraints, remaining, topology = nemo_rl.prepare_segment_topology(2, 2)
    assert constraints == [{"nvlink_domain_left": 0.001}] * 2
    # The head has no domain.
    assert {names()[node] for node in remaining} >= {"b1"}
    assert len(topology) == 4
    ids = {name: node for node, name in names().items()}
    cluster = nemo_rl.RayVirtualCluster(
        [2, 2], num_gpus_per_node=2, name="pinned", node_resource_constraints=nemo_rl.node_pins([ids["b1"], ids["a1"]])
    )
    clusters.append(cluster)
    assert [nodes_of(group) for group in cluster.get_placement_groups()] == [["b1", "b1"], ["a1", "a1"]]


def test_a_plan_in_force(clusters: list[Any], plan_in_force: Path) -> None:
    training, remaining, topology = nemo_rl.prepare_segment_topology(1, 1, role="training")
    assert training == [{"node:127.0.0.4": 0.001}]
    left = {node: topology[node] for node in remaining}
    inference, _, _ = nemo_rl.prepare_segment_topology(2, 2, topology=left, role="inference")
    assert inference == [{"node:127.0.0.3": 0.001}, {"node:127.0.0.2": 0.001}]
    # Also where NeMo-RL asks for no segments and pins nothing.
    train = nemo_rl.RayVirtualCluster([2], num_gpus_per_node=2, name="grpo_train_cluster")
    generation = nemo_rl.RayVirtualCluster([2, 2], num_gpus_per_node=2, name="grpo_inference_cluster")
    clusters += [train, generation]
    (group,) = generation._init_placement_groups("PACK", use_unified_pg=True)
    assert nodes_of(group) == ["a2", "a2", "a1", "a1"]
    assert [nodes_of(group) for group in train.get_placement_groups()] == [["b1", "b1"]]
    other = nemo_rl.RayVirtualCluster([2, 2], num_gpus_per_node=2, name="grpo_policy_cluster")
    with pytest.raises(PlanMismatch, match="asks 2 nodes of 2 GPUs; the plan has 1 nodes of 2 GPUs for policy"):
        other.get_placement_groups()


SCRIPT = """
import sys
import ray
from nemo_rl.distributed.virtual_cluster import RayVirtualCluster
from ray.util.placement_group import placement_group_table

ray.init(address=sys.argv[1], log_to_driver=False)
names = {node["NodeID"]: node["NodeName"] for node in ray.nodes()}
cluster = RayVirtualCluster([2, 2], num_gpus_per_node=2, name="grpo_inference_cluster")
for group in cluster.get_placement_groups():
    print(*[names[node] for node in placement_group_table(group)["bundles_to_node_id"].values()])
cluster.shutdown()
"""


def test_an_unchanged_script_runs_on_the_plan(cluster: Any, plan_in_force: Path, tmp_path: Path, nothing_left: None) -> None:
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    done = subprocess.run(
        [sys.executable, "-m", "placewright.compat.nemo_rl", str(script), cluster.address],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-2:] == ["a2 a2", "a1 a1"]
