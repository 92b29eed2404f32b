"""gpu_nodes_used: workers without GPU that sit on nodes with GPUs.

Modify this file when CPU-only workers on GPU nodes are valued otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placewright.facts import Facts
from placewright.goals.goal import Goal

if TYPE_CHECKING:
    from placewright.model.encoding import Encoding


class GpuNodesUsed(Goal):
    """Workers with gpus 0 on nodes with gpus > 0; ``per_node_of`` components have no choice and are not counted."""

    name = "gpu_nodes_used"

    def measure(self, facts: Facts) -> int:
        """Counts workers."""
        return sum(
            count
            for component in facts.problem.components
            if not component.gpus and component.per_node_of is None
            for node_id, count in facts.x[component.name].items()
            if facts.nodes[node_id].gpus > 0
        )

    def expression(self, encoding: Encoding) -> Any:
        """CPU-only workers in cells whose nodes have GPUs."""
        counted = [
            c
            for c, component in enumerate(encoding.job.components)
            if component.gpus == 0 and component.per_node_of is None
        ]
        return sum(encoding.workers(cell, c) for c in counted for cell in encoding.cells if cell.node_class.gpus)
