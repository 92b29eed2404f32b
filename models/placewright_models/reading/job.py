"""From the ``components`` section of the file to ``Component`` values: short forms written out, defaults filled in.

A ``Draft`` is one component as far as it can be read; ``checks.py`` looks at drafts, and only drafts without fault become
components. Modify this file when a component gets a new field, a new short form or a new default.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from placewright_models.cluster import CLUSTER_LEVEL, DOMAIN_LEVEL, Cluster
from placewright_models.errors import Fault
from placewright_models.quantities import natural_key
from placewright_models.reading import values
from placewright_models.reading.schema import ComponentEntry, validate_part
from placewright_models.reading.values import Workers, Wrong, show
from placewright_models.workload import KIND_BY_NAME, Component, Group

AUTO_COMPONENT = "buffer"
"""The one component whose ``workers: auto`` needs no ``per_node_of``: it means one per node of train."""
AUTO_TARGET = "train"


@dataclass(frozen=True)
class Draft:
    """One component of the file.

    Attributes:
        broken: fields that could not be read; what depends on them is not checked.
        workers: how many workers, short forms resolved; None where that cannot be said.
        group_workers: workers of a group, None without group.
        wide: replicas that fit no node, written out as groups of one-GPU workers.
    """

    name: str
    entry: ComponentEntry
    broken: frozenset[str]
    workers: Workers | None = None
    gpus: Decimal = Decimal(0)
    group_workers: int | None = None
    per_node_of: str | None = None
    wide: bool = False

    @property
    def place(self) -> str:
        return f"components.{self.name}"

    def knows(self, *fields: str) -> bool:
        """Whether all these fields could be read."""
        return self.broken.isdisjoint(fields)


def parse_components(data: Any, cluster: Cluster, faults: list[Fault]) -> dict[str, Draft]:
    """Every component as far as it can be read, by name."""
    if data is None:
        return {}
    if not isinstance(data, Mapping):
        faults.append(Fault("components", f"{show(data)} is not a mapping", "write name: {workers: ..., gpus: ...}"))
        return {}
    drafts: dict[str, Draft] = {}
    for key, item in data.items():
        try:
            if not isinstance(key, str):
                raise Wrong(f"the name {show(key)} is not text", "put it in quotes")
            name = values.name(key)
        except Wrong as wrong:
            faults.append(Fault("components", wrong.wrong, wrong.right))
            continue
        entry, broken = validate_part(ComponentEntry, item, f"components.{name}", faults)
        drafts[name] = _resolve(Draft(name, entry, broken), cluster)
    return drafts


def _resolve(draft: Draft, cluster: Cluster) -> Draft:
    """Write out replicas, auto, and counts that follow from per_node and nodes."""
    entry = draft.entry
    group = entry.group.workers if entry.group is not None else None
    draft = replace(draft, gpus=entry.gpus, group_workers=group, per_node_of=entry.per_node_of)
    if entry.replicas is not None and entry.gpus_per_replica is not None:
        return _replicas(draft, entry.replicas, entry.gpus_per_replica, cluster)
    if not draft.knows("workers", "replicas", "gpus_per_replica"):
        return draft
    counts = entry.workers
    if counts is None and draft.knows("per_node", "nodes"):
        if isinstance(entry.per_node, tuple):
            counts = Workers(sum(entry.per_node), sum(entry.per_node))
        elif entry.per_node is not None and entry.nodes is not None:
            counts = Workers(entry.per_node * entry.nodes, entry.per_node * entry.nodes)
        elif entry.per_node_of is not None:
            counts = Workers(None, None)
    if counts == Workers(None, None) and draft.per_node_of is None and draft.name == AUTO_COMPONENT:
        draft = replace(draft, per_node_of=AUTO_TARGET)
    return replace(draft, workers=counts)


def _replicas(draft: Draft, counts: Workers, width: Decimal, cluster: Cluster) -> Draft:
    """One worker for each replica where a node is wide enough, else a group of one-GPU workers for each."""
    entry = draft.entry
    if width <= 1 or _widest_node(entry, cluster) >= width:
        return replace(draft, workers=counts, gpus=width)
    size = int(width)
    low, high = counts
    wide = Workers(None if low is None else low * size, None if high is None else high * size)
    return replace(draft, workers=wide, gpus=Decimal(1), group_workers=size, wide=True)


def _widest_node(entry: ComponentEntry, cluster: Cluster) -> int:
    """Most GPUs of a node that the component may use (H10); ``Problem.largest_node`` says the same of a component."""
    wanted = None if entry.node_ids is None else frozenset(entry.node_ids)
    barred = frozenset(entry.exclude_node_ids or ())
    labels = (entry.labels or {}).items()
    return max(
        (
            node.gpus
            for node in cluster.nodes
            if node.excluded is None
            and (cluster.schedule_on_head or not node.head)
            and (entry.accelerator is None or node.accelerator == entry.accelerator)
            and (wanted is None or node.id in wanted)
            and node.id not in barred
            and all(node.labels.get(key) == value for key, value in labels)
        ),
        default=0,
    )


def default_within(cluster: Cluster) -> str:
    """The level of a group that names none: the NVLink domain where any is known, else the cluster."""
    return DOMAIN_LEVEL if any(node.nvlink_domain is not None for node in cluster.nodes) else CLUSTER_LEVEL


def kind_of(draft: Draft) -> str:
    """The kind as written, else by name, else by what the component takes."""
    entry = draft.entry
    if entry.kind is not None:
        return entry.kind
    if draft.name in KIND_BY_NAME:
        return KIND_BY_NAME[draft.name]
    return "helpers" if draft.gpus == 0 or entry.gpu_share is not None else "collective"


def build_component(draft: Draft, within: str) -> Component:
    """The component of a draft that has no fault; ``within`` is the default level of groups."""
    entry = draft.entry
    low, high = draft.workers or Workers(0, 0)
    kind = kind_of(draft)
    group = None
    if draft.group_workers is not None:
        written = entry.group
        level = written.within if written is not None else None
        group = Group(draft.group_workers, level or within, written.mode if written is not None else "required")
    return Component(
        name=draft.name,
        min_workers=low,
        max_workers=high,
        gpus=draft.gpus,
        cpus=entry.cpus,
        memory=entry.memory,
        gpu_share=entry.gpu_share,
        kind=kind,
        accelerator=entry.accelerator,
        labels=entry.labels or {},
        node_ids=None if entry.node_ids is None else tuple(sorted(entry.node_ids, key=natural_key)),
        exclude_node_ids=tuple(sorted(entry.exclude_node_ids or (), key=natural_key)),
        group=group,
        segment_size=entry.segment_size,
        segment_mode=entry.segment_mode,
        nodes=entry.nodes,
        per_node=entry.per_node,
        spread=entry.spread or ("even" if kind == "helpers" else "pack"),
        span_weight=entry.span_weight if entry.span_weight is not None else int(kind == "collective"),
        priority=entry.priority,
        aligned=entry.aligned,
        per_node_of=draft.per_node_of,
    )
