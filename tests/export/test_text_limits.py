"""The text of a plan names what keeps a goal from being better, where counting tells."""

from __future__ import annotations

from typing import Any

import pytest

import placewright

RACKS: dict[str, Any] = {
    "nodes": [
        {"id": "a{}", "count": 3, "gpus": 4, "cpus": 8, "memory": "64GiB", "nvlink_domain": "rackA"},
        {"id": "b{}", "count": 3, "gpus": 4, "cpus": 8, "memory": "64GiB", "nvlink_domain": "rackB"},
    ]
}


def sentences(train: dict[str, Any], **rest: Any) -> dict[str, str]:
    problem = {"cluster": RACKS, "components": {"train": train}, **rest}
    text = placewright.export(placewright.plan(placewright.load_problem(problem)), "text")
    found = (line.split(maxsplit=4) for line in text.partition("goal, first")[2].splitlines()[1:])
    return {words[0]: words[4] for words in found if len(words) == 5}


@pytest.mark.parametrize(
    ("train", "domains", "nodes"),
    [
        ({"workers": 4, "gpus": 1}, "train 1", "train 1"),
        ({"workers": 16, "gpus": 1}, "train 2; its GPUs need as many", "train 4; its GPUs need as many"),
        ({"workers": 4, "gpus": 3}, "train 2; its GPUs need as many", "train 4; its GPUs need as many"),
        ({"workers": 6, "gpus": 1, "cpus": 3}, "train 1", "train 3; its CPUs need as many"),
        ({"workers": 8, "gpus": 1, "cpus": 3}, "train 2; its CPUs need as many", "train 4; its CPUs need as many"),
        ({"workers": 4, "gpus": 1, "memory": "40GiB"}, "train 2; its memory needs", "train 4; its memory needs"),
        ({"workers": 12, "gpus": 1, "segment_size": 1}, "train 1", "train 3; its GPUs need as many"),
        ({"workers": 16, "gpus": 1, "segment_size": 2}, "train 2; its GPUs need as many", "train 4; its GPUs need as many"),
        ({"workers": 6, "gpus": 1, "group": {"workers": 3, "within": "node"}}, "train 1", "train 2; its GPUs need as many"),
        ({"workers": 9, "gpus": 1, "group": {"workers": 3, "within": "node"}}, "train 1", "train 3; its GPUs need as many"),
        ({"workers": 6, "gpus": 1, "per_node": 2}, "train 1", "train 3; its workers per node need as many"),
        ({"workers": 4, "gpus": 1, "nodes": 3}, "train 1", "train 3"),
    ],
)
def test_the_field_that_needs_as_many_is_named(train: dict[str, Any], domains: str, nodes: str) -> None:
    said = sentences(train)
    assert said["domain_span"].startswith(f"NVLink domains: {domains}")
    assert said["node_span"].startswith(f"nodes: {nodes}")
    if "need" not in nodes:
        assert "need" not in said["node_span"]


def test_segments_are_named_where_gpus_alone_would_do_with_fewer() -> None:
    # Nine nodes would fit into two racks of five; in segments of three each rack gives only three.
    problem = {
        "cluster": {"nodes": [{"id": "n{}", "count": 15, "gpus": 4, "nvlink_domain": "rack{}", "nodes_per_domain": 5}]},
        "components": {"train": {"workers": 36, "gpus": 1, "segment_size": 3}},
    }
    text = placewright.export(placewright.plan(placewright.load_problem(problem)), "text")
    assert "NVLink domains: train 3; its segments need as many" in text


def test_nothing_is_said_where_another_component_is_in_the_way() -> None:
    rules = {"separate_nodes": [["train", "env"]]}
    problem = {
        "cluster": {"nodes": [{"id": "n0", "gpus": 8}, {"id": "n1", "gpus": 4}, {"id": "n2", "gpus": 4}]},
        "components": {"train": {"workers": 8, "gpus": 1}, "env": {"workers": 1, "gpus": 8}},
        "rules": rules,
    }
    text = placewright.export(placewright.plan(placewright.load_problem(problem)), "text")
    assert "nodes: train 2\n" in text
