"""evenness: how evenly components with ``spread: even`` lie over their nodes.

Modify this file when evenness is measured otherwise than by squares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placewright.facts import Facts
from placewright.frame.needs import Needs
from placewright.goals.goal import Goal

if TYPE_CHECKING:
    from placewright.frame.frame import Frame
    from placewright.index.job import Job


class Evenness(Goal):
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

    def needs(self, job: Job) -> Needs:
        """Squares of those components."""
        return Needs(squares=frozenset(c for c, component in enumerate(job.components) if component.spread == "even"))

    def expression(self, frame: Frame) -> Any:
        """Squared counts of the components that are to be spread evenly."""
        return sum(
            frame.squares(c) for c, component in enumerate(frame.job.components) if component.spread == "even"
        )
