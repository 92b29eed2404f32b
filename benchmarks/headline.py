"""The README's tables, from the records of a results folder.

``python -m benchmarks report FOLDER --readme`` puts them between ``<!-- benchmarks -->`` and ``<!-- /benchmarks -->`` there.
Modify this file when the README is to say something else about a run.
"""

from __future__ import annotations

import re
import statistics
from pathlib import Path
from typing import Any

from benchmarks.report import FOUND, TARGETS, distance, seconds, table
from benchmarks.runs import OURS, ROOT, read_records

README = ROOT / "README.md"
MARKS = re.compile(r"(<!-- benchmarks -->\n).*?(<!-- /benchmarks -->)", re.DOTALL)
Record = dict[str, Any]


def headline(folder: Path) -> str:
    """Two tables: large instances by size, and solvers over the random samples."""
    records = read_records(folder)
    by_key = {(record["instance"], record["solver"]): record for record in records}
    machine: Record = next((record["machine"] for record in records if "machine" in record), {})
    parts = [
        f"From the stored run [{folder.name}](benchmarks/results/{folder.name}/report.md) on {machine.get('cores')} cores of "
        f"{machine.get('cpu')}: seconds from a problem in memory to a verified plan. "
        "[benchmarks/README.md](benchmarks/README.md) has the command, the instances by letter and the peers.",
        _sizes(by_key),
        _solvers(records, by_key),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def fill(folder: Path, readme: Path = README) -> None:
    """Put the tables into the README.

    Raises:
        ValueError: if the README has no place for them, or more than one.
    """
    text, count = MARKS.subn(lambda found: f"{found[1]}{headline(folder)}{found[2]}", readme.read_text(encoding="utf-8"))
    if count != 1:
        raise ValueError(
            f"{readme.name} has {count} places between <!-- benchmarks --> and <!-- /benchmarks -->, one is needed"
        )
    readme.write_text(text, encoding="utf-8")


def _sizes(by_key: dict[tuple[str, str], Record]) -> str:
    rows = []
    for name in TARGETS:
        record = by_key.get((name, OURS))
        if record is not None and record["times"].get("whole"):
            status = {"optimal": "optimal", "infeasible": "no plan exists, and why"}.get(record["status"], record["status"])
            size = [f"{name}: {record['family']}", f"{record.get('nodes', 0):,}", f"{record.get('gpus', 0):,}"]
            rows.append([*size, status, seconds(record["times"]["whole"])])
    return table(["instance", "nodes", "GPUs", "answer", "seconds"], rows) if rows else ""


def _solvers(records: list[Record], by_key: dict[tuple[str, str], Record]) -> str:
    samples = [record for record in records if record["group"] == "sample"]
    proved = {record["instance"] for record in samples if record["solver"] == OURS and record["status"] == "optimal"}
    rows = []
    for solver in dict.fromkeys(record["solver"] for record in samples):
        mine = [record for record in samples if record["solver"] == solver and record["instance"] in proved]
        asked = [record for record in mine if record["status"] not in ("cannot express", "too large")]
        found = [record for record in asked if record["status"] in FOUND]
        best = [record for record in found if not any(distance(record, by_key[record["instance"], OURS]) or [1.0])]
        times = [record["times"]["whole"] for record in asked if "whole" in record["times"]]
        median = seconds(statistics.median(times)) if times else "-"
        rows.append([solver, f"{len(asked)} of {len(mine)}", len(found), len(best), median])
    if not rows:
        return ""
    text = f"{len(proved)} random instances (small, middle, pools, tiny) that have a plan. "
    text += "*asked*: those that the solver's language can say; *best*: optimal in every goal.\n\n"
    return text + table(["solver", "asked", "finds a plan", "best", "median s"], rows)
