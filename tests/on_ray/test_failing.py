"""Uneven nodes; plans that cannot stand: full, short, gone, infeasible, late, interrupted; dead nodes. Nothing ever stays."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from conftest import free_now, settled, soon_free
from planhelp import found, make_plan, one_each, somebody_holds

from placewright.apply import ApplyTimeout, apply, exact, rayapi, run
from placewright.apply.groups import MadeGroup
from placewright.apply.view import live_nodes
from placewright_models.cluster import Node
from placewright_models.errors import PlanMismatch

NODES = {"big": 4, "small": 2}


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., Any]) -> Any:
    return start_cluster(("big", 4, 8), ("small", 2, 4))


def test_uneven_nodes(nothing_left: None) -> None:
    """FC-01: six workers on 4 + 2."""
    workers = {"train": one_each("big", range(4)) + one_each("small", range(2))}
    with apply(make_plan(NODES, workers)) as applied:
        assert found(applied) == workers
        table = [(worker.rank, worker.local_rank, worker.local_world_size) for worker in applied.ranks("train")]
        assert table == [(0, 0, 4), (1, 1, 4), (2, 2, 4), (3, 3, 4), (4, 0, 2), (5, 1, 2)]


class TestRefusedBeforeAnythingIsMade:
    def test_gpus_in_use(self, nothing_left: None) -> None:
        # FC-05
        with somebody_holds("big", [0]), pytest.raises(PlanMismatch, match="free 3 of 4, the plan takes 4"):
            apply(make_plan(NODES, {"train": one_each("big", range(4))}))
        with somebody_holds("big", [0, 1, 2, 3]), pytest.raises(PlanMismatch, match=r"node big .* free 0 of 4"):
            apply(make_plan(NODES, {"train": one_each("big", [2])}))

    def test_cpu_shortage_is_called_one(self, nothing_left: None) -> None:
        plan = make_plan(
            NODES, {"train": one_each("small", range(2)), "env": [("small", [])] * 3}, train={"cpus": 1}, env={"cpus": 1}
        )
        with pytest.raises(PlanMismatch) as caught:
            apply(plan)
        assert caught.value.differences == ("node small is short of CPUs: the plan takes 5, free 4 of 4",)
        assert "GPU" not in str(caught.value)

    def test_memory_shortage(self, nothing_left: None) -> None:
        with pytest.raises(PlanMismatch, match="node small is short of memory: the plan takes 1 TiB"):
            apply(make_plan(NODES, {"env": [("small", [])]}, env={"memory": 2**40}))

    def test_node_smaller_than_planned(self, nothing_left: None) -> None:
        with pytest.raises(PlanMismatch, match="node big is smaller than when it was planned: it has 4 GPUs, the plan has 8"):
            apply(make_plan({"big": 8}, {"train": one_each("big", [0])}))

    def test_node_that_never_was(self, nothing_left: None) -> None:
        with pytest.raises(
            PlanMismatch, match=r"node other \(ip 10.1.1.1\) is gone: no live Ray node has that .*\(NodeName big"
        ):
            apply(make_plan([Node("other", 4, ip="10.1.1.1")], {"train": one_each("other", [0])}))

    def test_several_nodes_of_that_host_name(self, nothing_left: None) -> None:
        host = live_nodes()[0].host
        with pytest.raises(PlanMismatch, match=f"node {host} could be any of 3 live nodes"):
            apply(make_plan([Node(host, 4)], {"train": one_each(host, [0])}))

    def test_what_is_recorded_beside_a_shared_host_name_decides(self, nothing_left: None) -> None:
        host = live_nodes()[0].host
        with apply(make_plan([Node(host, 4, node_name="big")], {"train": one_each(host, [3])})) as applied:
            assert applied.worker("train", 0).gpu_ids == (3,)

    def test_known_by_ip(self, nothing_left: None) -> None:
        with apply(make_plan([Node("whatever", 2, ip="127.0.0.3")], {"train": one_each("whatever", [1])})) as applied:
            assert applied.worker("train", 0).ip == "127.0.0.3"

    def test_two_planned_nodes_are_one(self, nothing_left: None) -> None:
        nodes = [Node("big", 4), Node("twin", 4, ip="127.0.0.2")]
        with pytest.raises(PlanMismatch, match="nodes big and twin of the plan are one live node"):
            apply(make_plan(nodes, {"train": one_each("big", [0]) + one_each("twin", [1])}))


class TestWaiting:
    def test_infeasible_is_noticed_at_once(self, monkeypatch: pytest.MonkeyPatch, nothing_left: None) -> None:
        """FC-03: a bundle that fits nowhere; Ray's own group would wait for ever."""
        monkeypatch.setattr(run, "check_room", lambda *_: None)
        started = time.monotonic()
        with pytest.raises(PlanMismatch, match="node small has 2 GPU, one bundle needs 4"):
            apply(make_plan({"small": 4}, {"rollout": [("small", [0, 1, 2, 3])]}), timeout=60)
        assert time.monotonic() - started < 5

    def test_timeout_says_what_is_short(self, monkeypatch: pytest.MonkeyPatch, nothing_left: None) -> None:
        monkeypatch.setattr(run, "check_room", lambda *_: None)
        plan = make_plan(NODES, {"train": one_each("big", [0, 1, 2]) + one_each("small", [0])})
        with somebody_holds("big", [1, 2]), pytest.raises(ApplyTimeout) as caught:
            apply(plan, timeout=1.5)
        error = caught.value
        assert error.states == {"global_pool": "PENDING / NO_RESOURCES"}
        assert (error.nodes["big"].wanted_gpus, error.nodes["big"].free_gpus) == (3, 2)
        assert error.short == ("node big has fewer free GPUs than the plan takes: free 2 of 4, the plan takes 3",)
        assert 1.5 <= error.waited_s < 6
        assert isinstance(error, TimeoutError)

    def test_parts_of_gpus_are_not_a_gpu(self, nothing_left: None) -> None:
        """2.2 GPUs are free, but one as a whole: the sum passes, the group waits, and time runs out with Ray's state."""
        import ray
        from ray.util.placement_group import placement_group, remove_placement_group

        node = next(node for node in live_nodes() if node.name == "big")
        pin = [{rayapi.NODE_ID_LABEL: node.ray_id}]
        parts = [placement_group([{"GPU": 0.6}], bundle_label_selector=pin) for _ in range(3)]
        ray.get([group.ready() for group in parts], timeout=20)
        with pytest.raises(ApplyTimeout) as caught:
            apply(make_plan(NODES, {"train": one_each("big", [0, 1])}), timeout=1)
        assert caught.value.nodes["big"].free_gpus == pytest.approx(2.2)
        assert caught.value.short == ("node big: 2.2 GPUs are free in sum, but fewer than 2 as a whole",)
        for group in parts:
            remove_placement_group(group)
        while next(node for node in live_nodes() if node.name == "big").free_gpus < 4:
            time.sleep(0.02)

    @pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
    def test_interrupted_half_way(
        self, error: type[BaseException], monkeypatch: pytest.MonkeyPatch, nothing_left: None
    ) -> None:
        def stop(*_: object) -> None:
            raise error

        monkeypatch.setattr(exact, "probe", stop)
        before = settled()
        with pytest.raises(error):
            apply(make_plan(NODES, {"train": one_each("big", range(4))}))
        assert soon_free(before)

    def test_removed_while_still_waiting(self, monkeypatch: pytest.MonkeyPatch, nothing_left: None) -> None:
        """A group is removed only once it is settled; twenty at once leak nothing."""
        from placewright.apply.bundles import Bundle
        from placewright.apply.groups import Ledger

        big = next(node for node in live_nodes() if node.name == "big")
        for _ in range(20):
            ledger = Ledger("placewright/leak/")
            for _ in range(3):
                ledger.create("g", [Bundle("big", (0,), 0, 0, ())] * 2, {"big": big})
            ledger.remove_all()
        assert not ledger.open


class TestLettingGo:
    def test_shutdown_twice_and_health_after(self, nothing_left: None) -> None:
        before = settled()
        applied = apply(make_plan(NODES, {"train": one_each("big", range(2))}, train={"cpus": 1}))
        assert [row.state for row in applied.health()] == ["ok", "ok"]
        assert free_now() != before
        applied.shutdown()
        assert soon_free(before)
        applied.shutdown()
        assert {row.state for row in applied.health()} == {"lost"}

    def test_an_exception_in_the_block(self, nothing_left: None) -> None:
        before = settled()
        with pytest.raises(ZeroDivisionError), apply(make_plan(NODES, {"train": one_each("big", range(2))})):
            _ = 1 / 0
        assert soon_free(before)

    def test_actors_go_with_it(self, nothing_left: None) -> None:
        import ray

        class Worker:
            def wait(self) -> None:
                time.sleep(60)

        with apply(make_plan(NODES, {"train": one_each("big", [1])}, train={"cpus": 1})) as applied:
            actor = ray.remote(Worker).options(**applied.options("train", 0)).remote()
            waiting = actor.wait.remote()
            time.sleep(0.2)
        with pytest.raises(ray.exceptions.RayError):
            ray.get(waiting, timeout=20)


class TestAddresses:
    """FC-31, FC-32: rank table, master and ports come from one source."""

    def test_master_is_on_the_node_of_rank_zero(self, nothing_left: None) -> None:
        with apply(make_plan(NODES, {"train": one_each("small", [1]) + one_each("big", [0, 1])})) as applied:
            addresses = [applied.master("train", port_range=(32_000, 32_010)) for _ in range(4)]
            assert {ip for ip, _ in addresses} == {applied.worker("train", 0).ip} == {"127.0.0.3"}
            assert len(set(addresses)) == 4
            assert all(32_000 <= port <= 32_010 for _, port in addresses)
            with pytest.raises(PlanMismatch, match="node small: no port in 32000-32000 is free"):
                applied.master("train", port_range=(32_000, 32_000))

    def test_environment(self, nothing_left: None) -> None:
        with apply(make_plan(NODES, {"train": one_each("small", [1]) + one_each("big", [0, 1])})) as applied:
            first, last = applied.env("train", 0), applied.env("train", 2)
            assert (last["RANK"], last["WORLD_SIZE"], last["LOCAL_RANK"], last["LOCAL_WORLD_SIZE"]) == ("2", "3", "1", "2")
            assert (first["MASTER_ADDR"], first["MASTER_PORT"]) == (last["MASTER_ADDR"], last["MASTER_PORT"])

    def test_ports(self, nothing_left: None) -> None:
        with apply(make_plan(NODES, {"rollout": [("big", [0, 1]), ("big", [2, 3]), ("small", [0, 1])]})) as applied:
            windows = applied.ports("rollout", base=7000, per_worker=100, limit=9000)
            assert [(window.node_id, window.start, window.end) for window in windows] == [
                ("big", 7000, 7099),
                ("big", 7100, 7199),
                ("small", 7000, 7099),
            ]


def test_moved_by_ray(monkeypatch: pytest.MonkeyPatch, nothing_left: None) -> None:
    with apply(make_plan(NODES, {"train": one_each("big", [0])})) as applied:
        monkeypatch.setattr(MadeGroup, "bundle_nodes", lambda _: {0: "f" * 56})
        with pytest.raises(PlanMismatch, match="train 0: Ray moved it from node big to ffffffff"):
            applied.health()
        monkeypatch.undo()


class TestNodeDeath:
    """FC-29. Each test brings a node of its own and ends it."""

    def test_before(self, cluster: Any) -> None:
        cluster.add_node("d0", 2, 2)
        cluster.remove_node("d0")
        with pytest.raises(PlanMismatch, match="node d0 is gone: it is dead in Ray"):
            apply(make_plan({**NODES, "d0": 2}, {"train": one_each("d0", [0])}))

    def test_during(self, cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        before = settled()
        cluster.add_node("d1", 2, 2)
        real = exact.probe

        def probe(*arguments: Any) -> Any:
            cluster.remove_node("d1")
            return real(*arguments)

        monkeypatch.setattr(exact, "probe", probe)
        started = time.monotonic()
        with pytest.raises(PlanMismatch, match="node d1 died"):
            apply(make_plan({**NODES, "d1": 2}, {"train": one_each("d1", range(2)) + one_each("big", range(2))}), timeout=60)
        assert time.monotonic() - started < 30
        assert soon_free(before)

    def test_after(self, cluster: Any) -> None:
        before = settled()
        cluster.add_node("d2", 2, 2)
        plan = make_plan(
            {**NODES, "d2": 2}, {"train": one_each("d2", range(2)) + one_each("big", [1]), "eval": [("small", [0])]}
        )
        with apply(plan, layout="component") as applied:
            cluster.remove_node("d2")
            limit = time.monotonic() + 10
            while all(row.state == "ok" for row in applied.health()) and time.monotonic() < limit:
                time.sleep(0.05)
            rows = {(row.component, row.index): row for row in applied.health()}
            assert [rows["train", index].state for index in range(3)] == ["lost", "lost", "ok"]
            assert rows["eval", 0].state == "ok"
            assert "node d2 is lost" in rows["train", 0].reason
        assert soon_free(before)
        assert rayapi.groups_by_prefix("placewright/") == []
