"""Manual pools of the RLightning reference: pool configurations that name their GPU indices themselves.

What: the steps of reading one pool configuration, as plain functions. `ResourcePool.from_yaml_dict` in `resource_pool.py`
puts them together.

Source: written from the words of reference.md, section 1.6, and checked against the recorded cases in
tests/vectors/manual.jsonl. One behaviour differs on purpose: on an index outside the pool the reference never returns
(defect D14), here it is a ValueError.

When to modify: only when reference.md or a recorded case shows that the reference behaves otherwise. A stricter
reading of pool configurations belongs elsewhere, not here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placewright.greedy.reference.resource_pool import NodeResource

RESERVED_KEYS = frozenset({"name", "num_node", "num_gpus", "node_ids"})
"""Keys of a pool configuration that are not components; every other key is one."""


def parse_index_string(value: object) -> list[tuple[int, int]]:
    """Read pool-global GPU indices such as ``"0-3, 8"`` or ``5`` as inclusive ranges.

    >>> parse_index_string("7-4, 9,")
    [(4, 7), (9, 9)]

    Anything that is neither an integer nor a string gives no range at all (defect D15).
    """
    if isinstance(value, int):
        # A bool is an int here as well; int() keeps True from being printed as an index.
        return [(int(value), int(value))]
    if not isinstance(value, str):
        return []
    ranges: list[tuple[int, int]] = []
    for part in (piece.strip() for piece in value.split(",")):
        if not part:
            continue
        first, dash, second = part.partition("-")
        start, end = (int(first), int(second)) if dash else (int(part), int(part))
        ranges.append((min(start, end), max(start, end)))
    return ranges


def split_range_by_nodes(
    start: int,
    end: int,
    node_offsets: Sequence[int],
    place: str = "",
) -> list[tuple[int, int, int]]:
    """Cut a pool-global range at the node borders: ``(node position, local start, local end)`` per piece.

    `node_offsets` are the running sums of the nodes' sizes, from 0 up to and including the pool's total. `place` goes
    in front of the message when the range leaves the pool.

    >>> split_range_by_nodes(2, 6, [0, 4, 8])
    [(0, 2, 3), (1, 0, 2)]
    """
    pieces: list[tuple[int, int, int]] = []
    total = node_offsets[-1]
    index = start
    while index <= end:
        # The last node that starts at or before the index: nodes without GPUs share their offset and are passed over.
        candidates = [position for position, offset in enumerate(node_offsets[:-1]) if offset <= index]
        if not candidates:
            # The words of Python 3.11's max(); later versions word it otherwise, so it is not left to max().
            raise ValueError("max() arg is an empty sequence")
        if index >= total:
            raise ValueError(f"{place}GPU index {end} is outside the pool: its {total} GPUs end at index {total - 1}")
        node = candidates[-1]
        piece_end = min(end, node_offsets[node + 1] - 1)
        pieces.append((node, index - node_offsets[node], piece_end - node_offsets[node]))
        index = piece_end + 1
    return pieces


def select_nodes(
    pool_cfg: Mapping[str, Any], cluster_nodes: Mapping[str, NodeResource], used_node_ids: Collection[str]
) -> tuple[str, list[NodeResource], list[int]]:
    """Choose the nodes of one pool: its name, copies of its nodes, and the size each node counts for.

    The sizes are what the configuration says where it names its nodes, even if the nodes differ (defect D15).
    """
    node_ids = pool_cfg.get("node_ids")
    if node_ids is None and len({node.total_gpus for node in cluster_nodes.values()}) != 1:
        raise ValueError("Manual mode without specified node_ids requires per-node num_gpus to be a single value.")
    name = str(pool_cfg.get("name"))
    num_node = int(pool_cfg.get("num_node"))  # type: ignore[arg-type]  # None: int()'s own TypeError is the behaviour
    if node_ids is None:
        candidates = sorted(node_id for node_id in cluster_nodes if node_id not in used_node_ids)
        if len(candidates) < num_node:
            raise ValueError(f"[{name}] Not enough nodes to satisfy manual pool request")
        nodes = [cluster_nodes[node_id].copy() for node_id in candidates[:num_node]]
        return name, nodes, [node.total_gpus for node in nodes]
    num_gpus = pool_cfg.get("num_gpus")
    if not isinstance(num_gpus, list):
        raise AssertionError("if node_ids is provided, num_gpus must be a list")
    if len(node_ids) != num_node or len(num_gpus) != num_node:
        # The number printed is that of node_ids, also where num_gpus is the one that differs.
        raise ValueError(f"[{name}] node_ids or num_gpus length {len(node_ids)} != num_node {num_node}")
    return name, [cluster_nodes[node_id].copy() for node_id in node_ids], num_gpus


def plain_mapping(config: Any) -> Mapping[str, Any]:
    """The configuration as a mapping; objects that are none say what they hold by ``to_dict`` or ``model_dump``."""
    if isinstance(config, Mapping):
        return config
    for method in ("to_dict", "model_dump"):
        if hasattr(config, method):
            return dict(getattr(config, method)())
    return dict(config)


def component_entries(pool_cfg: Mapping[str, Any]) -> list[tuple[str, object]]:
    """The components of a pool configuration with their index values, in the order written."""
    return [(str(key), value) for key, value in pool_cfg.items() if key not in RESERVED_KEYS and value is not None]
