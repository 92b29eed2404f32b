"""A plan's nodes as simulated Ray nodes on this machine: real raylets with made-up GPUs, nothing else simulated.

Costs about 100 MB of memory and one or two seconds a node, so it is meant for up to about eight. Uses
``ray.cluster_utils.Cluster``, which Ray offers for tests. Modify this file when simulated nodes should look different.
"""

from __future__ import annotations

import logging
import math
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from placewright.apply import rayapi
from placewright.apply.applied import AppliedPlan
from placewright.apply.bundles import lay_out
from placewright.apply.run import apply
from placewright_models.errors import PlacewrightError
from placewright_models.plan import Plan
from placewright_models.quantities import UNITS

log = logging.getLogger("placewright.apply")

MAX_NODES = 8
_STORE = 80 * 2**20  # the least that a raylet takes is 75 MiB


class SimulatedCluster:
    """Raylets on this machine, each with a NodeName and an ip (127.0.0.x) of its own. A context manager.

    Args:
        system_config: Ray's internal settings for the head, e.g. for quicker health checks.
    """

    def __init__(self, system_config: Mapping[str, Any] | None = None) -> None:
        rayapi.ray_module()
        from ray.cluster_utils import Cluster

        self._tmp = tempfile.mkdtemp(prefix="pw-ray-")
        # Cluster notes the address of the newest cluster under this folder; another folder keeps the user's own note.
        Path(self._tmp, "ray").mkdir()
        self._old_tmp = os.environ.get("RAY_TMPDIR")
        os.environ["RAY_TMPDIR"] = self._tmp
        self._nodes: dict[str, Any] = {}
        self._count = 0
        head: dict[str, Any] = {
            "include_dashboard": False,
            "no_monitor": True,
            "include_log_monitor": False,
            "num_cpus": 0,
            "num_gpus": 0,
            "object_store_memory": _STORE,
            "temp_dir": self._tmp,
        }
        if system_config:
            head["_system_config"] = dict(system_config)
        try:
            self._cluster = Cluster(initialize_head=True, head_node_args=head)
        except BaseException:
            self._clean_up()
            raise

    @property
    def address(self) -> str:
        """``host:port`` to connect to."""
        return str(self._cluster.address)

    def add_node(
        self,
        name: str,
        gpus: int = 0,
        cpus: int = 1,
        *,
        ip: str | None = None,
        memory: int | None = None,
        labels: Mapping[str, str] | None = None,
        resources: Mapping[str, float] | None = None,
        visible_devices: str | None = None,
    ) -> str:
        """Start a node and wait until Ray knows it. Call from the main thread, one after another.

        Args:
            name: Ray NodeName.
            gpus: how many GPUs it claims to have.
            cpus: how many CPUs.
            ip: its address; 127.0.0.2, .3, ... if not given.
            memory: Ray's logical memory in bytes.
            labels: Ray node labels.
            resources: custom resources.
            visible_devices: CUDA_VISIBLE_DEVICES of the raylet, as Slurm sets it.

        Returns:
            the address.
        """
        self._count += 1
        address = ip or f"127.0.0.{self._count + 1}"
        arguments: dict[str, Any] = {
            "node_ip_address": address,
            "node_name": name,
            "num_cpus": cpus,
            "num_gpus": gpus,
            "object_store_memory": _STORE,
        }
        if memory is not None:
            arguments["memory"] = memory
        if labels:
            arguments["labels"] = dict(labels)
        if resources:
            arguments["resources"] = dict(resources)
        before = os.environ.get("CUDA_VISIBLE_DEVICES")
        if visible_devices is not None:
            os.environ["CUDA_VISIBLE_DEVICES"] = visible_devices
        try:
            self._nodes[name] = self._cluster.add_node(**arguments)
        finally:
            if visible_devices is not None:
                if before is None:
                    del os.environ["CUDA_VISIBLE_DEVICES"]
                else:
                    os.environ["CUDA_VISIBLE_DEVICES"] = before
        return address

    def remove_node(self, name: str) -> None:
        """End a node (its raylet gets SIGTERM, which Ray notices in about 0.1 s)."""
        self._cluster.remove_node(self._nodes.pop(name), allow_graceful=True)

    def shutdown(self) -> None:
        """Disconnect this process and end every process of the cluster. May be called again."""
        ray = rayapi.ray_module()
        if self._tmp:
            if ray.is_initialized() and ray.get_runtime_context().gcs_address == self.address:
                ray.shutdown()
            self._cluster.shutdown()
            self._clean_up()

    def _clean_up(self) -> None:
        if self._old_tmp is None:
            os.environ.pop("RAY_TMPDIR", None)
        else:
            os.environ["RAY_TMPDIR"] = self._old_tmp
        shutil.rmtree(self._tmp, ignore_errors=True)
        self._tmp = ""

    def __enter__(self) -> SimulatedCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()


@contextmanager
def simulate(
    plan: Plan,
    *,
    layout: str = "pool",
    exact: bool = True,
    timeout: float = 60.0,
    bundles: str = "auto",
    max_nodes: int = MAX_NODES,
) -> Iterator[AppliedPlan]:
    """Start the nodes that a plan uses as simulated Ray nodes, and apply the plan to them for real.

    ::

        with simulate(plan) as applied:
            print(readback_text(applied))

    Args:
        plan: the plan.
        layout: as for ``apply``, like ``exact``, ``timeout`` (which starts when the nodes are up) and ``bundles``.
        exact: see there.
        timeout: see there.
        bundles: see there.
        max_nodes: refuse plans on more nodes.

    Yields:
        the applied plan. Everything is torn down at the end of the block, whatever happens in it.

    Raises:
        PlacewrightError: if the plan uses more nodes, or this process is connected to a Ray cluster already.
        PlanMismatch: as for ``apply``.
    """
    demand = lay_out(plan, layout, bundles).demand()
    if len(demand) > max_nodes:
        raise PlacewrightError(f"the plan uses {len(demand)} nodes; more than {max_nodes} are not simulated on one machine")
    if rayapi.ray_module().is_initialized():
        raise PlacewrightError("this process is connected to a Ray cluster already; simulate in a process of its own")
    # Terminated by a signal (a scheduler's time limit, say), the block must still end its raylets.
    with _terminated_as_exit(), SimulatedCluster() as cluster:
        for node_id, wanted in demand.items():
            node = plan.problem.node_by_id[node_id]
            cpus = wanted.cpu_units / UNITS if node.free_cpu_units is None else node.free_cpu_units / UNITS
            memory = node.free_memory if node.free_memory is not None else max(wanted.memory, 2**30)
            cluster.add_node(node_id, node.gpus, math.ceil(cpus), memory=memory)
        with apply(plan, address=cluster.address, layout=layout, exact=exact, timeout=timeout, bundles=bundles) as applied:
            yield applied


@contextmanager
def _terminated_as_exit() -> Iterator[None]:
    def leave(*_: object) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    try:
        before = signal.signal(signal.SIGTERM, leave)
    except ValueError:
        # Signals belong to the main thread; elsewhere the caller's own handling stays.
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
