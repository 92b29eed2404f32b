"""KAI Scheduler with ``placementStrategy: binpack``, written from its documentation.

Each component is a PodGroup (gang), placed in the order of ``Board.order``, pod by pod: the node placement plugin scores a
node the higher the fewer GPUs it has free. Segments are subgroups with ``segment-topology-required-placement`` at the rack;
for each, candidate racks are tried in the order of bin packing (fewest resources first, as the design says: "if bin packing
was requested then get the topology with the least resources"), and inside the rack the pods are packed.

Sources: https://github.com/NVIDIA/KAI-Scheduler: docs/developer/designs/topology-awareness/README.md,
docs/developer/designs/segmented-subgroups/README.md, docs/topology/README.md, and the README's "Bin Packing & Spread
Scheduling".
"""

from __future__ import annotations

import heapq

from benchmarks.peers.board import Board, refuse
from benchmarks.peers.peer import Found, NothingFound, Peer
from placewright_models.problem import Problem


class KaiBinpack(Peer):
    """Gangs one by one, each pod on the fullest node that has room."""

    name = "kai-binpack"
    what = "KAI Scheduler, binpack: the fullest node first, segments in the fullest rack that has room"

    def solve(self, problem: Problem, time_limit: float) -> Found:
        """Counts."""
        refuse(problem, shares=True)
        board = Board(problem)
        for c in board.order():
            component = board.job.components[c]
            needed = component.max_workers or 0
            if component.segment_size is not None:
                self._subgroups(board, c, component.segment_size, needed, "nvlink_domain")
            elif component.group is not None and component.group.within not in ("cluster", "node"):
                self._groups(board, c, component.group.workers, needed, component.group.within)
            elif component.group is not None and component.group.within == "node":
                self._on_one_node(board, c, component.group.workers, needed)
            else:
                self._pods(board, c, range(len(board.nodes)), needed)
        return Found(counts=board.finish())

    def _pods(self, board: Board, c: int, nodes: range | list[int], needed: int) -> None:
        """Pods one after the other on the node with the fewest free GPUs; a node is filled before the next is chosen."""
        name = board.job.components[c].name
        for n in sorted(nodes, key=lambda n: (board.free_gpus(n), n)):
            if not needed:
                return
            # A pod placed makes this node fuller still, so the next pod comes here too until nothing fits.
            here = min(board.room(n, c), needed)
            if here:
                board.put(n, c, here)
                needed -= here
        if needed:
            raise NothingFound(f"{needed} pods of {name} do not fit")

    def _on_one_node(self, board: Board, c: int, k: int, needed: int) -> None:
        for n in sorted(range(len(board.nodes)), key=lambda n: (board.free_gpus(n), n)):
            here = min(board.room(n, c) // k * k, needed)
            if here:
                board.put(n, c, here)
                needed -= here
        if needed:
            raise NothingFound(f"{needed} pods of {board.job.components[c].name} do not fit in groups of {k}")

    def _subgroups(self, board: Board, c: int, segment: int, needed: int, level: str) -> None:
        """Segments of whole nodes, each in the rack with the fewest free GPUs that holds one."""
        left = needed
        racks: list[tuple[int, str, list[tuple[int, int]]]] = []
        for (kind, name), nodes in board.domains.items():
            if kind == "node":
                continue
            by_room: dict[int, list[int]] = {}
            for n in nodes:
                if room := board.room(n, c):
                    by_room.setdefault(room, []).append(n)
            whole = [(room, n) for room, here in by_room.items() for n in here[: len(here) // segment * segment]]
            if whole:
                heapq.heappush(racks, (sum(board.free_gpus(n) for n in nodes), name, whole))
        while left and racks:
            # A rack that got a segment is fuller than before and so is first again until it holds no more.
            _, _, whole = heapq.heappop(racks)
            for room, n in whole:
                here = min(room, left)
                if here:
                    board.put(n, c, here)
                    left -= here
        if left:
            raise NothingFound(f"{left} pods of {board.job.components[c].name} do not fit in segments of {segment} nodes")

    def _groups(self, board: Board, c: int, k: int, needed: int, level: str) -> None:
        """Groups of pods, each in the unit with the fewest free GPUs that holds one."""
        units: dict[tuple[str, str], list[int]] = {}
        for n, node in enumerate(board.nodes):
            units.setdefault(board.problem.cluster.unit_or_node(node, level), []).append(n)
        for nodes in sorted(units.values(), key=lambda nodes: sum(board.free_gpus(n) for n in nodes)):
            room = sum(board.room(n, c) for n in nodes) // k * k
            here = min(room, needed)
            if here:
                self._pods(board, c, nodes, here)
                needed -= here
        component = board.job.components[c]
        if needed and component.group is not None and component.group.required:
            raise NothingFound(f"{needed} pods of {component.name} do not fit in groups of {k}")
        if needed:
            self._pods(board, c, range(len(board.nodes)), needed)
