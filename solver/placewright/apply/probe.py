"""Asking every bundle where it is: one small task inside each, all nodes at once, on each node one after another.

One after another, because then one worker process serves them all, in milliseconds; 64 probes sent to eight simulated nodes
at once start 64 processes, at most of a second of CPU each.

Only code that runs inside a bundle can tell which physical GPU Ray gave it; Ray's own tables know nodes. On real nodes
the first probe of a node also reads the UUIDs of its GPUs. Modify this file when more should be read back from a bundle.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placewright.apply import rayapi
from placewright.apply.groups import MadeGroup
from placewright.apply.view import LiveNode, live_nodes
from placewright_models.errors import PlanMismatch


@dataclass(frozen=True, slots=True)
class Found:
    """What a probe found in its bundle: the Ray node, the physical GPU ids (ascending), and once per node its facts."""

    ray_id: str
    gpus: tuple[int, ...]
    uuids: Mapping[int, str] = field(default_factory=dict)
    ephemeral_floor: int | None = None


def probe(
    groups: Sequence[MadeGroup], deadline: float, on_timeout: Callable[[Sequence[MadeGroup]], Exception]
) -> list[list[Found]]:
    """Read back every bundle of every group; all groups must be created.

    Args:
        groups: the groups.
        deadline: ``time.monotonic()`` at which to give up.
        on_timeout: makes the exception for the groups with bundles that did not answer.

    Returns:
        per group and bundle index, what was found.

    Raises:
        PlanMismatch: if a bundle or its node is lost meanwhile, or reports GPU ids that are not numbers.
    """
    answers: dict[tuple[int, int], dict[str, Any]] = {}
    queues: dict[str, list[tuple[int, int]]] = {}
    for g, group in enumerate(groups):
        for b, bundle in enumerate(group.bundles):
            queues.setdefault(bundle.node_id, []).append((g, b))
    # The first of a node also asks for the node's facts.
    chosen = {jobs[0] for jobs in queues.values()}
    for jobs in queues.values():
        jobs.reverse()
    task = _probe_task()
    flying: dict[Any, tuple[int, int]] = {}

    def start_next(node_id: str) -> None:
        if queues[node_id]:
            g, b = queues[node_id].pop()
            flying[_start(task, groups[g], b, (g, b) in chosen)] = (g, b)

    for node_id in queues:
        start_next(node_id)
    ray = rayapi.ray_module()
    while flying:
        done, _ = ray.wait(list(flying), num_returns=1, timeout=min(1.0, max(0.01, deadline - time.monotonic())))
        if done:
            # All that are ready by now in one go: with thousands of nodes, one at a time would be quadratic.
            done, _ = ray.wait(list(flying), num_returns=len(flying), timeout=0)
        for ref in done:
            g, b = flying.pop(ref)
            try:
                answers[g, b] = ray.get(ref)
            except Exception as error:
                raise _lost(groups[g], b, str(error).strip().splitlines()[-1]) from error
            start_next(groups[g].bundles[b].node_id)
        if not done:
            _check_alive([(groups[g], b) for g, b in flying.values()])
            if time.monotonic() > deadline:
                for ref in flying:
                    ray.cancel(ref, force=True)
                raise on_timeout([groups[g] for g in sorted({g for g, _ in flying.values()})])
    uuids = {answers[job]["node"]: dict(answers[job]["uuids"]) for job in chosen}
    return [[_found(group, b, answers[g, b], uuids) for b in range(len(group.bundles))] for g, group in enumerate(groups)]


def _start(task: Any, group: MadeGroup, index: int, first: bool) -> Any:
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    bundle = group.bundles[index]
    resource = group.nodes[bundle.node_id].accelerator
    # A bundle of several GPUs shows all its ids only to a task that takes them all.
    amount = 0.0 if not bundle.gpus else 0.001 if len(bundle.gpus) == 1 else float(len(bundle.gpus))
    takes: dict[str, Any] = {"num_gpus": amount} if resource == "GPU" or not amount else {"resources": {resource: amount}}
    strategy = PlacementGroupSchedulingStrategy(placement_group=group.handle, placement_group_bundle_index=index)
    return task.options(scheduling_strategy=strategy, **takes).remote(resource if bundle.gpus else "", first)


def _probe_task() -> Any:
    """The remote function. Defined inside, so that Ray ships its code: nodes need no placewright."""
    ray = rayapi.ray_module()

    def look(resource: str, first: bool) -> dict[str, Any]:
        import shutil
        import subprocess

        import ray

        context = ray.get_runtime_context()
        answer: dict[str, Any] = {"node": context.get_node_id(), "ids": [], "uuids": {}, "floor": None}
        if resource:
            answer["ids"] = [str(value) for value in context.get_accelerator_ids().get(resource, [])]
        if first:
            try:
                with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
                    answer["floor"] = int(file.read().split()[0])
            except (OSError, ValueError):
                pass
            tool = shutil.which("nvidia-smi")
            if tool:
                try:
                    query = [tool, "--query-gpu=index,uuid", "--format=csv,noheader"]
                    text = subprocess.run(query, capture_output=True, text=True, timeout=10, check=True).stdout
                    for line in text.splitlines():
                        index, uuid = line.split(",", 1)
                        answer["uuids"][int(index)] = uuid.strip()
                except (OSError, ValueError, subprocess.SubprocessError):
                    pass
        return answer

    # GPU tasks get a new process each by default (5-17 s for 64 probes); max_calls=0 uses them again (0.6-2.6 s).
    return ray.remote(num_cpus=0, max_calls=0, max_retries=2)(look)


def _found(group: MadeGroup, index: int, answer: Mapping[str, Any], uuids: Mapping[str, Mapping[int, str]]) -> Found:
    here = uuids.get(answer["node"], {})
    by_uuid = {uuid: gpu for gpu, uuid in here.items()}
    ids: list[int] = []
    for text in answer["ids"]:
        # A raylet that was started with CUDA_VISIBLE_DEVICES reports entries of that list: numbers or UUIDs.
        if text.isdigit():
            ids.append(int(text))
        elif text in by_uuid:
            ids.append(by_uuid[text])
        else:
            node_id = group.bundles[index].node_id
            raise PlanMismatch([f"node {node_id} names its GPUs {text!r}, not by number"], "GPU ids cannot be compared")
    # Several ids come in hash order.
    return Found(answer["node"], tuple(sorted(ids)), here, answer["floor"])


def _check_alive(pending: Sequence[tuple[MadeGroup, int]]) -> None:
    alive: dict[str, LiveNode] = {node.ray_id: node for node in live_nodes() if node.alive}
    for group, index in pending:
        if group.nodes[group.bundles[index].node_id].ray_id not in alive:
            raise _lost(group, index, "")


def _lost(group: MadeGroup, index: int, why: str) -> PlanMismatch:
    node_id = group.bundles[index].node_id
    now = {node.ray_id: node for node in live_nodes()}.get(group.nodes[node_id].ray_id)
    if now is None or not now.alive:
        why = f"node {node_id} died{f': {now.death}' if now is not None and now.death else ''}"
    else:
        why = f"node {node_id}: bundle {index} of group {group.name} did not answer: {why}"
    return PlanMismatch([why], "the plan was not applied")
