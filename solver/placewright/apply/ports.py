"""Port windows per worker, and a free port on a node.

A window follows from the worker's node-local GPUs, never from a global index: two workers, components or jobs that have
different GPUs of a node get different ports there. Modify this file when ports should be dealt out in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from placewright.apply import rayapi
from placewright_models.plan import Plan
from placewright_models.ranges import indices_of
from placewright_models.workload import component_key

PORT_BASE = 20_000
"""Above Ray's own worker ports (10002-19999) and below the ephemeral ports."""
MASTER_PORTS = (32_000, 32_767)
"""Where ``master`` looks for a free port: above the windows, below the ephemeral floor of Linux."""
WITHOUT_GPU_WINDOW = 10


@dataclass(frozen=True, slots=True)
class PortWindow:
    """Ports ``start`` .. ``end`` (both included) on the worker's node."""

    component: str
    index: int
    node_id: str
    ip: str
    start: int
    end: int


def port_windows(
    plan: Plan, component: str, ips: Mapping[str, str], *, base: int, per_gpu: int, per_worker: int | None, limit: int
) -> tuple[PortWindow, ...]:
    """The window of each worker of a component.

    With ``per_gpu``, each GPU of a node owns ``per_gpu`` ports from ``base`` on, a worker those of its GPUs, and workers
    that share a GPU equal parts of that GPU's; workers without GPU follow after the node's last GPU. These windows never
    overlap, whatever components are asked for. With ``per_worker``, the component's k-GPU workers have slots of that size
    by node-local GPU index // k; these do not overlap within the component.

    Args:
        plan: the plan.
        component: whose workers.
        ips: address of each plan node.
        base: first port.
        per_gpu: ports of one GPU.
        per_worker: ports of one worker, in place of ``per_gpu``.
        limit: the first port that may not be used.

    Raises:
        KeyError: if the plan has no such component.
        ValueError: if the windows reach the limit, or shares leave a worker no port.
    """
    workers = plan.workers[component]
    spans = _by_gpu(plan, component, base, per_gpu) if per_worker is None else _by_slot(plan, component, base, per_worker)
    windows: list[PortWindow] = []
    for index, (start, size) in enumerate(spans):
        node_id = workers[index].node_id
        if size < 1:
            raise ValueError(f"{component} {index}: {per_gpu} ports are fewer than the workers that share a GPU of {node_id}")
        if start + size > limit:
            raise ValueError(
                f"{component} {index} on {node_id} would get ports {start}-{start + size - 1}, but only ports below {limit}"
                " may be used; take a lower base or smaller windows"
            )
        windows.append(PortWindow(component, index, node_id, ips[node_id], start, start + size - 1))
    return tuple(windows)


def _by_gpu(plan: Plan, component: str, base: int, per_gpu: int) -> list[tuple[int, int]]:
    on_gpu: dict[tuple[str, int], list[tuple[str, int]]] = {}
    without: dict[str, list[tuple[str, int]]] = {}
    for name in sorted(plan.workers, key=component_key):
        for index, worker in enumerate(plan.workers[name]):
            if not worker.ranges:
                without.setdefault(worker.node_id, []).append((name, index))
            for gpu in indices_of(worker.ranges):
                on_gpu.setdefault((worker.node_id, gpu), []).append((name, index))
    spans: list[tuple[int, int]] = []
    for index, worker in enumerate(plan.workers[component]):
        gpus = indices_of(worker.ranges)
        key = (component, index)
        if not gpus:
            place = without[worker.node_id].index(key)
            start = base + plan.problem.node_by_id[worker.node_id].gpus * per_gpu
            spans.append((start + place * WITHOUT_GPU_WINDOW, WITHOUT_GPU_WINDOW))
            continue
        consecutive = gpus == list(range(gpus[0], gpus[-1] + 1))
        if consecutive and all(len(on_gpu[worker.node_id, gpu]) == 1 for gpu in gpus):
            spans.append((base + gpus[0] * per_gpu, per_gpu * len(gpus)))
            continue
        sharers = on_gpu[worker.node_id, gpus[0]]
        size = per_gpu // len(sharers)
        spans.append((base + gpus[0] * per_gpu + sharers.index(key) * size, size))
    return spans


def _by_slot(plan: Plan, component: str, base: int, per_worker: int) -> list[tuple[int, int]]:
    workers = plan.workers[component]
    width = plan.problem.by_name[component].gpus_per_worker
    on_node: dict[str, int] = {}
    spans: list[tuple[int, int]] = []
    for worker in workers:
        if width:
            slot = indices_of(worker.ranges)[0] // width
        else:
            # Shares and workers without GPU: their order on the node.
            slot = on_node.get(worker.node_id, 0)
            on_node[worker.node_id] = slot + 1
        spans.append((base + slot * per_worker, per_worker))
    return spans


def free_port(ray_id: str, candidates: Sequence[int], ip: str, timeout: float) -> int | None:
    """The first of the ports that can be bound on a node now; None if none can.

    Args:
        ray_id: Ray node id.
        candidates: ports to try, in order.
        ip: the node's address.
        timeout: seconds to wait for the node's answer.

    Raises:
        TimeoutError: if the node does not answer in time (``ray.exceptions.GetTimeoutError``).
    """
    ray = rayapi.ray_module()
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    def look(candidates: list[int], address: str) -> int | None:
        import socket

        for port in candidates:
            with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM) as probe:
                try:
                    probe.bind((address, port))
                except OSError:
                    continue
                return port
        return None

    strategy = NodeAffinitySchedulingStrategy(ray_id, soft=False)
    task: Any = ray.remote(num_cpus=0, max_retries=1)(look).options(scheduling_strategy=strategy)
    answer = ray.get(task.remote(list(candidates), ip), timeout=timeout)
    return None if answer is None else int(answer)


def port_limit(floors: Iterable[int]) -> int:
    """First port that windows may not use: the master ports, or the lowest ephemeral port of the nodes if that is lower."""
    # A floor of 1024 or so means that the administrator left no room below it at all.
    sensible = [floor for floor in floors if floor > PORT_BASE]
    return min([MASTER_PORTS[0], *sensible])
