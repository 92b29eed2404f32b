"""Slurm's topology/block plugin, written from its documentation.

Each component is a job of its own, submitted in the order of ``Board.order``, on whole nodes. A block is an NVLink domain.
From the documentation: a job that fits one block gets all its nodes from one block; a larger one gets the fewest blocks; all
nodes of a block are used before the next block is; ``--segment=s`` divides a job into sets of s nodes that each lie in one
block, and several segments may lie in the same block; best fit decides among blocks. The minimum schedulable unit is a node.
``train`` and other collective components use their ``segment_size`` or none; replicas and helpers ask ``--segment=1``, which
the documentation recommends where NVLink is needed inside a node only.

Sources: https://slurm.schedmd.com/topology.html (block topology), https://slurm.schedmd.com/topology.yaml.html,
https://slurm.schedmd.com/sbatch.html (--segment), and "Achieving Peak System and Workload Efficiency on NVIDIA GB200 NVL72
with Slurm Block Scheduling", https://developer.nvidia.com/blog (2026-05-07).
"""

from __future__ import annotations

from benchmarks.peers.board import Board, refuse
from benchmarks.peers.peer import CannotExpress, Found, NothingFound, Peer
from placewright_models.problem import Problem


class SlurmBlock(Peer):
    """Jobs one by one, exclusive nodes, fewest blocks by best fit."""

    name = "slurm-block"
    what = "Slurm topology/block: one job a component, exclusive nodes, fewest blocks, best fit, --segment"

    def solve(self, problem: Problem, time_limit: float) -> Found:
        """Counts."""
        refuse(problem)
        board = Board(problem)
        for c in board.order():
            self._job(board, c)
        return Found(counts=board.finish())

    def _job(self, board: Board, c: int) -> None:
        component = board.job.components[c]
        left = component.max_workers or 0
        segment = component.segment_size or (0 if component.kind == "collective" else 1)
        if component.group is not None:
            if not board.job.whole_node_group(c) or component.group.within == "cluster":
                raise CannotExpress(f"{component.name}: groups other than whole nodes")
            segment = board.job.nodes_per_group(c, problem_size(board, c)) or 0
        free: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for name, nodes in board.domains.items():
            # Exclusive nodes: one that hosts anything is taken. Roomiest first, so that a job needs few.
            here = [(board.room(n, c), n) for n in nodes if not any(board.counts[n])]
            here = sorted((entry for entry in here if entry[0]), key=lambda entry: -entry[0])
            if segment > 1:
                if name[0] == "node":
                    continue
                here = self._segments(here, segment)
            if here:
                free[name] = here
        room = {name: sum(count for count, _ in here) for name, here in free.items()}
        if segment == 0 and left and not any(most >= left for most in room.values()):
            smallest = max((len(nodes) for nodes in board.domains.values()), default=0)
            needed = -(-left // max((here[0][0] for here in free.values()), default=1))
            if needed <= smallest:
                raise NothingFound(f"{component.name} would fit one block and waits for one that is free enough")
        while left:
            fitting = [name for name, most in room.items() if most >= left]
            if fitting:
                block = min(fitting, key=lambda name: (room[name], -len(free[name])))
            elif room:
                block = max(room, key=lambda name: room[name])
            else:
                raise NothingFound(f"{left} workers of {component.name} do not fit")
            for count, n in free.pop(block):
                more = min(count, left)
                if more:
                    board.put(n, c, more)
                    left -= more
            del room[block]

    def _segments(self, nodes: list[tuple[int, int]], segment: int) -> list[tuple[int, int]]:
        """The nodes of a block that make whole segments of equal nodes."""
        by_room: dict[int, list[tuple[int, int]]] = {}
        for count, n in nodes:
            by_room.setdefault(count, []).append((count, n))
        kept: list[tuple[int, int]] = []
        for here in by_room.values():
            kept += here[: len(here) // segment * segment]
        return kept


def problem_size(board: Board, c: int) -> int:
    """GPUs of the largest node that the component may use."""
    return board.problem.largest_node(board.job.components[c])
