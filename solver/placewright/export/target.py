"""What an export target is, and its way to refuse. Modify this file when all targets get another common part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from placewright_models.errors import PlacewrightError
from placewright_models.plan import Plan


@dataclass(frozen=True, slots=True)
class Target:
    """One form of a plan.

    Attributes:
        name: the name that ``--format`` takes.
        summary: what it is, in a few words, for help texts.
        write: the plan as text that ends in a newline.
        suffixes: endings of file names that speak for this target.
    """

    name: str
    summary: str
    write: Callable[[Plan], str]
    suffixes: tuple[str, ...] = ()


class ExportRefused(PlacewrightError):
    """The target's format cannot express the plan; ``causes`` says what cannot be said, one sentence each."""

    def __init__(self, target: str, causes: Sequence[str]) -> None:
        self.target = target
        self.causes: tuple[str, ...] = tuple(causes)
        super().__init__("\n".join([f"the {target} format cannot express this plan", *(f"  {cause}" for cause in causes)]))
