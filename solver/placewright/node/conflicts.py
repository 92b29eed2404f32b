"""How many consecutive GPUs items with given lengths need when some pairs may overlap: closed form where one exists.

Items are intervals; conflicting items must be disjoint. The least span is the *interval chromatic number* of the conflict
graph weighted by the lengths. For a cograph it follows by recursion: parts that do not conflict at all lie over each other
(maximum), parts that conflict completely lie side by side (sum). That covers every rule set made of pools, ``strategy`` and
sharing lists without an induced path on four vertices. Where a part is prime (a 4-path, a 5-cycle) there is no such
recursion and ``least_span`` answers with a lower bound and says so.

Source: cographs and their cotrees, Corneil, Lerchs, Stewart Burlingham 1981; interval colouring of comparability graphs,
Golumbic, Algorithmic Graph Theory and Perfect Graphs, 1980, chapter 8.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

Tree = tuple[str, tuple["Tree", ...]] | int
"""``("sum", parts)``, ``("max", parts)``, ``("prime", items)`` or one item."""


def _parts(members: tuple[int, ...], adjacent: Mapping[int, int]) -> list[tuple[int, ...]]:
    """Connected parts of the graph given by adjacency masks, restricted to ``members``."""
    left = set(members)
    parts: list[tuple[int, ...]] = []
    while left:
        stack = [min(left)]
        part: set[int] = set()
        while stack:
            item = stack.pop()
            if item in part:
                continue
            part.add(item)
            stack.extend(other for other in left if adjacent[item] >> other & 1 and other not in part)
        left -= part
        parts.append(tuple(sorted(part)))
    return parts


@lru_cache(maxsize=4096)
def cotree(members: tuple[int, ...], conflicts: tuple[int, ...]) -> Tree:
    """Decompose the conflict graph on ``members``; ``conflicts`` are the adjacency masks of all items."""
    if len(members) == 1:
        return members[0]
    mask = sum(1 << item for item in members)
    adjacent = {item: conflicts[item] & mask for item in members}
    parts = _parts(members, adjacent)
    if len(parts) > 1:
        return ("max", tuple(cotree(part, conflicts) for part in parts))
    opposite = {item: mask & ~adjacent[item] & ~(1 << item) for item in members}
    parts = _parts(members, opposite)
    if len(parts) > 1:
        return ("sum", tuple(cotree(part, conflicts) for part in parts))
    return ("prime", members)


def least_span(tree: Tree, lengths: Mapping[int, int], conflicts: tuple[int, ...]) -> tuple[int, bool]:
    """The least span, and whether it is exact (False: a lower bound from pairs, because of a prime part)."""
    if isinstance(tree, int):
        return lengths[tree], True
    kind, parts = tree
    if kind == "prime":
        members = [part for part in parts if isinstance(part, int)]
        pairs = [lengths[a] + lengths[b] for a in members for b in members if conflicts[a] >> b & 1]
        return max(pairs, default=0), False
    spans = [least_span(part, lengths, conflicts) for part in parts]
    total = sum(span for span, _ in spans) if kind == "sum" else max(span for span, _ in spans)
    return total, all(exact for _, exact in spans)


def maximal_cliques(members: tuple[int, ...], conflicts: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Maximal sets of pairwise conflicting items: the lengths of each must fit the node together.

    >>> maximal_cliques((0, 1, 2), (0b010, 0b101, 0b010))
    [(0, 1), (1, 2)]
    """
    found: list[tuple[int, ...]] = []

    def grow(clique: int, candidates: int, done: int) -> None:
        if not candidates and not done:
            found.append(tuple(item for item in members if clique >> item & 1))
            return
        while candidates:
            item = candidates.bit_length() - 1
            near = conflicts[item]
            grow(clique | 1 << item, candidates & near, done & near)
            candidates &= ~(1 << item)
            done |= 1 << item

    grow(0, sum(1 << item for item in members), 0)
    return sorted(found)


def has_prime(tree: Tree) -> bool:
    """Whether some part has no closed form, so that clique sums are only necessary."""
    if isinstance(tree, int):
        return False
    return tree[0] == "prime" or any(has_prime(part) for part in tree[1])
