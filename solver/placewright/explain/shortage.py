"""What kind of shortage it is: too small even when idle, fragmented, or occupied; and how much each node has.

Usage: ``Shortage(questions).kind(problem)``. Modify this file when another kind is told apart (design.md section 8).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal

from placewright.explain.core import Questions
from placewright_models.cluster import Node
from placewright_models.problem import Problem
from placewright_models.ranges import format_ranges, ranges_of

TOO_SMALL = "too small"
FRAGMENTED = "fragmented"
OCCUPIED = "occupied"


def _busy(node: Node) -> bool:
    return bool(node.unavailable_gpus or node.cpus_in_use or node.memory_in_use or node.occupied)


def _idle(node: Node) -> Node:
    """The node with nothing of anybody on it; reserved CPUs stay reserved."""
    if not _busy(node):
        return node
    return replace(node, unavailable_gpus=(), occupied=(), cpus_in_use=Decimal(0), memory_in_use=0)


def _renumbered(node: Node) -> Node:
    """The node with its free GPUs made consecutive: the same number, the first indices."""
    if not _busy(node):
        return node
    free = node.available_gpus
    held = tuple(replace(occupation, gpus=()) for occupation in node.occupied)
    return replace(node, unavailable_gpus=tuple(range(free, node.gpus)), occupied=held)


def kind_of_shortage(questions: Questions, problem: Problem) -> str | None:
    """The kind of shortage of an infeasible problem; None where no node holds anything back and nothing is fragmented.

    ``too small``: infeasible even when idle; else ``fragmented``: feasible if each node's free GPUs were renumbered
    consecutively; else ``occupied``.
    """

    def changed(change: Callable[[Node], Node]) -> Problem:
        nodes = tuple(change(node) for node in problem.cluster.nodes)
        return replace(problem, cluster=replace(problem.cluster, nodes=nodes))

    if not any(map(_busy, problem.cluster.nodes)) or questions.feasible(changed(_idle)) is not True:
        return TOO_SMALL
    fragmented = any(len(node.runs) > 1 for node in problem.cluster.nodes)
    if fragmented and questions.feasible(changed(_renumbered)) is True:
        return FRAGMENTED
    return OCCUPIED


def free_of(node: Node) -> str:
    """How much of a node is free, and who holds the rest.

    >>> free_of(Node("n0", gpus=8, unavailable_gpus=(0,)))
    'n0: free 7 of 8 (0 unavailable)'
    """
    text = f"{node.id}: free {node.available_gpus} of {node.gpus}"
    gone = [f"{format_ranges(ranges_of(node.unavailable_gpus))} unavailable"] if node.unavailable_gpus else []
    held = gone + [f"{format_ranges(ranges_of(o.gpus))} held by {o.plan}" for o in node.occupied if o.gpus]
    return f"{text} ({', '.join(held)})" if held else text


def holders(problem: Problem) -> list[str]:
    """Names of the other plans that hold anything."""
    return sorted({occupation.plan for node in problem.cluster.nodes for occupation in node.occupied})
