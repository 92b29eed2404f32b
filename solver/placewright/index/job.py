"""The index step: component names become dense integers once, so that everything after it only loops.

Usage: ``job = Job(problem)``; component ``c`` is ``job.components[c]``. An *item* is what lies on GPUs as one piece: one
component, or one colocated set of components (H11). Modify this file when a component field must be visible to the
encoder or the decoder in integer form.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import lcm

from placewright_models.cluster import DOMAIN_LEVEL
from placewright_models.problem import Problem
from placewright_models.quantities import UNITS


@dataclass(frozen=True, slots=True)
class Item:
    """One component, or one colocated set, on the GPUs of a node.

    Attributes:
        members: component indices, canonical order.
        whole: the members with whole GPUs.
        fractional: the members whose workers take a share below one GPU.
        width: GPUs of one block: the least common multiple of the whole members' widths; 0 where all are fractional.
        share: units of 1e-4 that the whole members hold on each of their GPUs (the sum of those that give a share).
        gives_share: whether any member gives a share.
        aligned: blocks start at multiples of this many GPUs (1 = anywhere).
    """

    members: tuple[int, ...]
    whole: tuple[int, ...]
    fractional: tuple[int, ...]
    width: int
    share: int
    gives_share: bool
    aligned: int


class Job:
    """Components and sharing of a problem by dense index."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.components = problem.components
        self.count = len(self.components)
        self.index = {component.name: c for c, component in enumerate(self.components)}
        self.width = [component.gpus_per_worker for component in self.components]
        self.fractional = [component.fractional for component in self.components]
        self.share = [component.share_units for component in self.components]
        self.per_gpu = [component.workers_per_gpu for component in self.components]
        self.needs_gpu = [component.gpus > 0 for component in self.components]
        self.cpu_units = [component.cpu_units for component in self.components]
        self.memory = [component.memory for component in self.components]

    def names(self, names: tuple[str, ...] | list[str]) -> list[int]:
        """Component indices of names, canonical order, without repeats."""
        return sorted({self.index[name] for name in names})

    @cached_property
    def items(self) -> tuple[Item, ...]:
        """Everything that needs GPUs, in canonical order of the first member."""
        together: dict[int, tuple[int, ...]] = {}
        for names in self.problem.colocated_sets:
            members = tuple(self.names(names))
            together.update(dict.fromkeys(members, members))
        found: list[Item] = []
        for c in range(self.count):
            members = together.get(c, (c,))
            if self.needs_gpu[c] and members[0] == c:
                found.append(self._item(members))
        return tuple(found)

    def _item(self, members: tuple[int, ...]) -> Item:
        whole = tuple(c for c in members if not self.fractional[c])
        shares = [share for c in whole if (share := self.share[c]) is not None]
        aligned = [self.width[c] for c in whole if self.components[c].aligned]
        return Item(
            members=members,
            whole=whole,
            fractional=tuple(c for c in members if self.fractional[c]),
            width=lcm(*(self.width[c] for c in whole)) if whole else 0,
            share=sum(shares),
            gives_share=bool(shares) or len(whole) < len(members),
            aligned=lcm(*aligned) if aligned else 1,
        )

    @cached_property
    def item_of(self) -> dict[int, int]:
        """Item index of each component that needs GPUs."""
        return {c: i for i, item in enumerate(self.items) for c in item.members}

    @cached_property
    def conflicts(self) -> tuple[int, ...]:
        """For each item the bit mask of the items whose GPUs must be disjoint from its own (H4)."""
        masks: list[int] = []
        for i, item in enumerate(self.items):
            mask = 0
            for j, other in enumerate(self.items):
                names = [(self.components[a].name, self.components[b].name) for a in item.members for b in other.members]
                if i != j and not all(self.problem.may_share(*pair) for pair in names):
                    mask |= 1 << j
            masks.append(mask)
        return tuple(masks)

    @cached_property
    def any_aligned(self) -> bool:
        """Whether GPU offsets matter at all; otherwise only the lengths of free runs do."""
        return any(item.aligned > 1 for item in self.items)

    @cached_property
    def share_coupled(self) -> tuple[int, ...]:
        """For each item the items with which its shares on one GPU could pass 1 (so that the sum must be watched).

        Where shareable items cannot pass 1 together even at their fullest, their shares are no constraint at all.
        """
        fullest = [
            item.share + sum(self.per_gpu[c] * (self.share[c] or 0) for c in item.fractional) for item in self.items
        ]
        masks: list[int] = []
        for i, item in enumerate(self.items):
            partners = [
                j
                for j, other in enumerate(self.items)
                if j != i and other.gives_share and item.gives_share and not self.conflicts[i] >> j & 1
            ]
            total = fullest[i] + sum(fullest[j] for j in partners)
            masks.append(sum(1 << j for j in partners) if total > UNITS else 0)
        # Coupling is mutual: a partner that watches us makes us watch it.
        for i in range(len(masks)):
            for j in range(len(masks)):
                if masks[i] >> j & 1:
                    masks[j] |= 1 << i
        return tuple(masks)

    @cached_property
    def self_coupled(self) -> tuple[bool, ...]:
        """Items whose own members may pass 1 on a GPU (a colocated set with shares)."""
        return tuple(
            len(item.members) > 1
            and item.share + sum(self.per_gpu[c] * (self.share[c] or 0) for c in item.fractional) > UNITS
            for item in self.items
        )

    # Groups (H8)

    @cached_property
    def _largest_node(self) -> list[int]:
        return [self.problem.largest_node(component) for component in self.components]

    def whole_node_group(self, c: int) -> bool:
        """Whether the component's groups are wider than its largest node, so that each takes whole nodes of one size."""
        group = self.components[c].group
        return group is not None and self.width[c] > 0 and group.workers * self.width[c] > self._largest_node[c]

    def nodes_per_group(self, c: int, size: int) -> int | None:
        """Whole nodes of this size in one group; None where groups cannot be made of them."""
        group = self.components[c].group
        if group is None or not size or not self.width[c] or size % self.width[c]:
            return None
        needed = group.workers * self.width[c]
        return None if needed % size else needed // size

    def group_size(self, c: int) -> int:
        """Workers in one of the component's groups; 1 where it has none."""
        group = self.components[c].group
        return 1 if group is None else group.workers

    @cached_property
    def _unknown_levels(self) -> frozenset[str]:
        cluster = self.problem.cluster
        levels = (*cluster.levels, DOMAIN_LEVEL)
        return frozenset(
            level for level in levels if any(cluster.unit(node, level) is None for node in cluster.nodes)
        )

    def unknown_somewhere(self, level: str) -> bool:
        """Whether some node is unknown at the level (never so for cluster and node)."""
        return level in self._unknown_levels

    def least_gpus(self, c: int) -> int:
        """Fewest GPUs that the fewest workers of c take when nothing else is there."""
        return self.gpus_for(c, self.components[c].min_workers or 0)

    def workers_on(self, c: int, gpus: int) -> int:
        """Most workers of c that so many GPUs hold."""
        return gpus * self.per_gpu[c] if self.fractional[c] else gpus // self.width[c]

    def gpus_for(self, c: int, workers: int) -> int:
        """Fewest GPUs that so many workers of c take."""
        return -(-workers // self.per_gpu[c]) if self.fractional[c] else workers * self.width[c]
