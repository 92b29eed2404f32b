"""unplaced: workers of elastic components that the plan leaves out, by priority.

Modify this file when elastic components are valued otherwise.
"""

from __future__ import annotations

from placewright.facts import Facts


class Unplaced:
    """Sum over elastic components of priority x (max - placed)."""

    name = "unplaced"

    def measure(self, facts: Facts) -> int:
        """A component that places all it may adds nothing; fixed counts and ``auto`` are rules, not goals."""
        total = 0
        for component in facts.problem.components:
            if component.elastic and component.max_workers is not None:
                total += component.priority * (component.max_workers - len(facts.workers[component.name]))
        return total
