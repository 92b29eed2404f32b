"""Manual pools of RLightning, read strictly: what the reference passes over in silence is refused, all faults at once.

Usage: ``read_pools(...)``, through :mod:`placewright.compat.rlightning`. The reference's own reading is
``placewright.greedy.reference.manual``.

When to modify: when RLightning's manual configuration gets another form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from placewright.compat._rlightning_problem import Kind, Kinds, PlannedPool
from placewright.greedy.reference.manual import component_entries, plain_mapping
from placewright.greedy.reference.resource_pool import NodeResource, ResourcePool
from placewright_models.errors import Fault, InvalidProblem
from placewright_models.plan import Worker
from placewright_models.quantities import UNITS, natural_key, units_of
from placewright_models.ranges import Range, format_ranges, ranges_of

_PART = re.compile(r"(\d+)(?:\s*-\s*(\d+))?")
Spot = tuple[str, int]
"""Node id and GPU index there."""


class ManualPools:
    """Pools of a manual configuration with every fault found in them.

    Attributes:
        pools: the pools by name, in order.
        faults: what is wrong.
        spots: component -> its GPUs in the order written.
    """

    def __init__(self, nodes: Mapping[str, NodeResource]) -> None:
        self.nodes = nodes
        self.pools: dict[str, ResourcePool] = {}
        self.faults: list[Fault] = []
        self.spots: dict[str, list[Spot]] = {}
        self._owner: dict[str, dict[int, list[tuple[str, str]]]] = {}

    def _fault(self, place: str, wrong: str, right: str = "") -> None:
        self.faults.append(Fault(place, wrong, right))

    # Nodes of a pool

    def read(self, configs: Iterable[Any]) -> None:
        """Read every pool, in order; pools that name no nodes take those that no pool before has."""
        used: set[str] = set()
        for index, given in enumerate(configs):
            config = plain_mapping(given)
            name = str(config.get("name") or f"resource_pool[{index}]")
            if name in self.pools:
                self._fault(name, "two pools have this name", "rename one")
                continue
            chosen = self._choose(name, config, used)
            if chosen is None:
                continue
            used.update(node.node_id for node in chosen)
            pool = PlannedPool(name, [node.copy() for node in chosen])
            self.pools[name] = pool
            offsets = list(accumulate((node.total_gpus for node in chosen), initial=0))
            for component, value in component_entries(config):
                for start, end in self._ranges(f"{name}.{component}", component, value, offsets[-1]):
                    self._place(pool, component, start, end, offsets)

    def _choose(self, name: str, config: Mapping[str, Any], used: set[str]) -> list[NodeResource] | None:
        wanted, sizes, ids = config.get("num_node"), config.get("num_gpus"), config.get("node_ids")
        count = len(ids) if wanted is None and ids is not None else wanted
        if type(count) is not int or count < 0:
            self._fault(f"{name}.num_node", f"{wanted!r} is not a number of nodes")
            return None
        if isinstance(sizes, (list, tuple)) and len(sizes) != count:
            self._fault(f"{name}.num_gpus", f"{len(sizes)} sizes for {count} nodes")
            return None
        if ids is not None:
            unknown = [node_id for node_id in ids if node_id not in self.nodes]
            if unknown:
                self._fault(f"{name}.node_ids", f"{', '.join(map(str, unknown))} is no node of the cluster")
                return None
            if len(ids) != count or len(set(ids)) != len(ids):
                self._fault(f"{name}.node_ids", f"{len(set(ids))} different nodes named and num_node is {count}")
                return None
            chosen = [self.nodes[node_id] for node_id in ids]
        else:
            found = self._match(count, sizes, used)
            if found is None:
                free = [node.total_gpus for node in self._free(used)]
                asked = f"{count} nodes of {'any' if sizes is None else sizes} GPUs"
                self._fault(f"{name}.num_node", f"{asked} asked and the nodes left have {free or 'no'} GPUs")
                return None
            chosen = found
        said = list(sizes) if isinstance(sizes, (list, tuple)) else [sizes] * count
        for node, size in zip(chosen, said, strict=True):
            if size is not None and size != node.total_gpus:
                self._fault(
                    f"{name}.num_gpus",
                    f"{size} GPUs said of {node.node_id}, which has {node.total_gpus}: all indices after it would be shifted",
                    f"write {[node.total_gpus for node in chosen]}",
                )
        return chosen

    def _free(self, used: set[str]) -> list[NodeResource]:
        free = [node for node in self.nodes.values() if node.node_id not in used and node.total_gpus > 0]
        return sorted(free, key=lambda node: natural_key(node.node_id))

    def _match(self, count: int, sizes: Any, used: set[str]) -> list[NodeResource] | None:
        """Free nodes of the sizes said, in natural order of their ids; nodes without GPUs are passed over."""
        free = self._free(used)
        said = list(sizes) if isinstance(sizes, (list, tuple)) else [sizes] * count
        chosen: list[NodeResource] = []
        for size in said:
            node = next((node for node in free if size is None or node.total_gpus == size), None)
            if node is None:
                # Too few of that size: take any, so that the sizes are named as the fault.
                return free[:count] if not chosen and len(free) >= count and len(set(said)) == 1 else None
            chosen.append(node)
            free.remove(node)
        return chosen

    # Ranges of a component

    def _ranges(self, place: str, component: str, value: object, total: int) -> list[Range]:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            self._fault(place, f"{component} is {value!r} where text is due", 'write GPU indices as text such as "0-3, 8"')
            return []
        found: list[Range] = []
        for part in (text.strip() for text in str(value).split(",")):
            match = _PART.fullmatch(part)
            if match is None:
                if part or "," in str(value):
                    self._fault(place, f"{component}: {part!r} is no range of GPU indices", 'write "0-3, 8"')
                continue
            start, end = int(match[1]), int(match[2] or match[1])
            if end < start:
                self._fault(place, f"{component}: the range {part} is reversed", f"write {end}-{start}")
            elif end >= total:
                past = format_ranges([(max(start, total), end)])
                has = format_ranges([(0, total - 1)]) if total else "none"
                self._fault(place, f"{component}: {part} names GPU {past}, past the end: the pool's {total} GPUs are {has}")
            else:
                found.append((start, end))
        return found

    def _place(self, pool: ResourcePool, component: str, start: int, end: int, offsets: Sequence[int]) -> None:
        for node, first, last in zip(pool.nodes, offsets, offsets[1:], strict=False):
            low, high = max(start, first), min(end, last - 1)
            if low > high:
                continue
            local = (low - first, high - first)
            node.allocations.setdefault(component, []).append(local)
            node.gpu_cursor = node.max_allocated_gpus = max(node.max_allocated_gpus, local[1] + 1)
            owners = self._owner.setdefault(node.node_id, {})
            for gpu in range(local[0], local[1] + 1):
                self.spots.setdefault(component, []).append((node.node_id, gpu))
                owners.setdefault(gpu, []).append((pool.name, component))

    # Rules

    def check_overlaps(self, may_share: Callable[[str, str], bool]) -> None:
        """No GPU twice in one component, and none in two that no rule lets share it."""
        clashes: dict[tuple[str, tuple[str, str], tuple[str, str]], list[int]] = {}
        for node_id, gpus in self._owner.items():
            for gpu, owners in gpus.items():
                for index, first in enumerate(owners):
                    for second in owners[index + 1 :]:
                        if first[1] == second[1] or not may_share(first[1], second[1]):
                            clashes.setdefault((node_id, first, second), []).append(gpu)
        for (node_id, (pool, name), (other_pool, other)), gpus_there in clashes.items():
            where = f"GPU {format_ranges(ranges_of(gpus_there))} of {node_id}"
            if name == other:
                self._fault(f"{pool}.{name}", f"{name} names {where} twice")
            else:
                self._fault(
                    f"{pool}.{name}",
                    f"{name} and {other} ({other_pool}) overlap on {where} and no rule lets them share",
                    f"move one, or say so with share_gpus=[[{name}, {other}]] or a strategy that shares",
                )

    def workers(self, kinds: Kinds) -> dict[str, tuple[Worker, ...]]:
        """The workers of every kind on the ranges of its component, in order; too few GPUs is a fault with the numbers."""
        placed: dict[str, tuple[Worker, ...]] = {}
        scheduled = {kind.component for kind in kinds.all}
        for component in dict.fromkeys([*(kind.component for kind in kinds.all), *self.spots]):
            spots = self.spots.get(component, [])
            if component == "buffer":
                continue
            if component not in scheduled:
                placed[component] = tuple(Worker(node_id, ((gpu, gpu),)) for node_id, gpu in spots)
                continue
            deal = _Deal(spots)
            for kind in kinds.named(component):
                placed[kind.name] = tuple(self._cut(kind, deal))
        train = dict.fromkeys(worker.node_id for kind in kinds.named("train") for worker in placed[kind.name])
        for kind in kinds.named("buffer"):
            placed[kind.name] = tuple(Worker(node_id, ()) for node_id in train)
        return placed

    def _cut(self, kind: Kind, deal: _Deal) -> Iterator[Worker]:
        """Workers of one kind from what is left of its component's GPUs."""
        gpus, component = kind.scheduling.num_gpus, kind.component
        if not gpus:
            if kind.count:
                self._fault(component, f"{kind.count} workers without GPU have no place in manual pools", "plan them instead")
            return
        need, have = deal.needed(kind), deal.left
        if need > have:
            amount = f"{kind.count} workers of {gpus:g} GPU, which need {need} GPUs more"
            self._fault(component, f"{component} has {amount}, and its ranges hold {have} GPUs")
            return
        for index in range(kind.count):
            piece = deal.next(gpus)
            nodes = list(dict.fromkeys(node_id for node_id, _ in piece))
            ranges = ranges_of(gpu for _, gpu in piece)
            who = f"{component} worker {index} of {gpus:g} GPUs"
            if len(nodes) > 1:
                self._fault(component, f"{who} crosses {' and '.join(nodes)}", "a worker lies on one node")
            elif len(ranges) > 1:
                self._fault(component, f"{who} would lie on GPUs {format_ranges(ranges)} of {nodes[0]}", "leave no hole")
            yield Worker(nodes[0], ranges)

    def check_cpus(self, kinds: Kinds, placed: Mapping[str, Sequence[Worker]], limits: Mapping[str, float | None]) -> None:
        """CPUs of everything on a node against what it has (D7: the reference would wait for ever)."""
        needed: dict[str, dict[str, float]] = {}
        for kind in kinds.all:
            for worker in placed.get(kind.name, ()):
                here = needed.setdefault(worker.node_id, {})
                here[kind.component] = here.get(kind.component, 0) + kind.scheduling.num_cpus
        for node_id, parts in needed.items():
            limit, total = limits.get(node_id), sum(parts.values())
            if limit is not None and total > limit:
                shown = ", ".join(f"{name} {cpus:g}" for name, cpus in parts.items())
                self._fault(node_id, f"its workers need {total:g} CPUs ({shown}) and it has {limit:g}")


class _Deal:
    """Deals the GPUs of one component, in order; workers with a share of a GPU are packed."""

    def __init__(self, spots: Sequence[Spot]) -> None:
        self.spots = spots
        self.taken = 0
        self.room = 0

    @property
    def left(self) -> int:
        """GPUs that no worker is on."""
        return len(self.spots) - self.taken

    def needed(self, kind: Kind) -> int:
        """GPUs that the kind's workers need besides what is free on the last one."""
        gpus = kind.scheduling.num_gpus
        if gpus >= 1:
            return kind.count * int(gpus)
        units = units_of(gpus)
        return max(0, -(-(kind.count - self.room // units) // (UNITS // units)))

    def next(self, gpus: float) -> Sequence[Spot]:
        """The GPUs of the next worker."""
        width, units = (int(gpus), UNITS) if gpus >= 1 else (1, units_of(gpus))
        if self.room >= units:
            self.room -= units
            return self.spots[self.taken - 1 : self.taken]
        self.room = 0 if gpus >= 1 else UNITS - units
        self.taken += width
        return self.spots[self.taken - width : self.taken]


def read_pools(
    configs: Iterable[Any],
    nodes: Mapping[str, NodeResource],
    kinds: Kinds,
    may_share: Callable[[str, str], bool],
    cpus: Mapping[str, float | None],
) -> tuple[dict[str, ResourcePool], dict[str, tuple[Worker, ...]]]:
    """Pools and workers of a manual configuration.

    Args:
        configs: entries of ``resource_pool``.
        nodes: the cluster.
        kinds: what is scheduled; components that are not scheduled only have their ranges read.
        may_share: whether two components may be on one GPU.
        cpus: CPUs per node; None is unlimited.

    Raises:
        InvalidProblem: with every fault found, the numbers in it.
    """
    manual = ManualPools(nodes)
    manual.read(configs)
    manual.check_overlaps(may_share)
    placed = manual.workers(kinds) if not manual.faults else {}
    manual.check_cpus(kinds, placed, cpus)
    if manual.faults:
        raise InvalidProblem(manual.faults, "resource_pool")
    return manual.pools, placed
