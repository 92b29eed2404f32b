"""What ``placewright check`` says of a framework's configuration.

Modify this file when the answer has another part; what a framework does with a configuration is in its own module.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

VERDICTS = ("starts", "fails", "hangs", "splits")
"""``fails``: stops with an error; ``hangs``: waits for ever; ``splits``: starts with a worker or group cut over nodes."""


@dataclass(frozen=True)
class CheckReport:
    """Whether a configuration will start, as the framework itself would place it, and what to do if not.

    Attributes:
        framework: the framework's name.
        verdict: one of ``VERDICTS``.
        findings: what happens, one plain sentence each.
        change: the smallest change that helps; empty where none is needed or known.
        notes: what the answer rests on where the configuration does not say it.
    """

    framework: str
    verdict: str
    findings: tuple[str, ...] = ()
    change: str = ""
    notes: tuple[str, ...] = ()

    @property
    def starts(self) -> bool:
        """Whether nothing is wrong."""
        return self.verdict == "starts"

    @property
    def exit_code(self) -> int:
        """0 where the configuration starts as it is, else 3."""
        return 0 if self.starts else 3

    def to_dict(self) -> dict[str, Any]:
        """The report as plain data."""
        return {
            "framework": self.framework,
            "verdict": self.verdict,
            "findings": list(self.findings),
            "change": self.change,
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        words = {
            "starts": "this configuration will start",
            "fails": "this configuration will not start",
            "hangs": "this configuration will hang: it waits for ever",
            "splits": "this configuration will start with a worker or group split",
        }
        lines = [f"{self.framework}: {words[self.verdict]}"]
        lines += [f"  {finding}" for finding in self.findings]
        if self.change:
            lines.append(f"  change: {self.change}")
        lines += [f"  note: {note}" for note in self.notes]
        return "\n".join(lines)
