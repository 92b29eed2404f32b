"""The HTML map in headless Chromium: drawn, hovered, filtered, searched, by keyboard, in dark, and large.

Locally these tests are skipped where Chromium is missing; in CI (CI=true) they fail then.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import picture_plans
import pytest

from browser import devtools
from placewright.picture import save_map
from placewright.picture.colours import colours
from placewright_models.plan import Plan

# Beside other tests (pytest -n), but one Chromium.
pytestmark = pytest.mark.xdist_group("browser")

MOST_BYTES = 20_000_000
MOST_MILLISECONDS = 3000

Opened = Callable[..., devtools.Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[devtools.Browser]:
    if devtools.find() is None:
        if os.environ.get("CI") == "true":
            pytest.fail("CI must have Chromium: run bash .ci/browser-setup.sh first")
        pytest.skip("no Chromium here; bash .ci/browser-setup.sh installs it")
    with devtools.Browser.start() as started:
        yield started


@pytest.fixture
def opened(browser: devtools.Browser, tmp_path: Path) -> Iterator[Opened]:
    """Opens a plan's map; afterwards the page must have logged nothing and asked for nothing but itself."""
    pages: list[tuple[devtools.Page, Path]] = []

    def open_plan(plan: Plan, **how: Any) -> devtools.Page:
        path = tmp_path / f"map{len(pages)}.html"
        save_map(plan, path)
        page = browser.open(path, **how)
        pages.append((page, path))
        return page

    yield open_plan
    for page, path in pages:
        assert page.complaints() == []
        assert page.requests() == [path.resolve().as_uri()]


def pixels(page: devtools.Page) -> Any:
    """The canvas as it is seen, as rows of RGB from 0 to 255."""
    from matplotlib.image import imread

    page.settle()
    image = (imread(io.BytesIO(page.screenshot()))[..., :3] * 255).round().astype(int)
    top, high = page.evaluate("['y', 'height'].map((side) => document.getElementById('map').getBoundingClientRect()[side])")
    return image[round(top) : round(top + high)]


def count(image: Any, colour: str) -> int:
    """Pixels of about that colour."""
    wanted = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)])
    return int((np.abs(image - wanted).max(axis=2) <= 2).sum())


def tip(page: devtools.Page) -> str:
    shown = page.evaluate("document.getElementById('tip').hidden ? '' : document.getElementById('tip').innerText")
    return " ".join(str(shown).split())


@pytest.mark.parametrize("plan", [picture_plans.one_node, picture_plans.colocated, picture_plans.mixed, picture_plans.racks])
def test_every_component_is_seen(opened: Opened, plan: Callable[[], Plan]) -> None:
    page = opened(plan())
    image = pixels(page)
    for name, colour in colours(component.name for component in plan().problem.components).items():
        assert count(image, colour) > 20, name
    labels = page.evaluate("[...document.querySelectorAll('#legend button strong')].map((e) => e.textContent)")
    assert labels == [component.name for component in plan().problem.components]
    goals = page.evaluate("document.getElementById('goals').innerText")
    assert all(goal.name in goals for goal in plan().goals)


def test_hover_tells_node_ranges_component_and_workers(opened: Opened) -> None:
    page = opened(picture_plans.one_node())
    place = page.evaluate("placewright.centre('dgx', 4)")
    page.hover(place["x"], place["y"])
    text = tip(page)
    assert text.startswith("dgx")
    assert "GPU 4: reward 0, rollout 0" in text
    assert "train GPU 0-3 workers 0-3" in text
    assert "rollout GPU 4-7 workers 0-1" in text
    assert "env no GPU workers 0-5" in text
    page.hover(5, place["y"])
    assert tip(page) == ""


def test_hover_tells_why_a_gpu_is_not_used(opened: Opened) -> None:
    page = opened(picture_plans.mixed())
    for node, gpu, words in (("broken", 2, "excluded: drained"), ("b0", 1, "occupied by other-job"), ("b1", 0, "GPU 0: idle"),
                             ("ip-10-0-0-10.west.internal", 3, "GPU 3: unavailable")):
        place = page.evaluate(f"placewright.centre('{node}', {gpu})")
        page.hover(place["x"], place["y"])
        assert tip(page).startswith(node)
        assert words in tip(page)


def test_filter_fades_the_other_components(opened: Opened) -> None:
    plan = picture_plans.racks()
    palette = colours(component.name for component in plan.problem.components)
    page = opened(plan)
    before = pixels(page)
    page.click("[data-component=rollout]")
    after = pixels(page)
    assert page.evaluate("document.querySelector('[data-component=rollout]').getAttribute('aria-pressed')") == "true"
    assert count(after, palette["rollout"]) > 0.9 * count(before, palette["rollout"])
    assert count(after, palette["train"]) < 0.05 * count(before, palette["train"])
    page.click("[data-component=rollout]")
    assert count(pixels(page), palette["train"]) == count(before, palette["train"])


def test_search_goes_to_the_node(opened: Opened) -> None:
    page = opened(picture_plans.racks())
    page.click("#search")
    page.write("gpu-05")
    assert page.evaluate("document.getElementById('found').textContent") == "10 nodes"
    page.key("Enter")
    assert tip(page).startswith("gpu-050")
    page.key("Enter")
    assert tip(page).startswith("gpu-051")
    page.key("Escape")
    assert tip(page) == ""
    page.write("rack2")
    assert page.evaluate("document.getElementById('found').textContent") == "16 nodes"


def test_keyboard_alone(opened: Opened) -> None:
    page = opened(picture_plans.racks())
    for _ in range(40):
        page.key("Tab")
        if page.evaluate("document.activeElement.id") == "map":
            break
    assert page.evaluate("document.activeElement.id") == "map"
    page.key("ArrowDown")
    assert tip(page).startswith("gpu-000")
    page.key("ArrowDown")
    assert tip(page).startswith("gpu-001")
    page.key("ArrowRight")
    assert tip(page).startswith("gpu-017")
    assert "gpu-017" in page.evaluate("document.getElementById('live').textContent")
    before = page.evaluate("placewright.map.view.zoom")
    page.key("Enter")
    assert page.evaluate("placewright.map.view.zoom") > before
    page.key("0")
    assert page.evaluate("placewright.map.view.zoom") == before
    page.key("+")
    assert page.evaluate("placewright.map.view.zoom") > before
    page.key("Escape")
    assert page.evaluate("placewright.map.selected") == -1


def test_dark_and_light(opened: Opened) -> None:
    plan = picture_plans.mixed()
    page = opened(plan, dark=True)
    assert pixels(page).mean() < 70
    page.click("#theme")
    assert pixels(page).mean() > 200
    page.prefer("light")
    page.wait_for("matchMedia('(prefers-color-scheme: light)').matches")
    page.settle()  # changes that follow each other within one frame would be one
    page.prefer("dark")
    page.wait_for("document.documentElement.dataset.theme === 'dark'")
    assert pixels(page).mean() < 70


def test_names_are_text_not_markup(opened: Opened) -> None:
    import placewright

    name = "<img src=x onerror=alert(1)></script>"
    plan = placewright.plan(placewright.load_problem({
        "cluster": {"nodes": [{"id": name, "gpus": 2}]}, "components": {"{{data}}": {"workers": 2, "gpus": 1}},
    }))
    page = opened(plan)
    page.click("#map")
    page.key("Home")
    assert tip(page).startswith(name)
    assert "{{data}} GPU 0-1 workers 0-1" in tip(page)


def test_100_000_gpus(opened: Opened, tmp_path: Path) -> None:
    plan = picture_plans.huge()
    page = opened(plan)
    assert (tmp_path / "map0.html").stat().st_size < MOST_BYTES / 10
    assert float(page.evaluate("document.documentElement.dataset.ready")) < MOST_MILLISECONDS
    image = pixels(page)
    palette = colours(component.name for component in plan.problem.components)
    assert all(count(image, palette[name]) > 100 for name in ("train", "rollout", "env"))
    page.click("#search")
    page.write("gpu-11700")
    page.key("Enter")
    assert "env GPU 0-3 workers 64-71" in tip(page)
    before = page.evaluate("placewright.map.view.zoom")
    page.wheel(700, 500, -300)
    assert page.evaluate("placewright.map.view.zoom") > before
