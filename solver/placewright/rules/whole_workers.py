"""H2: a worker lies on one node, on consecutive GPUs, exactly as many as it asks.

Modify this file when a worker may have another shape on a node.
"""

from __future__ import annotations

from collections.abc import Iterator

from placewright.facts import Facts
from placewright.rules.rule import Rule
from placewright_models.ranges import Ranges, format_ranges
from placewright_models.workload import Component


class WholeWorkers(Rule):
    """One range of ``gpus`` indices for whole workers, one GPU for a share, nothing for workers without GPU."""

    name = "whole_workers"
    code = "H2"

    def check(self, facts: Facts) -> Iterator[str]:
        """Looks at the different shapes first; only a wrong one costs a second pass over the workers."""
        for component in facts.problem.components:
            wrong = {ranges for ranges in facts.shapes[component.name] if not _fits(component, ranges)}
            if not wrong:
                continue
            asked = _asked(component)
            for index, worker in enumerate(facts.workers[component.name]):
                if worker.ranges in wrong:
                    found = f"GPUs {format_ranges(worker.ranges)}" if worker.ranges else "no GPU"
                    yield f"{component.name} worker {index} on {worker.node_id} has {found} where it needs {asked}"


def _fits(component: Component, ranges: Ranges) -> bool:
    if not component.gpus:
        return not ranges
    wanted = 1 if component.fractional else component.gpus_per_worker
    return len(ranges) == 1 and ranges[0][1] - ranges[0][0] + 1 == wanted


def _asked(component: Component) -> str:
    if not component.gpus:
        return "none"
    if component.fractional:
        return f"a share of {component.gpus} on one GPU"
    count = component.gpus_per_worker
    return "one GPU" if count == 1 else f"{count} consecutive GPUs"
