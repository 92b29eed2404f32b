"""Plans as text that people or other programs read; one file a target, all listed here.

``export(plan, "rlightning")`` gives the whole text. A target that cannot say what the plan says refuses
(``ExportRefused``) rather than lose placement. Modify this file when a target is added: write its file with a ``TARGET`` and
put it into ``TARGETS``; the command line and the tests iterate that tuple.
"""

from __future__ import annotations

from placewright.export import env, json_file, nemo_rl, rlightning, text, verl, yaml_file
from placewright.export.target import ExportRefused, Target
from placewright_models.errors import Fault, InvalidProblem
from placewright_models.plan import Plan
from placewright_models.reading.values import nearest

TARGETS: tuple[Target, ...] = (
    text.TARGET,
    json_file.TARGET,
    yaml_file.TARGET,
    rlightning.TARGET,
    verl.TARGET,
    nemo_rl.TARGET,
    env.TARGET,
)
"""Every target, in the order in which help texts name them."""

__all__ = ["TARGETS", "ExportRefused", "Target", "export", "target_for_file", "target_named"]


def target_named(name: str) -> Target:
    """The target of that name.

    Raises:
        InvalidProblem: if there is none.
    """
    for target in TARGETS:
        if target.name == name:
            return target
    names = [target.name for target in TARGETS]
    raise InvalidProblem([Fault("format", f"{name} is not a format", nearest(name, names))])


def target_for_file(name: str) -> Target | None:
    """The target that a file's ending speaks for; None where it speaks for none."""
    for target in TARGETS:
        if name.lower().endswith(target.suffixes):
            return target
    return None


def export(plan: Plan, format: str = "json") -> str:
    """The plan in another form, ending in a newline.

    Args:
        plan: the plan.
        format: name of a target: ``text``, ``json``, ``yaml``, ``rlightning``, ``verl``, ``nemo-rl``, ``env``.

    Raises:
        ExportRefused: if the target cannot say what the plan says.
        InvalidProblem: if there is no such target.
    """
    return target_named(format).write(plan)
