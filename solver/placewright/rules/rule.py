"""What every rule offers.

A rule has a name, the paragraph of design.md section 4 that it comes from, and a check that reads a plan's facts and names
every violation. Modify this file when rules get another common part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from placewright.facts import Facts


class Rule(Protocol):
    """One hard rule."""

    name: str
    code: str

    def check(self, facts: Facts) -> Iterator[str]:
        """One plain sentence per violation, with component, node and numbers."""
        ...
