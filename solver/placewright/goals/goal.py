"""What every goal offers.

A goal has the name that the problem file uses and a measure that computes its value from a plan's facts alone. Modify this
file when goals get another common part.
"""

from __future__ import annotations

from typing import Protocol

from placewright.facts import Facts


class Goal(Protocol):
    """One value to minimise."""

    name: str

    def measure(self, facts: Facts) -> int:
        """The value of the goal in the plan."""
        ...
