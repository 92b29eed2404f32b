"""NeMo-RL's RayVirtualCluster: placement groups that stand for logical nodes.

Usage: through :mod:`placewright.compat.nemo_rl`.

When to modify: when NeMo-RL's class changes. Ray, ``time`` and the helpers are always reached as ``here.<name>``, the
globals of the public module, because callers and tests replace them there.
"""

from __future__ import annotations

import logging
import os
from typing import Any, Literal

from placewright.compat._lazy import LazyModule
from placewright.compat._nemo_topology import ResourceInsufficientError
from placewright.compat._plan_in_force import PLAN_VARIABLE

# Late, because the public module imports this one.
here: Any = LazyModule("placewright.compat.nemo_rl")

logger = logging.getLogger("placewright.compat.nemo_rl")

_GROUP_TIMEOUT_S = 180
_MASTER_PORT_TRIES = 10


class RayVirtualCluster:
    """Placement groups that stand for logical nodes, one bundle per GPU (or per worker, without GPUs).

    ``bundle_ct_per_node_list``: bundles of each logical node. A bundle holds ``max_colocated_worker_groups`` CPUs, one
    GPU with ``use_gpus``, and the entry of ``node_resource_constraints`` for its node (as many entries as nodes, or
    AssertionError). Ports are handed out from [``port_range_low``, ``port_range_high``). With ``segment_size`` the
    topology order trims domains to whole segments. ``bundle_order`` "nested" asks for the order without defects.
    """

    # Class attribute so that the finaliser of an object whose __init__ failed finds it.
    _node_placement_groups: list[Any] | None = None

    def __init__(
        self,
        bundle_ct_per_node_list: list[int],
        use_gpus: bool = True,
        max_colocated_worker_groups: int = 1,
        num_gpus_per_node: int = 8,
        name: str = "",
        placement_group_strategy: str = "SPREAD",
        port_range_low: int | None = None,
        port_range_high: int | None = None,
        segment_size: int | None = None,
        node_resource_constraints: list[dict[str, float]] | None = None,
        *,
        bundle_order: Literal["nemo", "nested"] = "nemo",
    ) -> None:
        if node_resource_constraints is not None:
            assert len(node_resource_constraints) == len(bundle_ct_per_node_list), (
                f"node_resource_constraints length ({len(node_resource_constraints)}) must match "
                f"bundle_ct_per_node_list length ({len(bundle_ct_per_node_list)})"
            )
        if use_gpus:
            assert num_gpus_per_node > 0, "num_gpus_per_node must be greater than 0 if using GPUs"
        self._bundle_ct_per_node_list = bundle_ct_per_node_list
        self._world_size = sum(bundle_ct_per_node_list)
        self._node_placement_groups = None
        self._sorted_bundle_indices: list[int] | None = None
        self._nvlink_domain_per_bundle_index: tuple[str, ...] | None = None
        self._allocated_master_ports: set[int] = set()
        self.num_gpus_per_node = num_gpus_per_node
        self.use_gpus = use_gpus
        self.max_colocated_worker_groups = max_colocated_worker_groups
        self.name = name
        self.placement_group_strategy = placement_group_strategy
        self.port_range_low = here.DEFAULT_MASTER_PORT_RANGE_LOW if port_range_low is None else port_range_low
        self.port_range_high = here.DEFAULT_MASTER_PORT_RANGE_HIGH if port_range_high is None else port_range_high
        self.segment_size = segment_size
        self.node_resource_constraints = node_resource_constraints
        self.bundle_order: Literal["nemo", "nested"] = bundle_order

    def _init_placement_groups(self, strategy: str | None = None, use_unified_pg: bool = False) -> list[Any]:
        """Create the groups once: one over all nodes, or one per node; later calls give the same list.

        Too few resources are waited for: NRL_VIRTUAL_CLUSTER_MAX_RETRIES tries (6), with 1, 2, 4, ... seconds after
        each. Raises :class:`ResourceInsufficientError` after the last, ValueError or AssertionError where the variable
        is no number above 0.
        """
        if self._node_placement_groups is not None:
            return self._node_placement_groups
        strategy = self.placement_group_strategy if strategy is None else strategy
        tries = int(os.environ.get("NRL_VIRTUAL_CLUSTER_MAX_RETRIES", 6))
        assert tries > 0, f"NRL_VIRTUAL_CLUSTER_MAX_RETRIES={tries} must be an integer greater than 0"
        for attempt in range(tries):
            wait = 2**attempt
            try:
                self._node_placement_groups = self._create_placement_groups_internal(strategy, use_unified_pg)
                if use_unified_pg and self.use_gpus:
                    self._sorted_bundle_indices = self._get_sorted_bundle_indices()
                return self._node_placement_groups
            except ResourceInsufficientError as error:
                print(error)
                print(f"Retrying placement group creation... {attempt + 1}/{tries}. Next retry in {wait} seconds.")
                here.time.sleep(wait)
        raise ResourceInsufficientError(
            f"Maximum number of retries reached ({tries}). Cluster resources may be insufficient or cluster itself is "
            "highly unstable. Please check your cluster configuration and your cluster logs."
        )

    def _create_placement_groups_internal(self, strategy: str, use_unified_pg: bool = False) -> list[Any]:
        """Check the cluster's totals, create the groups and wait for them, without retries.

        Raises :class:`ResourceInsufficientError` with the numbers, or TimeoutError when the groups are not ready in
        three minutes (they are removed then).
        """
        totals = here.ray.cluster_resources()
        bundles = sum(self._bundle_ct_per_node_list)
        for resource, requested in (
            ("GPU", bundles if self.use_gpus else 0),
            ("CPU", bundles * self.max_colocated_worker_groups),
        ):
            available = int(totals.get(resource, 0))
            if requested > available:
                raise ResourceInsufficientError(
                    f"Not enough {resource}s available. Requested {requested} {resource}s, but only {available} are "
                    "available in the cluster."
                )
        if self.use_gpus and PLAN_VARIABLE in os.environ:
            pins = here.planned_pins(self.name, self._bundle_ct_per_node_list)
            self.node_resource_constraints = self.node_resource_constraints if pins is None else pins
        per_node = [[self._make_bundle(node) for _ in range(count)] for node, count in enumerate(self._bundle_ct_per_node_list)]
        if use_unified_pg:
            together = [bundle for node in per_node for bundle in node]
            groups = [here.placement_group(bundles=together, strategy=strategy, name=f"{self.name}-unified")]
        else:
            groups = [
                here.placement_group(bundles=node, strategy="PACK", name=f"{self.name}-node{index}")
                for index, node in enumerate(per_node)
                if node
            ]
        try:
            here.ray.get([group.ready() for group in groups], timeout=_GROUP_TIMEOUT_S)
        except Exception as error:
            if not _is_timeout(error):
                raise
            for group in groups:
                try:
                    here.remove_placement_group(group)
                except Exception as failure:
                    logger.warning("Could not remove placement group %s: %s", group.id, failure)
            raise TimeoutError(
                "Timed out waiting for placement groups to be ready. The cluster may not have enough resources to "
                "satisfy the requested configuration, or the resources may be busy with other tasks."
            ) from error
        return groups

    def _make_bundle(self, node: int) -> dict[str, float]:
        """The resources of one bundle of logical node ``node``."""
        bundle: dict[str, float] = {"CPU": self.max_colocated_worker_groups, "GPU": 1 if self.use_gpus else 0}
        if self.node_resource_constraints and self.node_resource_constraints[node]:
            bundle.update(self.node_resource_constraints[node])
        return bundle

    def get_placement_groups(self) -> list[Any]:
        """The groups that have bundles, created per node if need be."""
        if self._node_placement_groups is None:
            self._init_placement_groups()
        assert self._node_placement_groups is not None, (
            "Placement groups must be initialized before calling get_placement_groups"
        )
        return [group for group in self._node_placement_groups if group.bundle_specs]

    def world_size(self) -> int:
        """Number of bundles."""
        return self._world_size

    def node_count(self) -> int:
        """Number of logical nodes with at least one bundle."""
        return sum(1 for count in self._bundle_ct_per_node_list if count > 0)

    def get_available_address_and_port(self, pg_idx: int, bundle_idx: int) -> tuple[str, int]:
        """Ip of the bundle's node and a free port there."""
        return self.get_available_addresses_and_ports_batch([(pg_idx, bundle_idx)])[0]

    def get_available_addresses_and_ports_batch(
        self, pg_bundle_pairs: list[tuple[int, int]], batch_size: int = 256
    ) -> list[tuple[str, int]]:
        """(ip, free port) of each (group, bundle), in the order asked; at most ``batch_size`` are fetched at a time.

        With a single group its number is ignored. Raises RuntimeError for a group without bundles.
        """
        groups = self.get_placement_groups()
        refs = []
        for pg_idx, bundle_idx in pg_bundle_pairs:
            group = groups[0] if len(groups) == 1 else groups[pg_idx]
            if not group.bundle_specs:
                raise RuntimeError("No valid placement groups found to get available address and port")
            strategy = here.PlacementGroupSchedulingStrategy(placement_group=group, placement_group_bundle_index=bundle_idx)
            # No CPU: the bundle's own may all be taken by its worker.
            task = here._get_node_ip_and_free_port.options(scheduling_strategy=strategy, num_cpus=0)
            refs.append(task.remote(self.port_range_low, self.port_range_high))
        if len(refs) <= batch_size:
            answers: list[tuple[str, int]] = here.ray.get(refs)
            return answers
        found: dict[Any, tuple[str, int]] = {}
        remaining = list(refs)
        while remaining:
            ready, remaining = here.ray.wait(remaining, num_returns=min(batch_size, len(remaining)))
            # Ready refs come in the order of completion.
            found.update(zip(ready, here.ray.get(ready), strict=True))
        return [found[ref] for ref in refs]

    def get_master_address_and_port(self) -> tuple[str, int]:
        """Ip of the first rank's node and a port that this cluster has not given out before.

        Raises RuntimeError when ten tries give only ports that were given out.
        """
        if not self._node_placement_groups:
            self.get_placement_groups()
        first = 0 if self._sorted_bundle_indices is None else self._sorted_bundle_indices[0]
        for _ in range(_MASTER_PORT_TRIES):
            address, port = self.get_available_address_and_port(0, first)
            if port not in self._allocated_master_ports:
                self._allocated_master_ports.add(port)
                return address, port
        raise RuntimeError(
            f"Failed to find a unique master port after {_MASTER_PORT_TRIES} retries. "
            f"Already allocated ports: {self._allocated_master_ports}"
        )

    def _get_sorted_bundle_indices(self) -> list[int] | None:
        """Topological order of the unified group's bundles; None without GPUs or with a group per node.

        Raises ValueError before the groups exist, AssertionError when whole segments leave bundles out.
        """
        if self._node_placement_groups is None:
            raise ValueError("Placement groups must be initialized before calling _get_sorted_bundle_indices")
        self._nvlink_domain_per_bundle_index = None
        if not self.use_gpus or len(self._node_placement_groups) != 1:
            return None
        # Replacements of the helper need not know our extra argument.
        extra: dict[str, Any] = {} if self.bundle_order == "nemo" else {"order": self.bundle_order}
        reordered: tuple[list[int], list[int], tuple[str, ...]] = here.get_reordered_bundle(
            self._node_placement_groups[0],
            segment_size=self.segment_size,
            gpus_per_node=self.num_gpus_per_node if self.segment_size else None,
            **extra,
        )
        indices, _, domains = reordered
        self._nvlink_domain_per_bundle_index = domains
        assert len(indices) == len(domains), (
            f"Topology sort returned {len(indices)} bundle indices but the cluster has {len(domains)}. Some NVLink "
            "domains had incomplete segments and were trimmed. Ensure cluster.segment_size divides evenly into each "
            "domain's node count and that node_resource_constraints are set to pin nodes to complete segments before "
            "creating this cluster."
        )
        return indices

    def shutdown(self) -> bool:
        """Remove the groups; may be called again, and does nothing once Ray is gone. Always True."""
        # Groups end with Ray, and calling it after its own exit handler aborts the process.
        if self._node_placement_groups is None or not here.ray.is_initialized():
            return True
        for group in self._node_placement_groups:
            try:
                here.remove_placement_group(group)
            except Exception as error:
                print(f"Error removing placement group {group.id}: {error}")
        self._node_placement_groups = None
        self._sorted_bundle_indices = None
        self._nvlink_domain_per_bundle_index = None
        return True

    def __del__(self) -> None:
        """Safety net for clusters that nobody shut down."""
        try:
            self.shutdown()
        except Exception:  # At interpreter exit anything may be gone already, and nobody could catch this.
            logger.debug("shutdown in the finaliser failed", exc_info=True)


def _is_timeout(error: BaseException) -> bool:
    """Whether Ray gave up waiting; older Rays' GetTimeoutError is no TimeoutError."""
    theirs = getattr(here.ray.exceptions, "GetTimeoutError", None)
    return isinstance(error, TimeoutError) or (isinstance(theirs, type) and isinstance(error, theirs))
