"""gpu_nodes_used: workers without GPU that sit on nodes with GPUs.

Modify this file when CPU-only workers on GPU nodes are valued otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placewright.facts import Facts
from placewright.frame.needs import Needs
from placewright.goals.goal import Goal

if TYPE_CHECKING:
    from placewright.frame.frame import Frame
    from placewright.index.job import Job


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

    def needs(self, job: Job) -> Needs:
        """How many of them are on the nodes with GPUs."""
        return Needs(per_place=frozenset(_counted(job)))

    def expression(self, frame: Frame) -> Any:
        """CPU-only workers on nodes that have GPUs."""
        nodes = [some for some in frame.nodes if some.node_class.gpus]
        return sum(frame.workers(nodes, c) for c in _counted(frame.job))


def _counted(job: Job) -> list[int]:
    """Components without GPU that have a choice of nodes."""
    return [c for c, component in enumerate(job.components) if component.gpus == 0 and component.per_node_of is None]
