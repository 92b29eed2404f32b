"""H7: where a node's available GPUs are one run, each component's GPUs there form one range.

Modify this file when contiguity is asked of other nodes too.
"""

from __future__ import annotations

from collections.abc import Iterator

from placewright.facts import Facts
from placewright.rules.rule import Rule
from placewright_models.ranges import format_ranges


class Contiguous(Rule):
    """One range per component on nodes without holes; on nodes with holes nothing is refused."""

    name = "contiguous"
    code = "H7"

    def check(self, facts: Facts) -> Iterator[str]:
        """A set of bits is one range exactly where adding its lowest bit clears all of them."""
        for name, masks in facts.masks.items():
            for node_id, mask in masks.items():
                if _one_run(mask) or not _one_run(facts.available[node_id]):
                    continue
                gpus = format_ranges(facts.ranges(mask))
                yield f"{name} is on GPUs {gpus} of {node_id}, which are not one range though the node has no hole"


def _one_run(mask: int) -> bool:
    return not mask & (mask + (mask & -mask))
