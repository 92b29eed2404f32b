"""evenness: how evenly components with ``spread: even`` lie over their nodes.

Modify this file when evenness is measured otherwise than by squares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placewright.facts import Facts
from placewright.goals.goal import Goal
from placewright.model.even import squares

if TYPE_CHECKING:
    from placewright.model.encoding import Encoding


class Evenness(Goal):
    """Sum over nodes of the squared number of workers, for ``spread: even``."""

    name = "evenness"
    built_last = True

    def measure(self, facts: Facts) -> int:
        """Sums squares."""
        return sum(
            count * count
            for component in facts.problem.components
            if component.spread == "even"
            for count in facts.x[component.name].values()
        )

    def expression(self, encoding: Encoding) -> Any:
        """Squared counts of the components that are to be spread evenly."""
        return sum(
            squares(encoding, c) for c, component in enumerate(encoding.job.components) if component.spread == "even"
        )
