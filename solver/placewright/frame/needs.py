"""What a rule or goal must be able to ask of the model, said before any variable is made.

The model makes as few variables as the problem's rules and goals let it. ``Rule.needs`` and ``Goal.needs`` are asked first,
all of them; then variables are made; then constraints are stated, in any order. What was not declared is refused when asked.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce


@dataclass(frozen=True, slots=True)
class Needs:
    """Sets of component indices, and names of levels.

    Attributes:
        exact: components whose number on each single node is looked at. Otherwise only the largest numbers that fit are told
            apart (see node/patterns.py), which takes far fewer variables.
        per_place: components whose number in some places, not only in all, is asked for (``Frame.workers``).
        groups: (component, level): its whole groups are counted in each unit of the level (``Frame.groups``).
        squares: components whose squared numbers per node are added up (``Frame.squares``).
        levels: levels above the NVLink domain at which places are told apart (``Frame.units``).
    """

    exact: frozenset[int] = frozenset()
    per_place: frozenset[int] = frozenset()
    groups: frozenset[tuple[int, str]] = frozenset()
    squares: frozenset[int] = frozenset()
    levels: frozenset[str] = frozenset()

    def __or__(self, other: Needs) -> Needs:
        return Needs(
            self.exact | other.exact,
            self.per_place | other.per_place,
            self.groups | other.groups,
            self.squares | other.squares,
            self.levels | other.levels,
        )

    @staticmethod
    def union(needs: Iterable[Needs]) -> Needs:
        """Everything that any of them names."""
        return reduce(Needs.__or__, needs, Needs())
