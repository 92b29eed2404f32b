"""Large clusters by way of relaxations: their values are bounds, their counts can be dealt out, nearby plans are no worse."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from middle import equal_file
from oracle import plain_model

from placewright.model.encoding import Encoding
from placewright.model.instance import Prepared
from placewright.params import SolveParams
from placewright.pipeline import plan
from placewright.search import neighbourhood, staged
from placewright.search.lexicographic import Search, solve
from placewright.search.split_counts import crowding, deal
from placewright_models.codec import load_problem
from placewright_models.problem import Problem

PARAMS = SolveParams(workers=1, one_by_one_domains=0)


@pytest.mark.parametrize("by_set", [False, True])
@pytest.mark.parametrize("seed", range(25))
def test_a_relaxation_is_never_above_the_optimum(seed: int, by_set: bool) -> None:
    """Goal by goal, as long as the goals before have the same value."""
    problem = load_problem(equal_file(Random(seed)))
    plain = plain_model.solve(problem)
    relaxed = solve(Encoding(Prepared(problem, PARAMS), pooled=True, by_set=by_set), PARAMS)
    if plain.status == "infeasible":
        return
    assert relaxed.status == "optimal"
    for name in problem.goals:
        assert relaxed.values[name] <= plain.goals[name]
        if relaxed.values[name] < plain.goals[name]:
            break


def test_the_relaxation_by_sets_is_the_stronger() -> None:
    """Never weaker at the first goal that tells them apart, and stronger somewhere."""
    stronger = 0
    for seed in range(60):
        problem = load_problem(equal_file(Random(seed)))
        mixed, by_set = (
            solve(Encoding(Prepared(problem, PARAMS), pooled=True, by_set=chosen), PARAMS) for chosen in (False, True)
        )
        if mixed.status != by_set.status:
            assert by_set.status == "infeasible"
            stronger += 1
            continue
        for name in problem.goals:
            if mixed.values.get(name) != by_set.values.get(name):
                assert mixed.values[name] < by_set.values[name]
                stronger += 1
                break
    assert stronger


def test_dealt_counts_are_plans_with_the_relaxed_values() -> None:
    dealt_out = 0
    for seed in range(80):
        problem = load_problem(equal_file(Random(seed)))
        pooled = Encoding(Prepared(problem, PARAMS), pooled=True)
        if not pooled.prepared.per_domain:
            continue
        pooled.objectives[staged.CROWDING] = crowding(pooled)
        relaxed = solve(pooled, PARAMS)
        if relaxed.value is None:
            continue
        goals = {name: relaxed.values[name] for name in problem.goals}
        found = deal(pooled, relaxed.value, goals, PARAMS)
        if found is None:
            continue
        dealt_out += 1
        _, outcome = found
        plain = plain_model.solve(problem)
        assert outcome.status == "optimal" and dict(outcome.values) == dict(plain.goals)
    assert dealt_out >= 10


def whole(times: int) -> Problem:
    """Eight roles on 16-node domains, with groups and traffic."""
    from benchmarks.families.eight_roles import build

    return load_problem(build(1, times=times, traffic=True, groups=True))


def test_sixteen_domains_by_way_of_the_relaxation(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    real = staged.deal
    monkeypatch.setattr(staged, "deal", lambda *given: made.append("deal") or real(*given))
    found = plan(whole(32), params=SolveParams(workers=1))
    assert made and found.status == "optimal"
    # A fourth of the 1,024-node instance: every component fills whole domains of its own, so traffic finds no partner.
    assert {goal.name: goal.value for goal in found.goals} == {
        "groups_split": 0,
        "domain_span": 36,
        "traffic": 2816,
        "node_span": 576,
        "nodes_used": 224,
    }


def uneven() -> Any:
    from benchmarks.families.uneven import build

    return build(305, 32)


def test_neighbourhoods_improve_and_repeat() -> None:
    problem = load_problem(uneven())
    ends: list[tuple[int, int]] = []
    for _ in range(2):
        encoding = Encoding(Prepared(problem, PARAMS.with_(together_ratio=0.0)))
        assert neighbourhood.is_uneven(encoding)
        search = Search(encoding, SolveParams(workers=1, neighbourhood_work=0.3), None)
        search.settle()
        search.expression = encoding.objectives["node_span"]
        search.model.minimize(search.expression)
        before = search.value(search.expression)
        search.hint()
        neighbourhood.improve(search)
        ends.append((before, search.value(search.expression)))
    assert ends[0] == ends[1]
    assert ends[0][1] < ends[0][0]


def test_nodes_without_a_domain_beside_equal_domains() -> None:
    """Several nodes that are domains of their own: counts are dealt out around them."""
    rows = [
        {"id": "r{}", "count": 12, "gpus": 4, "nvlink_domain": "rack{}", "nodes_per_domain": 3},
        {"id": "alone{}", "count": 4, "gpus": 4},
    ]
    problem = load_problem(
        {
            "cluster": {"nodes": rows},
            "components": {
                "train": {"workers": 36, "gpus": 1, "group": {"workers": 3, "within": "nvlink_domain", "mode": "preferred"}},
                "env": {"workers": 20, "gpus": 1, "span_weight": 1},
            },
            "goals": ["groups_split", "domain_span", "nodes_used"],
        }
    )
    plain = plain_model.solve(problem)
    found = plan(problem, params=SolveParams(workers=1, staged_above=0, one_by_one_domains=0))
    assert found.status == plain.status == "optimal"
    assert {goal.name: goal.value for goal in found.goals} == dict(plain.goals)


@pytest.mark.parametrize("known", range(3))
def test_bounds_of_some_goals_only(known: int) -> None:
    """A weaker relaxation may have been left at its first open goal; the stronger one goes on without."""
    problem = load_problem(equal_file(Random(2)))
    values = dict(plain_model.solve(problem).goals)
    floors = {name: values[name] for name in problem.goals[:known]}
    found = solve(Encoding(Prepared(problem, PARAMS), pooled=True, by_set=True), PARAMS, floors=floors)
    assert found.status == "optimal" and all(found.values[name] <= values[name] for name in problem.goals[:1])


def test_what_is_implied_makes_no_variables() -> None:
    """It is added to copies of the model: also where nodes are encoded one by one, and are domains of their own."""
    problem = load_problem(
        {
            "cluster": {"nodes": [{"id": "a{}", "count": 6, "gpus": 4}]},
            "components": {name: {"workers": 5, "gpus": 1, "span_weight": 1} for name in ("train", "env")},
            "goals": ["domain_span", "node_span"],
        }
    )
    for limit in (0, 1500):
        encoding = Encoding(Prepared(problem, PARAMS.with_(pattern_limit=limit)))
        before = len(encoding.model.proto.variables)
        implied = [constraint for name in problem.goals for constraint in encoding.implied(name, 4)]
        assert len(encoding.model.proto.variables) == before
        assert bool(implied) == (limit > 0)


PAIRS = [{"id": "n{}", "count": 6, "gpus": 4, "nvlink_domain": "r{}", "nodes_per_domain": 2}]
SHARES = {
    "env": {"workers": 15, "gpus": 0.5, "group": {"workers": 3, "within": "nvlink_domain", "mode": "required"}},
    "rollout": {"workers": 4, "gpus": 1},
}
TALK = [{"between": ["env", "rollout"]}]


@pytest.mark.parametrize(
    ("data", "values"),
    [
        pytest.param(
            {
                "cluster": {"nodes": [{**PAIRS[0], "gpus": 2}]},
                "components": {
                    "env": {
                        "workers": 4,
                        "gpus": 1,
                        "span_weight": 1,
                        "group": {"workers": 2, "within": "nvlink_domain", "mode": "required"},
                    },
                    "rollout": {"workers": 3, "gpus": 2, "span_weight": 1},
                },
                "traffic": TALK,
                "goals": ["traffic", "domain_span"],
            },
            {"traffic": 16, "domain_span": 5},
            id="a goal before domain_span is better beyond its bound",
        ),
        pytest.param(
            {
                "cluster": {"nodes": [{"id": "n{}", "count": 5, "gpus": 4, "nvlink_domain": "r{}", "nodes_per_domain": 1}]},
                "components": {
                    name: {
                        "workers": 6,
                        "gpus": 1,
                        "span_weight": 3,
                        "group": {"workers": 3, "within": "nvlink_domain", "mode": "preferred"},
                    }
                    for name in ("train", "ref")
                }
                | {"rollout": {"workers": {"min": 3, "max": 4}, "gpus": 2, "span_weight": 1}},
                "goals": ["unplaced", "groups_split", "domain_span"],
            },
            {"unplaced": 0, "groups_split": 1, "domain_span": 17},
            id="groups stay whole beyond the bound of domain_span",
        ),
        pytest.param(
            {
                "cluster": {"nodes": PAIRS},
                "components": SHARES,
                "traffic": TALK,
                "rules": {"same_domain": [["env"]]},
                "goals": ["traffic"],
            },
            {"traffic": 120},
            id="groups of shares have a GPU in common",
        ),
        pytest.param(
            {
                "cluster": {"nodes": PAIRS},
                "components": {**SHARES, "env": {**SHARES["env"], "span_weight": 1}},
                "traffic": TALK,
                "goals": ["domain_span", "traffic"],
            },
            {"domain_span": 1, "traffic": 120},
            id="groups of shares in one domain",
        ),
    ],
)
def test_bounds_that_once_did_not_hold(data: Any, values: dict[str, int]) -> None:
    found = plan(load_problem(data), params=SolveParams(workers=1, staged_above=0, one_by_one_domains=0))
    assert found.status == "optimal" and {goal.name: goal.value for goal in found.goals} == values


def degraded_with_traffic(racks: int) -> Any:
    """Racks of 13 to 18 nodes, some with 6 or 4 GPUs, 88 % used, env beside rollout: every rack is unlike the others."""
    rng = Random(5)
    nodes = [
        {"id": f"n{rack}.{n}", "gpus": rng.choices([8, 6, 4], [90, 6, 4])[0], "nvlink_domain": f"r{rack}"}
        for rack in range(racks)
        for n in range(rng.randint(13, 18))
    ]
    gpus = sum(node["gpus"] for node in nodes)
    components = {
        "train": {"workers": gpus * 48 // 100 // 16 * 2, "gpus": 8, "segment_size": 2},
        "rollout": {"workers": gpus * 30 // 100 // 4, "gpus": 4},
        "reward": {"workers": gpus * 10 // 100 // 2, "gpus": 2},
        "env": {"workers": gpus * 30 // 100 // 4 * 2, "gpus": 0, "cpus": 1},
    }
    return {"cluster": {"nodes": nodes}, "components": components, "traffic": [{"between": ["env", "rollout"]}]}


def test_goals_that_need_single_domains_come_after_the_others_are_settled() -> None:
    """Traffic on unlike racks: domain_span is proved without it, and held in the large model."""
    problem = load_problem(degraded_with_traffic(6))
    found = plan(problem, params=SolveParams(workers=1, time_limit=60.0))
    values = {goal.name: (goal.value, goal.bound) for goal in found.goals}
    without = plan(load_problem({**degraded_with_traffic(6), "goals": ["domain_span"]}), params=SolveParams(workers=1))
    assert values["domain_span"] == (without.goal("domain_span").value,) * 2
    assert values["traffic"] == (0, 0)


def test_the_easier_plan_is_there_when_time_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no time for the large model the plan without traffic is given, with the bounds of the goals before it."""
    real = staged.solve

    def slow(encoding: Encoding, params: SolveParams, *given: Any, **named: Any) -> Any:
        large = "traffic" in encoding.problem.goals
        return real(encoding, params.with_(time_limit=0.01) if large else params, *given, **named)

    monkeypatch.setattr(staged, "solve", slow)
    found = plan(load_problem(degraded_with_traffic(6)), params=SolveParams(workers=1, least_work=1e-9))
    bounds = {goal.name: goal.bound for goal in found.goals}
    assert found.status == "feasible" and found.solver == "cp-sat"
    assert bounds["domain_span"] == found.goal("domain_span").value and bounds["traffic"] is None


def test_first_fits_plan_says_that_time_ran_out() -> None:
    found = plan(load_problem(uneven()), params=SolveParams(workers=1, time_limit=0.01))
    assert found.status == "greedy" and "time ran out" in found.warnings[0]
