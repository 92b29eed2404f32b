"""Whether the live nodes still have what the plan takes, before anything is created; and what is short when time runs out.

Ray itself never says that a *sum* of bundles cannot fit (its state stays NO_RESOURCES), so sums are checked here. Modify
this file when the plan reserves a new kind of resource.
"""

from __future__ import annotations

from collections.abc import Mapping

from placewright.apply.bundles import Demand
from placewright.apply.errors import NodeRoom
from placewright.apply.view import LiveNode
from placewright_models.cluster import Node
from placewright_models.errors import PlanMismatch
from placewright_models.quantities import UNITS, format_memory


def check_room(demand: Mapping[str, Demand], planned: Mapping[str, Node], live: Mapping[str, LiveNode]) -> None:
    """Refuse a plan whose nodes are smaller, or have less free, than it needs.

    Args:
        demand: what the plan takes, by plan node id.
        planned: the nodes as they were when the plan was made.
        live: the live node of each.

    Raises:
        PlanMismatch: one sentence per node and resource.
    """
    faults: list[str] = []
    for node_id, wanted in demand.items():
        faults += _smaller(planned[node_id], live[node_id]) or shortages(node_id, wanted, live[node_id], planned[node_id])
    if faults:
        raise PlanMismatch(faults, "the cluster is not the one that the plan was made for")


def _smaller(node: Node, live: LiveNode) -> list[str]:
    # GPUs that the plan knew to be unavailable may have been taken out of Ray altogether.
    expected = node.gpus - len(node.unavailable_gpus)
    if live.gpus >= expected:
        return []
    return [
        f"node {node.id} is smaller than when it was planned: it has {live.gpus} {live.accelerator}s, the plan has {node.gpus}"
    ]


def shortages(node_id: str, wanted: Demand, live: LiveNode, node: Node | None = None) -> list[str]:
    """What the node lacks, as sentences; nothing where it has room."""
    found: list[str] = []
    if len(wanted.gpus) > int(live.free_gpus + 1e-6):
        before = f"; {node.available_gpus} were available when it was planned" if node is not None else ""
        found.append(
            f"node {node_id} has fewer free {live.accelerator}s than the plan takes: free {live.free_gpus:g} of {live.gpus},"
            f" the plan takes {len(wanted.gpus)}{before}"
        )
    if wanted.cpu_units > live.free_cpu_units:
        found.append(
            f"node {node_id} is short of CPUs: the plan takes {wanted.cpu_units / UNITS:g},"
            f" free {live.free_cpu_units / UNITS:g} of {live.total.get('CPU', 0):g}"
        )
    if wanted.memory > live.free.get("memory", 0):
        found.append(
            f"node {node_id} is short of memory: the plan takes {format_memory(wanted.memory)},"
            f" free {format_memory(int(live.free.get('memory', 0)))} of {format_memory(int(live.total.get('memory', 0)))}"
        )
    return found


def room(wanted: Demand, live: LiveNode) -> NodeRoom:
    """Wanted and free amounts of a node, for reports."""
    return NodeRoom(len(wanted.gpus), live.free_gpus, wanted.cpu_units / UNITS, live.free_cpu_units / UNITS)
