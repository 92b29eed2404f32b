"""Every call into Ray that is private, depends on the version, or needs care; the rest of the package goes through here.

Ray is imported on first use, never with the module. What is measured about Ray stands beside the call that relies on it.
Modify this file when a Ray release moves or repairs one of these calls.
"""

from __future__ import annotations

import inspect
import logging
import re
from types import ModuleType
from typing import Any

from placewright_models.errors import PlacewrightError

log = logging.getLogger("placewright.apply")

NODE_ID_LABEL = "ray.io/node-id"
# The argument exists from 2.47 on but refuses idle nodes there, and once broke a pin; 2.49.2 and later are good.
FIRST_GOOD_SELECTOR = (2, 49)


def ray_module() -> ModuleType:
    """Ray itself.

    Raises:
        PlacewrightError: if Ray is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise PlacewrightError("Ray is not installed here; install it with: pip install 'placewright[ray]'") from error
    return ray  # type: ignore[no-any-return]


def connect(address: str | None = None, namespace: str | None = None) -> None:
    """Connect to a running cluster unless this process is connected already. Never starts a cluster of its own.

    Args:
        address: ``host:port`` of the cluster; None takes ``RAY_ADDRESS`` or the cluster of this machine.
        namespace: Ray namespace of the driver.

    Raises:
        PlacewrightError: for a Ray Client address, or if the process is connected to another cluster.
        ConnectionError: if there is no cluster at the address.
    """
    ray = ray_module()
    if address is not None and address.startswith("ray://"):
        raise PlacewrightError(f"{address}: Ray Client cannot apply plans; run on a node of the cluster and use its host:port")
    if not ray.is_initialized():
        ray.init(address=address or "auto", namespace=namespace)
        return
    current = ray.get_runtime_context().gcs_address
    if address is not None and re.fullmatch(r"[^/]+:\d+", address) and address != current:
        raise PlacewrightError(f"this process is connected to the Ray cluster at {current}, not to {address}")


def version() -> tuple[int, int]:
    """Major and minor version of the installed Ray; development versions count as the newest."""
    found = re.match(r"(\d+)\.(\d+)", str(ray_module().__version__))
    major, minor = (int(found.group(1)), int(found.group(2))) if found else (0, 0)
    return (major, minor) if major < 3 else (2, 10_000)


def has_label_selector() -> bool:
    """Whether bundles can be pinned by ``bundle_label_selector``; else by the resource ``node:<ip>``."""
    from ray.util.placement_group import placement_group

    return version() >= FIRST_GOOD_SELECTOR and "bundle_label_selector" in inspect.signature(placement_group).parameters


def available_by_node() -> dict[str, dict[str, float]]:
    """Free resources of each live node by Ray node id; a missing resource is used up.

    The public API gives only the sum over the cluster; this one stands in a private module, marked DeveloperAPI.
    """
    ray_module()
    from ray._private.state import available_resources_per_node

    return {str(node): dict(free) for node, free in available_resources_per_node().items()}


def group_table(group: Any) -> dict[str, Any]:
    """What Ray knows of one placement group; empty if it forgot it."""
    from ray.util.placement_group import placement_group_table

    return dict(placement_group_table(group) or {})


def groups_by_prefix(prefix: str) -> list[tuple[str, str]]:
    """Name and hex id of every group that is not removed and whose name starts so, in any namespace."""
    from ray.util.placement_group import placement_group_table

    table = placement_group_table() or {}
    return [
        (str(entry["name"]), str(entry["placement_group_id"]))
        for entry in table.values()
        # The table keeps removed groups.
        if str(entry.get("name", "")).startswith(prefix) and entry.get("state") != "REMOVED"
    ]


def group_id(group: Any) -> str:
    """Hex id of a placement group."""
    return str(group.id.hex())


def group_of_id(hex_id: str) -> Any:
    """Handle of a placement group by hex id (the public look-up by name sees only the driver's own namespace)."""
    from ray._raylet import PlacementGroupID
    from ray.util.placement_group import PlacementGroup

    return PlacementGroup(PlacementGroupID(bytes.fromhex(hex_id)))
