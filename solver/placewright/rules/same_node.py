"""H12: all workers of the listed components are on one single node.

Modify this file when "same node" may hold per worker instead of for all together.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from placewright.facts import Facts, some
from placewright.frame.features import Hosts
from placewright.rules.rule import Rule

if TYPE_CHECKING:
    from placewright.frame.frame import Frame


class SameNode(Rule):
    """The listed components have one node among them."""

    name = "same_node"
    code = "H12"

    def check(self, facts: Facts) -> Iterator[str]:
        """Collects the nodes of all components of an entry."""
        for names in facts.problem.rules.same_node:
            nodes = dict.fromkeys(node_id for name in names for node_id in facts.x.get(name, {}))
            if len(nodes) > 1:
                yield f"{', '.join(names)} must be on one node and {_are(names)} on {len(nodes)}: {some(nodes)}"

    def encode(self, frame: Frame) -> None:
        """At most one node hosts any of them."""
        for names in frame.problem.rules.same_node:
            members = tuple(frame.job.names(names))
            frame.add(frame.total(Hosts(members)) <= 1)


def _are(names: tuple[str, ...]) -> str:
    return "are" if len(names) > 1 else "is"
