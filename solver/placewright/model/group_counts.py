"""Whole groups per unit: variables that one rule or goal ties to the workers and others use.

Usage: ``encoding.groups(unit, c)``. Where a relaxation mixes the nodes of equal domains, a group still lies inside one of them,
which bounds how many there are (docs/model.md, section 6). Modify this file when the relaxation is to know more of groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from placewright.frame.features import Hosts
from placewright.frame.frame import Unit, by_size

if TYPE_CHECKING:
    from placewright.model.encoding import Encoding


class GroupCounts:
    """The variables of one model, made when first asked for."""

    def __init__(self, encoding: Encoding) -> None:
        self._encoding = encoding
        self._known: dict[tuple[str, int], dict[int, Any]] = {}

    def __call__(self, unit: Unit, c: int) -> Mapping[int, Any]:
        """Size of the nodes that groups fill, 0 where they fill none -> whole groups of c in the unit; empty if undeclared."""
        if (c, unit.level) not in self._encoding.needs.groups:
            return {}
        key = (unit.name, c)
        if key not in self._known:
            self._known[key] = dict(self._make(unit, c))
        return self._known[key]

    def _make(self, unit: Unit, c: int) -> Iterator[tuple[int, Any]]:
        encoding, job = self._encoding, self._encoding.job
        mixed = encoding.mixed(unit, c)
        if not job.whole_node_group(c):
            groups = encoding.number(f"{unit.name}.groups{c}")
            if mixed is not None:
                workers = sum(
                    encoding.most_alone(encoding.topology.classes[t], c) * len(nodes) for t, nodes in mixed.domain.nodes.items()
                )
                encoding.add(groups <= workers // job.group_size(c) * mixed.hosting)
            yield 0, groups
            return
        for size, some in by_size(unit.nodes).items():
            nodes_each = job.nodes_per_group(c, size)
            if nodes_each is None or isinstance(sum(nodes.total(Hosts((c,))) for nodes in some), int):
                continue
            groups = encoding.number(f"{unit.name}.groups{c}.{size}")
            if mixed is not None:
                there = sum(
                    len(nodes) for t, nodes in mixed.domain.nodes.items() if encoding.topology.classes[t].gpus == size
                )
                encoding.add(groups <= there // nodes_each * mixed.hosting)
            yield size, groups
