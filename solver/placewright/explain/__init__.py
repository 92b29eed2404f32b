"""Why not: an infeasible problem answered with a minimal set of requirements, in numbers (design.md section 8).

Usage: ``raise explain(problem, params)`` after the solver proved infeasibility; ``quick_reasons(problem)`` before anything is
encoded, raising at once where counting alone decides. Modify this file when the order of the steps changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from placewright.explain.core import Questions, minimal_core
from placewright.explain.quick import impossible
from placewright.explain.requirements import Requirement, all_requirements
from placewright.explain.sentences import sentences
from placewright.params import SolveParams
from placewright_models.errors import InfeasibleProblem
from placewright_models.problem import Problem

if TYPE_CHECKING:
    from placewright.index.topology import Topology

__all__ = ["explain", "quick_reasons"]


def quick_reasons(problem: Problem, params: SolveParams, topology: Topology | None = None) -> None:
    """Raise where counting alone shows that there is no placement.

    Raises:
        InfeasibleProblem: with a minimal set of reasons.
    """
    found = impossible(problem, topology)
    if found:
        raise explain(problem, params, found)


def explain(problem: Problem, params: SolveParams, candidate: Sequence[Requirement] = ()) -> InfeasibleProblem:
    """The reasons why an infeasible problem has no placement.

    Args:
        candidate: requirements known to clash; all of the problem's where nothing better is known.
    """
    questions = Questions(problem, params)
    core = minimal_core(questions, list(candidate) or all_requirements(problem))
    note = ""
    if questions.undecided:
        note = f"time ran out on {questions.undecided} questions: the set of reasons may not be minimal"
    return InfeasibleProblem(sentences(questions, core), note)
