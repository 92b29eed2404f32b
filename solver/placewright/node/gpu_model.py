"""The layout of one node as constraints over its GPUs: exact for every rule, used where no closed form holds.

One Boolean per item and GPU index; whole blocks by their start, shares by a worker count per GPU. With the counts as
variables it constrains a node of the big model; with the counts fixed it decides or arranges one node alone.
Modify this file when a node-local GPU rule cannot be said by lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from placewright.index.job import Job
from placewright.node.conflicts import maximal_cliques
from placewright.node.shape import Shape
from placewright.params import small_solver
from placewright_models.quantities import UNITS

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


class GpuModel:
    """Variables of one node: ``on[i][g]`` item i lies on GPU g, ``shares[c][g]`` workers of fractional c there."""

    def __init__(
        self, model: cp_model.CpModel, job: Job, shape: Shape, counts: Sequence[Any], present: Sequence[int], name: str
    ) -> None:
        """Add to ``model`` that some layout exists with ``counts[c]`` workers (ints or variables) of each component.

        Args:
            present: the items that may lie here; the counts of all others must be zero already.
            name: prefix of the variables' names.
        """
        self.model = model
        self.job = job
        self.shape = shape
        self.present = list(present)
        self.on: dict[int, dict[int, Any]] = {}
        self.starts: dict[int, dict[int, Any]] = {}
        self.shares: dict[int, dict[int, Any]] = {}
        self.name = name
        for i in self.present:
            self._place(i, counts)
        self._exclude()
        self._share()
        if len(shape.runs) == 1:
            for i in self.present:
                self.limit_ranges(i, 1)

    def _place(self, i: int, counts: Sequence[Any]) -> None:
        model, job, item = self.model, self.job, self.job.items[i]
        gpus = [g for start, end in self.shape.runs for g in range(start, end + 1)]
        on = self.on[i] = {g: model.new_bool_var(f"{self.name}.item{i}.gpu{g}") for g in gpus}
        if item.whole:
            starts: dict[int, Any] = {}
            for start, end in self.shape.runs:
                for g in range(start, end - item.width + 2):
                    # A block of a colocated set holds one aligned start for each aligned member, hence for the block.
                    if g % item.aligned == 0:
                        starts[g] = model.new_bool_var(f"{self.name}.item{i}.start{g}")
            self.starts[i] = starts
            for g in gpus:
                cover = [starts[s] for s in range(g - item.width + 1, g + 1) if s in starts]
                model.add(sum(cover) == on[g])
            for c in item.whole:
                model.add(sum(starts.values()) * (item.width // job.width[c]) == counts[c])
        for c in item.fractional:
            most = job.per_gpu[c]
            shares = {g: model.new_int_var(0, most, f"{self.name}.{job.components[c].name}.gpu{g}") for g in gpus}
            self.shares[c] = shares
            for g in gpus:
                model.add(shares[g] >= on[g])
                model.add(shares[g] <= most * on[g])
            model.add(sum(shares.values()) == counts[c])

    def _exclude(self) -> None:
        for clique in maximal_cliques(tuple(self.present), self.job.conflicts):
            if len(clique) > 1:
                for g in self.on[clique[0]]:
                    self.model.add_at_most_one(self.on[i][g] for i in clique)

    def _share(self) -> None:
        givers = [i for i in self.present if self.job.items[i].gives_share]
        if not any(self.job.share_coupled[i] or self.job.self_coupled[i] for i in givers):
            return
        for g in self.on[givers[0]]:
            held = [self.job.items[i].share * self.on[i][g] for i in givers]
            held += [
                (self.job.share[c] or 0) * self.shares[c][g] for i in givers for c in self.job.items[i].fractional
            ]
            self.model.add(sum(held) <= UNITS)

    def rises(self, i: int) -> Any:
        """How many ranges item i has on the node, as an expression (bounded from below only)."""
        total: Any = 0
        for start, end in self.shape.runs:
            for g in range(start, end + 1):
                if g == start:
                    total = total + self.on[i][g]
                else:
                    rise = self.model.new_bool_var(f"{self.name}.item{i}.rise{g}")
                    self.model.add(rise >= self.on[i][g] - self.on[i][g - 1])
                    total = total + rise
        return total

    def limit_ranges(self, i: int, most: int) -> None:
        """At most so many ranges for the item (H7 on a node without holes)."""
        self.model.add(self.rises(i) <= most)


def decide(job: Job, shape: Shape, counts: Sequence[int], present: Sequence[int]) -> bool:
    """Whether these counts have a layout on the node, by a search of its own."""
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    GpuModel(model, job, shape, counts, present, "node")
    solver = small_solver()
    status = solver.solve(model)
    if status == cp_model.INFEASIBLE:
        return False
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return True
    raise RuntimeError(f"layout model: {solver.status_name(status)} {model.validate()}")
