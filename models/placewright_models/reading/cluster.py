"""From the ``cluster`` section of the file to a ``Cluster``: counted entries, patterns, and what cannot be right of a node.

A counted entry is validated once and its nodes are built directly, so that 125,000 nodes load in about a second. Modify this
file when a node gets a new property, or when a new property can be patterned over a counted entry.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from placewright_models.cluster import CLUSTER_LEVEL, DOMAIN_LEVEL, NODE_LEVEL, Cluster, Node, Occupation
from placewright_models.errors import Fault
from placewright_models.quantities import plain_number
from placewright_models.reading import values
from placewright_models.reading.schema import NodeEntry, validate_part
from placewright_models.reading.values import Wrong, closest, listed, nearest, show

_CLUSTER_KEYS = ("levels", "nodes", "schedule_on_head")
_RESERVED_LEVELS = (CLUSTER_LEVEL, DOMAIN_LEVEL, NODE_LEVEL)
_PATTERN = re.compile(r"([^{}]*)\{(?::(0?[0-9]{0,2}[dxX]?))?\}([^{}]*)")
_PATTERNED = ("id", "ip", "node_name", "ray_node_id")


@dataclass(frozen=True)
class Pattern:
    """Text with one number in it: ``gpu-{:03d}``. Anything but one ``{}`` with a plain width is refused.

    >>> Pattern.of("gpu-{:03d}").fill(7)
    'gpu-007'
    """

    before: str
    spec: str
    after: str

    @staticmethod
    def of(text: str) -> Pattern:
        """Read a pattern.

        Raises:
            Wrong: if the text does not hold exactly one ``{}``.
        """
        match = _PATTERN.fullmatch(text)
        if match is None:
            if "{" not in text and "}" not in text:
                raise Wrong(f"{text!r} has no {{}} for the number", "write it as gpu-{} or gpu-{:03d}")
            raise Wrong(f"{show(text)} is not a pattern", "exactly one {} or {:03d}, and no other brace")
        return Pattern(match.group(1), match.group(2) or "", match.group(3))

    def fill(self, value: int) -> str:
        """The text with this number."""
        return f"{self.before}{value:{self.spec}}{self.after}"


def parse_cluster(data: Any, faults: list[Fault]) -> tuple[Cluster, bool]:
    """The cluster as far as it can be read, and whether the id and the GPUs of every node could be."""
    if not isinstance(data, Mapping):
        faults.append(Fault("cluster", f"{show(data)} is not a mapping", "write nodes: under it"))
        return Cluster(()), False
    for key in data:
        if key not in _CLUSTER_KEYS:
            faults.append(Fault(f"cluster.{key}", "unknown key", nearest(key, _CLUSTER_KEYS)))
    levels = _levels(data.get("levels"), faults)
    on_head = data.get("schedule_on_head")
    if on_head is not None and not isinstance(on_head, bool):
        faults.append(Fault("cluster.schedule_on_head", f"{show(on_head)} is neither true nor false", "write true or false"))
    nodes, known = _nodes(data, faults)
    if levels:
        check_levels(nodes, levels, faults)
    return Cluster(nodes, levels, on_head is True), known


def _levels(data: Any, faults: list[Fault]) -> tuple[str, ...]:
    if data is None:
        return ()
    try:
        levels = values.names(data)
    except Wrong as wrong:
        faults.append(Fault("cluster.levels", wrong.wrong, wrong.right or "such as [zone, block]"))
        return ()
    for index, level in enumerate(levels):
        if level in _RESERVED_LEVELS:
            faults.append(
                Fault(
                    f"cluster.levels[{index}]", f"{level} is a level of every cluster", "give it another name, or leave it out"
                )
            )
    return tuple(level for level in levels if level not in _RESERVED_LEVELS)


def _nodes(data: Mapping[Any, Any], faults: list[Fault]) -> tuple[tuple[Node, ...], bool]:
    """The nodes, and whether the id and the GPUs of every one are known."""
    if data.get("nodes") is None and any(closest(key, ["nodes"]) for key in data if key not in _CLUSTER_KEYS):
        return (), False  # misspelt, and told so
    if data.get("nodes") is None:
        faults.append(Fault("cluster.nodes", "is missing", "list the nodes: [{id: node-a, gpus: 8, cpus: 128}]"))
        return (), False
    raw = data["nodes"]
    if not isinstance(raw, (list, tuple)):
        faults.append(
            Fault("cluster.nodes", f"{show(raw)} is not a list", "list the nodes: [{id: node-a, gpus: 8, cpus: 128}]")
        )
        return (), False
    read: list[tuple[str, NodeEntry]] = []
    total, known = 0, True
    for index, item in enumerate(raw):
        place = f"cluster.nodes[{index}]"
        entry, broken = validate_part(NodeEntry, item, place, faults)
        _check_entry(entry, broken, place, faults)
        known = known and entry.id is not None and not {"id", "count", "start", "gpus"} & broken
        total += entry.count or 1
        # An entry with faults still gives its ids where it can, so that names elsewhere are not called absent.
        if entry.id is not None:
            read.append((place, entry))
    if total > values.MAX_NODES:
        faults.append(Fault("cluster.nodes", f"{total:,} nodes", f"at most {values.MAX_NODES:,}"))
        return (), False
    return _expand(read, faults), known


def _check_entry(entry: NodeEntry, broken: frozenset[str], place: str, faults: list[Fault]) -> None:
    """What one entry alone can have wrong beyond the shape of its fields."""

    def fault(field: str, wrong: str, right: str) -> None:
        if field not in broken:
            faults.append(Fault(f"{place}.{field}", wrong, right))

    if entry.id is None:
        fault("id", "is missing", "every node needs a stable name, such as its host name")
    if entry.count is None and "count" in broken:
        pass  # whether it is a pattern cannot be said
    elif entry.count is None:
        if entry.id is not None and ("{" in entry.id or "}" in entry.id):
            fault("id", f"{entry.id!r} is a pattern without count", "add count: and the number of nodes")
        for field in ("start", "nodes_per_domain"):
            if getattr(entry, field) is not None:
                fault(field, "means something only beside count", "add count: or drop it")
        if entry.nvlink_domain is not None and ("{" in entry.nvlink_domain or "}" in entry.nvlink_domain):
            fault("nvlink_domain", f"{entry.nvlink_domain!r} is a pattern without count", "add count: and nodes_per_domain:")
    else:
        _check_counted(entry, fault)
    if "gpus" not in broken:
        check_indices(entry.unavailable_gpus, entry.gpus, f"{place}.unavailable_gpus", faults)
        for index, held in enumerate(entry.occupied or ()):
            check_indices(held.gpus, entry.gpus, f"{place}.occupied[{index}].gpus", faults)
    for index, held in enumerate(entry.occupied or ()):
        if held.plan is None:
            fault("occupied", f"entry {index} does not name its plan", "add plan: and the plan's name")
    if not {"cpus", "cpus_in_use", "reserved_cpus"} & broken:
        check_use(entry, place, faults)


def check_indices(indices: tuple[int, ...], gpus: int, place: str, faults: list[Fault]) -> None:
    """Refuse GPU indices that the node does not have."""
    outside = [index for index in indices if index >= gpus]
    if outside:
        right = f"indices are 0 to {gpus - 1}" if gpus else "the node has no GPU"
        faults.append(Fault(place, f"index {listed(map(str, outside))} is outside a node of {gpus} GPUs", right))


def check_use(node: NodeEntry | Node, place: str, faults: list[Fault]) -> None:
    """Refuse CPUs or memory in use beyond what the node has."""
    if node.cpus is not None:
        for field in ("cpus_in_use", "reserved_cpus"):
            amount = getattr(node, field)
            if amount > node.cpus:
                wrong = f"{plain_number(amount)} of {plain_number(node.cpus)} CPUs"
                faults.append(Fault(f"{place}.{field}", wrong, f"at most {plain_number(node.cpus)}"))
    if node.memory is not None and node.memory_in_use > node.memory:
        faults.append(Fault(f"{place}.memory_in_use", f"{node.memory_in_use} of {node.memory} bytes", f"at most {node.memory}"))


def _check_counted(entry: NodeEntry, fault: Any) -> None:
    for field in ("id", "nvlink_domain", *_PATTERNED[1:]):
        text = getattr(entry, field)
        if text is None or (field != "id" and "{" not in text and "}" not in text):
            continue
        try:
            Pattern.of(text)
        except Wrong as wrong:
            fault(field, wrong.wrong, wrong.right)
    patterned = entry.nvlink_domain is not None and "{" in entry.nvlink_domain
    if patterned and entry.nodes_per_domain is None:
        fault(
            "nvlink_domain",
            f"{entry.nvlink_domain!r} is numbered, but nothing says how many nodes a domain holds",
            "add nodes_per_domain:",
        )
    if entry.nodes_per_domain is not None and not patterned:
        fault("nodes_per_domain", "needs a numbered nvlink_domain", 'write nvlink_domain: "rack{}"')
    for key, value in (entry.labels or {}).items():
        if "{" in value:
            fault("labels", f"{key}: {value!r} is a pattern, labels are not numbered", "write one counted entry for each label")


def _expand(entries: list[tuple[str, NodeEntry]], faults: list[Fault]) -> tuple[Node, ...]:
    nodes: list[Node] = []
    seen: dict[str, str] = {}
    for place, entry in entries:
        built = _counted(entry) if entry.count is not None else [_node(entry)]
        twice = []
        for node in built:
            if seen.setdefault(node.id, place) is not place:
                twice.append(node.id)
        if twice:
            wrong = f"{listed(twice)} already {'is' if len(twice) == 1 else 'are'} the id of another node ({seen[twice[0]]})"
            faults.append(Fault(f"{place}.id", wrong, "ids are unique"))
        nodes.extend(built)
    return tuple(nodes)


def _node(entry: NodeEntry) -> Node:
    """The node of an entry without count."""
    return Node(
        id=entry.id or "",
        gpus=entry.gpus,
        cpus=entry.cpus,
        memory=entry.memory,
        ip=entry.ip,
        node_name=entry.node_name,
        ray_node_id=entry.ray_node_id,
        nvlink_domain=entry.nvlink_domain,
        topo_rank=entry.topo_rank,
        accelerator=entry.accelerator,
        labels=entry.labels or {},
        unavailable_gpus=entry.unavailable_gpus,
        cpus_in_use=entry.cpus_in_use,
        reserved_cpus=entry.reserved_cpus,
        memory_in_use=entry.memory_in_use,
        occupied=tuple(Occupation(held.plan or "", held.gpus, held.cpus, held.memory) for held in entry.occupied or ()),
        excluded=entry.excluded,
        head=entry.head,
    )


def _counted(entry: NodeEntry) -> list[Node]:
    """The nodes of a counted entry; patterns that are wrong are taken as they stand (they have their fault already)."""
    model = _node(entry)
    start = entry.start or 0
    texts: dict[str, Pattern] = {}
    for field in (*_PATTERNED, DOMAIN_LEVEL):
        text = getattr(entry, field)
        if text is not None and _PATTERN.fullmatch(text):
            texts[field] = Pattern.of(text)
    if "id" not in texts:
        return [model]
    size = entry.nodes_per_domain or 1
    domain = texts.get(DOMAIN_LEVEL)
    # Spelt out, and by position, because dataclasses.replace is ten times slower.
    rest = (
        model.topo_rank,
        model.accelerator,
        model.labels,
        model.unavailable_gpus,
        model.cpus_in_use,
        model.reserved_cpus,
        model.memory_in_use,
        model.occupied,
        model.excluded,
        model.head,
    )
    ip, node_name, ray_node_id = (texts.get(field) for field in _PATTERNED[1:])
    fill = texts["id"].fill
    nodes: list[Node] = []
    name = model.nvlink_domain
    for position in range(entry.count or 0):
        number = start + position
        if domain is not None and position % size == 0:
            name = domain.fill(position // size)
        nodes.append(
            Node(
                fill(number),
                model.gpus,
                model.cpus,
                model.memory,
                ip.fill(number) if ip else model.ip,
                node_name.fill(number) if node_name else model.node_name,
                ray_node_id.fill(number) if ray_node_id else model.ray_node_id,
                name,
                *rest,
            )
        )
    return nodes


def check_levels(nodes: tuple[Node, ...], levels: tuple[str, ...], faults: list[Fault]) -> None:
    """Refuse units that lie in two units of a wider level: the topology is a tree."""
    chain = (*levels, DOMAIN_LEVEL)
    for narrow in range(1, len(chain)):
        for wide in range(narrow):
            above: dict[str, str] = {}
            told: set[str] = set()
            for node in nodes:
                unit = node.nvlink_domain if chain[narrow] == DOMAIN_LEVEL else node.labels.get(chain[narrow])
                parent = node.labels.get(chain[wide])
                if unit is None or parent is None or above.setdefault(unit, parent) == parent or unit in told:
                    continue
                told.add(unit)
                both = f"{chain[wide]} {above[unit]} and in {chain[wide]} {parent} (node {node.id})"
                wrong = f"{chain[narrow]} {unit} lies in {both}"
                faults.append(Fault("cluster.nodes", wrong, f"one {chain[wide]} for the whole {chain[narrow]}"))
