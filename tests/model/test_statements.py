"""The model says the same whatever the order of goals, under names that are unique and the same in every model of a problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations

import pytest
from ortools.sat.python import cp_model

import placewright
from placewright.goals import GOALS, Goal
from placewright.model import encoding as encoding_module
from placewright.model.encoding import Encoding
from placewright.model.instance import Prepared
from placewright.params import SolveParams
from placewright.rules import RULES
from placewright_models.codec import load_problem
from placewright_models.problem import Problem

PARAMS = SolveParams(workers=1)
ORDER = ("groups_split", "domain_span", "traffic", "node_span", "nodes_used", "evenness", "gpu_nodes_used")


def grouped(required: bool = False, domains: int = 6, goals: tuple[str, ...] = ORDER) -> Problem:
    """Engines in groups that talk to their trainers, loose helpers without GPU, evenly spread buffers."""
    nodes = [
        {"id": f"n{d}-{n}", "gpus": 8, "nvlink_domain": f"rack{d}", "cpus": 64} for d in range(domains) for n in range(4)
    ]
    return load_problem(
        {
            "cluster": {"nodes": nodes},
            "components": {
                "train": {"workers": 8 * domains, "gpus": 1},
                "engine": {
                    "workers": 9 * domains,
                    "gpus": 2,
                    "group": {"workers": 3, "within": "nvlink_domain", "mode": "required" if required else "preferred"},
                },
                "env": {"workers": 40, "cpus": 2},
                "buffer": {"workers": 10, "cpus": 4, "spread": "even"},
            },
            "traffic": [{"between": ["engine", "train"], "weight": 2}],
            "goals": list(goals),
        }
    )


def lines(encoding: Encoding) -> list[str]:
    """Variables and constraints by name, in no order."""
    proto = encoding.model.proto
    names = [variable.name for variable in proto.variables]
    found = [f"{variable.name} in {list(variable.domain)}" for variable in proto.variables]
    for constraint in proto.constraints:
        linear = constraint.linear
        terms = sorted((names[v], k) for v, k in zip(linear.vars, linear.coeffs, strict=True))
        found.append(f"{terms} in {list(linear.domain)}" if constraint.has_linear() else str(constraint))
    return sorted(found)


@pytest.mark.parametrize("required", [False, True])
@pytest.mark.parametrize("aggregated", [False, True])
def test_the_model_is_the_same_whatever_the_order_of_goals(required: bool, aggregated: bool) -> None:
    """Traffic has its cut from the groups also where it is named before groups_split."""
    said = {
        tuple(lines(Encoding(Prepared(grouped(required, goals=goals), PARAMS), pooled=aggregated)))
        for goals in (ORDER, ORDER[::-1], ("traffic", *(name for name in ORDER if name != "traffic")))
    }
    assert len(said) == 1
    (model,) = said
    assert any("traffic0.groups" in line for line in model) == aggregated


def test_rules_and_goals_may_state_in_any_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Last first, and goals before rules."""
    before = lines(Encoding(Prepared(grouped(), PARAMS), pooled=True))
    monkeypatch.setattr(encoding_module, "RULES", RULES[::-1])
    monkeypatch.setattr(encoding_module, "GOALS", GOALS[::-1])
    assert lines(Encoding(Prepared(grouped(), PARAMS), pooled=True)) == before


def test_traffic_first_is_bounded_by_the_groups_too() -> None:
    """The relaxation's bound of traffic under whole groups is the same in both orders."""
    values = []
    for goals in (("groups_split", "traffic"), ("traffic", "groups_split")):
        encoding = Encoding(Prepared(grouped(goals=goals), PARAMS), pooled=True)
        encoding.hold("groups_split", 0)
        encoding.model.minimize(encoding.objectives["traffic"])
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        assert solver.solve(encoding.model) == cp_model.OPTIMAL
        values.append(round(solver.objective_value))
    assert values[0] == values[1] > 0


def test_every_order_of_goals_is_proved() -> None:
    """Its values are the least of its own order: no order is better at its own first goals."""
    goals = ("groups_split", "domain_span", "traffic")
    found = {}
    for order in permutations(goals):
        plan = placewright.plan(grouped(domains=3, goals=order), workers=1)
        assert plan.status == "optimal"
        assert all(goal.value == goal.bound for goal in plan.goals)
        found[order] = {goal.name: goal.value for goal in plan.goals}
    for order, mine in found.items():
        for theirs in found.values():
            assert [mine[name] for name in order] <= [theirs[name] for name in order]


def problems() -> Iterator[Problem]:
    """With every goal that there is."""
    every = tuple(goal.name for goal in GOALS if goal.name != "moves")
    for required in (False, True):
        yield grouped(required, goals=every)


@pytest.mark.parametrize("limit", [1500, 1], ids=["patterns", "node by node"])
@pytest.mark.parametrize("kind", [{}, {"pooled": True}, {"pooled": True, "by_set": True}], ids=str)
def test_names_of_variables_are_unique(kind: dict[str, bool], limit: int) -> None:
    """Also where nodes are encoded one by one, which no relaxation is made of."""
    for problem in problems():
        params = PARAMS.with_(pattern_limit=limit if not kind else 1500)
        names = Counter(v.name for v in Encoding(Prepared(problem, params), **kind).model.proto.variables)  # type: ignore[arg-type]
        assert not [name for name, number in names.items() if number > 1]
        assert "" not in names


def test_names_are_the_same_in_every_process_and_restriction() -> None:
    """A restriction has some of the exact model's variables, under the same names."""
    problem = next(problems())
    prepared = Prepared(problem, PARAMS)
    whole = {v.name for v in Encoding(prepared).model.proto.variables}
    only = {
        node_class: set((found or [])[::2])
        for node_class, found in zip(prepared.topology.classes, prepared.patterns, strict=True)
    }
    some = {v.name for v in Encoding(prepared, only=only).model.proto.variables}
    assert some < whole


def test_what_was_not_declared_is_refused() -> None:
    """A rule that forgets its needs fails at once, whatever other rules declared."""
    problem = replace(grouped(), goals=("domain_span",))
    encoding = Encoding(Prepared(problem, PARAMS))
    env = encoding.job.index["env"]
    with pytest.raises(ValueError, match=r"env: declare it in Needs\.per_place"):
        encoding.workers(encoding.nodes, env)
    with pytest.raises(ValueError, match=r"env: declare it in Needs\.squares"):
        encoding.squares(env)
    with pytest.raises(ValueError, match="two variables"):
        encoding.number("twice")
        encoding.number("twice")
    assert issubclass(type(GOALS[0]), Goal)
