"""The parts of verl's pools that need no Ray: the plain pool, and the order of node addresses.

Usage: through :mod:`placewright.compat.verl`.

When to modify: when verl's plain pool changes.
"""

from __future__ import annotations

import ipaddress
import itertools
import random
import re
import string
from collections.abc import Sequence
from typing import Any


def get_random_string(length: int) -> str:
    """``length`` random letters and digits."""
    return "".join(random.choice(string.ascii_letters + string.digits) for _ in range(length))


def ip_key(address: str) -> tuple[int, Any]:
    """Sort key of a node address: ips as numbers (10.0.0.9 before 10.0.0.10), then names with their digits as numbers."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        parts = re.split(r"(\d+)", address)
        return 9, tuple((int(part), "") if part.isdigit() else (-1, part) for part in parts)
    return ip.version, int(ip)


def group_ranges(store: Sequence[int]) -> list[tuple[int, int]]:
    """For each group the pool-wide index of its first bundle and of the one after its last."""
    ends = list(itertools.accumulate(store))
    return [(end - count, end) for end, count in zip(ends, store, strict=True)]


class ResourcePool:
    """How many processes run on each node.

    ``process_on_nodes`` is kept, not copied: ``add_node`` appends to the caller's list. ``max_colocate_count`` is the
    number of worker groups that may share one GPU, ``n_gpus_per_node`` the size of a full node.
    """

    def __init__(
        self, process_on_nodes: list[int] | None = None, max_colocate_count: int = 10, n_gpus_per_node: int = 8
    ) -> None:
        self._store: list[int] = [] if process_on_nodes is None else process_on_nodes
        self.max_colocate_count = max_colocate_count
        self.n_gpus_per_node = n_gpus_per_node

    def add_node(self, process_count: int) -> None:
        """Append a node with ``process_count`` processes."""
        self._store.append(process_count)

    @property
    def world_size(self) -> int:
        """Number of processes on all nodes."""
        return sum(self._store)

    def __call__(self) -> list[int]:
        return self._store

    @property
    def store(self) -> list[int]:
        """Processes per node (the list itself)."""
        return self._store

    def local_world_size_list(self) -> list[int]:
        """For each process the number of processes on its node."""
        return [count for count in self._store for _ in range(count)]

    def local_rank_list(self) -> list[int]:
        """For each process its number on its node, from 0."""
        return [rank for count in self._store for rank in range(count)]
