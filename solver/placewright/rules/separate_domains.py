"""H12: no NVLink domain hosts two of the listed components; an unknown node is a domain of its own.

Modify this file when separation may name another level.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

from placewright.facts import Facts
from placewright.rules.rule import Rule

if TYPE_CHECKING:
    from placewright.frame.frame import Frame
    from placewright.index.job import Job
    from placewright.index.topology import NodeClass


class SeparateDomains(Rule):
    """The listed components have no domain in common, pair by pair."""

    name = "separate_domains"
    code = "H12"

    def check(self, facts: Facts) -> Iterator[str]:
        """Intersects the domain sets of every pair of an entry."""
        for names in facts.problem.rules.separate_domains:
            hosting = {name: dict.fromkeys(facts.domains[node_id] for node_id in facts.x.get(name, {})) for name in names}
            for first, second in combinations(hosting, 2):
                for unit in hosting[first]:
                    if unit in hosting[second]:
                        yield f"{first} and {second} are both in {' '.join(unit)} and must be in separate NVLink domains"

    def apart(self, job: Job, node_class: NodeClass) -> Iterator[tuple[int, int]]:
        """Two components in different domains are on different nodes too."""
        for names in job.problem.rules.separate_domains:
            yield from combinations(job.names(names), 2)

    def encode(self, frame: Frame) -> None:
        """No domain hosts two of them; nodes without a domain are covered by ``apart``."""
        for names in frame.problem.rules.separate_domains:
            for a, b in combinations(frame.job.names(names), 2):
                for domains in frame.domains:
                    if domains.known:
                        frame.add(domains.may_host(a) + domains.may_host(b) <= domains.number())
