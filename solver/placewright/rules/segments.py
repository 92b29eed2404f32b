"""H8, segments: ``segment_size`` whole nodes of one NVLink domain, of one size, taken together.

Ranks need not be adjacent. ``preferred`` softens only "of one domain". Modify this file when segments get another shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from placewright.facts import Facts
from placewright.frame.features import Hosts
from placewright.frame.frame import by_size
from placewright.frame.needs import Needs
from placewright.rules.rule import Rule
from placewright_models.cluster import DOMAIN_LEVEL
from placewright_models.workload import Component

if TYPE_CHECKING:
    from placewright.frame.frame import Domains, Frame, Nodes
    from placewright.index.job import Job
    from placewright.index.topology import Domain, NodeClass, Topology


class Segments(Rule):
    """Every node of a segmented component is whole; per domain and node size they come in whole segments."""

    name = "segments"
    code = "H8"

    def check(self, facts: Facts) -> Iterator[str]:
        """Nodes one by one, then nodes per domain and size (required) or per size (preferred)."""
        for component in facts.problem.components:
            if component.segment_size is not None:
                yield from _nodes(facts, component)
                yield from _counts(facts, component, component.segment_size)

    def node_counts(self, job: Job, c: int, node_class: NodeClass, counts: Sequence[int]) -> Sequence[int]:
        """The whole node or nothing; no node without a domain where segments are required."""
        component = job.components[c]
        if component.segment_size is None:
            return counts
        if component.segment_required and node_class.no_domain:
            return (0,)
        return whole_node_counts(job, c, node_class, counts)

    def needs(self, job: Job) -> Needs:
        """Segmented components: all of a node or nothing."""
        return Needs(exact=frozenset(c for c, component in enumerate(job.components) if component.segment_size is not None))

    def per_domain(self, job: Job, topology: Topology) -> bool:
        """One required segmented component on one class of nodes can be dealt out to equal domains; more cannot."""
        segmented = [c for c, component in enumerate(job.components) if component.segment_size is not None]
        if not segmented:
            return False
        serving = [
            node_class
            for node_class in topology.classes
            if any(
                node_class.may >> c & 1
                and not node_class.no_domain
                and len(whole_node_counts(job, c, node_class, range(node_class.gpus + 1))) > 1
                for c in segmented
            )
        ]
        return len(segmented) > 1 or len(serving) > 1 or not job.components[segmented[0]].segment_required

    def encode(self, frame: Frame) -> None:
        """Per domain and size a multiple of segment_size (required); per size in all (preferred)."""
        for c, component in enumerate(frame.job.components):
            if component.segment_size is None:
                continue
            if component.segment_required:
                for domains in frame.domains:
                    if domains.known:
                        for size, nodes in by_size(domains.nodes).items():
                            self._count(frame, c, size, nodes, domains)
            else:
                for size, nodes in by_size(frame.nodes).items():
                    segments = frame.number(f"segments{c}.{size}")
                    frame.add(sum(some.total(Hosts((c,))) for some in nodes) == component.segment_size * segments)

    def _count(self, frame: Frame, c: int, size: int, nodes: Sequence[Nodes], domains: Domains) -> None:
        segment = frame.job.components[c].segment_size or 1
        able = [some for some in nodes if frame.most_alone(some.node_class, c)]
        hosts = sum(some.total(Hosts((c,))) for some in able)
        if isinstance(hosts, int):
            return
        classes = {some.node_class for some in able}

        def room(domain: Domain) -> int:
            """Segments that the domain's nodes of this size come to."""
            there = sum(len(nodes) for t, nodes in domain.nodes.items() if frame.topology.classes[t] in classes)
            return there // segment

        segments = frame.number(f"{domains.name}.segments{c}.{size}", domains.most(room))
        frame.add(hosts == segment * segments)
        frame.add(segments <= domains.may_host(c, room))


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


def whole_node_counts(job: Job, c: int, node_class: NodeClass, counts: Sequence[int]) -> Sequence[int]:
    """None, or as many workers as fill the whole node, where every GPU is available and the width divides the size."""
    size, width = node_class.gpus, job.width[c]
    if not size or not width or not node_class.shape.whole or size % width or size // width not in counts:
        return (0,)
    return (0, size // width)
