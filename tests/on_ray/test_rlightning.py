"""RLightning's resource manager end to end: pools planned, groups made, actors started the way RLightning starts them.

Modify this file when the manager hands out something new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from placewright.compat.rlightning import ComponentScheduling, GlobalResourceManager, Scheduling, get_global_resource_manager

HERE = {"one": (4, 16), "two": (2, 16)}


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., Any]) -> Any:
    return start_cluster(*((name, gpus, cpus) for name, (gpus, cpus) in HERE.items()))


@pytest.fixture
def manager(cluster: Any, nothing_left: None) -> Iterator[GlobalResourceManager]:
    yield GlobalResourceManager.get_instance()
    GlobalResourceManager.reset()


def needs() -> ComponentScheduling:
    return ComponentScheduling(
        env_worker=[Scheduling(2, 1, 0.5), Scheduling(1, 1, 1)],
        train_worker=Scheduling(2, 1, 1),
        eval_worker=Scheduling(1, 1, 1),
        buffer_worker=Scheduling("auto", 1, 0),
    )


def seen(manager: GlobalResourceManager, counts: dict[str, int]) -> dict[str, list[tuple[str, list[int]]]]:
    """Start every worker as RLightning does, 0.1 GPU on the strategy it is given, and ask where it is."""
    import ray

    class Eye:
        def see(self) -> tuple[str, list[int]]:
            import ray

            context = ray.get_runtime_context()
            return context.get_node_id(), sorted(int(gpu) for gpu in context.get_accelerator_ids()["GPU"])

    actors = {
        name: [
            ray.remote(Eye)
            .options(
                num_gpus=0 if name == "buffer" else 0.1,
                num_cpus=1,
                scheduling_strategy=manager.get_scheduling_strategy(name, index),
            )
            .remote()
            for index in range(count)
        ]
        for name, count in counts.items()
    }
    found = {name: ray.get([eye.see.remote() for eye in eyes], timeout=60) for name, eyes in actors.items()}
    for eyes in actors.values():
        for eye in eyes:
            ray.kill(eye)
    return found


def planned(manager: GlobalResourceManager, component: str, index: int) -> tuple[str, list[int]]:
    planner = manager.get_resource_planner()
    assert planner is not None
    assert planner.plan is not None
    name, local = planner.locate(component, index)
    node_id, ranges = planner.plan.workers[name][local]
    return node_id, [gpu for start, end in ranges for gpu in range(start, end + 1)]


COUNTS = {"train": 2, "eval": 1, "env": 3, "buffer": 1}


def test_workers_are_where_they_were_planned(manager: GlobalResourceManager, tmp_path: Path) -> None:
    scheduling = needs()
    placement = {"placement": {"mode": "auto", "strategy": "disaggregate", "env_strategy": "default"}}
    manager.initialize(placement, scheduling, str(tmp_path))
    assert get_global_resource_manager() is manager
    assert scheduling.buffer_worker is not None
    assert scheduling.buffer_worker.worker_num == 1
    where = seen(manager, COUNTS)
    assert where == {name: [planned(manager, name, index) for index in range(count)] for name, count in COUNTS.items()}
    assert manager.get_storage_to_train_workers() == {0: [0, 1]}
    distribution = manager.get_component_distribution()
    assert sum(node.get("env", {"count": 0})["count"] for node in distribution.values()) == 3
    with pytest.raises(IndexError):
        manager.get_scheduling_strategy("env", 3)

    # The saved configuration is a manual one that gives the same places.
    pools = yaml.safe_load((tmp_path / "resource_pool" / "resource_pool_auto.yaml").read_text())
    manager.initialize({"placement": {"mode": "manual"}, "resource_pool": pools}, needs())
    assert manager.get_placement_strategy() == "resource_pool"
    assert seen(manager, COUNTS) == where


def test_colocated_workers_share_gpus(manager: GlobalResourceManager) -> None:
    scheduling = ComponentScheduling(
        env_worker=[Scheduling(4, 1, 1)],
        train_worker=Scheduling(4, 1, 1),
        eval_worker=Scheduling(4, 1, 1),
        buffer_worker=Scheduling(1, 1, 0),
    )
    manager.initialize({"placement": {"mode": "auto", "strategy": "colocate", "env_strategy": "device-colocate"}}, scheduling)
    counts = {"train": 4, "eval": 4, "env": 4, "buffer": 1}
    assert seen(manager, counts) == {
        name: [planned(manager, name, index) for index in range(count)] for name, count in counts.items()
    }
    options = [manager.get_worker_options(name, 0)["num_gpus"] for name in ("train", "eval", "env")]
    assert sum(options) <= 1


def test_greedy_is_applied_where_it_keeps_the_rules(manager: GlobalResourceManager) -> None:
    manager.solver = "greedy"
    scheduling = ComponentScheduling(train_worker=Scheduling(2, 1, 1), eval_worker=Scheduling(2, 1, 1))
    manager.initialize({"placement": {"mode": "auto", "strategy": "disaggregate"}}, scheduling)
    assert [gpus for _, gpus in seen(manager, {"train": 2})["train"]] == [[0], [1]]


def test_default_strategy_places_nothing_but_buffers(manager: GlobalResourceManager) -> None:
    scheduling = ComponentScheduling(train_worker=Scheduling(6, 1, 1), buffer_worker=Scheduling("auto", 1, 0))
    manager.initialize({"placement": {}}, scheduling)
    assert scheduling.buffer_worker is not None
    assert scheduling.buffer_worker.worker_num == 2
    assert manager.get_scheduling_strategy("train", 0) == "DEFAULT"
    assert len({manager.get_scheduling_strategy("buffer", index).node_id for index in range(2)}) == 2
    assert manager.get_component_distribution() == {}
