"""verl's pools on the nodes and GPUs of a plan: which part of the plan a pool is, and its placement groups on Ray.

Usage: ``PlannedResourcePool(plan, "global_pool")`` (the same as ``RayResourcePool.from_plan``), or through
:mod:`placewright.compat.verl_plugin` for pools that verl makes itself.

When to modify: when verl names or makes its pools in another way.
"""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from typing import Any

from placewright.compat.verl import RayResourcePool
from placewright.export.verl import ORDERS, REPLICAS, Slots, even_groups, pool_members, slots_of
from placewright_models.errors import PlanMismatch
from placewright_models.plan import Plan, Worker
from placewright_models.quantities import UNITS
from placewright_models.ranges import format_ranges, ranges_of

TRAINER_POOLS = ("global_pool", "trainer_pool", "train_pool")
"""Names of the trainer's pool: verl's own two, and a plan's."""
_REPLICA_POOL = re.compile(r"rollout_pool_(?:(reward|teacher)_)?(\d+)(?:_.*)?")


def pool_slots(plan: Plan, name: str, processes: int, order: str = "ip", first_replica: int = 0) -> Slots | None:
    """The GPUs by node that the plan has for the pool that verl calls ``name``; None where the plan knows no such pool.

    Args:
        plan: the plan.
        name: the pool's ``name_prefix``; ``rollout_pool_3`` is replica 3 of the rollout.
        processes: how many processes the pool has, which tells a replica's width.
        order: order of the nodes, one of ``ORDERS``.
        first_replica: number of the first replica that verl makes pools for.

    Raises:
        PlanMismatch: if the plan has the component but not this replica.
    """
    if order not in ORDERS:
        raise ValueError(f"order {order!r}: write {' or '.join(ORDERS)}")
    pools = pool_members(plan)
    workers: Sequence[Worker] | None = None
    replica = _REPLICA_POOL.fullmatch(name)
    if pools.get(name):
        workers = [worker for member in pools[name] for worker in plan.workers[member]]
    elif replica is not None:
        names = (replica[1],) if replica[1] else REPLICAS
        component = next((member for member in names if plan.workers.get(member)), None)
        workers = None if component is None else _replica(plan, component, int(replica[2]) - first_replica, processes)
    elif name in TRAINER_POOLS:
        other = next((pool for pool in TRAINER_POOLS if pools.get(pool)), None)
        workers = None if other is None else [worker for member in pools[other] for worker in plan.workers[member]]
    return None if workers is None else slots_of(plan, workers, order)


def _replica(plan: Plan, component: str, index: int, processes: int) -> Sequence[Worker]:
    width = max(1, plan.problem.by_name[component].gpus_per_worker)
    each = max(1, processes // width)
    workers = plan.workers[component]
    found = workers[index * each : (index + 1) * each] if index >= 0 else ()
    if len(found) * width != processes:
        have = f"the plan has {len(workers)} workers of {width} GPUs"
        raise PlanMismatch([f"replica {index} of {component} has {processes} GPUs in verl; {have}"], "verl asks another pool")
    return found


def cut(name: str, slots: Slots, store: Sequence[int]) -> Slots:
    """The GPUs cut into verl's groups, one for each entry of ``store``.

    Raises:
        PlanMismatch: if they do not come out even, with the numbers that would.
    """
    left = [list(gpus) for _, gpus in slots]
    if len(set(store)) <= 1:
        size = store[0] if store else 0
        if size and sum(map(len, left)) == sum(store) and all(len(gpus) % size == 0 for gpus in left):
            return tuple((node, gpus[at : at + size]) for node, gpus in slots for at in range(0, len(gpus), size))
    else:
        groups: list[tuple[str, tuple[int, ...]]] = []
        for count in store:
            # The node that it fills exactly, else the first with room.
            places = [place for place, gpus in enumerate(left) if len(gpus) >= count]
            place = next((place for place in places if len(left[place]) == count), places[0] if places else None)
            if place is not None:
                groups.append((slots[place][0], tuple(left[place][:count])))
                del left[place][:count]
        if len(groups) == len(store) and not any(left):
            return tuple(groups)
    there = ", ".join(f"{node} {format_ranges(ranges_of(gpus))}" for node, gpus in slots[:8])
    even = even_groups(slots)
    right = (
        f"{len(even)} groups of {len(even[0][1])} (nnodes={len(even)}, n_gpus_per_node={len(even[0][1])})" if even else "none"
    )
    raise PlanMismatch(
        [f"{name} is {list(store)} in verl; the plan has GPUs {there}, which make {right}"],
        "verl asks another pool than planned",
    )


def make_groups(
    plan: Plan, name: str, groups: Slots, max_colocate_count: int, detached: bool = False, timeout: float = 60.0
) -> tuple[list[Any], Any]:
    """Placement groups on exactly these GPUs, in the order of ``groups``, proved by reading back.

    Returns:
        the groups, and the ledger that can remove them again.

    Raises:
        PlanMismatch: if the live cluster is not as planned, or somebody holds one of the GPUs.
        ApplyTimeout: if time ran out.
    """
    from placewright.apply import rayapi
    from placewright.apply.bundles import Bundle, Group, Layout
    from placewright.apply.errors import ApplyTimeout
    from placewright.apply.exact import place
    from placewright.apply.groups import Ledger, MadeGroup, check_pinnable
    from placewright.apply.match import match_nodes
    from placewright.apply.room import check_room
    from placewright.apply.view import live_nodes

    rayapi.connect(None, None)
    started = time.monotonic()
    cpus = max_colocate_count * UNITS
    layout = Layout(
        tuple(
            Group(f"{name}{index}", tuple(Bundle(node, (gpu,), cpus, 0, ()) for gpu in gpus))
            for index, (node, gpus) in enumerate(groups)
        ),
        {},
    )
    demand = layout.demand()
    live = live_nodes()
    nodes = match_nodes([plan.problem.node_by_id[node_id] for node_id in demand], live)
    check_room(demand, plan.problem.node_by_id, nodes)
    check_pinnable(nodes, live)
    ledger = Ledger(f"placewright/verl/{name}", detached=detached)

    def on_timeout(waiting: Sequence[MadeGroup]) -> ApplyTimeout:
        states = {group.name: " / ".join(text for text in group.state() if text) for group in waiting}
        return ApplyTimeout(time.monotonic() - started, states, {}, [])

    try:
        placed = place(layout, nodes, ledger, exact=True, deadline=started + timeout, on_timeout=on_timeout)
    except BaseException:
        ledger.remove_all()
        raise
    return [entry.made.handle for entry in placed], ledger


class PlannedResourcePool(RayResourcePool):
    """A pool whose groups lie on exactly the nodes and GPUs that a plan gives it.

    Args:
        plan: the plan.
        pool_name: the pool of the plan, or ``rollout_pool_3`` for a replica (then with ``process_on_nodes``).
        process_on_nodes: processes per group; by default the planned nodes, cut to the greatest common size.
        max_colocate_count: CPUs of a bundle, and how many worker groups may share a GPU.
        name_prefix: start of the names of workers; the pool's name by default.
        detached: whether the groups outlive this driver.
        order: ``ip`` (verl's own, ip read as numbers) or ``topology``.
        timeout: seconds for the groups to come up.

    Raises:
        KeyError: if the plan knows no such pool.
        PlanMismatch: if ``process_on_nodes`` is not what was planned.
    """

    def __init__(
        self,
        plan: Plan,
        pool_name: str,
        process_on_nodes: list[int] | None = None,
        *,
        max_colocate_count: int = 10,
        name_prefix: str | None = None,
        detached: bool = False,
        order: str = "ip",
        timeout: float = 60.0,
    ) -> None:
        slots = pool_slots(plan, pool_name, sum(process_on_nodes or [1]), order)
        if slots is None:
            raise KeyError(f"the plan has no pool {pool_name}; it has {', '.join(pool_members(plan))}")
        self.planned = even_groups(slots) if process_on_nodes is None else cut(pool_name, slots, process_on_nodes)
        super().__init__(
            [len(gpus) for _, gpus in self.planned],
            True,
            pool_name if name_prefix is None else name_prefix,
            max_colocate_count,
            detached,
        )
        self.order = order
        self._plan = plan
        self._timeout = timeout
        self._ledger: Any = None

    def get_placement_groups(
        self, strategy: str = "STRICT_PACK", name: str | None = None, device_name: str | None = None
    ) -> list[Any]:
        """The pool's groups in rank order, made once. Strategy and device follow from the plan and its nodes."""
        if self.pgs is None:
            prefix = name or f"{self.name_prefix}verl_group_{'_'.join(map(str, self.store))}:"
            made, self._ledger = make_groups(
                self._plan, prefix, self.planned, self.max_colocate_count, self.detached, self._timeout
            )
            self.pgs = made
            self._created = (made, made)
        return self.pgs

    def _order_groups(self, groups: list[Any]) -> list[Any]:
        if self.pgs is not None and {id(group) for group in groups} <= {id(group) for group in self.pgs}:
            return sorted(groups, key=self._place_of)
        return super()._order_groups(groups)

    def _place_of(self, group: Any) -> int:
        return next(place for place, own in enumerate(self.pgs or ()) if own is group)

    def shutdown(self) -> None:
        """Remove the groups and wait until their GPUs are free."""
        if self._ledger is not None:
            self._ledger.remove_all()
        self.pgs = self._ledger = self._created = None
