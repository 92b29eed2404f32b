"""What there is to see in a plan, without saying where or in which medium: nodes, their tiles, domains, pools, a legend.

``scene(plan)`` is small also for 100,000 GPUs: nodes with equal content share one ``Content``; a node keeps only which one it
has and which worker indices fill it. Modify this file when a picture is to show something new of a plan.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from placewright.picture.colours import colours
from placewright_models.cluster import DOMAIN_LEVEL, Node
from placewright_models.plan import Plan
from placewright_models.ranges import Range, indices_of, ranges_of

FREE, UNAVAILABLE, OCCUPIED = ".", "x", "o"
"""What a GPU is apart from this plan: free to use, unavailable, held by another plan."""


LONGEST_LABEL = 22
"""Names longer than this lose their middle."""


class Tile(NamedTuple):
    """A rectangle inside a node's strip of GPUs: one worker, or several that share one GPU.

    The strip's height is divided into ``lanes``, one for each component on the GPU; ``lane`` counts from the top. ``place``
    and ``workers`` say which of the component's workers here, in the order of their indices.
    """

    component: int
    start: int
    end: int
    lane: int
    lanes: int
    place: int
    workers: int


@dataclass(frozen=True, slots=True)
class Content:
    """What one or more nodes hold, worker indices apart."""

    gpus: int
    states: str
    """One of ``FREE``, ``UNAVAILABLE``, ``OCCUPIED`` for each GPU."""
    tiles: tuple[Tile, ...]
    without_gpu: tuple[tuple[int, int], ...]
    """Component and number of its workers that have no GPU."""
    components: tuple[int, ...]
    """Every component here, in order; the node's worker indices stand in the same order."""
    pools: tuple[tuple[int, int, int], ...]
    """Pool with the first and last GPU that its components have here; (pool, 0, -1) without any."""
    note: str
    """Why the node hosts nothing, or which plans hold GPUs; mostly empty."""
    excluded: bool


@dataclass(frozen=True, slots=True)
class SceneNode:
    """One node: which content it has, and the worker indices (as ranges) of each of the content's components."""

    id: str
    label: str
    """The id as short as it can be told apart."""
    content: int
    workers: tuple[tuple[Range, ...], ...]


@dataclass(frozen=True, slots=True)
class Domain:
    """Consecutive nodes ``start`` up to before ``end`` of one NVLink domain; without a name, nodes of none.

    Nodes with neither GPUs nor a domain come last, whatever their place in the topological order.
    """

    name: str | None
    above: str
    """Units of the declared levels above, widest first, such as ``zone z0, block b1``."""
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Role:
    """A component in the legend."""

    name: str
    kind: str
    colour: str
    workers: int
    gpus: int
    nodes: int
    has_gpus: bool


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything a picture shows."""

    title: str
    caption: tuple[tuple[str, str, str], ...]
    """Goal, value, what is known about it."""
    roles: tuple[Role, ...]
    pools: tuple[str, ...]
    domains: tuple[Domain, ...]
    nodes: tuple[SceneNode, ...]
    contents: tuple[Content, ...]

    def content(self, node: SceneNode) -> Content:
        """What the node holds."""
        return self.contents[node.content]

    @property
    def states(self) -> frozenset[str]:
        """Which of idle, unavailable, occupied there are: ``FREE`` only where a free GPU holds no tile."""
        found: set[str] = set()
        for content in self.contents:
            held = {gpu for tile in content.tiles for gpu in range(tile.start, tile.end + 1)}
            found.update(state for gpu, state in enumerate(content.states) if gpu not in held)
        return frozenset(found)

    @property
    def shares(self) -> bool:
        """Whether any GPU is shared by several components."""
        return any(tile.lanes > 1 for content in self.contents for tile in content.tiles)


def scene(plan: Plan, palette: Mapping[str, str] | None = None) -> Scene:
    """What there is to see in the plan; ``palette`` gives component colours where several plans must agree."""
    problem = plan.problem
    order = problem.cluster.topological_order()
    order.sort(key=lambda node: node.gpus == 0 and node.nvlink_domain is None)
    names = [component.name for component in problem.components]
    palette = palette if palette is not None else colours(names)
    here = _workers_by_node(plan, names)
    pools = tuple(name for name, _ in problem.pools())
    pool_of = {number: pools.index(problem.pool_of[name]) for number, name in enumerate(names) if name in problem.pool_of}
    known: dict[Content, int] = {}
    seen: dict[Hashable, Content] = {}
    nodes = []
    labels = _labels([node.id for node in order])
    gpus, hosts = Counter[int](), Counter[int]()
    for node in order:
        held = here.get(node.id, {})
        key = (
            node.gpus, node.unavailable_gpus, node.occupied, node.excluded, node.head,
            tuple((number, tuple([ranges for _, ranges in workers])) for number, workers in held.items()),
        )
        if key not in seen:
            seen[key] = _content(node, held, pool_of, problem.cluster.schedule_on_head)
        content = seen[key]
        workers = tuple(ranges_of(index for index, _ in held[number]) for number in content.components)
        nodes.append(SceneNode(node.id, labels[node.id], known.setdefault(content, len(known)), workers))
        for number in content.components:
            hosts[number] += 1
        for tile in content.tiles:
            gpus[tile.component] += tile.end - tile.start + 1
    roles = tuple(
        Role(
            name=component.name,
            kind=component.kind,
            colour=palette[component.name],
            workers=len(plan.workers.get(component.name, ())),
            gpus=gpus[number],
            nodes=hosts[number],
            has_gpus=component.gpus > 0,
        )
        for number, component in enumerate(problem.components)
    )
    return Scene(_title(plan), _caption(plan), roles, pools, _domains(plan, order), tuple(nodes), tuple(known))


def _workers_by_node(plan: Plan, names: list[str]) -> dict[str, dict[int, list[tuple[int, tuple[Range, ...]]]]]:
    """Node -> component -> its workers there as (index, ranges)."""
    here: dict[str, dict[int, list[tuple[int, tuple[Range, ...]]]]] = defaultdict(dict)
    for number, name in enumerate(names):
        for index, worker in enumerate(plan.workers.get(name, ())):
            here[worker.node_id].setdefault(number, []).append((index, worker.ranges))
    return here


def _content(
    node: Node, held: Mapping[int, list[tuple[int, tuple[Range, ...]]]], pool_of: Mapping[int, int], on_head: bool
) -> Content:
    states = [FREE] * node.gpus
    for gpu in node.unavailable_gpus:
        states[gpu] = UNAVAILABLE
    for occupation in node.occupied:
        for gpu in occupation.gpus:
            states[gpu] = OCCUPIED
    excluded = node.excluded is not None or (node.head and not on_head)
    notes = [f"excluded: {node.excluded}"] if node.excluded is not None else []
    if excluded and not notes:
        notes.append("head node, hosts nothing")
    notes += [f"occupied by {occupation.plan}" for occupation in node.occupied]
    if excluded:
        states = [UNAVAILABLE if state == FREE else state for state in states]
    spans: dict[int, tuple[int, int]] = {}
    for number, workers in held.items():
        if number not in pool_of:
            continue
        used = [gpu for _, ranges in workers for gpu in indices_of(ranges)]
        first, last = spans.get(pool_of[number], (0, -1))
        if used and last < 0:
            first, last = min(used), max(used)
        elif used:
            first, last = min(first, *used), max(last, *used)
        spans[pool_of[number]] = (first, last)
    return Content(
        gpus=node.gpus,
        states="".join(states),
        tiles=tuple(_tiles(held)),
        without_gpu=tuple(
            (number, bare) for number, workers in sorted(held.items()) if (bare := sum(not ranges for _, ranges in workers))
        ),
        components=tuple(sorted(held)),
        pools=tuple((pool, *span) for pool, span in sorted(spans.items())),
        note="; ".join(notes),
        excluded=excluded,
    )


def _tiles(held: Mapping[int, list[tuple[int, tuple[Range, ...]]]]) -> Iterable[Tile]:
    """One tile a worker (or a GPU's workers of one component), cut where the number of components on a GPU changes."""
    on_gpu: dict[int, set[int]] = defaultdict(set)
    for number, workers in held.items():
        for _, ranges in workers:
            for gpu in indices_of(ranges):
                on_gpu[gpu].add(number)
    lanes = {gpu: sorted(numbers) for gpu, numbers in on_gpu.items()}
    for number in sorted(held):
        by_ranges: dict[tuple[Range, ...], list[int]] = defaultdict(list)
        for place, (_, ranges) in enumerate(held[number]):
            if ranges:
                by_ranges[ranges].append(place)
        for ranges, places in by_ranges.items():
            for start, end in ranges:
                cut = start
                for gpu in range(start, end + 1):
                    if gpu == end or lanes[gpu + 1] != lanes[gpu]:
                        yield Tile(number, cut, gpu, lanes[gpu].index(number), len(lanes[gpu]), places[0], len(places))
                        cut = gpu + 1


def _domains(plan: Plan, order: list[Node]) -> tuple[Domain, ...]:
    """Runs of nodes of one domain; neighbours without a domain, under the same units above, form one run."""
    cluster = plan.problem.cluster
    found: list[Domain] = []
    last: object = None
    for at, node in enumerate(order):
        unit = cluster.unit(node, DOMAIN_LEVEL)
        above = ", ".join(f"{level} {node.labels[level]}" for level in cluster.levels if level in node.labels)
        key = (unit, above, node.gpus > 0 or unit is not None)
        if key == last:
            found[-1] = Domain(found[-1].name, above, found[-1].start, at + 1)
        else:
            found.append(Domain(node.nvlink_domain, above, at, at + 1))
        last = key
    return tuple(found)


def shortened(name: str, most: int = LONGEST_LABEL) -> str:
    """The name, without its middle where it is long.

    >>> shortened("training-cluster-gpu-h100-0017")
    'training-c…u-h100-0017'
    """
    return name if len(name) <= most else f"{name[: most // 2 - 1]}…{name[len(name) - most // 2 :]}"


def _labels(ids: list[str]) -> dict[str, str]:
    """Short labels: host names lose their domain where the rest still tells all nodes apart."""
    heads = {name: name if name.replace(".", "").isdigit() else name.split(".")[0] for name in ids}
    if len(set(heads.values())) < len(ids) or not all(heads.values()):
        heads = {name: name for name in ids}
    return {name: shortened(head) for name, head in heads.items()}


def _title(plan: Plan) -> str:
    cluster = plan.problem.cluster.nodes
    used = {worker.node_id for workers in plan.workers.values() for worker in workers}
    available = sum(node.available_gpus for node in cluster if node.excluded is None)
    workers = sum(map(len, plan.workers.values()))
    word = {"optimal": "Optimal plan", "feasible": "Plan (not every goal proved)", "greedy": "Greedy plan"}
    return (
        f"{word.get(plan.status, plan.status)}: {_count(workers, 'worker')} on "
        f"{len(used):,} of {_count(len(cluster), 'node')}, "
        f"{max(0, available - plan.idle.gpus):,} of {_count(available, 'GPU')} used"
    )


def _caption(plan: Plan) -> tuple[tuple[str, str, str], ...]:
    def known(value: int, bound: int | None) -> str:
        if bound is None:
            return "measured"
        return "proved" if bound == value else f"at least {bound:,}"

    return tuple((goal.name, f"{goal.value:,}", known(goal.value, goal.bound)) for goal in plan.goals)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
