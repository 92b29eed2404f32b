"""Plans carried out on simulated nodes of their own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from planhelp import make_plan, one_each

from placewright.apply import readback_rows, readback_text, simulate
from placewright_models.cluster import Node
from placewright_models.errors import PlacewrightError


def test_the_table_equals_the_plan() -> None:
    import ray

    nodes = [Node("gpu-a", 8, cpus=None), Node("gpu-b", 4, unavailable_gpus=(0,)), Node("idle", 8)]
    workers = {
        "train": one_each("gpu-a", [4, 5]) + one_each("gpu-b", [3, 2]),
        "rollout": [("gpu-a", [0, 1])],
        "buffer": [("gpu-b", [])],
    }
    before = os.environ.get("RAY_TMPDIR")
    with simulate(make_plan(nodes, workers, train={"cpus": 2}, buffer={"cpus": 1, "memory": 2**20})) as applied:
        rows = readback_rows(applied)
        assert all(row.same for row in rows)
        assert [(row.component, row.node_id, list(row.found_gpus)) for row in rows] == [
            (name, node, ids) for name, placed in workers.items() for node, ids in placed
        ]
        assert {node["NodeName"] for node in ray.nodes()} >= {"gpu-a", "gpu-b"}
        assert "idle" not in {node["NodeName"] for node in ray.nodes()}
        text = readback_text(applied)
        assert "NO" not in text
        print(text)
        with pytest.raises(PlacewrightError, match="connected to a Ray cluster already"), simulate(applied.plan):
            pass
        folder = Path(os.environ["RAY_TMPDIR"])
        assert folder.exists()
    assert not ray.is_initialized()
    assert not folder.exists()
    assert os.environ.get("RAY_TMPDIR") == before


def test_more_nodes_than_a_machine_carries() -> None:
    nodes = {f"n{index}": 1 for index in range(9)}
    with (
        pytest.raises(PlacewrightError, match="uses 9 nodes; more than 8"),
        simulate(make_plan(nodes, {"train": [(name, [0]) for name in nodes]})),
    ):
        pass
