"""The plan as JSON (``placewright/plan/1``): what ``load_plan`` reads. Modify this file when the lay-out of the file changes.

One line for each node of a pool, each component's workers, each part of the problem: files compare line by line and large
plans stay fast to write.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from placewright.export.target import Target
from placewright_models.plan import Plan

_BROKEN = frozenset({"pools", "nodes", "workers", "idle", "problem", "cluster", "components", "goals"})
"""Keys whose values are broken over lines."""


def write_json(plan: Plan) -> str:
    """The plan as JSON text."""
    return _write(plan.to_dict(), "", True) + "\n"


def _write(value: Any, indent: str, broken: bool) -> str:
    if not broken or not value or isinstance(value, (str, int, float)):
        return json.dumps(value, ensure_ascii=False)
    inner = indent + "  "
    if isinstance(value, Mapping):
        lines = [f"{json.dumps(key, ensure_ascii=False)}: {_write(item, inner, key in _BROKEN)}" for key, item in value.items()]
        start, end = "{", "}"
    else:
        if isinstance(value[0], str):
            return json.dumps(value, ensure_ascii=False)
        # Pools are a list of mappings that are broken in turn; nodes and goals stand on a line each.
        lines = [_write(item, inner, isinstance(item, Mapping) and "nodes" in item) for item in value]
        start, end = "[", "]"
    return f"{start}\n{inner}" + f",\n{inner}".join(lines) + f"\n{indent}{end}"


TARGET = Target("json", "the plan file that the other commands read", write_json, (".json",))
