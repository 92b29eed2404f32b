"""H13: a component is in one pool, and every range appears in its own component's pool, also where pools meet on a node.

Modify this file when the pools section of a plan says something new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from placewright.facts import Facts
from placewright.rules.rule import Rule
from placewright_models.plan import Plan, PoolNode
from placewright_models.ranges import Ranges, format_ranges


class Pools(Rule):
    """The plan's pools say exactly what its workers say, split as the problem's pools split the components."""

    name = "pools"
    code = "H13"

    def check(self, facts: Facts) -> Iterator[str]:
        """Membership in the problem, then every node of every pool of the plan against the workers."""
        times: dict[str, int] = {}
        for _, members in facts.problem.pools():
            for name in members:
                times[name] = times.get(name, 0) + 1
        for component in facts.problem.components:
            found = times.get(component.name, 0)
            if found != 1:
                yield f"{component.name} is in {found} pools of the problem and must be in one"
        if facts.plan is not None:
            yield from _sections(facts, facts.plan)


def _sections(facts: Facts, plan: Plan) -> Iterator[str]:
    expected = _expected(facts)
    seen: set[tuple[str, str]] = set()
    names: set[str] = set()
    for pool in plan.pools:
        if pool.name in names:
            yield f"the plan lists pool {pool.name} twice"
        names.add(pool.name)
        for node in pool.nodes:
            key = (pool.name, node.node_id)
            if key in seen:
                yield f"pool {pool.name} lists {node.node_id} twice"
                continue
            seen.add(key)
            yield from _node(facts, pool.name, node, expected.get(key, {}))
    for key, components in expected.items():
        if key not in seen:
            yield f"pool {key[0]} does not list {key[1]}, which hosts {', '.join(components)}"
    known = {name for name, _ in facts.problem.pools()}
    for name in sorted(names - known):
        yield f"pool {name} of the plan is not a pool of the problem"


def _expected(facts: Facts) -> dict[tuple[str, str], dict[str, Ranges]]:
    """(pool, node id) -> component -> its ranges there, from the workers."""
    expected: dict[tuple[str, str], dict[str, Ranges]] = {}
    pool_of, ranges = facts.problem.pool_of, facts.ranges
    for name, counts in facts.x.items():
        pool, masks = pool_of.get(name, ""), facts.masks[name]
        for node_id in counts:
            expected.setdefault((pool, node_id), {})[name] = ranges(masks.get(node_id, 0))
    return expected


def _node(facts: Facts, pool: str, node: PoolNode, expected: Mapping[str, Ranges]) -> Iterator[str]:
    found = node.allocations
    known = facts.nodes.get(node.node_id)
    if known is None:
        yield f"pool {pool} lists {node.node_id}, which is not a node of the cluster"
    elif known.gpus != node.gpus:
        yield f"pool {pool} gives {node.node_id} {node.gpus} GPUs, and it has {known.gpus}"
    if found == expected:
        return
    for name, ranges in expected.items():
        if name not in found:
            yield f"pool {pool} does not list {name} on {node.node_id}"
        elif found[name] != ranges:
            yield f"pool {pool} has {name} on {_gpus(found[name])} of {node.node_id}, and its workers are on {_gpus(ranges)}"
    for name in found:
        if name not in expected:
            yield f"pool {pool} lists {name} on {node.node_id}, where that pool has no worker of it"


def _gpus(ranges: Ranges) -> str:
    return f"GPUs {format_ranges(ranges)}" if ranges else "no GPU"
