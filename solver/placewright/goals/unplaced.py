"""unplaced: workers of elastic components that the plan leaves out, by priority.

Modify this file when elastic components are valued otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placewright.facts import Facts
from placewright.goals.goal import Goal

if TYPE_CHECKING:
    from placewright.frame.frame import Frame


class Unplaced(Goal):
    """Sum over elastic components of priority x (max - placed)."""

    name = "unplaced"

    def measure(self, facts: Facts) -> int:
        """A component that places all it may adds nothing; fixed counts and ``auto`` are rules, not goals."""
        total = 0
        for component in facts.problem.components:
            if component.elastic and component.max_workers is not None:
                total += component.priority * (component.max_workers - len(facts.workers[component.name]))
        return total

    def expression(self, frame: Frame) -> Any:
        """What elastic components lack of their maximum."""
        return sum(
            component.priority * ((component.max_workers or 0) - frame.placed[c])
            for c, component in enumerate(frame.job.components)
            if component.elastic and not component.auto
        )
