"""The planner against the oracles: what both sides answer, in every encoding, and which rules and goals a problem speaks of.

``difference(problem)`` is empty where planner and oracle agree on the status and on every goal's value, level by level.
Used by the Hypothesis tests, the mutation tests and the long run (``python -m tests.long_run``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from oracle import brute_force, plain_model

from placewright.index.job import Job
from placewright.index.topology import Topology
from placewright.model.instance import needed_levels
from placewright.params import SolveParams
from placewright.pipeline import plan
from placewright.search.staged import MOST_TOTALS, solve_staged
from placewright_models.errors import InfeasibleProblem, InvalidProblem
from placewright_models.problem import Problem

ENCODINGS: dict[str, SolveParams] = {
    "default": SolveParams(workers=1),
    "domains by set": SolveParams(workers=1, one_by_one_domains=0, together_ratio=100.0, least_work=1e-9),
    "node by node": SolveParams(workers=1, pattern_limit=0),
    "no symmetry breaking": SolveParams(workers=1, break_symmetry=False),
    "classes apart and closed evenness": SolveParams(workers=1, merge_classes=False, most_levels=0),
    "bounds from a relaxation": SolveParams(workers=1, staged_above=0, one_by_one_domains=0),
    # So little work for the first try that each goal is asked to meet its lower bound.
    "bound first": SolveParams(workers=1, first_work=1e-9, one_by_one_domains=0, together_ratio=100.0, least_work=1e-9),
    "bound first, domains one by one": SolveParams(workers=1, first_work=1e-9, least_work=1e-9),
}
"""Every way in which the encoder can be made to state the same problem."""

MOST_STEPS = 60_000


@dataclass(frozen=True)
class Answer:
    """``optimal`` with every goal's value in order, or ``infeasible``, or ``refused``."""

    status: str
    goals: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.status} {dict(self.goals)}" if self.goals else self.status


def planned(problem: Problem, params: SolveParams) -> Answer:
    """What the planner answers. Anything but a proof of optimality or infeasibility is a status of its own.

    ``refused`` is the one thing that the planner says it cannot do: traffic of a component whose total is not fixed.
    """
    try:
        found = plan(problem, params=params)
    except InfeasibleProblem as error:
        assert error.reasons
        return Answer("infeasible")
    except InvalidProblem as error:
        assert "has no fixed total" in str(error), error
        return Answer("refused")
    assert found.status != "optimal" or all(goal.proved for goal in found.goals)
    return Answer(found.status, {goal.name: goal.value for goal in found.goals})


def expected(problem: Problem) -> tuple[Answer, str]:
    """What the oracle answers, and which oracle: brute force where the problem is small enough, else the plain model."""
    try:
        brute = brute_force.solve(problem, budget=MOST_STEPS)
        return Answer(brute.status, brute.goals), "brute force"
    except brute_force.TooLarge:
        plain = plain_model.solve(problem)
        return Answer(plain.status, plain.goals), "plain model"


def difference(problem: Problem, want: Answer, encodings: Mapping[str, SolveParams] = ENCODINGS) -> str:
    """Where the planner's answer differs from the wanted one; empty where it does not."""
    found = []
    for number, (name, params) in enumerate(encodings.items()):
        # The explanation of a refusal does not depend on the encoding: once is enough.
        got = _unexplained(problem, params) if number and want.status == "infeasible" else planned(problem, params)
        if got.status == "refused" and refusable(problem):
            continue
        if got != want or list(got.goals) != list(want.goals):
            found.append(f"{name}: planner {got}, oracle {want}")
    return "; ".join(found)


def _unexplained(problem: Problem, params: SolveParams) -> Answer:
    """What the solver alone says where the problem is expected to be infeasible."""
    job = Job(problem)
    try:
        _, outcome = solve_staged(problem, params, Topology(job, needed_levels(job)))
    except InvalidProblem:
        return planned(problem, params)
    return Answer("infeasible") if outcome.status == "infeasible" else planned(problem, params)


def refusable(problem: Problem) -> bool:
    """Traffic of components with ``workers: auto`` on so many nodes that the planner does not try every total."""
    ends = {name for entry in problem.traffic for name in entry.between}
    auto = [name for name in ends if problem.by_name[name].auto]
    return "traffic" in problem.goals and (len(problem.cluster.nodes) + 1) ** len(auto) > MOST_TOTALS


def spoken_of(problem: Problem) -> Iterator[str]:
    """The rules that the problem gives something to say, by their names in ``RULES``, with modes where there are any."""
    components, nodes, rules = problem.components, problem.cluster.nodes, problem.rules
    with_gpus = [component for component in components if component.gpus]
    if components:
        yield "all_placed"
        yield "pools"
    if any(component.elastic for component in components):
        yield "all_placed, elastic"
    if any(component.gpus >= 1 for component in components):
        yield "whole_workers"
    if any(node.unusable_gpus for node in nodes):
        yield "capacity"
    if any(len(node.runs) > 1 for node in nodes):
        yield "contiguous, holes"
    if with_gpus:
        yield "contiguous"
    if len(with_gpus) > 1:
        yield "sharing"
    if problem.sharing_pairs:
        yield "sharing, some pairs"
    if any(component.share_units is not None for component in components):
        yield "shares"
    if any(node.cpus is not None or node.memory is not None for node in nodes):
        yield "host_resources"
    for component in components:
        if component.group is not None:
            yield f"groups, {component.group.mode}"
            wide = component.group.workers * component.gpus_per_worker > problem.largest_node(component)
            if wide and component.gpus >= 1:
                yield f"groups, {component.group.mode}, whole nodes"
        if component.segment_size is not None:
            yield f"segments, {component.segment_mode}"
        if component.per_node_of is not None:
            yield "per_node_of"
        if component.nodes is not None:
            yield "node_count"
        if component.per_node is not None:
            yield "per_node"
        if component.aligned:
            yield "aligned"
        if component.accelerator or component.labels or component.node_ids is not None or component.exclude_node_ids:
            yield "node_filters"
    if any(node.head or node.excluded is not None for node in nodes):
        yield "node_filters"
    for name in ("colocate", "same_node", "same_domain", "separate_nodes", "separate_domains"):
        if getattr(rules, name):
            yield name
    if rules.strategy:
        yield f"pools, {rules.strategy}"
