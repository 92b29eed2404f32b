"""Evenness as a linear expression: the least sum of squared counts per node (docs/model.md, section 4).

Usage: ``squares(encoding, c)`` of a component declared in ``Needs.squares``. Modify this file when
evenness is measured otherwise.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from placewright.frame.features import Hosts, Square
from placewright.model.cells import PatternCell

if TYPE_CHECKING:
    from placewright.model.encoding import Encoding


def squares(encoding: Encoding, c: int) -> Any:
    """Sum over nodes of the squared number of workers of c (at least; minimise it).

    Loose components: level v counts the nodes that hold v or more, and v squared is the sum of the first v odd
    numbers; since they grow, the levels fill from below by themselves. Proof in docs/model.md.
    """
    if c in encoding.needs.exact:
        return sum(cell.total(Square(c)) for cell in encoding.cells)
    if c not in encoding.needs.per_place:
        return _levels(encoding, c, list(encoding.cells), encoding.placed[c])
    total: Any = 0
    for cell in encoding.cells:
        if isinstance(cell, PatternCell):
            total += _levels(encoding, c, [cell], encoding.workers([cell], c))
        else:
            total += cell.total(Square(c))
    return total


def _levels(encoding: Encoding, c: int, cells: list[Any], workers: Any) -> Any:
    top = max((pattern[c] for cell in cells for pattern in cell.patterns), default=0)
    if not top:
        return 0
    if top > encoding.params.most_levels:
        return _unlimited_squares(encoding, c, cells, workers, top)
    size = sum(cell.size for cell in cells)
    levels = [encoding.model.new_int_var(0, size, f"{cells[0].name}.even{c}.{v}") for v in range(1, top + 1)]
    for v, level in enumerate(levels, start=1):
        able = sum(cell.at_least(c, v) for cell in cells)
        encoding.model.add(level == able if v == 1 else level <= able)
    encoding.model.add(sum(levels) == workers)
    return sum((2 * v - 1) * level for v, level in enumerate(levels, start=1))


def _unlimited_squares(encoding: Encoding, c: int, cells: list[Any], workers: Any, most: int) -> Any:
    """Squares where every hosting node could take all workers: a convex function of how many nodes host any.

    With W workers on H nodes the least sum is r (q+1)^2 + (H-r) q^2, q = W // H, r = W % H. It is convex in H, so
    its chords bound it exactly at whole numbers. Where W is a variable
    (elastic, or one cell's part), q and r become variables.
    """
    hosting = sum(cell.total(Hosts((c,))) for cell in cells)
    squares = encoding.model.new_int_var(0, most * most, f"{cells[0].name}.even{c}")
    nodes = min(sum(cell.size for cell in cells), most)
    if isinstance(workers, int):
        values = [_least_squares(workers, h) for h in range(1, nodes + 1)]
        count = encoding.model.new_int_var(0, nodes, f"{cells[0].name}.even{c}.nodes")
        encoding.add(count <= hosting)
        for h, (here, after) in enumerate(pairwise(values), start=1):
            encoding.model.add(squares >= here + (after - here) * (count - h))
        if len(values) == 1:
            encoding.model.add(squares >= values[0])
        return squares
    cap = encoding.model.new_int_var(0, most, f"{cells[0].name}.even{c}.each")
    rest = encoding.model.new_int_var(0, nodes, f"{cells[0].name}.even{c}.more")
    count = encoding.model.new_int_var(0, nodes, f"{cells[0].name}.even{c}.nodes")
    whole = encoding.model.new_int_var(0, most, f"{cells[0].name}.even{c}.whole")
    encoding.model.add(count == hosting)
    encoding.model.add_multiplication_equality(whole, [cap, count])
    encoding.model.add(workers == whole + rest)
    encoding.model.add(rest <= count)
    square = encoding.model.new_int_var(0, most * most, f"{cells[0].name}.even{c}.square")
    extra = encoding.model.new_int_var(0, most * most, f"{cells[0].name}.even{c}.extra")
    encoding.model.add_multiplication_equality(square, [cap, whole])
    encoding.model.add_multiplication_equality(extra, [cap, rest])
    # count nodes of cap each, rest of them with one more: count cap^2 + rest (2 cap + 1).
    encoding.model.add(squares == square + 2 * extra + rest)
    return squares


def _least_squares(workers: int, nodes: int) -> int:
    """The least sum of squares of ``workers`` on exactly ``nodes`` nodes."""
    each, more = divmod(workers, nodes)
    return more * (each + 1) ** 2 + (nodes - more) * each**2
