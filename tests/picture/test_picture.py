"""Still pictures, and what every picture is made of. The HTML page in a browser: ``browser/test_map.py``."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import combinations, pairwise
from pathlib import Path

import picture_plans
import pytest

from placewright.picture import SUFFIXES, comparison, figure, html_map, save_map
from placewright.picture.arrangement import arrange, strip_width
from placewright.picture.colours import FIXED, PALETTE, colours, luminance, text_on
from placewright.picture.outlines import outlines
from placewright.picture.scene import Scene, scene
from placewright_models.errors import InvalidProblem
from placewright_models.plan import Plan
from placewright_models.ranges import indices_of

PLANS = [picture_plans.one_node, picture_plans.colocated, picture_plans.mixed, picture_plans.racks]
every_plan = pytest.mark.parametrize("plan", PLANS)


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, placewright.picture; print(sorted({'matplotlib', 'plotly', 'ortools', 'numpy'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def placement(what: Scene) -> dict[tuple[str, int], tuple[str, set[int]]]:
    """(component, worker index) -> node and GPUs, read back from what is drawn."""
    found: dict[tuple[str, int], tuple[str, set[int]]] = {}
    for node in what.nodes:
        content = what.content(node)
        indices = {number: indices_of(ranges) for number, ranges in zip(content.components, node.workers, strict=True)}
        for number, listed in indices.items():
            for index in listed:
                found[(what.roles[number].name, index)] = (node.id, set())
        for tile in content.tiles:
            for index in indices[tile.component][tile.place : tile.place + tile.workers]:
                found[(what.roles[tile.component].name, index)][1].update(range(tile.start, tile.end + 1))
    return found


@every_plan
def test_what_is_drawn_is_the_plan(plan: Callable[[], Plan]) -> None:
    meant = {
        (name, index): (worker.node_id, set(indices_of(worker.ranges)))
        for name, workers in plan().workers.items()
        for index, worker in enumerate(workers)
    }
    assert placement(scene(plan())) == meant


@every_plan
def test_tiles_never_overlap(plan: Callable[[], Plan]) -> None:
    for content in scene(plan()).contents:
        for one, other in combinations(content.tiles, 2):
            if one.start <= other.end and other.start <= one.end:
                assert one.lanes == other.lanes
                assert one.lane != other.lane


@pytest.mark.parametrize("plan", [*PLANS, picture_plans.huge])
def test_nodes_have_their_own_places_in_order(plan: Callable[[], Plan]) -> None:
    what = scene(plan())
    where = arrange(what)
    places = where.positions(what)
    order = [node.id for node in plan().problem.cluster.topological_order()]
    with_gpus = [node.id for node in what.nodes if what.content(node).gpus]
    assert with_gpus == [name for name in order if plan().problem.node_by_id[name].gpus]
    rows: dict[float, list[tuple[float, float]]] = {}
    for node, (x, y) in zip(what.nodes, places, strict=True):
        wide = strip_width(what.content(node).gpus)
        assert 0 <= x <= where.width - wide
        assert 0 <= y <= where.height - 1
        rows.setdefault(round(y, 4), []).append((x, x + wide))
    for row in rows.values():
        assert all(left[1] < right[0] for left, right in pairwise(sorted(row)))
    assert all(below - above >= 1 for above, below in pairwise(sorted(rows)) if below - above > 0.7)


def test_overview_only_where_it_must_be() -> None:
    assert not arrange(scene(picture_plans.racks())).overview
    assert arrange(scene(picture_plans.huge())).overview


def test_states_and_notes() -> None:
    what = scene(picture_plans.mixed())
    by_id = {node.id: what.content(node) for node in what.nodes}
    assert by_id["broken"].states == "x" * 8
    assert by_id["broken"].note == "excluded: drained"
    assert by_id["b0"].states == "oo.."
    assert by_id["b0"].note == "occupied by other-job"
    assert by_id["ip-10-0-0-10.west.internal"].states == "...x...."
    assert what.states == {".", "x", "o"}
    assert [node.label for node in what.nodes if node.id.startswith("ip-")] == ["ip-10-0-0-10", "ip-10-0-0-11", "ip-10-0-0-12"]
    assert {known for *_, known in what.caption} >= {"proved", "measured"}
    assert [domain.above for domain in what.domains] == ["zone z1", "zone z2", ""]


def test_outlines_enclose_their_pool_and_nothing_else() -> None:
    what = scene(picture_plans.one_node())
    where = arrange(what)
    (x, _), = where.positions(what)
    train, rollout = outlines(what, where, where.positions(what))
    assert what.pools == ("train_pool", "rollout_pool")
    assert train.x == pytest.approx(x, abs=0.05)
    assert train.x + train.width == pytest.approx(x + 4, abs=0.05)
    assert train.x + train.width < rollout.x
    assert outlines(scene(picture_plans.colocated()), where, []) == []


@every_plan
def test_no_text_overlaps_or_leaves_the_sheet(plan: Callable[[], Plan]) -> None:
    drawn = figure(plan())
    drawn.canvas.draw()
    renderer = drawn.canvas.get_renderer() if hasattr(drawn.canvas, "get_renderer") else None
    boxes = [(text.get_text(), text.get_window_extent(renderer)) for text in drawn.axes[0].texts]
    sheet = drawn.bbox
    for text, box in boxes:
        assert sheet.x0 <= box.x0, text
        assert box.x1 <= sheet.x1, text
        assert sheet.y0 <= box.y0, text
        assert box.y1 <= sheet.y1, text
    for (one, a), (other, b) in combinations(boxes, 2):
        apart = a.x1 <= b.x0 or b.x1 <= a.x0 or a.y1 <= b.y0 + 2 or b.y1 <= a.y0 + 2
        assert apart, (one, other)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_same_plan_same_bytes(tmp_path: Path, suffix: str) -> None:
    first, second = tmp_path / f"a{suffix}", tmp_path / f"b{suffix.upper()}"
    save_map(picture_plans.mixed(), first)
    save_map(picture_plans.mixed(), second)
    assert first.read_bytes() == second.read_bytes()
    assert len(first.read_bytes()) > 10_000


@pytest.mark.parametrize("name", ["map.pdf", "map", "map.html.gz"])
def test_other_endings_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidProblem, match=r"end the file name in \.svg, \.png or \.html"):
        save_map(picture_plans.one_node(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_page_carries_the_whole_plan() -> None:
    text = html_map(picture_plans.mixed())
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    assert data["ids"] == [node.id for node in scene(picture_plans.mixed()).nodes]
    flats = [flat for node in data["workers"] for flat in node]
    workers = sum(end - start + 1 for flat in flats for start, end in zip(flat[::2], flat[1::2], strict=True))
    assert workers == sum(map(len, picture_plans.mixed().workers.values()))
    assert "default-src 'none'" in text
    assert re.findall(r"https?://\S+", text) == []


def test_figures_show_themselves_and_compare() -> None:
    assert figure(picture_plans.one_node())._repr_png_().startswith(b"\x89PNG")
    assert picture_plans.one_node().figure()._repr_png_().startswith(b"\x89PNG")
    both = comparison({"before": picture_plans.one_node(), "after, with colocate": picture_plans.colocated()})
    texts = [text.get_text() for text in both.axes[0].texts]
    assert {"before", "after, with colocate", "train", "critic", "shared GPU"} <= set(texts)
    assert comparison({}).axes[0].texts[:] == []


def test_huge_pictures_are_made_in_seconds(tmp_path: Path) -> None:
    plan = picture_plans.huge()
    for suffix, most_bytes in ((".html", 2_000_000), (".png", 4_000_000)):
        started = time.process_time()
        save_map(plan, tmp_path / f"map{suffix}")
        assert time.process_time() - started < 60
        assert (tmp_path / f"map{suffix}").stat().st_size < most_bytes


def test_colours_stand_apart_and_carry_text() -> None:
    assert len(set(PALETTE)) == len(PALETTE)
    names = [*FIXED, *(f"other{number}" for number in range(30))]
    found = colours(names)
    assert list(found) and set(found) == set(names)
    assert set(found.values()) == set(PALETTE)
    assert len(set(colours(["actor", "policy", "train"]).values())) == 3
    for colour in PALETTE:
        light, dark = sorted((luminance(colour), luminance(text_on(colour))), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, colour
