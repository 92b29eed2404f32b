"""The map of a still picture: strips of GPU cells, names, pool outlines, markers for workers without GPU.

``StillMap(brush, scene, arrangement, unit, x, y).draw()`` draws with one cell ``unit`` inches wide. Modify this file to change
how a node looks; ``map.js`` draws the same for pages, so change both.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from placewright.picture.arrangement import (
    LABEL_SIZE,
    MARKER,
    ROW,
    Arrangement,
    Box,
    strip_width,
)
from placewright.picture.brush import FAINT, INK, POINT, Brush, text_width
from placewright.picture.colours import text_on
from placewright.picture.outlines import outlines
from placewright.picture.scene import FREE, OCCUPIED, UNAVAILABLE, Content, Scene, SceneNode, Tile, shortened
from placewright.picture.titles import domain_title
from placewright_models.ranges import indices_of

POOL_DASHES: tuple[Any, ...] = ("solid", (0, (3, 1.5)), (0, (1, 1)), (0, (4, 1.2, 1, 1.2)))
"""How pools are outlined, in their order."""

PANEL, PANEL_EDGE = "#f6f8fa", "#d8dee4"
IDLE, IDLE_EDGE = "#ffffff", "#afb8c1"
UNAVAILABLE_FILL, OCCUPIED_FILL, MARK = "#d0d7de", "#eaeef2", "#848d97"
SMALL_FILL = {FREE: "#dde2e8", OCCUPIED: "#afb8c1", UNAVAILABLE: "#6e7781"}
"""Cells without worker in overview."""
LEAST_TEXT = 4.2
MOST_TEXT = 10.5
GOOD_TEXT = 6.0
"""Points below which a shorter text is better than a small one."""
PAD = 0.06
"""Room around a tile inside its cell."""
"""Points below which text is left out."""


class StillMap:
    """Draws one arrangement at one place of a sheet."""

    def __init__(self, brush: Brush, scene: Scene, where: Arrangement, unit: float, x: float, y: float) -> None:
        self.brush = brush
        self.scene = scene
        self.where = where
        self.unit = unit
        self.x = x
        self.y = y

    def draw(self) -> None:
        """The whole map."""
        positions = self.where.positions(self.scene)
        for box in self.where.boxes:
            if not self.where.overview:
                self._panel(box)
        for node, (x, y) in zip(self.scene.nodes, positions, strict=True):
            if self.where.overview:
                self._small_node(self.scene.content(node), x, y)
            else:
                self._node(node, self.scene.content(node), x, y)
        if self.where.overview:
            self._row_labels()
        if len(self.scene.pools) > 1:
            self._outlines(positions)

    # Detail

    def _panel(self, box: Box) -> None:
        domain = self.scene.domains[box.domain]
        count = box.end - box.start
        columns = -(-count // box.rows)
        left, top = box.x - self.where.gutter, box.y - 0.95
        size = self._points(LABEL_SIZE)
        self._box(
            left - 0.1, top, columns * self.where.column + 0.3, box.rows * ROW + 0.95,
            PANEL, edge=PANEL_EDGE, line=0.6, radius=0.18, layer=1,
        )
        name, detail = domain_title(domain, self.scene)
        x = self.x + (left + 0.25) * self.unit
        y = self.y + (top + 0.45) * self.unit
        if name:
            self.brush.text(x, y, name, size, bold=True)
            x += text_width(name, size, True) + 0.35 * self.unit
        room = self.x + (left + columns * self.where.column) * self.unit - x
        for text in (detail, detail.split(",")[0]):
            if text_width(text, size * 0.86) <= room:
                self.brush.text(x, y, text, size * 0.86, colour=FAINT)
                break

    def _node(self, node: SceneNode, content: Content, x: float, y: float) -> None:
        size = self._points(LABEL_SIZE)
        colour = FAINT if content.excluded else INK
        left, middle = self.x + (x - 0.28) * self.unit, self.y + (y + 0.5) * self.unit
        self.brush.text(left, middle, node.label, size, colour=colour, align="right")
        if not content.gpus:
            self._box(x + 0.1, y + 0.16, 0.8, 0.68, PANEL, edge=IDLE_EDGE, line=0.6, radius=0.12)
            self._label(x + 0.5, y + 0.5, "CPU", 0.3, FAINT, 0.7)
        held = {gpu for tile in content.tiles for gpu in range(tile.start, tile.end + 1)}
        for gpu, state in enumerate(content.states):
            if gpu not in held:
                self.bare_cell(self.brush, self.x + (x + gpu + PAD) * self.unit, self.y + (y + PAD) * self.unit,
                               (1 - 2 * PAD) * self.unit, state)
        indices = {number: indices_of(ranges) for number, ranges in zip(content.components, node.workers, strict=True)}
        for tile in content.tiles:
            self._tile(tile, indices[tile.component], x, y)
        at = x + strip_width(content.gpus) + 0.45
        for number, count in content.without_gpu:
            colour = self.scene.roles[number].colour
            self._box(at - 0.17, y + 0.33, 0.34, 0.34, colour, radius=0.17, edge=INK, line=0.3)
            text = f"×{count:,}"
            self.brush.text(self.x + (at + 0.27) * self.unit, self.y + (y + 0.5) * self.unit, text, size * 0.86, colour=FAINT)
            at += MARKER

    def _tile(self, tile: Tile, indices: list[int], x: float, y: float) -> None:
        colour = self.scene.roles[tile.component].colour
        lane = (1 - 2 * PAD) / tile.lanes
        top = y + PAD + tile.lane * lane
        left, wide = x + tile.start + PAD, tile.end - tile.start + 1 - 2 * PAD
        self._box(left, top, wide, lane, colour, radius=0.1 if tile.lanes == 1 else 0.0)
        for gpu in range(tile.start + 1, tile.end + 1):
            at = self.x + (x + gpu) * self.unit
            ends = (self.y + (top + lane * (0.78 if tile.lanes == 1 else 0.86)) * self.unit, self.y + (top + lane) * self.unit)
            self.brush.line([(at, ends[0]), (at, ends[1])], "#ffffffb0", 0.7)
        first, last = indices[tile.place], indices[tile.place + tile.workers - 1]
        texts = [(str(first), LEAST_TEXT)]
        if tile.workers > 1:
            texts = [(f"{first}-{last}", GOOD_TEXT), (f"×{tile.workers}", LEAST_TEXT)]
        for text, least in texts:
            if self._label(left + wide / 2, top + lane / 2, text, min(0.36, lane * 0.74), text_on(colour), wide - 0.16, least):
                return

    def _label(self, x: float, y: float, text: str, size: float, colour: str, room: float, least: float = LEAST_TEXT) -> bool:
        """Text centred at a point, smaller where it must be; False where it would be too small to read."""
        points = self._points(size)
        wide = text_width(text, points)
        points = min(points, points * room * self.unit / wide)
        if points < least:
            return False
        self.brush.text(self.x + x * self.unit, self.y + y * self.unit, text, points, colour=colour, align="center")
        return True

    @staticmethod
    def bare_cell(brush: Brush, x: float, y: float, size: float, state: str) -> None:
        """A GPU without worker: idle is empty, unavailable is crossed, held by other plans is striped."""
        if state == FREE:
            brush.box(x, y, size, size, IDLE, edge=IDLE_EDGE, line=0.6, radius=size * 0.11)
            return
        fill = OCCUPIED_FILL if state == OCCUPIED else UNAVAILABLE_FILL
        brush.box(x, y, size, size, fill, edge=IDLE_EDGE, line=0.6, radius=size * 0.11)
        a, b, m = size * 0.3, size * 0.7, size / 2
        if state == OCCUPIED:
            for p, q in (((0.12, 0.5), (0.5, 0.12)), ((0.12, 0.88), (0.88, 0.12)), ((0.5, 0.88), (0.88, 0.5))):
                brush.line([(x + p[0] * size, y + p[1] * size), (x + q[0] * size, y + q[1] * size)], MARK, 0.8)
        else:
            for start, end in (((a, a), (b, b)), ((a, b), (b, a))):
                brush.line([(x + start[0], y + start[1]), (x + end[0], y + end[1])], MARK, max(0.7, m * 7), cap="round")

    # Overview

    def _small_node(self, content: Content, x: float, y: float) -> None:
        if not content.gpus:
            self._box(x, y, 1, 1, SMALL_FILL[FREE] if not content.excluded else SMALL_FILL[UNAVAILABLE])
            wide = 0.7 / max(1, len(content.without_gpu))
            for place, (number, _) in enumerate(content.without_gpu):
                self._box(x + 0.15 + place * wide, y + 0.15, wide, 0.7, self.scene.roles[number].colour, layer=3)
        held = {gpu for tile in content.tiles for gpu in range(tile.start, tile.end + 1)}
        for state, start, end in _runs((content.states[gpu], gpu) for gpu in range(content.gpus) if gpu not in held):
            self._box(x + start, y, end - start + 1, 1, SMALL_FILL[state])
        for (number, lane, lanes), start, end in _runs(
            ((tile.component, tile.lane, tile.lanes), gpu) for tile in content.tiles for gpu in range(tile.start, tile.end + 1)
        ):
            self._box(x + start, y + lane / lanes, end - start + 1, 1 / lanes, self.scene.roles[number].colour)

    def _row_labels(self) -> None:
        last: tuple[float, float] | None = None
        for box in self.where.boxes:
            y = self.y + (box.y + 0.5) * self.unit
            if last is not None and last[0] == box.x and y - last[1] < 8.5 * POINT:
                continue
            domain = self.scene.domains[box.domain]
            name = domain.name if domain.name is not None and domain.start == box.start else self.scene.nodes[box.start].id
            size = 6.2
            room = self.where.gutter * self.unit - 0.08
            shown = shortened(name, 14)
            size = min(size, size * room / text_width(shown, size))
            self.brush.text(self.x + box.x * self.unit - 0.06, y, shown, size, colour=FAINT, align="right")
            last = (box.x, y)

    # Pools

    def _outlines(self, positions: list[tuple[float, float]]) -> None:
        line = 0.7 if self.where.overview else 1.2
        for outline in outlines(self.scene, self.where, positions):
            self.brush.outline(
                self.x + outline.x * self.unit, self.y + outline.y * self.unit, outline.width * self.unit,
                outline.height * self.unit, INK, line=line, dashes=POOL_DASHES[outline.pool % len(POOL_DASHES)],
                radius=0.16 * self.unit,
            )

    def _box(self, x: float, y: float, width: float, height: float, fill: str, *, radius: float = 0.0, **how: Any) -> None:
        unit = self.unit
        self.brush.box(
            self.x + x * unit, self.y + y * unit, width * unit, height * unit, fill, radius=radius * unit, **how
        )

    def _points(self, cells: float) -> float:
        return min(MOST_TEXT, cells * self.unit / POINT)


def _runs(cells: Iterable[tuple[Any, int]]) -> list[tuple[Any, int, int]]:
    """Neighbouring cells with the same key, as (key, first, last)."""
    found: list[tuple[Any, int, int]] = []
    for key, at in cells:
        if found and found[-1][0] == key and found[-1][2] in (at, at - 1):
            found[-1] = (key, found[-1][1], at)
        else:
            found.append((key, at, at))
    return found
