"""A whole problem: cluster, components, rules, traffic, goals. Complete, frozen, and valid by construction.

Build one with ``placewright.load_problem`` (``placewright_models.codec``), which refuses invalid input. What stands here is
only what the problem *means*: who may share GPUs with whom, who may use which node. Modify this file when that meaning
changes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from placewright_models.cluster import Cluster, Node
from placewright_models.workload import DEFAULT_GOALS, Component, Rules, Traffic, component_key

ROLLOUT_POOL = "rollout_pool"
TRAIN_POOL = "train_pool"
GLOBAL_POOL = "global_pool"


@dataclass(frozen=True)
class Problem:
    """What is asked. ``components`` are in canonical order (``component_key``), nodes in discovery order."""

    cluster: Cluster
    components: tuple[Component, ...] = ()
    rules: Rules = Rules()
    traffic: tuple[Traffic, ...] = ()
    goals: tuple[str, ...] = DEFAULT_GOALS

    def __post_init__(self) -> None:
        ordered = tuple(sorted(self.components, key=lambda component: component_key(component.name)))
        object.__setattr__(self, "components", ordered)

    @cached_property
    def by_name(self) -> dict[str, Component]:
        """Components by name."""
        return {component.name: component for component in self.components}

    @cached_property
    def node_by_id(self) -> dict[str, Node]:
        """Nodes by id."""
        return {node.id: node for node in self.cluster.nodes}

    @cached_property
    def pool_of(self) -> dict[str, str]:
        """Name of the pool of each component (H13)."""
        return {name: pool for pool, members in self.rules.pools for name in members}

    @cached_property
    def colocated_sets(self) -> tuple[tuple[str, ...], ...]:
        """Components that must use exactly the same GPUs (H11), merged transitively, each in canonical order."""
        merged: list[set[str]] = []
        for entry in self.rules.colocate:
            together = set(entry)
            for other in [other for other in merged if other & together]:
                together |= other
                merged.remove(other)
            merged.append(together)
        ordered = [tuple(sorted(names, key=component_key)) for names in merged]
        return tuple(sorted(ordered, key=lambda names: component_key(names[0])))

    @cached_property
    def sharing_pairs(self) -> frozenset[frozenset[str]]:
        """Pairs of different components that may use the same GPU (H4)."""
        pairs: set[frozenset[str]] = set()
        names = [component.name for component in self.components]
        for entry in (*self.rules.share_gpus, *self.colocated_sets):
            pairs.update(frozenset((a, b)) for a in entry for b in entry if a != b)
        if self.rules.strategy == "colocate" and "train" in names:
            pairs.update(frozenset(("train", name)) for name in names if name != "train")
        if self.rules.env_strategy == "device-colocate" and {"eval", "env"} <= set(names):
            pairs.add(frozenset(("eval", "env")))
        if self.rules.strategy == "disaggregate":
            # GPU sets are disjoint between pools, whatever else is said.
            pairs = {pair for pair in pairs if len({self.pool_of.get(name) for name in pair}) == 1}
        return frozenset(pairs)

    def may_share(self, first: str, second: str) -> bool:
        """Whether the two components may lie on the same GPU."""
        return frozenset((first, second)) in self.sharing_pairs

    def admits(self, component: Component, node: Node) -> bool:
        """Whether the node passes the component's filters (H10): accelerator, labels, ids, head, excluded."""
        if node.excluded is not None or (node.head and not self.cluster.schedule_on_head):
            return False
        if component.accelerator is not None and node.accelerator != component.accelerator:
            return False
        if component.node_ids is not None or component.exclude_node_ids:
            only, without = self._ids_of(component)
            if node.id in without or (only is not None and node.id not in only):
                return False
        return all(node.labels.get(key) == value for key, value in component.labels.items())

    @cached_property
    def _id_sets(self) -> dict[int, tuple[Component, frozenset[str] | None, frozenset[str]]]:
        return {}

    def _ids_of(self, component: Component) -> tuple[frozenset[str] | None, frozenset[str]]:
        """The component's id filters as sets, made once: there may be thousands of ids."""
        known = self._id_sets.get(id(component))
        if known is None:
            only = None if component.node_ids is None else frozenset(component.node_ids)
            # The component is kept beside its sets, so that its identity is not given to another one.
            known = self._id_sets[id(component)] = (component, only, frozenset(component.exclude_node_ids))
        return known[1], known[2]

    def largest_node(self, component: Component) -> int:
        """Most GPUs of a node that the component may use, by ``gpus`` (not by what is free); 0 where there is none."""
        return max((node.gpus for node in self.cluster.nodes if self.admits(component, node)), default=0)

    def pools(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Pool names with their members, in order."""
        return iter(self.rules.pools)
