"""The plan that is in force in this process: the file that ``PLACEWRIGHT_PLAN`` names, read once.

Usage: ``plan = plan_in_force()``; None where the variable is not set. A file that cannot be read is an error at the moment
when something would be placed by it, never silence.

When to modify: when a plan can come into force in another way.
"""

from __future__ import annotations

import os
from functools import lru_cache

from placewright_models.plan import Plan

PLAN_VARIABLE = "PLACEWRIGHT_PLAN"
"""Environment variable with the path of a plan file."""


def plan_in_force() -> Plan | None:
    """The plan, or None.

    Raises:
        InvalidProblem: if the file is missing or no plan.
    """
    path = os.environ.get(PLAN_VARIABLE)
    return _read(path, os.stat(path).st_mtime_ns if os.path.exists(path) else 0) if path else None


@lru_cache(maxsize=4)
def _read(path: str, _changed: int) -> Plan:
    from placewright_models.codec import load_plan

    return load_plan(path)
