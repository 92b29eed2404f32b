"""design.md read once more, for the oracles only: who may use what, who may share, what is whole.

Written from the text of the design and from the plain fields of the problem; none of the derived properties that the
library's own model and verifier use (``sharing_pairs``, ``admits``, ``runs``, ``share_units``, ...) is used here, so that a
misreading there is not repeated here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import ROUND_FLOOR, Decimal
from itertools import combinations

from placewright_models.cluster import Node
from placewright_models.plan import Worker
from placewright_models.problem import Problem
from placewright_models.workload import Component

Previous = Mapping[str, Sequence[Worker]]


def units(value: Decimal) -> int:
    """Whole ten-thousandths, cut down."""
    return int((value * 10000).to_integral_value(rounding=ROUND_FLOOR))


class Reading:
    """A problem as the oracles see it: components and nodes by position, everything else looked up."""

    def __init__(self, problem: Problem, previous: Previous | None = None) -> None:
        self.problem = problem
        self.components: list[Component] = list(problem.components)
        self.nodes: list[Node] = list(problem.cluster.nodes)
        self.place = {component.name: c for c, component in enumerate(self.components)}
        self.previous = previous
        goals = [goal for goal in problem.goals if goal != "moves" or previous is not None]
        if previous is not None and "moves" not in goals:
            goals.insert(goals.index("unplaced") + 1 if "unplaced" in goals else 0, "moves")
        self.goals = goals
        self.admitted = [[self._admits(component, node) for node in self.nodes] for component in self.components]
        self.free = [self._free(node) for node in self.nodes]
        self.cpus = [self._cpus(node) for node in self.nodes]
        self.memory = [self._memory(node) for node in self.nodes]
        self.may_share = self._sharing()
        self.same_gpus = self._same_gpus()
        self.whole_node_groups = [self._groups_take_whole_nodes(c) for c in range(len(self.components))]

    # Nodes

    def _admits(self, component: Component, node: Node) -> bool:
        if node.excluded is not None:
            return False
        if node.head and not self.problem.cluster.schedule_on_head:
            return False
        if component.accelerator is not None and component.accelerator != node.accelerator:
            return False
        for key in component.labels:
            if key not in node.labels or node.labels[key] != component.labels[key]:
                return False
        if component.node_ids is not None and node.id not in component.node_ids:
            return False
        return node.id not in component.exclude_node_ids

    def _free(self, node: Node) -> tuple[int, ...]:
        """Available indices, ascending."""
        gone = set(node.unavailable_gpus)
        for held in node.occupied:
            gone.update(held.gpus)
        return tuple(index for index in range(node.gpus) if index not in gone)

    def _cpus(self, node: Node) -> int | None:
        if node.cpus is None:
            return None
        left = node.cpus - node.reserved_cpus - node.cpus_in_use
        for held in node.occupied:
            left -= held.cpus
        return max(0, units(left))

    def _memory(self, node: Node) -> int | None:
        if node.memory is None:
            return None
        return max(0, node.memory - node.memory_in_use - sum(held.memory for held in node.occupied))

    def consecutive(self, n: int) -> bool:
        """Whether the node's available indices have no hole between them."""
        free = self.free[n]
        return not free or free[-1] - free[0] + 1 == len(free)

    def unit(self, n: int, level: str) -> tuple[str, str] | None:
        """The unit of the level that the node is in; None where that is unknown."""
        node = self.nodes[n]
        if level == "cluster":
            return ("cluster", "")
        if level == "node":
            return ("node", node.id)
        if level == "nvlink_domain":
            return None if node.nvlink_domain is None else (level, node.nvlink_domain)
        return (level, node.labels[level]) if level in node.labels else None

    def unit_or_self(self, n: int, level: str) -> tuple[str, str]:
        """An unknown node is a unit of its own."""
        return self.unit(n, level) or ("alone", self.nodes[n].id)

    # Sharing

    def _same_gpus(self) -> list[frozenset[int]]:
        """Sets of components with equal GPUs: entries that have a member in common are one set."""
        leader = list(range(len(self.components)))

        def root(c: int) -> int:
            while leader[c] != c:
                c = leader[c]
            return c

        for entry in self.problem.rules.colocate:
            for name in entry[1:]:
                leader[root(self.place[name])] = root(self.place[entry[0]])
        sets: dict[int, set[int]] = {}
        for c in range(len(self.components)):
            sets.setdefault(root(c), set()).add(c)
        return [frozenset(members) for members in sets.values() if len(members) > 1]

    def _sharing(self) -> set[tuple[int, int]]:
        rules = self.problem.rules
        pool = {name: title for title, members in rules.pools for name in members}
        allowed: set[tuple[int, int]] = set()
        for a, b in combinations(range(len(self.components)), 2):
            first, second = self.components[a].name, self.components[b].name
            listed = any(first in entry and second in entry for entry in rules.share_gpus)
            together = any(a in members and b in members for members in self._same_gpus())
            by_strategy = rules.strategy == "colocate" and "train" in (first, second)
            by_env = rules.env_strategy == "device-colocate" and {first, second} == {"eval", "env"}
            apart = rules.strategy == "disaggregate" and pool.get(first) != pool.get(second)
            if (listed or together or by_strategy or by_env) and not apart:
                allowed |= {(a, b), (b, a)}
        return allowed

    def share(self, c: int) -> int | None:
        """Ten-thousandths of each of its GPUs that one worker holds; None where it gives no share."""
        component = self.components[c]
        if 0 < component.gpus < 1:
            return units(component.gpus)
        return None if component.gpu_share is None else units(component.gpu_share)

    def fractional(self, c: int) -> bool:
        return 0 < self.components[c].gpus < 1

    def width(self, c: int) -> int:
        """Whole GPUs of one worker; 0 without GPU or with a share."""
        gpus = self.components[c].gpus
        return int(gpus) if gpus >= 1 else 0

    # Counts

    def bounds(self, c: int) -> tuple[int, int]:
        """Fewest and most workers."""
        component = self.components[c]
        if component.max_workers is None or component.min_workers is None:
            return (0, len(self.nodes))
        return (component.min_workers, component.max_workers)

    # Groups and segments

    def _groups_take_whole_nodes(self, c: int) -> bool:
        component = self.components[c]
        if component.group is None or self.width(c) == 0:
            return False
        largest = max((node.gpus for n, node in enumerate(self.nodes) if self.admitted[c][n]), default=0)
        return component.group.workers * self.width(c) > largest

    def needs_whole_nodes(self, c: int) -> bool:
        return self.whole_node_groups[c] or self.components[c].segment_size is not None

    def whole_count(self, c: int, n: int) -> int | None:
        """Workers that make the node whole for a component that needs whole nodes; None where it cannot serve at all."""
        component, size = self.components[c], self.nodes[n].gpus
        width = self.width(c)
        if width == 0 or size == 0 or len(self.free[n]) < size or size % width:
            return None
        if self.whole_node_groups[c]:
            assert component.group is not None
            if (component.group.workers * width) % size:
                return None
            if component.group.mode == "required" and self.unit(n, component.group.within) is None:
                return None
        if (
            component.segment_size is not None
            and component.segment_mode == "required"
            and self.unit(n, "nvlink_domain") is None
        ):
            return None
        return size // width

    def nodes_of_group(self, c: int, size: int) -> int:
        """Nodes of that size in one whole-node group."""
        component = self.components[c]
        assert component.group is not None
        return component.group.workers * self.width(c) // size

    # Previous plan

    def kept_before(self, c: int, n: int) -> Counter[tuple[tuple[int, int], ...]]:
        """What the previous plan had of the component on the node: ranges -> workers."""
        if self.previous is None:
            return Counter()
        workers = self.previous.get(self.components[c].name, ())
        return Counter(tuple(ranges) for node_id, ranges in workers if node_id == self.nodes[n].id)
