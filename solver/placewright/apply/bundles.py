"""Which bundles and placement groups a plan needs, and which worker gets which part of which bundle.

Pure: nothing here knows a live cluster or imports Ray. A bundle is one GPU with the CPUs and memory of what runs there.
One exception: an actor gets its GPUs out of a single bundle (Ray refuses ``num_gpus=2`` in bundles of one GPU), so with
``bundles="auto"`` a worker that has several whole GPUs to itself gets one bundle that holds them all. Engines that start
one process per GPU themselves want ``bundles="gpu"``: one GPU in every bundle, and a worker then lies on several.

Modify this file when bundles should be cut or grouped in another way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from placewright_models.errors import PlanMismatch
from placewright_models.plan import Plan
from placewright_models.problem import GLOBAL_POOL, Problem
from placewright_models.quantities import UNITS
from placewright_models.ranges import indices_of
from placewright_models.workload import component_key

LAYOUTS = ("pool", "node", "component")
BUNDLE_KINDS = ("auto", "gpu")

WorkerKey = tuple[str, int]
Slot = tuple[str, int]
"""A GPU: plan node id and node-local index."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """One bundle: its node, the physical GPUs it should get (ascending), and what it reserves beside them."""

    node_id: str
    gpus: tuple[int, ...]
    cpu_units: int
    memory: int
    workers: tuple[WorkerKey, ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        """What it reserves; bundles of one node and shape can stand in for each other."""
        return (len(self.gpus), self.cpu_units, self.memory)


@dataclass(frozen=True, slots=True)
class Group:
    """One placement group: its bundles by node in topological order, then by GPU, then those without GPU."""

    name: str
    bundles: tuple[Bundle, ...]


@dataclass(frozen=True, slots=True)
class Part:
    """What a worker takes of one bundle: GPU units of 1e-4 (whole GPUs: 10,000 each), CPU units, memory in bytes."""

    bundle: int
    gpu_units: int
    cpu_units: int
    memory: int


@dataclass(frozen=True, slots=True)
class Seat:
    """Where a worker sits: a group, and its part of one or several bundles, in the order of its GPUs."""

    group: int
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """All groups of a plan, and the seat of every worker: ``seats[component][index]``."""

    groups: tuple[Group, ...]
    seats: Mapping[str, tuple[Seat, ...]]

    def demand(self, groups: Iterable[int] | None = None) -> dict[str, Demand]:
        """What the groups (all of them unless named) reserve on each plan node, in the order of the nodes."""
        wanted: dict[str, Demand] = {}
        for index in range(len(self.groups)) if groups is None else groups:
            for bundle in self.groups[index].bundles:
                wanted.setdefault(bundle.node_id, Demand()).add(bundle)
        return wanted


@dataclass(slots=True)
class Demand:
    """What is reserved on one node."""

    gpus: set[int] = field(default_factory=set)
    cpu_units: int = 0
    memory: int = 0

    def add(self, bundle: Bundle) -> None:
        """Count one more bundle."""
        self.gpus.update(bundle.gpus)
        self.cpu_units += bundle.cpu_units
        self.memory += bundle.memory


def lay_out(plan: Plan, layout: str = "pool", bundles: str = "auto") -> Layout:
    """Cut a plan into bundles and placement groups.

    Args:
        plan: the plan.
        layout: ``pool``, ``node`` or ``component``: what one placement group holds. Pools or components that share a
            GPU are put in one group, since a bundle belongs to one group.
        bundles: ``auto`` or ``gpu`` (see the module's docstring).

    Raises:
        ValueError: for an unknown layout or kind of bundle.
        PlanMismatch: if the shares on a GPU leave nothing for a worker there.
    """
    if layout not in LAYOUTS:
        raise ValueError(f"layout {layout!r} is not one of {', '.join(LAYOUTS)}")
    if bundles not in BUNDLE_KINDS:
        raise ValueError(f"bundles {bundles!r} is not one of {', '.join(BUNDLE_KINDS)}")
    gpus_of = {
        (name, index): tuple(indices_of(worker.ranges))
        for name, workers in plan.workers.items()
        for index, worker in enumerate(workers)
    }
    node_of = {(name, index): worker.node_id for name, workers in plan.workers.items() for index, worker in enumerate(workers)}
    on_slot: dict[Slot, list[WorkerKey]] = defaultdict(list)
    for key in sorted(gpus_of, key=lambda key: (component_key(key[0]), key[1])):
        for gpu in gpus_of[key]:
            on_slot[(node_of[key], gpu)].append(key)
    shares = _shares(plan.problem, on_slot)
    cuts = {key: _cut(key, node_of[key], gpus, on_slot, shares, bundles) for key, gpus in gpus_of.items()}
    group_of = _group_keys(plan.problem, layout, node_of, on_slot)
    return _assemble(plan, node_of, cuts, group_of, shares)


def _shares(problem: Problem, on_slot: Mapping[Slot, list[WorkerKey]]) -> dict[tuple[WorkerKey, int], int]:
    """GPU units of each worker on each of its GPUs: its own share, or an equal part of what the others leave."""
    shares: dict[tuple[WorkerKey, int], int] = {}
    faults: list[str] = []
    for (node_id, gpu), keys in on_slot.items():
        given = {key: problem.by_name[key[0]].share_units for key in keys}
        left = UNITS - sum(units for units in given.values() if units is not None)
        without = [key for key in keys if given[key] is None]
        if left < 0 or (without and left < len(without)):
            names = ", ".join(f"{name} {index}" for name, index in keys)
            rest = f" and leave nothing for {without[0][0]} {without[0][1]}" if without and left >= 0 else ""
            faults.append(f"node {node_id} GPU {gpu}: the shares of {names} come to {(UNITS - left) / UNITS:g}{rest}")
            continue
        for key in keys:
            units = given[key]
            shares[key, gpu] = left // len(without) if units is None else units
    if faults:
        raise PlanMismatch(faults, "the shares of a GPU cannot be dealt out")
    return shares


def _cut(
    key: WorkerKey,
    node_id: str,
    gpus: tuple[int, ...],
    on_slot: Mapping[Slot, list[WorkerKey]],
    shares: Mapping[tuple[WorkerKey, int], int],
    bundles: str,
) -> tuple[tuple[int, ...], ...]:
    """The worker's GPUs, cut into those of one bundle each; one empty cut for a worker without GPU."""
    if not gpus:
        return ((),)
    alone = all(len(on_slot[node_id, gpu]) == 1 and shares[key, gpu] == UNITS for gpu in gpus)
    # Ids with a hole could be dealt to two bundles crosswise, so only consecutive ones share a bundle.
    consecutive = gpus == tuple(range(gpus[0], gpus[0] + len(gpus)))
    if bundles == "auto" and len(gpus) > 1 and alone and consecutive:
        return (gpus,)
    return tuple((gpu,) for gpu in gpus)


def _group_keys(
    problem: Problem, layout: str, node_of: Mapping[WorkerKey, str], on_slot: Mapping[Slot, list[WorkerKey]]
) -> dict[WorkerKey, str]:
    """Name of the group of each worker; groups that meet on a GPU are merged under a joint name."""

    def first_name(key: WorkerKey) -> str:
        if layout == "node":
            return node_of[key]
        return key[0] if layout == "component" else problem.pool_of.get(key[0], GLOBAL_POOL)

    parent: dict[str, str] = {first_name(key): first_name(key) for key in node_of}

    def root(name: str) -> str:
        while parent[name] != name:
            parent[name] = parent[parent[name]]
            name = parent[name]
        return name

    for keys in on_slot.values():
        for key in keys[1:]:
            parent[root(first_name(key))] = root(first_name(keys[0]))
    members: dict[str, list[str]] = defaultdict(list)
    for name in parent:
        members[root(name)].append(name)
    return {key: "+".join(members[root(first_name(key))]) for key in node_of}


def _assemble(
    plan: Plan,
    node_of: Mapping[WorkerKey, str],
    cuts: Mapping[WorkerKey, tuple[tuple[int, ...], ...]],
    group_of: Mapping[WorkerKey, str],
    shares: Mapping[tuple[WorkerKey, int], int],
) -> Layout:
    rank = {node.id: place for place, node in enumerate(plan.problem.cluster.topological_order())}
    ordered = sorted(cuts, key=lambda key: (component_key(key[0]), key[1]))
    # A bundle is known by its node and GPUs, or, without GPU, by its worker.
    holders: dict[tuple[str, str, tuple[int, ...], WorkerKey | None], list[tuple[WorkerKey, int]]] = defaultdict(list)
    for key in ordered:
        for place, gpus in enumerate(cuts[key]):
            holders[group_of[key], node_of[key], gpus, None if gpus else key].append((key, place))
    split = {key: _split(plan.problem, key[0], len(cuts[key])) for key in ordered}

    by_group: dict[str, list[tuple[str, tuple[int, ...], WorkerKey | None]]] = {}
    for name, node_id, gpus, owner in holders:
        by_group.setdefault(name, []).append((node_id, gpus, owner))
    groups: list[Group] = []
    parts: dict[tuple[WorkerKey, int], tuple[int, Part]] = {}
    # Groups are served in the order they are made, lowest ids first: making them by least GPU mostly saves a second try.
    for name in sorted(by_group, key=lambda name: min((gpus[0] for _, gpus, _ in by_group[name] if gpus), default=UNITS)):
        entries = by_group[name]
        entries.sort(
            key=lambda entry: (
                rank.get(entry[0], len(rank)),
                entry[0],
                not entry[1],
                entry[1],
                (component_key(entry[2][0]), entry[2][1]) if entry[2] else (),
            )
        )
        made: list[Bundle] = []
        for place, (node_id, gpus, owner) in enumerate(entries):
            held = holders[name, node_id, gpus, owner]
            cpu_units = memory = 0
            for key, cut in held:
                cpus, share_of_memory = split[key][cut]
                gpu_units = sum(shares[key, gpu] for gpu in gpus)
                parts[key, cut] = (len(groups), Part(place, gpu_units, cpus, share_of_memory))
                cpu_units += cpus
                memory += share_of_memory
            made.append(Bundle(node_id, gpus, cpu_units, memory, tuple(key for key, _ in held)))
        groups.append(Group(name, tuple(made)))
    seats: dict[str, tuple[Seat, ...]] = {}
    for name, workers in plan.workers.items():
        found: list[Seat] = []
        for index in range(len(workers)):
            mine = [parts[(name, index), cut] for cut in range(len(cuts[name, index]))]
            found.append(Seat(mine[0][0], tuple(part for _, part in mine)))
        seats[name] = tuple(found)
    return Layout(tuple(groups), seats)


def _split(problem: Problem, name: str, count: int) -> list[tuple[int, int]]:
    """CPU units and memory of a worker over its bundles: equal parts, what is left over in the first."""
    component = problem.by_name[name]

    def parts(total: int) -> list[int]:
        each = total // count
        return [total - each * (count - 1)] + [each] * (count - 1)

    return list(zip(parts(component.cpu_units), parts(component.memory), strict=True))
