"""The shape of the problem file as pydantic models: which keys there are and what each takes.

Only this file imports pydantic, and only ``codec.py`` imports this file, when something is loaded. A model says nothing
about how fields fit together; that is ``checks.py``. ``validate_part`` reads one part of the file and keeps what is right of
it, so that all faults of a file are found in one go. Modify this file when the problem file gets a new key.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainValidator, ValidationError

from placewright_models import values
from placewright_models.errors import Fault
from placewright_models.values import Workers, Wrong, closest, maybe, nearest, show, whole

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
    gpus: Annotated[tuple[int, ...], _Indices] = ()
    cpus: Annotated[Decimal, _Number] = Decimal(0)
    memory: Annotated[int, _Memory] = 0


class NodeEntry(Entry):
    """One node, or with ``count`` a row of equal nodes."""

    id: Annotated[str | None, _Name] = None
    count: Annotated[int | None, PlainValidator(maybe(whole(1, values.MAX_COUNT)))] = None
    start: Annotated[int | None, PlainValidator(maybe(whole(0, values.MAX_COUNT)))] = None
    nodes_per_domain: Annotated[int | None, PlainValidator(maybe(whole(1, values.MAX_COUNT)))] = None
    gpus: Annotated[int, PlainValidator(whole(0, values.MAX_NODE_GPUS))] = 0
    cpus: Annotated[Decimal | None, PlainValidator(maybe(values.number))] = None
    memory: Annotated[int | None, PlainValidator(maybe(values.memory))] = None
    ip: Annotated[str | None, _Name] = None
    node_name: Annotated[str | None, _Name] = None
    ray_node_id: Annotated[str | None, _Name] = None
    nvlink_domain: Annotated[str | None, _Name] = None
    topo_rank: Annotated[int | None, PlainValidator(maybe(whole(1, values.MAX_RANK)))] = None
    accelerator: Annotated[str | None, _Name] = None
    labels: Annotated[dict[str, str] | None, _Labels] = None
    unavailable_gpus: Annotated[tuple[int, ...], _Indices] = ()
    cpus_in_use: Annotated[Decimal, _Number] = Decimal(0)
    reserved_cpus: Annotated[Decimal, _Number] = Decimal(0)
    memory_in_use: Annotated[int, _Memory] = 0
    occupied: Annotated[list[OccupationEntry], BeforeValidator(values.sequence)] | None = None
    excluded: Annotated[str | None, PlainValidator(maybe(values.reason))] = None
    head: Annotated[bool, _Flag] = False


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
    within: Annotated[str | None, _Name] = None
    mode: Annotated[str, _Mode] = "required"


class ComponentEntry(Entry):
    """One component of the job."""

    workers: Annotated[Workers | None, PlainValidator(maybe(values.workers))] = None
    replicas: Annotated[Workers | None, PlainValidator(maybe(values.replicas))] = None
    gpus_per_replica: Annotated[Decimal | None, PlainValidator(maybe(values.replica_gpus))] = None
    gpus: Annotated[Decimal, PlainValidator(values.worker_gpus)] = Decimal(0)
    cpus: Annotated[Decimal, _Number] = Decimal(1)
    memory: Annotated[int, _Memory] = 0
    gpu_share: Annotated[Decimal | None, PlainValidator(maybe(values.share))] = None
    kind: Annotated[str | None, PlainValidator(maybe(values.choice("collective", "replicas", "helpers")))] = None
    accelerator: Annotated[str | None, _Name] = None
    labels: Annotated[dict[str, str] | None, _Labels] = None
    node_ids: Annotated[tuple[str, ...] | None, _Names] = None
    exclude_node_ids: Annotated[tuple[str, ...] | None, _Names] = None
    group: GroupEntry | None = None
    segment_size: Annotated[int | None, _Positive] = None
    segment_mode: Annotated[str, _Mode] = "required"
    nodes: Annotated[int | None, PlainValidator(maybe(whole(0, values.MAX_NODES)))] = None
    per_node: Annotated[int | tuple[int, ...] | None, PlainValidator(maybe(values.per_node))] = None
    spread: Annotated[str | None, PlainValidator(maybe(values.choice("pack", "even")))] = None
    span_weight: Annotated[int | None, PlainValidator(maybe(whole(0, values.MAX_WEIGHT)))] = None
    priority: Annotated[int, _Weight] = 1
    aligned: Annotated[bool, _Flag] = False
    per_node_of: Annotated[str | None, _Name] = None


class RulesEntry(Entry):
    """The rules section."""

    strategy: Annotated[str | None, PlainValidator(maybe(values.choice("disaggregate", "colocate")))] = None
    env_strategy: Annotated[str | None, PlainValidator(maybe(values.choice("default", "device-colocate")))] = None
    pools: dict[Annotated[str, PlainValidator(values.name)], _Members] | None = None
    share_gpus: _Rule = []
    colocate: _Rule = []
    same_node: _Rule = []
    same_domain: _Rule = []
    separate_nodes: _Rule = []
    separate_domains: _Rule = []


class TrafficEntry(Entry):
    """Two components that talk to each other."""

    between: Annotated[tuple[str, ...] | None, PlainValidator(maybe(values.rule_names))] = None
    weight: Annotated[int, _Weight] = 1


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
