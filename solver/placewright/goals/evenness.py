"""evenness: how evenly components with ``spread: even`` lie over their nodes.

Modify this file when evenness is measured otherwise than by squares.
"""

from __future__ import annotations

from placewright.facts import Facts


class Evenness:
    """Sum over nodes of the squared number of workers, for ``spread: even``."""

    name = "evenness"

    def measure(self, facts: Facts) -> int:
        """Sums squares."""
        return sum(
            count * count
            for component in facts.problem.components
            if component.spread == "even"
            for count in facts.x[component.name].values()
        )
