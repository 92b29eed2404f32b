"""What every goal offers.

A goal has the name that the problem file uses, a measure that computes its value from a plan's facts alone, and the
expression that the model minimises. The two share no code, and tests compare them. Modify this file when goals get another
common part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from placewright.facts import Facts
from placewright.frame.needs import Needs

if TYPE_CHECKING:
    from placewright.frame.frame import Frame
    from placewright.index.job import Job
    from placewright.index.topology import Topology


class Goal:
    """One value to minimise."""

    name: str

    def measure(self, facts: Facts) -> int:
        """The value of the goal in the plan."""
        raise NotImplementedError

    def expression(self, frame: Frame) -> Any:
        """A linear expression (or a number) of which the least value is the goal's."""
        raise NotImplementedError

    def least(self, frame: Frame) -> int:
        """A lower bound of the goal that counting gives; where the search starts."""
        return 0

    def implied(self, frame: Frame, value: int) -> Iterator[Any]:
        """Constraints that every solution in which the goal is at most ``value`` satisfies, over variables that there are."""
        return iter(())

    def needs(self, job: Job) -> Needs:
        """What ``expression`` will ask of the frame; asked of every rule and goal before any variable is made."""
        return Needs()

    def per_domain(self, job: Job, topology: Topology) -> bool:
        """Whether the goal needs domains one by one: counting equal domains together would lose something."""
        return False
