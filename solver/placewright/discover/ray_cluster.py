"""A problem's ``cluster:`` section from a running Ray cluster, as plain data.

::

    found = discover_ray(address="10.0.0.1:6379", probe_gpus=True)
    Path("cluster.yaml").write_text(yaml.safe_dump({"cluster": found["cluster"]}, sort_keys=False))
    print(*found["warnings"], sep="\\n", file=sys.stderr)

Modify this file when a node of the problem file gets a new field that Ray knows.
"""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from placewright.apply import rayapi
from placewright.apply.errors import ApplyTimeout
from placewright.apply.exact import hold_free
from placewright.apply.groups import Ledger, MadeGroup, check_pinnable
from placewright.apply.view import ACCELERATORS, LiveNode, live_nodes
from placewright.discover.source import TopologySource, choose_domains, label_source, valid_domain
from placewright_models.quantities import natural_key
from placewright_models.ranges import format_ranges, ranges_of

log = logging.getLogger("placewright.discover")

_ACCELERATOR_RESOURCE = "accelerator_type:"
_ACCELERATOR_LABEL = "ray.io/accelerator-type"
_RANK = "topo_rank"


def discover(
    sources: Sequence[TopologySource],
    *,
    address: str | None,
    probe_gpus: bool,
    domain_label: str | None,
    timeout: float,
) -> dict[str, Any]:
    """See ``placewright.discover.discover_ray``, which lists the sources."""
    rayapi.connect(address)
    alive = [node for node in live_nodes() if node.alive]
    nodes, warnings = _by_id(alive)
    domains, about_domains = choose_domains(nodes, sources, label_source(domain_label) if domain_label else None)
    ranks, about_ranks = _ranks(nodes)
    in_use, about_use = _gpus_in_use(nodes, alive, probe_gpus, timeout)
    entries = [
        _entry(node_id, node, domains.get(node_id), ranks.get(node_id), in_use.get(node_id, ((), node.gpus)))
        for node_id, node in nodes.items()
    ]
    return {"cluster": {"nodes": entries}, "warnings": [*warnings, *about_domains, *about_ranks, *about_use]}


def _by_id(alive: Sequence[LiveNode]) -> tuple[dict[str, LiveNode], list[str]]:
    """Nodes by host name; by Ray NodeName or ip where several nodes have one host name."""
    ids: dict[str, str] = {}
    shared: Counter[str] = Counter()
    hosts = Counter(node.host for node in alive)
    names = Counter(node.name for node in alive)
    for node in alive:
        if node.host and hosts[node.host] == 1:
            ids[node.ray_id] = node.host
            continue
        shared[node.host] += 1
        ids[node.ray_id] = node.name if node.name and names[node.name] == 1 and node.name not in hosts else node.ip
    doubled = Counter(ids.values())
    for node in alive:
        if doubled[ids[node.ray_id]] > 1:
            # Neither name nor ip tells them apart; the Ray id does, until the node restarts.
            ids[node.ray_id] = node.ray_id
    ordered = sorted(alive, key=lambda node: natural_key(ids[node.ray_id]))
    warnings = [
        f"{count} nodes have the host name {host}; their ids are Ray NodeNames or ips" for host, count in shared.items()
    ]
    return {ids[node.ray_id]: node for node in ordered}, warnings


def _ranks(nodes: Mapping[str, LiveNode]) -> tuple[dict[str, int], list[str]]:
    """Topology ranks: from the resource or the label ``topo_rank``; zero (which Ray drops) and missing are unknown."""
    ranks: dict[str, int] = {}
    odd: list[str] = []
    for node_id, node in nodes.items():
        raw = node.total.get(_RANK, node.labels.get(_RANK))
        if raw is None or valid_domain(str(raw)) is None:
            continue
        try:
            value = float(raw)
        except ValueError:
            value = math.nan
        if value >= 1 and value == int(value):
            ranks[node_id] = int(value)
        elif value != 0:
            odd.append(f"{node_id} ({raw})")
    warnings = [f"topo_rank is not a whole number from 1 on, so unknown: {', '.join(odd)}"] if odd else []
    twice = [rank for rank, count in Counter(ranks.values()).items() if count > 1]
    if twice:
        names = ", ".join(node_id for node_id, rank in ranks.items() if rank in twice)
        warnings.append(f"nodes share a topo_rank: {names}; among equals the id decides")
    return ranks, warnings


InUse = tuple[tuple[int, ...], int]
"""GPU ids in use, and how many ids the node has."""


def _gpus_in_use(
    nodes: Mapping[str, LiveNode], alive: Sequence[LiveNode], probe_gpus: bool, timeout: float
) -> tuple[dict[str, InUse], list[str]]:
    busy = {node_id: node for node_id, node in nodes.items() if node.gpus > int(node.free_gpus + 1e-6)}
    if not busy:
        return {}, []
    found: dict[str, InUse] = {}
    warnings: list[str] = []
    free = _probe_free(busy, alive, timeout) if probe_gpus else None
    for node_id, node in busy.items():
        count = node.gpus - int(node.free_gpus + 1e-6)
        if free is None:
            found[node_id] = (tuple(range(count)), node.gpus)
            lowest = format_ranges([(0, count - 1)])
            warnings.append(
                f"node {node_id}: {count} of {node.gpus} {node.accelerator}s are in use; taken to be {lowest}, since Ray gives"
                " the lowest first. Probing tells for sure"
            )
            continue
        # A raylet that was started with CUDA_VISIBLE_DEVICES has ids beyond its count.
        size = max([node.gpus, *(gpu + 1 for gpu in free[node_id])])
        held = tuple(gpu for gpu in range(size) if gpu not in free[node_id])
        found[node_id] = (held, size)
        warnings.append(f"node {node_id}: {node.accelerator}s in use: {format_ranges(ranges_of(held))}")
    return found, warnings


def _probe_free(busy: Mapping[str, LiveNode], alive: Sequence[LiveNode], timeout: float) -> dict[str, set[int]]:
    """Ids of the free GPUs, found by holding all of them for a moment."""
    check_pinnable(busy, alive)
    started = time.monotonic()

    def on_timeout(waiting: Sequence[MadeGroup]) -> ApplyTimeout:
        states = {group.name: " / ".join(group.state()) for group in waiting}
        return ApplyTimeout(time.monotonic() - started, states, {}, ["the free GPUs could not be probed in time"])

    ledger = Ledger(f"placewright/discover-{time.time_ns():x}/")
    try:
        held = hold_free(busy, ledger, started + timeout, on_timeout)
        return {node_id: set(by_id) for node_id, by_id in held.items()}
    finally:
        ledger.remove_all()


def _entry(node_id: str, node: LiveNode, domain: str | None, rank: int | None, in_use: InUse) -> dict[str, Any]:
    held, size = in_use
    entry: dict[str, Any] = {"id": node_id, "gpus": size, "cpus": _number(node.total.get("CPU", 0.0))}
    used = node.total.get("CPU", 0.0) - node.free.get("CPU", 0.0)
    if used > 5e-5:
        entry["cpus_in_use"] = _number(used)
    memory = int(node.total.get("memory", 0))
    if memory:
        entry["memory"] = memory
        busy = memory - int(node.free.get("memory", 0))
        if busy > 0:
            entry["memory_in_use"] = busy
    entry["ip"] = node.ip
    if node.name:
        entry["node_name"] = node.name
    entry["ray_node_id"] = node.ray_id
    if domain is not None:
        entry["nvlink_domain"] = domain
    if rank is not None:
        entry["topo_rank"] = rank
    accelerator = _accelerator(node)
    if accelerator is not None:
        entry["accelerator"] = accelerator
    # The node id is a label too, but one that a restart changes.
    labels = {key: value for key, value in sorted(node.labels.items()) if key != rayapi.NODE_ID_LABEL and value}
    if labels:
        entry["labels"] = labels
    if held:
        entry["unavailable_gpus"] = list(held)
    if node.head:
        entry["head"] = True
    return entry


def _accelerator(node: LiveNode) -> str | None:
    """The accelerator's type, else its kind where it is not a GPU."""
    types = sorted(name[len(_ACCELERATOR_RESOURCE) :] for name in node.total if name.startswith(_ACCELERATOR_RESOURCE))
    found = types[0] if types else node.labels.get(_ACCELERATOR_LABEL)
    if found:
        return found
    return next((name for name in ACCELERATORS if name != "GPU" and node.accelerator == name), None)


def _number(value: float) -> int | float:
    rounded = round(value, 4)
    return int(rounded) if rounded == int(rounded) else rounded
