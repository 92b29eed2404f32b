"""The plan beside what was read back, one row a worker.

Modify this file when the table should show something new.
"""

from __future__ import annotations

from dataclasses import dataclass

from placewright.apply.applied import AppliedPlan
from placewright_models.ranges import format_ranges, ranges_of

HEADER = ("component", "worker", "planned node", "planned GPUs", "ip", "found GPUs", "group", "bundle", "same")


@dataclass(frozen=True, slots=True)
class ReadbackRow:
    """One worker: what the plan says and what stands. ``same`` is whether they are equal."""

    component: str
    index: int
    node_id: str
    planned_gpus: tuple[int, ...]
    ip: str
    found_gpus: tuple[int, ...]
    group: str
    bundles: tuple[int, ...]

    @property
    def same(self) -> bool:
        """Whether the worker has exactly the planned GPUs (its node was proved when the plan was applied)."""
        return sorted(self.planned_gpus) == sorted(self.found_gpus)

    def cells(self) -> tuple[str, ...]:
        """The row as text, in the order of ``HEADER``."""
        return (
            self.component,
            str(self.index),
            self.node_id,
            format_ranges(ranges_of(self.planned_gpus)) or "-",
            self.ip,
            format_ranges(ranges_of(self.found_gpus)) or "-",
            self.group,
            format_ranges(ranges_of(self.bundles)),
            "yes" if self.same else "NO",
        )


def readback_rows(applied: AppliedPlan) -> list[ReadbackRow]:
    """All workers of an applied plan, by component and index."""
    return [
        ReadbackRow(
            worker.component,
            worker.index,
            worker.node_id,
            worker.planned_gpus,
            worker.ip,
            worker.gpu_ids,
            worker.group,
            worker.bundles,
        )
        for workers in applied.workers.values()
        for worker in workers
    ]


def readback_text(applied: AppliedPlan) -> str:
    """The table as plain text with aligned columns."""
    table = [HEADER, *(row.cells() for row in readback_rows(applied))]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEADER))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table)
