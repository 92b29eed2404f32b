"""A plan that stands on a Ray cluster: where every worker is, and how to start an actor there.

::

    with placewright.apply(plan) as applied:
        trainers = [Trainer.options(**applied.options("train", i)).remote(applied.env("train", i)) for i in range(64)]

Modify this file when users should learn something new about an applied plan.
"""

from __future__ import annotations

import atexit
import logging
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from placewright.apply import ports as port_rules
from placewright.apply.groups import Ledger, MadeGroup
from placewright.apply.record import Record
from placewright.apply.worker import AppliedWorker
from placewright_models.errors import PlanMismatch
from placewright_models.plan import Plan

log = logging.getLogger("placewright.apply")


@dataclass(frozen=True, slots=True)
class WorkerHealth:
    """Whether a worker's bundles still are where they were. ``state`` is ``ok`` or ``lost``; ``reason`` says why lost."""

    component: str
    index: int
    node_id: str
    state: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """What an applied plan consists of, as plain values; what ``attach`` reads."""

    plan: Plan
    workers: Mapping[str, tuple[AppliedWorker, ...]]
    floors: Mapping[str, int] = field(default_factory=dict)


class AppliedPlan:
    """A plan carried out. A context manager: leaving it lets everything go, except what ``detach`` made to stay.

    Made by ``apply`` and ``attach``, not by hand.

    Attributes:
        plan: the plan.
        workers: all workers by component, in order of their index.
    """

    def __init__(
        self, standing: Standing, ledger: Ledger, groups: Mapping[str, MadeGroup], record: Record | None = None
    ) -> None:
        self.plan = standing.plan
        self.workers = dict(standing.workers)
        self._floors = dict(standing.floors)
        self._ledger = ledger
        self._groups = dict(groups)
        self._record = record
        self._given_ports: set[tuple[str, int]] = set()
        self._masters: dict[str, tuple[str, int]] = {}
        self._closed = False
        if record is None:
            # Ray frees the groups with the driver; on a regular exit they are let go in order and before it.
            self._at_exit = _close_at_exit(self)

    # What is where

    @property
    def placement_groups(self) -> dict[str, Any]:
        """Ray's placement groups by name (of the pool, node or component)."""
        return {name: group.handle for name, group in self._groups.items()}

    @property
    def detached_name(self) -> str | None:
        """The name under which other drivers can attach; None if the plan ends with this driver."""
        return None if self._record is None else self._record.name

    def worker(self, component: str, index: int) -> AppliedWorker:
        """Where worker ``index`` of a component is.

        Raises:
            KeyError: if the plan has no such component.
            IndexError: if it has no such worker.
        """
        workers = self.workers[component]
        if not 0 <= index < len(workers):
            raise IndexError(f"{component} has workers 0..{len(workers) - 1}, not {index}")
        return workers[index]

    def ranks(self, component: str) -> tuple[AppliedWorker, ...]:
        """All workers of a component by rank: the one table that ranks, local ranks and addresses come from."""
        return self.workers[component]

    # Starting actors

    def options(self, component: str, index: int, gpu: int | None = None) -> dict[str, Any]:
        """Keyword arguments for ``actor.options(...)`` that put an actor on exactly the worker's GPUs.

        Args:
            component: the component.
            index: the worker.
            gpu: for a worker that lies on several bundles of one GPU (``bundles="gpu"``, or because it shares its GPUs):
                which of them, 0 for the first. One actor cannot have GPUs of several bundles.

        Returns:
            ``scheduling_strategy``, ``num_cpus``, ``num_gpus``, and where it applies ``memory`` (bytes) and ``resources``
            (accelerators that are not GPUs to Ray).

        Raises:
            ValueError: if the worker lies on several bundles and ``gpu`` does not say which.
        """
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        worker = self.worker(component, index)
        if gpu is None and len(worker.bundles) > 1:
            raise ValueError(
                f"{component} {index} lies on {len(worker.bundles)} bundles of one GPU each, and an actor gets GPUs of one"
                f" bundle only: start one actor per GPU with options({component!r}, {index}, gpu=0..{len(worker.bundles) - 1})"
            )
        place = gpu or 0
        if not 0 <= place < len(worker.bundles):
            raise ValueError(f"{component} {index} lies on {len(worker.bundles)} bundles, there is no gpu={gpu}")
        found: dict[str, Any] = {
            "scheduling_strategy": PlacementGroupSchedulingStrategy(
                placement_group=self._groups[worker.group].handle,
                placement_group_bundle_index=worker.bundles[place],
                placement_group_capture_child_tasks=False,
            ),
            "num_cpus": _plain(worker.num_cpus[place]),
            "num_gpus": 0,
        }
        if worker.num_gpus[place]:
            if worker.accelerator == "GPU":
                found["num_gpus"] = _plain(worker.num_gpus[place])
            else:
                found["resources"] = {worker.accelerator: worker.num_gpus[place]}
        if worker.memory[place]:
            found["memory"] = worker.memory[place]
        return found

    def env(self, component: str, index: int) -> dict[str, str]:
        """Environment of a worker as torch.distributed reads it; the master is the same on every call and driver.

        ``LOCAL_RANK`` counts the component's workers on the node. Ray shows an actor its own GPUs only, so the device of a
        one-GPU actor is ``cuda:0`` whatever its local rank.
        """
        worker = self.worker(component, index)
        if component not in self._masters:
            address = self.master(component)
            self._masters[component] = address if self._record is None else self._record.agree(component, address)
        ip, port = self._masters[component]
        return {
            "RANK": str(worker.rank),
            "WORLD_SIZE": str(worker.world_size),
            "LOCAL_RANK": str(worker.local_rank),
            "LOCAL_WORLD_SIZE": str(worker.local_world_size),
            "MASTER_ADDR": ip,
            "MASTER_PORT": str(port),
        }

    def master(
        self, component: str, port_range: tuple[int, int] = port_rules.MASTER_PORTS, timeout: float = 30.0
    ) -> tuple[str, int]:
        """Address of rank 0's node, and a port that is free there now; another port on every call.

        Args:
            component: the component.
            port_range: first and last port that may be given.
            timeout: seconds to wait for the node.

        Raises:
            PlanMismatch: if no port of the range is free there.
        """
        head = self.worker(component, 0)
        first, last = port_range
        candidates = [port for port in range(first, last + 1) if (head.node_id, port) not in self._given_ports]
        port = port_rules.free_port(head.ray_node_id, candidates, head.ip, timeout)
        if port is None:
            raise PlanMismatch([f"node {head.node_id}: no port in {first}-{last} is free"], "there is no port for the master")
        self._given_ports.add((head.node_id, port))
        return head.ip, port

    def ports(
        self,
        component: str,
        *,
        base: int = port_rules.PORT_BASE,
        per_gpu: int = 100,
        per_worker: int | None = None,
        limit: int | None = None,
    ) -> tuple[port_rules.PortWindow, ...]:
        """A window of ports for each worker, from its node-local GPUs; windows on one node never overlap.

        Args:
            component: the component.
            base: first port.
            per_gpu: ports per GPU. The same base and ``per_gpu`` for all components keeps all their windows apart.
            per_worker: ports per worker in place of that; apart within the component.
            limit: first port not to be used; below the ephemeral ports of the nodes and below ``master``'s unless given.

        Raises:
            ValueError: if the windows do not fit below the limit.
        """
        ips = {worker.node_id: worker.ip for worker in self.workers[component]}
        top = port_rules.port_limit(self._floors.values()) if limit is None else limit
        return port_rules.port_windows(self.plan, component, ips, base=base, per_gpu=per_gpu, per_worker=per_worker, limit=top)

    # How it fares

    def health(self) -> list[WorkerHealth]:
        """For every worker, whether its bundles still are on the node where they were.

        Raises:
            PlanMismatch: if Ray moved a bundle to another node.
        """
        state = {name: group.state()[0] for name, group in self._groups.items()}
        where = {name: group.bundle_nodes() for name, group in self._groups.items()}
        answer: list[WorkerHealth] = []
        moved: list[str] = []
        for workers in self.workers.values():
            for worker in workers:
                nodes = [where[worker.group].get(bundle, "") for bundle in worker.bundles]
                reason = ""
                if self._closed or state[worker.group] == "REMOVED":
                    reason = f"group {worker.group} was removed"
                elif not all(nodes):
                    reason = f"node {worker.node_id} is lost; group {worker.group} is {state[worker.group]}"
                elif any(node != worker.ray_node_id for node in nodes):
                    moved.append(
                        f"{worker.component} {worker.index}: Ray moved it from node {worker.node_id} to {nodes[0][:8]}"
                    )
                answer.append(WorkerHealth(worker.component, worker.index, worker.node_id, "lost" if reason else "ok", reason))
        if moved:
            raise PlanMismatch(moved, "the plan no longer stands as applied")
        return answer

    # Letting go

    def shutdown(self) -> None:
        """Remove every group, detached ones too, and wait until their resources are free. May be called again."""
        if self._closed:
            return
        self._closed = True
        if self._record is None:
            atexit.unregister(self._at_exit)
        self._ledger.remove_all()
        if self._record is not None:
            self._record.drop()

    def __enter__(self) -> AppliedPlan:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        # What was detached is meant to survive the driver, so it survives the block as well.
        if self._record is None:
            self.shutdown()

    def __repr__(self) -> str:
        counts = ", ".join(f"{name} {len(workers)}" for name, workers in self.workers.items())
        return f"AppliedPlan({counts}; {len(self._groups)} groups{'; shut down' if self._closed else ''})"


def _close_at_exit(applied: AppliedPlan) -> Any:
    reference = weakref.ref(applied)

    def close() -> None:
        alive = reference()
        if alive is not None:
            alive.shutdown()

    atexit.register(close)
    return close


def _plain(value: float) -> int | float:
    return int(value) if value == int(value) else value
