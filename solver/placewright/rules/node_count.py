"""``nodes``: the component is on exactly that many nodes.

Modify this file when the number of nodes may be a range.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from placewright.facts import Facts
from placewright.frame.features import Hosts
from placewright.rules.rule import Rule

if TYPE_CHECKING:
    from placewright.frame.frame import Frame


class NodeCount(Rule):
    """Number of nodes that host the component."""

    name = "node_count"
    code = "nodes"

    def check(self, facts: Facts) -> Iterator[str]:
        """Counts hosting nodes."""
        for component in facts.problem.components:
            found = len(facts.x[component.name])
            if component.nodes is not None and found != component.nodes:
                yield f"{component.name} is on {found} nodes where exactly {component.nodes} are asked"

    def encode(self, frame: Frame) -> None:
        """The number of hosting nodes is given."""
        for c, component in enumerate(frame.job.components):
            if component.nodes is not None:
                frame.add(frame.total(Hosts((c,))) == component.nodes)
