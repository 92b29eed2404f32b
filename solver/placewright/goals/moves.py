"""moves: workers that are not where the previous plan had one; only with a previous plan.

Modify this file when keeping a worker's place is valued otherwise.
"""

from __future__ import annotations

from collections import Counter

from placewright.facts import Facts


class Moves:
    """Sum over components of min(old, new) - size of the multiset intersection of (node, ranges)."""

    name = "moves"

    def measure(self, facts: Facts) -> int:
        """Components of one plan alone add nothing; so does the absence of a previous plan."""
        if facts.previous is None:
            return 0
        total = 0
        for name, workers in facts.workers.items():
            before = facts.previous.get(name, ())
            if not before:
                continue
            kept = Counter(workers) & Counter(before)
            total += min(len(before), len(workers)) - kept.total()
        return total
