"""A sheet measured in inches with a few strokes: rectangles, lines, text; all that still pictures draw with.

Strokes are collected and reach matplotlib as few large collections, so 100,000 cells take a second. y grows downwards. This
module and ``still*.py`` are the only ones that import matplotlib. Modify this file when a new kind of stroke is needed.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import Any

from matplotlib.collections import LineCollection, PathCollection
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.textpath import TextToPath

FONT = "DejaVu Sans"
"""Comes with matplotlib, so a picture is the same on every machine."""
POINT = 1 / 72
INK = "#1b1f24"
FAINT = "#57606a"


class PlanFigure(Figure):
    """A figure that shows itself in a notebook, whatever the notebook has set up."""

    def _repr_png_(self) -> bytes:
        from io import BytesIO

        out = BytesIO()
        self.savefig(out, format="png", dpi=110, facecolor="white")
        return out.getvalue()


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """Width of the text in inches."""
    properties = FontProperties(family=FONT, size=size, weight="bold" if bold else "normal")
    width, _, _ = TextToPath().get_text_width_height_descent(text, properties, False)
    return float(width) * POINT


class Brush:
    """Collects strokes; ``finish`` makes the figure."""

    def __init__(self) -> None:
        self._boxes: dict[tuple[int, str, str, float], list[Path]] = defaultdict(list)
        self._lines: dict[tuple[int, str, float, str], list[list[tuple[float, float]]]] = defaultdict(list)
        self._outlines: list[tuple[Path, str, float, Any]] = []
        self._texts: list[tuple[float, float, str, dict[str, Any]]] = []

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        *,
        edge: str = "none",
        line: float = 0.0,
        radius: float = 0.0,
        layer: int = 2,
    ) -> None:
        """A filled rectangle, with round corners where a radius is given. Those of one layer must not overlap."""
        self._boxes[(layer, fill, edge, line)].append(_rectangle(x, y, width, height, radius))

    def outline(
        self, x: float, y: float, width: float, height: float, colour: str, *, line: float, dashes: Any, radius: float
    ) -> None:
        """The border of a rectangle, dashed as matplotlib writes it."""
        self._outlines.append((_rectangle(x, y, width, height, radius), colour, line, dashes))

    def line(self, points: list[tuple[float, float]], colour: str, width: float, layer: int = 3, cap: str = "butt") -> None:
        """A line through the points."""
        self._lines[(layer, colour, width, cap)].append(points)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        *,
        colour: str = INK,
        bold: bool = False,
        align: str = "left",
        style: str = "normal",
    ) -> None:
        """Text whose middle line is at ``y``."""
        self._texts.append((x, y, text, {
            "fontsize": size,
            "color": colour,
            "ha": align,
            "va": "center_baseline",
            "fontweight": "bold" if bold else "normal",
            "fontstyle": style,
        }))

    def finish(self, width: float, height: float) -> PlanFigure:
        """The figure of that size in inches."""
        figure = PlanFigure(figsize=(width, height), facecolor="white")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        axes.axis("off")
        for (layer, fill, edge, line), paths in sorted(self._boxes.items()):
            together = Path.make_compound_path(*paths)
            axes.add_artist(PathPatch(together, facecolor=fill, edgecolor=edge, linewidth=line, zorder=layer))
        for (layer, colour, line, cap), segments in sorted(self._lines.items()):
            axes.add_collection(
                LineCollection(segments, colors=colour, linewidths=line, capstyle=cap, zorder=layer), autolim=False
            )
        if self._outlines:
            shapes, edges, lines, dashes = zip(*self._outlines, strict=True)
            axes.add_collection(
                PathCollection(shapes, facecolors="none", edgecolors=edges, linewidths=lines, linestyles=dashes, zorder=5),
                autolim=False,
            )
        for x, y, text, how in self._texts:
            axes.text(x, y, text, family=FONT, zorder=6, parse_math=False, **how)
        return figure


def _rectangle(x: float, y: float, width: float, height: float, radius: float) -> Path:
    right, bottom = x + width, y + height
    r = min(radius, width / 2, height / 2)
    if r <= 0:
        return Path([(x, y), (right, y), (right, bottom), (x, bottom), (x, y)], closed=True)
    c = r * 0.4477  # control points of a quarter circle, measured from the corner
    vertices = [
        (x + r, y), (right - r, y), (right - c, y), (right, y + c), (right, y + r),
        (right, bottom - r), (right, bottom - c), (right - c, bottom), (right - r, bottom),
        (x + r, bottom), (x + c, bottom), (x, bottom - c), (x, bottom - r),
        (x, y + r), (x, y + c), (x + c, y), (x + r, y), (x + r, y),
    ]
    codes = [Path.MOVETO] + [Path.LINETO, Path.CURVE4, Path.CURVE4, Path.CURVE4] * 4 + [Path.CLOSEPOLY]
    return Path(vertices, codes)
