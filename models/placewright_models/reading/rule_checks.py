"""What cannot be right of rules, pools, traffic and goals: absent names, and rules that contradict each other.

The contradictions are found on a graph whose edges say "these two lie on the same nodes" (or in the same domains); a rule
that keeps two components of one connected part asunder clashes with the chain between them, and the chain is named. Modify
this file when the rules section gets a new key, or a new rule forces components together or apart.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from placewright_models.cluster import Cluster
from placewright_models.errors import Fault
from placewright_models.problem import GLOBAL_POOL, ROLLOUT_POOL, TRAIN_POOL
from placewright_models.quantities import natural_key
from placewright_models.reading.job import Draft
from placewright_models.reading.schema import RULE_LISTS, RulesEntry, TrafficEntry, validate_part
from placewright_models.reading.values import MAX_WORKERS, listed, nearest, show
from placewright_models.workload import DEFAULT_GOALS, GOAL_NAMES, Rules, Traffic, component_key

_ONE_IS_ENOUGH = ("same_node", "same_domain")
MAX_GOAL_VALUE = 2**62

Pools = tuple[tuple[str, tuple[str, ...]], ...]


def parse_rules(data: Any, drafts: Mapping[str, Draft], faults: list[Fault]) -> Rules:
    """The rules, complete with pools; faults are appended."""
    entry, broken = validate_part(RulesEntry, {} if data is None else data, "rules", faults)
    names = list(drafts)
    pools_known = not any(field.partition(".")[0] == "pools" for field in broken)
    if entry.env_strategy is not None and entry.strategy is None and not broken & {"strategy", "env_strategy"}:
        faults.append(
            Fault(
                "rules.env_strategy",
                f"{entry.env_strategy} without strategy",
                "add strategy: disaggregate or colocate, or drop it",
            )
        )
    if entry.pools is not None:
        pools = canonical_pools(entry.pools)
        faults.extend(_check_pools(entry.pools, names, complete=pools_known))
    else:
        pools = default_pools(names, entry.strategy)
    for key in RULE_LISTS:
        for index, members in enumerate(getattr(entry, key)):
            if f"{key}[{index}]" not in broken:
                faults.extend(_check_entry(f"rules.{key}[{index}]", key, members, names))
    rules = Rules(
        strategy=entry.strategy,
        env_strategy=entry.env_strategy,
        pools=pools,
        explicit_pools=entry.pools is not None,
        **{key: tuple(getattr(entry, key)) for key in RULE_LISTS},
    )
    faults.extend(_check_sharing(rules, drafts, pools_known=pools_known))
    faults.extend(_check_asunder(rules, drafts))
    return rules


def canonical_pools(pools: Mapping[str, Sequence[str]]) -> Pools:
    """Pools and their members in the order that does not depend on how they were written."""
    last = (math.inf,)
    ordered = [(name, tuple(sorted(members, key=component_key))) for name, members in pools.items()]
    ordered.sort(key=lambda pool: (component_key(pool[1][0])[:1] if pool[1] else last, natural_key(pool[0]), pool[0]))
    return tuple(ordered)


def default_pools(names: Collection[str], strategy: str | None) -> Pools:
    """The pools of a problem that writes none (H4)."""
    if strategy != "disaggregate":
        return canonical_pools({GLOBAL_POOL: list(names)} if names else {})
    train = [name for name in names if name in ("train", "buffer")]
    rest = [name for name in names if name not in ("train", "buffer")]
    return canonical_pools({pool: members for pool, members in ((TRAIN_POOL, train), (ROLLOUT_POOL, rest)) if members})


def _check_pools(pools: Mapping[str, Sequence[str]], names: Collection[str], *, complete: bool) -> Iterator[Fault]:
    where: dict[str, str] = {}
    for pool, members in pools.items():
        for name in members:
            place = f"rules.pools.{pool}"
            if name not in names:
                yield Fault(place, f"{name} is not a component", nearest(name, names))
            elif name in where:
                also = "twice in it" if where[name] == pool else f"also in {where[name]}"
                yield Fault(place, f"{name} is {also}", "every component is in one pool")
            where.setdefault(name, pool)
    missing = [name for name in names if name not in where] if complete else []
    if missing:
        wrong = f"{listed(missing)} {'is' if len(missing) == 1 else 'are'} in no pool"
        yield Fault("rules.pools", wrong, "list every component once, or drop pools")


def _check_entry(place: str, key: str, members: Sequence[str], names: Collection[str]) -> Iterator[Fault]:
    for name in dict.fromkeys(members):
        if name not in names:
            yield Fault(place, f"{name} is not a component", nearest(name, names))
    distinct = set(members)
    least = 1 if key in _ONE_IS_ENOUGH else 2
    if len(distinct) < least:
        wrong = f"names {listed(distinct)} only" if distinct else "names nobody"
        yield Fault(place, wrong, f"name at least {'one component' if least == 1 else 'two different components'}")
    elif len(distinct) < len(members):
        twice = [name for name in distinct if members.count(name) > 1]
        yield Fault(place, f"names {listed(sorted(twice))} twice", "name each once")


def _check_sharing(rules: Rules, drafts: Mapping[str, Draft], *, pools_known: bool) -> Iterator[Fault]:
    """Sharing that the pools or the components themselves rule out."""
    pool_of = {name: pool for pool, members in rules.pools for name in members}
    for key in ("share_gpus", "colocate"):
        for index, members in enumerate(getattr(rules, key)):
            place = f"rules.{key}[{index}]"
            found = {pool_of[name]: name for name in reversed(members) if name in pool_of and name in drafts}
            if rules.strategy == "disaggregate" and pools_known and len(found) > 1:
                text = listed(f"{name} is in {pool}" for pool, name in reversed(found.items()))
                yield Fault(
                    place,
                    f"GPUs are never shared between disaggregated pools: {text}",
                    "put them in one pool, or drop the entry",
                )
            if key == "colocate":
                idle = [
                    name
                    for name in members
                    if name in drafts and drafts[name].gpus == 0 and drafts[name].knows("gpus", "replicas", "gpus_per_replica")
                ]
                if idle:
                    yield Fault(
                        place,
                        f"{listed(idle)} has no GPU",
                        "colocated components use exactly the same GPUs; same_node may be meant",
                    )


def _check_asunder(rules: Rules, drafts: Mapping[str, Draft]) -> Iterator[Fault]:
    """separate_nodes and separate_domains against everything that forces components together."""
    if not rules.separate_nodes and not rules.separate_domains:
        return
    together: list[tuple[str, tuple[str, ...]]] = []
    for key in ("colocate", "same_node"):
        together.extend((f"rules.{key}[{index}]", members) for index, members in enumerate(getattr(rules, key)))
    for name, draft in drafts.items():
        if draft.per_node_of is not None and draft.per_node_of in drafts:
            together.append((f"components.{name}.per_node_of", (name, draft.per_node_of)))
    yield from _clashes("separate_nodes", rules.separate_nodes, together, "on the same nodes")
    together.extend((f"rules.same_domain[{index}]", members) for index, members in enumerate(rules.same_domain))
    yield from _clashes("separate_domains", rules.separate_domains, together, "in the same domains")


def _clashes(
    key: str, apart: Sequence[Sequence[str]], together: list[tuple[str, tuple[str, ...]]], where: str
) -> Iterator[Fault]:
    if not apart or not together:
        return
    import networkx

    graph: networkx.Graph[str] = networkx.Graph()
    for rule, joined in together:
        # All pairs make the named chain the shortest one; a neighbour chain says the same where the list is long.
        pairs = itertools.combinations(joined, 2) if len(joined) <= 40 else itertools.pairwise(joined)
        for first, second in pairs:
            if first != second and not graph.has_edge(first, second):
                graph.add_edge(first, second, rule=rule)
    part_of = {name: part for part, linked in enumerate(networkx.connected_components(graph)) for name in linked}
    for index, members in enumerate(apart):
        parts: dict[int, str] = {}
        for name in dict.fromkeys(members):
            part = part_of.get(name)
            if part is None:
                continue
            first = parts.setdefault(part, name)
            if first == name:
                continue
            chain = networkx.shortest_path(graph, first, name)
            by = dict.fromkeys(graph.edges[step]["rule"] for step in itertools.pairwise(chain))
            wrong = f"{first} and {name} are kept apart, but {listed(by, 20)} put them {where}: {'-'.join(chain)}"
            yield Fault(f"rules.{key}[{index}]", wrong, "drop one of the two")


def parse_traffic(data: Any, drafts: Mapping[str, Draft], faults: list[Fault]) -> tuple[Traffic, ...]:
    """The traffic list; faults are appended."""
    if data is None:
        return ()
    if not isinstance(data, (list, tuple)):
        faults.append(Fault("traffic", f"{show(data)} is not a list", "write [{between: [env, eval], weight: 1}]"))
        return ()
    found: list[Traffic] = []
    seen: dict[frozenset[str], str] = {}
    for index, item in enumerate(data):
        place = f"traffic[{index}]"
        entry, broken = validate_part(TrafficEntry, item, place, faults)
        if "between" in broken:
            continue
        pair = entry.between
        if pair is None or len(pair) != 2 or pair[0] == pair[1]:
            wrong = "is missing" if pair is None else f"names {listed(pair) or 'nobody'}"
            faults.append(Fault(f"{place}.between", wrong, "name two different components"))
            continue
        for name in pair:
            if name not in drafts:
                faults.append(Fault(f"{place}.between", f"{name} is not a component", nearest(name, drafts)))
        first = seen.setdefault(frozenset(pair), place)
        if first != place:
            faults.append(Fault(f"{place}.between", f"{listed(pair)} stand in {first} already", "write each pair once"))
        found.append(Traffic((pair[0], pair[1]), entry.weight))
    return tuple(found)


def parse_goals(data: Any, faults: list[Fault]) -> tuple[str, ...]:
    """The goals in order; faults are appended."""
    if data is None:
        return DEFAULT_GOALS
    if not isinstance(data, (list, tuple)):
        faults.append(Fault("goals", f"{show(data)} is not a list", f"write [{listed(DEFAULT_GOALS, 3)}]"))
        return DEFAULT_GOALS
    goals: list[str] = []
    for index, name in enumerate(data):
        if not isinstance(name, str) or name not in GOAL_NAMES:
            faults.append(Fault(f"goals[{index}]", f"{show(name)} is not a goal", nearest(name, GOAL_NAMES)))
        elif name in goals:
            faults.append(Fault(f"goals[{index}]", f"{name} stands there already", "each goal once"))
        else:
            goals.append(name)
    return tuple(goals)


def check_goal_sizes(
    drafts: Mapping[str, Draft], traffic: Sequence[Traffic], goals: Sequence[str], cluster: Cluster
) -> Iterator[Fault]:
    """Refuse a goal whose value could pass 2^62: the solver counts in 64 bits."""
    most: dict[str, int] = {}
    nodes = len(cluster.nodes)
    for name, draft in drafts.items():
        counts = draft.workers
        most[name] = 0 if counts is None else (min(nodes, MAX_WORKERS) if counts.high is None else counts.high)
    sizes = dict.fromkeys(goals, 0)
    sizes["unplaced"] = sum(draft.entry.priority * most[name] for name, draft in drafts.items())
    sizes["evenness"] = sum(count * count for count in most.values())
    sizes["node_span"] = sizes["domain_span"] = sum((draft.entry.span_weight or 1) * nodes for draft in drafts.values())
    for pair in traffic:
        first, second = (most.get(name, 0) for name in pair.between)
        common = math.gcd(first, second) or 1
        # Every worker without a partner, once over nodes and once over domains.
        sizes["traffic"] = sizes.get("traffic", 0) + 2 * pair.weight * (first * second // common)
    for goal in goals:
        if sizes[goal] > MAX_GOAL_VALUE:
            yield Fault(
                goal if goal == "traffic" else "goals",
                f"{goal} could reach {sizes[goal]:,}, beyond 2^62",
                "use smaller weights",
            )
