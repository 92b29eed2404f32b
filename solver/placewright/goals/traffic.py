"""traffic: how far two components are from being split in the same proportion, over nodes and over known domains.

Modify this file when a missing local partner is counted otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd, lcm
from typing import TYPE_CHECKING, Any

from placewright.facts import Facts
from placewright.frame.features import Excess
from placewright.frame.needs import Needs
from placewright.goals.goal import Goal
from placewright_models.cluster import DOMAIN_LEVEL
from placewright_models.errors import Fault, InvalidProblem
from placewright_models.workload import Component

if TYPE_CHECKING:
    from placewright.frame.frame import Frame, Mixed, Unit
    from placewright.index.job import Job
    from placewright.index.topology import Topology


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

    def needs(self, job: Job) -> Needs:
        """Both ends of every pair."""
        return Needs(exact=frozenset(job.index[name] for entry in job.problem.traffic for name in entry.between))

    def per_domain(self, job: Job, topology: Topology) -> bool:
        """The domain term looks at every domain."""
        return bool(job.problem.traffic)

    def expression(self, frame: Frame) -> Any:
        """Excess on nodes, and excess per domain."""
        total: Any = 0
        for number, entry in enumerate(frame.problem.traffic):
            a, b = (frame.job.index[name] for name in entry.between)
            w_a, w_b = (frame.job.components[c].max_workers for c in (a, b))
            if w_a is None or w_b is None:
                raise InvalidProblem(
                    [Fault("traffic", f"{' and '.join(entry.between)}: `workers: auto` has no fixed total", "write a number")]
                )
            common = gcd(w_a, w_b) or 1
            w_a, w_b = w_a // common, w_b // common
            excess = frame.total(Excess(a, b, w_a, w_b))
            for unit in frame.units(DOMAIN_LEVEL):
                if not unit.alone:
                    excess += _domain_term(frame, unit, (a, b), (w_a, w_b), common, f"{unit.name}.traffic{number}")
            total += entry.weight * excess
        return total


def _domain_term(
    frame: Frame, unit: Unit, pair: tuple[int, int], weights: tuple[int, int], common: int, name: str
) -> Any:
    """Excess in one domain; of mixed domains a lower bound of the sum of theirs."""
    (a, b), (w_a, w_b) = pair, weights
    here = [frame.workers(unit.nodes, c) for c in (a, b)]
    if isinstance(here[0], int) and not here[0]:
        return 0
    above = frame.number(name, w_b * w_a * common)
    frame.add(above >= w_b * here[0] - w_a * here[1])
    mixed = frame.mixed(unit, a)
    if mixed is not None and _exclude(frame.job, a, b):
        beside = _partners_beside(frame, mixed, a, b, here[0], name)
        frame.add(beside <= here[1])
        frame.add(above >= w_b * here[0] - w_a * beside)
        by_groups = _beside_groups(frame, mixed, frame.groups(unit, a), pair, weights, name)
        if by_groups is not None:
            frame.add(above >= by_groups)
    return above


def _exclude(job: Job, a: int, b: int) -> bool:
    """Whether the two may not share GPUs, so that one has what the other leaves."""
    return a in job.item_of and b in job.item_of and bool(job.conflicts[job.item_of[a]] >> job.item_of[b] & 1)


def _partners_beside(frame: Frame, mixed: Mixed, a: int, b: int, workers: Any, name: str) -> Any:
    """Of mixed domains: at least as many workers of b as lie in those that host a, of which b has what a leaves."""
    job = frame.job
    scale = lcm(job.per_gpu[a], job.per_gpu[b])
    beside = frame.number(f"{name}.beside")
    taken = [scale * max(1, job.width[c]) // job.per_gpu[c] for c in (a, b)]
    frame.add(taken[0] * workers + taken[1] * beside <= scale * mixed.domain.capacity * mixed.hosting)
    return beside


def _beside_groups(
    frame: Frame, mixed: Mixed, kept: Mapping[int, Any], pair: tuple[int, int], weights: tuple[int, int], name: str
) -> Any | None:
    """Of mixed domains, where a comes in groups: a lower bound of the excess from how many whole groups each of them holds.

    Next to k groups b has only so many workers, whatever the other domains hold.
    """
    job = frame.job
    (a, b), (w_a, w_b) = pair, weights
    group, capacity = job.components[a].group, mixed.domain.capacity
    if group is None or not kept:
        return None
    # Groups of shares may have a GPU in common.
    most = job.workers_on(a, capacity) // group.workers
    if most > MOST_GROUPS:
        return None
    domains = [frame.number(f"{name}.groups{k}", len(frame.topology.domains)) for k in range(1, most + 1)]
    frame.add(sum(domains) <= mixed.hosting)
    frame.add(sum(k * number for k, number in enumerate(domains, start=1)) == sum(kept.values()))
    excess: Any = 0
    for k, number in enumerate(domains, start=1):
        partners = job.workers_on(b, capacity - job.gpus_for(a, k * group.workers))
        excess += max(0, w_b * k * group.workers - w_a * partners) * number
    return excess


MOST_GROUPS = 256
"""With more groups in one domain they are not told apart."""


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
