"""The cluster while first-fit fills it: what each node holds, what still fits, and a way back.

Equal questions about equal nodes are answered once, so that a cluster of many equal nodes costs one dictionary look-up per
node. When to modify: when a hard rule looks at single nodes or at pairs of components in one domain in a new way; the rules'
own hooks (``placewright.model.local``) need no change here.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from placewright.frame.needs import Needs
from placewright.greedy.first_fit.pieces import Piece
from placewright.index.job import Job
from placewright.index.topology import Topology
from placewright.model.local import Local
from placewright.rules import RULES

Counts = tuple[int, ...]


class Board:
    """Nodes by position in topological order, and the workers of each component on each.

    Attributes:
        counts: position -> workers per component.
        total: workers placed per component.
    """

    def __init__(self, job: Job) -> None:
        self.job = job
        self.local = Local(job)
        topology = Topology(job, sorted(Needs.union(rule.needs(job) for rule in RULES).levels))
        self.nodes = topology.order
        self.classes = topology.classes
        place = {
            node.id: (d, t)
            for d, domain in enumerate(topology.domains)
            for t, nodes in domain.nodes.items()
            for node in nodes
        }
        self.domain_of = [place[node.id][0] for node in self.nodes]
        self.class_of = [place[node.id][1] for node in self.nodes]
        empty = (0,) * job.count
        self.counts: list[Counts] = [empty] * len(self.nodes)
        self.total = [0] * job.count
        self._log: list[tuple[int, Counts]] = []
        self._partners = self._separate_partners()
        self._hosting: dict[int, list[int]] = {}
        self._fits: dict[tuple[int, Counts], bool] = {}
        self._largest: dict[tuple[int, Counts, Piece, int, tuple[int, int]], tuple[int, Counts] | None] = {}
        self._known_options: dict[tuple[int, Piece], Sequence[int]] = {}

    def _separate_partners(self) -> list[tuple[int, ...]]:
        """For each component those that its domains may not host."""
        partners: list[set[int]] = [set() for _ in range(self.job.count)]
        for names in self.job.problem.rules.separate_domains:
            members = self.job.names(names)
            for c in members:
                partners[c].update(other for other in members if other != c)
        return [tuple(sorted(found)) for found in partners]

    # What fits

    def may_host(self, position: int, piece: Piece) -> bool:
        """Whether the node could hold any of the piece when empty, as far as each member alone says."""
        return self._options(self.class_of[position], piece)[-1] > 0

    def largest(self, position: int, piece: Piece, most: int) -> tuple[int, Counts] | None:
        """The most blocks of the piece, up to ``most`` in all, that the node can hold beside the rest of its content.

        Returns:
            The blocks in all and the counts of the node with them; None where not one block more fits.
        """
        counts, t = self.counts[position], self.class_of[position]
        options = self._options(t, piece)
        key = (t, counts, piece, min(most, options[-1]), self._progress(piece))
        if key not in self._largest:
            self._largest[key] = self._search(t, counts, piece, options, most)
        found = self._largest[key]
        return found if found is None or self._domain_allows(position, found[1]) else None

    def exactly(self, position: int, piece: Piece, blocks: int) -> Counts | None:
        """The counts of the node with exactly so many blocks of the piece; None where that does not fit."""
        changed = self._with(self.class_of[position], self.counts[position], piece, blocks)
        return changed if changed is not None and self._domain_allows(position, changed) else None

    def least_blocks(self, position: int, piece: Piece) -> int:
        """The fewest blocks that an empty node of this kind may hold, above none."""
        return next((blocks for blocks in self._options(self.class_of[position], piece) if blocks), 1)

    def _search(
        self, t: int, counts: Counts, piece: Piece, options: Sequence[int], most: int
    ) -> tuple[int, Counts] | None:
        # What fits less fits: a layout stays one when its last workers go.
        low, high = bisect_right(options, piece.on(counts)), bisect_right(options, most) - 1
        best: tuple[int, Counts] | None = None
        middle = high
        while low <= high:
            changed = self._with(t, counts, piece, options[middle])
            if changed is not None:
                best, low = (options[middle], changed), middle + 1
            else:
                high = middle - 1
            middle = (low + high) // 2
        return best

    def _progress(self, piece: Piece) -> tuple[int, int]:
        """What the members with shares in a set depend on besides the node."""
        return (piece.placed(self.total), piece.wanted) if piece.proportional else (0, 0)

    def _options(self, t: int, piece: Piece) -> Sequence[int]:
        """Numbers of blocks that each member alone allows on a node of the class, ascending, with 0."""
        known = self._known_options.get((t, piece))
        if known is None:
            known = self._known_options[t, piece] = self._find_options(t, piece)
        return known

    def _find_options(self, t: int, piece: Piece) -> Sequence[int]:
        allowed = [self.local.counts(self.classes[t], c) for c in piece.members]
        if not piece.joint:
            return allowed[0]
        if any(len(numbers) == 1 for numbers in allowed):
            return [0]
        limit = self.classes[t].shape.available // piece.block
        return [
            blocks
            for blocks in range(limit + 1)
            if all(self._allowed(t, c, blocks * each) for c, each in zip(piece.members, piece.each, strict=True) if each)
        ]

    def _allowed(self, t: int, c: int, number: int) -> bool:
        numbers = self.local.counts(self.classes[t], c)
        place = bisect_left(numbers, number)
        return place < len(numbers) and numbers[place] == number

    def _with(self, t: int, counts: Counts, piece: Piece, blocks: int) -> Counts | None:
        changed = list(counts)
        before = piece.placed(self.total) if piece.proportional else 0
        for c, number in zip(piece.members, piece.workers(blocks, before), strict=True):
            changed[c] = number
        for follower, leader in self.local.follows:
            changed[follower] = min(1, changed[leader])
        key = (t, tuple(changed))
        known = self._fits.get(key)
        if known is None:
            known = self._fits[key] = self._decide(*key)
        return key[1] if known else None

    def _decide(self, t: int, counts: Counts) -> bool:
        node_class = self.classes[t]
        return (
            all(self._allowed(t, c, number) for c, number in enumerate(counts))
            and not any(counts[a] and counts[b] for a, b in self.local.apart(node_class))
            and self.local.resources_fit(node_class, counts)
            and self.local.fits(node_class.shape, counts)
        )

    def _domain_allows(self, position: int, counts: Counts) -> bool:
        hosting = self._hosting.get(self.domain_of[position])
        if hosting is None or not any(self._partners):
            return True
        return not any(number and hosting[other] for c, number in enumerate(counts) for other in self._partners[c])

    # Changes

    def put(self, position: int, counts: Counts) -> None:
        """Give the node this content."""
        self._log.append((position, self.counts[position]))
        self._set(position, counts)

    def _set(self, position: int, counts: Counts) -> None:
        hosting = self._hosting.setdefault(self.domain_of[position], [0] * self.job.count)
        for c, (before, after) in enumerate(zip(self.counts[position], counts, strict=True)):
            if before != after:
                self.total[c] += after - before
                hosting[c] += (after > 0) - (before > 0)
        self.counts[position] = counts

    def mark(self) -> int:
        """A point to come back to with ``undo``."""
        return len(self._log)

    def undo(self, mark: int) -> None:
        """Take back every change since the mark."""
        while len(self._log) > mark:
            self._set(*self._log.pop())

    def clear(self, piece: Piece) -> None:
        """Take the piece, and what follows it, off every node."""
        for position, counts in enumerate(self.counts):
            if any(counts[c] for c in piece.members):
                left = list(counts)
                for c in piece.members:
                    left[c] = 0
                for follower, leader in self.local.follows:
                    left[follower] = min(1, left[leader])
                self.put(position, tuple(left))

    def hosting(self, position: int) -> tuple[bool, ...]:
        """Which components the node's domain hosts, where rules keep components in separate domains."""
        hosting = self._hosting.get(self.domain_of[position]) if any(self._partners) else None
        return () if hosting is None else tuple(nodes > 0 for nodes in hosting)
