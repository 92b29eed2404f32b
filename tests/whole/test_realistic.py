"""Jobs as people run them: does the plan look as one would draw it by hand? Values and properties, not one of many optima."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from differential import Answer
from oracle import plain_model

from placewright.params import SolveParams
from placewright.pipeline import plan
from placewright.verify import violations
from placewright_models.codec import load_problem
from placewright_models.plan import Plan

EXAMPLES = Path(__file__).parents[2] / "examples"


def planned(data: Any, **settings: Any) -> Plan:
    made = plan(load_problem(data), params=SolveParams(**settings))
    assert made.status == "optimal"
    assert violations(made.problem, made) == []
    return made


def agrees_with_plain_model(made: Plan) -> bool:
    found = plain_model.solve(made.problem)
    return Answer(found.status, found.goals) == Answer("optimal", {goal.name: goal.value for goal in made.goals})


def nodes_of(made: Plan, name: str) -> Counter[str]:
    return Counter(worker.node_id for worker in made.workers[name])


def domains_of(made: Plan, name: str) -> set[str | None]:
    return {made.problem.node_by_id[node].nvlink_domain for node in nodes_of(made, name)}


def rack(name: str, nodes: int, gpus: int = 8) -> dict[str, Any]:
    return {"id": f"{name}-{{}}", "count": nodes, "start": 0, "gpus": gpus, "nvlink_domain": name}


def test_train_of_five_nodes_lies_inside_the_rack_of_six() -> None:
    """Racks of 6, 3 and 2 nodes; the six one-node engines take what is left and do not pull the train apart."""
    made = planned(
        {
            "cluster": {"nodes": [rack("six", 6), rack("three", 3), rack("two", 2)]},
            "components": {"train": {"workers": 40, "gpus": 1}, "rollout": {"workers": 6, "gpus": 8}},
        }
    )
    assert domains_of(made, "train") == {"six"}
    assert len(nodes_of(made, "train")) == 5
    assert made.goal("domain_span").value == 1
    assert made.goal("node_span").value == 5
    assert made.goal("nodes_used").value == 11
    assert agrees_with_plain_model(made)


def test_rlightning_puts_env_beside_its_eval() -> None:
    made = planned(EXAMPLES / "rlightning-wbc-4x8.yaml")
    assert made.goal("traffic").value == 0
    assert nodes_of(made, "env") == nodes_of(made, "eval")
    used = Counter(
        (worker.node_id, index)
        for name in ("train", "eval", "env")
        for worker in made.workers[name]
        for start, end in worker.ranges
        for index in range(start, end + 1)
    )
    assert len(used) == 24 and set(used.values()) == {1}
    assert set(nodes_of(made, "buffer")) == set(nodes_of(made, "train"))


def test_env_follows_eval_also_where_eval_cannot_lie_on_one_node() -> None:
    """Three nodes with four free GPUs each: 6 eval and 6 env are split alike."""
    nodes = [{"id": f"n{i}", "gpus": 8, "unavailable_gpus": [4, 5, 6, 7]} for i in range(3)]
    components = {"eval": {"workers": 6, "gpus": 1}, "env": {"workers": 6, "gpus": 1}}
    made = planned({"cluster": {"nodes": nodes}, "components": components, "traffic": [{"between": ["eval", "env"]}]})
    assert made.goal("traffic").value == 0
    assert nodes_of(made, "env") == nodes_of(made, "eval") == Counter({"n0": 2, "n1": 2, "n2": 2})


def test_three_levels_above_the_node_in_one_problem() -> None:
    """Zone, block and rack: train in segments inside racks, engines inside a block, the critic's groups inside a zone."""
    nodes = [
        {
            "id": f"{zone}{block}{r}{i}",
            "gpus": 4,
            "nvlink_domain": f"{zone}{block}{r}",
            "labels": {"zone": zone, "block": f"{zone}{block}"},
        }
        for zone in "ab"
        for block in "kl"
        for r in "vw"
        for i in range(2)
    ]
    components = {
        "train": {"workers": 16, "gpus": 1, "segment_size": 2},
        "rollout": {"replicas": 2, "gpus_per_replica": 8, "group": {"within": "block"}},
        "critic": {"workers": 12, "gpus": 1, "group": {"workers": 4, "within": "zone"}},
    }
    data = {
        "cluster": {"levels": ["zone", "block"], "nodes": nodes},
        "components": components,
        "rules": {"separate_domains": [["train", "critic"]]},
    }
    made = planned(data)
    labels = {node["id"]: node["labels"] for node in nodes}
    for name, level, k in (("rollout", "block", 8), ("critic", "zone", 4)):
        for start in range(0, len(made.workers[name]), k):
            assert len({labels[worker.node_id][level] for worker in made.workers[name][start : start + k]}) == 1
    assert set(Counter(node[:3] for node in nodes_of(made, "train")).values()) == {2}
    assert not domains_of(made, "train") & domains_of(made, "critic")
    assert agrees_with_plain_model(made)


def test_two_domains_joint_segments_and_engines() -> None:
    """Two domains of 6 nodes x 4 GPUs, train 2 segments of 2 nodes, rollout 2 engines of 4 nodes: one split by domain works."""
    made = planned(
        {
            "cluster": {"nodes": [rack("a", 6, 4), rack("b", 6, 4)]},
            "components": {
                "train": {"workers": 16, "gpus": 1, "segment_size": 2},
                "rollout": {"replicas": 2, "gpus_per_replica": 16},
            },
        }
    )
    for name, each in (("train", 2), ("rollout", 4)):
        assert Counter(node[0] for node in nodes_of(made, name)) == {"a": each, "b": each}
    assert made.goal("domain_span").value == 2
    assert agrees_with_plain_model(made)


def test_engines_over_actors() -> None:
    """16 engines of 4 GPUs over 64 actors of one GPU: the same GPUs everywhere."""
    made = planned(
        {
            "cluster": {"nodes": [rack("r", 9)]},
            "components": {
                "actor": {"workers": 64, "gpus": 1},
                "rollout": {"workers": 16, "gpus": 4},
                "ref": {"workers": 64, "gpus": 1},
            },
            "rules": {"colocate": [["actor", "rollout"], ["actor", "ref"]]},
        }
    )
    gpus = {
        name: {(w.node_id, g) for w in made.workers[name] for a, b in w.ranges for g in range(a, b + 1)}
        for name in ("actor", "rollout", "ref")
    }
    assert gpus["actor"] == gpus["rollout"] == gpus["ref"]
    assert len(gpus["actor"]) == 64
    assert made.goal("nodes_used").value == 8


def test_whole_racks_stay_whole_for_others() -> None:
    """domain_capacity is best fit: a job of two nodes takes the small rack."""
    made = planned(
        {
            "cluster": {"nodes": [rack("large", 5), rack("small", 2), rack("middle", 3)]},
            "components": {"train": {"workers": 16, "gpus": 1}},
        }
    )
    assert domains_of(made, "train") == {"small"}
    assert made.goal("domain_capacity").value == 16


def test_cpu_only_helpers_go_where_no_gpu_is_lost() -> None:
    nodes = [rack("r", 2), {"id": "cpu", "gpus": 0, "cpus": 64}]
    made = planned({"cluster": {"nodes": nodes}, "components": {"train": {"workers": 8, "gpus": 1}, "driver": {"workers": 3}}})
    assert nodes_of(made, "driver") == {"cpu": 3}
    assert made.goal("gpu_nodes_used").value == 0


def test_goals_are_served_in_the_order_given() -> None:
    """Evenness first spreads the env over both nodes; nodes_used first keeps it on one."""
    nodes = [{"id": "a", "gpus": 4}, {"id": "b", "gpus": 4}]
    components = {"env": {"workers": 4, "gpus": 1}}
    even = planned({"cluster": {"nodes": nodes}, "components": components, "goals": ["evenness", "nodes_used"]})
    few = planned({"cluster": {"nodes": nodes}, "components": components, "goals": ["nodes_used", "evenness"]})
    assert [goal.value for goal in even.goals] == [8, 2]
    assert [goal.value for goal in few.goals] == [1, 16]


def test_defaults_by_kind() -> None:
    """Collective components have a span, replicas and helpers none; helpers are spread evenly."""
    nodes = [{"id": "a", "gpus": 8, "nvlink_domain": "r"}, {"id": "b", "gpus": 8, "nvlink_domain": "s"}]
    made = planned(
        {
            "cluster": {"nodes": nodes},
            "components": {
                "train": {"workers": 2, "gpus": 1},
                "rollout": {"workers": 4, "gpus": 1},
                "env": {"workers": 8, "gpus": 1},
            },
        }
    )
    assert made.goal("domain_span").value == made.goal("node_span").value == 1
    assert made.goal("nodes_used").value == 2
    assert sorted(nodes_of(made, "env").values()) == [4, 4]


def test_twelve_thousand_nodes() -> None:
    """Instance A of issue 2: 100,096 GPUs, four components with spans."""
    span = {"span_weight": 1}
    data = {
        "cluster": {
            "nodes": [{"id": "n{}", "count": 12_512, "start": 0, "gpus": 8, "nvlink_domain": "r{}", "nodes_per_domain": 16}]
        },
        "components": {
            "train": {"workers": 4_378, "gpus": 8, "segment_size": 2, **span},
            "rollout": {"workers": 8_758, "gpus": 4, **span},
            "reward": {"workers": 4_003, "gpus": 2, **span},
            "env": {"workers": 10_009, "gpus": 1, **span},
        },
        "goals": ["domain_span", "node_span", "nodes_used"],
    }
    made = plan(load_problem(data), params=SolveParams(time_limit=300.0))
    assert made.status == "optimal"
    assert made.goal("domain_span").value == made.goal("domain_span").bound == 690
    assert made.goal("node_span").value == made.goal("node_span").bound == 11_010
    assert {name: len(workers) for name, workers in made.workers.items()} == {
        "train": 4_378,
        "rollout": 8_758,
        "reward": 4_003,
        "env": 10_009,
    }
