"""What can go wrong, as exceptions that carry their facts as data.

Every message is for people: what is wrong, where, and what would fix it. The facts behind the message are attributes, so
that programs need not parse text. Modify this file when a new way to fail needs facts of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


class PlacewrightError(Exception):
    """Base of every error that placewright raises on purpose."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One mistake in an input: where it stands, what is wrong, and what would be right.

    ``place`` is a path into the problem file such as ``components.train.gpus`` or ``cluster.nodes[3].id``.
    """

    place: str
    wrong: str
    right: str = ""

    def __str__(self) -> str:
        text = f"{self.place}: {self.wrong}" if self.place else self.wrong
        return f"{text} ({self.right})" if self.right else text


class InvalidProblem(PlacewrightError, ValueError):
    """The input cannot be right on any cluster, or names something that is not there. Carries all faults at once.

    ``source`` is the file, ``what`` it was to hold: a problem or a plan.
    """

    def __init__(self, faults: Sequence[Fault], source: str = "", what: str = "problem") -> None:
        self.faults: tuple[Fault, ...] = tuple(faults)
        self.source = source
        head = f"{source}: " if source else ""
        count = len(self.faults)
        if count == 1 and source and not self.faults[0].place:
            # About the file as a whole.
            super().__init__(f"{head}{self.faults[0]}")
            return
        title = f"{head}invalid {what}" if count == 1 else f"{head}invalid {what}, {count} faults"
        shown = [f"  {fault}" for fault in self.faults[:50]]
        if count > 50:
            shown.append(f"  ... and {count - 50} more")
        super().__init__("\n".join([title, *shown]))


@dataclass(frozen=True, slots=True)
class Reason:
    """One requirement of a minimal set that cannot hold together.

    Attributes:
        requirement: the place of the requirement in the problem file, e.g. ``components.train.workers`` or
            ``rules.separate_nodes[0]``.
        sentence: one plain sentence that says what is needed and what there is.
        components: the components concerned.
        resource: what is short or violated: ``gpus``, ``cpus``, ``memory``, ``nodes``, ``segments``, ``groups``,
            ``domains``, ``sharing``, ``labels``, ``accelerator``, ...
        needed: how much the requirement asks, in the unit of the resource; None where a number says nothing.
        available: how much there is.
        shortage: ``too small`` (infeasible even when idle), ``fragmented`` (feasible if each node's free GPUs were
            renumbered consecutively), ``occupied`` (else), or None where the requirement is not about capacity.
        per_unit: node or domain name -> how much it can give (the first few where there are many).
        most_workers: the most workers of the component that would fit, exact; None where it is not one component's count.
    """

    requirement: str
    sentence: str
    components: tuple[str, ...] = ()
    resource: str = ""
    needed: float | int | None = None
    available: float | int | None = None
    shortage: str | None = None
    per_unit: Mapping[str, float | int] = field(default_factory=dict)
    most_workers: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """The reason as plain data (for ``explain --format json``)."""
        return {
            "requirement": self.requirement,
            "sentence": self.sentence,
            "components": list(self.components),
            "resource": self.resource,
            "needed": self.needed,
            "available": self.available,
            "shortage": self.shortage,
            "per_unit": dict(self.per_unit),
            "most_workers": self.most_workers,
        }


class InfeasibleProblem(PlacewrightError):
    """No placement satisfies the problem on this cluster. ``reasons`` is a minimal set of clashing requirements."""

    def __init__(self, reasons: Sequence[Reason], note: str = "") -> None:
        self.reasons: tuple[Reason, ...] = tuple(reasons)
        lines = ["no placement exists"]
        lines += [f"  {reason.sentence}" for reason in self.reasons]
        if note:
            lines.append(f"  {note}")
        super().__init__("\n".join(lines))


class SolveTimeout(PlacewrightError, TimeoutError):
    """The time limit passed with neither a plan nor a proof that there is none."""


class PlanMismatch(PlacewrightError):
    """A plan and the problem (``verify``) or the live cluster (``apply``) differ. ``differences`` names each one."""

    def __init__(self, differences: Sequence[str], title: str = "the plan does not match") -> None:
        self.differences: tuple[str, ...] = tuple(differences)
        shown = [f"  {text}" for text in self.differences[:50]]
        if len(self.differences) > 50:
            shown.append(f"  ... and {len(self.differences) - 50} more")
        super().__init__("\n".join([title, *shown]))
