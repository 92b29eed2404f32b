"""Which group and bundle serves whom: workers of verl's pools, and requests served from existing groups.

Usage: through :mod:`placewright.compat.verl`.

When to modify: when verl numbers its workers in another way.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from placewright.compat._packing import PackingUndecided, pack

if TYPE_CHECKING:
    from placewright.compat.verl import RayResourcePool


def _source_groups(resource_pools: Mapping[str, RayResourcePool], src_role_names: Sequence[str]) -> list[Any]:
    """The named pools' groups, most bundles first, equal ones in creation order. All pools are created, as in verl."""
    groups = [group for role, pool in resource_pools.items() for group in pool._groups_as_created() if role in src_role_names]
    return sorted(groups, key=lambda group: -int(group.bundle_count))


def extract_pg_from_exist(
    resource_pools: Mapping[str, RayResourcePool], src_role_names: Sequence[str], resource_pool: RayResourcePool
) -> list[Any]:
    """A group of the named pools for each node of ``resource_pool``: the largest for the largest, one for each.

    Equal requests are served in their order. Raises AssertionError when there are too few groups or bundles.
    """
    sources = _source_groups(resource_pools, src_role_names)
    requests = sorted(enumerate(resource_pool.store), key=lambda request: -request[1])
    chosen: dict[int, Any] = {}
    for number, (index, processes) in enumerate(requests):
        assert number < len(sources), f"no enough nodes for request: searching {number} th node"
        assert processes <= sources[number].bundle_count, f"requesting {processes} processes, bundle count cannot satisfy"
        chosen[index] = sources[number]
    return [chosen[index] for index in range(len(requests))]


def extract_bundles_from_exist(
    resource_pools: Mapping[str, RayResourcePool], src_role_names: Sequence[str], resource_pool: RayResourcePool
) -> list[tuple[Any, int]]:
    """Like :func:`extract_pg_from_exist`, but several nodes of ``resource_pool`` may share a group (V7).

    Gives for each node the group and the first of its consecutive bundles there; no bundle is given twice. Raises
    ValueError with the numbers when the requests do not fit.
    """
    sources = _source_groups(resource_pools, src_role_names)
    capacities = [int(group.bundle_count) for group in sources]
    try:
        placed = pack(resource_pool.store, capacities)
    except PackingUndecided:
        placed = None
    if placed is None or (not sources and resource_pool.store):
        raise ValueError(f"No place found for requests of {resource_pool.store} bundles in groups of {capacities}")
    following = [0] * len(sources)
    result = []
    for processes, source in zip(resource_pool.store, placed, strict=True):
        result.append((sources[source], following[source]))
        following[source] += processes
    return result


class WorkerSlot(NamedTuple):
    """Where a rank runs: bundle ``bundle`` of ``group``, which is number ``pg_idx`` of the pool's groups."""

    rank: int
    pg_idx: int
    group: Any
    bundle: int
    world_size: int
    local_world_size: int


def worker_layout(resource_pool: RayResourcePool) -> list[WorkerSlot]:
    """Which bundle each rank of a pool should get: every bundle once, group after group, unequal nodes included (V2).

    On equal nodes this is what verl's RayWorkerGroup does. ``local_world_size`` is the number of bundles of the group.
    """
    groups = resource_pool.get_placement_groups()
    counts = resource_pool.store
    # Only sub pools have a first bundle (the class is not imported: it would close an import circle).
    first: int | None = getattr(resource_pool, "start_bundle_index", None)
    if first is None:
        # RayWorkerGroup sorts a plain pool's groups again, which matters for a merged one.
        order = {id(group): place for place, group in enumerate(resource_pool._order_groups(list(groups)))}
        pairs = sorted(zip(groups, counts, strict=True), key=lambda pair: order[id(pair[0])])
        groups, counts = [group for group, _ in pairs], [count for _, count in pairs]
    bundles = [(index, bundle) for index, count in enumerate(counts) for bundle in range(count)]
    first = first or 0
    world_size = resource_pool.world_size
    return [
        WorkerSlot(rank, pg_idx, groups[pg_idx], bundle, world_size, counts[pg_idx])
        for rank, (pg_idx, bundle) in enumerate(bundles[first : first + world_size])
    ]


def whole_groups(pool: RayResourcePool) -> tuple[list[int], list[Any]]:
    """The counts and groups of a pool; of a sub pool those that it covers, if it covers each of them entirely."""
    groups = pool.get_placement_groups()
    # Only sub pools have a first bundle (the class is not imported: it would close an import circle).
    if getattr(pool, "start_bundle_index", None) is None:
        return pool.store, groups
    counts: list[int] = pool._counts()  # type: ignore[attr-defined]
    cut = [index for index, count in enumerate(counts) if 0 < count < pool.store[index]]
    if cut:
        raise ValueError(
            f"Cannot merge {pool.name_prefix!r}: it holds {counts[cut[0]]} of the {pool.store[cut[0]]} bundles of group "
            f"{cut[0]}; only whole groups, or neighbouring parts of one pool, can be merged"
        )
    used = [index for index, count in enumerate(counts) if count]
    return [counts[index] for index in used], [groups[index] for index in used]


def even_resource_pool(resource_pool: RayResourcePool) -> RayResourcePool:
    """A pool of as many processes in groups of one size, on which RayWorkerGroup gives every process a bundle (V2).

    The size is the greatest common divisor of the node counts: [1, 2] becomes [1, 1, 1]. Raises ValueError when the
    pool's groups exist already, since they would be reserved twice.
    """
    if resource_pool.pgs is not None:
        raise ValueError(f"The groups of pool {resource_pool.name_prefix!r} exist already")
    from placewright.compat.verl import RayResourcePool

    size = math.gcd(*resource_pool.store)
    even = RayResourcePool(
        [size] * (resource_pool.world_size // size) if size else [],
        resource_pool.use_gpu,
        resource_pool.name_prefix,
        resource_pool.max_colocate_count,
        resource_pool.detached,
        resource_pool.accelerator_type,
    )
    even.n_gpus_per_node = resource_pool.n_gpus_per_node
    return even
