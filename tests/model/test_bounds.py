"""What counting says, against plans: every optimal plan keeps it, and it is what makes small models exact."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from middle import equal_file, uneven_file
from oracle import plain_model

from placewright.facts import Facts
from placewright.frame.frame import Place
from placewright.model.blocks import DomainsBySet
from placewright.model.encoding import Encoding
from placewright.model.instance import Prepared
from placewright.params import SolveParams
from placewright.pipeline import plan
from placewright.search import staged
from placewright.search.fewest_nodes import solve_on_least_nodes
from placewright_models.codec import load_problem
from placewright_models.errors import InfeasibleProblem
from placewright_models.plan import Plan
from placewright_models.problem import Problem

PARAMS = SolveParams(workers=1)


def drawn(seed: int) -> Problem:
    return load_problem((uneven_file if seed % 2 else equal_file)(Random(seed)))


def placed(problem: Problem) -> Plan | None:
    try:
        return plan(problem, params=PARAMS)
    except InfeasibleProblem:
        return None


def plans() -> Iterator[tuple[Problem, Plan]]:
    """Problems that have a plan, with one."""
    for seed in range(120):
        problem = drawn(seed)
        found = placed(problem)
        if found is not None:
            yield problem, found


def span(problem: Problem, held: dict[str, dict[object, int]]) -> int:
    """Places per component, by their span_weight."""
    return sum(component.span_weight * len(held[component.name]) for component in problem.components)


def places(found: Plan, level: Place) -> dict[str, dict[object, int]]:
    """Per component its workers by node or domain, read from the plan alone."""
    facts = Facts(found.problem, found.workers)
    held: dict[str, dict[object, int]] = {}
    for name, counts in facts.x.items():
        held[name] = Counter()
        for node_id, count in counts.items():
            held[name][node_id if level == "nodes" else facts.domains[node_id]] += count
    return held


@pytest.mark.parametrize("level", ["nodes", "domains"])
def test_every_plan_keeps_the_bounds(level: Place) -> None:
    """Fewest places, least span, and how many workers a hosting place then has at least (Lemma 5)."""
    said = 0
    for problem, found in plans():
        bounds = Prepared(problem, PARAMS).bounds
        held = places(found, level)
        value = span(problem, held)
        assert bounds.least_span(level) <= value
        each = bounds.fewest_each(level, value)
        for c, component in enumerate(problem.components):
            hosting = held[component.name]
            assert len(hosting) >= bounds.alone[level][c]
            assert all(count >= each[c] for count in hosting.values())
            said += each[c] > 1 and len(hosting) > 0
    assert said > 20


def test_sets_that_plans_have_are_possible() -> None:
    """Never is a set of components called impossible that lies in one domain of a plan; some others are."""
    refused = 0
    for problem, found in plans():
        prepared = Prepared(problem, PARAMS)
        held = places(found, "domains")
        each = prepared.bounds.fewest_each("domains", span(problem, held))
        every = frozenset(range(prepared.job.count))
        for domain in prepared.topology.domains:
            nodes = {node.id for nodes in domain.nodes.values() for node in nodes}
            here = {
                c
                for c, component in enumerate(problem.components)
                if any(worker.node_id in nodes for worker in found.workers[component.name])
            }
            assert prepared.bounds.may_lie_together(here, domain, each)
            refused += not prepared.bounds.may_lie_together(every, domain, each)
    assert refused > 20


def test_followers_need_as_many_places_as_their_leaders() -> None:
    problem = load_problem(
        {
            "cluster": {"nodes": [{"id": "n{}", "count": 6, "gpus": 4, "nvlink_domain": "r{}", "nodes_per_domain": 2}]},
            "components": {
                "train": {"workers": 12, "gpus": 1, "span_weight": 1},
                "buffer": {"workers": "auto", "per_node_of": "train", "span_weight": 1},
                "log": {"workers": "auto", "per_node_of": "buffer", "span_weight": 1},
            },
        }
    )
    bounds = Prepared(problem, PARAMS).bounds
    assert bounds.alone == {"nodes": [3, 3, 3], "domains": [2, 2, 2]}


def test_small_models_settle_jobs_on_their_least_nodes() -> None:
    """Where it answers at all it answers what the plain model does, with fewer patterns."""
    settled = 0
    for seed in range(250):
        problem = drawn(seed)
        if "node_span" not in problem.goals:
            continue
        prepared = Prepared(problem, PARAMS)
        found = solve_on_least_nodes(prepared, PARAMS)
        if found is None:
            continue
        encoding, outcome = found
        plain = plain_model.solve(problem)
        assert outcome.status == plain.status == "optimal"
        assert dict(outcome.values) == dict(plain.goals)
        kept, every = (sum(len(found or ()) for found in some) for some in (encoding.patterns, prepared.patterns))
        assert 2 * kept <= every
        settled += 1
    assert settled >= 8


def test_unequal_domains_share_their_patterns() -> None:
    """64 domains of which hardly two are alike are one area, with fewer variables than counted one by one."""
    from benchmarks.families.uneven import build

    problem = load_problem(build(305, 64))
    together, one_by_one = (
        Encoding(Prepared(problem, PARAMS.with_(together_ratio=ratio))) for ratio in (2.0, 0.0)
    )
    (area,) = together.areas
    assert isinstance(area, DomainsBySet) and len(area.domains) == 64
    assert len({id(domains) for part in area.parts for _, domains in part.choices}) > 40
    assert len(one_by_one.areas) == 64
    assert len(together.model.proto.variables) < len(one_by_one.model.proto.variables)


def eight_roles(times: int) -> dict[str, Any]:
    """All eight components with the default kinds and goals, on ``times`` / 2 domains of 16 nodes."""
    from benchmarks.families.eight_roles import build

    data = build(1, times=times, traffic=True, groups=True)
    del data["goals"]
    for component in data["components"].values():
        component.pop("span_weight")
    return data


def test_groups_and_traffic_over_eight_domains(monkeypatch: pytest.MonkeyPatch) -> None:
    """The relaxation by sets sees that groups come whole per domain, and what is dealt out meets its bounds.

    Rollout fills pairs of nodes, so reward is never on its nodes: 64 without a partner there. Three domains hold 16 pairs
    altogether beside the 64 reward workers, at best 5, 5 and 6: 24 rollout workers beside 16 of reward in one.
    """
    made: list[bool] = []
    real = staged.deal

    def deal(relaxation: Encoding, *given: Any) -> Any:
        found = real(relaxation, *given)
        made.append(found is not None and relaxation.by_set)
        return found

    monkeypatch.setattr(staged, "deal", deal)
    found = plan(load_problem(eight_roles(16)), params=PARAMS)
    assert found.status == "optimal" and made[-1]
    assert {goal.name: goal.value for goal in found.goals}["traffic"] == 64 + 8


def test_the_exact_model_goes_on_from_the_restricted_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was proved is held, and the solution that was found is a solution of the larger model as it stands."""
    from placewright.search.lexicographic import Search

    problem = load_problem(eight_roles(16))
    params = PARAMS.with_(by_set_below=0, deal_work=1e-9, time_limit=60.0)
    taken: list[bool] = []
    real = staged._go_on

    def go_on(exact: Encoding, restricted: Encoding, first: Any) -> None:
        real(exact, restricted, first)
        before = [name for name, expression in exact.objectives.items() if isinstance(expression, int)]
        search = Search(exact, params, None)
        search.run(1, fixed=True, model=exact.model.clone())
        taken.append(search.best is not None and "domain_span" in before)
        raise KeyboardInterrupt

    monkeypatch.setattr(staged, "_go_on", go_on)
    with pytest.raises(KeyboardInterrupt):
        plan(problem, params=params)
    assert taken == [True]
