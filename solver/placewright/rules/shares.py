"""H5: on each GPU the shares of those that give one sum to at most 1, in exact units of 1e-4.

Modify this file when the unit of a share changes, or who counts.
"""

from __future__ import annotations

from collections.abc import Iterator

from placewright.facts import Facts
from placewright.rules.rule import Rule
from placewright_models.quantities import UNITS


class Shares(Rule):
    """Sums what fractional workers and workers with ``gpu_share`` hold; components that give no share take turns."""

    name = "shares"
    code = "H5"

    def check(self, facts: Facts) -> Iterator[str]:
        """Adds up per GPU in whole units; only a GPU over 1 is looked at again, to name who is on it."""
        units = {c.name: c.share_units for c in facts.problem.components if c.share_units is not None and c.gpus}
        held: dict[tuple[str, int], int] = {}
        for name, share in units.items():
            for node_id, ranges in facts.workers[name]:
                for index in facts.indices(ranges):
                    key = (node_id, index)
                    held[key] = held.get(key, 0) + share
        for (node_id, index), total in held.items():
            if total > UNITS:
                yield f"GPU {index} of {node_id} is shared to {total / UNITS:g}: {self._who(facts, units, node_id, index)}"

    def _who(self, facts: Facts, units: dict[str, int], node_id: str, index: int) -> str:
        parts = []
        for name, share in units.items():
            count = sum(node_id == worker.node_id and index in facts.indices(worker.ranges) for worker in facts.workers[name])
            if count:
                parts.append(f"{count} x {share / UNITS:g} {name}")
        return " + ".join(parts)
