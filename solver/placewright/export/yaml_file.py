"""The plan as YAML: the same data as the JSON form, for people who keep everything in YAML; ``load_plan`` reads it too.

Modify this file when the YAML form is laid out otherwise.
"""

from __future__ import annotations

from placewright.export.target import Target
from placewright_models.codec import dump_yaml
from placewright_models.plan import Plan


def write_yaml(plan: Plan) -> str:
    """The plan as YAML text."""
    return dump_yaml(plan.to_dict())


TARGET = Target("yaml", "the same plan as YAML", write_yaml, (".yaml", ".yml"))
