"""H12: all workers of the listed components are in one NVLink domain; an unknown node is a domain of its own.

Modify this file when "same domain" may name another level.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from placewright.facts import Facts, some
from placewright.rules.rule import Rule

if TYPE_CHECKING:
    from placewright.frame.frame import Frame


class SameDomain(Rule):
    """The listed components have one domain among them."""

    name = "same_domain"
    code = "H12"

    def check(self, facts: Facts) -> Iterator[str]:
        """Collects the domains of all components of an entry."""
        for names in facts.problem.rules.same_domain:
            units = dict.fromkeys(facts.domains[node_id] for name in names for node_id in facts.x.get(name, {}))
            if len(units) > 1:
                shown = some(" ".join(unit) for unit in units)
                yield f"{', '.join(names)} must be in one NVLink domain and lie in {len(units)}: {shown}"

    def encode(self, frame: Frame) -> None:
        """At most one domain hosts any of them."""
        for names in frame.problem.rules.same_domain:
            members = tuple(frame.job.names(names))
            frame.add(sum(domains.hosting(members) for domains in frame.domains) <= 1)
