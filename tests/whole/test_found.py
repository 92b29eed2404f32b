"""Faults that a hostile reader of the contract found, each with the sentence of design.md that it broke."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest

from placewright.index.job import Job
from placewright.node.fits import Fits
from placewright.node.gpu_model import decide
from placewright.node.shape import Shape, demand
from placewright.params import SolveParams
from placewright.pipeline import plan
from placewright_models.codec import load_problem
from placewright_models.errors import InfeasibleProblem, InvalidProblem

PARAMS = SolveParams(workers=1)
EIGHT: dict[str, Any] = {"id": "n{}", "count": 2, "gpus": 8}
RACKS: dict[str, Any] = {"id": "n{}", "count": 8, "gpus": 8, "nvlink_domain": "d{}", "nodes_per_domain": 4}


def refused(nodes: list[dict[str, Any]], components: dict[str, Any], **rules: Any) -> InfeasibleProblem:
    problem = load_problem({"cluster": {"nodes": nodes}, "components": components, "rules": rules})
    with pytest.raises(InfeasibleProblem) as caught:
        plan(problem, params=PARAMS)
    return caught.value


def test_most_workers_counts_every_field_of_the_component() -> None:
    """"the most workers that would fit, exact": 64 GPUs hold 48 workers in segments of 3 nodes of 8."""
    (reason,) = refused([RACKS], {"train": {"workers": 72, "gpus": 1, "segment_size": 3}}).reasons
    assert reason.most_workers == 48
    assert "at most 48 of 72" in reason.sentence


def test_too_many_followers_are_told_how_many_nodes_there_are() -> None:
    """"what is needed and what there is": not "no node that may host them" where one may."""
    error = refused([EIGHT], {"a": {"workers": 1, "gpus": 1}, "b": {"workers": 2, "per_node_of": "a"}})
    assert "need 2 nodes; a can be on 1 at most" in str(error)
    assert error.reasons[0].most_workers == 1
    assert (error.reasons[0].needed, error.reasons[0].available) == (2, 1)


def test_same_domain_names_what_each_domain_has() -> None:
    """"what is needed and what there is, per node or per domain"."""
    nodes = [
        {"id": "a", "gpus": 16, "cpus": 16, "nvlink_domain": "x"},
        {"id": "b", "gpus": 8, "cpus": 80, "nvlink_domain": "y"},
    ]
    components = {"train": {"workers": 16, "gpus": 1, "cpus": 0}, "env": {"workers": 20}}
    text = str(refused(nodes, components, same_domain=[["train", "env"]]))
    assert "together 16 GPUs and 20 CPUs; free in one domain: x 16 GPUs and 16 CPUs, y 8 GPUs and 80 CPUs" in text


def test_colocated_components_of_different_size_name_both_sizes() -> None:
    components = {"actor": {"workers": 8, "gpus": 1}, "ref": {"workers": 6, "gpus": 1}}
    assert "actor 8, ref 6" in str(refused([EIGHT], components, colocate=[["actor", "ref"]]))


def test_an_exact_number_of_nodes_says_what_they_hold() -> None:
    text = str(refused([EIGHT], {"train": {"workers": 9, "gpus": 1, "nodes": 1}}))
    assert "9 workers on exactly 1 node, those with most room hold 8 (n0: 8); at most 8 of 9" in text
    assert "must use exactly 4 nodes, 2 can host it (n0, n1)" in str(
        refused([EIGHT], {"train": {"workers": 4, "gpus": 1, "nodes": 4}})
    )


def test_aligned_workers_say_where_they_must_start() -> None:
    node = {"id": "a", "gpus": 4, "unavailable_gpus": [0, 3]}
    text = str(refused([node], {"train": {"workers": 1, "gpus": 2, "aligned": True}}))
    assert "2 free GPUs from an index that is a multiple of 2" in text


def test_absent_node_ids_are_told_beside_faults_of_the_cluster() -> None:
    """"All faults at once"."""
    data = {
        "cluster": {"nodes": [{"id": "a", "gpus": 8, "topo_rank": 0}]},
        "components": {"critic": {"workers": 2, "node_ids": ["zz", "a"]}},
    }
    with pytest.raises(InvalidProblem) as caught:
        load_problem(data)
    assert [fault.place for fault in caught.value.faults] == ["cluster.nodes[0].topo_rank", "components.critic.node_ids"]


def test_names_that_exclude_does_not_find_are_answered_in_one_order() -> None:
    with pytest.raises(InvalidProblem, match=r"one of: n0, n1"):
        load_problem({"cluster": {"nodes": [EIGHT]}, "components": {}}, exclude="qqqqqq")


@pytest.mark.parametrize("settings", [{"time_limit": float("nan")}, {"time_limit": "3"}, {"workers": 0}, {"seed": -1}])
def test_settings_that_mean_nothing_are_invalid(settings: dict[str, Any]) -> None:
    problem = load_problem({"cluster": {"nodes": [EIGHT]}, "components": {}})
    with pytest.raises(InvalidProblem, match=next(iter(settings))):
        plan(problem, **settings)


def shared() -> Iterator[Job]:
    for aligned, pairs in product((False, True), ([["a", "b"]], [["a", "b"], ["b", "c"], ["c", "d"]])):
        components = {
            "a": {"workers": 3, "gpus": 1, "gpu_share": 0.5},
            "b": {"workers": 3, "gpus": 0.3},
            "c": {"workers": 2, "gpus": 2, "aligned": aligned},
            "d": {"workers": 2, "gpus": 1},
        }
        cluster = {"nodes": [{"id": "n", "gpus": 5}]}
        yield Job(load_problem({"cluster": cluster, "components": components, "rules": {"share_gpus": pairs}}))


@pytest.mark.parametrize("runs", [((0, 4),), ((0, 1), (3, 5)), ((1, 5),)])
def test_remembered_searches_decide_as_the_model_does(runs: tuple[tuple[int, int], ...]) -> None:
    """Eight components that share took two minutes to encode; what an earlier search settles is not searched again."""
    for job in shared():
        fits, shape = Fits(job), Shape(6, runs)
        for counts in product(range(4), range(4), range(3), range(3)):
            pieces = demand(job, counts)
            if pieces:
                assert fits(shape, counts) == decide(job, shape, counts, [piece.item for piece in pieces]), counts


def test_collective_workers_without_a_gpu_are_remarked() -> None:
    found = plan(load_problem({"cluster": {"nodes": [{"id": "n0", "gpus": 8}]}, "components": {"train": {"workers": 2}}}))
    assert found.warnings == ("train is collective and its workers have no GPU: write gpus if they should have one",)


def test_traffic_of_auto_workers_tries_every_total_up_to_a_limit() -> None:
    job = {
        "components": {"train": {"workers": 12, "gpus": 1}, "buffer": {"workers": "auto"}},
        "traffic": [{"between": ["buffer", "train"]}],
        "goals": ["traffic", "node_span"],
    }
    few = plan(load_problem({"cluster": {"nodes": [{"id": "n{}", "count": 3, "gpus": 8}]}, **job}))
    # Six ranks and one buffer on each of two nodes: split in proportion, which no packing of 8 and 4 is.
    assert [(goal.value, goal.bound) for goal in few.goals] == [(0, 0), (2, 2)]
    assert [len(few.workers[name]) for name in ("train", "buffer")] == [12, 2]
    with pytest.raises(InvalidProblem, match="no fixed total"):
        plan(load_problem({"cluster": {"nodes": [{"id": "n{}", "count": 300, "gpus": 8}]}, **job}))
