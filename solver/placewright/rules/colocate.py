"""H11: colocated components use exactly the same GPUs on every node.

Modify this file when colocation may be looser than equal GPU sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from placewright.facts import Facts
from placewright.frame.needs import Needs
from placewright.rules.rule import Rule
from placewright_models.ranges import format_ranges

if TYPE_CHECKING:
    from placewright.index.job import Job


class Colocate(Rule):
    """The GPU sets of all members of a colocated set are equal on every node."""

    name = "colocate"
    code = "H11"

    def check(self, facts: Facts) -> Iterator[str]:
        """Compares every member with the first one, on the nodes of either."""
        for first, *others in facts.problem.colocated_sets:
            mine = facts.masks.get(first, {})
            for other in others:
                theirs = facts.masks.get(other, {})
                for node_id in dict.fromkeys((*mine, *theirs)):
                    a, b = mine.get(node_id, 0), theirs.get(node_id, 0)
                    if a != b:
                        yield (
                            f"{first} is on {_gpus(facts, a)} of {node_id} and {other} on {_gpus(facts, b)}, "
                            "but they are colocated"
                        )

    def needs(self, job: Job) -> Needs:
        """The counts of colocated components are tied to each other on every node."""
        return Needs(exact=frozenset(c for item in job.items if len(item.members) > 1 for c in item.members))


def _gpus(facts: Facts, mask: int) -> str:
    return f"GPUs {format_ranges(facts.ranges(mask))}" if mask else "no GPU"
