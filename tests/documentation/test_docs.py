"""The pages: each rule and goal has one with a picture, the navigation names every page, examples on them are right."""

from __future__ import annotations

import importlib.util
import json
import re
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
import yaml

import placewright
from placewright.goals import GOALS
from placewright.rules import RULES

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCHEMA = jsonschema.Draft7Validator(
    json.loads(files("placewright_models").joinpath("problem.schema.json").read_text(encoding="utf-8"))
)
PAGES = sorted(path for path in DOCS.rglob("*.md"))


@pytest.mark.parametrize("name", [f"rules/{rule.name}" for rule in RULES] + [f"goals/{goal.name}" for goal in GOALS])
def test_every_rule_and_goal_has_a_page_with_a_picture(name: str) -> None:
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[[^\]]+\]\(\.\./images/(\w+)\.svg\)", text)
    assert pictures
    made = yaml.safe_load((DOCS / "pictures.yaml").read_text(encoding="utf-8"))
    for picture in pictures:
        assert picture in made
        assert (DOCS / "images" / f"{picture}.svg").exists()
    assert f"({name.partition('/')[2]}.md)" in (DOCS / name.partition("/")[0] / "index.md").read_text(encoding="utf-8")


def test_the_navigation_names_every_page() -> None:
    config = (DOCS / "web" / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r"([\w/-]+\.md)", config.partition("nav:")[2]))
    assert named == {str(path.relative_to(DOCS)) for path in PAGES}


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(DOCS)))
def test_yaml_on_pages_can_be_read(path: Path) -> None:
    for block in re.findall(r"^```yaml\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
        data = yaml.safe_load(block)
        if path.parent.name in ("rules", "goals") and data:
            sections = data if set(data) <= {"cluster", "rules", "traffic", "goals"} else {"components": data}
            SCHEMA.validate(sections)


def test_every_picture_shows_a_difference() -> None:
    spec = importlib.util.spec_from_file_location("make_pictures", DOCS / "make_pictures.py")
    assert spec is not None
    assert spec.loader is not None
    make_pictures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_pictures)
    for name, entry in yaml.safe_load((DOCS / "pictures.yaml").read_text(encoding="utf-8")).items():
        changed = make_pictures.laid_over(entry["problem"], entry["change"])
        plans = [placewright.plan(placewright.load_problem(data), workers=1) for data in (entry["problem"], changed)]
        assert all(plan.status == "optimal" for plan in plans), name
        assert plans[0].workers != plans[1].workers, name
