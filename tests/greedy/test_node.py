"""NodeResource of the RLightning reference, one test per row of tests/vectors/node.jsonl.

When to modify: only together with the recorded cases.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from rlightning_cases import NODE_ROWS, observed_node

from placewright.greedy.reference.planner import NodeResource


def state(node: NodeResource) -> dict[str, Any]:
    return {**observed_node(node), "component_types": node.component_types}


@pytest.mark.parametrize("row", NODE_ROWS, ids=[row["id"] for row in NODE_ROWS])
def test_recorded_operations(row: dict[str, Any]) -> None:
    node = NodeResource("n0", "10.0.0.1", row["total_cpus"], row["total_gpus"])
    for step in row["ops"]:
        seen: dict[str, Any] = {"op": step["op"], "kwargs": step["kwargs"]}
        try:
            seen["result"] = getattr(node, step["op"])(**step["kwargs"])
        except RuntimeError as error:
            seen["error"] = {"type": "RuntimeError", "message": str(error)}
        seen["after"] = state(node)
        # As text, because == takes 4 for 4.0.
        assert json.dumps(seen, sort_keys=True) == json.dumps(step, sort_keys=True)


def test_negative_share_keeps_what_was_recorded_before() -> None:
    node = NodeResource("n0", "10.0.0.1", total_cpus=8, total_gpus=8)
    with pytest.raises(RuntimeError, match="must be greater than 0, but got -1"):
        node.allocate([3, -1], ["train", "eval"])
    assert node.allocations == {"train": [(0, 2)]}
    assert (node.gpu_cursor, node.max_allocated_gpus) == (0, 0)


def test_copy_shares_nothing() -> None:
    node = NodeResource("n0", "10.0.0.1", 8, 8, allocations={"train": [(0, 3)]}, gpu_cursor=4)
    copied = node.copy()
    assert copied == node
    copied.allocate(2, ["train"])
    assert node.allocations == {"train": [(0, 3)]}
