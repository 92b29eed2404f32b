"""First-fit: the largest unit first, on the first node in topological order that holds it, honouring every hard rule.

Usage: ``first_fit(job)``, a few seconds at most on 100,000 GPUs. It never takes back a choice but where components must stay
together on one node or in one domain, so it may find nothing where a plan exists. Elastic components get their least number
first and grow when everything has its place. When to modify: when pieces may fill nodes in a new way (``steps`` in
``pieces.py``); a rule about single nodes needs no change here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice

from placewright.decode.workers import place_workers
from placewright.facts import Facts
from placewright.greedy.first_fit.board import Board
from placewright.greedy.first_fit.pieces import Party, Piece, parties
from placewright.index.job import Job
from placewright.rules import RULES
from placewright_models.plan import Worker

_MOST_TARGETS = 32
"""How many sizes of a colocated set are tried."""


def first_fit(job: Job) -> dict[str, tuple[Worker, ...]] | None:
    """Workers of every component, or None where first-fit finds no place for all that must have one."""
    board = Board(job)
    found = parties(job)
    pieces = [piece for party in found for piece in party.all_pieces()]
    hosts = {piece: sum(board.may_host(position, piece) for position in range(len(board.nodes))) for piece in pieces}

    def largest_first(party: Party) -> tuple[float, ...]:
        return (-party.unit_gpus(), _fewest(party, hosts), -_cpus(party))

    def choosiest_first(party: Party) -> tuple[float, ...]:
        return (_fewest(party, hosts), -party.unit_gpus(), -_cpus(party))

    orders: tuple[Callable[[Party], tuple[float, ...]], ...] = (largest_first, choosiest_first)
    for order in orders:
        for grow in (True, False) if any(component.elastic for component in job.components) else (False,):
            board.undo(0)
            workers = Filling(board, order).run(found, grow)
            if workers is not None:
                return workers
    return None


def _fewest(party: Party, hosts: dict[Piece, int]) -> int:
    return min(hosts[piece] for piece in party.all_pieces())


def _cpus(party: Party) -> int:
    return max(piece.job.cpu_units[c] for piece in party.all_pieces() for c in piece.members)


class Filling:
    """One run over the board in one order of the parties."""

    def __init__(self, board: Board, order: Callable[[Party], tuple[float, ...]]) -> None:
        self.board = board
        self.job = board.job
        self.order = order
        self.scope: dict[Piece, list[int]] = {}

    def run(self, found: Sequence[Party], grow: bool) -> dict[str, tuple[Worker, ...]] | None:
        """Place everything at its least number, then grow what may; None where something finds no place."""
        everywhere = list(range(len(self.board.nodes)))
        ordered = sorted(found, key=self.order)
        if not all(self._place_party(party, everywhere) for party in ordered):
            return None
        if grow:
            for party in ordered:
                for piece in party.all_pieces():
                    if piece.elastic:
                        self._grow(piece)
        counts = {
            node.id: counts for node, counts in zip(self.board.nodes, self.board.counts, strict=True) if any(counts)
        }
        workers = place_workers(self.job, self.board.nodes, counts)
        facts = Facts(self.job.problem, workers)
        # What is right node by node may still be wrong over the cluster where rules meet in a way not thought of here.
        broken = any(True for rule in RULES for _ in rule.check(facts))
        return None if broken else workers

    # Parties

    def _place_party(self, party: Party, positions: list[int]) -> bool:
        if party.kind == "anywhere":
            return self._place_members(party, positions)
        failed: set[object] = set()
        for scope in self._scopes(party, positions):
            look = (self.board.class_of[scope[0]], self.board.counts[scope[0]], self.board.hosting(scope[0]))
            if party.kind == "node" and look in failed:
                continue
            mark = self.board.mark()
            if self._place_members(party, scope):
                return True
            self.board.undo(mark)
            failed.add(look)
        return False

    def _place_members(self, party: Party, positions: list[int]) -> bool:
        members: list[Party] = [*party.parties, *(Party("anywhere", [piece]) for piece in party.pieces)]
        if len(members) == 1 and not party.parties:
            return self._place_piece(party.pieces[0], positions)
        return all(self._place_party(member, positions) for member in sorted(members, key=self.order))

    def _scopes(self, party: Party, positions: list[int]) -> list[list[int]]:
        if party.kind == "node":
            return [[position] for position in positions]
        domains: dict[int, list[int]] = {}
        for position in positions:
            domains.setdefault(self.board.domain_of[position], []).append(position)
        return list(domains.values())

    # One piece

    def _place_piece(self, piece: Piece, positions: list[int]) -> bool:
        board = self.board
        scope = [position for position in positions if board.may_host(position, piece)]
        if not any(self.job.needs_gpu[c] for c in piece.members):
            scope.sort(key=lambda position: board.nodes[position].gpus > 0)
        self.scope[piece] = scope
        for blocks, aims in islice(piece.targets(largest=False), _MOST_TARGETS):
            piece.aim(blocks, aims)
            mark = board.mark()
            if self._fill(piece, scope, blocks) == blocks:
                return True
            board.undo(mark)
        return False

    def _grow(self, piece: Piece) -> None:
        if piece.joint:
            self._grow_set(piece)
            return
        board, (c,) = self.board, piece.members
        more = (self.job.components[c].max_workers or 0) - board.total[c]
        step = piece.steps.blocks_together
        mark = board.mark()
        grown = self._fill(piece, self.scope[piece], more, growing=True)
        if grown % step:
            board.undo(mark)
            self._fill(piece, self.scope[piece], grown // step * step, growing=True)

    def _grow_set(self, piece: Piece) -> None:
        """The largest size that fits, by bisection, placed anew."""
        board = self.board
        now = (piece.wanted, piece.aims)
        choices = [choice for choice in reversed(list(piece.targets(largest=True))) if choice[0] >= now[0]]
        low, high = 0, len(choices) - 1
        while low <= high:
            middle = (low + high + 1) // 2
            mark = board.mark()
            board.clear(piece)
            piece.aim(*choices[middle])
            if self._fill(piece, self.scope[piece], piece.wanted) == piece.wanted:
                now, low = choices[middle], middle + 1
            else:
                board.undo(mark)
                piece.aim(*now)
                high = middle - 1

    # Ways to fill nodes; each returns the blocks placed

    def _fill(self, piece: Piece, positions: list[int], blocks: int, growing: bool = False) -> int:
        steps = piece.steps
        if not blocks:
            return 0
        numbers = next((asked for asked in steps.per_node.values() if isinstance(asked, tuple)), None)
        if steps.nodes is not None and growing:
            hosts = [position for position in positions if piece.on(self.board.counts[position])]
            return self._fill_units(piece, hosts, blocks)
        if steps.whole or any(isinstance(asked, int) for asked in steps.per_node.values()):
            return self._fill_nodes(piece, positions, blocks)
        if numbers is not None:
            return self._fill_list(piece, positions, blocks)
        if steps.nodes is not None:
            return self._fill_exact_nodes(piece, positions, blocks, steps.nodes)
        return self._fill_units(piece, positions, blocks)

    def _fill_plain(self, piece: Piece, positions: list[int], blocks: int) -> int:
        board, left = self.board, blocks
        for position in positions:
            if not left:
                break
            now = piece.on(board.counts[position])
            found = board.largest(position, piece, now + left)
            if found is not None:
                board.put(position, found[1])
                left -= found[0] - now
        return blocks - left

    def _units(self, positions: list[int], level: str | None) -> list[list[int]]:
        if level is None:
            return [positions]
        cluster, nodes = self.job.problem.cluster, self.board.nodes
        units: dict[tuple[str, str], list[int]] = {}
        for position in positions:
            units.setdefault(cluster.unit_or_node(nodes[position], level), []).append(position)
        return list(units.values())

    def _fill_units(self, piece: Piece, positions: list[int], blocks: int) -> int:
        """Whole groups per unit; what is left anywhere, where groups need not lie inside one."""
        steps, left = piece.steps, blocks
        if steps.level is None or steps.blocks_together == 1:
            return self._fill_plain(piece, positions, blocks)
        for unit in self._units(positions, steps.level):
            goal = min(self._room(piece, unit, left), left) // steps.blocks_together * steps.blocks_together
            while goal > 0:
                mark = self.board.mark()
                if self._fill_plain(piece, unit, goal) == goal:
                    left -= goal
                    break
                self.board.undo(mark)
                goal -= steps.blocks_together
            if not left:
                break
        if left and not steps.strict:
            left -= self._fill_plain(piece, positions, left)
        return blocks - left

    def _room(self, piece: Piece, unit: list[int], enough: int) -> int:
        room = 0
        for position in unit:
            if room >= enough:
                break
            now = piece.on(self.board.counts[position])
            found = self.board.largest(position, piece, now + enough)
            room += 0 if found is None else found[0] - now
        return room

    def _fill_nodes(self, piece: Piece, positions: list[int], blocks: int) -> int:
        """Nodes with a number of workers that is given, in whole segments and groups per unit."""
        steps = piece.steps
        left = blocks
        for level in (steps.level,) if steps.strict or steps.level is None else (steps.level, None):
            for unit in self._units(positions, level):
                if not left:
                    return blocks
                left -= self._fill_unit_nodes(piece, unit, left)
        return blocks - left

    def _fill_unit_nodes(self, piece: Piece, unit: list[int], blocks: int) -> int:
        board, left = self.board, blocks
        sizes: dict[int, list[int]] = {}
        for position in unit:
            sizes.setdefault(board.nodes[position].gpus, []).append(position)
        for size in sorted(sizes, reverse=True):
            per_node = piece.steps.blocks_per_node(size)
            together = piece.steps.nodes_together(size, per_node) if per_node else 0
            if not per_node or not together:
                continue
            most = left // per_node // together * together
            free: list[int] = []
            for position in sizes[size]:
                if len(free) == most:
                    break
                if not piece.on(board.counts[position]) and board.exactly(position, piece, per_node) is not None:
                    free.append(position)
            for position in free[: len(free) // together * together]:
                counts = board.exactly(position, piece, per_node)
                if counts is not None:
                    board.put(position, counts)
                    left -= per_node
        return blocks - left

    def _fill_list(self, piece: Piece, positions: list[int], blocks: int) -> int:
        """One node for each number of a list."""
        steps = piece.steps
        numbers: list[int] = []
        for c, each in zip(piece.members, piece.each, strict=True):
            asked = steps.per_node.get(c)
            if isinstance(asked, tuple) and each:
                numbers = [number // each for number in sorted(asked, reverse=True)]
        split = steps.strict and any(number % steps.blocks_together for number in numbers)
        for unit in self._units(positions, steps.level) if split else [positions]:
            mark = self.board.mark()
            if self._take_numbers(piece, unit, numbers):
                return sum(numbers)
            self.board.undo(mark)
        return 0

    def _take_numbers(self, piece: Piece, positions: list[int], numbers: list[int]) -> bool:
        last, at = 0, 0
        for number in numbers:
            at = at if number == last else 0
            last = number
            while at < len(positions):
                position = positions[at]
                at += 1
                counts = None if piece.on(self.board.counts[position]) else self.board.exactly(position, piece, number)
                if counts is not None:
                    self.board.put(position, counts)
                    break
            else:
                return False
        return True

    def _fill_exact_nodes(self, piece: Piece, positions: list[int], blocks: int, nodes: int) -> int:
        """Exactly so many nodes, the roomiest ones, filled one after the other with at least the least on each."""
        steps = piece.steps
        tries: list[tuple[list[int], int]] = [(positions, steps.blocks_together if steps.strict and steps.level else 1)]
        if steps.strict and steps.level is not None:
            tries = [*((unit, 1) for unit in self._units(positions, steps.level)), *tries]
        for unit, step in tries:
            mark = self.board.mark()
            if self._spread(piece, unit, blocks, nodes, step):
                return blocks
            self.board.undo(mark)
        return 0

    def _spread(self, piece: Piece, positions: list[int], blocks: int, nodes: int, step: int) -> bool:
        board = self.board
        rooms: list[tuple[int, int]] = []
        for position in positions:
            found = board.largest(position, piece, blocks)
            if found is not None and found[0] >= step:
                rooms.append((found[0] // step * step, position))
        chosen = sorted(sorted(rooms, key=lambda room: -room[0])[:nodes], key=lambda room: room[1])
        if len(chosen) < nodes or sum(room for room, _ in chosen) < blocks:
            return False
        least = [max(step, board.least_blocks(position, piece)) for _, position in chosen]
        left = blocks
        for index, (_, position) in enumerate(chosen):
            found = board.largest(position, piece, left - sum(least[index + 1 :]))
            number = 0 if found is None else found[0] // step * step
            counts = board.exactly(position, piece, number) if number else None
            if counts is None:
                return False
            board.put(position, counts)
            left -= number
        return left == 0
