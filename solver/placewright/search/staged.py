"""Large problems that need domains one by one: bounds from a relaxation, plans from a restriction, proof where they meet.

Where a rule or goal looks at single domains (groups, traffic, several segmented components), the exact model has every
pattern in every domain. Two small models often settle it: *pooled*, in which nodes of equal domains are mixed freely (every
plan satisfies it, so its optima are lower bounds), and *restricted*, which is exact but knows only the patterns that the
pooled solutions used (each of its solutions is a plan). A goal whose restricted value meets its pooled bound is proved; at the
first goal where they differ the exact model takes over. Modify this file when large problems are taken apart otherwise.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product, takewhile
from typing import Any

from placewright.goals import GOAL_BY_NAME
from placewright.index.job import Job
from placewright.index.topology import NodeClass, Topology
from placewright.model.cells import PatternCell
from placewright.model.encoding import Encoding
from placewright.model.instance import Prepared, needed_levels
from placewright.model.patterns import Pattern
from placewright.params import SolveParams
from placewright.search.fewest_nodes import solve_on_least_nodes
from placewright.search.lexicographic import MOST_HINT, Outcome, Progress, solve
from placewright.search.split_counts import crowding, deal
from placewright_models.problem import Problem

logger = logging.getLogger(__name__)

LITTLE = 0.2
"""With less than this part of the time left no larger model is begun."""
CROWDING = "crowding"
"""The last aim of the relaxation, no goal of the problem."""


def solve_staged(
    problem: Problem, params: SolveParams, topology: Topology, progress: Progress | None = None
) -> tuple[Encoding, Outcome]:
    """Solve a problem by the smallest models that prove it; returns the encoding that the outcome reads from."""
    totals = _open_totals(problem)
    if totals:
        return _try_totals(problem, params, totals)
    started = time.perf_counter()
    prepared = Prepared(problem, params, topology)
    if not _worth_pooling(prepared):
        settled = solve_on_least_nodes(prepared, params, progress)
        if settled is not None:
            return settled
        return _one_by_one(prepared, params, started, progress)
    pooled = Encoding(prepared, pooled=True)

    used: dict[NodeClass, set[Pattern]] = defaultdict(set)
    targets: dict[str, int] = {}
    for finer in (False, True):
        if finer and _left(params, started).time_limit < LITTLE * params.time_limit:
            break
        relaxation = _by_set(prepared, targets) if finer else pooled
        if relaxation is None:
            break
        relaxation.objectives[CROWDING] = crowding(relaxation)
        relaxed = _relax(relaxation, _left(params, started, share=0.6 if finer else 0.3), used, targets)
        if relaxed.status == "infeasible":
            if relaxation.within is None:
                return relaxation, relaxed
            # Not within that domain_span: nothing is known of the plans beyond.
            break
        found = _targets(relaxation, relaxed)
        if relaxation.within is not None and not _same_before(found, targets, problem, "domain_span"):
            # Goals before domain_span may be better beyond it: these are no bounds of theirs.
            break
        targets = _stronger(targets, found, problem)
        if relaxed.value is not None and len(targets) == len(problem.goals):
            dealt = deal(relaxation, relaxed.value, targets, _left(params, started, share=0.5))
            if dealt is not None:
                return dealt
    restricted = Encoding(prepared, only=used)
    first = solve(restricted, _left(params, started, share=0.5), progress, targets=targets)
    logger.info("restricted model: %s, %s of %s", first.status, first.values, targets)
    if first.status == "optimal":
        return restricted, first
    if first.value is not None and _left(params, started).time_limit < LITTLE * params.time_limit:
        # Building the exact model would take more than what is left.
        return restricted, replace(first, status="feasible")
    exact = Encoding(prepared)
    if first.value is not None:
        _go_on(exact, restricted, first)
    second = solve(exact, _left(params, started), progress)
    if second.status in ("optimal", "infeasible") or first.value is None:
        return exact, second
    if second.value is None or _worse(second, first, problem):
        first.bounds = {name: max(bound, second.bounds.get(name, bound)) for name, bound in first.bounds.items()}
        return restricted, replace(first, status="feasible")
    return exact, second


def _one_by_one(
    prepared: Prepared, params: SolveParams, started: float, progress: Progress | None
) -> tuple[Encoding, Outcome]:
    """The exact model; where only some goals make it large, the others are settled without those first.

    Their optima hold up to the first goal left out, and their plan is there if time runs out in the large model.
    """
    easier = _without_single_domains(prepared)
    if easier is None:
        encoding = Encoding(prepared)
        return encoding, solve(encoding, _left(params, started), progress)
    job = Job(easier)
    fallback, known = solve_staged(easier, _left(params, started, share=0.4), Topology(job, needed_levels(job)))
    if known.status == "infeasible":
        return fallback, known
    before = list(takewhile(lambda name: name in easier.goals, prepared.problem.goals))
    proved = _proved(known, before)
    unfinished = replace(known, status="feasible", bounds={n: known.bounds[n] for n in before if n in known.bounds})
    if len(proved) < len(before) and known.value is not None:
        # What the smaller model does not settle the larger one will not.
        return fallback, unfinished
    exact = Encoding(prepared)
    for name, value in proved.items():
        exact.hold(name, value)
    found = solve(exact, _left(params, started), progress)
    if found.value is None and found.status != "infeasible" and known.value is not None:
        return fallback, unfinished
    return exact, found


def _proved(outcome: Outcome, goals: Iterable[str]) -> dict[str, int]:
    """Values of these goals, up to the first whose bound is not its value."""
    met = takewhile(lambda name: name in outcome.values and outcome.values[name] == outcome.bounds.get(name), goals)
    return {name: outcome.values[name] for name in met}


def _without_single_domains(prepared: Prepared) -> Problem | None:
    """The problem without the goals that need domains one by one; None where there are none, or nothing would be saved."""
    problem, job, topology = prepared.problem, prepared.job, prepared.topology
    goals = tuple(name for name in problem.goals if not GOAL_BY_NAME[name].per_domain(job, topology))
    if goals == problem.goals or not goals:
        return None
    return replace(problem, goals=goals) if prepared.single_domain_patterns > prepared.params.staged_above else None


def _go_on(exact: Encoding, restricted: Encoding, first: Outcome) -> None:
    """Hold in the exact model what the restricted one proved, and start from its solution."""
    assert first.value is not None
    for name, value in _proved(first, exact.problem.goals).items():
        exact.hold(name, value)
    counted: dict[int, int] = {}
    for area, known in zip(exact.areas, restricted.areas, strict=True):
        for cell, source in zip(area.cells, known.cells, strict=True):
            held = dict(source.contents(first.value))
            if isinstance(cell, PatternCell):
                counted.update((y.index, held.get(p, 0)) for p, y in zip(cell.patterns, cell.count, strict=True))
    # The other variables are made in the same order, so the same number under a name is the same variable.
    sources = _by_name(restricted)
    for name, indices in _by_name(exact).items():
        known_indices = sources.get(name, [])
        for index, known_index in zip(indices, known_indices, strict=False):
            if index not in counted and len(indices) == len(known_indices):
                counted[index] = first.value(restricted.model.get_int_var_from_proto_index(known_index))
    counted = {index: value for index, value in counted.items() if abs(value) <= MOST_HINT}
    exact.model.proto.solution_hint.vars.extend(list(counted))
    exact.model.proto.solution_hint.values.extend(list(counted.values()))


def _by_name(encoding: Encoding) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for index, variable in enumerate(encoding.model.proto.variables):
        found[variable.name].append(index)
    return found


def _left(params: SolveParams, started: float, share: float = 1.0) -> SolveParams:
    left = max(0.01, params.time_limit - (time.perf_counter() - started))
    return params.with_(time_limit=left * share)


def _worse(second: Outcome, first: Outcome, problem: Problem) -> bool:
    """Whether the exact model's unfinished answer is worse than the restricted one's, goal by goal."""
    for name in problem.goals:
        if name not in second.values or name not in first.values:
            return name not in second.values
        if second.values[name] != first.values[name]:
            return second.values[name] > first.values[name]
    return False


def _worth_pooling(prepared: Prepared) -> bool:
    """Whether the relaxation is worth having: domains one by one, many of them equal, and many patterns."""
    params = prepared.params
    domains = [domain for domain in prepared.topology.domains if domain.known]
    classes = {domain.signature() for domain in domains}
    if len(domains) <= params.one_by_one_domains or 2 * len(classes) > len(domains):
        return False
    if not prepared.per_domain or any(found is None for found in prepared.patterns):
        return False
    return prepared.single_domain_patterns > params.staged_above


def _relax(
    pooled: Encoding, params: SolveParams, used: dict[NodeClass, set[Pattern]], floors: dict[str, int]
) -> Outcome:
    """Solve the relaxation; ``used`` takes the patterns of its solutions, ``floors`` are bounds of a weaker one."""

    def note(value: Callable[[Any], int]) -> None:
        for _, _, cell, held in pooled.contents(value):
            used[cell.node_class].update(pattern for pattern, _ in held)

    return solve(pooled, params, floors=floors, after_goal=note)


def _by_set(prepared: Prepared, targets: dict[str, int]) -> Encoding | None:
    """The stronger relaxation, where it is not too large; its bounds hold while domain_span has the value known so far."""
    finer = Encoding(prepared, pooled=True, by_set=True, within=targets.get("domain_span"))
    return finer if len(finer.model.proto.variables) <= prepared.params.by_set_below else None


def _same_before(found: dict[str, int], known: dict[str, int], problem: Problem, goal: str) -> bool:
    """Whether all goals before this one have the values known of them."""
    before = problem.goals[: problem.goals.index(goal)]
    return all(name in found and found[name] == known[name] for name in before)


def _stronger(known: dict[str, int], found: dict[str, int], problem: Problem) -> dict[str, int]:
    """The better of two lists of lower bounds, each holding only while the goals before have the values of its own list."""
    for name in problem.goals:
        if name not in found or name not in known:
            return found if len(found) >= len(known) else known
        if found[name] != known[name]:
            return found if found[name] > known[name] else known
    return known


def _targets(pooled: Encoding, relaxed: Outcome) -> dict[str, int]:
    """Lower bounds of the goals, up to the first that the relaxation left open: later ones hold only under its value."""
    targets: dict[str, int] = {}
    for name in pooled.problem.goals:
        if name not in relaxed.bounds:
            break
        targets[name] = relaxed.bounds[name]
        if relaxed.values[name] != relaxed.bounds[name]:
            break
    return targets


def _open_totals(problem: Problem) -> dict[str, range]:
    """Components with ``workers: auto`` that traffic looks at, with the totals they may come to; empty where too many."""
    if "traffic" not in problem.goals:
        return {}
    found: dict[str, range] = {}
    for name in sorted({name for entry in problem.traffic for name in entry.between}):
        component = problem.by_name[name]
        if component.auto:
            found[name] = range(sum(problem.admits(component, node) for node in problem.cluster.nodes) + 1)
    combinations = 1
    for numbers in found.values():
        combinations *= len(numbers)
    # Beyond that the goal's own refusal says what to write instead.
    return found if combinations <= MOST_TOTALS else {}


MOST_TOTALS = 256
"""Up to so many combinations of open totals are tried one after the other."""


def _try_totals(problem: Problem, params: SolveParams, totals: dict[str, range]) -> tuple[Encoding, Outcome]:
    """The proportion that traffic measures needs fixed totals, so each is tried and the best answer kept."""
    started = time.perf_counter()
    best: tuple[Encoding, Outcome] | None = None
    complete = True
    for numbers in product(*totals.values()):
        fixed = dict(zip(totals, numbers, strict=True))
        components = tuple(
            replace(c, min_workers=fixed[c.name], max_workers=fixed[c.name]) if c.name in fixed else c
            for c in problem.components
        )
        asked = replace(problem, components=components)
        job = Job(asked)
        encoding, outcome = solve_staged(asked, _left(params, started), Topology(job, needed_levels(job)))
        if outcome.status == "infeasible":
            continue
        complete = complete and outcome.status == "optimal"
        if outcome.value is not None and (best is None or _key(outcome, problem) < _key(best[1], problem)):
            best = (encoding, outcome)
    if best is None:
        none = replace(problem, goals=tuple(name for name in problem.goals if name != "traffic"))
        encoding = Encoding(Prepared(none, params))
        return encoding, Outcome("infeasible" if complete else "unknown")
    if not complete:
        best[1].status = "feasible"
        best[1].bounds = {}
    return best


def _key(outcome: Outcome, problem: Problem) -> list[float]:
    """Goal values in order; what was not searched counts as worst."""
    return [outcome.values.get(name, float("inf")) for name in problem.goals]
