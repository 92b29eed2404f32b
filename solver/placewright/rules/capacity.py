"""H3: no GPU index outside the node, none that is unavailable or held by another plan.

Modify this file when a node gets another way to withhold GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator

from placewright.facts import Facts, indices
from placewright.rules.rule import Rule
from placewright_models.ranges import format_ranges


class Capacity(Rule):
    """Every index a component uses on a node is one of the node's available indices."""

    name = "capacity"
    code = "H3"

    def check(self, facts: Facts) -> Iterator[str]:
        """Compares each component's GPU set with the available set of the node."""
        for worker in facts.misplaced:
            gpus = facts.nodes[worker.node_id].gpus
            yield (
                f"{worker.component} worker {worker.index} lies on GPUs {format_ranges(worker.ranges)} "
                f"of {worker.node_id}, which has {gpus} GPUs"
            )
        for name, masks in facts.masks.items():
            for node_id, mask in masks.items():
                wrong = mask & ~facts.available[node_id]
                if wrong:
                    yield from self._explain(facts, name, node_id, wrong)

    def _explain(self, facts: Facts, name: str, node_id: str, wrong: int) -> Iterator[str]:
        node = facts.nodes[node_id]
        outside = [index for index in indices(wrong) if index >= node.gpus]
        taken = [index for index in indices(wrong) if index < node.gpus]
        if outside:
            yield f"{name} uses GPU {', '.join(map(str, outside))} of {node_id}, which has {node.gpus} GPUs"
        if taken:
            yield f"{name} uses GPU {', '.join(map(str, taken))} of {node_id}, which this job may not use"
