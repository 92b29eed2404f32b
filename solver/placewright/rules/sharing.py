"""H4: who may lie on the same GPU. Default: nobody, not even two workers of one component.

Modify this file when the sharing relation gets another shape.
"""

from __future__ import annotations

from collections.abc import Iterator

from placewright.facts import Facts
from placewright.rules.rule import Rule
from placewright_models.ranges import format_ranges


class Sharing(Rule):
    """Components on one GPU are pairwise shareable; two workers of one component only where they take shares."""

    name = "sharing"
    code = "H4"

    def check(self, facts: Facts) -> Iterator[str]:
        """Looks for a pair only on nodes where some GPU is used by two components."""
        for component in facts.problem.components:
            if component.fractional:
                continue
            for node_id, mask in facts.repeated[component.name].items():
                gpus = format_ranges(facts.ranges(mask))
                yield f"{component.name} has more than one worker on GPU {gpus} of {node_id}"
        may_share = facts.problem.sharing_pairs
        masks = facts.masks
        for node_id, names in facts.on.items():
            if len(names) < 2:
                continue
            taken, overlap = 0, False
            for name in names:
                mask = masks[name].get(node_id, 0)
                overlap = overlap or bool(taken & mask)
                taken |= mask
            if not overlap:
                continue
            for place, first in enumerate(names):
                for second in names[place + 1 :]:
                    common = masks[first].get(node_id, 0) & masks[second].get(node_id, 0)
                    if common and frozenset((first, second)) not in may_share:
                        gpus = format_ranges(facts.ranges(common))
                        yield f"{first} and {second} are both on GPU {gpus} of {node_id} and may not share"
