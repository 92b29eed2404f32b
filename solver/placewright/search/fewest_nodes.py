"""Jobs in which every component can lie on its fewest nodes: a small model settles them.

Where ``node_span`` and the goals before it meet their lower bounds, each hosting node is (nearly) full of its component, so
most patterns cannot occur; what is left of the model is exact for the goals after ``node_span`` too (docs/model.md, section
5). Usage: ``found = solve_on_least_nodes(prepared, params)``. Modify this file when another goal's bound drops patterns.
"""

from __future__ import annotations

import logging

from ortools.sat.python import cp_model

from placewright.index.topology import NodeClass
from placewright.model.encoding import Encoding
from placewright.model.instance import Prepared
from placewright.model.patterns import Pattern
from placewright.params import SolveParams
from placewright.search.lexicographic import Outcome, Progress, Search, solve

logger = logging.getLogger(__name__)

GOAL = "node_span"


def solve_on_least_nodes(
    prepared: Prepared, params: SolveParams, progress: Progress | None = None
) -> tuple[Encoding, Outcome] | None:
    """The optimum, where ``node_span`` and all before it meet their bounds; None where they do not, or it would save little."""
    goals = prepared.problem.goals
    only = _full_patterns(prepared) if GOAL in goals else None
    if only is None:
        return None
    encoding = Encoding(prepared, only=only)
    for name in goals[: goals.index(GOAL) + 1]:
        encoding.hold(name, encoding.least(name))
    search = Search(encoding, params, progress)
    status, _ = search.run(1, params.least_work, presolve=False)
    if status != cp_model.OPTIMAL:
        return None
    logger.info("every component fits on its fewest nodes")
    search.hint()
    return encoding, solve(encoding, params.with_(time_limit=max(0.01, search.time_left)), progress)


def _full_patterns(prepared: Prepared) -> dict[NodeClass, list[Pattern]] | None:
    """Patterns that can occur at the least node_span; None where those are more than half of all."""
    least = prepared.bounds.fewest_each("nodes")
    full: dict[NodeClass, list[Pattern]] = {}
    dropped = 0
    for node_class, found in zip(prepared.topology.classes, prepared.patterns, strict=True):
        if found is None:
            return None
        kept = [pattern for pattern in found if all(n >= most or not n for n, most in zip(pattern, least, strict=True))]
        full[node_class] = kept
        dropped += len(found) - 2 * len(kept)
    return full if dropped >= 0 else None
