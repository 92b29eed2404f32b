"""First-fit, largest unit first, honouring every rule: placewright's own greedy."""

from __future__ import annotations

from benchmarks.peers.peer import Found, NothingFound, Peer
from placewright_models.problem import Problem


class FirstFit(Peer):
    """``placewright.greedy.first_fit.placing``."""

    name = "first-fit"
    what = "first-fit in topological order, largest unit first, every hard rule honoured (solver='greedy')"

    def solve(self, problem: Problem, time_limit: float) -> Found:
        """Its workers."""
        from placewright.greedy.first_fit.placing import first_fit
        from placewright.index.job import Job

        workers = first_fit(Job(problem))
        if workers is None:
            raise NothingFound("first-fit found no plan")
        return Found(workers=dict(workers))
