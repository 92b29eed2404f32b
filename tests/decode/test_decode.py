"""From counts to a plan: topological order, worker indices, pools, idle, warnings: what has one right answer."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from oracle.handmade import problem

from placewright.decode.workers import pack, spread_evenly
from placewright.params import SolveParams
from placewright.pipeline import plan
from placewright_models.plan import Plan
from placewright_models.problem import Problem


def planned(asked: Problem) -> Plan:
    return plan(asked, params=SolveParams(workers=1))


def nodes_of(made: Plan, name: str) -> list[str]:
    """The component's nodes in the order of its worker indices, neighbours once."""
    found: list[str] = []
    for worker in made.workers[name]:
        if not found or found[-1] != worker.node_id:
            found.append(worker.node_id)
    return found


def full(*names: str, **fields: Any) -> dict[str, dict[str, Any]]:
    return {name: {"gpus": 2, **fields} for name in names}


# Topological order


@pytest.mark.parametrize(
    ("nodes", "order"),
    [
        (full("node7", "node66", "node8", "node70"), ["node7", "node8", "node66", "node70"]),
        (full("10.0.0.66", "10.0.0.7", "10.0.0.10", "10.0.0.2"), ["10.0.0.2", "10.0.0.7", "10.0.0.10", "10.0.0.66"]),
        ({"node7": {"gpus": 2, "topo_rank": 9}, "node66": {"gpus": 2, "topo_rank": 2}}, ["node66", "node7"]),
        ({"a": {"gpus": 2}, "b": {"gpus": 2, "topo_rank": 50}}, ["b", "a"]),
        # A domain stands where its least rank stands, and is not torn apart.
        (
            {
                "a": {"gpus": 2, "nvlink_domain": "s", "topo_rank": 3},
                "b": {"gpus": 2, "nvlink_domain": "r", "topo_rank": 2},
                "c": {"gpus": 2, "nvlink_domain": "s", "topo_rank": 1},
            },
            ["c", "a", "b"],
        ),
        (
            {"a": {"gpus": 2, "nvlink_domain": "rack10"}, "b": {"gpus": 2, "nvlink_domain": "rack9"}},
            ["b", "a"],
        ),
    ],
)
def test_workers_follow_topological_order_whatever_the_input_order(nodes: dict[str, Any], order: list[str]) -> None:
    names = list(nodes)
    for seed in range(4):
        Random(seed).shuffle(names)
        asked = problem({name: nodes[name] for name in names}, {"train": {"workers": 2 * len(nodes), "gpus": 1}})
        made = planned(asked)
        assert nodes_of(made, "train") == order
        assert [worker.ranges for worker in made.workers["train"]] == [((0, 0),), ((1, 1),)] * len(nodes)
        assert [node.node_id for node in made.pools[0].nodes] == order


def test_levels_nest_and_the_widest_comes_first() -> None:
    nodes = {
        f"{zone}{block}{rack}{i}": {
            "gpus": 1,
            "nvlink_domain": f"{zone}{block}{rack}",
            "labels": {"zone": zone, "block": f"{zone}{block}"},
        }
        for i in "12"
        for rack in "vw"
        for block in "kl"
        for zone in "ab"
    }
    made = planned(problem(nodes, {"train": {"workers": 16, "gpus": 1}}, levels=["zone", "block"]))
    assert nodes_of(made, "train") == sorted(nodes)


def test_equal_nodes_and_domains_are_filled_in_topological_order() -> None:
    nodes = {f"n{i}": {"gpus": 4, "nvlink_domain": f"r{i // 2}"} for i in range(8)}
    made = planned(problem(nodes, {"train": {"workers": 6, "gpus": 1}, "rollout": {"workers": 2, "gpus": 4}}))
    assert nodes_of(made, "train") == ["n0", "n1"]
    assert nodes_of(made, "rollout") == ["n2", "n3"]
    together = plan(
        problem(nodes, {"train": {"workers": 6, "gpus": 1}, "rollout": {"workers": 2, "gpus": 4}}),
        params=SolveParams(workers=1, one_by_one_domains=0),
    )
    assert nodes_of(together, "train") == ["n0", "n1"]
    assert together.workers == made.workers


# Worker indices


def test_whole_groups_come_first_and_split_ones_follow() -> None:
    nodes = {
        "a": {"gpus": 3, "nvlink_domain": "r"},
        "b": {"gpus": 4, "nvlink_domain": "s"},
        "c": {"gpus": 1, "nvlink_domain": "t"},
    }
    group = {"workers": 2, "within": "nvlink_domain", "mode": "preferred"}
    made = planned(problem(nodes, {"rollout": {"workers": 8, "gpus": 1, "group": group}}, goals=["groups_split"]))
    assert [worker.node_id for worker in made.workers["rollout"]] == ["a", "a", "b", "b", "b", "b", "a", "c"]
    assert made.goal("groups_split").value == 1


def test_whole_segments_come_first_and_split_ones_follow() -> None:
    nodes = {"a": {"gpus": 1, "nvlink_domain": "r"}, **{n: {"gpus": 1, "nvlink_domain": "s"} for n in "bcd"}}
    train = {"workers": 4, "gpus": 1, "segment_size": 2, "segment_mode": "preferred"}
    made = planned(problem(nodes, {"train": train}, goals=["groups_split"]))
    assert nodes_of(made, "train") == ["b", "c", "a", "d"]
    assert made.goal("groups_split").value == 1


def test_required_groups_are_never_mixed() -> None:
    nodes = {f"n{i}": {"gpus": 5, "nvlink_domain": f"r{i % 2}"} for i in range(4)}
    group = {"workers": 4, "within": "nvlink_domain"}
    made = planned(problem(nodes, {"rollout": {"workers": 16, "gpus": 1, "group": group}}))
    domain = {name: fields["nvlink_domain"] for name, fields in nodes.items()}
    for start in range(0, 16, 4):
        assert len({domain[worker.node_id] for worker in made.workers["rollout"][start : start + 4]}) == 1


# Pools, idle, warnings


def test_every_range_is_in_its_own_pool_where_pools_meet() -> None:
    asked = problem(
        {"n0": {"gpus": 8}},
        {"train": {"workers": 2, "gpus": 1}, "rollout": {"workers": 3, "gpus": 2}, "buffer": {"workers": "auto"}},
        strategy="disaggregate",
    )
    made = planned(asked)
    assert [(pool.name, [(n.node_id, n.gpus, dict(n.allocations)) for n in pool.nodes]) for pool in made.pools] == [
        ("train_pool", [("n0", 8, {"train": ((0, 1),), "buffer": ()})]),
        ("rollout_pool", [("n0", 8, {"rollout": ((2, 7),)})]),
    ]


def test_pools_are_named_by_the_problem_or_by_the_strategy() -> None:
    components = {"train": {"workers": 1, "gpus": 1}, "env": {"workers": 1, "gpus": 0.5}}
    assert [pool.name for pool in planned(problem({"a": {"gpus": 2}}, components)).pools] == ["global_pool"]
    mine = planned(problem({"a": {"gpus": 2}}, components, pools={"left": ["env"], "right": ["train"]}))
    assert {pool.name: list(pool.nodes[0].allocations) for pool in mine.pools} == {"left": ["env"], "right": ["train"]}


def test_idle_lists_what_this_job_could_have_used() -> None:
    nodes = {
        "n0": {"gpus": 4, "unavailable_gpus": [3]},
        "n1": {"gpus": 4},
        "n2": {"gpus": 2, "excluded": "drained"},
        "head": {"gpus": 4, "head": True},
        "n3": {"gpus": 0},
    }
    made = planned(problem(nodes, {"train": {"workers": 2, "gpus": 1, "node_ids": ["n0"]}}))
    assert made.idle.gpus == 5
    assert made.idle.nodes == ("n1", "n3")
    assert dict(made.idle.ranges) == {"n0": ((2, 2),), "n1": ((0, 3),)}


def test_requested_is_placed_plus_reported_unplaced() -> None:
    made = planned(problem({"a": {"gpus": 3}}, {"train": {"workers": {"min": 2, "max": 5}, "gpus": 1, "priority": 4}}))
    assert len(made.workers["train"]) == 3
    assert made.goal("unplaced").value == 4 * 2
    assert made.idle.gpus == 0


WARNINGS = [
    (
        "uneven ranks per node: train has 7 and 8",
        {"n0": {"gpus": 8}, "n1": {"gpus": 8}},
        {"train": {"per_node": [7, 8], "gpus": 1}},
    ),
    (
        "no domain information: 2 nodes of train (first a)",
        {"a": {"gpus": 2}, "b": {"gpus": 2}},
        {"train": {"workers": 4, "gpus": 1, "segment_size": 2, "segment_mode": "preferred"}},
    ),
    (
        "train is at its minimum of 2 workers (at most 5)",
        {"a": {"gpus": 2}},
        {"train": {"workers": {"min": 2, "max": 5}, "gpus": 1}},
    ),
    (
        "a group of 8 workers is wider than its segment, which holds 4",
        {n: {"gpus": 2, "nvlink_domain": "r"} for n in "abcd"},
        {"train": {"workers": 8, "gpus": 1, "segment_size": 2, "group": {"workers": 8}}},
    ),
]


@pytest.mark.parametrize(("text", "nodes", "components"), WARNINGS)
def test_warnings(text: str, nodes: dict[str, Any], components: dict[str, Any]) -> None:
    made = planned(problem(nodes, components))
    assert len(made.warnings) == 1 and text in made.warnings[0]


def test_no_warning_without_cause() -> None:
    nodes = {n: {"gpus": 2, "nvlink_domain": "r"} for n in "ab"}
    asked = problem(nodes, {"train": {"workers": 4, "gpus": 1, "segment_size": 2, "group": {"workers": 2}}})
    assert planned(asked).warnings == ()


def test_no_components_at_all() -> None:
    made = planned(problem({"a": {"gpus": 2}}, {}))
    assert made.status == "optimal" and all(goal.value == 0 == goal.bound for goal in made.goals)
    assert made.idle.gpus == 2 and made.workers == {}


# Dealing loose workers


@pytest.mark.parametrize("seed", range(30))
def test_pack_and_spread_deal_all_within_the_room(seed: int) -> None:
    rng = Random(seed)
    room = [rng.randint(1, 9) for _ in range(rng.randint(1, 6))]
    total = rng.randint(len(room), sum(room))
    for deal in (pack, spread_evenly):
        given = deal(room, total)
        assert sum(given) == total
        assert all(1 <= number <= most for number, most in zip(given, room, strict=True))
    even = sum(number**2 for number in spread_evenly(room, total))
    assert even == least_squares(room, total)


def least_squares(room: list[int], total: int) -> int:
    """One worker after the other to the emptiest place: best for squares."""
    given = [0] * len(room)
    for _ in range(total):
        place = min((i for i in range(len(room)) if given[i] < room[i]), key=lambda i: given[i])
        given[place] += 1
    return sum(number**2 for number in given)


@pytest.mark.parametrize("deal", [pack, spread_evenly])
def test_more_workers_than_room_is_an_error(deal: Any) -> None:
    with pytest.raises(RuntimeError, match="do not fit"):
        deal([2, 2], 5)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_left_as_it_was(enabled: bool) -> None:
    import gc

    from placewright.search.pause import collector_paused

    asked = problem({"n0": {"gpus": 8}}, {"train": {"workers": 8, "gpus": 1}})
    before = gc.isenabled()
    try:
        gc.enable() if enabled else gc.disable()
        planned(asked)
        assert gc.isenabled() is enabled
        with pytest.raises(ValueError), collector_paused():
            assert not gc.isenabled()
            raise ValueError
        assert gc.isenabled() is enabled
    finally:
        gc.enable() if before else gc.disable()
