"""Simulated Ray clusters for these tests, one per module; every test here is marked ``ray``.

The environment is set before Ray is imported: a local ``ray.init()`` would otherwise turn token authentication on for the
whole process and want a writable HOME.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ["RAY_AUTH_MODE"] = "disabled"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
os.environ["RAY_DEDUP_LOGS"] = "0"
HERE = Path(__file__).parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.ray)
            item.add_marker(pytest.mark.timeout(120))


@pytest.fixture(scope="module")
def start_cluster() -> Iterator[Callable[..., Any]]:
    """Starts the module's cluster from (name, GPUs, CPUs) triples, and connects to it."""
    ray = pytest.importorskip("ray")
    from placewright.apply import SimulatedCluster

    running: list[Any] = []

    def start(*nodes: tuple[str, int, int], system_config: dict[str, Any] | None = None) -> Any:
        cluster = SimulatedCluster(system_config)
        running.append(cluster)
        for name, gpus, cpus in nodes:
            cluster.add_node(name, gpus, cpus)
        ray.init(address=cluster.address, namespace="tests", log_to_driver=False, logging_level="WARNING")
        return cluster

    yield start
    ray.shutdown()
    for cluster in running:
        cluster.shutdown()


def free_now() -> dict[str, dict[str, float]]:
    """Free CPUs and GPUs by Ray node id."""
    from placewright.apply.view import live_nodes

    return {
        node.ray_id: {name: round(node.free.get(name, 0.0), 4) for name in ("CPU", "GPU", "NPU")}
        for node in live_nodes()
        if node.alive
    }


@pytest.fixture
def nothing_left(cluster: Any) -> Iterator[None]:
    """The test must leave exactly the free resources that it found, and no group."""
    from placewright.apply import rayapi

    before = free_now()
    yield
    limit = time.monotonic() + 5
    while free_now() != before and time.monotonic() < limit:
        time.sleep(0.05)
    assert free_now() == before
    assert rayapi.groups_by_prefix("placewright/") == []
