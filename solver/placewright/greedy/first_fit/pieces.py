"""What first-fit places as one: a component or a colocated set, and the parties that must stay on one node or in one domain.

Usage: ``parties(job)``. A piece is counted in *blocks*: one worker of a single component, or the GPUs that one round of a
colocated set covers. When to modify: when a rule ties components together in a new way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import gcd, lcm

from placewright.index.job import Item, Job
from placewright_models.cluster import DOMAIN_LEVEL, NODE_LEVEL


class Piece:
    """One component that follows nobody, or one colocated set.

    Attributes:
        members: component indices.
        each: workers of each member in one block; 0 for members with shares in a set, which are spread in proportion.
        block: GPUs of one block in a set.
        highest: most blocks there can ever be.
        wanted: blocks aimed at now.
        aims: workers of each member aimed at now.
    """

    def __init__(self, job: Job, members: tuple[int, ...], item: Item | None) -> None:
        self.job = job
        self.members = members
        self.joint = item is not None and len(members) > 1
        self.block = (item.width or 1) if item is not None and self.joint else 1
        self.each = tuple(self._each(c) for c in members)
        self.proportional = 0 in self.each
        self.highest = max(job.components[c].max_workers or 0 for c in members)
        self.wanted = 0
        self.aims: tuple[int, ...] = ()
        self.steps = Steps(self)

    def _each(self, c: int) -> int:
        if not self.joint:
            return 1
        return 0 if self.job.fractional[c] else self.block // self.job.width[c]

    def aim(self, wanted: int, aims: tuple[int, ...]) -> None:
        """Say how many blocks and workers the next placement is for."""
        self.wanted, self.aims = wanted, aims

    def placed(self, total: Sequence[int]) -> int:
        """Blocks placed, from the workers placed; for a set of shares only, none or all of them."""
        for c, each in zip(self.members, self.each, strict=True):
            if each:
                return total[c] // each
        return self.wanted if any(total[c] for c in self.members) else 0

    def on(self, counts: Sequence[int]) -> int:
        """Blocks on a node with these counts; a set of shares only fills a node once, so that it counts as full there."""
        for c, each in zip(self.members, self.each, strict=True):
            if each:
                return counts[c] // each
        return self.highest if any(counts[c] for c in self.members) else 0

    def workers(self, blocks: int, before: int) -> list[int]:
        """Workers of each member in so many blocks on one node; ``before`` counts the blocks on other nodes."""
        return [
            blocks * each if each else aim * (before + blocks) // self.wanted - aim * before // self.wanted
            for each, aim in zip(self.each, self.aims, strict=True)
        ]

    # Targets

    def targets(self, largest: bool) -> Iterator[tuple[int, tuple[int, ...]]]:
        """(blocks, workers of each member) worth trying: the least that the counts allow, or the most first."""
        components = [self.job.components[c] for c in self.members]
        lows = [component.min_workers or 0 for component in components]
        highs = [component.max_workers or 0 for component in components]
        if not self.joint:
            yield (highs[0], (highs[0],)) if largest else (lows[0], (lows[0],))
            return
        whole = [(low, high, each) for low, high, each in zip(lows, highs, self.each, strict=True) if each]
        least = max((-(-low // each) for low, _, each in whole), default=0)
        most = min((high // each for _, high, each in whole), default=min(highs))
        choices: Sequence[int] = range(least, most + 1)
        for blocks in reversed(choices) if largest else choices:
            aims = [self._aim(c, blocks, largest) for c in self.members]
            if all(low <= aim <= high for low, aim, high in zip(lows, aims, highs, strict=True)):
                yield blocks, tuple(aims)

    def _aim(self, c: int, blocks: int, largest: bool) -> int:
        """Workers of the member on so many blocks; -1 where there is no right number."""
        component = self.job.components[c]
        each = self.each[self.members.index(c)]
        if each:
            return blocks * each
        gpus = blocks * self.block
        low = max(component.min_workers or 0, gpus)
        high = min(component.max_workers or 0, gpus * self.job.per_gpu[c])
        if low > high:
            return -1
        return high if largest else low

    @property
    def elastic(self) -> bool:
        """Whether any member may have more workers than its least number."""
        return any(self.job.components[c].elastic for c in self.members)

    # Order

    def unit_gpus(self) -> float:
        """GPUs of what must be found in one go: a segment, a group, a block, a worker."""
        job, most = self.job, 0.0
        for c in self.members:
            component = job.components[c]
            width = float(component.gpus) if job.fractional[c] else job.width[c]
            most = max(most, width, self.block if self.joint else 0)
            if component.group is not None:
                most = max(most, component.group.workers * width)
            if component.segment_size is not None:
                most = max(most, component.segment_size * job.problem.largest_node(component))
        return most

    def all_gpus(self) -> float:
        """GPUs of all its workers at their least number."""
        found = [(self.job.components[c].min_workers or 0) * float(self.job.components[c].gpus) for c in self.members]
        return max(found)


class Steps:
    """In what steps a piece may fill nodes, and the units of the topology inside which it takes those steps.

    Attributes:
        level: the level whose units hold whole steps; None where there is no such unit.
        strict: whether every step must lie inside one unit (required), or should only (preferred).
        whole: the piece takes whole nodes.
        per_node: exact workers of each member on a used node: a number or a list, by member; None where free.
        nodes: exact number of nodes, None where free.
    """

    def __init__(self, piece: Piece) -> None:
        self.piece = piece
        job = piece.job
        components = [job.components[c] for c in piece.members]
        segmented = [component for component in components if component.segment_size is not None]
        grouped = [(c, group) for c in piece.members if (group := job.components[c].group) is not None and group.workers > 1]
        self.whole = bool(segmented) or any(job.whole_node_group(c) for c, _ in grouped)
        # Groups inside one node need no unit: the node's own counts see to them.
        levels = {group.within for c, group in grouped if group.within != NODE_LEVEL or job.whole_node_group(c)}
        if segmented:
            levels.add(DOMAIN_LEVEL)
        narrow = [level for level in job.problem.cluster.all_levels if level in levels]
        self.level = narrow[-1] if narrow else None
        self.strict = any(component.segment_required for component in segmented) or any(g.required for _, g in grouped)
        self.per_node = {
            c: component.per_node for c, component in zip(piece.members, components, strict=True) if component.per_node
        }
        counts = {component.nodes for component in components if component.nodes is not None}
        counts |= {
            follower.max_workers
            for follower in job.components
            if follower.per_node_of in {component.name for component in components}
            and follower.max_workers is not None
            and not follower.elastic
        }
        self.nodes: int | None = min(counts) if counts else None
        self._groups = grouped
        self._segments = [component.segment_size for component in segmented if component.segment_size]

    def blocks_per_node(self, size: int) -> int | None:
        """Blocks that a used node of so many GPUs must hold; None where that is free, 0 where it cannot host the piece."""
        piece, job = self.piece, self.piece.job
        asked: set[int] = set()
        for c, each in zip(piece.members, piece.each, strict=True):
            number = self.per_node.get(c)
            if isinstance(number, int) and each:
                asked.add(number // each if number % each == 0 else 0)
            if self.whole and each and job.width[c]:
                gpus = each * job.width[c]
                asked.add(size // gpus if size % gpus == 0 else 0)
        if not asked:
            return None
        return asked.pop() if len(asked) == 1 else 0

    def nodes_together(self, size: int, per_node: int) -> int:
        """Nodes of so many GPUs in one step: whole segments and whole groups. 0 where there can be none."""
        together = lcm(1, *self._segments)
        for c, group in self._groups:
            each = self.piece.each[self.piece.members.index(c)]
            if self.piece.job.whole_node_group(c):
                nodes = self.piece.job.nodes_per_group(c, size)
                if nodes is None:
                    return 0
                together = lcm(together, nodes)
            elif each:
                together = lcm(together, group.workers // gcd(group.workers, per_node * each))
        return together

    @property
    def blocks_together(self) -> int:
        """Blocks in one step where nodes may hold any number."""
        steps = [
            group.workers // gcd(group.workers, each)
            for c, group in self._groups
            if (each := self.piece.each[self.piece.members.index(c)])
        ]
        return lcm(1, *steps)


@dataclass
class Party:
    """Pieces that must stay together: on one node, in one domain, or (``anywhere``) not at all."""

    kind: str
    pieces: list[Piece] = field(default_factory=list)
    parties: list[Party] = field(default_factory=list)

    def all_pieces(self) -> list[Piece]:
        """The pieces in it and in the parties inside it."""
        return [*self.pieces, *(piece for party in self.parties for piece in party.all_pieces())]

    def unit_gpus(self) -> float:
        """GPUs that must be found in one go."""
        pieces = self.all_pieces()
        if self.kind == "anywhere":
            return max(piece.unit_gpus() for piece in pieces)
        return max(sum(piece.all_gpus() for piece in pieces), *(piece.unit_gpus() for piece in pieces))


def parties(job: Job) -> list[Party]:
    """Every piece of the job, in the parties that the rules make of them."""
    leader = {c: job.index[component.per_node_of] for c, component in enumerate(job.components) if component.per_node_of}

    def root(c: int) -> int:
        seen = set()
        while c in leader and c not in seen:
            seen.add(c)
            c = leader[c]
        return c

    pieces: list[Piece] = []
    piece_of: dict[int, int] = {}
    for c in range(job.count):
        if c in piece_of:
            continue
        item = job.items[job.item_of[c]] if c in job.item_of else None
        if item is not None and len(item.members) > 1:
            members = item.members
        elif c in leader:
            continue
        else:
            members = (c,)
        piece_of.update(dict.fromkeys(members, len(pieces)))
        pieces.append(Piece(job, members, item))

    def piece_indices(names: tuple[str, ...]) -> set[int]:
        present = [c for c in job.names(names) if job.components[c].max_workers != 0]
        return {piece_of[c if c in piece_of else root(c)] for c in present}

    rules = job.problem.rules
    on_node = _joined([piece_indices(names) for names in rules.same_node])
    in_domain = _joined([*(piece_indices(names) for names in rules.same_domain), *on_node])
    domain_of = {p: min(together) for together in in_domain for p in together}
    found: dict[tuple[str, int], Party] = {}
    # Parties on one node first, then those in one domain around them, then the rest.
    alone = set(range(len(pieces)))
    for together in on_node:
        party = Party("node", [pieces[p] for p in sorted(together)])
        alone -= together
        first = domain_of[min(together)]
        if any(together == other for other in in_domain):
            found["node", first] = party
        else:
            found.setdefault(("domain", first), Party("domain")).parties.append(party)
    for p in sorted(alone):
        key = ("domain", domain_of[p]) if p in domain_of else ("anywhere", p)
        found.setdefault(key, Party(key[0])).pieces.append(pieces[p])
    return list(found.values())


def _joined(lists: Iterable[set[int]]) -> list[set[int]]:
    """Sets that overlap, merged."""
    merged: list[set[int]] = []
    for entry in lists:
        together = set(entry)
        if not together:
            continue
        for other in [other for other in merged if other & together]:
            together |= other
            merged.remove(other)
        merged.append(together)
    return merged
