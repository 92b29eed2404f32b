"""verl's resource pools, with the names, arguments, results and errors they have today, and their defects mended.

Usage::

    from placewright.compat.verl import RayResourcePool, ResourcePoolManager, split_resource_pool

verl's own RayWorkerGroup and RayClassWithInitArgs run on these pools unchanged. What differs from verl (V1..V8 are the
defects of the reference page in docs/):

* ``get_placement_groups`` gives the same list, sorted by node ip read as numbers, on every call (V1, V8); the pool's
  ``store`` is put in the same order (V3).
* An unequal pool is announced in the log, because RayWorkerGroup takes the first node's count for every node.
  ``worker_layout`` says which bundle each rank should get, ``even_resource_pool`` makes a pool that RayWorkerGroup lays
  out completely (V2).
* The manager's check also asks whether each group fits on a node, and counts NPUs where "GPU" is 0 (V4, V5). Without a
  ``device_name`` the groups ask for the accelerator that the cluster has.
* Splitting and merging keep ``detached`` and ``accelerator_type``; sub pools can be merged (V6).
* ``extract_pg_from_exist`` serves equal requests in order; ``extract_bundles_from_exist`` lets one group serve several
  requests (V7).

When to modify: when verl's pools get a new argument. Pools that are pinned to a plan's nodes subclass RayResourcePool
and override ``_create_group`` (where a group lies) and ``_order_groups`` (rank order). Ray is imported on first use only.
"""

from __future__ import annotations

import itertools
import logging
import math
import sys
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placewright.compat._lazy import LazyAttribute, LazyModule
from placewright.compat._packing import PackingUndecided, pack
from placewright.compat._verl_base import ResourcePool, get_random_string, group_ranges, ip_key
from placewright.compat._verl_layout import (
    WorkerSlot,
    even_resource_pool,
    extract_bundles_from_exist,
    extract_pg_from_exist,
    whole_groups,
    worker_layout,
)
from placewright_models.plan import Plan

__all__ = [
    "RayResourcePool",
    "ResourcePool",
    "ResourcePoolManager",
    "SubRayResourcePool",
    "WorkerSlot",
    "even_resource_pool",
    "extract_bundles_from_exist",
    "extract_pg_from_exist",
    "get_device_name",
    "get_random_string",
    "merge_resource_pool",
    "sort_placement_group_by_node_ip",
    "split_resource_pool",
    "worker_layout",
]

logger = logging.getLogger(__name__)

# Module globals on purpose: tests and callers may replace them, every function looks them up at call time.
ray: Any = LazyModule("ray")
placement_group: Any = LazyAttribute("ray.util.placement_group", "placement_group")

_RESOURCE_OF_DEVICE = {"cuda": "GPU", "npu": "NPU"}
_VERL_RAY_MODULE = "verl.single_controller.ray.base"


def get_device_name() -> str:
    """The device the groups ask for when nobody says: "npu" where the cluster has NPUs and no GPU, otherwise "cuda".

    Inside a verl process verl's own answer comes first, unless it is "cpu": that only says that the driver's node has no
    accelerator, and a bundle that asks for a resource named "cpu" waits for ever (V5).
    """
    device_module = sys.modules.get("verl.utils.device")
    if device_module is not None:
        name = str(device_module.get_device_name())
        if name in _RESOURCE_OF_DEVICE:
            return name
    totals = [node.get("Resources") or {} for node in ray.nodes() if node.get("Alive", True)]
    if not any("GPU" in resources or "NPU" in resources for resources in totals):
        totals = list(_available_per_node().values())
    has_gpu = any(resources.get("GPU", 0) > 0 for resources in totals)
    has_npu = any(resources.get("NPU", 0) > 0 for resources in totals)
    return "npu" if has_npu and not has_gpu else "cuda"


def _available_per_node() -> dict[str, dict[str, float]]:
    """Free resources by node id; empty where this Ray cannot tell."""
    try:
        # Ray has no public way to ask this; the function is marked DeveloperAPI.
        available: dict[str, dict[str, float]] = ray._private.state.available_resources_per_node()
    except AttributeError:
        return {}
    return available


def _free_accelerators(resources: Mapping[str, float]) -> float:
    """Free GPUs of a node; its NPUs where it has no GPU or a "GPU" entry of 0, which says nothing about NPUs (V5)."""
    gpus, npus = resources.get("GPU", 0), resources.get("NPU", 0)
    return gpus if gpus > 0 or ("GPU" in resources and npus <= 0) else npus


def _group_table(group: Any) -> Any:
    try:
        return ray.util.placement_group_table(group)
    except AttributeError:
        return ray._private.state.state.placement_group_table(group.id)


def sort_placement_group_by_node_ip(pgs: Sequence[Any]) -> list[Any]:
    """The groups by the ip of the node that holds their bundle 0, read as numbers; equal ips keep their order.

    The order is the same in every run on the same nodes, so that a rank finds its node-local checkpoint again.
    Raises KeyError when the group's node is not in the cluster.
    """
    address_of = {node["NodeID"]: node["NodeManagerAddress"] for node in ray.nodes()}
    return sorted(pgs, key=lambda group: ip_key(address_of[_group_table(group)["bundles_to_node_id"][0]]))


class RayResourcePool(ResourcePool):
    """A pool with one Ray placement group per node and one bundle per process.

    A bundle holds ``max_colocate_count`` CPUs and, with ``use_gpu``, one accelerator and 1e-4 of the resource named
    ``accelerator_type``. ``name_prefix`` defaults to six random characters; ``detached`` groups outlive the driver.
    """

    def __init__(
        self,
        process_on_nodes: list[int] | None = None,
        use_gpu: bool = True,
        name_prefix: str | None = None,
        max_colocate_count: int = 10,
        detached: bool = False,
        accelerator_type: str | None = None,
    ) -> None:
        super().__init__(process_on_nodes, max_colocate_count)
        self.use_gpu = use_gpu
        self.name_prefix = get_random_string(length=6) if name_prefix is None else name_prefix
        self.pgs: list[Any] | None = None
        self.detached = detached
        self.accelerator_type = accelerator_type
        self._created: tuple[list[Any], list[Any]] | None = None

    @staticmethod
    def from_plan(plan: Plan, pool_name: str, process_on_nodes: list[int] | None = None, **options: Any) -> RayResourcePool:
        """A pool on exactly the nodes and GPUs that the plan gives its pool ``pool_name``, in groups of one size.

        ``process_on_nodes`` and ``options`` are those of :class:`placewright.compat._verl_planned.PlannedResourcePool`:
        max_colocate_count, name_prefix, detached, order ("ip" or "topology"), timeout. Raises KeyError for an unknown pool.
        """
        from placewright.compat._verl_planned import PlannedResourcePool

        return PlannedResourcePool(plan, pool_name, process_on_nodes, **options)

    def get_placement_groups(
        self, strategy: str = "STRICT_PACK", name: str | None = None, device_name: str | None = None
    ) -> list[Any]:
        """The pool's groups in rank order: created and waited for (without limit) once, then the same list again.

        ``device_name`` is "cuda", "npu" or the name of a Ray resource; by default what the cluster has (verl: always
        "cuda"). ``name`` replaces the prefix of the groups' names. Raises Ray's ValueError for a node of 0 processes.
        """
        if self.pgs is not None:
            return self.pgs
        prefix = name or f"{self.name_prefix}verl_group_{'_'.join(str(count) for count in self._store)}:"
        bundle = self._bundle(device_name)
        lifetime = "detached" if self.detached else None
        created = [
            self._create_group(index, [dict(bundle) for _ in range(count)], strategy, f"{prefix}{index}", lifetime)
            for index, count in enumerate(self._store)
        ]
        ray.get([group.ready() for group in created])
        self._adopt(created)
        if len(set(self._store)) > 1:
            logger.warning(
                "pool %r has unequal nodes %s: verl's RayWorkerGroup starts %d workers on every node, not these counts; "
                "see placewright.compat.verl.even_resource_pool",
                self.name_prefix,
                self._store,
                self._store[0],
            )
        assert self.pgs is not None
        return self.pgs

    def _bundle(self, device_name: str | None) -> dict[str, float]:
        """The resources of one process."""
        bundle: dict[str, float] = {"CPU": self.max_colocate_count}
        if self.use_gpu:
            device = get_device_name() if device_name is None else device_name
            bundle[_RESOURCE_OF_DEVICE.get(device, device)] = 1
            if self.accelerator_type is not None:
                bundle[self.accelerator_type] = 1e-4
        return bundle

    def _create_group(self, index: int, bundles: list[dict[str, float]], strategy: str, name: str, lifetime: str | None) -> Any:
        """Create the group of node ``index``; pools from a plan pin it to a node here."""
        return placement_group(bundles=bundles, strategy=strategy, name=name, lifetime=lifetime)

    def _order_groups(self, groups: list[Any]) -> list[Any]:
        """The groups in rank order; pools from a plan may ask for another one here."""
        return sort_placement_group_by_node_ip(groups)

    def _adopt(self, created: list[Any]) -> None:
        """Take the groups in rank order, and the node counts with them (V3)."""
        ordered = self._order_groups(created)
        count_of = {id(group): count for group, count in zip(created, self._store, strict=True)}
        counts = [count_of[id(group)] for group in ordered]
        if counts != self._store:
            # A new list: the old one may be the caller's own specification.
            self._store = counts
        self.pgs = ordered
        self._created = (ordered, created)

    def _groups_as_created(self) -> list[Any]:
        """The groups in creation order where this pool made them, otherwise in the order it was given them."""
        groups = self.get_placement_groups()
        return self._created[1] if self._created is not None and self._created[0] is groups else groups


class SubRayResourcePool(RayResourcePool):
    """Bundles ``start_bundle_index`` .. ``+ subgroup_world_size - 1`` of another pool's groups (shared, not copied).

    ``store`` and the two ``local_*_list`` methods describe the groups, as RayWorkerGroup expects when it looks for a
    bundle; ``subgroup_local_world_size_list`` and ``subgroup_local_rank_list`` describe this part alone (V6).
    """

    def __init__(self, placement_groups: list[Any], start_bundle_index: int, subgroup_world_size: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.pgs = placement_groups
        self.start_bundle_index = start_bundle_index
        self.subgroup_world_size = subgroup_world_size

    @property
    def world_size(self) -> int:
        """Number of processes of this part."""
        return self.subgroup_world_size

    def subgroup_local_world_size_list(self) -> list[int]:
        """For each process of this part the number of this part's processes on its node."""
        return [count for count in self._counts() for _ in range(count)]

    def subgroup_local_rank_list(self) -> list[int]:
        """For each process of this part its number among this part's processes on its node."""
        return [rank for count in self._counts() for rank in range(count)]

    def _counts(self) -> list[int]:
        """This part's processes per group."""
        end = self.start_bundle_index + self.subgroup_world_size
        return [max(0, min(end, last) - max(self.start_bundle_index, first)) for first, last in group_ranges(self._store)]

    # RayWorkerGroup and split_resource_pool of verl ask isinstance(pool, verl's SubRayResourcePool). Where verl is
    # loaded our sub pools say yes; isinstance with our own class keeps working because it looks at type(self) first.
    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        theirs = getattr(sys.modules.get(_VERL_RAY_MODULE), "SubRayResourcePool", None)
        return theirs if isinstance(theirs, type) else type(self)

    def __reduce__(self) -> tuple[Any, ...]:
        # pickle compares __class__ with the type it rebuilds, so it must not do the rebuilding itself.
        return _restore, (type(self), self.__dict__)


def _restore(kind: type[Any], state: dict[str, Any]) -> Any:
    restored = object.__new__(kind)
    restored.__dict__.update(state)
    return restored


@dataclass
class ResourcePoolManager:
    """Makes the pools of a job. ``resource_pool_spec``: processes per node by pool name; ``mapping``: role -> pool name."""

    resource_pool_spec: dict[str, list[int]]
    mapping: Mapping[Any, str]
    resource_pool_dict: dict[str, RayResourcePool] = field(default_factory=dict)
    max_colocate_count: int = field(default=3, kw_only=True)

    def create_resource_pool(self) -> None:
        """Make a :class:`RayResourcePool` per name, then check that the cluster can hold them.

        Raises ValueError with the numbers when it cannot; the pools stay registered.
        """
        for name, process_on_nodes in self.resource_pool_spec.items():
            self.resource_pool_dict[name] = RayResourcePool(
                process_on_nodes=process_on_nodes,
                use_gpu=True,
                max_colocate_count=self.max_colocate_count,
                name_prefix=name,
            )
        self._check_resource_available()

    def get_resource_pool(self, role: Hashable) -> RayResourcePool:
        """The role's pool. Raises KeyError for an unknown role or pool."""
        return self.resource_pool_dict[self.mapping[role]]

    def get_n_gpus(self) -> int:
        """Processes of all pools."""
        return sum(count for counts in self.resource_pool_spec.values() for count in counts)

    def _check_resource_available(self) -> None:
        """Free accelerators in total, and node by node: every group must lie on one node (V4, V5)."""
        available = {
            node: _free_accelerators(resources) for node, resources in ray._private.state.available_resources_per_node().items()
        }
        total, wanted = sum(available.values()), self.get_n_gpus()
        if total < wanted:
            raise ValueError(f"Total available GPUs {total} is less than total desired GPUs {wanted}")
        sizes = [count for counts in self.resource_pool_spec.values() for count in counts]
        try:
            fits = pack(sizes, [math.floor(free) for free in available.values()]) is not None
        except PackingUndecided:
            return  # No proof either way: as today, Ray decides.
        if not fits:
            raise ValueError(
                f"The pools {self.resource_pool_spec} do not fit on the nodes: each count must lie on one node, and the "
                f"available GPUs per node are {available}"
            )


def split_resource_pool(resource_pool: RayResourcePool, split_size: int | list[int]) -> list[SubRayResourcePool]:
    """Cut a pool (or a sub pool, again) into parts of ``split_size`` processes, or of the given sizes.

    The parts share the pool's groups, which are created if need be. Raises AssertionError when the sizes do not make up
    the pool and ZeroDivisionError for a size of 0.
    """
    if isinstance(split_size, int):
        assert resource_pool.world_size % split_size == 0, "split_size must be a divisor of world_size"
        sizes = [split_size] * (resource_pool.world_size // split_size)
    else:
        sizes = list(split_size)
    assert sum(sizes) == resource_pool.world_size, "split_size must sum up to world_size"
    first = resource_pool.start_bundle_index if isinstance(resource_pool, SubRayResourcePool) else 0
    groups = resource_pool.get_placement_groups()
    parts = []
    for index, (size, offset) in enumerate(zip(sizes, itertools.accumulate(sizes, initial=0), strict=False)):
        part = SubRayResourcePool(
            process_on_nodes=resource_pool.store,
            use_gpu=resource_pool.use_gpu,
            name_prefix=f"{resource_pool.name_prefix}_split_{index}",
            max_colocate_count=resource_pool.max_colocate_count,
            detached=resource_pool.detached,
            accelerator_type=resource_pool.accelerator_type,
            placement_groups=groups,
            start_bundle_index=first + offset,
            subgroup_world_size=size,
        )
        part.n_gpus_per_node = resource_pool.n_gpus_per_node
        parts.append(part)
    return parts


def merge_resource_pool(rp1: RayResourcePool, rp2: RayResourcePool) -> RayResourcePool:
    """One pool of both pools' groups, the first pool's first.

    Two neighbouring parts of one pool give a part again. Other sub pools must cover whole groups, or ValueError says
    which bundles are in the way. Raises AssertionError when the pools differ in use_gpu, max_colocate_count,
    n_gpus_per_node or detached. ``accelerator_type`` is kept where both have the same.
    """
    assert rp1.use_gpu == rp2.use_gpu, "Both RayResourcePool must either use_gpu or not"
    assert rp1.max_colocate_count == rp2.max_colocate_count, "Both RayResourcePool must has the same max_colocate_count"
    assert rp1.n_gpus_per_node == rp2.n_gpus_per_node, "Both RayResourcePool must has the same n_gpus_per_node"
    assert rp1.detached == rp2.detached, "Detached ResourcePool cannot be merged with non-detached ResourcePool"

    prefix = f"{rp1.name_prefix}_{rp2.name_prefix}"
    device = get_device_name() if rp1.use_gpu else None
    groups1 = rp1.get_placement_groups(device_name=device)
    groups2 = rp2.get_placement_groups(device_name=device)
    if (
        isinstance(rp1, SubRayResourcePool)
        and isinstance(rp2, SubRayResourcePool)
        and groups1 is groups2
        and rp1.start_bundle_index + rp1.subgroup_world_size == rp2.start_bundle_index
    ):
        merged: RayResourcePool = SubRayResourcePool(
            process_on_nodes=rp1.store,
            use_gpu=rp1.use_gpu,
            name_prefix=prefix,
            max_colocate_count=rp1.max_colocate_count,
            detached=rp1.detached,
            placement_groups=groups1,
            start_bundle_index=rp1.start_bundle_index,
            subgroup_world_size=rp1.subgroup_world_size + rp2.subgroup_world_size,
        )
    else:
        (counts1, whole1), (counts2, whole2) = whole_groups(rp1), whole_groups(rp2)
        kind = RayResourcePool if isinstance(rp1, SubRayResourcePool) else type(rp1)
        merged = kind(counts1 + counts2, rp1.use_gpu, prefix, rp1.max_colocate_count, rp1.detached)
        merged.pgs = whole1 + whole2
    merged.accelerator_type = rp1.accelerator_type if rp1.accelerator_type == rp2.accelerator_type else None
    merged.n_gpus_per_node = rp1.n_gpus_per_node
    return merged
