"""The plan as a table for people: where everything is, what is idle, each goal with its value and bound, and warnings.

``write_text(plan)`` is plain text; ``lines(plan, width)`` is the same with a style for each line, folded to a width, for
terminals. Up to ``MOST_NODES`` nodes every node has its own rows; beyond that nodes with equal content share them, so a plan
for 12,512 nodes is as short as one for 40. Modify this file when the table says something else; sentences about goals are in
``goal_sentences.py``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from placewright.export.goal_sentences import sentence
from placewright.export.target import Target
from placewright_models.plan import Plan
from placewright_models.ranges import Range, format_ranges, ranges_of

MOST_NODES = 40
"""With more used nodes than this, nodes with equal content share rows."""
MOST_KINDS = 60
"""Most groups of equal nodes shown for one pool."""
MOST_RUNS = 4
"""Most runs of nodes named in one cell."""
LEAST_CELL = 12
"""Folding makes no column narrower."""


class Line(NamedTuple):
    """One line of text and what it is: ``title``, ``head``, ``row``, ``note`` or ``warning``."""

    style: str
    text: str


@dataclass(slots=True)
class _Kind:
    """Nodes of one pool with equal content."""

    gpus: int
    rows: tuple[tuple[str, tuple[Range, ...], int], ...]
    """Component, ranges, workers on each of the nodes."""
    positions: list[int] = field(default_factory=list)
    """Places of the nodes in the order of the cluster."""
    workers: dict[str, list[int]] = field(default_factory=dict)
    """Component -> indices of its workers on all of the nodes."""


def write_text(plan: Plan) -> str:
    """The plan as plain text, as wide as it needs."""
    return "".join(f"{line.text}\n" for line in lines(plan))


def lines(plan: Plan, width: int | None = None) -> list[Line]:
    """The plan line by line, folded to ``width`` columns where one is given."""
    shown = [Line("title", text) for text in _fold(_title(plan), width)]
    shown += _placement(plan, width)
    shown += _idle(plan, width)
    shown += _goals(plan, width)
    if plan.warnings:
        shown += [Line("row", ""), Line("head", "warnings")]
        shown += [Line("warning", text) for warning in plan.warnings for text in _fold(warning, width, "  ")]
    return shown


def _title(plan: Plan) -> str:
    nodes = {node.node_id for pool in plan.pools for node in pool.nodes}
    workers = sum(map(len, plan.workers.values()))
    cluster = plan.problem.cluster.nodes
    available = sum(node.available_gpus for node in cluster if node.excluded is None)
    size = _count(len(cluster), "node")
    words = {
        "optimal": "optimal plan, every goal proved",
        "feasible": "plan, time ran out before every goal was proved",
        "greedy": "greedy plan, nothing proved",
    }
    used = max(0, available - plan.idle.gpus)
    return (
        f"{words.get(plan.status, plan.status)}: {_count(workers, 'worker')} on {len(nodes):,} of {size}, "
        f"{used:,} of {_count(available, 'available GPU')} used ({plan.solver}, {plan.wall_time_s:.2f} s)"
    )


# Where everything is


def _placement(plan: Plan, width: int | None) -> list[Line]:
    names = [node.id for node in plan.problem.cluster.topological_order()]
    position = {name: index for index, name in enumerate(names)}
    indices = _worker_indices(plan)
    summarise = len({node.node_id for pool in plan.pools for node in pool.nodes}) > MOST_NODES
    table = [["pool", "node", "GPUs", "component", "kind", "GPU indices", "workers"]]
    for pool in plan.pools:
        kinds: dict[object, _Kind] = {}
        for node in pool.nodes:
            rows = tuple(
                (name, tuple(ranges), len(indices.get((name, node.node_id), ()))) for name, ranges in node.allocations.items()
            )
            key = (node.gpus, rows) if summarise else node.node_id
            kind = kinds.setdefault(key, _Kind(node.gpus, rows))
            kind.positions.append(position.get(node.node_id, -1))
            for name, _, _ in rows:
                kind.workers.setdefault(name, []).extend(indices.get((name, node.node_id), ()))
        first = pool.name
        for kind in list(kinds.values())[:MOST_KINDS]:
            label = _node_label(kind.positions, names)
            for name, ranges, each in kind.rows or (("-", (), 0),):
                component = plan.problem.by_name.get(name)
                size = str(kind.gpus) if label else ""
                what = component.kind if component is not None else ""
                workers = _workers_label(kind.workers.get(name, []), each, len(kind.positions))
                table.append([first, label, size, name, what, format_ranges(ranges) or "none", workers])
                first = label = ""
        hidden = list(kinds.values())[MOST_KINDS:]
        if hidden:
            count = sum(len(kind.positions) for kind in hidden)
            table.append(["", f"... and {count:,} nodes of {len(hidden):,} further kinds", "", "", "", "", ""])
        if not pool.nodes:
            table.append([first, "no nodes", "", "", "", "", ""])
    if len(table) == 1:
        return []
    return [Line("row", ""), *_table(table, width, folded=(1, 6))]


def _worker_indices(plan: Plan) -> dict[tuple[str, str], list[int]]:
    found: dict[tuple[str, str], list[int]] = {}
    for name, workers in plan.workers.items():
        for index, worker in enumerate(workers):
            found.setdefault((name, worker.node_id), []).append(index)
    return found


def _node_label(positions: Sequence[int], names: Sequence[str]) -> str:
    """Nodes as runs along the cluster's order: ``gpu-000..gpu-015 (16 nodes)``."""
    if len(positions) == 1:
        return names[positions[0]]
    runs = ranges_of(positions)
    shown = [names[start] if start == end else f"{names[start]}..{names[end]}" for start, end in runs[:MOST_RUNS]]
    if len(runs) > MOST_RUNS:
        shown.append(f"... to {names[runs[-1][1]]}")
    return f"{', '.join(shown)} ({_count(len(positions), 'node')})"


def _workers_label(indices: Sequence[int], each: int, nodes: int) -> str:
    runs = ranges_of(indices)
    text = format_ranges(runs[:MOST_RUNS]) + (", ..." if len(runs) > MOST_RUNS else "")
    if nodes == 1:
        return f"{text} ({len(indices):,})"
    return f"{text} ({len(indices):,}, {each:,} a node)"


def _idle(plan: Plan, width: int | None) -> list[Line]:
    idle = plan.idle
    # A node that another plan is on is not empty, although this plan has nothing there.
    others = {node.id: ", ".join(entry.plan for entry in node.occupied) for node in plan.problem.cluster.nodes}
    unused = sum(not others.get(node_id) for node_id in idle.nodes)
    shown = [Line("row", ""), Line("head", f"idle: {_count(idle.gpus, 'GPU')}, {_count(unused, 'empty node')}")]
    by_content: dict[tuple[str, tuple[Range, ...]], list[int]] = {}
    names = [node.id for node in plan.problem.cluster.topological_order()]
    position = {name: index for index, name in enumerate(names)}
    empty = set(idle.nodes)
    for node_id in sorted({*idle.ranges, *empty}, key=lambda name: position.get(name, -1)):
        host = f"hosts {others[node_id]}" if others.get(node_id) else "hosts nothing" if node_id in empty else ""
        key = (host, tuple(idle.ranges.get(node_id, ())))
        by_content.setdefault(key, []).append(position.get(node_id, -1))
    table = [["  node", "free GPU indices", ""]]
    for (host, ranges), positions in list(by_content.items())[:MOST_KINDS]:
        label, free = _node_label(positions, names), format_ranges(ranges) or "none"
        table.append([f"  {label}", free, host])
    hidden = list(by_content.values())[MOST_KINDS:]
    if hidden:
        table.append([f"  ... and {sum(map(len, hidden)):,} nodes of {len(hidden):,} further kinds", "", ""])
    return [*shown, *_table(table, width, folded=(0, 1))] if by_content else shown


def _goals(plan: Plan, width: int | None) -> list[Line]:
    if not plan.goals:
        return []
    table = [["goal, first to last", "value", "bound", "", "what it says"]]
    for goal in plan.goals:
        bound = "-" if goal.bound is None else f"{goal.bound:,}"
        state = "proved" if goal.proved else ("measured only" if goal.bound is None else "may be improved")
        table.append([goal.name, f"{goal.value:,}", bound, state, sentence(plan, goal)])
    return [Line("row", ""), *_table(table, width, folded=(4,), right=(1, 2))]


# Lay-out


def _table(rows: list[list[str]], width: int | None, folded: Sequence[int], right: Sequence[int] = ()) -> list[Line]:
    """Columns as wide as their widest cell; with a width, the ``folded`` columns give way, the widest first."""
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    if width is not None:
        while (over := sum(widths) + 2 * (len(widths) - 1) - width) > 0:
            widest = max(folded, key=lambda c: widths[c])
            rest = [widths[c] for c in folded if c != widest]
            target = max(LEAST_CELL, widths[widest] - over, *(rest or [0]))
            if target >= widths[widest]:
                target = widths[widest] - 1
            if target < LEAST_CELL:
                break
            widths[widest] = target
    shown: list[Line] = []
    for number, row in enumerate(rows):
        cells = [_fold(cell, widths[c]) if c in folded else [cell] for c, cell in enumerate(row)]
        for depth in range(max(map(len, cells))):
            parts = [cell[depth] if depth < len(cell) else "" for cell in cells]
            aligned = [part.rjust(widths[c]) if c in right else part.ljust(widths[c]) for c, part in enumerate(parts)]
            shown.append(Line("row" if number else "head", "  ".join(aligned).rstrip()))
    return shown


def _fold(text: str, width: int | None, indent: str = "") -> list[str]:
    if width is None or len(indent) + len(text) <= width:
        return [indent + text]
    lead = indent or text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(
        text.strip(), max(LEAST_CELL, width), initial_indent=lead, subsequent_indent=lead + indent, break_on_hyphens=False
    )


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


TARGET = Target("text", "a table for people", write_text, (".txt",))
