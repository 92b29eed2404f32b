"""From counts to a plan: which node has which pattern, how many workers exactly, which GPU indices, which worker index.

Interchangeable nodes and domains are filled in topological order. Nothing is searched here but the layout of single nodes
(``node/arrange.py``); a wrong promise of the encoder raises. Modify this file when the order of nodes or workers changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from placewright.index.job import Job
from placewright.model.blocks import Area, DomainsBySet
from placewright.model.cells import Cell, PatternCell
from placewright.model.patterns import Pattern
from placewright.node.arrange import Arrange, Layout
from placewright.node.shape import Shape
from placewright_models.cluster import DOMAIN_LEVEL, NODE_LEVEL, Node
from placewright_models.plan import Idle, Pool, PoolNode, Worker
from placewright_models.problem import Problem
from placewright_models.ranges import Ranges, indices_of, ranges_of
from placewright_models.workload import Component

if TYPE_CHECKING:
    from placewright.model.encoding import Encoding

Counts = dict[str, tuple[int, ...]]
"""Node id -> workers per component, used nodes only."""


def decode_counts(encoding: Encoding, value: Callable[[Any], int]) -> Counts:
    """Workers of each component on each node, from a solution."""
    dealer = _Dealer(encoding, value)
    return dealer.deal()


class _Dealer:
    """Deals patterns to nodes, then workers of loose components to what the patterns have room for."""

    def __init__(self, encoding: Encoding, value: Callable[[Any], int]) -> None:
        self.encoding = encoding
        self.job = encoding.job
        self.value = value
        self.held: dict[str, Pattern] = {}
        self.cell_of: dict[str, Cell] = {}

    def deal(self) -> Counts:
        single: list[Area] = []
        for area in self.encoding.areas:
            if isinstance(area, DomainsBySet):
                self._by_set(area)
            elif area.single_nodes:
                self._nodes_in_order(area, area.cells)
            else:
                single.append(area)
        self._single_domains(single)
        return self._exact_counts()

    # Patterns to nodes

    def _nodes_in_order(self, area: Area, cells: Sequence[Cell]) -> None:
        """Equal nodes of one area: fullest pattern first, in topological order."""
        by_class: dict[Any, tuple[list[Node], list[tuple[Pattern, Cell]]]] = {}
        for cell, nodes in zip(area.cells, area.nodes, strict=True):
            if cell not in cells:
                continue
            spots, patterns = by_class.setdefault(cell.node_class, ([], []))
            spots.extend(node for domain in nodes for node in domain)
            patterns.extend((p, cell) for p, number in cell.contents(self.value) for _ in range(number))
        for spots, patterns in by_class.values():
            patterns.sort(key=lambda entry: entry[0], reverse=True)
            # Classes are one area's, so the nodes are in topological order already.
            for node, (pattern, cell) in zip(spots, patterns, strict=False):
                self._put(node, pattern, cell)

    def _put(self, node: Node, pattern: Pattern, cell: Cell) -> None:
        self.held[node.id] = pattern
        self.cell_of[node.id] = cell

    def _single_domains(self, areas: list[Area]) -> None:
        """Domains counted one by one; interchangeable ones change places so that the fullest come first."""
        groups: dict[tuple[object, ...], list[Area]] = {}
        for area in areas:
            groups.setdefault(area.domains[0].signature(), []).append(area)
        for group in groups.values():
            contents = []
            for area in group:
                by_class: dict[Any, list[tuple[Pattern, Cell]]] = {}
                for cell in area.cells:
                    patterns = [(p, cell) for p, number in cell.contents(self.value) for _ in range(number)]
                    by_class.setdefault(cell.node_class, []).extend(patterns)
                for entries in by_class.values():
                    entries.sort(key=lambda entry: entry[0], reverse=True)
                contents.append(by_class)
            total = [self._weight(entry) for entry in contents]
            order = sorted(range(len(group)), key=lambda i: total[i], reverse=True)
            for area, i in zip(group, order, strict=True):
                spots: dict[Any, list[Node]] = {}
                for cell, nodes in zip(area.cells, area.nodes, strict=True):
                    spots.setdefault(cell.node_class, []).extend(node for domain in nodes for node in domain)
                for node_class, entries in contents[i].items():
                    for node, (pattern, cell) in zip(spots[node_class], entries, strict=False):
                        self._put(node, pattern, cell)

    def _weight(self, by_class: dict[Any, list[tuple[Pattern, Cell]]]) -> list[Any]:
        """Canonical order of domain contents: components first to last, then the patterns themselves."""
        sums = [0] * self.job.count
        patterns: list[Pattern] = []
        for entries in by_class.values():
            for pattern, _ in entries:
                patterns.append(pattern)
                for c, number in enumerate(pattern):
                    sums[c] += number
        return [*sums, sorted(patterns, reverse=True)]

    def _by_set(self, area: DomainsBySet) -> None:
        """Of each class of equal domains, each choice of components gets its number of domains, first choice first."""
        chosen = sorted(
            ((tuple(int(c in (part.members or ())) for c in range(self.job.count)), part) for part in area.parts),
            key=lambda entry: entry[0],
            reverse=True,
        )
        nodes_of = {id(cell): nodes for cell, nodes in zip(area.cells, area.nodes, strict=True)}
        place = {id(domain): position for position, domain in enumerate(area.domains)}
        given: dict[int, int] = defaultdict(int)
        for _, part in chosen:
            taken: list[int] = []
            for number, domains in part.choices:
                first = given[id(domains)]
                given[id(domains)] += self.value(number)
                taken.extend(place[id(domain)] for domain in domains[first : given[id(domains)]])
            for cell in part.cells:
                self._deal_to_domains(cell, [nodes_of[id(cell)][position] for position in sorted(taken)])

    def _deal_to_domains(self, cell: Cell, domains: list[list[Node]]) -> None:
        """Segments first, whole ones per domain; everything else fills what is left."""
        patterns = sorted(cell.contents(self.value), reverse=True)
        segments: list[tuple[Pattern, int, int]] = []
        rest: list[Pattern] = []
        for pattern, number in patterns:
            size = next((s for c, n in enumerate(pattern) if n and (s := self.job.components[c].segment_size)), None)
            if size is None:
                rest.extend([pattern] * number)
            else:
                segments.append((pattern, number, size))
        left = {d: len(nodes) for d, nodes in enumerate(domains)}
        filled: list[list[Pattern]] = [[] for _ in domains]
        # Patterns with the segmented component may differ in what lies over it; they make segments together.
        queue = [pattern for pattern, number, _ in segments for _ in range(number)]
        size = segments[0][2] if segments else 1
        for d, nodes in enumerate(domains):
            take = min(len(queue), len(nodes) // size * size)
            filled[d] = queue[:take]
            del queue[:take]
            left[d] -= take
        if queue:
            raise RuntimeError("segments do not fit the domains they were counted for, please report it")
        for d in left:
            filled[d].extend(rest[: left[d]])
            del rest[: left[d]]
        for nodes, contents in zip(domains, filled, strict=True):
            for node, pattern in zip(nodes, contents, strict=False):
                self._put(node, pattern, cell)

    # Workers of loose components

    def _exact_counts(self) -> Counts:
        order = [node.id for node in self.encoding.topology.order if node.id in self.held]
        counts = {node_id: list(self.held[node_id]) for node_id in order}
        for c in range(self.job.count):
            if c in self.encoding.needs.exact:
                continue
            groups: dict[str, list[str]] = {}
            totals: dict[str, int] = {}
            by_cell = c in self.encoding.needs.per_place
            for node_id in order:
                if not counts[node_id][c]:
                    continue
                cell = self.cell_of[node_id]
                if not isinstance(cell, PatternCell):
                    continue
                key = cell.name if by_cell else ""
                groups.setdefault(key, []).append(node_id)
                if by_cell and key not in totals:
                    totals[key] = self.value(cell.numbers[c])
            if not by_cell:
                fixed = sum(
                    counts[node_id][c] for node_id in order if not isinstance(self.cell_of[node_id], PatternCell)
                )
                totals[""] = self.value(self.encoding.placed[c]) - fixed
            for key, node_ids in groups.items():
                room = [counts[node_id][c] for node_id in node_ids]
                share = spread_evenly if self.job.components[c].spread == "even" else pack
                for node_id, number in zip(node_ids, share(room, totals[key]), strict=True):
                    counts[node_id][c] = number
        return {node_id: tuple(numbers) for node_id, numbers in counts.items()}


def pack(room: Sequence[int], total: int) -> list[int]:
    """Deal ``total`` workers to places, at least one each, filling the first places first.

    >>> pack([8, 8, 8], 18)
    [8, 8, 2]
    """
    given = [1] * len(room)
    left = total - len(room)
    for place, most in enumerate(room):
        more = min(left, most - 1)
        given[place] += more
        left -= more
    if left:
        raise RuntimeError(f"{total} workers do not fit places {room}, please report it")
    return given


def spread_evenly(room: Sequence[int], total: int) -> list[int]:
    """Deal ``total`` workers to places, at least one each, as evenly as the room allows (least sum of squares).

    >>> spread_evenly([8, 3, 8], 14)
    [6, 3, 5]
    """
    given = [0] * len(room)
    left = total
    open_places = list(range(len(room)))
    while open_places and left:
        level = left // len(open_places)
        full = [place for place in open_places if room[place] - given[place] <= level]
        if not full:
            for rank, place in enumerate(open_places):
                given[place] += level + (1 if rank < left - level * len(open_places) else 0)
            left = 0
            break
        for place in full:
            left -= room[place] - given[place]
            given[place] = room[place]
        filled = set(full)
        open_places = [place for place in open_places if place not in filled]
    if left or (total and min(given, default=1) < 1):
        raise RuntimeError(f"{total} workers do not fit places {room}, please report it")
    return given


# Counts to GPU indices and worker indices


def place_workers(
    job: Job, order: Sequence[Node], counts: Counts, arrange: Arrange | None = None
) -> dict[str, tuple[Worker, ...]]:
    """Every worker's node and GPUs, worker indices in topological order, groups and segments together.

    Args:
        order: all nodes in topological order.
    """
    arrange = arrange or Arrange(job)
    layouts: dict[str, Layout] = {}
    used = [node for node in order if node.id in counts]
    shapes: dict[tuple[int, tuple[int, ...]], Shape] = {}
    for node in used:
        key = (node.gpus, node.unusable_gpus)
        shape = shapes.get(key)
        if shape is None:
            shape = shapes[key] = Shape(node.gpus, node.runs)
        layouts[node.id] = arrange(shape, counts[node.id])
    workers: dict[str, tuple[Worker, ...]] = {}
    for c, component in enumerate(job.components):
        hosts = [node for node in used if counts[node.id][c]]
        spots = {node.id: [Worker(node.id, ranges) for ranges in layouts[node.id].workers[c]] for node in hosts}
        workers[component.name] = tuple(_index_workers(job, c, component, hosts, spots))
    return workers


def _index_workers(
    job: Job, c: int, component: Component, hosts: list[Node], spots: dict[str, list[Worker]]
) -> Iterable[Worker]:
    """Whole groups and segments first, in topological order; what is split follows."""
    unit = job.problem.cluster.unit_or_node
    blocks: list[list[Worker]] = []
    if component.segment_size is not None or job.whole_node_group(c):
        level = DOMAIN_LEVEL if component.segment_size is not None or component.group is None else component.group.within
        together: dict[tuple[tuple[str, str], int], list[Node]] = {}
        for node in hosts:
            together.setdefault((unit(node, level), node.gpus), []).append(node)
        split: dict[int, list[Node]] = {}
        for (where, size), nodes in together.items():
            each = component.segment_size or job.nodes_per_group(c, size) or 1
            whole = 0 if where[0] == NODE_LEVEL else len(nodes) // each * each
            for first in range(0, whole, each):
                blocks.append([worker for node in nodes[first : first + each] for worker in spots[node.id]])
            split.setdefault(size, []).extend(nodes[whole:])
        for size in sorted(split, reverse=True):
            blocks.append([worker for node in split[size] for worker in spots[node.id]])
    elif component.group is not None:
        k = component.group.workers
        units: dict[tuple[str, str], list[Worker]] = {}
        for node in hosts:
            units.setdefault(unit(node, component.group.within), []).extend(spots[node.id])
        left: list[Worker] = []
        for found in units.values():
            whole = len(found) // k * k
            blocks.append(found[:whole])
            left.extend(found[whole:])
        blocks.append(left)
    else:
        blocks = [spots[node.id] for node in hosts]
    return (worker for block in blocks for worker in block)


def pools_and_idle(problem: Problem, order: Sequence[Node], workers: dict[str, tuple[Worker, ...]]) -> tuple[
    tuple[Pool, ...], Idle
]:
    """The pools section and what is left free, from the workers alone."""
    held: dict[str, list[Any]] = {}
    for name, placed in workers.items():
        for node_id, ranges in placed:
            here = held.get(node_id)
            if here is None:
                held[node_id] = [name, ranges]
            else:
                here += (name, ranges)
    # Most nodes hold the same as another, so each content is worked out once.
    contents: dict[tuple[Any, ...], dict[str, Ranges]] = {}
    on_node: dict[str, dict[str, Ranges]] = {}
    for node_id, parts in held.items():
        key = tuple(parts)
        content = contents.get(key)
        if content is None:
            content = contents[key] = _unions(parts)
        on_node[node_id] = content
    pools = []
    for pool, members in problem.pools():
        nodes = []
        for node in order:
            content = on_node.get(node.id)
            if content is not None:
                allocations = {name: content[name] for name in members if name in content}
                if allocations:
                    nodes.append(PoolNode(node.id, node.gpus, allocations))
        pools.append(Pool(pool, tuple(nodes)))
    free = 0
    empty: list[str] = []
    left: dict[str, Ranges] = {}
    lefts: dict[tuple[Any, ...], tuple[Ranges, int]] = {}
    for node in order:
        if node.excluded is not None or (node.head and not problem.cluster.schedule_on_head):
            continue
        content = on_node.get(node.id)
        if content is None:
            empty.append(node.id)
        look = (node.gpus, node.unavailable_gpus, node.occupied, id(content))
        known = lefts.get(look)
        if known is None:
            taken = {index for part in (content or {}).values() for index in indices_of(part)}
            runs = ranges_of(set(indices_of(node.runs)) - taken)
            known = lefts[look] = (runs, sum(end - start + 1 for start, end in runs))
        if known[1]:
            left[node.id] = known[0]
            free += known[1]
    return tuple(pools), Idle(free, tuple(empty), left)


def _unions(parts: Sequence[Any]) -> dict[str, Ranges]:
    """Component -> all its ranges, of component, ranges, component, ranges, and so on."""
    indices: dict[str, list[int]] = {}
    for name, ranges in zip(parts[::2], parts[1::2], strict=True):
        indices.setdefault(name, []).extend(indices_of(ranges))
    return {name: ranges_of(found) for name, found in indices.items()}
