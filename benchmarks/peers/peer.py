"""What every peer offers: a name, and an answer as workers or as counts.

A peer that only chooses nodes returns counts (node id -> workers of each component); GPU indices are then dealt out by the
package's own layout, as a device plugin would. Modify this file when peers need another way to say that they have no answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from placewright.index.job import Job
from placewright_models.plan import Worker
from placewright_models.problem import Problem

Counts = dict[str, tuple[int, ...]]


class CannotExpress(Exception):
    """The peer's input language has no words for the problem."""


class NothingFound(Exception):
    """The peer found no plan; ``proved`` says that it proved there is none."""

    def __init__(self, text: str, proved: bool = False) -> None:
        super().__init__(text)
        self.proved = proved


class TooLarge(Exception):
    """Not tried: the model would not fit the machine or the time."""


@dataclass
class Found:
    """A peer's answer, and what it proved about its goals (exact methods only)."""

    workers: dict[str, tuple[Worker, ...]] | None = None
    counts: Counts | None = None
    status: str = "greedy"
    bounds: dict[str, int | None] = field(default_factory=dict)


class Peer:
    """One way to plan."""

    name: str
    what: str

    def solve(self, problem: Problem, time_limit: float) -> Found:
        """An answer.

        Raises:
            CannotExpress, NothingFound, TooLarge: as they say.
        """
        raise NotImplementedError


def workers_of(problem: Problem, found: Found) -> dict[str, tuple[Worker, ...]]:
    """The answer as workers; ValueError where counts have no layout on their node."""
    from placewright.decode.workers import place_workers

    if found.workers is not None:
        return found.workers
    return place_workers(Job(problem), problem.cluster.topological_order(), found.counts or {})
