"""The oracles against recorded optima, against each other, and against the verifier's rules and goals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement, product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from oracle import brute_force, plain_model, tiny
from oracle.handmade import placement, problem
from oracle.reading import Reading
from placewright.facts import Facts
from placewright.goals import GOAL_BY_NAME
from placewright.rules import RULES
from placewright_models.codec import load_problem
from placewright_models.plan import Worker
from placewright_models.problem import Problem

OPTIMA = [json.loads(line) for line in (Path(__file__).parents[1] / "vectors" / "optima.jsonl").read_text().splitlines()]
BUDGET = 60_000
SEEDS = 150


def answer(found: brute_force.Answer | plain_model.Answer) -> dict[str, Any]:
    """An oracle's answer in the form of the recorded ones."""
    return {"status": found.status, **({"goals": found.goals} if found.status == "optimal" else {})}


@pytest.mark.parametrize("row", range(len(OPTIMA)))
def test_plain_model_matches_recorded_optimum(row: int) -> None:
    asked = load_problem(OPTIMA[row]["problem"])
    found = plain_model.solve(asked)
    assert answer(found) == OPTIMA[row]["expect"]
    if found.status == "optimal":
        assert_verified(asked, found)


def test_brute_force_matches_recorded_optima_that_are_small_enough() -> None:
    skipped = []
    for row, recorded in enumerate(OPTIMA):
        try:
            found = brute_force.solve(load_problem(recorded["problem"]), budget=BUDGET // 3)
        except brute_force.TooLarge:
            skipped.append(row)
            continue
        assert answer(found) == recorded["expect"], row
    print(f"brute force: {len(OPTIMA) - len(skipped)} of {len(OPTIMA)} rows; too large: {skipped}")
    assert len(skipped) <= 30, skipped


@pytest.mark.parametrize("block", range(5))
def test_oracles_and_verifier_agree_on_tiny_problems(block: int) -> None:
    seen: Counter[str] = Counter()
    for seed in range(block * SEEDS // 5, (block + 1) * SEEDS // 5):
        rng = Random(seed)
        seen[compare(tiny.random_problem(rng), rng, f"seed {seed}")] += 1
    assert seen["optimal"] and seen["infeasible"], seen


@pytest.mark.slow
def test_oracles_and_verifier_agree_at_length() -> None:
    for seed in range(10_000, 14_000):
        rng = Random(seed)
        compare(tiny.random_problem(rng), rng, f"seed {seed}")


def compare(asked: Problem, rng: Random, what: str) -> str:
    """Brute force, plain model and measures must agree, without and with a previous plan."""
    try:
        brute = brute_force.solve(asked, budget=BUDGET)
        plain = plain_model.solve(asked)
    except (brute_force.TooLarge, plain_model.Undecided):
        return "skipped"
    assert answer(brute) == answer(plain), what
    if plain.status == "infeasible":
        return "infeasible"
    assert_verified(asked, plain, what=what)
    previous = shaken(plain.workers, [node.id for node in asked.cluster.nodes], rng)
    try:
        brute = brute_force.solve(asked, previous, budget=BUDGET)
    except brute_force.TooLarge:
        return "optimal"
    again = plain_model.solve(asked, previous)
    assert answer(brute) == answer(again), what
    assert_verified(asked, again, previous, what)
    return "optimal"


def shaken(workers: Mapping[str, tuple[Worker, ...]], nodes: list[str], rng: Random) -> dict[str, tuple[Worker, ...]]:
    """A previous plan near this one: some workers gone, sometimes the nodes swapped."""
    swapped = dict(zip(nodes, rng.sample(nodes, len(nodes)) if rng.random() < 0.5 else nodes, strict=True))
    return {
        name: tuple(Worker(swapped[w.node_id], w.ranges) for w in listed if rng.random() < 0.8)
        for name, listed in workers.items()
    }


def assert_verified(asked: Problem, found: plain_model.Answer, previous: Any = None, what: str = "") -> None:
    """The verifier accepts the oracle's placement and measures the oracle's goal values."""
    facts = Facts(asked, found.workers, previous)
    assert [(rule.name, text) for rule in RULES for text in rule.check(facts)] == [], what
    assert {name: GOAL_BY_NAME[name].measure(facts) for name in found.goals} == found.goals, what


# Every placement of very small problems, by the verifier's rules and by the oracle's


def test_rules_accept_exactly_the_counts_that_the_oracle_allows() -> None:
    seed = feasible = 0
    while feasible < 40:
        seed += 1
        asked = tiny.random_problem(Random(seed), most_nodes=2, most_components=2)
        by_rules = counts_by_rules(asked)
        if by_rules is None:
            continue
        assert by_rules == counts_by_oracle(asked), f"seed {seed}"
        feasible += bool(by_rules)


def places(asked: Problem, name: str) -> list[Worker]:
    """Every place of the right shape that a worker could have, allowed or not."""
    component = asked.by_name[name]
    found = []
    for node in asked.cluster.nodes:
        if component.gpus == 0:
            found.append(Worker(node.id, ()))
        width = max(1, int(component.gpus))
        if component.gpus:
            found += [Worker(node.id, ((start, start + width - 1),)) for start in range(node.gpus - width + 1)]
    return found


def counts_by_rules(asked: Problem, most: int = 4_000) -> set[tuple[tuple[int, ...], ...]] | None:
    """Count matrices of the placements that every rule accepts; None where there are too many placements."""
    choices: list[list[tuple[Worker, ...]]] = []
    total = 1
    for component in asked.components:
        spots = places(asked, component.name)
        low = component.min_workers or 0
        high = len(asked.cluster.nodes) if component.max_workers is None else component.max_workers
        listed: list[tuple[Worker, ...]] = []
        for count in range(low, high + 1):
            for workers in combinations_with_replacement(spots, count):
                listed.append(workers)
                if len(listed) * total > most:
                    return None
        choices.append(listed)
        total *= len(listed)
    names = [component.name for component in asked.components]
    found = set()
    for picked in product(*choices):
        facts = Facts(asked, dict(zip(names, ordered(asked, picked), strict=True)))
        if not any(True for rule in RULES for _ in rule.check(facts)):
            found.add(tuple(tuple(facts.x[name].get(node.id, 0) for name in names) for node in asked.cluster.nodes))
    return found


def ordered(asked: Problem, picked: tuple[tuple[Worker, ...], ...]) -> Iterator[tuple[Worker, ...]]:
    """Workers in an order that keeps the members of a group together where the counts allow it."""
    reading = Reading(asked)
    place = {node.id: n for n, node in enumerate(asked.cluster.nodes)}
    for component, workers in zip(asked.components, picked, strict=True):
        level = "cluster" if component.group is None else component.group.within
        keyed = [((reading.unit_or_self(place[w.node_id], level), reading.nodes[place[w.node_id]].gpus), w) for w in workers]
        yield tuple(worker for _, worker in sorted(keyed))


def counts_by_oracle(asked: Problem) -> set[tuple[tuple[int, ...], ...]]:
    """Count matrices that the brute-force planner's own rules allow."""
    reading = Reading(asked)
    search = brute_force.Search(reading, 10**7)
    found = set()
    for picked in product(*(search.vectors(n) for n in range(len(reading.nodes)))):
        x = [vector for vector, _ in picked]
        totals = [sum(vector[c] for vector in x) for c in range(len(reading.components))]
        bounds = [reading.bounds(c) for c in range(len(totals))]
        in_bounds = all(low <= total <= high for total, (low, high) in zip(totals, bounds, strict=True))
        if in_bounds and search.allowed(x):
            found.add(tuple(x))
    return found


# Answers worked out by hand

FOUR_GPUS = {"gpus": 4}


@pytest.mark.parametrize(
    ("asked", "goals"),
    [
        pytest.param(
            problem(
                {"a": {"gpus": 1}, "b": {"gpus": 1}},
                {"actor": {"workers": 1, "gpus": 1, "gpu_share": 0.7}, "env": {"workers": 1, "gpus": 0.25},
                 "reward": {"workers": 1, "gpus": 0.05}},
                share_gpus=[["actor", "env", "reward"]], goals=["nodes_used"],
            ),
            {"nodes_used": 1}, id="0.7 + 0.25 + 0.05 fits",
        ),
        pytest.param(
            problem(
                {"a": {"gpus": 1}, "b": {"gpus": 1}},
                {"actor": {"workers": 1, "gpus": 1, "gpu_share": 1}, "env": {"workers": 1, "gpus": 0.01}},
                share_gpus=[["actor", "env"]], goals=["nodes_used"],
            ),
            {"nodes_used": 2}, id="1.0 + 0.01 does not",
        ),
        pytest.param(
            problem(
                {"a": {"gpus": 2}},
                {"actor": {"workers": 2, "gpus": 1, "gpu_share": 0.5}, "env": {"workers": 4, "gpus": 0.18}},
                share_gpus=[["actor", "env"]], goals=["nodes_used"],
            ),
            {"nodes_used": 1}, id="two actors of 0.5 and four env of 0.18",
        ),
        pytest.param(
            problem(
                {"a": {"gpus": 6}},
                {name: {"workers": 1, "gpus": 2} for name in "pqrst"},
                # p and r, q and s, ... share; the pairs left over conflict in a cycle of five.
                share_gpus=[["p", "r"], ["q", "s"], ["r", "t"], ["s", "p"], ["t", "q"]], goals=["nodes_used"],
            ),
            {"nodes_used": 1}, id="a cycle of five conflicts needs six GPUs",
        ),
        pytest.param(
            problem(
                {"a": {"gpus": 5}},
                {name: {"workers": 1, "gpus": 2} for name in "pqrst"},
                share_gpus=[["p", "r"], ["q", "s"], ["r", "t"], ["s", "p"], ["t", "q"]], goals=["nodes_used"],
            ),
            None, id="and five are too few as ranges",
        ),
        pytest.param(
            problem(
                {f"{rack}{i}": {"gpus": 4, "nvlink_domain": rack} for rack in "xy" for i in range(6)},
                {"train": {"workers": 4, "gpus": 4, "segment_size": 2},
                 "rollout": {"workers": 32, "gpus": 1, "group": {"workers": 16, "within": "nvlink_domain"}}},
                goals=["domain_span", "node_span"],
            ),
            {"domain_span": 2, "node_span": 4}, id="two segments and two engines over two racks",
        ),
        pytest.param(
            problem(
                {"a": {"gpus": 5, "nvlink_domain": "r"}, "b": {"gpus": 5, "nvlink_domain": "r"},
                 "c": {"gpus": 5, "nvlink_domain": "s"}, "d": {"gpus": 5, "nvlink_domain": "s"}},
                {"train": {"workers": 15, "gpus": 1, "group": {"workers": 3, "within": "nvlink_domain"}}},
                goals=["node_span"],
            ),
            {"node_span": 4}, id="groups per domain, not in total (design.md section 9)",
        ),
    ],
)  # fmt: skip
def test_worked_out_by_hand(asked: Problem, goals: dict[str, int] | None) -> None:
    expected = {"status": "infeasible"} if goals is None else {"status": "optimal", "goals": goals}
    plain = plain_model.solve(asked)
    assert answer(plain) == expected
    if len(asked.cluster.nodes) <= 4:
        assert answer(brute_force.solve(asked)) == expected
    if goals is not None:
        assert_verified(asked, plain)


def test_moves_keep_what_can_stay() -> None:
    asked = problem({"a": FOUR_GPUS, "b": FOUR_GPUS}, {"train": {"workers": 4, "gpus": 1}}, goals=["node_span"])
    previous = placement(train="a:0 a:1 b:2 b:3")
    for found in (brute_force.solve(asked, previous), plain_model.solve(asked, previous)):
        assert found.goals == {"moves": 0, "node_span": 2}
