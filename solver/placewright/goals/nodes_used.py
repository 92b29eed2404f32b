"""nodes_used: number of nodes that host anything.

Modify this file when an occupied node is valued otherwise.
"""

from __future__ import annotations

from placewright.facts import Facts


class NodesUsed:
    """Every node with at least one worker counts one."""

    name = "nodes_used"

    def measure(self, facts: Facts) -> int:
        """Counts nodes."""
        return len(facts.on)
