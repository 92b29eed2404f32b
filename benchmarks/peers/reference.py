"""The RLightning reference greedy, where its input language can say the problem."""

from __future__ import annotations

from benchmarks.peers.peer import CannotExpress, Found, NothingFound, Peer
from placewright_models.problem import Problem


class Reference(Peer):
    """``placewright.greedy``'s reference, to the letter."""

    name = "reference"
    what = "RLightning's greedy planner to the letter"

    def solve(self, problem: Problem, time_limit: float) -> Found:
        """Its workers, whatever rule they break."""
        from placewright.greedy.reference.plan import reference_applies, reference_workers

        if not reference_applies(problem):
            raise CannotExpress("only train, eval, env, buffer with a strategy, and nothing else")
        try:
            return Found(workers=reference_workers(problem))
        except (ValueError, RuntimeError) as error:
            raise NothingFound(str(error)) from error
