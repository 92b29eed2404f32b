"""The cluster as the rules of other schedulers see it: how many more workers (pods) fit where.

Node-level fit is exact (``placewright.node``), as a kubelet's or slurmd's would be; what the schedulers do above the node
is theirs. Words that none of them has are refused in ``refuse``. Modify this file when more words are translated.
"""

from __future__ import annotations

from benchmarks.peers.peer import CannotExpress, Counts, NothingFound
from placewright.index.job import Job
from placewright.node.fits import Fits
from placewright.node.shape import Shape
from placewright_models.cluster import Node
from placewright_models.problem import Problem


def refuse(problem: Problem, shares: bool = False) -> None:
    """Raise CannotExpress for what job schedulers have no words for.

    Args:
        problem: what is asked.
        shares: whether the scheduler knows workers that take a share of a GPU.
    """
    rules = problem.rules
    if problem.sharing_pairs:
        raise CannotExpress("components that share GPUs")
    for name in ("same_node", "same_domain", "separate_nodes", "separate_domains"):
        if getattr(rules, name):
            raise CannotExpress(name)
    for component in problem.components:
        for what, here in (
            ("an elastic number of workers", component.elastic and not component.auto),
            ("per_node", component.per_node is not None),
            ("an exact number of nodes", component.nodes is not None),
            ("shares of a GPU", (component.fractional and not shares) or component.gpu_share is not None),
            ("aligned", component.aligned),
        ):
            if here:
                raise CannotExpress(f"{component.name}: {what}")


class Board:
    """What lies on each node so far."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.job = Job(problem)
        self.nodes: list[Node] = problem.cluster.topological_order()
        self.fits = Fits(self.job)
        self.shape: list[Shape] = []
        shapes: dict[tuple[int, tuple[int, ...]], Shape] = {}
        for node in self.nodes:
            key = (node.gpus, node.unusable_gpus)
            if key not in shapes:
                shapes[key] = Shape(node.gpus, node.runs)
            self.shape.append(shapes[key])
        self.counts = [(0,) * self.job.count for _ in self.nodes]
        self.domains: dict[tuple[str, str], list[int]] = {}
        for n, node in enumerate(self.nodes):
            self.domains.setdefault(problem.cluster.unit_or_node(node, "nvlink_domain"), []).append(n)
        self._room: dict[tuple[object, ...], int] = {}

    def order(self) -> list[int]:
        """Components in the order an operator would submit them: segments first, then the widest workers.

        ``per_node_of`` components come last, after what they follow.
        """
        components = self.job.components
        return sorted(
            (c for c in range(self.job.count) if components[c].per_node_of is None),
            key=lambda c: (components[c].segment_size is None, -self.job.width[c], c),
        )

    def whole_nodes(self, c: int) -> bool:
        """Whether the component takes whole nodes (segments, groups wider than a node)."""
        return self.job.components[c].segment_size is not None or self.job.whole_node_group(c)

    def room(self, n: int, c: int) -> int:
        """How many more workers of c fit on the node; for whole nodes the full node's or nothing."""
        node, counts = self.nodes[n], self.counts[n]
        if not self.problem.admits(self.job.components[c], node):
            return 0
        key = (self.shape[n], counts, c, node.free_cpu_units, node.free_memory)
        known = self._room.get(key)
        if known is None:
            known = self._room[key] = self._find_room(n, c)
        return known

    def _find_room(self, n: int, c: int) -> int:
        width, shape = self.job.width[c], self.shape[n]
        if self.whole_nodes(c):
            if not shape.whole or not shape.gpus or any(self.counts[n]) or not width or shape.gpus % width:
                return 0
            size = shape.gpus // width
            return size if self.fits_with(n, c, size) else 0
        most = shape.available // width if width else self.job.components[c].max_workers or 0
        if self.job.fractional[c]:
            most = shape.available * self.job.per_gpu[c]
        low = 0
        while low < most:
            middle = (low + most + 1) // 2
            low, most = (middle, most) if self.fits_with(n, c, middle) else (low, middle - 1)
        return low

    def fits_with(self, n: int, c: int, more: int) -> bool:
        """Whether so many more workers of c fit: GPUs, CPUs, memory."""
        counts = self._plus(n, c, more)
        node = self.nodes[n]
        for free, needs in ((node.free_cpu_units, self.job.cpu_units), (node.free_memory, self.job.memory)):
            if free is not None and sum(a * b for a, b in zip(counts, needs, strict=True)) > free:
                return False
        return self.fits(self.shape[n], counts)

    def _plus(self, n: int, c: int, more: int) -> tuple[int, ...]:
        counts = self.counts[n]
        return (*counts[:c], counts[c] + more, *counts[c + 1 :])

    def put(self, n: int, c: int, more: int) -> None:
        """Place workers; a follower (``per_node_of``) comes along by itself at the end."""
        self.counts[n] = self._plus(n, c, more)

    def free_gpus(self, n: int) -> int:
        """GPUs of the node that nothing uses, no sharing assumed."""
        used = sum(
            -(-count // self.job.per_gpu[c]) if self.job.fractional[c] else count * self.job.width[c]
            for c, count in enumerate(self.counts[n])
        )
        return self.shape[n].available - used

    def finish(self) -> Counts:
        """Followers beside what they follow; then everything as counts.

        Raises:
            NothingFound: where a follower has no room.
        """
        for c, component in enumerate(self.job.components):
            if component.per_node_of is None:
                continue
            other = self.job.index[component.per_node_of]
            for n, counts in enumerate(self.counts):
                if counts[other]:
                    if not self.fits_with(n, c, 1):
                        raise NothingFound(f"no room for {component.name} beside {component.per_node_of}")
                    self.put(n, c, 1)
        return {self.nodes[n].id: counts for n, counts in enumerate(self.counts) if any(counts)}
