"""Making placement groups pinned to nodes, waiting for them, and removing them so that nothing leaks.

Measured on Ray (docs/ray.md): a group that is removed while it is being prepared can leak its GPUs for good, so a removal
first waits until the group is created or Ray has said that it cannot be scheduled now. A group that cannot be scheduled
never fails by itself, so every wait here has a limit. ``Ledger`` knows every group made and not yet removed; whatever
happens, removing what it holds leaves nothing behind.

Modify this file when groups should be pinned, named or removed in another way.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placewright.apply import rayapi
from placewright.apply.bundles import Bundle
from placewright.apply.view import LiveNode
from placewright_models.errors import PlanMismatch
from placewright_models.quantities import UNITS

log = logging.getLogger("placewright.apply")

_POLL_S = 0.01
_SETTLE_LIMIT_S = 10.0
_LOOK_EVERY_S = 1.0
_UNSCHEDULABLE = ("NO_RESOURCES", "INFEASIBLE")
_PIN = 0.001


@dataclass(frozen=True, slots=True)
class MadeGroup:
    """A placement group made: Ray's handle, its name in the plan, the bundles asked for and their nodes."""

    name: str
    handle: Any
    bundles: tuple[Bundle, ...]
    nodes: Mapping[str, LiveNode] = field(repr=False)

    def state(self) -> tuple[str, str]:
        """Ray's state of the group and of its scheduling; a group that Ray forgot counts as removed."""
        table = rayapi.group_table(self.handle)
        return str(table.get("state", "REMOVED")), str(table.get("stats", {}).get("scheduling_state", ""))

    def bundle_nodes(self) -> dict[int, str]:
        """Ray node id of each bundle, by index; empty text where the bundle has no node now."""
        table = rayapi.group_table(self.handle)
        return {int(index): str(node or "") for index, node in table.get("bundles_to_node_id", {}).items()}


class Ledger:
    """Every group made for one plan and not yet removed.

    Args:
        prefix: start of the Ray name of each group.
        detached: whether the plan's groups survive the driver (helper groups never do).
    """

    def __init__(self, prefix: str, detached: bool = False) -> None:
        self.prefix = prefix
        self.detached = detached
        self.open: list[MadeGroup] = []
        self._count = 0

    def create(self, name: str, bundles: Sequence[Bundle], nodes: Mapping[str, LiveNode], *, helper: bool = False) -> MadeGroup:
        """Ask Ray for a group whose every bundle is pinned hard to its node. Returns at once.

        Args:
            name: the group's name in the plan.
            bundles: what it holds; ids come lowest first, so bundles of a node go by ascending planned id.
            nodes: live node of each plan node.
            helper: a group for the moment: never detached.
        """
        from ray.util.placement_group import placement_group

        self._count += 1
        selector = rayapi.has_label_selector()
        arguments: dict[str, Any] = {
            "bundles": [_resources(bundle, nodes[bundle.node_id], pin_by_ip=not selector) for bundle in bundles],
            # The pins say where; STRICT_PACK would be no stricter, and Ray 2.49 ignores label selectors under it.
            "strategy": "PACK",
            "name": f"{self.prefix}{self._count}:{name}",
        }
        if selector:
            arguments["bundle_label_selector"] = [{rayapi.NODE_ID_LABEL: nodes[bundle.node_id].ray_id} for bundle in bundles]
        if self.detached and not helper:
            arguments["lifetime"] = "detached"
        made = MadeGroup(name, placement_group(**arguments), tuple(bundles), nodes)
        self.open.append(made)
        return made

    def remove(self, groups: Iterable[MadeGroup], free_limit_s: float = 3.0) -> None:
        """Remove groups and wait until their resources show as free again (at most ``free_limit_s`` seconds)."""
        leaving = list(groups)
        if leaving:
            remove_groups(leaving, free_limit_s)
            gone = {id(group) for group in leaving}
            self.open = [group for group in self.open if id(group) not in gone]

    def remove_all(self) -> None:
        """Remove whatever is left; does nothing once nothing is left or Ray is gone."""
        if self.open and rayapi.ray_module().is_initialized():
            self.remove(list(self.open), free_limit_s=5.0)
        self.open = []


def check_pinnable(nodes: Mapping[str, LiveNode], live: Iterable[LiveNode]) -> None:
    """Refuse nodes that share an ip where this Ray can only pin by ip.

    Raises:
        PlanMismatch: naming the nodes.
    """
    if rayapi.has_label_selector():
        return
    faults: list[str] = []
    alive = [node for node in live if node.alive]
    for node_id, node in nodes.items():
        others = [other for other in alive if other.ip == node.ip and other.ray_id != node.ray_id]
        if others:
            faults.append(
                f"node {node_id} shares its ip {node.ip} with {others[0].host} (NodeName {others[0].name}); this Ray"
                f" ({rayapi.ray_module().__version__}) can pin bundles by ip only, Ray 2.49 and later by node"
            )
    if faults:
        raise PlanMismatch(faults, "the plan cannot be pinned to its nodes")


def _resources(bundle: Bundle, node: LiveNode, pin_by_ip: bool) -> dict[str, float]:
    found: dict[str, float] = {}
    if bundle.gpus:
        found[node.accelerator] = float(len(bundle.gpus))
    if bundle.cpu_units:
        found["CPU"] = bundle.cpu_units / UNITS
    # Ray refuses a bundle without any resource; one byte is the least that can be asked.
    if bundle.memory or not found:
        found["memory"] = float(bundle.memory or 1)
    if pin_by_ip:
        found[f"node:{node.ip}"] = _PIN
    return found


def wait_created(groups: Sequence[MadeGroup], deadline: float, on_timeout: Callable[[Sequence[MadeGroup]], Exception]) -> None:
    """Wait until every group is created.

    Args:
        groups: the groups, made already.
        deadline: ``time.monotonic()`` at which to give up.
        on_timeout: makes the exception for the groups still waiting then.

    Raises:
        PlanMismatch: if Ray says that a group can never be placed, or somebody removed it.
    """
    waiting = list(groups)
    pause = 0.002
    # Ray 2.60 says INFEASIBLE of a pinned bundle at once; 2.49 says NO_RESOURCES, so the nodes are looked at as well.
    look_at = time.monotonic() + 0.3
    while True:
        still: list[MadeGroup] = []
        for group in waiting:
            state, scheduling = group.state()
            if state != "CREATED" and (scheduling == "INFEASIBLE" or time.monotonic() > look_at):
                never = hopeless(group)
                if never is not None or scheduling == "INFEASIBLE":
                    reason = never or f"group {group.name}: Ray says INFEASIBLE"
                    raise PlanMismatch([reason], "Ray can never place the plan on this cluster")
            if state == "REMOVED":
                raise PlanMismatch([f"group {group.name} was removed by somebody else"], "the plan was not applied")
            if state != "CREATED":
                still.append(group)
        waiting = still
        if not waiting:
            return
        if time.monotonic() > look_at:
            look_at = time.monotonic() + _LOOK_EVERY_S
        if time.monotonic() > deadline:
            raise on_timeout(waiting)
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


def hopeless(group: MadeGroup) -> str | None:
    """Why a group can never be created, as far as the live cluster shows it: a dead node, or one too small for a bundle."""
    from placewright.apply.view import live_nodes

    now = {node.ray_id: node for node in live_nodes()}
    for bundle in group.bundles:
        node = now.get(group.nodes[bundle.node_id].ray_id)
        where = f"group {group.name}: node {bundle.node_id}"
        if node is None or not node.alive:
            return f"{where} died{f': {node.death}' if node is not None and node.death else ''}"
        for what, wanted, there in (
            (node.accelerator, float(len(bundle.gpus)), float(node.gpus)),
            ("CPU", bundle.cpu_units / UNITS, node.total.get("CPU", 0.0)),
            ("memory", float(bundle.memory), node.total.get("memory", 0.0)),
        ):
            if wanted > there:
                return f"{where} has {there:g} {what}, one bundle needs {wanted:g}"
    return None


def settled(group: MadeGroup) -> bool:
    """Whether the group can be removed without the risk of a leak: it is not being prepared just now."""
    state, scheduling = group.state()
    return state in ("CREATED", "REMOVED") or scheduling in _UNSCHEDULABLE


def wait_settled(groups: Sequence[MadeGroup], limit_s: float = _SETTLE_LIMIT_S) -> list[MadeGroup]:
    """Wait until every group is settled; returns those that are not when the limit is over."""
    deadline = time.monotonic() + limit_s
    waiting = [group for group in groups if not settled(group)]
    while waiting and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        waiting = [group for group in waiting if not settled(group)]
    return waiting


def remove_groups(groups: Sequence[MadeGroup], free_limit_s: float = 3.0) -> None:
    """Remove groups safely, and wait until Ray shows what they held as free (or the limit is over)."""
    from ray.util.placement_group import remove_placement_group

    for group in wait_settled(groups):
        log.warning("group %s is still being prepared after %.0f s; removed all the same", group.name, _SETTLE_LIMIT_S)
    before = rayapi.available_by_node()
    expected: dict[tuple[str, str], float] = {}
    for group in groups:
        holding = group.bundle_nodes() if group.state()[0] != "REMOVED" else {}
        for index, node in holding.items():
            # Only live nodes give anything back; a bundle without a node holds nothing.
            if node in before and index < len(group.bundles):
                live = group.nodes[group.bundles[index].node_id]
                for resource, amount in _resources(group.bundles[index], live, pin_by_ip=False).items():
                    start = expected.setdefault((node, resource), before[node].get(resource, 0.0))
                    expected[node, resource] = start + amount
        remove_placement_group(group.handle)
    deadline = time.monotonic() + free_limit_s
    missing = _missing(groups, expected)
    while missing and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        missing = _missing(groups, expected)
    if missing:
        # Others may have taken it meanwhile; so this is worth a line, not an error.
        log.info("not seen as free again within %.1f s: %s", free_limit_s, ", ".join(missing))


def _missing(groups: Sequence[MadeGroup], expected: Mapping[tuple[str, str], float]) -> list[str]:
    waiting = [f"group {group.name}" for group in groups if group.state()[0] != "REMOVED"]
    if waiting:
        return waiting
    now = rayapi.available_by_node()
    return [
        f"{resource} of {node[:8]}"
        for (node, resource), amount in expected.items()
        if node in now and now[node].get(resource, 0.0) < amount - 1e-3
    ]
