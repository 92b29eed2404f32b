"""NeMo-RL's choice of nodes: one role after the other, whole nodes, segments by first fit over domains.

Each role with a ``segment_size`` calls ``select_segment_nodes`` on what the roles before left (its own words: "first fit":
domains by their smallest rank, in each the first nodes by rank); a role without takes the next nodes. The function is
``placewright.compat.nemo_rl``'s, which the recorded cases of tests/vectors hold to NeMo-RL's own
(nemo_rl/distributed/virtual_cluster.py in NVIDIA-NeMo/RL).
"""

from __future__ import annotations

from benchmarks.peers.board import Board, refuse
from benchmarks.peers.peer import CannotExpress, Found, NothingFound, Peer
from placewright_models.cluster import Node
from placewright_models.problem import Problem


class NemoRl(Peer):
    """Roles one by one on whole nodes."""

    name = "nemo-rl"
    what = "NeMo-RL: roles one by one, whole nodes, segments by first fit"

    def solve(self, problem: Problem, time_limit: float) -> Found:
        """Counts; nodes that lost a GPU serve no role, since a role has one ``gpus_per_node``."""
        from placewright.compat.nemo_rl import ResourceInsufficientError, select_segment_nodes

        refuse(problem)
        if any(component.group is not None for component in problem.components):
            raise CannotExpress("groups")
        board = Board(problem)
        place = {node.id: n for n, node in enumerate(board.nodes)}
        taken: set[str] = set()
        for c in board.order():
            component = board.job.components[c]
            workers = component.max_workers or 0
            size = problem.largest_node(component)
            width = board.job.width[c]
            if not width:
                raise CannotExpress(f"{component.name}: a role without GPUs")
            if not size // width:
                raise NothingFound(f"no node holds a worker of {component.name}")

            def serves(node: Node, size: int = size) -> bool:
                # A role asks for one gpus_per_node: the largest that there is.
                return node.gpus == size and node.available_gpus == size and node.id not in taken

            free = [node for node in board.nodes if serves(node) and problem.admits(component, node)]
            needed = -(-workers // (size // width))
            if component.segment_size is not None:
                topology = {
                    node.id: (node.nvlink_domain or "unknown", node.topo_rank or index)
                    for index, node in enumerate(free)
                    if node.nvlink_domain is not None
                }
                try:
                    chosen, _ = select_segment_nodes(topology, component.segment_size, needed)
                except (ResourceInsufficientError, ValueError) as error:
                    raise NothingFound(str(error)[:300]) from error
            else:
                chosen = [node.id for node in free[:needed]]
                if len(chosen) < needed:
                    raise NothingFound(f"{component.name} needs {needed} whole nodes and {len(chosen)} are left")
            left = workers
            for node_id in chosen:
                here = min(left, size // width)
                board.put(place[node_id], c, here)
                left -= here
            taken.update(chosen)
        return Found(counts=board.finish())
