"""The map as one self-contained HTML page: a canvas, the plan as compact JSON, and a few hundred lines of script.

Measured on a plan for 100,096 GPUs (two cores, headless Chromium 156): this page has 0.7 MB and shows its first picture after
0.4 to 0.5 s. The same cells as one plotly heat map with a hover text each took 8.8 MB (plotly.js alone is 4.8 MB) and 3.2 s,
and still had no split cells, outlines, worker lists when zoomed in, search or keyboard. So the page draws itself, and plotly is
not needed. A content policy inside the page forbids every connection.

``page(plan)`` is all there is to call. ``map.html``, ``map.css``, ``map.js`` (drawing) and ``ui.js`` (pointer, keyboard,
search, legend) are put together here. Modify this file when the page needs more data.
"""

from __future__ import annotations

import json
from html import escape
from importlib.resources import files
from typing import Any

from placewright.picture.arrangement import MARKER, arrange
from placewright.picture.colours import text_on
from placewright.picture.outlines import outlines
from placewright.picture.scene import Scene, scene
from placewright.picture.titles import domain_title
from placewright_models.plan import Plan


def page(plan: Plan) -> str:
    """The whole page."""
    what = scene(plan)
    text = _read("map.html")
    parts = {
        "{{title}}": escape(what.title),
        "{{css}}": _read("map.css"),
        "{{map_js}}": _read("map.js"),
        "{{ui_js}}": _read("ui.js"),
        "{{data}}": _json(_data(what)),
    }
    for name, value in parts.items():
        before, found, after = text.partition(name)
        if not found:
            raise AssertionError(f"map.html has no {name}")
        # Titles and data come from the user: placeholders inside them stay what they are.
        text = f"{before}{value}{after}" if name != "{{title}}" else text.replace(name, value)
    return text


def _read(name: str) -> str:
    return files("placewright.picture").joinpath(name).read_text(encoding="utf-8")


def _json(data: Any) -> str:
    """JSON that cannot end the script element it stands in."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _data(what: Scene) -> dict[str, Any]:
    where = arrange(what)
    positions = where.positions(what)
    return {
        "title": what.title,
        "overview": where.overview,
        "size": [round(where.width, 2), round(where.height, 2)],
        "column": round(where.column, 2),
        "gutter": round(where.gutter, 2),
        "row": where.row,
        "marker": MARKER,
        "goals": what.caption,
        "pools": what.pools,
        "shares": what.shares,
        "states": sorted(what.states),
        "roles": [
            {
                "name": role.name,
                "kind": role.kind,
                "colour": role.colour,
                "text": text_on(role.colour),
                "workers": role.workers,
                "gpus": role.gpus,
                "nodes": role.nodes,
                "hasGpus": role.has_gpus,
            }
            for role in what.roles
        ],
        "domains": [[domain.name, *domain_title(domain, what), domain.above] for domain in what.domains],
        "boxes": [[box.domain, box.start, box.end, round(box.x, 2), round(box.y, 2), box.rows] for box in where.boxes],
        "outlines": [[pool, *(round(value, 2) for value in place)] for pool, *place in outlines(what, where, positions)],
        "contents": [
            {
                "gpus": content.gpus,
                "states": content.states,
                "tiles": content.tiles,
                "bare": content.without_gpu,
                "parts": content.components,
                "note": content.note,
                "excluded": content.excluded,
            }
            for content in what.contents
        ],
        "ids": [node.id for node in what.nodes],
        "labels": {number: node.label for number, node in enumerate(what.nodes) if node.label != node.id},
        "content": [node.content for node in what.nodes],
        "places": [round(value, 2) for place in positions for value in place],
        "workers": [[[end for pair in ranges for end in pair] for ranges in node.workers] for node in what.nodes],
    }
