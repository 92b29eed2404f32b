"""moves: workers that are not where the previous plan had one; only with a previous plan.

Modify this file when keeping a worker's place is valued otherwise.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from placewright.facts import Facts
from placewright.goals.goal import Goal

if TYPE_CHECKING:
    from placewright.frame.frame import Frame


class Moves(Goal):
    """Sum over components of min(old, new) - size of the multiset intersection of (node, ranges)."""

    name = "moves"

    def measure(self, facts: Facts) -> int:
        """Components of one plan alone add nothing; so does the absence of a previous plan."""
        if facts.previous is None:
            return 0
        total = 0
        for name, workers in facts.workers.items():
            before = facts.previous.get(name, ())
            if not before:
                continue
            kept = Counter(workers) & Counter(before)
            total += min(len(before), len(workers)) - kept.total()
        return total

    def expression(self, frame: Frame) -> Any:
        """Not part of this version's model: ``plan`` refuses a previous plan before anything is encoded."""
        raise ValueError("the goal moves needs a previous plan, which this version does not take")
