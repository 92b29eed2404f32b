"""What is laid over a cluster for one run: health overlays, excluded names, and what other plans hold.

An overlay is a YAML or JSON file of the form::

    nodes:
      node-17: {excluded: "ECC errors", unavailable_gpus: [2], cpus_in_use: 12, reserved_cpus: 2, memory_in_use: 10GiB}
    domains:
      rack3: {excluded: "switch down"}

``excluded``, ``cpus_in_use``, ``reserved_cpus`` and ``memory_in_use`` replace what the cluster says (``excluded: false``
takes a node back in); ``unavailable_gpus`` adds to it. Settings of a domain hold for each of its nodes, settings of a node
win over those of its domain, a later overlay wins over an earlier one. Modify this file when a node gets another property
that changes from run to run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from placewright_models.cluster import Cluster, Node, Occupation
from placewright_models.errors import Fault
from placewright_models.plan import Plan
from placewright_models.quantities import natural_key
from placewright_models.reading.cluster import check_indices, check_use
from placewright_models.reading.schema import OverlayEntry, validate_part
from placewright_models.reading.values import listed, nearest, show

_KEYS = ("nodes", "domains")


def exclude(cluster: Cluster, names: Sequence[str], faults: list[Fault]) -> Cluster:
    """The cluster without the nodes and domains of these names; a text may hold several, with commas between."""
    ids = {node.id for node in cluster.nodes}
    domains = {node.nvlink_domain for node in cluster.nodes if node.nvlink_domain is not None}
    wanted: set[str] = set()
    for text in names:
        known = text in ids or text in domains
        for name in [text] if known else [part.strip() for part in str(text).split(",")]:
            if name in ids or name in domains:
                wanted.add(name)
            elif name:
                options = sorted([*ids, *domains], key=natural_key)
                faults.append(
                    Fault("exclude", f"{name} is neither a node nor an NVLink domain of the cluster", nearest(name, options))
                )
    if not wanted:
        return cluster

    def excluded(node: Node) -> Node:
        for name in (node.id, node.nvlink_domain):
            if name in wanted:
                return replace(node, excluded=f"excluded on request ({name})")
        return node

    return replace(cluster, nodes=tuple(map(excluded, cluster.nodes)))


def overlay(cluster: Cluster, data: Any, place: str, faults: list[Fault]) -> Cluster:
    """The cluster with one overlay laid over it; ``place`` names the overlay in faults."""
    if not isinstance(data, Mapping):
        faults.append(Fault(place, f"{show(data)} is not a mapping", "write nodes: and domains:"))
        return cluster
    for key in data:
        if key not in _KEYS:
            faults.append(Fault(f"{place}.{key}", "unknown key", nearest(key, _KEYS)))
    indices: dict[str, dict[str, list[int]]] = {key: {} for key in _KEYS}
    for index, node in enumerate(cluster.nodes):
        indices["nodes"].setdefault(node.id, []).append(index)
        if node.nvlink_domain is not None:
            indices["domains"].setdefault(node.nvlink_domain, []).append(index)
    nodes = list(cluster.nodes)
    # Domains first: what is said of one node is closer to it.
    for key, noun in (("domains", "an NVLink domain"), ("nodes", "a node")):
        section = data.get(key)
        if section is None:
            continue
        if not isinstance(section, Mapping):
            faults.append(Fault(f"{place}.{key}", f"{show(section)} is not a mapping", "write id: {excluded: reason}"))
            continue
        for name, item in section.items():
            where = f"{place}.{key}.{name}"
            entry, _ = validate_part(OverlayEntry, item, where, faults)
            name = str(name) if type(name) is int else name
            if not isinstance(name, str) or name not in indices[key]:
                faults.append(Fault(where, f"{show(name)} is not {noun} of the cluster", nearest(name, indices[key])))
                continue
            for index in indices[key][name]:
                nodes[index] = _laid(nodes[index], entry, where, faults)
    return replace(cluster, nodes=tuple(nodes))


def _laid(node: Node, entry: OverlayEntry, place: str, faults: list[Fault]) -> Node:
    written = entry.model_fields_set
    changes: dict[str, Any] = {
        field: getattr(entry, field)
        for field in ("excluded", "cpus_in_use", "reserved_cpus", "memory_in_use")
        if field in written
    }
    if "unavailable_gpus" in written:
        check_indices(entry.unavailable_gpus, node.gpus, f"{place}.unavailable_gpus", faults)
        kept = {index for index in entry.unavailable_gpus if index < node.gpus}
        changes["unavailable_gpus"] = tuple(sorted(kept.union(node.unavailable_gpus)))
    laid = replace(node, **changes)
    check_use(laid, place, faults)
    return laid


def occupy(cluster: Cluster, plan: Plan, name: str, faults: list[Fault]) -> Cluster:
    """The cluster without what another plan holds on it: GPUs, CPUs and memory, under that plan's name."""
    gpus: dict[str, set[int]] = {}
    cpus: dict[str, Decimal] = {}
    memory: dict[str, int] = {}
    for component, workers in plan.workers.items():
        asked = plan.problem.by_name.get(component)
        if asked is None:
            faults.append(
                Fault(f"occupied {name}", f"the plan places {component}, which its problem does not have", "plan again")
            )
            continue
        for worker in workers:
            held = gpus.setdefault(worker.node_id, set())
            for start, end in worker.ranges:
                held.update(range(start, end + 1))
            cpus[worker.node_id] = cpus.get(worker.node_id, Decimal(0)) + asked.cpus
            memory[worker.node_id] = memory.get(worker.node_id, 0) + asked.memory
    ids = {node.id for node in cluster.nodes}
    absent = [node_id for node_id in gpus if node_id not in ids]
    if absent:
        wrong = f"the plan uses {listed(absent)}, which the cluster does not have"
        faults.append(Fault(f"occupied {name}", wrong, nearest(absent[0], ids)))
    nodes: list[Node] = []
    for node in cluster.nodes:
        if node.id in gpus:
            indices = tuple(sorted(gpus[node.id]))
            check_indices(indices, node.gpus, f"occupied {name}: node {node.id}", faults)
            kept = tuple(index for index in indices if index < node.gpus)
            node = replace(node, occupied=(*node.occupied, Occupation(name, kept, cpus[node.id], memory[node.id])))
        nodes.append(node)
    return replace(cluster, nodes=tuple(nodes))
