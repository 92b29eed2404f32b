"""H8, segments: ``segment_size`` whole nodes of one NVLink domain, of one size, taken together.

Ranks need not be adjacent. ``preferred`` softens only "of one domain". Modify this file when segments get another shape.
"""

from __future__ import annotations

from collections.abc import Iterator

from placewright.facts import Facts
from placewright_models.cluster import DOMAIN_LEVEL
from placewright_models.workload import Component


class Segments:
    """Every node of a segmented component is whole; per domain and node size they come in whole segments."""

    name = "segments"
    code = "H8"

    def check(self, facts: Facts) -> Iterator[str]:
        """Nodes one by one, then nodes per domain and size (required) or per size (preferred)."""
        for component in facts.problem.components:
            if component.segment_size is not None:
                yield from _nodes(facts, component)
                yield from _counts(facts, component, component.segment_size)


def _nodes(facts: Facts, component: Component) -> Iterator[str]:
    for node_id in facts.x[component.name]:
        size = facts.nodes[node_id].gpus
        if component.segment_required and not facts.has_domain(node_id):
            yield f"{component.name} is on {node_id}, whose NVLink domain is unknown: it serves no segment"
        if component.gpus < 1 or size % component.gpus_per_worker:
            yield f"{component.name} is on {node_id}, whose {size} GPUs its workers of {component.gpus} do not divide"
        elif not facts.is_whole(component, node_id):
            yield f"{component.name} is segmented and does not hold the whole of {node_id}"


def _counts(facts: Facts, component: Component, segment_size: int) -> Iterator[str]:
    totals: dict[int, int] = {}
    for (unit, size), count in facts.nodes_per_unit(component, DOMAIN_LEVEL).items():
        totals[size] = totals.get(size, 0) + count
        if component.segment_required and count % segment_size:
            yield (
                f"{' '.join(unit)} gives {component.name} {count} nodes of {size} GPUs, "
                f"not a multiple of its segment_size {segment_size}"
            )
    for size, count in totals.items():
        if not component.segment_required and count % segment_size:
            yield (f"{component.name} holds {count} nodes of {size} GPUs, not a multiple of its segment_size {segment_size}")
