"""Better plans near a known one: a few domains are planned anew while the others keep the components that they host.

Large neighbourhood search (Shaw, 1998) over domains. What a domain hosts is the hard part of uneven clusters; with it fixed for
all but a few, CP-SAT answers in some hundredths of a second. The same seed gives the same steps. Usage:
``improve(search)`` while a goal is being minimised. Modify this file when other neighbourhoods are tried.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from placewright.model.blocks import OneDomain

if TYPE_CHECKING:
    from placewright.model.encoding import Encoding
    from placewright.search.lexicographic import Search

DOMAINS = 8
"""Planned anew at a time: 16 were slower to find the same (docs/model.md, section 7)."""
WORK = 0.1
"""Deterministic seconds for one step."""
PATIENCE = 40
"""Steps without success after which it ends."""


def is_uneven(encoding: Encoding) -> bool:
    """Whether many domains are counted one by one, none being like another."""
    return sum(isinstance(area, OneDomain) for area in encoding.areas) >= 3 * DOMAINS


def improve(search: Search) -> None:
    """Improve the best solution of the goal that is being minimised, where there is one; it is the hint already."""
    areas = [area for area in search.encoding.areas if isinstance(area, OneDomain)]
    if search.best is None:
        return
    random = Random(search.params.seed)
    spent, failures = 0.0, 0
    while spent < search.params.neighbourhood_work and failures < PATIENCE and search.time_left > 0.02:
        free = set(random.sample(range(len(areas)), DOMAINS))
        model = search.model.clone()
        for number, area in enumerate(areas):
            if number not in free:
                for hosts in area.hosts:
                    model.add(hosts == search.value(hosts))
        model.add(search.expression <= search.value(search.expression) - 1)
        before = search.best
        _, solver = search.run(1, WORK, model=model)
        spent += solver.response_proto.deterministic_time
        failures += 1
        if search.best is not before:
            failures = 0
            search.hint()
