"""Makes the pictures in docs/images: the README's plan, and small ones before and after for pages on rules and goals.

::

    python docs/make_pictures.py                 # all
    python docs/make_pictures.py plan colocate   # some

``PLANS`` are whole maps of shipped examples. Each entry of ``docs/pictures.yaml`` is a pair: a problem, what is laid over it
for the second picture, and the two titles. Add an entry there when a page needs a picture, and look at what comes out.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

import placewright
from placewright.picture import comparison, save_map

HERE = Path(__file__).resolve().parent
IMAGES = HERE / "images"
PAIRS = HERE / "pictures.yaml"

PLANS = {"plan": HERE.parent / "examples" / "rlightning-wbc-4x8.yaml"}
"""Picture -> problem file."""


def make_plan(name: str) -> list[Path]:
    """A whole map, as PNG and SVG."""
    plan = placewright.plan(placewright.load_problem(PLANS[name]))
    paths = [IMAGES / f"{name}.png", IMAGES / f"{name}.svg"]
    for path in paths:
        save_map(plan, path)
    return paths


def make_pair(name: str, entry: dict[str, Any]) -> list[Path]:
    """Before and after, side by side, as SVG."""
    from placewright.picture.still import save

    before, after = entry["titles"]
    plans = {
        before: placewright.plan(placewright.load_problem(entry["problem"])),
        after: placewright.plan(placewright.load_problem(laid_over(entry["problem"], entry["change"]))),
    }
    path = IMAGES / f"{name}.svg"
    save(comparison(plans), path)
    return [path]


def laid_over(problem: Any, change: Any) -> Any:
    """The problem with the change's keys in place of its own; mappings are merged, null removes a key."""
    if not isinstance(problem, dict) or not isinstance(change, dict):
        return change
    merged = {key: laid_over(problem.get(key), value) for key, value in change.items() if value is not None}
    return {key: value for key, value in {**problem, **merged}.items() if change.get(key, "") is not None}


def main(wanted: list[str]) -> None:
    """Make the named pictures, or all."""
    IMAGES.mkdir(exist_ok=True)
    pairs: dict[str, Any] = yaml.safe_load(PAIRS.read_text(encoding="utf-8"))
    unknown = set(wanted) - {*PLANS, *pairs}
    if unknown:
        raise SystemExit(f"no such pictures: {', '.join(sorted(unknown))}; there are: {', '.join([*PLANS, *pairs])}")
    for name in wanted or [*PLANS, *pairs]:
        for path in make_plan(name) if name in PLANS else make_pair(name, pairs[name]):
            print(path.relative_to(HERE.parent))


if __name__ == "__main__":
    main(sys.argv[1:])
