"""What every rule offers.

A rule has a name, the paragraph of design.md section 4 that it comes from, a check that reads a plan's facts and names
every violation, and its part of the model. The two halves share no code: the check reads a finished plan, the model half
states what may be chosen. A node-local rule needs only the hooks over one node; a rule over domains or the whole cluster
declares what it needs and states constraints in ``encode``, with what ``frame/frame.py`` offers.
Modify this file when rules get another common part.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from placewright.facts import Facts
from placewright.frame.needs import Needs

if TYPE_CHECKING:
    from placewright.frame.frame import Frame
    from placewright.index.job import Job
    from placewright.index.topology import NodeClass, Topology


class Rule:
    """One hard rule. Every hook of the model half defaults to saying nothing."""

    name: str
    code: str

    def check(self, facts: Facts) -> Iterator[str]:
        """One plain sentence per violation, with component, node and numbers."""
        raise NotImplementedError

    def node_counts(self, job: Job, c: int, node_class: NodeClass, counts: Sequence[int]) -> Sequence[int]:
        """Of these numbers of workers of component c on one node of the class, those that the rule allows."""
        return counts

    def apart(self, job: Job, node_class: NodeClass) -> Iterator[tuple[int, int]]:
        """Pairs of components that one node of the class may not host together."""
        return iter(())

    def follows(self, job: Job) -> Iterator[tuple[int, int]]:
        """Pairs (follower, leader): the follower has one worker on exactly the nodes that host the leader."""
        return iter(())

    def needs(self, job: Job) -> Needs:
        """What ``encode`` will ask of the frame; asked of every rule and goal before any variable is made."""
        return Needs()

    def per_domain(self, job: Job, topology: Topology) -> bool:
        """Whether the rule needs domains one by one: counting equal domains together would lose something."""
        return False

    def encode(self, frame: Frame) -> None:
        """State what the rule asks of domains, levels, or the whole cluster."""
