"""traffic: how far two components are from being split in the same proportion, over nodes and over known domains.

Modify this file when a missing local partner is counted otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import gcd, lcm
from typing import TYPE_CHECKING, Any

from placewright.encode.features import Excess
from placewright.facts import Facts
from placewright.goals.goal import Goal
from placewright_models.errors import Fault, InvalidProblem
from placewright_models.workload import Component

if TYPE_CHECKING:
    from placewright.encode.cells import Cell
    from placewright.encode.classes import Topology
    from placewright.encode.encoding import Encoding
    from placewright.job import Job


class TrafficCost(Goal):
    """Per pair (a, b): weight x sum of max(0, W_b x[a] - W_a x[b]) over nodes, plus the same over known domains."""

    name = "traffic"

    def measure(self, facts: Facts) -> int:
        """W is a component's total, its maximum where elastic, both divided by their common divisor."""
        total = 0
        for entry in facts.problem.traffic:
            first, second = (facts.problem.by_name[name] for name in entry.between)
            total += entry.weight * self.pair(facts, first, second)
        return total

    def pair(self, facts: Facts, first: Component, second: Component) -> int:
        """The cost of one pair without its weight."""
        w_first, w_second = _total(facts, first), _total(facts, second)
        common = gcd(w_first, w_second) or 1
        w_first, w_second = w_first // common, w_second // common
        a, b = facts.x[first.name], facts.x[second.name]
        return _excess(a, b, w_first, w_second) + _excess(_by_domain(facts, a), _by_domain(facts, b), w_first, w_second)

    def exact(self, job: Job) -> Iterator[int]:
        """Both ends of every pair."""
        return (job.index[name] for entry in job.problem.traffic for name in entry.between)

    def per_domain(self, job: Job, topology: Topology) -> bool:
        """The domain term looks at every domain."""
        return bool(job.problem.traffic)

    def expression(self, encoding: Encoding) -> Any:
        """Excess on nodes, and excess per domain."""
        total: Any = 0
        for entry in encoding.problem.traffic:
            a, b = (encoding.job.index[name] for name in entry.between)
            w_a, w_b = (encoding.job.components[c].max_workers for c in (a, b))
            if w_a is None or w_b is None:
                raise InvalidProblem(
                    [Fault("traffic", f"{' and '.join(entry.between)}: `workers: auto` has no fixed total", "write a number")]
                )
            common = gcd(w_a, w_b) or 1
            w_a, w_b = w_a // common, w_b // common
            excess = encoding.total(Excess(a, b, w_a, w_b))
            for area in encoding.areas:
                if not area.single_nodes:
                    for number, part in enumerate(area.parts):
                        excess += _domain_term(encoding, part.cells, (a, b), (w_a, w_b), common, f"{area.name}.{number}")
            total += entry.weight * excess
        return total


def _domain_term(
    encoding: Encoding, cells: Sequence[Cell], pair: tuple[int, int], weights: tuple[int, int], common: int, name: str
) -> Any:
    """Excess in one domain; of pooled domains a lower bound of the sum of theirs."""
    (a, b), (w_a, w_b) = pair, weights
    here = [sum(encoding.workers(cell, c) for cell in cells) for c in (a, b)]
    if isinstance(here[0], int) and not here[0]:
        return 0
    above = encoding.number(f"traffic.{name}", w_b * w_a * common)
    encoding.add(above >= w_b * here[0] - w_a * here[1])
    beside = _partners_beside(encoding, cells, a, b, here[0], name)
    if beside is not None:
        encoding.add(beside <= here[1])
        encoding.add(above >= w_b * here[0] - w_a * beside)
    return above


def _partners_beside(encoding: Encoding, cells: Sequence[Cell], a: int, b: int, workers: Any, name: str) -> Any | None:
    """Of pooled domains: at least as many workers of b as lie in those that host a; None where nothing bounds them.

    Where the two exclude each other, b has what a leaves of those domains.
    """
    job = encoding.job
    pool = encoding.hosting_pool(cells, a)
    if pool is None or a not in job.item_of or b not in job.item_of:
        return None
    if not job.conflicts[job.item_of[a]] >> job.item_of[b] & 1:
        return None
    domain, hosting = pool
    scale = lcm(job.per_gpu[a], job.per_gpu[b])
    beside = encoding.number(f"traffic.{name}.beside")
    taken = [scale * max(1, job.width[c]) // job.per_gpu[c] for c in (a, b)]
    encoding.add(taken[0] * workers + taken[1] * beside <= scale * domain.capacity * hosting)
    return beside


def _total(facts: Facts, component: Component) -> int:
    return len(facts.workers[component.name]) if component.max_workers is None else component.max_workers


def _excess(a: Mapping[str, int], b: Mapping[str, int], w_a: int, w_b: int) -> int:
    # Where a is absent the term is never positive, so a's places are enough.
    return sum(max(0, w_b * count - w_a * b.get(place, 0)) for place, count in a.items())


def _by_domain(facts: Facts, counts: Mapping[str, int]) -> dict[str, int]:
    found: dict[str, int] = {}
    for node_id, count in counts.items():
        domain = facts.nodes[node_id].nvlink_domain
        if domain is not None:
            found[domain] = found.get(domain, 0) + count
    return found
