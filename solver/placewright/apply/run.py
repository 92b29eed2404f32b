"""``apply``, ``attach`` and ``release``: the steps in order.

Match nodes, check room, make groups with exact ids, read back, hand out. Whatever fails, everything made is removed first.
Modify this file when a step is added.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Sequence
from types import MappingProxyType

from placewright.apply import rayapi
from placewright.apply.applied import AppliedPlan, Standing
from placewright.apply.bundles import Layout, lay_out
from placewright.apply.errors import ApplyTimeout, DetachedNameError
from placewright.apply.exact import Placed, place
from placewright.apply.groups import Ledger, MadeGroup, check_pinnable, remove_groups
from placewright.apply.match import match_nodes
from placewright.apply.record import Record, group_prefix
from placewright.apply.room import check_room, room, shortages
from placewright.apply.view import LiveNode, live_nodes
from placewright.apply.worker import AppliedWorker
from placewright_models.plan import Plan
from placewright_models.quantities import UNITS
from placewright_models.ranges import indices_of

log = logging.getLogger("placewright.apply")


def apply(
    plan: Plan,
    *,
    address: str | None = None,
    layout: str = "pool",
    exact: bool = True,
    timeout: float = 60.0,
    detach: str | None = None,
    namespace: str | None = None,
    bundles: str = "auto",
) -> AppliedPlan:
    """Carry a plan out on a Ray cluster, and prove it by reading back from inside every bundle.

    Args:
        plan: the plan.
        address: ``host:port`` of the cluster; unused where this process is connected already. None takes ``RAY_ADDRESS`` or the
            cluster of this machine.
        layout: one placement group per ``pool``, ``node`` or ``component``; those that share a GPU are one group.
        exact: every worker gets the physical GPUs that the plan names. False accepts any GPUs of the right node; the
            result says which.
        timeout: seconds for everything together. Removing what was made comes on top, with limits of its own.
        detach: a name: the groups survive this driver, and ``attach`` and ``release`` find them by it.
        namespace: Ray namespace of the connection, and of the detached plan's record (``placewright`` if not given).
        bundles: ``auto``: an actor of several whole GPUs gets one bundle with all of them, everything else bundles of one GPU.
            ``gpu``: bundles of one GPU only, as engines want them that start a process per GPU themselves.

    Returns:
        the applied plan; a context manager that lets everything go at its end, unless ``detach`` is given.

    Raises:
        PlanMismatch: a node is gone, ambiguous, smaller or has less free than the plan takes; a planned GPU is somebody
            else's; a node died meanwhile; shares cannot be dealt out.
        ApplyTimeout: time ran out.
        DetachedNameError: the name of ``detach`` is taken.
        ConnectionError: there is no cluster at the address.
    """
    started = time.monotonic()
    wanted = lay_out(plan, layout, bundles)
    rayapi.connect(address, namespace)
    planned = plan.problem.node_by_id
    demand = wanted.demand()
    live = live_nodes()
    nodes = match_nodes([planned[node_id] for node_id in demand], live)
    check_room(demand, planned, nodes)
    check_pinnable(nodes, live)

    record = None if detach is None else Record.claim(detach, namespace)
    token = uuid.uuid4().hex[:8]
    prefix = f"placewright/{token}/" if detach is None else f"{group_prefix(detach, namespace)}{token}/"
    ledger = Ledger(prefix, detached=record is not None)

    def on_timeout(waiting: Sequence[MadeGroup]) -> ApplyTimeout:
        return _timeout(started, wanted, ledger, waiting)

    try:
        placed = place(wanted, nodes, ledger, exact=exact, deadline=started + timeout, on_timeout=on_timeout)
        standing = _standing(plan, wanted, placed, nodes)
        if record is not None:
            groups = [(entry.made.name, rayapi.group_id(entry.made.handle), entry.made.bundles) for entry in placed]
            record.store((standing, ledger.prefix, groups, dict(nodes)))
    except BaseException:
        # Ctrl-C too: a half-applied plan must not stay.
        try:
            ledger.remove_all()
        finally:
            if record is not None:
                record.drop()
        raise
    log.info("applied in %.1f s: %d bundles in %d groups", time.monotonic() - started, sum(map(_size, placed)), len(placed))
    return AppliedPlan(standing, ledger, {entry.made.name: entry.made for entry in placed}, record)


def attach(name: str, *, address: str | None = None, namespace: str | None = None) -> AppliedPlan:
    """The plan that another driver applied with ``detach=name``.

    Leaving it as a context manager leaves it standing; ``shutdown()`` releases it for everybody.

    Args:
        name: the name given to ``detach``.
        address: as for ``apply``.
        namespace: as given to ``apply``.

    Raises:
        DetachedNameError: if nothing is applied under the name.
    """
    rayapi.connect(address, namespace)
    record = Record.find(name, namespace)
    standing, prefix, groups, nodes = record.load()
    ledger = Ledger(prefix, detached=True)
    made = {
        group: MadeGroup(group, rayapi.group_of_id(hex_id), bundles, MappingProxyType(nodes))
        for group, hex_id, bundles in groups
    }
    ledger.open = list(made.values())
    return AppliedPlan(standing, ledger, made, record)


def release(name: str, *, address: str | None = None, namespace: str | None = None) -> None:
    """Let go of a detached plan: its groups, what a lost driver left of it, and its name.

    Args:
        name: the name given to ``detach``.
        address: as for ``apply``.
        namespace: as given to ``apply``.

    Raises:
        DetachedNameError: if nothing is applied under the name.
    """
    rayapi.connect(address, namespace)
    try:
        record: Record | None = Record.find(name, namespace)
    except DetachedNameError:
        record = None
    if record is not None:
        try:
            attach(name, namespace=namespace).shutdown()
        except DetachedNameError:
            record.drop()
    left = rayapi.groups_by_prefix(group_prefix(name, namespace))
    if record is None and not left:
        raise DetachedNameError(name, f"no plan is applied under the name {name} in namespace {namespace or 'placewright'}")
    remove_groups([MadeGroup(group, rayapi.group_of_id(hex_id), (), {}) for group, hex_id in left])


def _size(entry: Placed) -> int:
    return len(entry.index)


def _timeout(started: float, wanted: Layout, ledger: Ledger, waiting: Sequence[MadeGroup]) -> ApplyTimeout:
    """What Ray says of each group, and what is short on the nodes of those still waiting."""
    states = {group.name: " / ".join(text for text in group.state() if text) for group in ledger.open}
    names = {group.name for group in waiting}
    demand = wanted.demand([index for index, group in enumerate(wanted.groups) if group.name in names])
    now = {node.ray_id: node for node in live_nodes()}
    nodes = {}
    short: list[str] = []
    for group in waiting:
        for node_id, before in group.nodes.items():
            live = now.get(before.ray_id, before)
            if node_id in demand and node_id not in nodes:
                # A group that is created but did not answer holds what it wanted.
                nodes[node_id] = room(demand[node_id], live)
                if group.state()[0] != "CREATED":
                    short += shortages(node_id, demand[node_id], live) or _parts(node_id, len(demand[node_id].gpus), live)
    return ApplyTimeout(time.monotonic() - started, states, nodes, short)


def _parts(node_id: str, wanted: int, live: LiveNode) -> list[str]:
    if not wanted or abs(live.free_gpus - round(live.free_gpus)) < 1e-3:
        return []
    return [f"node {node_id}: {live.free_gpus:g} {live.accelerator}s are free in sum, but fewer than {wanted} as a whole"]


def _standing(plan: Plan, layout: Layout, placed: Sequence[Placed], nodes: dict[str, LiveNode]) -> Standing:
    workers: dict[str, tuple[AppliedWorker, ...]] = {}
    floors: dict[str, int] = {}
    for entry in placed:
        for bundle, answer in zip(entry.made.bundles, entry.found, strict=True):
            if answer.ephemeral_floor is not None:
                floors[bundle.node_id] = answer.ephemeral_floor
    for component, planned in plan.workers.items():
        on_node: dict[str, int] = {}
        for worker in planned:
            on_node[worker.node_id] = on_node.get(worker.node_id, 0) + 1
        seen: dict[str, int] = {}
        rows: list[AppliedWorker] = []
        for index, worker in enumerate(planned):
            seat = layout.seats[component][index]
            entry = placed[seat.group]
            actual = [entry.index[part.bundle] for part in seat.parts]
            gpus = tuple(gpu for bundle in actual for gpu in entry.found[bundle].gpus)
            uuids = entry.found[actual[0]].uuids
            local_rank = seen.get(worker.node_id, 0)
            seen[worker.node_id] = local_rank + 1
            rows.append(
                AppliedWorker(
                    component=component,
                    index=index,
                    node_id=worker.node_id,
                    ray_node_id=nodes[worker.node_id].ray_id,
                    ip=nodes[worker.node_id].ip,
                    planned_gpus=tuple(indices_of(worker.ranges)),
                    gpu_ids=gpus,
                    gpu_uuids=tuple(uuids[gpu] for gpu in gpus if gpu in uuids),
                    rank=index,
                    world_size=len(planned),
                    local_rank=local_rank,
                    local_world_size=on_node[worker.node_id],
                    group=entry.made.name,
                    bundles=tuple(actual),
                    num_gpus=tuple(part.gpu_units / UNITS for part in seat.parts),
                    num_cpus=tuple(part.cpu_units / UNITS for part in seat.parts),
                    memory=tuple(part.memory for part in seat.parts),
                    accelerator=nodes[worker.node_id].accelerator,
                )
            )
        workers[component] = tuple(rows)
    return Standing(plan, workers, floors)
