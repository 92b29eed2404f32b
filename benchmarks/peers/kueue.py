"""Kueue's topology-aware scheduling, written from its documentation: BestFit and LeastFreeCapacity.

Each component is a PodSet, placed in the order of ``Board.order``; a worker is a pod. Segments, and groups inside a domain,
are slices (``podset-slice-size`` with ``podset-slice-required-topology`` at the rack, the node for groups within a node). In
BestFit every PodSet asks ``podset-preferred-topology`` at the rack: the lowest level at which one domain holds it all, else
several domains of the top level. In LeastFreeCapacity every PodSet is unconstrained.

From KEP-2724: "BestFit: selects as many domains as needed starting from the one with the most free capacity; it optimizes
the selection of the last domain at each level to minimize the remaining free resources. LeastFreeCapacity: starting from the
one with the least free capacity." The example there, 7 pods on nodes with room for 3, 3, 2 and 1, is in tests.

Sources: https://github.com/kubernetes-sigs/kueue/tree/main/keps/2724-topology-aware-scheduling ("Computing the assignment"),
https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.peers.board import Board, refuse
from benchmarks.peers.peer import CannotExpress, Found, NothingFound, Peer
from placewright_models.problem import Problem


@dataclass
class Domain:
    """One domain of the topology tree with the pods (in whole slices) that it has room for."""

    name: str
    depth: int
    children: list[Domain] = field(default_factory=list)
    node: int = -1
    pods: int = 0


def choose(domains: Sequence[tuple[int, str]], needed: int, best_fit: bool) -> list[tuple[int, int]] | None:
    """Pods for each of the (room, name) domains: (position, pods), or None where they have no room.

    >>> choose([(3, "a"), (3, "b"), (2, "c"), (1, "d")], 7, best_fit=True)
    [(0, 3), (1, 3), (3, 1)]
    >>> choose([(3, "a"), (3, "b"), (2, "c"), (1, "d")], 7, best_fit=False)
    [(3, 1), (2, 2), (0, 3), (1, 1)]
    """
    order = sorted(range(len(domains)), key=lambda i: ((-1 if best_fit else 1) * domains[i][0], i))
    order = [i for i in order if domains[i][0] > 0]
    found: list[tuple[int, int]] = []
    while needed and order:
        i = order[0]
        if best_fit and domains[i][0] >= needed:
            # The last domain: the least room that is enough.
            i = min((j for j in order if domains[j][0] >= needed), key=lambda j: (domains[j][0], j))
        here = min(domains[i][0], needed)
        found.append((i, here))
        needed -= here
        order.remove(i)
    return None if needed else found


class Kueue(Peer):
    """PodSets one by one over the topology tree."""

    best_fit: bool

    def solve(self, problem: Problem, time_limit: float) -> Found:
        """Counts."""
        refuse(problem)
        board = Board(problem)
        levels = [*problem.cluster.levels, "nvlink_domain", "node"]
        root = self._tree(board, levels)
        for c in board.order():
            self._podset(board, c, root, levels)
        return Found(counts=board.finish())

    def _tree(self, board: Board, levels: list[str]) -> Domain:
        root = Domain("cluster", -1)
        known: dict[tuple[str, ...], Domain] = {(): root}
        for n, node in enumerate(board.nodes):
            path: tuple[str, ...] = ()
            for depth, level in enumerate(levels):
                kind, name = board.problem.cluster.unit_or_node(node, level)
                parent, path = known[path], (*path, f"{kind}/{name}")
                if path not in known:
                    known[path] = Domain(name, depth)
                    parent.children.append(known[path])
            known[path].node = n
        return root

    def _podset(self, board: Board, c: int, root: Domain, levels: list[str]) -> None:
        component = board.job.components[c]
        slice_pods, slice_depth = 1, len(levels) - 1
        rack = len(levels) - 2
        if component.segment_size is not None:
            size = board.problem.largest_node(component) // max(1, board.job.width[c])
            slice_pods, slice_depth = component.segment_size * max(1, size), rack
        elif component.group is not None and component.group.within != "cluster":
            slice_pods, slice_depth = component.group.workers, levels.index(component.group.within)
        needed = component.max_workers or 0
        if needed % slice_pods:
            raise CannotExpress(f"{component.name}: the number of pods is no multiple of the slice")
        self._count(board, c, root, slice_pods, slice_depth)
        if root.pods < needed:
            raise NothingFound(f"{component.name} needs {needed} pods and {root.pods} fit")
        start = root
        if self.best_fit:
            # Preferred at the rack: the lowest level, going up, where one domain holds the whole PodSet.
            for depth in range(rack, -1, -1):
                fitting = [domain for domain in self._at(root, depth) if domain.pods >= needed]
                if fitting:
                    start = min(fitting, key=lambda domain: domain.pods)
                    break
        self._place(board, c, [(start, needed)], slice_pods, slice_depth)

    def _count(self, board: Board, c: int, domain: Domain, slice_pods: int, slice_depth: int) -> None:
        if domain.node >= 0:
            domain.pods = board.room(domain.node, c)
        else:
            for child in domain.children:
                self._count(board, c, child, slice_pods, slice_depth)
            domain.pods = sum(child.pods for child in domain.children)
        if domain.depth == slice_depth:
            domain.pods = domain.pods // slice_pods * slice_pods

    def _at(self, domain: Domain, depth: int) -> list[Domain]:
        if domain.depth == depth:
            return [domain]
        return [found for child in domain.children for found in self._at(child, depth)]

    def _place(self, board: Board, c: int, chosen: list[tuple[Domain, int]], slice_pods: int, slice_depth: int) -> None:
        """Level by level: all chosen domains' children together above the slice level, each domain's alone below it."""
        while chosen and chosen[0][0].node < 0:
            if chosen[0][0].depth >= slice_depth:
                groups = chosen
            else:
                together = Domain("", chosen[0][0].depth, [child for domain, _ in chosen for child in domain.children])
                groups = [(together, sum(pods for _, pods in chosen))]
            chosen = []
            for domain, pods in groups:
                found = choose([(child.pods, child.name) for child in domain.children], pods, self.best_fit)
                if found is None:
                    raise NothingFound(f"{board.job.components[c].name}: {pods} pods do not fit {domain.name}")
                chosen += [(domain.children[i], number) for i, number in found]
        for domain, pods in chosen:
            board.put(domain.node, c, pods)


class KueueBestFit(Kueue):
    """The profile for preferred and required topologies."""

    name = "kueue-best-fit"
    what = "Kueue topology-aware scheduling, BestFit, preferred at the rack, segments as slices"
    best_fit = True


class KueueLeastFree(Kueue):
    """The profile for unconstrained PodSets."""

    name = "kueue-least-free"
    what = "Kueue topology-aware scheduling, LeastFreeCapacity, unconstrained, segments as slices"
    best_fit = False
