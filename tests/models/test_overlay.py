"""Overlays, excluded names, and what other plans hold.

When to modify: when an overlay can set another property of a node.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from placewright_models.cluster import Node, Occupation
from placewright_models.codec import dump_yaml, load_problem, problem_to_dict
from placewright_models.errors import InvalidProblem
from placewright_models.plan import Idle, Plan, Worker

CLUSTER = {
    "nodes": [
        {"id": "n0", "gpus": 8, "cpus": 64, "memory": "1GiB", "nvlink_domain": "rack0", "unavailable_gpus": [7]},
        {"id": "n1", "gpus": 8, "cpus": 64, "nvlink_domain": "rack0"},
        {"id": "n2", "gpus": 8, "cpus": 64, "nvlink_domain": "rack1", "excluded": "drained"},
    ]
}


def nodes(**options: Any) -> dict[str, Node]:
    return load_problem({"cluster": CLUSTER}, **options).node_by_id


def refused(pattern: str, **options: Any) -> None:
    with pytest.raises(InvalidProblem, match=pattern):
        nodes(**options)


def a_plan(workers: dict[str, tuple[Worker, ...]]) -> Plan:
    job = {"train": {"workers": 2, "gpus": 2, "cpus": 1.5, "memory": "1KiB"}, "env": {"workers": 2, "cpus": 3}}
    problem = load_problem({"cluster": CLUSTER, "components": job})
    return Plan("optimal", "cp-sat", (), (), workers, Idle(), (), problem)


# Excluded names


def test_exclude_takes_nodes_and_domains() -> None:
    found = nodes(exclude=["n1", "rack1"])
    assert {name: node.excluded for name, node in found.items()} == {
        "n0": None,
        "n1": "excluded on request (n1)",
        "n2": "excluded on request (rack1)",
    }


def test_exclude_splits_at_commas() -> None:
    assert [node.excluded is None for node in nodes(exclude=["n0,rack1"]).values()] == [False, True, False]


def test_one_name_overlay_or_plan_need_not_be_in_a_list(tmp_path: Path) -> None:
    assert nodes(exclude="n1")["n1"].excluded is not None
    assert nodes(overlays={"nodes": {"n1": {"cpus_in_use": 1}}})["n1"].cpus_in_use == 1
    assert nodes(occupied=a_plan({"train": (Worker("n0", ((0, 1),)),)}))["n0"].occupied[0].gpus == (0, 1)


def test_exclude_refuses_absent_names() -> None:
    refused(
        r"exclude: rack9 is neither a node nor an NVLink domain of the cluster \(did you mean rack", exclude=["n0", "rack9"]
    )
    refused(r"5 is neither a node", exclude=[5])


# Overlays


def test_an_overlay_sets_properties_of_nodes_and_domains() -> None:
    overlay = {
        "domains": {"rack0": {"cpus_in_use": 4, "reserved_cpus": 2}},
        "nodes": {
            "n0": {"excluded": "ECC errors", "unavailable_gpus": [2], "cpus_in_use": 12.5, "memory_in_use": "1MiB"},
            "n2": {"excluded": False},
        },
    }
    found = nodes(overlays=[overlay])
    assert found["n0"].excluded == "ECC errors" and found["n2"].excluded is None
    assert found["n0"].unavailable_gpus == (2, 7), "broken GPUs add up"
    assert (found["n0"].cpus_in_use, found["n1"].cpus_in_use) == (Decimal("12.5"), 4), "a node wins over its domain"
    assert (found["n0"].reserved_cpus, found["n1"].reserved_cpus, found["n2"].reserved_cpus) == (2, 2, 0)
    assert found["n0"].memory_in_use == 2**20


def test_a_later_overlay_wins_and_exclude_wins_over_both(tmp_path: Path) -> None:
    first = tmp_path / "first.yaml"
    first.write_text(dump_yaml({"nodes": {"n1": {"excluded": "one", "cpus_in_use": 1}}}))
    second = tmp_path / "second.json"
    second.write_text(json.dumps({"nodes": {"n1": {"excluded": "two"}}}))
    found = nodes(overlays=[first, str(second)])["n1"]
    assert (found.excluded, found.cpus_in_use) == ("two", 1)
    assert nodes(overlays=[{"nodes": {"n1": {"excluded": False}}}], exclude=["n1"])["n1"].excluded == "excluded on request (n1)"


OVERLAY_FAULTS: list[tuple[Any, str]] = [
    ({"node": {}}, r"overlays\[0\]\.node: unknown key \(did you mean nodes\?\)"),
    ({"nodes": ["n0"]}, r"overlays\[0\]\.nodes: \['n0'\] is not a mapping"),
    ({"nodes": {"n9": {"excluded": "x"}}}, r"nodes\.n9: 'n9' is not a node of the cluster"),
    (
        {"domains": {"rack9": {"excluded": "x"}}},
        r"domains\.rack9: 'rack9' is not an NVLink domain of the cluster \(did you mean rack",
    ),
    ({"nodes": {"n0": {"exclude": "x"}}}, r"nodes\.n0\.exclude: unknown key \(did you mean excluded\?\)"),
    ({"nodes": {"n0": "x"}}, r"nodes\.n0: 'x' is not a mapping"),
    ({"nodes": {"n0": {"cpus_in_use": "4"}}}, r"nodes\.n0\.cpus_in_use: '4' is not a number"),
    ({"nodes": {"n0": {"cpus_in_use": 65}}}, r"nodes\.n0\.cpus_in_use: 65 of 64 CPUs"),
    ({"domains": {"rack0": {"reserved_cpus": 65}}}, r"domains\.rack0\.reserved_cpus: 65 of 64 CPUs"),
    ({"nodes": {"n0": {"memory_in_use": "2GiB"}}}, r"nodes\.n0\.memory_in_use"),
    ({"nodes": {"n0": {"unavailable_gpus": [8]}}}, r"nodes\.n0\.unavailable_gpus: index 8 is outside"),
    ({"nodes": {"n0": {"unavailable_gpus": [1, 1]}}}, r"the index 1 stands there twice"),
]


@pytest.mark.parametrize(("overlay", "pattern"), OVERLAY_FAULTS, ids=str)
def test_an_overlay_that_cannot_be_right(overlay: Any, pattern: str) -> None:
    refused(pattern, overlays=[overlay])


def test_an_overlay_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "health.yaml"
    path.write_text("nodes: {n9: {excluded: x}}\n")
    refused(r"health\.yaml\.nodes\.n9: 'n9' is not a node", overlays=[path])
    refused(r"gone\.yaml: there is no such file", overlays=["gone.yaml"])


# Other plans


def test_an_occupied_node_loses_what_the_other_plan_holds(tmp_path: Path) -> None:
    plan = a_plan(
        {
            "train": (Worker("n0", ((0, 1),)), Worker("n0", ((2, 3),))),
            "env": (Worker("n0", ()), Worker("n1", ())),
        }
    )
    path = tmp_path / "night-run.json"
    path.write_text(json.dumps(plan.to_dict()))
    found = nodes(occupied=[path])
    assert found["n0"].occupied == (Occupation("night-run", (0, 1, 2, 3), Decimal(6), 2048),)
    assert found["n1"].occupied == (Occupation("night-run", (), Decimal(3), 0),)
    assert found["n2"].occupied == ()
    assert found["n0"].runs == ((4, 6),) and found["n0"].free_cpu_units == 580_000
    assert found["n0"].free_memory == 2**30 - 2048
    assert nodes(occupied=[("mine", path)])["n1"].occupied[0].plan == "mine"
    assert [held.plan for held in nodes(occupied=[plan, ("other", plan)])["n1"].occupied] == ["plan 1", "other"]


def test_occupation_survives_the_round_trip() -> None:
    plan = a_plan({"train": (Worker("n0", ((0, 1),)), Worker("n1", ((2, 3),)))})
    problem = load_problem({"cluster": CLUSTER}, occupied=[plan])
    assert load_problem(problem_to_dict(problem, discovery_order=True)) == problem


def test_an_occupied_plan_that_does_not_belong_to_the_cluster() -> None:
    refused(
        r"occupied plan 1: the plan uses n7, which the cluster does not have", occupied=[a_plan({"train": (Worker("n7", ()),)})]
    )
    refused(r"node n0: index 8, 9 is outside a node of 8 GPUs", occupied=[a_plan({"train": (Worker("n0", ((8, 9),)),)})])
    refused(r"the plan places ref, which its problem does not have", occupied=[a_plan({"ref": (Worker("n0", ()),)})])


def test_an_occupied_file_that_is_no_plan(tmp_path: Path) -> None:
    path = tmp_path / "p.json"
    path.write_text("{}")
    refused(re.escape(str(path)) + r": invalid plan\n  format: is missing: this is not a plan", occupied=[path])


def test_what_is_laid_over_a_faulty_cluster_adds_no_faults() -> None:
    with pytest.raises(InvalidProblem) as caught:
        load_problem({"cluster": {"nodes": [{"id": "n0", "gpus": -1}, {"gpus": 1}]}}, exclude=["n1"])
    assert [fault.place for fault in caught.value.faults] == ["cluster.nodes[0].gpus", "cluster.nodes[1].id"]
