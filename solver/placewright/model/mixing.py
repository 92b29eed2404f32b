"""What a relaxation that mixes the nodes of equal domains still knows of each of them.

Rules and goals that look at single domains ask it to sharpen their sums (docs/model.md, section 6). Usage:
``mixed = encoding.mixing.of(cells, c)``, None where the cells are those of a single domain. Modify this file when the
relaxation is to know more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from placewright.index.topology import Domain
from placewright.model.blocks import Area, Part
from placewright.model.cells import Cell

if TYPE_CHECKING:
    from placewright.model.encoding import Encoding


class Mixed(NamedTuple):
    """One of the equal domains, and how many of them may host a component."""

    domain: Domain
    hosting: Any


class Mixing:
    """Which cells are those of mixed domains, and how many whole groups lie in them."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self._parts: dict[int, tuple[Area, Part]] = {}
        self._groups: dict[tuple[int, int], Any] = {}

    def note(self, area: Area) -> None:
        """The area's domains are mixed."""
        for part in area.parts:
            if part.cells:
                self._parts[id(part.cells[0])] = (area, part)

    def of(self, cells: Sequence[Cell], c: int) -> Mixed | None:
        """What is known of the domains whose cells these are; None where they are those of a single domain."""
        known = self._parts.get(id(cells[0])) if cells else None
        if known is None:
            return None
        area, part = known
        return Mixed(area.domains[0], area.may_host(part, c))

    def bound_groups(self, groups: Any, cells: Sequence[Cell], c: int, size: int) -> None:
        """Whole groups of ``size`` workers are at most what each domain that hosts c has room for."""
        mixed = self.of(cells, c)
        if mixed is not None:
            local, classes = self.encoding.local, self.encoding.topology.classes
            most = sum(local.counts(classes[t], c)[-1] * len(nodes) for t, nodes in mixed.domain.nodes.items())
            self.encoding.add(groups <= most // size * mixed.hosting)

    def note_groups(self, groups: Any, cells: Sequence[Cell], c: int) -> None:
        """So many more whole groups of c lie in these cells."""
        key = (id(cells[0]), c)
        self._groups[key] = self._groups.get(key, 0) + groups

    def groups(self, cells: Sequence[Cell], c: int) -> Any | None:
        """How many whole groups of c lie in these cells; None where nothing was noted."""
        return self._groups.get((id(cells[0]), c))
