"""From counts on one node to GPU indices of every worker: the decoder's node-local half.

Order of wishes (design.md H5, H7): fewest GPUs for shares, fewest ranges, most GPUs of the node used (components that may
share overlap only as far as the counts force it), then left to right in canonical order of components. Equal questions
are answered once. Modify this file when those wishes change.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from placewright.index.job import Job
from placewright.node.intervals import Effort, TooHard, lengths_by_total, search, split_shares
from placewright.node.shape import Piece, Shape, demand
from placewright.params import small_solver
from placewright_models.ranges import Range, ranges_of


class Layout(NamedTuple):
    """``workers[c]``: the ranges of each worker of component c, left to right; ``ranges[c]``: all GPUs of c there."""

    workers: dict[int, tuple[tuple[Range, ...], ...]]
    ranges: dict[int, tuple[Range, ...]]


class Arrange:
    """Lays out nodes; one instance per job, equal questions answered once."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._known: dict[tuple[Shape, tuple[int, ...]], Layout] = {}

    def __call__(self, shape: Shape, counts: tuple[int, ...]) -> Layout:
        """The layout of ``counts[c]`` workers of each component on the node.

        Raises:
            ValueError: if there is none (the encoder promised one, so this is a bug).
        """
        key = (shape, counts)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._arrange(shape, counts)
        return known

    def _arrange(self, shape: Shape, counts: tuple[int, ...]) -> Layout:
        pieces = demand(self.job, counts)
        if pieces is None:
            raise ValueError(f"no layout for counts {counts} on {shape}: colocated components differ")
        where: dict[int, list[int]] = {}
        split: dict[int, dict[int, int]] = {}
        if pieces:
            found = self._place(shape, counts, pieces)
            if found is None:
                raise ValueError(f"no layout for counts {counts} on {shape}")
            where, split = found
        return self._deal(counts, where, split)

    def _place(
        self, shape: Shape, counts: tuple[int, ...], pieces: list[Piece]
    ) -> tuple[dict[int, list[int]], dict[int, dict[int, int]]] | None:
        job = self.job
        items = [piece.item for piece in pieces]
        plain = all(job.items[i].aligned == 1 and not job.share_coupled[i] and not job.self_coupled[i] for i in items)
        if len(shape.runs) == 1:
            alone = all(job.conflicts[a] >> b & 1 for a in items for b in items if a != b)
            if alone and plain:
                return self._side_by_side(shape, counts, pieces)
            try:
                return self._by_intervals(shape, counts, pieces)
            except TooHard:
                return self._by_model(shape, counts, pieces)
        if plain and len(pieces) == 1:
            return self._single_on_runs(shape, counts, pieces[0])
        return self._by_model(shape, counts, pieces)

    def _side_by_side(
        self, shape: Shape, counts: tuple[int, ...], pieces: list[Piece]
    ) -> tuple[dict[int, list[int]], dict[int, dict[int, int]]] | None:
        """Disjoint items on a node without holes: one after the other."""
        position = shape.runs[0][0]
        where: dict[int, list[int]] = {}
        for piece in pieces:
            where[piece.item] = list(range(position, position + piece.least))
            position += piece.least
        if position > shape.runs[0][1] + 1:
            return None
        split = split_shares(self.job, counts, dict(where), list(range(shape.runs[0][0], position)))
        return None if split is None else (where, split)

    def _by_intervals(
        self, shape: Shape, counts: tuple[int, ...], pieces: list[Piece]
    ) -> tuple[dict[int, list[int]], dict[int, dict[int, int]]] | None:
        effort = Effort()
        for lengths in lengths_by_total(pieces, shape.available):
            if search(self.job, shape, counts, pieces, lengths, 0, effort) is None:
                continue
            for used in range(min(shape.available, sum(lengths)), -1, -1):
                found = search(self.job, shape, counts, pieces, lengths, used, effort)
                if found is not None:
                    placed, split = found
                    return {i: list(range(s, s + n)) for i, (s, n) in placed.items()}, split
        return None

    def _single_on_runs(
        self, shape: Shape, counts: tuple[int, ...], piece: Piece
    ) -> tuple[dict[int, list[int]], dict[int, dict[int, int]]] | None:
        """One item on a node with holes: the fewest ranges are the largest runs; leftmost among equals."""
        width = self.job.items[piece.item].width or 1
        need = piece.least // width
        rooms = [((end - start + 1) // width, start) for start, end in shape.runs]
        by_room = sorted(rooms, key=lambda room: (-room[0], room[1]))
        fewest, total = 0, 0
        for size, _ in by_room:
            if total >= need:
                break
            fewest, total = fewest + 1, total + size
        if total < need:
            return None
        # Leftmost choice of that many runs that still holds everything.
        chosen: list[tuple[int, int]] = []
        for index, (size, start) in enumerate(rooms):
            if len(chosen) == fewest:
                break
            rest = sorted((r for r, _ in rooms[index + 1 :]), reverse=True)[: fewest - len(chosen) - 1]
            if sum(r for r, _ in chosen) + size + sum(rest) >= need:
                chosen.append((size, start))
        spots: list[int] = []
        for size, start in chosen:
            take = min(size, need - len(spots) // width)
            spots.extend(range(start, start + take * width))
        split = split_shares(self.job, counts, {piece.item: spots}, spots)
        return None if split is None else ({piece.item: spots}, split)

    def _by_model(
        self, shape: Shape, counts: tuple[int, ...], pieces: list[Piece]
    ) -> tuple[dict[int, list[int]], dict[int, dict[int, int]]] | None:
        """Everything else: the GPU model, one wish after the other."""
        from ortools.sat.python import cp_model

        from placewright.node.gpu_model import GpuModel

        job = self.job
        items = [piece.item for piece in pieces]
        model = cp_model.CpModel()
        gpus = GpuModel(model, job, shape, counts, items, "node")
        spots = list(gpus.on[items[0]])
        used = {g: model.new_bool_var(f"used{g}") for g in spots}
        for g in spots:
            model.add_max_equality(used[g], [gpus.on[i][g] for i in items])
        # Left to right: each item's GPUs as early as may be, the first item counting most; small numbers, so one sum
        # of at most gpus * gpus per item is searched item by item.
        wishes: list[Any] = [
            sum(gpus.on[i][g] for i in items if not job.items[i].whole for g in spots),
            sum(gpus.rises(i) for i in items),
            -sum(used.values()),
            *(sum(position * gpus.on[i][g] for position, g in enumerate(spots)) for i in items),
        ]
        solver = small_solver()
        for wish in wishes:
            model.minimize(wish)
            if solver.solve(model) != cp_model.OPTIMAL:
                return None
            value = round(solver.objective_value)
            model.clear_objective()
            if not isinstance(wish, int):
                model.add(wish <= value)
        where = {i: [g for g in spots if solver.value(gpus.on[i][g])] for i in items}
        split = {c: {g: n for g in spots if (n := solver.value(share[g]))} for c, share in gpus.shares.items()}
        return where, split

    def _deal(
        self, counts: tuple[int, ...], where: dict[int, list[int]], split: dict[int, dict[int, int]]
    ) -> Layout:
        """Which worker of the node gets which of its component's GPUs, left to right."""
        job = self.job
        workers: dict[int, tuple[tuple[Range, ...], ...]] = {}
        ranges: dict[int, tuple[Range, ...]] = {}
        for c, count in enumerate(counts):
            if not count:
                continue
            if not job.needs_gpu[c]:
                workers[c], ranges[c] = ((),) * count, ()
                continue
            spots = where[job.item_of[c]]
            ranges[c] = ranges_of(spots)
            if job.fractional[c]:
                workers[c] = tuple(((g, g),) for g in spots for _ in range(split[c].get(g, 0)))
            else:
                width = job.width[c]
                starts = [start for low, high in ranges[c] for start in range(low, high + 1, width)]
                workers[c] = tuple(((start, start + width - 1),) for start in starts)
            if len(workers[c]) != count or any(a > b for a, b in pairwise(workers[c])):
                raise ValueError(f"layout of {job.components[c].name} does not match its count {count}")
        return Layout(workers, ranges)
