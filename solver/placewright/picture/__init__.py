"""Pictures of a plan: every node by NVLink domain in topological order, one cell a GPU, coloured by component.

::

    from placewright.picture import comparison, figure, html_map, save_map

    figure(plan)                                    # a matplotlib Figure; shows itself in a notebook
    save_map(plan, "map.html")                      # or .svg, .png; the ending decides
    html_map(plan)                                  # one self-contained page: zoom, hover, search, filter
    comparison({"before": first, "after": second})  # small pictures side by side, for documents

Importing this package loads neither matplotlib nor anything else heavy; only ``figure``, ``comparison`` and still pictures
need matplotlib (``pip install placewright[picture]``), the page needs nothing. From the plan comes a ``scene`` (what there
is to see), from the scene an ``arrangement`` (where it goes), and ``still`` and ``page`` draw both. Modify this file when a
kind of picture is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from placewright_models.errors import Fault, InvalidProblem
from placewright_models.plan import Plan

if TYPE_CHECKING:
    from placewright.picture.brush import PlanFigure

SUFFIXES = (".svg", ".png", ".html")
"""Endings that ``save_map`` knows."""

__all__ = ["SUFFIXES", "check_suffix", "comparison", "figure", "html_map", "save_map"]


def figure(plan: Plan) -> PlanFigure:
    """The plan as a matplotlib ``Figure`` that shows itself in a notebook.

    Beyond some hundred nodes every NVLink domain becomes a row.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    from placewright.picture.still import draw

    return draw(plan)


def comparison(plans: Mapping[str, Plan]) -> PlanFigure:
    """Small pictures side by side under their titles, with one legend and the same colours; for documents.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    from placewright.picture.still import draw_side_by_side

    return draw_side_by_side(plans)


def html_map(plan: Plan) -> str:
    """The plan as one self-contained HTML page that needs no network: zoom, hover, search, filter by component."""
    from placewright.picture.page import page

    return page(plan)


def save_map(plan: Plan, path: str | Path) -> None:
    """Write the picture to a file; its ending decides between ``.svg``, ``.png`` and ``.html``.

    The same plan gives the same bytes.

    Raises:
        InvalidProblem: if the ending is none of these.
        ImportError: if matplotlib is needed and not installed.
    """
    suffix = check_suffix(path)
    if suffix == ".html":
        Path(path).write_text(html_map(plan), encoding="utf-8")
        return
    from placewright.picture.still import save

    save(figure(plan), Path(path))


def check_suffix(path: str | Path) -> str:
    """The path's ending in lower case, so that a wrong one is refused before anything is solved.

    Raises:
        InvalidProblem: if no picture has that ending.
    """
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        wrong = f"{suffix} is not a kind of picture" if suffix else f"{str(path)!r} has no ending that says which picture"
        raise InvalidProblem([Fault("map", wrong, f"end the file name in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}")])
    return suffix
