"""H1: every worker is placed, no more and no fewer than asked.

Modify this file when the meaning of a component's count changes.
"""

from __future__ import annotations

from collections.abc import Iterator

from placewright.facts import Facts
from placewright.rules.rule import Rule


class AllPlaced(Rule):
    """The plan lists exactly ``workers`` workers of each component, or between ``min`` and ``max``."""

    name = "all_placed"
    code = "H1"

    def check(self, facts: Facts) -> Iterator[str]:
        """Counts per component; names that the problem does not know. ``auto`` is counted by ``per_node_of`` (H9)."""
        for name in facts.unknown_components:
            yield f"{name} is in the plan but not a component of the problem"
        for component in facts.problem.components:
            placed = len(facts.workers[component.name])
            low, high = component.min_workers, component.max_workers
            if low is None or high is None or low <= placed <= high:
                continue
            asked = str(low) if low == high else f"between {low} and {high}"
            missing = " (the plan does not list it)" if component.name in facts.unnamed_components else ""
            yield f"{component.name} has {placed} workers placed where {asked} are asked{missing}"
