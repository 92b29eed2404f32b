"""What every goal offers.

A goal has the name that the problem file uses, a measure that computes its value from a plan's facts alone, and the
expression that the model minimises. The two share no code, and tests compare them. Modify this file when goals get another
common part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from placewright.facts import Facts

if TYPE_CHECKING:
    from placewright.index.job import Job
    from placewright.index.topology import Topology
    from placewright.model.encoding import Encoding


class Goal:
    """One value to minimise."""

    name: str
    built_last: bool = False
    """Whether the expression depends on which counts the other goals and rules asked for cell by cell."""

    def measure(self, facts: Facts) -> int:
        """The value of the goal in the plan."""
        raise NotImplementedError

    def expression(self, encoding: Encoding) -> Any:
        """A linear expression (or a number) of which the least value is the goal's."""
        raise NotImplementedError

    def least(self, encoding: Encoding) -> int:
        """A lower bound of the goal that counting gives; where the search starts."""
        return 0

    def implied(self, encoding: Encoding, value: int) -> Iterator[Any]:
        """Constraints that every solution in which the goal is at most ``value`` satisfies, over variables that there are."""
        return iter(())

    def exact(self, job: Job) -> Iterator[int]:
        """Components whose exact count on each node the goal looks at (see model/patterns.py)."""
        return iter(())

    def per_domain(self, job: Job, topology: Topology) -> bool:
        """Whether the goal needs domains one by one: counting equal domains together would lose something."""
        return False

    def levels(self, job: Job) -> Iterator[str]:
        """Levels above the NVLink domain that the goal looks at."""
        return iter(())
