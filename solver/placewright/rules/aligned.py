"""``aligned``: a worker of k whole GPUs starts at an index that is a multiple of k.

Modify this file when alignment may be to something other than the worker's own width.
"""

from __future__ import annotations

from collections.abc import Iterator

from placewright.facts import Facts
from placewright.rules.rule import Rule
from placewright_models.ranges import format_ranges


class Aligned(Rule):
    """Starts are physical indices, unavailable ones counted."""

    name = "aligned"
    code = "aligned"

    def check(self, facts: Facts) -> Iterator[str]:
        """Looks at the different shapes first; only a wrong one costs a second pass over the workers."""
        for component in facts.problem.components:
            width = component.gpus_per_worker
            if not component.aligned or width == 0:
                continue
            wrong = {ranges for ranges in facts.shapes[component.name] if ranges and ranges[0][0] % width}
            if not wrong:
                continue
            for index, worker in enumerate(facts.workers[component.name]):
                if worker.ranges in wrong:
                    yield (
                        f"{component.name} worker {index} on {worker.node_id} is on GPUs {format_ranges(worker.ranges)}, "
                        f"which do not start at a multiple of {width}"
                    )
