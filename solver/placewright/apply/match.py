"""Which live Ray node each node of the plan is: by host name, then Ray NodeName, then ip; never by a stored Ray id.

A Ray node id changes with every restart of the node, so it says nothing about the machine. Modify this file when a
plan's node can be known by something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from placewright.apply.view import LiveNode
from placewright_models.cluster import Node
from placewright_models.errors import PlanMismatch


def match_nodes(wanted: Iterable[Node], live: Sequence[LiveNode]) -> dict[str, LiveNode]:
    """The live node of each wanted one, by plan node id.

    Args:
        wanted: nodes of the plan.
        live: nodes as Ray shows them; dead ones are never matched but explain what happened.

    Raises:
        PlanMismatch: if a node has no live counterpart, several, or shares one with another node of the plan.
    """
    alive = [node for node in live if node.alive]
    matched: dict[str, LiveNode] = {}
    faults: list[str] = []
    taken: dict[str, str] = {}
    for node in wanted:
        found = _candidates(node, alive)
        if len(found) > 1:
            faults.append(
                f"node {node.id} could be any of {len(found)} live nodes: {'; '.join(str(candidate) for candidate in found)};"
                " give it an id, node_name or ip that only one of them has"
            )
        elif not found:
            faults.append(_gone(node, live))
        elif found[0].ray_id in taken:
            faults.append(f"nodes {taken[found[0].ray_id]} and {node.id} of the plan are one live node: {found[0]}")
        else:
            taken[found[0].ray_id] = node.id
            matched[node.id] = found[0]
    if faults:
        raise PlanMismatch(faults, "the plan's nodes do not match the live cluster")
    return matched


def _candidates(node: Node, alive: Sequence[LiveNode]) -> list[LiveNode]:
    names = {name for name in (node.id, node.node_name) if name}
    addresses = {address for address in (node.ip, node.id) if address}
    by_host = [candidate for candidate in alive if candidate.host == node.id]
    by_name = [candidate for candidate in alive if candidate.name in names]
    by_ip = [candidate for candidate in alive if candidate.ip in addresses]
    for tier in (by_host, by_name, by_ip):
        if len(tier) > 1:
            # Several nodes may share a host name (containers, simulated nodes): what is recorded beside it decides.
            for narrower in (by_name, by_ip):
                both = [candidate for candidate in tier if candidate in narrower]
                if len(both) == 1:
                    return both
        if tier:
            return tier
    return []


def _gone(node: Node, live: Sequence[LiveNode]) -> str:
    dead = _candidates(node, [candidate for candidate in live if not candidate.alive])
    if dead:
        why = f": {dead[-1].death}" if dead[-1].death else ""
        return f"node {node.id} is gone: it is dead in Ray{why}"
    known = ", ".join(text for text in (node.node_name and f"NodeName {node.node_name}", node.ip and f"ip {node.ip}") if text)
    alive = [candidate for candidate in live if candidate.alive]
    shown = "; ".join(str(candidate) for candidate in alive[:5]) + (f"; and {len(alive) - 5} more" if len(alive) > 5 else "")
    name = f"node {node.id} ({known})" if known else f"node {node.id}"
    return f"{name} is gone: no live Ray node has that host name, NodeName or ip; alive: {shown}"
