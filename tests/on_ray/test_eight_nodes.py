"""Eight nodes of eight GPUs, every component of a job, all layouts; and how long it takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from planhelp import Workers, found, make_plan

from placewright.apply import apply, readback_rows, readback_text

NODES = {f"n{index}": 8 for index in range(8)}
POOLS = {"train_pool": ["train", "buffer"], "rollout_pool": ["rollout", "reward", "eval", "env"]}
# train on four nodes, TP4 rollouts on three with a reward beside each, eval and env on the last, a buffer per train node.
ALL: Workers = {
    "train": [(f"n{node}", [gpu]) for node in range(4) for gpu in range(8)],
    "rollout": [(f"n{node}", ids) for node in range(4, 7) for ids in ([0, 1, 2, 3], [4, 5, 6, 7])],
    "reward": [(f"n{node}", [7]) for node in range(4, 7)],
    "eval": [("n7", [gpu]) for gpu in range(4)],
    "env": [("n7", [gpu]) for gpu in range(4, 8) for _ in range(4)],
    "buffer": [(f"n{node}", []) for node in range(4)],
}


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., Any]) -> Any:
    running = start_cluster(*((name, 8, 32) for name in NODES))
    # The agents of each node come up in the background; what is timed below begins after that.
    time.sleep(3)
    return running


@pytest.mark.timeout(240)
def test_64_bundles_applied_and_proved(cluster: Any, nothing_left: None) -> None:
    plan = make_plan(NODES, {"train": [(name, [gpu]) for name in NODES for gpu in range(8)]}, train={"cpus": 2})
    seconds = []
    for _ in range(2):
        started = time.monotonic()
        with apply(plan, timeout=100) as applied:
            seconds.append(time.monotonic() - started)
            assert all(row.same for row in readback_rows(applied))
            assert len({(worker.node_id, worker.gpu_ids) for worker in applied.ranks("train")}) == 64
    print(f"64 bundles on 8 nodes: {seconds[0]:.1f} s with cold nodes, {seconds[1]:.1f} s with warm ones")
    # Cold, most of it is eight Python processes starting on two cores.
    assert seconds[1] < 10


@pytest.mark.parametrize("layout", ["pool", "node", "component"])
def test_all_components(layout: str, nothing_left: None) -> None:
    plan = make_plan(
        NODES,
        ALL,
        pools=POOLS,
        train={"cpus": 2},
        rollout={"gpu_share": "0.9", "cpus": 2},
        reward={"gpu_share": "0.1"},
        env={"gpus": "0.25", "cpus": 1},
        buffer={"cpus": 1},
    )
    with apply(plan, layout=layout) as applied:
        assert found(applied) == {name: [(node, list(ids)) for node, ids in placed] for name, placed in ALL.items()}
        names = {
            "pool": {"train_pool", "rollout_pool"},
            "node": set(NODES),
            # reward shares GPUs with rollout, and a bundle belongs to one group.
            "component": {"train", "rollout+reward", "eval", "env", "buffer"},
        }
        assert set(applied.placement_groups) == names[layout]
        assert all(row.same for row in readback_rows(applied))
        assert len(readback_text(applied).splitlines()) == 1 + sum(map(len, ALL.values()))


def test_engines_of_four_gpus(nothing_left: None) -> None:
    """FC-07: six TP4 engines on three nodes, bundles of one GPU; left to Ray, engines straddle nodes."""
    workers = {"rollout": [(f"n{node}", ids) for node in range(3) for ids in ([0, 1, 2, 3], [4, 5, 6, 7])]}
    with apply(make_plan(NODES, workers), bundles="gpu") as applied:
        (group,) = applied._groups.values()
        nodes = group.bundle_nodes()
        order = [bundle for worker in applied.ranks("rollout") for bundle in worker.bundles]
        assert order == list(range(24))
        for worker in applied.ranks("rollout"):
            assert {nodes[bundle] for bundle in worker.bundles} == {worker.ray_node_id}
            assert list(worker.gpu_ids) == sorted(worker.gpu_ids)
        assert [applied.worker("rollout", rank // 4).node_id for rank in range(24)] == [f"n{rank // 8}" for rank in range(24)]
