"""``per_node``: exact workers on each used node, or a multiset of such numbers.

Modify this file when ``per_node`` gets another form.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from placewright.facts import Facts
from placewright.frame.features import Equals
from placewright.frame.needs import Needs
from placewright.rules.rule import Rule

if TYPE_CHECKING:
    from placewright.frame.frame import Frame
    from placewright.index.job import Job
    from placewright.index.topology import NodeClass


class PerNode(Rule):
    """A number holds on every used node; a list names exactly as many nodes, in any order."""

    name = "per_node"
    code = "per_node"

    def check(self, facts: Facts) -> Iterator[str]:
        """Compares the counts per node."""
        for component in facts.problem.components:
            counts, asked = facts.x[component.name], component.per_node
            if isinstance(asked, int):
                for node_id, count in counts.items():
                    if count != asked:
                        yield f"{component.name} has {count} workers on {node_id} where per_node asks {asked}"
            elif asked is not None and Counter(counts.values()) != Counter(asked):
                found = sorted(counts.values(), reverse=True)
                wanted = sorted(asked, reverse=True)
                yield f"{component.name} has {found} workers on its nodes where per_node asks {wanted}"

    def node_counts(self, job: Job, c: int, node_class: NodeClass, counts: Sequence[int]) -> Sequence[int]:
        """Only the given numbers, or none."""
        per_node = job.components[c].per_node
        if per_node is None:
            return counts
        wanted = {per_node} if isinstance(per_node, int) else set(per_node)
        return [n for n in counts if n == 0 or n in wanted]

    def needs(self, job: Job) -> Needs:
        """Every component with the field."""
        return Needs(exact=frozenset(c for c, component in enumerate(job.components) if component.per_node is not None))

    def encode(self, frame: Frame) -> None:
        """A list is a multiset: so many nodes with each of its numbers."""
        for c, component in enumerate(frame.job.components):
            if isinstance(component.per_node, tuple):
                for value, nodes in sorted(Counter(component.per_node).items()):
                    if value:
                        frame.add(frame.total(Equals(c, value)) == nodes)
