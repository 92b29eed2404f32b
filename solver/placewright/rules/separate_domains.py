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
    from placewright.index.job import Job
    from placewright.index.topology import NodeClass
    from placewright.model.encoding import Encoding


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

    def encode(self, encoding: Encoding) -> None:
        """No domain hosts two of them; nodes without a domain are covered by ``apart``."""
        for _index, names in enumerate(encoding.problem.rules.separate_domains):
            for a, b in combinations(encoding.job.names(names), 2):
                for area in encoding.areas:
                    if not area.single_nodes:
                        for part in area.parts:
                            both = area.may_host(part, a) + area.may_host(part, b)
                            encoding.add(both <= part.number())
