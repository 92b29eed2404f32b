"""Every way in which a problem cannot be right is refused, with its place, what is wrong, and what would be right.

One row per kind of fault; files that cannot be read at all are in test_invalid_files.py. When to modify: with every new
check in placewright_models/reading/.
"""

from __future__ import annotations

import datetime
import re
from typing import Any

import pytest

from placewright_models.codec import load_problem
from placewright_models.errors import Fault, InvalidProblem

NODES = [{"id": "n0", "gpus": 8, "nvlink_domain": "d0"}, {"id": "n1", "gpus": 8, "nvlink_domain": "d0"}]
ONE = {"workers": 1, "gpus": 1}
PAIR = {"a": ONE, "b": ONE}


def faults_of(data: Any, **options: Any) -> list[Fault]:
    with pytest.raises(InvalidProblem) as caught:
        load_problem(data, **options)
    assert str(caught.value)
    return list(caught.value.faults)


def check(data: Any, place: str, text: str) -> None:
    """There is a fault at this place that says this; the text is a pattern over what is wrong and what would be right."""
    faults = faults_of(data)
    assert any(fault.place == place and re.search(text, f"{fault.wrong} ({fault.right})") for fault in faults), faults
    assert len(faults) == 1, faults


# Nodes

ROW = {"id": "g{}", "count": 4, "gpus": 8}
NODE_FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"gpus": 8}, "id", "is missing"),
    ({"id": "", "gpus": 8}, "id", "the name is empty"),
    ({"id": "  "}, "id", "the name is empty"),
    ({"id": "x" * 1001}, "id", "1,001 characters .*at most 1000"),
    ({"id": 10**30}, "id", "is not text"),
    ({"id": 1.1}, "id", "1.1 is not text.*quotes"),
    ({"id": "a\nb"}, "id", "cannot be printed"),
    ({"id": "\ud800"}, "id", "cannot be printed"),
    ({"id": True}, "id", "true is a truth value"),
    ({"id": datetime.date(2024, 1, 1)}, "id", "is not text"),
    ({"id": "x", "gpuz": 8}, "gpuz", r"unknown key \(did you mean gpus\?\)"),
    ({"id": "x", "gpus": "8"}, "gpus", "'8' is not a whole number .*write 8 as a number, without quotes"),
    ({"id": "x", "gpus": 8.0}, "gpus", "write 8"),
    ({"id": "x", "gpus": True}, "gpus", "true is not a whole number"),
    ({"id": "x", "gpus": -1}, "gpus", "-1 is below"),
    ({"id": "x", "gpus": 10**9}, "gpus", "is above"),
    ({"id": "x", "gpus": None}, "gpus", "nothing is not a whole number"),
    ({"id": "x", "cpus": float("nan")}, "cpus", "nan is not a number"),
    ({"id": "x", "cpus": float("inf")}, "cpus", "inf is not a number"),
    ({"id": "x", "cpus": -0.5}, "cpus", "-0.5 is negative"),
    ({"id": "x", "cpus": "1e-4"}, "cpus", "reads that as text|as a number, without quotes"),
    ({"id": "x", "cpus": "many"}, "cpus", "'many' is not a number"),
    ({"id": "x", "cpus": 10**12}, "cpus", "too large"),
    ({"id": "x", "memory": "64GB"}, "memory", "KiB, MiB, GiB or TiB"),
    ({"id": "x", "memory": -1}, "memory", "negative"),
    ({"id": "x", "memory": 0.5}, "memory", "not a whole number of bytes"),
    ({"id": "x", "memory": "99999999TiB"}, "memory", "too large"),
    ({"id": "x", "memory": float("inf")}, "memory", "not an amount"),
    ({"id": "x", "memory": [1]}, "memory", "not an amount"),
    ({"id": "x", "cpus": 8, "cpus_in_use": 8.5}, "cpus_in_use", "8.5 of 8 CPUs .*at most 8"),
    ({"id": "x", "cpus": 8, "reserved_cpus": 9}, "reserved_cpus", "9 of 8 CPUs"),
    ({"id": "x", "memory": "1KiB", "memory_in_use": "2KiB"}, "memory_in_use", "2048 of 1024 bytes"),
    ({"id": "x", "gpus": 8, "unavailable_gpus": [8]}, "unavailable_gpus", "index 8 is outside a node of 8 GPUs .*0 to 7"),
    ({"id": "x", "unavailable_gpus": [0]}, "unavailable_gpus", "the node has no GPU"),
    ({"id": "x", "gpus": 8, "unavailable_gpus": [2, 2]}, "unavailable_gpus", "the index 2 stands there twice"),
    ({"id": "x", "gpus": 8, "unavailable_gpus": [-1]}, "unavailable_gpus", "-1 is below"),
    ({"id": "x", "gpus": 8, "unavailable_gpus": ["2"]}, "unavailable_gpus", "'2' is not a whole number"),
    ({"id": "x", "gpus": 8, "unavailable_gpus": 2}, "unavailable_gpus", "2 is not a list"),
    ({"id": "x", "topo_rank": 0}, "topo_rank", "0 is below"),
    ({"id": "x", "topo_rank": 1.5}, "topo_rank", "1.5 is not a whole number"),
    ({"id": "x", "labels": {"a": True}}, "labels", "label 'a' is true, which is not text .*quotes"),
    ({"id": "x", "labels": ["a"]}, "labels", "not a mapping of labels"),
    ({"id": "x", "head": "yes"}, "head", "neither true nor false"),
    ({"id": "x", "excluded": 5}, "excluded", "5 is not a reason"),
    ({"id": "x", "excluded": ""}, "excluded", "is not a reason"),
    ({"id": "x", "gpus": 2, "occupied": [{"plan": "p", "gpus": [2]}]}, "occupied[0].gpus", "index 2 is outside"),
    ({"id": "x", "gpus": 2, "occupied": [{"gpus": [0]}]}, "occupied", "does not name its plan"),
    ({"id": "x", "gpus": 2, "occupied": [{"plan": "p", "gpu": [0]}]}, "occupied[0].gpu", "did you mean gpus"),
    ({"id": "x", "gpus": 2, "occupied": {"plan": "p"}}, "occupied", "is not a list"),
    ({"id": "x", "start": 3}, "start", "only beside count"),
    ({"id": "x", "nodes_per_domain": 3}, "nodes_per_domain", "only beside count"),
    ({"id": "x{}"}, "id", "a pattern without count"),
    ({"id": "x", "nvlink_domain": "r{}"}, "nvlink_domain", "a pattern without count"),
    (ROW | {"id": "g"}, "id", "'g' has no {}"),
    (ROW | {"id": "g{}{}"}, "id", "exactly one {}"),
    (ROW | {"id": "g{0}"}, "id", "exactly one {}"),
    (ROW | {"id": "g{0.__class__}"}, "id", "exactly one {}"),
    (ROW | {"id": "g{:{}}"}, "id", "exactly one {}"),
    (ROW | {"id": "g{:999999999d}"}, "id", "exactly one {}"),
    (ROW | {"id": "g{:s}"}, "id", "exactly one {}"),
    (ROW | {"id": "g{!r}"}, "id", "exactly one {}"),
    (ROW | {"id": "g{}}}"}, "id", "exactly one {}"),
    (ROW | {"count": 0}, "count", "0 is below"),
    (ROW | {"count": "4"}, "count", "'4' is not a whole number"),
    (ROW | {"start": -1}, "start", "-1 is below"),
    (ROW | {"nodes_per_domain": 2}, "nodes_per_domain", "needs a numbered nvlink_domain"),
    (ROW | {"nvlink_domain": "r", "nodes_per_domain": 2}, "nodes_per_domain", "needs a numbered nvlink_domain"),
    (ROW | {"nvlink_domain": "r{}"}, "nvlink_domain", "add nodes_per_domain"),
    (ROW | {"nvlink_domain": "r{x}", "nodes_per_domain": 2}, "nvlink_domain", "exactly one {}"),
    (ROW | {"labels": {"block": "b{}"}}, "labels", "labels are not numbered"),
]


@pytest.mark.parametrize(("node", "field", "text"), NODE_FAULTS, ids=str)
def test_a_node_that_cannot_be_right(node: dict[str, Any], field: str, text: str) -> None:
    check({"cluster": {"nodes": [node]}}, f"cluster.nodes[0].{field}", text)


CLUSTER_FAULTS: list[tuple[Any, str, str]] = [
    (5, "cluster", "5 is not a mapping"),
    ({}, "cluster.nodes", "is missing"),
    ({"nodes": {"n0": {"gpus": 8}}}, "cluster.nodes", "is not a list"),
    ({"nodes": ["n0"]}, "cluster.nodes[0]", "'n0' is not a mapping"),
    ({"nodes": [], "node": []}, "cluster.node", r"unknown key \(did you mean nodes\?\)"),
    ({"nodes": [], "schedule_on_head": 1}, "cluster.schedule_on_head", "1 is neither true nor false"),
    ({"nodes": [], "levels": "zone"}, "cluster.levels", "'zone' is not a list"),
    ({"nodes": [], "levels": ["zone", "zone"]}, "cluster.levels", "zone stands there twice"),
    ({"nodes": [], "levels": ["cluster"]}, "cluster.levels[0]", "a level of every cluster"),
    ({"nodes": [], "levels": ["zone", "nvlink_domain"]}, "cluster.levels[1]", "a level of every cluster"),
    ({"nodes": [], "levels": ["node"]}, "cluster.levels[0]", "a level of every cluster"),
    ({"nodes": [*NODES, {"id": "n0"}]}, "cluster.nodes[2].id", r"n0 already is the id of another node \(cluster.nodes\[0\]\)"),
    ({"nodes": [*NODES, {"id": "n{}", "count": 3}]}, "cluster.nodes[2].id", "n0, n1 already are the id"),
    ({"nodes": [{"id": "g{}", "count": 2_000_001}]}, "cluster.nodes", "2,000,001 nodes .*at most 2,000,000"),
    ({"nodes": [{"id": "a{}", "count": 10**9}, {"id": "b{}", "count": 10**9}]}, "cluster.nodes", "2,000,000,000 nodes"),
    (
        {
            "levels": ["block"],
            "nodes": [
                {"id": "a", "nvlink_domain": "d", "labels": {"block": "b0"}},
                {"id": "b", "nvlink_domain": "d", "labels": {"block": "b1"}},
            ],
        },
        "cluster.nodes",
        r"nvlink_domain d lies in block b0 and in block b1 \(node b\)",
    ),
    (
        {
            "levels": ["zone", "block"],
            "nodes": [{"id": "a", "labels": {"zone": "z0", "block": "b"}}, {"id": "b", "labels": {"zone": "z1", "block": "b"}}],
        },
        "cluster.nodes",
        "block b lies in zone z0 and in zone z1",
    ),
]


@pytest.mark.parametrize(("cluster", "place", "text"), CLUSTER_FAULTS, ids=str)
def test_a_cluster_that_cannot_be_right(cluster: Any, place: str, text: str) -> None:
    check({"cluster": cluster}, place, text)


# Components

WHOLE = {"workers": 8, "gpus": 1}
COMPONENT_FAULTS: list[tuple[Any, str, str]] = [
    (8, "", "8 is not a mapping"),
    (None, "", "nothing is not a mapping"),
    ({}, ".workers", "is missing"),
    ({"gpus": 1}, ".workers", "is missing"),
    ({"wrokers": 8}, ".wrokers", r"unknown key \(did you mean workers\?\)"),
    ({"workers": "8"}, ".workers", "write 8 as a number, without quotes"),
    ({"workers": "all"}, ".workers", "a whole number, auto, or"),
    ({"workers": 8.0}, ".workers", "write 8"),
    ({"workers": True}, ".workers", "true is not a number of workers"),
    ({"workers": -1}, ".workers", "-1 is below"),
    ({"workers": 10**8}, ".workers", "is above"),
    ({"workers": {"min": 3, "max": 2}}, ".workers", "min 3 is above max 2"),
    ({"workers": {"max": 2}}, ".workers", "min is missing"),
    ({"workers": {"min": 1, "max": "2"}}, ".workers", "max: '2' is not a whole number"),
    ({"workers": {"min": 1, "maxx": 2}}, ".workers", r"unknown key 'maxx' \(did you mean max\?\)"),
    ({"workers": "auto"}, ".workers", "auto without per_node_of"),
    (WHOLE | {"gpus": 1.5}, ".gpus", "1.5 is above 1 and not whole .*1 or 2"),
    (WHOLE | {"gpus": 0.00001}, ".gpus", "a share of 0 units"),
    (WHOLE | {"gpus": -1}, ".gpus", "negative"),
    (WHOLE | {"gpus": "1"}, ".gpus", "write 1 as a number"),
    (WHOLE | {"gpus": float("nan")}, ".gpus", "nan is not a number"),
    (WHOLE | {"gpus": False}, ".gpus", "false is not a number"),
    (WHOLE | {"cpus": -1}, ".cpus", "negative"),
    (WHOLE | {"memory": "1 GB"}, ".memory", "KiB, MiB"),
    (WHOLE | {"gpu_share": 1.5}, ".gpu_share", "from 0.0001 to 1"),
    (WHOLE | {"gpu_share": 0}, ".gpu_share", "from 0.0001 to 1"),
    (WHOLE | {"gpu_share": 0.00009}, ".gpu_share", "from 0.0001 to 1"),
    ({"workers": 8, "gpu_share": 0.5}, ".gpu_share", "no GPU to share"),
    ({"workers": 8, "gpus": 0.5, "gpu_share": 0.5}, ".gpu_share", "gives its gpus, 0.5, as its share"),
    (WHOLE | {"kind": "colective"}, ".kind", "did you mean collective"),
    (WHOLE | {"spread": "evn"}, ".spread", "did you mean even"),
    (WHOLE | {"span_weight": -1}, ".span_weight", "below"),
    (WHOLE | {"span_weight": 1_000_001}, ".span_weight", "from 0 to 1000000"),
    (WHOLE | {"span_weight": 0.5}, ".span_weight", "not a whole number"),
    (WHOLE | {"priority": 1_000_001}, ".priority", "from 0 to 1000000"),
    (WHOLE | {"aligned": "true"}, ".aligned", "neither true nor false"),
    (WHOLE | {"accelerator": 1.5}, ".accelerator", "not text"),
    (WHOLE | {"labels": {"disk": None}}, ".labels", "label 'disk' is nothing"),
    (WHOLE | {"node_ids": ["n0", "n9"]}, ".node_ids", r"n9 is not a node of the cluster .*n0|n1"),
    (WHOLE | {"node_ids": "n0"}, ".node_ids", "is not a list"),
    (WHOLE | {"node_ids": []}, ".node_ids", "the list is empty"),
    (WHOLE | {"node_ids": ["n0", "n0"]}, ".node_ids", "n0 stands there twice"),
    (WHOLE | {"node_ids": ["n0"], "exclude_node_ids": ["n0"]}, ".node_ids", "excluded again"),
    (WHOLE | {"exclude_node_ids": ["x", "y"]}, ".exclude_node_ids", "x, y are not nodes"),
    (WHOLE | {"group": 4}, ".group", "4 is not a mapping"),
    (WHOLE | {"group": {}}, ".group.workers", "is missing"),
    (WHOLE | {"group": {"workers": 0}}, ".group.workers", "0 is below"),
    (WHOLE | {"group": {"workers": 3}}, ".group.workers", "8 workers do not make whole groups of 3 .*6 or 9"),
    ({"workers": {"min": 3, "max": 4}, "group": {"workers": 2}}, ".group.workers", "3 workers do not make"),
    ({"workers": {"min": 2, "max": 5}, "group": {"workers": 2}}, ".group.workers", "5 workers do not make"),
    (WHOLE | {"group": {"workers": 2, "within": "nvlink"}}, ".group.within", "nvlink is not a level .*nvlink_domain"),
    (WHOLE | {"group": {"workers": 2, "within": "zone"}}, ".group.within", "zone is not a level"),
    (WHOLE | {"group": {"workers": 2, "mode": "require"}}, ".group.mode", "did you mean required"),
    (WHOLE | {"group": {"workers": 2, "size": 2}}, ".group.size", "unknown key .*workers, within, mode"),
    (WHOLE | {"segment_size": 0}, ".segment_size", "0 is below"),
    (WHOLE | {"segment_size": 3}, ".segment_size", "8 workers do not make whole segments of 3 nodes"),
    ({"workers": 8, "segment_size": 2}, ".segment_size", "the workers have gpus 0"),
    ({"workers": 8, "gpus": 0.5, "segment_size": 2}, ".segment_size", "the workers have gpus 0.5"),
    (WHOLE | {"segment_size": 2, "segment_mode": "prefered"}, ".segment_mode", "did you mean preferred"),
    (WHOLE | {"segment_mode": "preferred"}, ".segment_mode", "only beside segment_size"),
    (WHOLE | {"segment_size": 2, "nodes": 3}, ".nodes", "3 nodes are no multiple of segment_size 2"),
    ({"per_node": [2, 2, 4], "gpus": 1, "segment_size": 2}, ".per_node", "3 nodes are no multiple"),
    (WHOLE | {"nodes": -1}, ".nodes", "below"),
    (WHOLE | {"nodes": 9}, ".nodes", "9 nodes cannot all host one of 8 workers"),
    (WHOLE | {"nodes": 0}, ".nodes", "0 nodes cannot host 8 workers"),
    (WHOLE | {"nodes": 3, "per_node": 2}, ".nodes", "3 nodes x 2 per node = 6, but there are 8 workers"),
    (WHOLE | {"per_node": 3}, ".per_node", "3 on each node never makes 8 workers"),
    (WHOLE | {"per_node": 0}, ".per_node", "0 is below"),
    (WHOLE | {"per_node": []}, ".per_node", "the list is empty"),
    (WHOLE | {"per_node": [4, 3]}, ".per_node", "sums to 7, but there are 8 workers"),
    (WHOLE | {"per_node": [4, "4"]}, ".per_node", "'4' is not a whole number"),
    (WHOLE | {"per_node": [4, 4], "nodes": 3}, ".nodes", "3, but per_node lists 2 nodes"),
    ({"workers": {"min": 4, "max": 5}, "per_node": 3}, ".per_node", "never makes 4 to 5 workers"),
    ({"replicas": 4}, ".replicas", "nothing says how wide"),
    ({"gpus_per_replica": 4}, ".gpus_per_replica", "only beside replicas"),
    ({"replicas": "4", "gpus_per_replica": 4}, ".replicas", "write 4 as a number"),
    ({"replicas": 4, "gpus_per_replica": 0}, ".gpus_per_replica", "a replica with 0 GPUs"),
    ({"replicas": 4, "gpus_per_replica": 2.5}, ".gpus_per_replica", "not whole"),
    ({"replicas": 4, "gpus_per_replica": 4, "workers": 4}, ".workers", "stands beside replicas"),
    ({"replicas": 4, "gpus_per_replica": 4, "gpus": 4}, ".gpus", "stands beside replicas"),
    (
        {"replicas": 4, "gpus_per_replica": 16, "group": {"workers": 8}},
        ".group.workers",
        "8, but a replica of 16 GPUs fits no node",
    ),
    ({"per_node_of": "a"}, ".per_node_of", "names the component itself"),
    ({"per_node_of": "trian"}, ".per_node_of", "trian is not a component"),
]


@pytest.mark.parametrize(("component", "field", "text"), COMPONENT_FAULTS, ids=str)
def test_a_component_that_cannot_be_right(component: Any, field: str, text: str) -> None:
    check({"cluster": {"nodes": NODES}, "components": {"a": component}}, f"components.a{field}", text)


JOB_FAULTS: list[tuple[Any, str, str]] = [
    ([ONE], "components", "is not a mapping"),
    ({"": ONE}, "components", "the name is empty"),
    ({1: ONE}, "components", "the name 1 is not text"),
    ({"buffer": {"workers": "auto"}}, "components.buffer.workers", "there is no train"),
    ({"a": {"per_node_of": "b"}, "b": {"per_node_of": "a"}}, "components.a.per_node_of", "in a circle: a, b, a"),
    ({"train": ONE, "b": {"per_node_of": "trian"}}, "components.b.per_node_of", "did you mean train"),
    ({"a": ONE, "b": {"per_node_of": "a", "per_node": 2}}, "components.b.per_node", "exactly one worker on each node"),
    ({"a": {"workers": 6_000_000}, "b": {"workers": 6_000_000}}, "components", "12,000,000 workers .*at most 10,000,000"),
    ({"a": {"replicas": 10**6, "gpus_per_replica": 100}}, "components", "100,000,000 workers"),
]


@pytest.mark.parametrize(("job", "place", "text"), JOB_FAULTS, ids=str)
def test_a_job_that_cannot_be_right(job: Any, place: str, text: str) -> None:
    check({"cluster": {"nodes": NODES}, "components": job}, place, text)


# Rules

RULE_FAULTS: list[tuple[Any, str, str]] = [
    (5, "rules", "5 is not a mapping"),
    ({"strateggy": "colocate"}, "rules.strateggy", "did you mean strategy"),
    ({"strategy": "disagregate"}, "rules.strategy", "did you mean disaggregate"),
    ({"env_strategy": "default"}, "rules.env_strategy", "default without strategy"),
    ({"strategy": "colocate", "env_strategy": "device_colocate"}, "rules.env_strategy", "did you mean device-colocate"),
    ({"pools": [["a", "b"]]}, "rules.pools", "is not a mapping"),
    ({"pools": {"p": ["a"]}}, "rules.pools", "b is in no pool"),
    ({"pools": {"p": ["a", "b", "c"]}}, "rules.pools.p", "c is not a component"),
    ({"pools": {"p": ["a", "b"], "q": ["a"]}}, "rules.pools.q", "a is also in p"),
    ({"pools": {"p": ["a", "b", "a"]}}, "rules.pools.p", "a is twice in it"),
    ({"pools": {"p": "a"}}, "rules.pools.p", "one name, a list of names"),
    ({"pools": {"": ["a", "b"]}}, "rules.pools.", "the name is empty"),
    ({"share_gpus": "a"}, "rules.share_gpus", "is not a list"),
    ({"share_gpus": ["a", ["a", "b"]]}, "rules.share_gpus[0]", r"list of lists such as \[\[a, b\]\]"),
    ({"share_gpus": [["a"]]}, "rules.share_gpus[0]", "names a only .*two different"),
    ({"share_gpus": [[]]}, "rules.share_gpus[0]", "names nobody"),
    ({"colocate": [["a", "a"]]}, "rules.colocate[0]", "names a only"),
    ({"separate_nodes": [["a", "b", "a"]]}, "rules.separate_nodes[0]", "names a twice"),
    ({"separate_domains": [["a"]]}, "rules.separate_domains[0]", "names a only"),
    ({"same_node": [[]]}, "rules.same_node[0]", "names nobody .*at least one component"),
    ({"same_domain": [["a", "bb"]]}, "rules.same_domain[0]", "bb is not a component .*b"),
    ({"share_gpus": [["a", "b", True]]}, "rules.share_gpus[0]", "true is a truth value"),
    (
        {"colocate": [["a", "b"]], "separate_nodes": [["a", "b"]]},
        "rules.separate_nodes[0]",
        r"rules.colocate\[0\] put them .*: a-b",
    ),
    ({"colocate": [["a", "b"]], "separate_domains": [["b", "a"]]}, "rules.separate_domains[0]", "b-a"),
    ({"same_node": [["a", "b"]], "separate_nodes": [["a", "b"]]}, "rules.separate_nodes[0]", r"rules.same_node\[0\] put them"),
    (
        {"same_node": [["a", "b"]], "separate_domains": [["a", "b"]]},
        "rules.separate_domains[0]",
        r"rules.same_node\[0\] put them",
    ),
    ({"same_domain": [["a", "b"]], "separate_domains": [["a", "b"]]}, "rules.separate_domains[0]", r"rules.same_domain\[0\]"),
    (
        {"strategy": "disaggregate", "pools": {"p": ["a"], "q": ["b"]}, "share_gpus": [["a", "b"]]},
        "rules.share_gpus[0]",
        "never shared between disaggregated pools: a is in p, b is in q",
    ),
    (
        {"strategy": "disaggregate", "pools": {"p": ["a"], "q": ["b"]}, "colocate": [["a", "b"]]},
        "rules.colocate[0]",
        "never shared between disaggregated pools",
    ),
]


@pytest.mark.parametrize(("rules", "place", "text"), RULE_FAULTS, ids=str)
def test_rules_that_cannot_be_right(rules: Any, place: str, text: str) -> None:
    check({"cluster": {"nodes": NODES}, "components": PAIR, "rules": rules}, place, text)


def test_a_contradiction_names_the_whole_chain() -> None:
    job = {"a": ONE, "b": ONE, "c": ONE, "d": {"per_node_of": "c"}, "e": ONE}
    rules = {"colocate": [["a", "b"], ["b", "c"]], "separate_nodes": [["a", "e", "d"]]}
    check(
        {"cluster": {"nodes": NODES}, "components": job, "rules": rules},
        "rules.separate_nodes[0]",
        r"a and d are kept apart, but rules.colocate\[0\], rules.colocate\[1\], components.d.per_node_of .*: a-b-c-d",
    )


def test_rules_that_only_look_like_a_contradiction_are_valid() -> None:
    job = {"a": ONE, "b": ONE, "c": ONE}
    rules = {"same_domain": [["a", "b"]], "separate_nodes": [["a", "b"], ["a", "c"]], "share_gpus": [["a", "c"]]}
    load_problem({"cluster": {"nodes": NODES}, "components": job, "rules": rules | {"same_node": [["b"]]}})


def test_colocate_needs_gpus() -> None:
    data = {"cluster": {"nodes": NODES}, "components": {"a": ONE, "b": {"workers": 1}}, "rules": {"colocate": [["a", "b"]]}}
    check(data, "rules.colocate[0]", "b has no GPU")


def test_sharing_across_the_default_pools_of_disaggregate() -> None:
    job = {"train": ONE, "rollout": ONE}
    rules = {"strategy": "disaggregate", "colocate": [["train", "rollout"]]}
    data = {"cluster": {"nodes": NODES}, "components": job, "rules": rules}
    check(data, "rules.colocate[0]", "train is in train_pool, rollout is in rollout_pool")


OTHER_FAULTS: list[tuple[dict[Any, Any], str, str]] = [
    ({"traffic": {"between": ["a", "b"]}}, "traffic", "is not a list"),
    ({"traffic": ["a"]}, "traffic[0]", "'a' is not a mapping"),
    ({"traffic": [{"weight": 1}]}, "traffic[0].between", "is missing"),
    ({"traffic": [{"between": ["a"]}]}, "traffic[0].between", "names a .*two different"),
    ({"traffic": [{"between": ["a", "a"]}]}, "traffic[0].between", "two different"),
    ({"traffic": [{"between": ["a", "b", "a"]}]}, "traffic[0].between", "two different"),
    ({"traffic": [{"between": ["a", "c"]}]}, "traffic[0].between", "c is not a component"),
    ({"traffic": [{"between": ["a", "b"], "weight": -1}]}, "traffic[0].weight", "below"),
    ({"traffic": [{"between": ["a", "b"], "weight": 10**7}]}, "traffic[0].weight", "from 0 to 1000000"),
    ({"traffic": [{"between": ["a", "b"], "wieght": 1}]}, "traffic[0].wieght", "did you mean weight"),
    ({"traffic": [{"between": ["a", "b"]}, {"between": ["b", "a"]}]}, "traffic[1].between", r"stand in traffic\[0\] already"),
    ({"goals": "node_span"}, "goals", "is not a list"),
    ({"goals": ["node_spam"]}, "goals[0]", "did you mean node_span"),
    ({"goals": [1]}, "goals[0]", "1 is not a goal"),
    ({"goals": ["traffic", "traffic"]}, "goals[1]", "stands there already"),
    ({"rule": {"strategy": "colocate"}}, "rule", r"unknown key \(did you mean rules\?\)"),
    ({"component": {}}, "component", r"unknown key \(did you mean components\?\)"),
    ({7: 1}, "7", "unknown key"),
]


@pytest.mark.parametrize(("sections", "place", "text"), OTHER_FAULTS, ids=str)
def test_sections_that_cannot_be_right(sections: dict[Any, Any], place: str, text: str) -> None:
    check({"cluster": {"nodes": NODES}, "components": PAIR, **sections}, place, text)


def test_a_goal_that_could_pass_2_to_the_62() -> None:
    job = {"a": {"workers": 4_999_999}, "b": {"workers": 4_999_998}}
    traffic = [{"between": ["a", "b"], "weight": 10**6}]
    data = {"cluster": {"nodes": NODES}, "components": job, "traffic": traffic}
    check(data, "traffic", "traffic could reach 49,999,970,000,004,000,000, beyond 2.62 .*smaller weights")
    load_problem(data | {"goals": ["node_span"]})


def test_a_misspelt_key_is_not_missing_as_well() -> None:
    data = {"cluster": {"node": NODES}, "component": PAIR, "rules": {"share_gpus": [["a", "b"]]}}
    assert [fault.place for fault in faults_of(data)] == ["component", "cluster.node"]
    check({"cluster": {"nodes": [{"idd": "n0"}]}}, "cluster.nodes[0].idd", "did you mean id")


def test_the_cluster_is_given_once() -> None:
    check({"components": PAIR}, "cluster", "is missing")
    assert faults_of({"cluster": {"nodes": NODES}}, cluster={"nodes": NODES})[0].wrong.startswith("is given twice")
    faults = faults_of({"components": PAIR}, cluster={"cluster": {"nodes": NODES}, "components": {}})
    assert [fault.place for fault in faults] == ["components"]


def test_all_faults_are_told_at_once() -> None:
    """Faults of shape and faults between fields, of every section, in one go; and none that only follows from another."""
    data = {
        "cluster": {"nodes": [*NODES, {"id": "n0", "gpus": "8"}, {"id": "bad", "gpus": -1}]},
        "components": {
            "a": {"workers": 7, "gpus": 1.5, "group": {"workers": 2, "within": "nod", "mod": "x"}},
            "b": {"workers": True, "node_ids": ["n1", "bad", "gone"], "nodes": 3},
        },
        "rules": {"share_gpus": [["a", "bb"], "a", ["a"]], "strategy": "x", "pools": {"p": 5, "q": ["a", "zz"]}},
        "traffic": [{"between": ["a", "q"], "weight": "1"}],
        "goals": ["nope"],
        "extra": 1,
    }
    assert [fault.place for fault in faults_of(data)] == [
        "extra",
        "cluster.nodes[2].gpus",
        "cluster.nodes[3].gpus",
        "cluster.nodes[2].id",
        "components.a.gpus",
        "components.a.group.mod",
        "components.b.workers",
        "components.a.group.within",
        "components.a.group.workers",
        "rules.strategy",
        "rules.pools.p",
        "rules.share_gpus[1]",
        "rules.pools.q",
        "rules.share_gpus[0]",
        "rules.share_gpus[2]",
        "traffic[0].weight",
        "traffic[0].between",
        "goals[0]",
    ]


def test_what_another_cluster_would_cure_is_not_invalid() -> None:
    """Infeasible is the solver's answer, not a fault of the input."""
    job = {
        "wide": {"workers": 1, "gpus": 64},
        "other": {"workers": 1, "gpus": 1, "accelerator": "B300", "labels": {"disk": "none"}},
        "many": {"workers": 1000, "gpus": 8, "nodes": 500, "per_node": 2},
        "nobody": {"workers": 0},
    }
    load_problem({"cluster": {"nodes": NODES}, "components": job})
