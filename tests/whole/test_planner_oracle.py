"""The planner against the oracles on random problems: status and every goal's value, level by level, in every encoding.

A few hundred problems here; ``python -m tests.long_run`` does the same for thousands and counts what it saw.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from differential import ENCODINGS, Answer, difference, expected, planned, refusable, spoken_of
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from long_run import Log, draw, one
from middle import equal_file, middle_file, traffic_file, uneven_file
from oracle import plain_model
from oracle.tiny import random_file
from strategies import problems

from placewright.goals import GOALS
from placewright.model import blocks, cells
from placewright.rules import RULES
from placewright_models.codec import load_problem
from placewright_models.errors import InvalidProblem

TINY = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@TINY
@given(st.randoms(use_true_random=False))
def test_tiny_problems(rng: Random) -> None:
    try:
        problem = load_problem(random_file(rng))
    except InvalidProblem:
        assume(False)
        return
    want, _ = expected(problem)
    assert difference(problem, want) == ""


@settings(TINY, max_examples=80)
@given(problems(max_nodes=3, max_components=3, max_workers=4))
def test_problems_over_every_field(data: dict[str, object]) -> None:
    problem = load_problem(data)
    want, _ = expected(problem)
    assert difference(problem, want) == ""


@pytest.mark.parametrize("seed", [2, 3, 4, 6, 9, 12, 15, 18, 25, 34])
def test_middle_sizes(seed: int) -> None:
    problem = load_problem(middle_file(Random(seed)))
    plain = plain_model.solve(problem)
    assert difference(problem, Answer(plain.status, plain.goals)) == ""


@pytest.mark.parametrize("seed", range(15))
def test_equal_domains(seed: int) -> None:
    problem = load_problem(equal_file(Random(seed)))
    plain = plain_model.solve(problem)
    assert difference(problem, Answer(plain.status, plain.goals)) == ""


@pytest.mark.parametrize("seed", range(25))
def test_uneven_domains(seed: int) -> None:
    problem = load_problem(uneven_file(Random(seed)))
    plain = plain_model.solve(problem)
    assert difference(problem, Answer(plain.status, plain.goals)) == ""


# The last ones were once called optimal with the bounds of a relaxation that did not hold.
@pytest.mark.parametrize("seed", [*range(40), 65, 75, 124, 144])
def test_groups_and_traffic_before_and_after_domain_span(seed: int) -> None:
    problem = load_problem(traffic_file(Random(seed)))
    plain = plain_model.solve(problem)
    assert difference(problem, Answer(plain.status, plain.goals)) == ""


def test_every_encoding_is_really_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Patterns and single nodes, domains one by one, together, and mixed for bounds."""
    made: Counter[str] = Counter()
    for kind in (
        blocks.OneDomain,
        blocks.DomainsBySet,
        blocks.PooledDomains,
        blocks.SingleNodes,
        cells.PatternCell,
        cells.NodeCell,
    ):
        original = kind.__init__

        def counted(self: Any, *arguments: Any, original: Any = original, name: str = kind.__name__, **named: Any) -> None:
            made[name] += 1
            original(self, *arguments, **named)

        monkeypatch.setattr(kind, "__init__", counted)
    for seed in range(8):
        problem = load_problem(equal_file(Random(seed)))
        for params in ENCODINGS.values():
            planned(problem, params)
    assert set(made) == {"OneDomain", "DomainsBySet", "PooledDomains", "SingleNodes", "PatternCell", "NodeCell"}


def test_the_generators_reach_every_rule_and_goal() -> None:
    """Every rule has something to say in some of the problems drawn above, and every goal is asked for."""
    rules: Counter[str] = Counter()
    goals: Counter[str] = Counter()
    for seed in range(1200):
        problem = draw(Random(seed))
        rules.update({rule.partition(",")[0] for rule in spoken_of(problem)})
        goals.update(problem.goals)
    assert {rule.name for rule in RULES} == set(rules)
    assert {goal.name for goal in GOALS} - set(goals) == {"moves"}, "moves is a goal only with a previous plan"
    assert min(goals.values()) > 100
    assert min(rules.values()) >= 20, rules


def test_long_run_counts_and_repeats() -> None:
    first, second = Log(), Log()
    for seed in range(12):
        one(seed, first)
        one(seed, second)
    assert first.status == second.status and first.rules == second.rules and first.goals == second.goals
    both = Log()
    both.add(first)
    both.add(second)
    assert both.status.total() == 24 and both.rules.keys() == first.rules.keys()
    assert first.differences == []
    assert sum(first.status.values()) == 12
    assert "| status | problems |" in first.to_markdown()


def test_the_comparison_can_fail() -> None:
    """A wrong value and a wrong status are both differences, named with the encoding."""
    problem = load_problem(
        {
            "cluster": {"nodes": [{"id": "a", "gpus": 1}]},
            "components": {"train": {"workers": 1, "gpus": 1}},
            "goals": ["nodes_used"],
        }
    )
    assert difference(problem, Answer("optimal", {"nodes_used": 1})) == ""
    assert difference(problem, Answer("optimal", {"nodes_used": 2})).count("planner optimal {'nodes_used': 1}") == len(
        ENCODINGS
    )
    assert "default: planner optimal" in difference(problem, Answer("infeasible"))


def test_what_the_planner_refuses_is_only_traffic_with_too_many_totals_to_try() -> None:
    data = {
        "cluster": {"nodes": [{"id": "a{}", "count": 300, "gpus": 2}]},
        "components": {"train": {"workers": 1, "gpus": 1}, "buffer": {"workers": "auto", "per_node_of": "train"}},
        "traffic": [{"between": ["train", "buffer"]}],
    }
    problem = load_problem(data)
    assert refusable(problem)
    assert planned(problem, ENCODINGS["default"]).status == "refused"
    assert not refusable(load_problem({**data, "goals": ["node_span"]}))
    few = load_problem({**data, "cluster": {"nodes": [{"id": "a", "gpus": 2}]}})
    assert not refusable(few)
    assert planned(few, ENCODINGS["default"]).status == "optimal"
