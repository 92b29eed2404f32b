"""nodes_used: number of nodes that host anything.

Modify this file when an occupied node is valued otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placewright.facts import Facts
from placewright.frame.features import Hosts
from placewright.goals.goal import Goal

if TYPE_CHECKING:
    from placewright.frame.frame import Frame


class NodesUsed(Goal):
    """Every node with at least one worker counts one."""

    name = "nodes_used"

    def measure(self, facts: Facts) -> int:
        """Counts nodes."""
        return len(facts.on)

    def expression(self, frame: Frame) -> Any:
        """Nodes with any pattern but the empty one."""
        return frame.total(Hosts(tuple(range(frame.job.count))))

    def least(self, frame: Frame) -> int:
        """Fewest nodes that hold the components that exclude each other."""
        return max((group.places["nodes"] for group in frame.bounds.together), default=0)
