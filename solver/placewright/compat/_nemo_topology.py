"""NeMo-RL's choice of segment nodes and order of bundles: pure functions of a topology.

Usage: through :mod:`placewright.compat.nemo_rl`. ``select_segment_nodes`` and ``_sort_bundle_indices_by_topology`` do
what NeMo-RL does today, oddities included (the recorded cases in tests/vectors fix them);
``order_bundles_by_topology`` is the order with the defects N3..N6 mended.

When to modify: when NeMo-RL changes its order. Joint selection for several roles lives in _nemo_segments.py.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from placewright.compat._nemo_config import (
    NVLINK_DOMAIN_PREFIX,
    NVLINK_DOMAIN_UNKNOWN,
    TOPO_RANK_KEY,
    TOPO_RANK_UNKNOWN,
)

logger = logging.getLogger("placewright.compat.nemo_rl")

Topology = Mapping[str, tuple[str, int]]
"""Node id -> (NVLink domain, topo rank)."""


class ResourceInsufficientError(Exception):
    """The cluster does not have what the configuration asks for."""


def select_segment_nodes(topology: Topology, segment_size: int, num_nodes: int) -> tuple[list[str], list[str]]:
    """``num_nodes`` nodes in whole segments of ``segment_size`` nodes of one domain, and the ids of all other nodes.

    First fit as in NeMo-RL: domains by their smallest rank, in each the first nodes by rank. It may use more domains
    than needed (N1) and knows one role only (N2): see ``select_segments``. Raises ValueError when ``num_nodes`` is no
    multiple of ``segment_size``, :class:`ResourceInsufficientError` when there are too few segments.
    """
    if num_nodes % segment_size != 0:
        raise ValueError(f"num_nodes ({num_nodes}) must be divisible by segment_size ({segment_size}).")
    members: dict[str, list[str]] = {}
    for node, (domain, _) in topology.items():
        if domain != NVLINK_DOMAIN_UNKNOWN:
            members.setdefault(domain, []).append(node)
    for nodes in members.values():
        nodes.sort(key=lambda node: topology[node][1])
    domains = sorted(members, key=lambda domain: topology[members[domain][0]][1])

    needed = num_nodes // segment_size
    missing = needed
    selected: list[str] = []
    for domain in domains:
        if missing <= 0:
            break
        segments = min(len(members[domain]) // segment_size, missing)
        selected += members[domain][: segments * segment_size]
        missing -= segments
    if missing > 0:
        counts = {domain: len(members[domain]) for domain in domains}
        raise ResourceInsufficientError(
            f"Cannot form {needed} complete segments of {segment_size} nodes. Nodes per domain: {counts}. "
            f"Need {num_nodes} nodes total."
        )
    taken = set(selected)
    return selected, [node for node in topology if node not in taken]


class _Bundle(NamedTuple):
    """A bundle of a placement group: its index, GPU id, NVLink domain, topo rank and node."""

    number: int
    gpu: int
    domain: str
    rank: int
    node: str


def _sort_bundle_indices_by_topology(
    bundle_data: Sequence[tuple[int, str, int, str]],
    segment_size: int | None = None,
    gpus_per_node: int | None = None,
) -> list[int]:
    """Indices of the bundles (GPU id, domain, rank, node id) in rank order, exactly as NeMo-RL sorts them.

    Without any topology by (node id, GPU id), otherwise by (smallest rank of the domain, rank, GPU id). With
    ``segment_size`` each domain keeps the first bundles of as many nodes as make whole segments; then ``gpus_per_node``
    must be given (ValueError).
    """
    if segment_size is not None and gpus_per_node is None:
        raise ValueError("gpus_per_node is required when segment_size is set")
    bundles = [_Bundle(index, *data) for index, data in enumerate(bundle_data)]
    if all(b.domain == NVLINK_DOMAIN_UNKNOWN and b.rank == TOPO_RANK_UNKNOWN for b in bundles):
        return [b.number for b in sorted(bundles, key=lambda b: (b.node, b.gpu))]
    if segment_size is not None:
        assert gpus_per_node is not None
        members: dict[str, list[_Bundle]] = {}
        for bundle in bundles:
            members.setdefault(bundle.domain, []).append(bundle)
        bundles = []
        for domain, group in members.items():
            nodes = len({b.node for b in group})
            keep = nodes // segment_size * segment_size * gpus_per_node
            group.sort(key=lambda b: (b.rank, b.gpu))
            bundles += group[:keep]
            if len(group) > keep:
                logger.info("domain %s: %d of %d bundles make whole segments", domain, keep, len(group))
    first_rank: dict[str, int] = {}
    for bundle in bundles:
        first_rank[bundle.domain] = min(bundle.rank, first_rank.get(bundle.domain, bundle.rank))
    return [b.number for b in sorted(bundles, key=lambda b: (first_rank[b.domain], b.rank, b.gpu))]


def natural(text: str) -> tuple[tuple[int, Any], ...]:
    """Sort key that reads the digits in a name as numbers: node7 before node66."""
    return tuple((1, int(part)) if part.isdigit() else (0, part) for part in re.split(r"(\d+)", text))


def known_rank(rank: int) -> float:
    """The rank for sorting: unknown ranks come last."""
    return float("inf") if rank == TOPO_RANK_UNKNOWN else rank


def order_bundles_by_topology(
    bundle_data: Sequence[tuple[int, str, int, str]],
    segment_size: int | None = None,
    gpus_per_node: int | None = None,
) -> list[int]:
    """The mended order: domain by domain and node by node, never interleaved, nodes without a domain last (N3, N4, N6).

    With ``segment_size`` whole nodes are trimmed, whatever their number of bundles (N5), and nodes without a domain
    serve no segment. ``gpus_per_node`` is accepted for the sake of the other order's signature and not needed.
    """
    if segment_size is not None and segment_size < 1:
        raise ValueError(f"segment_size ({segment_size}) must be at least 1.")
    bundles = [_Bundle(index, *data) for index, data in enumerate(bundle_data)]
    # A node that tells no domain counts as a domain of its own.
    unit = {b.node: b.domain if b.domain != NVLINK_DOMAIN_UNKNOWN else f"{NVLINK_DOMAIN_UNKNOWN} {b.node}" for b in bundles}
    rank = {b.node: known_rank(b.rank) for b in bundles}
    known = {b.node: b.domain != NVLINK_DOMAIN_UNKNOWN for b in bundles}
    nodes_of: dict[str, list[str]] = {}
    for node in sorted(rank, key=lambda node: (rank[node], natural(node))):
        nodes_of.setdefault(unit[node], []).append(node)
    units = sorted(nodes_of, key=lambda u: (not known[nodes_of[u][0]], rank[nodes_of[u][0]], natural(u)))
    place: dict[str, int] = {}
    for name in units:
        nodes = nodes_of[name]
        if segment_size is not None:
            nodes = nodes[: len(nodes) // segment_size * segment_size] if known[nodes[0]] else []
        for node in nodes:
            place[node] = len(place)
    kept = [b for b in bundles if b.node in place]
    return [b.number for b in sorted(kept, key=lambda b: (place[b.node], b.gpu, b.number))]


def _topology_of(resources: dict[str, float]) -> tuple[str, int]:
    """NVLink domain and topo rank that a node's resources tell, each "unknown" where they do not."""
    domain, rank = NVLINK_DOMAIN_UNKNOWN, TOPO_RANK_UNKNOWN
    for key, value in resources.items():
        if key.startswith(NVLINK_DOMAIN_PREFIX):
            domain = key
        if key == TOPO_RANK_KEY:
            rank = int(value)
    return domain, rank
