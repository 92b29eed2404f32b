"""Segments for several NeMo-RL roles at once, and whether parallel groups stay inside a segment or a domain.

Usage::

    selected, rest = select_segments(topology, {"training": (4, 16), "inference": (2, 8)})
    span = check_group_span({"tensor": 4, "pipeline": 4}, gpus_per_node=4, segment_size=4)

``select_segments`` counts segments per domain: a *pattern* says how many segments of each role a domain holds, and
CP-SAT decides how many domains of each size follow which pattern. Domains of equal size are interchangeable, so a
cluster of thousands of domains is as small a problem as one of ten.

When to modify: when roles get requirements beyond whole segments.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from placewright.compat._nemo_config import NVLINK_DOMAIN_UNKNOWN
from placewright.compat._nemo_topology import ResourceInsufficientError, Topology, known_rank, natural
from placewright.params import small_solver

logger = logging.getLogger("placewright.compat.nemo_rl")

_PATTERN_LIMIT = 20_000
_WORK_LIMIT = 60.0
"""CP-SAT's deterministic time per goal, roughly seconds."""


class SegmentRole(NamedTuple):
    """What a role asks for: ``num_nodes`` nodes in whole segments of ``segment_size`` nodes of one domain."""

    name: str
    segment_size: int
    num_nodes: int

    @property
    def segments(self) -> int:
        """Number of segments."""
        return self.num_nodes // self.segment_size


Roles = Mapping[str, Any] | Sequence[Any]


def select_segments(topology: Topology, roles: Roles) -> tuple[dict[str, list[str]], list[str]]:
    """Nodes for several roles, so that all get their segments wherever that is possible, in the fewest domains.

    ``roles``: name -> (segment_size, num_nodes), or name -> {"segment_size": ..., "num_nodes": ...}, or a sequence of
    :class:`SegmentRole`, (name, segment_size, num_nodes) or dicts with "name". A segment is ``segment_size`` nodes of
    one known domain, not necessarily adjacent ones. Minimised in this order: the number of domains that host anything;
    the sum over roles of the domains that host the role; the nodes of the domains used (small domains first, so that
    large ones stay whole). With very many ways to fill a domain, roles of one segment size are counted as one for the
    second number and dealt out largest first. Domains, and nodes in them, are filled in topological order.

    Gives the node ids by role, and all other ids in the order of ``topology``. Raises ValueError for sizes that cannot
    be right and :class:`ResourceInsufficientError`, with the nodes per domain, when there is no split.
    """
    wanted = _read_roles(roles)
    members = _domains(topology)
    placed = _solve(wanted, {domain: len(nodes) for domain, nodes in members.items()})
    selected: dict[str, list[str]] = {role.name: [] for role in wanted}
    for domain, nodes in members.items():
        rest = iter(nodes)
        for role in wanted:
            count = placed.get((domain, role.name), 0) * role.segment_size
            selected[role.name] += itertools.islice(rest, count)
    taken = {node for nodes in selected.values() for node in nodes}
    return selected, [node for node in topology if node not in taken]


def _read_roles(roles: Roles) -> list[SegmentRole]:
    """The roles in one form; raises ValueError for what cannot be right on any cluster."""
    entries = [(name, *_pair(request)) for name, request in roles.items()] if isinstance(roles, Mapping) else roles
    read: list[SegmentRole] = []
    for entry in entries:
        name, size, nodes = (entry["name"], *_pair(entry)) if isinstance(entry, Mapping) else entry
        role = SegmentRole(str(name), int(size), int(nodes))
        if role.segment_size < 1:
            raise ValueError(f"{role.name}: segment_size ({role.segment_size}) must be at least 1.")
        if role.num_nodes < 0:
            raise ValueError(f"{role.name}: num_nodes ({role.num_nodes}) must not be negative.")
        if role.num_nodes % role.segment_size:
            raise ValueError(
                f"{role.name}: num_nodes ({role.num_nodes}) must be divisible by segment_size ({role.segment_size})."
            )
        read.append(role)
    repeated = [name for name, count in Counter(role.name for role in read).items() if count > 1]
    if repeated:
        raise ValueError(f"Each role needs a name of its own; repeated: {repeated}")
    return read


def _pair(request: Any) -> tuple[Any, Any]:
    """Segment size and number of nodes of one entry."""
    if isinstance(request, Mapping):
        return request["segment_size"], request["num_nodes"]
    *_, size, nodes = request
    return size, nodes


def _domains(topology: Topology) -> dict[str, list[str]]:
    """Known domains and their nodes, both in topological order: by rank (unknown last), then name read naturally."""
    nodes = sorted(topology, key=lambda node: (known_rank(topology[node][1]), natural(node)))
    members: dict[str, list[str]] = {}
    for node in nodes:
        if topology[node][0] != NVLINK_DOMAIN_UNKNOWN:
            members.setdefault(topology[node][0], []).append(node)
    order = sorted(members, key=lambda domain: (known_rank(topology[members[domain][0]][1]), natural(domain)))
    return {domain: members[domain] for domain in order}


class _Kind(NamedTuple):
    """Roles that are counted together: one role, or all roles of one segment size."""

    size: int
    segments: int
    roles: tuple[SegmentRole, ...]


Pattern = tuple[int, ...]
"""Segments of each kind in one domain."""


def _solve(roles: Sequence[SegmentRole], sizes: Mapping[str, int]) -> dict[tuple[str, str], int]:
    """Segments by (domain, role)."""
    asked = [role for role in roles if role.segments]
    for role in asked:
        if sum(size // role.segment_size for size in sizes.values()) < role.segments:
            raise _insufficient([role], sizes, "")
    if sum(role.num_nodes for role in asked) > sum(sizes.values()):
        raise _insufficient(asked, sizes, " together")
    if not asked:
        return {}
    kinds = [_Kind(role.segment_size, role.segments, (role,)) for role in asked]
    patterns = _patterns(kinds, sizes, _PATTERN_LIMIT)
    if patterns is None:
        by_size: dict[int, list[SegmentRole]] = {}
        for role in asked:
            by_size.setdefault(role.segment_size, []).append(role)
        kinds = [_Kind(size, sum(role.segments for role in same), tuple(same)) for size, same in by_size.items()]
        patterns = _patterns(kinds, sizes, None)
        assert patterns is not None
    counts = _count_patterns(kinds, patterns, Counter(sizes.values()))
    if counts is None:
        raise _insufficient(asked, sizes, " together")
    return _deal(kinds, counts, sizes)


def _insufficient(roles: Sequence[SegmentRole], sizes: Mapping[str, int], how: str) -> ResourceInsufficientError:
    told = ", ".join(f"{role.name}: {role.segments} segments of {role.segment_size} nodes" for role in roles)
    return ResourceInsufficientError(
        f"Cannot form complete segments{how} for {told}. Nodes per domain: {dict(sizes)}. "
        f"Need {sum(role.num_nodes for role in roles)} nodes total."
    )


def _patterns(kinds: Sequence[_Kind], sizes: Mapping[str, int], limit: int | None) -> dict[int, list[Pattern]] | None:
    """Per domain size the patterns worth considering, or None where they are more than ``limit``.

    For every set of kinds only those patterns that have room for no further segment of the set: surplus segments are
    dropped afterwards, so smaller patterns add nothing.
    """
    found: dict[int, list[Pattern]] = {}
    total = 0
    for size in sorted(set(sizes.values())):
        found[size] = []
        for pattern in _maximal(kinds, size):
            found[size].append(pattern)
            total += 1
            if limit is not None and total > limit:
                return None
    return found


def _maximal(kinds: Sequence[_Kind], size: int) -> Iterator[Pattern]:
    """Patterns of a domain of ``size`` nodes to which no kind that is in the pattern can be added once more."""

    def extend(prefix: Pattern, room: int) -> Iterator[Pattern]:
        if len(prefix) == len(kinds):
            growing = any(0 < count < kind.segments and kind.size <= room for count, kind in zip(prefix, kinds, strict=True))
            if any(prefix) and not growing:
                yield prefix
            return
        kind = kinds[len(prefix)]
        most = min(kind.segments, room // kind.size)
        # Nothing comes after the last kind, so it either takes all the room there is or stays out.
        last = len(prefix) + 1 == len(kinds)
        for count in {most, 0} if last else range(most, -1, -1):
            yield from extend((*prefix, count), room - count * kind.size)

    return extend((), size)


def _count_patterns(
    kinds: Sequence[_Kind], patterns: Mapping[int, Sequence[Pattern]], domains: Mapping[int, int]
) -> dict[int, list[tuple[Pattern, int]]] | None:
    """How many domains of each size follow each pattern; None where no choice covers every kind."""
    # Imported here: everything else in this package works without the solver.
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    number: dict[tuple[int, Pattern], Any] = {}
    for size, choices in patterns.items():
        for pattern in choices:
            number[size, pattern] = model.new_int_var(0, domains[size], f"domains of {size} nodes with {pattern}")
        model.add(sum(number[size, pattern] for pattern in choices) <= domains[size])
    for index, kind in enumerate(kinds):
        model.add(sum(pattern[index] * count for (_, pattern), count in number.items()) >= kind.segments)
    goals = [
        sum(number.values()),
        sum(sum(1 for held in pattern if held) * count for (_, pattern), count in number.items()),
        sum(size * count for (size, _), count in number.items()),
    ]
    # One worker, a fixed seed and a limit in solver work, not in seconds: the same topology gives the same nodes always.
    solver = small_solver()
    solver.parameters.random_seed = 0
    solver.parameters.max_deterministic_time = _WORK_LIMIT
    best: dict[tuple[int, Pattern], int] | None = None
    for goal in goals:
        model.minimize(goal)
        status = solver.solve(model)
        if best is None and status == cp_model.INFEASIBLE:
            return None
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            if best is None or status != cp_model.UNKNOWN:
                raise RuntimeError(f"CP-SAT stopped with {solver.status_name(status)} {model.validate()}")
            break
        if status == cp_model.FEASIBLE:
            logger.warning("segment selection stopped early: the number of domains may not be the smallest")
        best = {key: solver.value(count) for key, count in number.items()}
        # Evaluated from the counts: the solver's own objective value is a float.
        model.add(goal <= solver.value(goal))
        model.clear_hints()
        for key, count in number.items():
            model.add_hint(count, best[key])
    chosen: dict[int, list[tuple[Pattern, int]]] = {}
    for (size, pattern), times in (best or {}).items():
        if times:
            chosen.setdefault(size, []).append((pattern, times))
    return chosen


def _deal(
    kinds: Sequence[_Kind], counts: Mapping[int, Sequence[tuple[Pattern, int]]], sizes: Mapping[str, int]
) -> dict[tuple[str, str], int]:
    """Give the patterns to the domains of their size in topological order, and the segments of a kind to its roles."""
    queues = {
        # Most segments of the first role first, so that each role's domains are neighbours.
        size: [pattern for pattern, count in sorted(chosen, reverse=True) for _ in range(count)]
        for size, chosen in counts.items()
    }
    pattern_of = {domain: queues[size].pop(0) for domain, size in sizes.items() if queues.get(size)}
    placed: dict[tuple[str, str], int] = {}
    for index, kind in enumerate(kinds):
        room = {domain: pattern[index] for domain, pattern in pattern_of.items() if pattern[index]}
        for role in sorted(kind.roles, key=lambda role: -role.segments):
            missing = role.segments
            while missing:
                # The domain that just holds the rest, otherwise the one that takes most of it.
                held = {domain: min(free, missing) for domain, free in room.items() if free}
                best = max(held, key=lambda domain: (held[domain], -room[domain]))
                placed[best, role.name] = placed.get((best, role.name), 0) + held[best]
                room[best] -= held[best]
                missing -= held[best]
    return placed


class GroupSpan(NamedTuple):
    """Where the parallel groups of a role lie.

    ``gpus`` per group, on at least ``nodes`` nodes. ``in_node``, ``in_segment``, ``in_domain``: whether every group lies
    inside one (None where it cannot be told). ``split``: numbers of the groups that lie in several domains. ``message``
    says the same in words.
    """

    gpus: int
    nodes: int
    in_node: bool
    in_segment: bool | None
    in_domain: bool | None
    split: tuple[int, ...]
    message: str


def check_group_span(
    parallel_sizes: int | Mapping[str, int],
    gpus_per_node: int,
    *,
    segment_size: int | None = None,
    topology: Topology | None = None,
    nodes: Sequence[str] | None = None,
) -> GroupSpan:
    """Whether groups of consecutive ranks (TP x PP x EP ..., one GPU each) lie inside a node, a segment and a domain.

    ``parallel_sizes``: the group's size, or its factors by name. ``nodes``: the role's nodes in rank order, for example
    a role's list from :func:`select_segments`; by default all known nodes of ``topology`` in topological order. Groups
    are numbered from rank 0, each node holding ``gpus_per_node`` ranks; ranks after the last full group are ignored. A
    node without a known domain is a domain of its own. Without a topology the answer for the domain is that for the
    segment. Raises ValueError for sizes below 1, KeyError for a node that the topology does not have.
    """
    factors = {"group": parallel_sizes} if isinstance(parallel_sizes, int) else dict(parallel_sizes)
    bad = [f"{name}={size}" for name, size in factors.items() if size < 1]
    bad += [] if gpus_per_node >= 1 else [f"gpus_per_node={gpus_per_node}"]
    bad += [] if segment_size is None or segment_size >= 1 else [f"segment_size={segment_size}"]
    if bad:
        raise ValueError(f"Sizes must be at least 1: {', '.join(bad)}")
    gpus = math.prod(factors.values())
    in_node = gpus_per_node % gpus == 0
    in_segment = None if segment_size is None else segment_size * gpus_per_node % gpus == 0
    split: tuple[int, ...] = ()
    if topology is None:
        in_domain = True if in_node or in_segment else None
    else:
        order = [node for members in _domains(topology).values() for node in members] if nodes is None else list(nodes)
        units: list[Hashable] = [
            topology[node][0] if topology[node][0] != NVLINK_DOMAIN_UNKNOWN else ("", node) for node in order
        ]
        split = _crossing(units, gpus, gpus_per_node)
        in_domain = not split
        if segment_size is not None and nodes is not None:
            # The last segment may end before a group would cross its border.
            pieces = [place // segment_size for place in range(len(order))]
            in_segment = not _crossing(pieces, gpus, gpus_per_node)
    span = GroupSpan(gpus, -(-gpus // gpus_per_node), in_node, in_segment, in_domain, split, "")
    return span._replace(message=_describe(span, factors, gpus_per_node, segment_size))


def _crossing(units: Sequence[Hashable], gpus: int, gpus_per_node: int) -> tuple[int, ...]:
    """Numbers of the groups that lie in several units; ``units`` says for each node, in rank order, in which it is."""
    return tuple(
        group
        for group in range(len(units) * gpus_per_node // gpus)
        if len(set(units[group * gpus // gpus_per_node : -(-(group + 1) * gpus // gpus_per_node)])) > 1
    )


def _describe(span: GroupSpan, factors: Mapping[str, int], gpus_per_node: int, segment_size: int | None) -> str:
    product = " x ".join(f"{name} {size}" for name, size in factors.items())
    told = [f"a group of {span.gpus} GPUs ({product}) needs {span.nodes} nodes of {gpus_per_node} GPUs"]
    if segment_size is not None and span.in_segment is False:
        held = segment_size * gpus_per_node
        why = "more than" if span.gpus > held else "no divisor of"
        told.append(f"{why} the {held} GPUs of a segment of {segment_size} nodes")
    if span.split:
        told.append(f"{len(span.split)} groups lie in several NVLink domains, the first is group {span.split[0]}")
    elif span.in_domain:
        told.append("every group lies in one NVLink domain")
    return "; ".join(told)
