"""Exact physical GPUs on an 8-GPU node, a 4-GPU node and one without: gaps, other starts, other jobs, shares, random plans."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from conftest import free_now, settled, soon_free
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from planhelp import found, make_plan, one_each, see_from_actors, somebody_holds

from placewright.apply import AppliedPlan, apply, rayapi
from placewright_models.errors import PlanMismatch

NODES = {"n0": 8, "n1": 4, "c0": 0}


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., Any]) -> Any:
    return start_cluster(("n0", 8, 16), ("n1", 4, 16), ("c0", 0, 8))


def planned(workers: Any) -> dict[str, list[tuple[str, list[int]]]]:
    return {name: [(node, sorted(ids)) for node, ids in placed] for name, placed in workers.items()}


CASES = {
    "everything, in order": {"train": one_each("n0", range(8)) + one_each("n1", range(4))},
    "a gap": {"train": one_each("n0", [0, 1]), "eval": one_each("n0", [4, 5])},
    "starts above zero": {"train": one_each("n0", [4, 5, 6, 7])},
    "ranks against the ids": {"train": one_each("n1", [3, 2, 1, 0]) + one_each("n0", [6, 5])},
    "nodes interleaved": {"train": [("n0", [1]), ("n1", [1]), ("n0", [3]), ("n1", [2])]},
    "workers of several GPUs": {"rollout": [("n0", [2, 3]), ("n0", [4, 5]), ("n1", [2, 3])]},
    "a node without GPU": {"train": one_each("n0", [7]), "buffer": [("c0", []), ("n0", [])]},
}


@pytest.mark.parametrize("name", CASES)
def test_every_worker_has_the_planned_gpus(name: str, nothing_left: None) -> None:
    with apply(make_plan(NODES, CASES[name])) as applied:
        assert found(applied) == planned(CASES[name])


def test_actors_see_what_was_read_back(nothing_left: None) -> None:
    workers = {"train": one_each("n0", [5, 3]), "rollout": [("n1", [1, 2]), ("n0", [6, 7])], "buffer": [("c0", [])]}
    with apply(make_plan(NODES, workers, train={"cpus": "0.5"}, buffer={"cpus": 2, "memory": 2**20})) as applied:
        assert see_from_actors(applied) == planned(workers)
        options = applied.options("train", 0)
        assert (options["num_cpus"], options["num_gpus"]) == (0.5, 1)
        assert applied.options("buffer", 0)["memory"] == 2**20
        assert applied.options("rollout", 0)["num_gpus"] == 2


def test_actor_checks_itself(nothing_left: None) -> None:
    import ray

    class Own:
        def check(self, worker: Any) -> str:
            try:
                worker.check_here()
            except PlanMismatch as error:
                return str(error)
            return "right"

    with apply(make_plan(NODES, {"train": one_each("n0", [6]) + one_each("n1", [1])})) as applied:
        actor = ray.remote(Own).options(**applied.options("train", 0)).remote()
        assert ray.get(actor.check.remote(applied.worker("train", 0))) == "right"
        wrong = ray.get(actor.check.remote(applied.worker("train", 1)))
        assert "sees GPUs 6, not 1" in wrong and "not on n1" in wrong


def test_bundles_of_one_gpu_on_request(nothing_left: None) -> None:
    workers = {"rollout": [("n0", [2, 3]), ("n0", [4, 5])]}
    with apply(make_plan(NODES, workers, rollout={"cpus": 3}), bundles="gpu") as applied:
        assert found(applied) == planned(workers)
        group = applied.placement_groups["global_pool"]
        assert [bundle["GPU"] for bundle in group.bundle_specs] == [1, 1, 1, 1]
        assert applied.worker("rollout", 1).bundles == (2, 3)
        with pytest.raises(ValueError, match="2 bundles of one GPU"):
            applied.options("rollout", 1)
        assert applied.options("rollout", 1, gpu=1)["scheduling_strategy"].placement_group_bundle_index == 3


class TestSomebodyElse:
    """Another job holds some GPUs of the node."""

    def test_holes_are_planned_around(self, nothing_left: None) -> None:
        workers = {"train": one_each("n0", [0, 1, 3, 4]), "rollout": [("n0", [6, 7])]}
        with somebody_holds("n0", [2, 5]), apply(make_plan(NODES, workers)) as applied:
            assert found(applied) == planned(workers)

    def test_free_gpus_only_in_part_of_the_plan(self, nothing_left: None) -> None:
        # FC-08 b: the second job on the node never sees a GPU of the first.
        workers = {"train": one_each("n0", [4, 5]), "rollout": [("n0", [6, 7])]}
        with somebody_holds("n0", [0, 1, 2, 3]), apply(make_plan(NODES, workers)) as applied:
            assert found(applied) == planned(workers)
            assert min(gpu for workers in applied.workers.values() for worker in workers for gpu in worker.gpu_ids) == 4

    def test_a_wanted_id_is_taken(self, nothing_left: None) -> None:
        with somebody_holds("n0", [2, 5]), pytest.raises(PlanMismatch) as caught:
            apply(make_plan(NODES, {"train": one_each("n0", [1, 2, 3]) + one_each("n1", [0])}))
        assert caught.value.differences == ("node n0: GPU 2 is held by somebody else; free are 0-1, 3-4, 6-7",)

    def test_any_gpu_of_the_node_will_do(self, nothing_left: None) -> None:
        with (
            somebody_holds("n0", [2, 5]),
            apply(make_plan(NODES, {"train": one_each("n0", [1, 2, 3])}), exact=False) as applied,
        ):
            assert found(applied) == {"train": one_each("n0", [0, 1, 3])}
            assert [worker.planned_gpus for worker in applied.ranks("train")] == [(1,), (2,), (3,)]

    def test_taking_and_releasing_all_the_time(self, cluster: Any) -> None:
        """The outcome is the planned ids or an explicit conflict, never other ids; and nothing of ours stays."""
        workers = {"train": one_each("n1", [1, 3])}
        script = (
            "import ray, sys, time, random\n"
            "from ray.util.placement_group import placement_group, remove_placement_group\n"
            f"ray.init(address={cluster.address!r}, log_to_driver=False, logging_level='ERROR')\n"
            "node = next(n['NodeID'] for n in ray.nodes() if n['NodeName'] == 'n1')\n"
            "print('up', flush=True)\n"
            "while True:\n"
            "    count = random.randint(1, 2)\n"
            "    group = placement_group([{'GPU': 1}] * count, bundle_label_selector=[{'ray.io/node-id': node}] * count)\n"
            "    group.wait(1)\n"
            "    time.sleep(random.random() * 0.1)\n"
            "    remove_placement_group(group)\n"
            "    time.sleep(random.random() * 0.1)\n"
        )
        job = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        outcomes = []
        try:
            assert job.stdout is not None and job.stdout.readline() == "up\n"
            for _ in range(8):
                try:
                    with apply(make_plan(NODES, workers), timeout=30) as applied:
                        assert found(applied) == planned(workers)
                        outcomes.append("exact")
                except PlanMismatch as error:
                    outcomes.append(error.differences[0])
        finally:
            job.kill()
            job.wait()
            assert job.stdout is not None
            job.stdout.close()
        print(outcomes)
        assert "exact" in outcomes
        assert rayapi.groups_by_prefix("placewright/") == []


class TestShares:
    """Several workers on one GPU."""

    def test_given_shares(self, nothing_left: None) -> None:
        # FC-18: 0.7 + 0.25 + 0.05 fill a GPU exactly.
        gpus = [("n0", [6]), ("n0", [7])]
        workers = {"train": gpus, "rollout": gpus, "reward": gpus}
        plan = make_plan(
            NODES, workers, train={"gpu_share": "0.7"}, rollout={"gpu_share": "0.25"}, reward={"gpu_share": "0.05", "cpus": 1}
        )
        with apply(plan) as applied:
            assert see_from_actors(applied) == planned(workers)
            assert [applied.options(name, 0)["num_gpus"] for name in workers] == [0.7, 0.25, 0.05]

    def test_equal_parts_of_what_is_left(self, nothing_left: None) -> None:
        gpu = [("n1", [2])]
        plan = make_plan(NODES, {"train": gpu, "rollout": gpu, "eval": gpu, "reward": gpu}, reward={"gpu_share": "0.1"})
        with apply(plan) as applied:
            assert [applied.options(name, 0)["num_gpus"] for name in ("train", "rollout", "eval", "reward")] == [
                0.3,
                0.3,
                0.3,
                0.1,
            ]
            assert see_from_actors(applied)["eval"] == [("n1", [2])]

    def test_small_fractions(self, nothing_left: None) -> None:
        # FC-17: five workers of 0.18 on a GPU; d: seven of 1/7 on one.
        workers = {"env": [("n1", [3])] * 5}
        with apply(make_plan(NODES, workers, env={"gpus": "0.18"})) as applied:
            assert see_from_actors(applied) == planned(workers)
        with apply(make_plan(NODES, {"env": [("n1", [0])] * 7}, env={"gpus": repr(1 / 7)})) as applied:
            assert applied.options("env", 6)["num_gpus"] == 0.1428
            assert see_from_actors(applied) == {"env": [("n1", [0])] * 7}

    def test_ten_of_ten_start(self, nothing_left: None) -> None:
        # FC-16 c: left to Ray, two of ten workers of 0.6 stay pending; each in its own bundle, all start.
        workers = {"eval": one_each("n0", range(8)) + one_each("n1", range(2))}
        with apply(make_plan(NODES, workers, eval={"gpus": "0.6"})) as applied:
            assert see_from_actors(applied) == planned(workers)

    def test_a_shared_worker_of_several_gpus_lies_on_several_bundles(self, nothing_left: None) -> None:
        workers = {"train": one_each("n1", [0, 1]), "rollout": [("n1", [0, 1])]}
        with apply(make_plan(NODES, workers, rollout={"gpu_share": "0.4"})) as applied:
            assert applied.worker("rollout", 0).bundles == (0, 1)
            assert applied.options("rollout", 0, gpu=1)["num_gpus"] == 0.4
            assert applied.options("train", 1)["num_gpus"] == 0.6


def test_gap_field_case(nothing_left: None) -> None:
    """FC-15: train 0-1, eval 4-5 and a buffer: every index exists, every bundle is right, the ids are read back."""
    workers = {"train": one_each("n0", [0, 1]), "eval": one_each("n0", [4, 5]), "buffer": [("n0", [])]}
    with apply(make_plan(NODES, workers, buffer={"cpus": 1}), layout="node") as applied:
        (group,) = applied.placement_groups.values()
        for name in workers:
            for worker in applied.ranks(name):
                assert worker.bundle < group.bundle_count
                assert group.bundle_specs[worker.bundle].get("GPU", 0) == len(worker.planned_gpus)
        assert found(applied)["eval"] == one_each("n0", [4, 5])


def test_train_and_rollout_on_one_node(nothing_left: None) -> None:
    """FC-08 a: disjoint sets, together 0-7."""
    workers = {"train": one_each("n0", [0, 1]), "rollout": one_each("n0", range(2, 8))}
    with apply(make_plan(NODES, workers, pools={"train_pool": ["train"], "rollout_pool": ["rollout"]})) as applied:
        assert found(applied) == planned(workers)
        assert set(applied.placement_groups) == {"train_pool", "rollout_pool"}


def test_pools_in_another_order_on_each_node(nothing_left: None) -> None:
    workers = {
        "train": one_each("n0", [2, 3]) + one_each("n1", [0, 1]),
        "rollout": one_each("n0", [0, 1]) + one_each("n1", [2, 3]),
    }
    with apply(make_plan(NODES, workers), layout="component") as applied:
        assert found(applied) == planned(workers)
        assert set(applied.placement_groups) == {"train", "rollout"}


def test_only_what_is_planned_is_reserved(nothing_left: None) -> None:
    """FC-31 b: two workers reserve two GPUs, on one node."""
    before = settled()
    with apply(make_plan(NODES, {"train": one_each("n0", [0, 1])})):
        taken = [before[node]["GPU"] - free["GPU"] for node, free in free_now().items()]
        assert sorted(taken) == [0, 0, 0, 2]


class TestFallback:
    """Ray before 2.49 can pin by ``node:<ip>`` only; the way is the same."""

    @pytest.fixture(autouse=True)
    def _old_ray(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(rayapi, "has_label_selector", lambda: False)

    @pytest.mark.parametrize("name", ["a gap", "ranks against the ids", "workers of several GPUs", "a node without GPU"])
    def test_exact_by_ip(self, name: str, nothing_left: None) -> None:
        with apply(make_plan(NODES, CASES[name])) as applied:
            assert found(applied) == planned(CASES[name])


def test_two_plans_side_by_side(nothing_left: None) -> None:
    first = {"train": one_each("n0", [0, 1, 2])}
    second = {"train": one_each("n0", [3, 7]) + one_each("n1", [1])}
    with apply(make_plan(NODES, first)) as one, apply(make_plan(NODES, second)) as two:
        assert (found(one), found(two)) == (planned(first), planned(second))


def test_of_two_plans_from_one_view_the_second_is_refused(nothing_left: None) -> None:
    """FC-28: never half-placed, never waiting for what the first one has."""
    first = make_plan(NODES, {"a": [("n0", [0, 1, 2, 3, 4, 5, 6, 7])]})
    second = make_plan(NODES, {"b": [("n1", [0, 1, 2, 3]), ("n0", [0, 1, 2, 3])]})
    with apply(first):
        started = time.monotonic()
        with pytest.raises(PlanMismatch) as caught:
            apply(second)
        assert time.monotonic() - started < 2
        assert caught.value.differences == (
            "node n0 has fewer free GPUs than the plan takes: free 0 of 8, the plan takes 4;"
            " 8 were available when it was planned",
        )


@st.composite
def random_workers(draw: st.DrawFn) -> dict[str, list[tuple[str, list[int]]]]:
    """Components of one- and two-GPU workers on drawn GPUs of both nodes, in drawn order, and workers without GPU."""
    pairs, singles = [], []
    for node, gpus in (("n0", 8), ("n1", 4)):
        free = draw(st.sets(st.integers(0, gpus - 1), max_size=5))
        while free:
            low = min(free)
            wide = low + 1 in free and draw(st.booleans())
            (pairs if wide else singles).append((node, [low, low + 1] if wide else [low]))
            free -= {low, low + 1} if wide else {low}
    singles = draw(st.permutations(singles))
    cut = draw(st.integers(0, len(singles)))
    workers = {"train": singles[:cut], "eval": singles[cut:], "rollout": draw(st.permutations(pairs))}
    workers["buffer"] = [(draw(st.sampled_from(["n0", "n1", "c0"])), []) for _ in range(draw(st.integers(0, 2)))]
    return {name: placed for name, placed in workers.items() if placed}


@pytest.mark.timeout(400)
@settings(
    max_examples=int(os.environ.get("PLACEWRIGHT_RANDOM_PLANS", "100")),
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    workers=random_workers(),
    layout=st.sampled_from(["pool", "node", "component"]),
    bundles=st.sampled_from(["auto", "gpu"]),
    cpus=st.sampled_from([0, 1, Decimal("0.25")]),
)
def test_random_plans(cluster: Any, workers: Any, layout: str, bundles: str, cpus: Any) -> None:
    if not workers:
        return
    plan = make_plan(NODES, workers, **{name: {"cpus": cpus} for name in workers})
    before = settled()
    with apply(plan, layout=layout, bundles=bundles) as applied:
        assert isinstance(applied, AppliedPlan)
        assert found(applied) == planned(workers)
        assert all(row.state == "ok" for row in applied.health())
    assert soon_free(before)
