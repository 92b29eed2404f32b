"""domain_capacity: available GPUs of the domains that host anything of the job (best fit).

Modify this file when the size of a touched domain is counted otherwise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placewright.facts import Facts
from placewright.goals.goal import Goal

if TYPE_CHECKING:
    from placewright.frame.frame import Frame


class DomainCapacity(Goal):
    """Counted before this job and on nodes that it may use at all, so that whole domains stay whole for others."""

    name = "domain_capacity"

    def measure(self, facts: Facts) -> int:
        """Sums over the nodes of every touched domain; a node of unknown domain is a domain of its own."""
        used = {facts.nodes[node_id].nvlink_domain for node_id in facts.on}
        admits, components = facts.problem.admits, facts.problem.components
        total = 0
        for node in facts.problem.cluster.nodes:
            touched = node.id in facts.on if node.nvlink_domain is None else node.nvlink_domain in used
            if touched and any(admits(component, node) for component in components):
                total += node.available_gpus
        return total

    def expression(self, frame: Frame) -> Any:
        """Available GPUs of each domain that hosts anything."""
        everything = tuple(range(frame.job.count))
        return sum(domains.hosting(everything, lambda domain: domain.capacity) for domains in frame.domains)
