"""A minimal set of requirements that cannot hold together, by deletion, and the questions that it takes.

Deletion filtering: drop one requirement after the other and keep it dropped wherever the rest is infeasible still. What is
left is minimal: dropping any one makes the rest satisfiable. Each question is a model of its own with fewer components, so
nothing depends on the solver's support for assumptions (which excludes objectives, presolve and parallel search, or-tools
issue 2563). Modify this file when cores are to be found otherwise.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from placewright.explain.requirements import Requirement, keep_only
from placewright.params import SolveParams
from placewright_models.problem import Problem

logger = logging.getLogger(__name__)


class Questions:
    """Asks whether reduced problems are feasible, within a time limit over all questions."""

    def __init__(self, problem: Problem, params: SolveParams) -> None:
        self.problem = problem
        self.params = params
        self.deadline = time.perf_counter() + max(params.time_limit, 1.0)
        self.undecided = 0

    def feasible(self, problem: Problem) -> bool | None:
        """Whether the problem has a placement; None where time ran out."""
        from placewright.explain.quick import impossible
        from placewright.index.job import Job
        from placewright.index.topology import Topology
        from placewright.model.encoding import Encoding
        from placewright.model.instance import Prepared
        from placewright.search.lexicographic import solve

        topology = Topology(Job(problem), problem.cluster.levels)
        if impossible(problem, topology):
            return False
        left = self.deadline - time.perf_counter()
        if left <= 0:
            return None
        params = self.params.with_(time_limit=left)
        outcome = solve(Encoding(Prepared(replace(problem, goals=()), params, topology)), params)
        if outcome.status == "infeasible":
            return False
        return None if outcome.value is None else True

    def holds(self, kept: Sequence[Requirement]) -> bool | None:
        """Whether these requirements can hold together."""
        return self.feasible(keep_only(self.problem, kept))

    def most_workers(self, problem: Problem, name: str) -> int | None:
        """The most workers of a component that fit into the problem, exact; None where time ran out."""
        from placewright.model.encoding import Encoding
        from placewright.model.instance import Prepared
        from placewright.search.lexicographic import solve

        components = tuple(
            replace(component, min_workers=0, priority=1) if component.name == name else component
            for component in problem.components
        )
        component = problem.by_name[name]
        if component.max_workers is None:
            return None
        if component.min_workers == 0:
            return component.max_workers
        relaxed = replace(problem, components=components, goals=("unplaced",))
        params = self.params.with_(time_limit=max(0.5, self.deadline - time.perf_counter()))
        outcome = solve(Encoding(Prepared(relaxed, params)), params)
        if outcome.status != "optimal" or outcome.value is None:
            return None
        return component.max_workers - outcome.values["unplaced"]


def minimal_core(questions: Questions, candidate: Sequence[Requirement]) -> list[Requirement]:
    """A minimal infeasible subset of an infeasible ``candidate``."""
    core = list(candidate)
    for requirement in candidate:
        if requirement not in core:
            continue
        rest = [other for other in core if other != requirement]
        if requirement.field == "workers":
            # Without its workers a component's other fields rarely matter: try to lose them together.
            alone = [other for other in rest if other.component != requirement.component]
            if len(alone) < len(rest) and questions.holds(alone) is False:
                core = alone
                continue
        answer = questions.holds(rest)
        if answer is False:
            core = rest
        elif answer is None:
            questions.undecided += 1
    logger.info("core of %d requirements out of %d", len(core), len(candidate))
    return core
