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
            # Beside other tests (pytest -n), but one cluster at a time.
            item.add_marker(pytest.mark.xdist_group("ray"))


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


RESOURCES = ("CPU", "GPU", "NPU")


def resources(kind: str) -> dict[str, dict[str, float]]:
    """CPUs and GPUs by Ray node id, ``free`` ones or in ``total``."""
    from placewright.apply.view import live_nodes

    return {
        node.ray_id: {name: round(getattr(node, kind).get(name, 0.0), 4) for name in RESOURCES}
        for node in live_nodes()
        if node.alive
    }


def free_now() -> dict[str, dict[str, float]]:
    """Free CPUs and GPUs by Ray node id."""
    return resources("free")


def soon_free(wanted: dict[str, dict[str, float]]) -> bool:
    """Whether exactly that is free within 20 s: Ray gives back what was held some time after its end."""
    limit = time.monotonic() + 20
    while free_now() != wanted:
        if time.monotonic() > limit:
            return False
        time.sleep(0.05)
    return True


def settled() -> dict[str, dict[str, float]]:
    """What is free once everything that earlier tests held has come back."""
    soon_free(resources("total"))
    return free_now()


@pytest.fixture
def nothing_left(cluster: Any) -> Iterator[None]:
    """The test must leave the whole cluster free, as it finds it, and no group."""
    from placewright.apply import rayapi

    before = settled()
    yield
    assert soon_free(before), f"before {before}, now {free_now()}"
    assert rayapi.groups_by_prefix("placewright/") == []
