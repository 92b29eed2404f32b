"""Still pictures: title, legend, the map, and the goals as caption, on one sheet.

``draw(plan)`` gives the figure, ``draw_side_by_side(plans)`` small ones beside each other, ``save`` writes the same bytes for
the same plan. The map itself is drawn by ``still_map.py``. Modify this file to change what stands around the map.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from placewright.picture.arrangement import Arrangement, arrange
from placewright.picture.brush import FAINT, INK, Brush, PlanFigure, text_width
from placewright.picture.colours import colours
from placewright.picture.scene import FREE, OCCUPIED, UNAVAILABLE, Scene, scene
from placewright.picture.still_map import POOL_DASHES, SMALL_FILL, StillMap
from placewright_models.plan import Plan

MARGIN = 0.3
WIDEST, HIGHEST = 12.6, 8.6
"""Most inches that the map takes."""
NARROWEST = 7.4
"""Least width of a sheet in inches, so that title and legend have room."""
LARGEST_CELL = 0.44
DPI = 200
TITLE_SIZE, TEXT_SIZE = 12.5, 9.0
LINE = 0.25
"""Distance of lines of text in inches."""
SWATCH = 0.15
LEGEND_SPACE = 0.32

Item = tuple[float, Callable[[float, float], None]]
"""A piece of a legend: its width, and what draws it at a left edge and a middle line."""


def draw(plan: Plan) -> PlanFigure:
    """The whole sheet."""
    what = scene(plan)
    where = arrange(what)
    unit = min(LARGEST_CELL, WIDEST / where.width, HIGHEST / where.height)
    if where.overview:
        unit = max(2, int(unit * DPI)) / DPI  # whole pixels: no uneven gaps
    width = max(NARROWEST, where.width * unit + 2 * MARGIN)
    brush = Brush()
    y = MARGIN + 0.1
    size = min(TITLE_SIZE, TITLE_SIZE * (width - 2 * MARGIN) / text_width(what.title, TITLE_SIZE, True))
    brush.text(MARGIN, y, what.title, size, bold=True)
    y = _flow(_legend(brush, what, counts=True, overview=where.overview), width, y + 0.36) + 0.26
    StillMap(brush, what, where, unit, MARGIN, y).draw()
    y += where.height * unit + 0.3
    if what.caption:
        y = _flow(_goals(brush, what), width, y)
    return brush.finish(width, y + MARGIN - 0.02)


def draw_side_by_side(plans: Mapping[str, Plan]) -> PlanFigure:
    """Maps side by side, each under its title, with one legend below."""
    palette = colours(component.name for plan in plans.values() for component in plan.problem.components)
    scenes = {title: scene(plan, palette) for title, plan in plans.items()}
    places: dict[str, Arrangement] = {title: arrange(what, 1.2) for title, what in scenes.items()}
    total = sum(where.width for where in places.values()) or 1.0
    highest = max((where.height for where in places.values()), default=1.0)
    unit = min(0.36, WIDEST / total, HIGHEST / highest)
    brush = Brush()
    x, top, space = MARGIN, MARGIN + 0.1, 0.45
    for title, what in scenes.items():
        where = places[title]
        brush.text(x, top, title, 10.5, bold=True)
        StillMap(brush, what, where, unit, x, top + 0.24).draw()
        x += max(where.width * unit, text_width(title, 10.5, True)) + space
    width = max(x - space + MARGIN, 5.0)
    whole = _together(list(scenes.values()))
    y = _flow(_legend(brush, whole, counts=False), width, top + 0.24 + highest * unit + 0.3) if whole is not None else top
    return brush.finish(width, y + MARGIN - 0.02)


def save(figure: Figure, path: Path) -> None:
    """Write the figure; no date, no random ids."""
    with matplotlib.rc_context({"svg.hashsalt": "placewright", "svg.fonttype": "path"}):
        if path.suffix.lower() == ".svg":
            figure.savefig(path, format="svg", metadata={"Date": None, "Creator": None})
        else:
            figure.savefig(path, format="png", dpi=DPI, metadata={"Software": None})


def _together(scenes: list[Scene]) -> Scene | None:
    """One scene with everything that the legend of several must name."""
    if not scenes:
        return None
    roles = {role.name: role for what in scenes for role in what.roles}
    pools = max((what.pools for what in scenes), key=len)
    contents = tuple(content for what in scenes for content in what.contents)
    return Scene("", (), tuple(roles.values()), pools, (), (), contents)


def _flow(items: list[Item], width: float, y: float) -> float:
    """Place items from left to right, line by line; gives the middle of the last line."""
    x = MARGIN
    for wide, put in items:
        if x > MARGIN and x + wide > width - MARGIN:
            x, y = MARGIN, y + LINE
        put(x, y)
        x += wide + LEGEND_SPACE
    return y


def _legend(brush: Brush, what: Scene, counts: bool, overview: bool = False) -> list[Item]:
    items: list[Item] = []

    def add(label: str, extra: str, mark: Callable[[float, float], None]) -> None:
        wide = SWATCH + 0.08 + text_width(label, TEXT_SIZE, True) + (text_width(extra, TEXT_SIZE) + 0.07 if extra else 0)

        def put(x: float, y: float) -> None:
            mark(x, y - SWATCH / 2)
            brush.text(x + SWATCH + 0.08, y, label, TEXT_SIZE, bold=True)
            if extra:
                after = x + SWATCH + 0.15 + text_width(label, TEXT_SIZE, True)
                brush.text(after, y, extra, TEXT_SIZE, colour=FAINT)

        items.append((wide, put))

    for role in what.roles:
        size, radius = (SWATCH, 0.03) if role.has_gpus else (SWATCH * 0.72, SWATCH)
        inset = (SWATCH - size) / 2

        def mark(x: float, y: float, c: str = role.colour, s: float = size, r: float = radius, i: float = inset) -> None:
            brush.box(x + i, y + i, s, s, c, radius=r, edge=INK, line=0.3)

        what_it_has = f"on {role.gpus:,} GPU{'' if role.gpus == 1 else 's'}" if role.has_gpus else "without GPU"
        add(role.name, f"{role.workers:,} {what_it_has}" if counts else ("" if role.has_gpus else "without GPU"), mark)
    if what.shares:
        top, below = _shared_colours(what)

        def split(x: float, y: float) -> None:
            brush.box(x, y, SWATCH, SWATCH / 2, top)
            brush.box(x, y + SWATCH / 2, SWATCH, SWATCH / 2, below)

        add("shared GPU", "", split)
    if len(what.pools) > 1:
        for number, name in enumerate(what.pools):

            def border(x: float, y: float, n: int = number) -> None:
                brush.outline(
                    x, y, SWATCH, SWATCH, INK, line=1.1, dashes=POOL_DASHES[n % len(POOL_DASHES)], radius=0.03
                )

            add(name, "", border)
    for state, label in ((FREE, "idle"), (UNAVAILABLE, "unavailable"), (OCCUPIED, "held by other plans")):
        if state in what.states:

            def cell(x: float, y: float, s: str = state) -> None:
                if overview:
                    brush.box(x, y, SWATCH, SWATCH, SMALL_FILL[s])
                else:
                    StillMap.bare_cell(brush, x, y, SWATCH, s)

            add(label, "", cell)
    return items


def _shared_colours(what: Scene) -> tuple[str, str]:
    for content in what.contents:
        shared = [tile for tile in content.tiles if tile.lanes > 1]
        if shared:
            first = next(tile for tile in shared if tile.lane == 0)
            second = next(tile for tile in shared if tile.lane == 1)
            return what.roles[first.component].colour, what.roles[second.component].colour
    return INK, FAINT


def _goals(brush: Brush, what: Scene) -> list[Item]:
    all_proved = all(known == "proved" for *_, known in what.caption)
    head = "Goals, first to last, all proved optimal:" if all_proved else "Goals, first to last:"
    items: list[Item] = [(text_width(head, TEXT_SIZE), lambda x, y: brush.text(x, y, head, TEXT_SIZE, colour=FAINT))]
    for name, value, known in what.caption:
        tail = "" if all_proved else f"({known})"
        name_wide = text_width(name, TEXT_SIZE) + 0.06
        value_wide = text_width(value, TEXT_SIZE, True)

        def put(
            x: float, y: float, n: str = name, v: str = value, t: str = tail, a: float = name_wide, b: float = value_wide
        ) -> None:
            brush.text(x, y, n, TEXT_SIZE)
            brush.text(x + a, y, v, TEXT_SIZE, bold=True)
            if t:
                brush.text(x + a + b + 0.06, y, t, TEXT_SIZE, colour=FAINT)

        items.append((name_wide + value_wide + (text_width(tail, TEXT_SIZE) + 0.06 if tail else 0), put))
    return items
