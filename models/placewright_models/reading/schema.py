"""The shape of the problem file as pydantic models: which keys there are and what each takes.

Only this file imports pydantic, and only ``codec.py`` imports this file, when something is loaded. A model says nothing
about how fields fit together; that is ``checks.py``. ``validate_part`` reads one part of the file and keeps what is right of
it, so that all faults of a file are found in one go. The text below a field is for people: docs/make_reference.py makes
``problem.schema.json`` and the reference of it. Modify this file when the problem file gets a new key, and run that.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator, ValidationError

from placewright_models.errors import Fault
from placewright_models.reading import values
from placewright_models.reading.values import Workers, Wrong, closest, maybe, nearest, show, whole

_Count = PlainValidator(whole(0, values.MAX_COUNT))
_Weight = PlainValidator(whole(0, values.MAX_WEIGHT))
_Positive = PlainValidator(maybe(whole(1, values.MAX_WORKERS)))
_Number = PlainValidator(values.number)
_Memory = PlainValidator(values.memory)
_Name = PlainValidator(maybe(values.name))
_Names = PlainValidator(maybe(values.names))
_Labels = PlainValidator(maybe(values.label_map))
_Indices = PlainValidator(values.indices)
_Flag = PlainValidator(values.flag)
_Mode = PlainValidator(values.choice("required", "preferred"))
_Members = Annotated[tuple[str, ...], PlainValidator(values.rule_names)]
_Rule = Annotated[list[_Members], BeforeValidator(values.sequence)]
RULE_LISTS = ("share_gpus", "colocate", "same_node", "same_domain", "separate_nodes", "separate_domains")
"""Keys of the rules section that hold lists of names."""


class Entry(BaseModel):
    """Base of all parts: unknown keys are refused, values are never coerced behind the user's back."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class OccupationEntry(Entry):
    """What another plan holds on a node."""

    plan: Annotated[str | None, _Name] = None
    """Name of the other plan; explanations name it."""
    gpus: Annotated[tuple[int, ...], _Indices] = ()
    """GPU indices that it holds."""
    cpus: Annotated[Decimal, _Number] = Decimal(0)
    """CPUs that it holds."""
    memory: Annotated[int, _Memory] = 0
    """Memory that it holds."""


class NodeEntry(Entry):
    """One node, or with ``count`` a row of equal nodes."""

    id: Annotated[str | None, _Name] = None
    """Stable name, such as the host name. With count, a pattern with one {} such as gpu-{:03d}."""
    count: Annotated[int | None, PlainValidator(maybe(whole(1, values.MAX_COUNT)))] = None
    """This entry stands for so many equal nodes, numbered from start."""
    start: Annotated[int | None, PlainValidator(maybe(whole(0, values.MAX_COUNT)))] = None
    """First number of a counted entry; default 0."""
    nodes_per_domain: Annotated[int | None, PlainValidator(maybe(whole(1, values.MAX_COUNT)))] = None
    """Nodes in each NVLink domain of a counted entry, where nvlink_domain is a pattern such as rack{}."""
    gpus: Annotated[int, PlainValidator(whole(0, values.MAX_NODE_GPUS))] = 0
    """GPUs of the node, with indices from 0."""
    cpus: Annotated[Decimal | None, PlainValidator(maybe(values.number))] = None
    """CPUs of the node; left out means unlimited."""
    memory: Annotated[int | None, PlainValidator(maybe(values.memory))] = None
    """Memory in bytes or with KiB, MiB, GiB, TiB; left out means unlimited."""
    ip: Annotated[str | None, _Name] = None
    """Address, used to find the node again on Ray."""
    node_name: Annotated[str | None, _Name] = None
    """Ray NodeName, used to find the node again on Ray."""
    ray_node_id: Annotated[str | None, _Name] = None
    """Ray node id, for people only: a restart changes it."""
    nvlink_domain: Annotated[str | None, _Name] = None
    """NVLink domain; nodes of one name are joined by one switch fabric. Left out means unknown."""
    topo_rank: Annotated[int | None, PlainValidator(maybe(whole(1, values.MAX_RANK)))] = None
    """Place in the physical order, from 1; left out means last."""
    accelerator: Annotated[str | None, _Name] = None
    """Kind of GPU, such as H100; components can ask for it."""
    labels: Annotated[dict[str, str] | None, _Labels] = None
    """Names to text; components can ask for them, and levels take their units from them."""
    unavailable_gpus: Annotated[tuple[int, ...], _Indices] = ()
    """GPU indices that nobody may use."""
    cpus_in_use: Annotated[Decimal, _Number] = Decimal(0)
    """CPUs that somebody else uses now; subtracted."""
    reserved_cpus: Annotated[Decimal, _Number] = Decimal(0)
    """CPUs kept for the system; subtracted."""
    memory_in_use: Annotated[int, _Memory] = 0
    """Memory that somebody else uses now; subtracted."""
    occupied: Annotated[list[OccupationEntry], BeforeValidator(values.sequence)] | None = None
    """What other plans hold here; --occupied fills it in."""
    excluded: Annotated[str | None, PlainValidator(maybe(values.reason))] = None
    """Why the node hosts nothing."""
    head: Annotated[bool, _Flag] = False
    """The head node; it hosts nothing unless the cluster says schedule_on_head."""


class OverlayEntry(Entry):
    """What an overlay may set for a node, or for every node of a domain."""

    excluded: Annotated[str | None, PlainValidator(maybe(values.reason))] = None
    cpus_in_use: Annotated[Decimal, _Number] = Decimal(0)
    reserved_cpus: Annotated[Decimal, _Number] = Decimal(0)
    memory_in_use: Annotated[int, _Memory] = 0
    unavailable_gpus: Annotated[tuple[int, ...], _Indices] = ()


class GroupEntry(Entry):
    """Workers that talk all the time."""

    workers: Annotated[int | None, _Positive] = None
    """Workers of one group; group j is workers j*k to j*k+k-1."""
    within: Annotated[str | None, _Name] = None
    """Level of which one unit holds a whole group: node, nvlink_domain, a declared level, or cluster. Left out:
    nvlink_domain where any node has one, else cluster.
    """
    mode: Annotated[str, _Mode] = "required"
    """required: no group is split. preferred: as few as possible are (goal groups_split)."""


class ComponentEntry(Entry):
    """One component of the job."""

    workers: Annotated[Workers | None, PlainValidator(maybe(values.workers))] = None
    """How many workers: a number, {min, max}, or auto (one on each node of per_node_of)."""
    replicas: Annotated[Workers | None, PlainValidator(maybe(values.replicas))] = None
    """How many engines: short for workers, or for grouped one-GPU workers where an engine is wider than every node."""
    gpus_per_replica: Annotated[Decimal | None, PlainValidator(maybe(values.replica_gpus))] = None
    """GPUs of one engine; goes with replicas."""
    gpus: Annotated[Decimal, PlainValidator(values.worker_gpus)] = Decimal(0)
    """GPUs of one worker: 0 (also if left out), a share below 1, or a whole number."""
    cpus: Annotated[Decimal, _Number] = Decimal(1)
    """CPUs of one worker; left out means 1."""
    memory: Annotated[int, _Memory] = 0
    """Memory of one worker, in bytes or with KiB, MiB, GiB, TiB; left out means none."""
    gpu_share: Annotated[Decimal | None, PlainValidator(maybe(values.share))] = None
    """How much of each of its GPUs a whole-GPU worker holds against other components. Left out: they take turns."""
    kind: Annotated[str | None, PlainValidator(maybe(values.choice("collective", "replicas", "helpers")))] = None
    """Sets defaults: collective (ranks of one job), replicas (engines), helpers (the rest). Default by name."""
    accelerator: Annotated[str | None, _Name] = None
    """Only nodes with this accelerator."""
    labels: Annotated[dict[str, str] | None, _Labels] = None
    """Only nodes with these labels."""
    node_ids: Annotated[tuple[str, ...] | None, _Names] = None
    """Only these nodes."""
    exclude_node_ids: Annotated[tuple[str, ...] | None, _Names] = None
    """Not these nodes."""
    group: GroupEntry | None = None
    """Workers that talk all the time and lie inside one unit of a level."""
    segment_size: Annotated[int | None, _Positive] = None
    """Whole nodes of one NVLink domain taken together, so many at a time."""
    segment_mode: Annotated[str, _Mode] = "required"
    """required: every segment lies in one domain. preferred: as many as possible do (goal groups_split)."""
    nodes: Annotated[int | None, PlainValidator(maybe(whole(0, values.MAX_NODES)))] = None
    """Exact number of nodes that host the component."""
    per_node: Annotated[int | tuple[int, ...] | None, PlainValidator(maybe(values.per_node))] = None
    """Exact workers on each node used: a number, or a list with one number for each node, in any order."""
    spread: Annotated[str | None, PlainValidator(maybe(values.choice("pack", "even")))] = None
    """pack or even: even counts in the goal evenness. Default: even for helpers, else pack."""
    span_weight: Annotated[int | None, PlainValidator(maybe(whole(0, values.MAX_WEIGHT)))] = None
    """Weight in the goals domain_span and node_span. Default: 1 for collective, else 0."""
    priority: Annotated[int, _Weight] = 1
    """Weight of a worker that is left out, in the goal unplaced."""
    aligned: Annotated[bool, _Flag] = False
    """A worker of k GPUs starts at an index that is a multiple of k."""
    per_node_of: Annotated[str | None, _Name] = None
    """One worker on each node that hosts this other component, and none elsewhere."""


class RulesEntry(Entry):
    """The rules section."""

    strategy: Annotated[str | None, PlainValidator(maybe(values.choice("disaggregate", "colocate")))] = None
    """disaggregate: pools have separate GPUs. colocate: train may share with every other component."""
    env_strategy: Annotated[str | None, PlainValidator(maybe(values.choice("default", "device-colocate")))] = None
    """device-colocate: env may use the GPUs of eval; default: it may not. Needs a strategy."""
    pools: dict[Annotated[str, PlainValidator(values.name)], _Members] | None = None
    """Pools with their members; if given, every component is in exactly one."""
    share_gpus: _Rule = []
    """Components that may use the same GPUs, pairwise inside each list."""
    colocate: _Rule = []
    """Components that use exactly the same GPUs."""
    same_node: _Rule = []
    """All workers of the listed components lie on one node."""
    same_domain: _Rule = []
    """All workers of the listed components lie in one NVLink domain."""
    separate_nodes: _Rule = []
    """No node hosts two of the listed components."""
    separate_domains: _Rule = []
    """No NVLink domain hosts two of the listed components."""


class TrafficEntry(Entry):
    """Two components that talk to each other."""

    between: Annotated[tuple[str, ...] | None, PlainValidator(maybe(values.rule_names))] = None
    """The two components that talk to each other."""
    weight: Annotated[int, _Weight] = 1
    """How much a missing local partner costs."""


_NESTED: dict[str, type[Entry]] = {"group": GroupEntry, "occupied": OccupationEntry}

M = TypeVar("M", bound=Entry)


def validate_part(model: type[M], data: Any, place: str, faults: list[Fault]) -> tuple[M, frozenset[str]]:
    """Read one part; faults are appended, and the fields that have one are returned beside what could be read.

    A field with a fault has its default in the part, so that whoever reads the part must ask whether it is broken.
    """
    if not isinstance(data, Mapping):
        faults.append(Fault(place, f"{show(data)} is not a mapping", "write key: value pairs"))
        return model.model_validate({}), frozenset(model.model_fields)
    data = data if type(data) is dict else dict(data)
    try:
        return model.model_validate(data), frozenset()
    except ValidationError as error:
        found = error.errors(include_url=False)
    faults.extend(_fault(model, item, place) for item in found)
    mended, broken = _without([item["loc"] for item in found], data)
    # A misspelt key stands for the one that was meant, which then is not missing as well.
    unknown = [item["loc"][0] for item in found if item["type"] == "extra_forbidden" and len(item["loc"]) == 1]
    meant = (closest(key, [field for field in model.model_fields if field not in data]) for key in unknown)
    broken |= {field for field in meant if field is not None}
    try:
        return model.model_validate(mended), broken
    except ValidationError:
        # Nothing is known to come here; whatever does costs the part, not the report.
        return model.model_validate({}), broken.union(model.model_fields)


def _without(locs: list[tuple[int | str, ...]], data: Mapping[Any, Any]) -> tuple[dict[str, Any], frozenset[str]]:
    """The data without what is wrong at these places, and the names of what was taken out.

    As little as possible goes: a key of a group or a pool, or one entry of a rules list (left empty, to keep the numbers of
    the others), else the field.
    """
    kept = {key: value for key, value in data.items() if isinstance(key, str)}
    broken: set[str] = set()
    for loc in locs:
        field = str(loc[0]) if loc else ""
        inner = kept.get(field)
        if len(loc) > 1 and field in ("group", "pools") and isinstance(inner, Mapping):
            kept[field] = {key: value for key, value in inner.items() if str(key) != str(loc[1])}
            broken.add(f"{field}.{loc[1]}")
        elif len(loc) > 1 and isinstance(loc[1], int) and field in RULE_LISTS and isinstance(inner, (list, tuple)):
            kept[field] = [[] if index == loc[1] else item for index, item in enumerate(inner)]
            broken.add(f"{field}[{loc[1]}]")
        else:
            kept.pop(field, None)
            broken.add(field)
    return kept, frozenset(broken)


def _fault(model: type[Entry], item: Any, place: str) -> Fault:
    loc: tuple[int | str, ...] = tuple(part for part in item["loc"] if part != "[key]")
    for part in loc:
        place += f"[{part}]" if isinstance(part, int) else f".{part if part.isprintable() and len(part) < 100 else show(part)}"
    kind, value = item["type"], item["input"]
    cause = item.get("ctx", {}).get("error")
    if isinstance(cause, Wrong):
        return Fault(place, cause.wrong, cause.right)
    if kind == "extra_forbidden":
        owner = model if len(loc) == 1 else _NESTED.get(str(loc[0]), model)
        return Fault(place, "unknown key", nearest(loc[-1], list(owner.model_fields)))
    if kind == "invalid_key":
        return Fault(place, f"the key {show(loc[-1] if loc else value)} is not text", "put it in quotes")
    if kind in ("model_type", "model_attributes_type", "dict_type", "mapping_type"):
        return Fault(place, f"{show(value)} is not a mapping", "write key: value pairs")
    return Fault(place, f"{show(value)}: {item['msg'][:1].lower()}{item['msg'][1:]}")
