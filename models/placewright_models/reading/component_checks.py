"""What cannot be right of one component on any cluster, or names something that is not there.

Each check is one small function from a ``Context`` and a ``Draft`` to faults, listed in ``COMPONENT_CHECKS``. A check is
silent where a field it needs could not be read: that field has its fault already. What another cluster would cure (a worker
wider than every node, an accelerator that no node has) is infeasible, not invalid, and is not looked at here. Checks of the
rules section are in ``rule_checks.py``. Modify this file when a component gets a new field.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from placewright_models.cluster import Cluster
from placewright_models.errors import Fault
from placewright_models.quantities import plain_number
from placewright_models.reading.job import AUTO_COMPONENT, AUTO_TARGET, Draft
from placewright_models.reading.values import MAX_WORKERS, Workers, listed, nearest

AUTO = Workers(None, None)


@dataclass(frozen=True)
class Context:
    """What the checks look at. ``cluster_known``: every node's id could be read, so one that is not there is absent."""

    drafts: Mapping[str, Draft]
    cluster: Cluster
    node_ids: Collection[str]
    cluster_known: bool


Check = Callable[[Context, Draft], Iterator[Fault]]


def check_components(context: Context) -> list[Fault]:
    """Every fault of every component."""
    faults = [fault for draft in context.drafts.values() for check in COMPONENT_CHECKS for fault in check(context, draft)]
    faults.extend(_cycles(context))
    total = sum(draft.workers.high or 0 for draft in context.drafts.values() if draft.workers is not None)
    if total > MAX_WORKERS:
        faults.append(Fault("components", f"{total:,} workers", f"at most {MAX_WORKERS:,} in all"))
    return faults


def _workers_given(_: Context, draft: Draft) -> Iterator[Fault]:
    """Exactly one way to say how many workers."""
    entry = draft.entry
    if not draft.knows("workers", "replicas", "gpus_per_replica"):
        return
    if entry.replicas is None and entry.gpus_per_replica is not None:
        yield Fault(
            f"{draft.place}.gpus_per_replica", "means something only beside replicas", "add replicas:, or workers: and gpus:"
        )
    elif entry.replicas is not None and entry.gpus_per_replica is None:
        yield Fault(
            f"{draft.place}.replicas",
            "nothing says how wide a replica is",
            "add gpus_per_replica:, or write workers: and gpus:",
        )
    elif entry.replicas is not None:
        both = [field for field in ("workers", "gpus") if field in entry.model_fields_set]
        for field in both:
            yield Fault(
                f"{draft.place}.{field}",
                "stands beside replicas and gpus_per_replica",
                f"drop {field}, or drop replicas and gpus_per_replica",
            )
    elif draft.workers is None and draft.knows("per_node", "nodes", "per_node_of"):
        yield Fault(f"{draft.place}.workers", "is missing", "write workers: and a number, or {min: 1, max: 8}")


def _auto(context: Context, draft: Draft) -> Iterator[Fault]:
    """``auto`` needs to know whose nodes."""
    if draft.workers != AUTO or not draft.knows("per_node_of"):
        return
    place = f"{draft.place}.workers"
    if draft.per_node_of is None:
        yield Fault(place, "auto without per_node_of", "add per_node_of: and a component, or write a number")
    elif draft.entry.per_node_of is None and draft.name == AUTO_COMPONENT and AUTO_TARGET not in context.drafts:
        yield Fault(
            place,
            f"auto means one on each node of {AUTO_TARGET}, and there is no {AUTO_TARGET}",
            "add per_node_of:, or write a number",
        )


def _per_node_of(context: Context, draft: Draft) -> Iterator[Fault]:
    """The component named by per_node_of exists and is another one."""
    other = draft.entry.per_node_of
    if other is None:
        return
    place = f"{draft.place}.per_node_of"
    if other == draft.name:
        yield Fault(place, "names the component itself", "name another component")
    elif other not in context.drafts:
        yield Fault(
            place, f"{other} is not a component", nearest(other, [name for name in context.drafts if name != draft.name])
        )
    per_node = draft.entry.per_node
    counts = per_node if isinstance(per_node, tuple) else (per_node,)
    if per_node is not None and any(count != 1 for count in counts):
        yield Fault(
            f"{draft.place}.per_node", "per_node_of puts exactly one worker on each node", "drop per_node, or drop per_node_of"
        )


def _cycles(context: Context) -> Iterator[Fault]:
    """per_node_of never leads back to where it began."""
    target = {name: draft.per_node_of for name, draft in context.drafts.items() if draft.per_node_of != name}
    done: set[str] = set()
    for start in target:
        path: list[str] = []
        name: str | None = start
        while name is not None and name in target and name not in done:
            done.add(name)
            path.append(name)
            name = target[name]
        if name is not None and name in path:
            ring = [*path[path.index(name) :], name]
            yield Fault(
                f"components.{name}.per_node_of",
                f"goes round in a circle: {listed(ring, 20)}",
                "one of them needs a number of workers",
            )


def _share(_: Context, draft: Draft) -> Iterator[Fault]:
    """gpu_share belongs to workers with whole GPUs."""
    if draft.entry.gpu_share is None or not draft.knows("gpus", "gpus_per_replica", "replicas"):
        return
    place = f"{draft.place}.gpu_share"
    if draft.gpus == 0:
        yield Fault(place, "the workers have no GPU to share", "add gpus:, or drop gpu_share")
    elif draft.gpus < 1:
        number = plain_number(draft.gpus)
        yield Fault(place, f"a fractional worker gives its gpus, {number}, as its share", "drop gpu_share, or write gpus: 1")


def _group(context: Context, draft: Draft) -> Iterator[Fault]:
    """Groups divide the workers, and lie within a level that exists."""
    group = draft.entry.group
    if group is not None:
        if group.within is not None and group.within not in context.cluster.all_levels:
            levels = context.cluster.all_levels
            yield Fault(
                f"{draft.place}.group.within", f"{group.within} is not a level of the cluster", nearest(group.within, levels)
            )
        if group.workers is None and draft.entry.replicas is None and draft.knows("group", "group.workers", "replicas"):
            yield Fault(f"{draft.place}.group.workers", "is missing", "say how many workers form a group")
        if draft.wide and group.workers is not None and group.workers != draft.group_workers:
            wrong = (
                f"{group.workers}, but a replica of {draft.group_workers} GPUs fits no node: it is a group of that many workers"
            )
            yield Fault(f"{draft.place}.group.workers", wrong, "drop it")
    size = draft.group_workers
    if size is not None and draft.knows("group", "group.workers"):
        yield from _divides(draft, "group.workers", size, f"groups of {size}")


def _divides(draft: Draft, field: str, size: int, what: str) -> Iterator[Fault]:
    for count in dict.fromkeys(draft.workers or ()):
        if count is not None and count % size:
            near = sorted({count - count % size, count - count % size + size})
            yield Fault(
                f"{draft.place}.{field}", f"{count} workers do not make whole {what}", f"{near[0]} or {near[1]} workers do"
            )


def _segments(_: Context, draft: Draft) -> Iterator[Fault]:
    """Segments are whole nodes, so they need whole GPUs and divide workers and nodes."""
    entry = draft.entry
    size = entry.segment_size
    if size is None:
        if "segment_mode" in entry.model_fields_set and draft.knows("segment_size", "segment_mode"):
            yield Fault(
                f"{draft.place}.segment_mode", "means something only beside segment_size", "add segment_size:, or drop it"
            )
        return
    place = f"{draft.place}.segment_size"
    if draft.gpus < 1 and draft.knows("gpus", "gpus_per_replica", "replicas"):
        wrong = f"segments are whole nodes, and the workers have gpus {plain_number(draft.gpus)}"
        yield Fault(place, wrong, "write gpus: 1 or more, or drop segment_size")
    yield from _divides(draft, "segment_size", size, f"segments of {size} nodes")
    nodes = len(entry.per_node) if isinstance(entry.per_node, tuple) else entry.nodes
    if nodes is not None and nodes % size:
        field = "per_node" if isinstance(entry.per_node, tuple) else "nodes"
        yield Fault(f"{draft.place}.{field}", f"{nodes} nodes are no multiple of segment_size {size}", f"a multiple of {size}")


def _node_counts(_: Context, draft: Draft) -> Iterator[Fault]:
    """nodes, per_node and workers agree."""
    entry, counts = draft.entry, draft.workers
    if not draft.knows("nodes", "per_node", "workers", "replicas", "gpus_per_replica"):
        return
    nodes, per_node = entry.nodes, entry.per_node
    if isinstance(per_node, tuple) and nodes is not None and nodes != len(per_node):
        yield Fault(
            f"{draft.place}.nodes",
            f"{nodes}, but per_node lists {len(per_node)} nodes",
            f"write {len(per_node)}, or drop nodes",
        )
    if counts is None or counts.low is None or counts.high is None:
        return
    asked = str(counts.high) if counts.low == counts.high else f"{counts.low} to {counts.high}"
    if isinstance(per_node, tuple):
        if not counts.low <= sum(per_node) <= counts.high:
            yield Fault(
                f"{draft.place}.per_node",
                f"sums to {sum(per_node)}, but there are {asked} workers",
                f"write workers: {sum(per_node)}",
            )
    elif per_node is not None and nodes is not None:
        product = nodes * per_node
        if not counts.low <= product <= counts.high:
            wrong = f"{nodes} nodes x {per_node} per node = {product}, but there are {asked} workers"
            yield Fault(f"{draft.place}.nodes", wrong, f"write workers: {product}")
    elif per_node is not None and counts.high // per_node * per_node < counts.low:
        yield Fault(
            f"{draft.place}.per_node", f"{per_node} on each node never makes {asked} workers", f"a multiple of {per_node}"
        )
    elif nodes is not None and nodes > counts.high:
        yield Fault(f"{draft.place}.nodes", f"{nodes} nodes cannot all host one of {asked} workers", f"at most {counts.high}")
    elif nodes == 0 and counts.low > 0:
        yield Fault(f"{draft.place}.nodes", f"0 nodes cannot host {asked} workers", "write 1 or more")


def _node_names(context: Context, draft: Draft) -> Iterator[Fault]:
    """node_ids and exclude_node_ids name nodes of the cluster."""
    entry = draft.entry
    for field in ("node_ids", "exclude_node_ids"):
        wanted = getattr(entry, field) or ()
        absent = [name for name in wanted if name not in context.node_ids] if context.cluster_known else []
        if absent:
            wrong = f"{listed(absent)} {'is not a node' if len(absent) == 1 else 'are not nodes'} of the cluster"
            yield Fault(f"{draft.place}.{field}", wrong, nearest(absent[0], context.node_ids))
    if entry.node_ids is not None and not set(entry.node_ids) - set(entry.exclude_node_ids or ()):
        wrong = "every node is excluded again by exclude_node_ids" if entry.node_ids else "the list is empty"
        yield Fault(f"{draft.place}.node_ids", wrong, "name at least one node, or drop node_ids")


COMPONENT_CHECKS: tuple[Check, ...] = (
    _workers_given,
    _auto,
    _per_node_of,
    _share,
    _group,
    _segments,
    _node_counts,
    _node_names,
)
"""Every check of one component, in the order in which faults are told."""
