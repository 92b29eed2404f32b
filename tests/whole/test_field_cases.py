"""The field cases that concern planning, in the project's own problem format, with the expected values.

Every case of ``vectors/field_cases.yaml`` and every variant is either covered here by a function with its id, or listed in
``ELSEWHERE`` with the place that covers it; one that is neither fails. Where a case expects something else than design.md says,
the test follows design.md and a comment that begins "design.md:" says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from placewright.params import SolveParams
from placewright.pipeline import plan
from placewright_models.codec import load_problem
from placewright_models.errors import Fault, InfeasibleProblem, InvalidProblem
from placewright_models.plan import Plan, Worker
from placewright_models.problem import Problem
from placewright_models.ranges import format_ranges, indices_of, ranges_of
from placewright_models.reading.overlay import occupy

CASES = yaml.safe_load((Path(__file__).parents[1] / "vectors" / "field_cases.yaml").read_text())

ELSEWHERE = {
    "FC-13": "hand-written ranges: compat/test_rlightning_manual.py",
    "FC-14a": "hand-written ranges: compat/test_rlightning_manual.py",
    "FC-15": "bundle indices on Ray: tests/on_ray",
    "FC-24b": "order of Ray's bundles: tests/on_ray",
    "FC-24d": "values of Ray resources: tests/on_ray",
    "FC-29a": "replanning after a lost node needs a previous plan, which this version refuses: a later issue",
    "FC-29b": "replanning after a lost node needs a previous plan, which this version refuses: a later issue",
    "FC-29d": "replanning after a lost node needs a previous plan, which this version refuses: a later issue",
    "FC-36a": "hand-written ranges: compat/test_rlightning_manual.py",
    "FC-36d": "hand-written ranges: compat/test_rlightning_manual.py",
    "FC-36f": "hand-written ranges: compat/test_rlightning_manual.py",
}

COVERED: set[str] = set()


def case(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Marks a test as the one of these cases."""

    def mark(test: Callable[..., None]) -> Callable[..., None]:
        COVERED.update(names)
        return test

    return mark


def n(name: str, gpus: int = 8, **fields: Any) -> dict[str, Any]:
    return {"id": name, "gpus": gpus, **fields}


def many(count: int, gpus: int = 8, domain: str | None = None, name: str = "n{}", **fields: Any) -> dict[str, Any]:
    return {"id": name, "count": count, "start": 0, "gpus": gpus, **({"nvlink_domain": domain} if domain else {}), **fields}


def asked(nodes: Sequence[dict[str, Any]], components: dict[str, Any], **rest: Any) -> Problem:
    cluster = {"nodes": list(nodes), **{key: rest.pop(key) for key in ("levels",) if key in rest}}
    sections = {key: rest.pop(key) for key in ("traffic", "goals") if key in rest}
    return load_problem({"cluster": cluster, "components": components, "rules": rest, **sections})


def planned(nodes: Sequence[dict[str, Any]], components: dict[str, Any], **rest: Any) -> Plan:
    made = plan(asked(nodes, components, **rest), params=SolveParams(workers=1))
    assert made.status == "optimal"
    return made


def refused(nodes: Sequence[dict[str, Any]], components: dict[str, Any], **rest: Any) -> InfeasibleProblem:
    with pytest.raises(InfeasibleProblem) as caught:
        plan(asked(nodes, components, **rest), params=SolveParams(workers=1))
    return caught.value


def invalid(nodes: Sequence[dict[str, Any]], components: dict[str, Any], **rest: Any) -> str:
    with pytest.raises(InvalidProblem) as caught:
        asked(nodes, components, **rest)
    return str(caught.value)


def on(made: Plan, name: str) -> list[str]:
    """Where a component lies: node and ranges, in topological order."""
    gpus: dict[str, set[int]] = {}
    for worker in made.workers[name]:
        gpus.setdefault(worker.node_id, set()).update(indices_of(worker.ranges))
    return [f"{node}:{format_ranges(ranges_of(found))}" if found else node for node, found in gpus.items()]


def gpus_of(made: Plan, *names: str) -> set[tuple[str, int]]:
    return {(w.node_id, g) for name in names or made.workers for w in made.workers[name] for g in indices_of(w.ranges)}


def has(error: InfeasibleProblem | str, *words: str) -> None:
    for word in words:
        assert word in str(error), (word, str(error))


# FC-01: nodes of 4 and 2 GPUs

FOUR_AND_TWO = [n("n0", 4, cpus=32), n("n1", 2, cpus=32)]


@case("FC-01a")
def test_01a_uneven_nodes_are_all_used() -> None:
    made = planned(
        FOUR_AND_TWO,
        {"train": {"workers": 6, "gpus": 1}, "rollout": {"workers": 3, "gpus": 2}},
        colocate=[["train", "rollout"]],
    )
    assert on(made, "train") == ["n0:0-3", "n1:0-1"]
    assert made.workers["rollout"] == (Worker("n0", ((0, 1),)), Worker("n0", ((2, 3),)), Worker("n1", ((0, 1),)))
    assert made.warnings == ("uneven ranks per node: train has 2 and 4",)


@case("FC-01b")
def test_01b_three_on_each_of_two() -> None:
    error = refused(FOUR_AND_TWO, {"train": {"workers": 6, "gpus": 1, "per_node": 3, "nodes": 2}})
    has(error, "n1 has 2, needs 3")
    assert "6 GPUs" not in str(error)


@case("FC-01c")
def test_01c_an_engine_over_part_of_train() -> None:
    # design.md: "colocate" is equal GPU sets (H11), and four GPUs are not train's six. Part of them is said with share_gpus.
    nodes, components = FOUR_AND_TWO, {"train": {"workers": 6, "gpus": 1}, "rollout": {"workers": 1, "gpus": 4}}
    assert on(planned(nodes, components, share_gpus=[["train", "rollout"]]), "rollout") == ["n0:0-3"]
    has(refused(nodes, components, colocate=[["train", "rollout"]]), "exactly the same GPUs")


@case("FC-01d")
def test_01d_small_nodes_are_left_out() -> None:
    nodes = [n(f"m{i}", 1 if i < 2 else 2) for i in range(6)]
    made = planned(nodes, {"train": {"workers": 8, "gpus": 1, "per_node": 2, "nodes": 4}})
    assert on(made, "train") == [f"m{i}:0-1" for i in range(2, 6)]
    # The reason why m0 and m1 stay out is asked for by wanting one node more.
    has(
        refused(nodes, {"train": {"workers": 10, "gpus": 1, "per_node": 2, "nodes": 5}}),
        "m0 has 1, needs 2",
        "m1 has 1, needs 2",
    )


@case("FC-03")
def test_03_the_total_is_not_enough() -> None:
    error = refused([n("n0"), n("n1", 4), n("n2", 4)], {"train": {"workers": 2, "gpus": 8}})
    has(error, "train needs 2 nodes with 8 free GPUs", "1 such node (n0)")


# FC-04: CPUs

A_AND_B = [n("A", 8, cpus=10), n("B", 0, cpus=200)]


@case("FC-04a")
def test_04a_cpus_of_the_gpu_node() -> None:
    error = refused(A_AND_B, {"train": {"workers": 8, "gpus": 1, "cpus": 3}})
    first = error.reasons[0]
    assert (first.resource, first.needed, first.available, first.most_workers) == ("cpus", 24, 10, 3)
    assert dict(first.per_unit) == {"A": 10}
    assert "not enough GPUs" not in str(error)


@case("FC-04b")
def test_04b_three_fit() -> None:
    assert on(planned(A_AND_B, {"train": {"workers": 3, "gpus": 1, "cpus": 3}}), "train") == ["A:0-2"]


@case("FC-04c")
def test_04c_cpus_held_by_others() -> None:
    nodes = [n("A", 8, cpus=32, cpus_in_use=12)]
    error = refused(nodes, {"train": {"workers": 8, "gpus": 1, "cpus": 3}})
    first = error.reasons[0]
    assert (first.resource, first.needed, first.available, first.shortage) == ("cpus", 24, 20, "occupied")
    has(error, "12 held")


# FC-05: occupied GPUs


@case("FC-05a")
def test_05a_seven_of_eight() -> None:
    error = refused([n("n0", unavailable_gpus=[0])], {"train": {"workers": 8, "gpus": 1}})
    has(error, "free 7 of 8", "n0")
    assert error.reasons[0].shortage == "occupied"


@case("FC-05b")
def test_05b_seven_workers() -> None:
    assert on(planned([n("n0", unavailable_gpus=[0])], {"train": {"workers": 7, "gpus": 1}}), "train") == ["n0:1-7"]


@case("FC-05c")
def test_05c_none_of_eight() -> None:
    error = refused([n("n0", unavailable_gpus=list(range(8)))], {"train": {"workers": 8, "gpus": 1}})
    has(error, "free 0 of 8")
    assert error.reasons[0].shortage == "occupied"


@case("FC-05a", "FC-05c")
def test_05_too_small_is_not_occupied() -> None:
    assert refused([n("n0")], {"train": {"workers": 9, "gpus": 1}}).reasons[0].shortage == "too small"


# FC-06: topological order


@case("FC-06a", "FC-06c", "FC-06d")
@pytest.mark.parametrize(
    ("nodes", "order"),
    [
        ([n(f"10.0.0.{i}") for i in (*range(2, 10), *range(66, 74))], [f"10.0.0.{i}" for i in (*range(2, 10), *range(66, 74))]),
        ([n(name) for name in ("node7", "node66", "node8", "node70")], ["node7", "node8", "node66", "node70"]),
        ([n("node7", topo_rank=9), n("node66", topo_rank=2)], ["node66", "node7"]),
    ],
)
def test_06_order_of_nodes(nodes: list[dict[str, Any]], order: list[str]) -> None:
    for seed in range(3):
        shuffled = Random(seed).sample(nodes, len(nodes))
        made = planned(shuffled, {"train": {"workers": len(nodes), "gpus": 8}})
        assert [worker.node_id for worker in made.workers["train"]] == order


@case("FC-06b")
def test_06b_gpus_in_order_of_numbers() -> None:
    made = planned([n("n0", 16)], {"train": {"workers": 16, "gpus": 1}})
    assert [worker.ranges[0][0] for worker in made.workers["train"]] == list(range(16))


@case("FC-07")
def test_07_every_engine_on_one_node() -> None:
    made = planned([n("n0"), n("n1"), n("n2")], {"rollout": {"workers": 6, "gpus": 4}})
    assert [(w.node_id, w.ranges) for w in made.workers["rollout"]] == [
        (f"n{rank * 4 // 8}", (((rank % 2) * 4, (rank % 2) * 4 + 3),)) for rank in range(6)
    ]


# FC-08


@case("FC-08a")
def test_08a_train_then_rollout() -> None:
    made = planned(
        [n("n0")], {"train": {"workers": 2, "gpus": 1}, "rollout": {"workers": 6, "gpus": 1}}, strategy="disaggregate"
    )
    assert on(made, "train") == ["n0:0-1"] and on(made, "rollout") == ["n0:2-7"]


@case("FC-08b")
def test_08b_only_free_gpus() -> None:
    nodes = [n("n0", unavailable_gpus=[0, 1, 2, 3])]
    made = planned(nodes, {"train": {"workers": 2, "gpus": 1}, "rollout": {"workers": 1, "gpus": 2}}, strategy="disaggregate")
    assert on(made, "train") == ["n0:4-5"] and on(made, "rollout") == ["n0:6-7"]


# FC-10: numbers are never rewritten


@case("FC-10a")
def test_10a_two_nodes_stay_two() -> None:
    made = planned([n("n0", 1), n("n1", 1)], {"train": {"workers": 2, "gpus": 1, "nodes": 2}})
    assert on(made, "train") == ["n0:0", "n1:0"]


@case("FC-10b")
def test_10b_what_is_left_is_reported() -> None:
    # design.md: there is no "half of the nodes"; one node each, and the third is named as idle.
    components = {"actor": {"workers": 8, "gpus": 1, "nodes": 1}, "critic": {"workers": 8, "gpus": 1, "nodes": 1}}
    made = planned([many(3)], components, strategy="disaggregate")
    assert made.idle.gpus == 8 and made.idle.nodes == ("n2",)
    has(invalid([many(3)], {"actor": {"workers": 8, "gpus": 1, "nodes": "half"}}), "components.actor.nodes", "half")


@case("FC-12")
def test_12_sharing_is_a_relation() -> None:
    components = {name: {"workers": 8, "gpus": 1} for name in ("train", "eval", "env")}
    nodes = [n("n0", cpus=64), n("n1", cpus=64)]
    for rules in ({"strategy": "colocate"}, {"share_gpus": [["train", "eval"], ["train", "env"]]}):
        made = planned(nodes, components, **rules)
        assert [len(gpus_of(made, name)) for name in components] == [8, 8, 8]
        assert not gpus_of(made, "eval") & gpus_of(made, "env")
        assert len(gpus_of(made)) == 16


@case("FC-14b")
def test_14b_buffer_follows_train_whatever_comes_first() -> None:
    nodes = [n("head", 0, cpus=64), n("w1", 8, cpus=64), n("w2", 8, cpus=64)]
    components = {
        "train": {"workers": 8, "gpus": 1},
        "eval": {"workers": 8, "gpus": 1},
        "buffer": {"workers": "auto", "gpus": 0, "cpus": 1},
    }
    for seed in range(4):
        made = planned(Random(seed).sample(nodes, 3), components)
        assert len(made.workers["buffer"]) == 1
        assert made.workers["buffer"][0].node_id == made.workers["train"][0].node_id


# FC-16, FC-17, FC-18: shares


@case("FC-16a", "FC-16b", "FC-16c")
@pytest.mark.parametrize(
    ("nodes", "components", "for_eval", "used"),
    [
        ([n("n0")], {"train": {"workers": 2, "gpus": 1}, "eval": {"workers": 5, "gpus": 0.6}}, 5, 7),
        ([n("n0")], {"train": {"workers": 4, "gpus": 1}, "eval": {"workers": 3, "gpus": 0.5}}, 2, 6),
        ([n("n0"), n("n1")], {"eval": {"workers": 10, "gpus": 0.6}}, 10, 10),
    ],
)
def test_16_gpus_for_shares(nodes: list[dict[str, Any]], components: dict[str, Any], for_eval: int, used: int) -> None:
    made = planned(nodes, components)
    assert len(gpus_of(made, "eval")) == for_eval and len(gpus_of(made)) == used


@case("FC-16d")
def test_16d_a_share_cannot_be_split() -> None:
    error = refused([n("n0", 2)], {"eval": {"workers": 5, "gpus": 0.4}})
    has(error, "a share cannot be split over two GPUs")
    assert error.reasons[0].most_workers == 4


@case("FC-16e")
def test_16e_above_one_must_be_whole() -> None:
    has(invalid([n("n0", 4)], {"eval": {"workers": 1, "gpus": 1.5}}), "components.eval.gpus", "1.5", "whole")


def per_gpu(made: Plan, name: str) -> set[int]:
    spots = [(worker.node_id, worker.ranges) for worker in made.workers[name]]
    return {spots.count(spot) for spot in spots}


@case("FC-17a", "FC-17c", "FC-17d")
@pytest.mark.parametrize(
    ("nodes", "workers", "share", "each", "gpus"),
    [([n("n0"), n("n1")], 80, 0.18, 5, 16), ([n("n0"), n("n1")], 80, 0.2, 5, 16), ([n("n0", 1)], 7, 0.142857142857, 7, 1)],
)
def test_17_exact_units(nodes: list[dict[str, Any]], workers: int, share: float, each: int, gpus: int) -> None:
    made = planned(nodes, {"env": {"workers": workers, "gpus": share}})
    assert per_gpu(made, "env") == {each} and len(gpus_of(made)) == gpus
    if len(nodes) == 2:
        assert [sum(w.node_id == node["id"] for w in made.workers["env"]) for node in nodes] == [40, 40]


@case("FC-17b")
def test_17b_one_too_many() -> None:
    assert refused([n("n0"), n("n1")], {"env": {"workers": 81, "gpus": 0.18}}).reasons[0].most_workers == 80


@case("FC-18a", "FC-18c", "FC-18d")
@pytest.mark.parametrize(
    ("shares", "workers"),
    [
        ({"train": 0.7, "rollout": 0.25, "reward": 0.05}, {"train": 16, "rollout": 16, "reward": 4}),
        ({"train": 0.33, "rollout": 0.56, "reward": 0.11}, {"train": 16, "rollout": 16, "reward": 16}),
        ({"rollout": 0.9, "helper": 0.01}, {"rollout": 16, "helper": 16}),
    ],
)
def test_18_shares_of_several_components_add_up(shares: dict[str, float], workers: dict[str, int]) -> None:
    components = {name: {"workers": workers[name], "gpus": share} for name, share in shares.items()}
    made = planned([many(2)], components, share_gpus=[list(shares)])
    assert len(gpus_of(made)) == 16


@case("FC-18b")
def test_18b_a_hundredth_too_much() -> None:
    components = {"rollout": {"workers": 16, "gpus": 1, "gpu_share": 1.0}, "helper": {"workers": 16, "gpus": 0.01}}
    has(refused([many(2)], components, share_gpus=[["rollout", "helper"]]), "rollout", "helper", "1.01")


# FC-20, FC-23: segments


def recipe(a: int, b: int, mode: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    nodes = [many(a, 4, "A", "a{}"), many(b, 4, "B", "b{}")]
    train = {"workers": 32, "gpus": 1, "segment_size": 2, "segment_mode": mode}
    return nodes, {"train": train, "rollout": {"workers": 32, "gpus": 1}}


SAME = {"colocate": [["train", "rollout"]]}


@case("FC-20a")
def test_20a_segments_possible() -> None:
    error = refused(*recipe(5, 3, "required"), **SAME)
    first = error.reasons[0]
    assert (first.needed, first.available, dict(first.per_unit)) == (4, 3, {"A": 2, "B": 1})


@case("FC-20b")
def test_20b_one_segment_crosses() -> None:
    made = planned(*recipe(5, 3, "preferred"), **SAME)
    assert made.goal("groups_split").value == 1


@case("FC-20c", "FC-20d")
@pytest.mark.parametrize("a", [5, 4])
def test_20cd_four_and_four(a: int) -> None:
    made = planned(*recipe(a, 4, "required"), **SAME)
    nodes = {worker.node_id for worker in made.workers["train"]}
    assert sorted(node[0] for node in nodes) == ["a"] * 4 + ["b"] * 4
    assert len(made.idle.nodes) == a - 4


@case("FC-23a")
def test_23a_unknown_nodes_serve_no_segment() -> None:
    nodes = [
        n("h", 0),
        n("u", 4),
        *(n(f"{d}{i}", 4, nvlink_domain=d.upper(), topo_rank=1 + i + 2 * (d == "b")) for d in "ab" for i in (0, 1)),
    ]
    made = planned(nodes, {"train": {"workers": 16, "gpus": 1, "segment_size": 2}})
    assert on(made, "train") == ["a0:0-3", "a1:0-3", "b0:0-3", "b1:0-3"]
    both = planned(nodes, {"train": {"workers": 16, "gpus": 1, "segment_size": 2}, "reward": {"workers": 4, "gpus": 1}})
    assert on(both, "reward") == ["u:0-3"]


@case("FC-23b")
def test_23b_no_domain_information() -> None:
    has(refused([many(4, 4)], {"train": {"workers": 16, "gpus": 1, "segment_size": 2}}), "no node has domain information")


@case("FC-23c")
def test_23c_preferred_goes_on_with_a_warning() -> None:
    made = planned([many(4, 4)], {"train": {"workers": 16, "gpus": 1, "segment_size": 2, "segment_mode": "preferred"}})
    assert on(made, "train") == [f"n{i}:0-3" for i in range(4)]
    assert len(made.warnings) == 1 and "no domain information" in made.warnings[0] and "natural order" in made.warnings[0]


# FC-24: ranks


@case("FC-24a")
def test_24a_rank_zero() -> None:
    has(
        invalid([n("h", topo_rank=0), n("w0", topo_rank=0), n("w1", topo_rank=1)], {}),
        "cluster.nodes[0]",
        "cluster.nodes[1]",
        "topo_rank",
    )


@case("FC-24c")
def test_24c_blocks_that_read_alike_stay_apart() -> None:
    nodes = [n("x", 4, labels={"block": "rack-A1"}, topo_rank=1), n("y", 4, labels={"block": "rack-B1"}, topo_rank=1)]
    made = planned(nodes, {"train": {"workers": 8, "gpus": 1}}, levels=["block"])
    assert [w.node_id for w in made.workers["train"]] == ["x"] * 4 + ["y"] * 4


# FC-26: numbers that cannot tile


@case("FC-26a")
def test_26a_the_teacher_is_to_blame() -> None:
    # design.md: a worker wider than every node is infeasible, not invalid (another cluster would cure it).
    error = refused([many(3, 4)], {"policy": {"workers": 8, "gpus": 1}, "teacher": {"workers": 1, "gpus": 8}})
    has(error, "teacher", "8 per node", "largest node 4")
    assert "policy" not in str(error)


@case("FC-26b", "FC-26c")
@pytest.mark.parametrize("workers", [5, 1])
def test_26bc_slices(workers: int) -> None:
    text = invalid([many(5, 1)], {"env": {"workers": workers, "gpus": 1, "group": {"workers": 2}}})
    has(text, "components.env.group", str(workers), "2")
    has(
        invalid([many(5, 1)], {"env": {"workers": workers, "gpus": 1, "segment_size": 2}}),
        "components.env.segment_size",
        str(workers),
        "2",
    )


@case("FC-26d")
def test_26d_twelve_on_eight() -> None:
    # design.md: infeasible, not invalid.
    has(refused([many(3)], {"rollout": {"workers": 2, "gpus": 12}}), "rollout", "12", "largest node 8")


@case("FC-26e")
def test_26e_sixteen_nodes_by_six() -> None:
    component = {"nodes": 16, "per_node": 1, "gpus": 1, "group": {"workers": 6}}
    has(invalid([many(16, 1)], {"rollout": component}), "components.rollout.group", "16", "6")


# FC-28: two plans from one snapshot


def planned_after(first: Plan, components: dict[str, Any]) -> Problem:
    """The second job on what the first plan leaves."""
    faults: list[Fault] = []
    cluster = occupy(first.problem.cluster, first, "A", faults)
    assert not faults
    second = asked([n(node.id, node.gpus) for node in cluster.nodes], components)
    return Problem(cluster=cluster, components=second.components, rules=second.rules, goals=second.goals)


@case("FC-28a")
def test_28a_disjoint_nodes() -> None:
    a = planned([n("x"), n("y"), n("z")], {"A": {"workers": 2, "gpus": 8}})
    b = plan(planned_after(a, {"B": {"workers": 1, "gpus": 8}}))
    used = [{worker.node_id for worker in made.workers[name]} for made, name in ((a, "A"), (b, "B"))]
    assert not used[0] & used[1] and used[0] | used[1] == {"x", "y", "z"}


@case("FC-28b")
def test_28b_the_second_is_refused_as_occupied() -> None:
    a = planned([n("x"), n("y")], {"A": {"workers": 2, "gpus": 8}})
    with pytest.raises(InfeasibleProblem) as caught:
        plan(planned_after(a, {"B": {"workers": 1, "gpus": 8}}))
    assert caught.value.reasons[0].shortage == "occupied"
    has(caught.value, "occupied by A")


@case("FC-29c")
def test_29c_two_of_four_nodes_lost() -> None:
    nodes = [n("a", 4), n("b", 4, excluded="lost"), n("c", 4), n("d", 4, excluded="lost")]
    error = refused(nodes, {"train": {"workers": 8, "gpus": 1}, "rollout": {"workers": 1, "gpus": 4}})
    first = error.reasons[0]
    assert first.needed == 12 and first.available == 8  # short by 4
    has(error, "train")


# FC-31: head, and exactly what is asked


@case("FC-31a")
def test_31a_rank_zero_is_not_on_the_full_head() -> None:
    nodes = [n("head", unavailable_gpus=list(range(8)), head=True), many(11)]
    made = planned(nodes, {"train": {"workers": 88, "gpus": 1}})
    assert made.workers["train"][0].node_id == "n0"
    assert made.goal("nodes_used").value == 11


@case("FC-31b")
def test_31b_two_workers_take_two_gpus() -> None:
    made = planned([many(11)], {"train": {"workers": 2, "gpus": 1}})
    assert len(gpus_of(made)) == 2 and made.goal("nodes_used").value == 1


@case("FC-31c")
def test_31c_cpus_of_small_nodes() -> None:
    first = refused([n("n0", cpus=64)], {"train": {"workers": 8, "gpus": 1, "cpus": 10}}).reasons[0]
    assert (first.resource, first.needed, first.available, first.most_workers) == ("cpus", 80, 64, 6)


@case("FC-31d")
def test_31d_the_driver_has_one_of_its_engines_gpus() -> None:
    nodes = [n("n0", 2), n("n1", 2), n("n2", 2), n("n3", 2)]
    # design.md: a 4-GPU engine on 2-GPU nodes is 4 grouped one-GPU workers on whole nodes; "must include the driver's node"
    # is a driver on each of its nodes (per_node_of) or a component pinned there that traffic draws it to.
    components = {
        "rollout": {"replicas": 1, "gpus_per_replica": 4},
        "driver": {"workers": 1, "node_ids": ["n0"]},
    }
    made = planned(nodes, components, traffic=[{"between": ["driver", "rollout"]}])
    assert on(made, "rollout") == ["n0:0-1", "n1:0-1"]
    assert made.workers["rollout"][0].node_id == made.workers["driver"][0].node_id == "n0"
    assert made.goal("nodes_used").value == 2


# FC-32: where engines lead; the ports themselves are tested with apply


@case("FC-32a", "FC-32c", "FC-32d")
@pytest.mark.parametrize(("count", "workers", "gpus"), [(4, 8, 2), (4, 16, 1), (2, 4, 2)])
def test_32_slots_on_a_node_follow_from_ranges(count: int, workers: int, gpus: int) -> None:
    made = planned([many(count, 4)], {"rollout": {"workers": workers, "gpus": gpus}})
    slots = [(w.node_id, w.ranges[0][0] // gpus) for w in made.workers["rollout"]]
    assert slots == [(f"n{i}", slot) for i in range(count) for slot in range(4 // gpus)]


@case("FC-32b")
def test_32b_wide_engines_lead_on_different_nodes() -> None:
    made = planned([many(4, 4)], {"rollout": {"replicas": 2, "gpus_per_replica": 8}})
    lead = [made.workers["rollout"][8 * engine] for engine in range(2)]
    assert [worker.node_id for worker in lead] == ["n0", "n2"] and all(worker.ranges == ((0, 0),) for worker in lead)


@case("FC-34")
def test_34_seven_and_eight() -> None:
    nodes = [n("n0"), n("n1")]
    made = planned(
        nodes, {"train": {"per_node": [7, 8], "gpus": 1}, "rollout": {"workers": 1, "gpus": 1}}, strategy="disaggregate"
    )
    counts = sorted(sum(w.node_id == node for w in made.workers["train"]) for node in ("n0", "n1"))
    assert counts == [7, 8]
    assert len(gpus_of(made)) == 16
    assert made.warnings == ("uneven ranks per node: train has 7 and 8",)
    equal = {"rollout": {"workers": 1, "gpus": 1}}
    # 15 workers cannot be equal on two nodes: refused already as numbers.
    has(
        invalid(nodes, {"train": {"nodes": 2, "per_node": 7, "workers": 15, "gpus": 1}, **equal}, strategy="disaggregate"), "15"
    )
    made = planned(nodes, {"train": {"nodes": 2, "per_node": 7, "gpus": 1}}, strategy="disaggregate")
    assert made.idle.gpus == 2


# FC-36: real layouts, planned instead of written by hand


@case("FC-36b")
def test_36b_env_over_two_that_do_not_overlap() -> None:
    components = {"actor": {"workers": 2, "gpus": 1}, "rollout": {"workers": 2, "gpus": 1}, "env": {"workers": 4, "gpus": 1}}
    nodes = [n("n0", unavailable_gpus=[0, 1, 2, 3])]
    made = planned(nodes, components, share_gpus=[["env", "actor"], ["env", "rollout"]])
    assert on(made, "env") == ["n0:4-7"]
    assert sorted(on(made, "actor") + on(made, "rollout")) == ["n0:4-5", "n0:6-7"]


@case("FC-36c")
def test_36c_two_of_each_on_two_nodes() -> None:
    components = {name: {"workers": 4, "gpus": 1, "per_node": 2, "nodes": 2} for name in ("env", "eval", "train")}
    traffic = [{"between": ["eval", "env"]}, {"between": ["train", "env"]}]
    made = planned([many(3)], {**components, "buffer": {"workers": "auto"}}, traffic=traffic)
    assert made.idle.nodes == ("n2",)
    assert len(made.workers["buffer"]) == 2
    # Left to right is train, eval, env; the hand-written plan had them the other way round.
    assert [on(made, name) for name in ("train", "eval", "env")] == [[f"n{i}:{a}-{a + 1}" for i in (0, 1)] for a in (0, 2, 4)]


@case("FC-36e")
def test_36e_engines_stay_on_their_node() -> None:
    made = planned([many(2)], {"rollout": {"workers": 5, "gpus": 2}})
    assert all(len(worker.ranges) == 1 for worker in made.workers["rollout"])
    assert len(gpus_of(made)) == 10


@case("FC-36g")
def test_36g_no_overlap_unless_declared() -> None:
    components = {"left": {"workers": 6, "gpus": 1}, "right": {"workers": 6, "gpus": 1}}
    error = refused([n("n0")], components)
    has(error, "left", "right", "need 12", "8 free")
    assert len(gpus_of(planned([n("n0")], components, share_gpus=[["left", "right"]]))) == 8


def variants() -> Iterator[str]:
    for entry in CASES:
        found = entry["input"].get("variants") if isinstance(entry["input"], dict) else None
        yield from (f"{entry['id']}{key}" for key in found) if found else (entry["id"],)


def test_every_case_has_its_place() -> None:
    missing = [name for name in variants() if name not in COVERED and name not in ELSEWHERE and name[:5] not in ELSEWHERE]
    assert not missing
    known = {*variants(), *(name[:5] for name in variants())}
    assert not ({*COVERED, *ELSEWHERE} - known)
    assert not COVERED & set(ELSEWHERE)
