"""``report.md`` and plots from the records of a results folder.

Everything in it comes from ``runs.jsonl``, ``startup.json`` and ``check.json`` of the folder, so it can be written again at
any time. Modify this file when the report is to say something new.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.runs import OURS, read_records

Record = dict[str, Any]
TARGETS: dict[str, tuple[float | None, float | None]] = {
    "A": (0.1, 1.5),
    "B": (0.1, 12),
    "C": (3, 8),
    "D": (1, 2),
    "E": (20, None),
    "F": (0.1, 0.2),
    "G": (3, 5),
    "H": (0.3, 1),
    "I": (10, 15),
}
"""Instance -> seconds wanted in CP-SAT and in whole, on two cores."""
FOUND = ("optimal", "feasible", "greedy")


def report(folder: Path) -> Path:
    """Write ``report.md`` and the plots into the folder.

    Raises:
        FileNotFoundError: where there are no records.
    """
    records = read_records(folder)
    if not records:
        raise FileNotFoundError(f"no runs.jsonl in {folder}")
    by_key = {(record["instance"], record["solver"]): record for record in records}
    parts = [
        _head(folder, records),
        _targets(by_key),
        _peers_on_targets(by_key),
        _samples(records),
        _growth(folder, records),
        _gap(folder, records),
        _startup(folder),
        _odd(records),
    ]
    path = folder / "report.md"
    path.write_text("\n\n".join(part for part in parts if part) + "\n")
    _settings(folder, records)
    return path


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def seconds(value: float | None) -> str:
    """Seconds to two or three digits.

    >>> seconds(0.0123), seconds(1.234), seconds(12.34), seconds(None)
    ('0.012', '1.23', '12.3', '-')
    """
    if value is None:
        return "-"
    return f"{value:.3f}" if value < 1 else f"{value:.2f}" if value < 10 else f"{value:.1f}"


def goals_text(record: Record) -> str:
    """Goal values, with the bound where it is not proved."""
    found = []
    for goal in record.get("goals", []):
        text = str(goal["value"])
        if record["status"] != "greedy" and goal["bound"] != goal["value"]:
            text += f" (bound {goal['bound'] if goal['bound'] is not None else 'none'})"
        found.append(text)
    return ", ".join(found)


def _head(folder: Path, records: list[Record]) -> str:
    machine: Record = next((record["machine"] for record in records if "machine" in record), {})
    versions = machine.get("versions", {})
    lines = [
        f"# Benchmarks, {folder.name}",
        "",
        f"{machine.get('cores')} cores of {machine.get('cpu')}; "
        + ", ".join(f"{name} {value}" for name, value in versions.items()),
        "",
        f"{len(records)} runs: "
        + ", ".join(f"{number} {status}" for status, number in Counter(r["status"] for r in records).most_common()),
    ]
    check = folder / "check.json"
    if check.exists():
        wrong = json.loads(check.read_text())["wrong"]
        lines += ["", f"Every stored answer was read back and verified again: {len(wrong)} wrong."]
    return "\n".join(lines)


def _targets(by_key: dict[tuple[str, str], Record]) -> str:
    rows = []
    for name, (solve, whole) in TARGETS.items():
        for title in (name, f"{name}-default"):
            record = by_key.get((title, OURS))
            if record is None:
                continue
            times = record["times"]
            rows.append(
                [
                    title,
                    f"{record.get('nodes', 0):,}",
                    f"{record.get('gpus', 0):,}",
                    record["status"],
                    goals_text(record) or _reasons(record),
                    seconds(times.get("solve")) + (f" ({solve:g})" if solve and title == name else ""),
                    seconds(times.get("whole")) + (f" ({whole:g})" if whole and title == name else ""),
                    " / ".join(seconds(times.get(stage)) for stage in ("build", "search", "decode", "verify")),
                    f"{record.get('peak_memory_mib', 0):,.0f}",
                    record.get("load_average", "-"),
                ]
            )
    if not rows:
        return ""
    text = "## The table of the issue\n\n"
    text += "Seconds; targets in parentheses. solve is all time in CP-SAT, whole is problem object in, verified plan out. "
    text += "Goals are in the problem's order; load is the machine's load average when the run began (2 cores).\n\n"
    head = ["instance", "nodes", "GPUs", "status", "goals", "solve", "whole", "build / search / decode / verify", "MiB", "load"]
    text += table(head, rows)
    return text


def _reasons(record: Record) -> str:
    return "; ".join(reason["sentence"] for reason in record.get("reasons", []))[:160]


def _peers_on_targets(by_key: dict[tuple[str, str], Record]) -> str:
    names = [name for name in TARGETS if any(key[0] == name and key[1] != OURS for key in by_key)]
    if not names:
        return ""
    solvers = list(dict.fromkeys(key[1] for key in by_key))
    text = "## Peers on the same instances\n\nGoal values and seconds until the answer (node choice only for greedy rules; "
    text += (
        "our whole). Time limits are in settings.json. Where an earlier goal is worse, a later one may lie below its optimum.\n"
    )
    for name in names:
        rows = []
        for solver in solvers:
            record = by_key.get((name, solver))
            if record is None:
                continue
            time = record["times"].get("whole" if solver == OURS else "solve", record["times"].get("whole"))
            detail = goals_text(record) or record.get("note", "")[:90].replace("\n", " ").replace("|", "/")
            rows.append([solver, record["status"], detail, _distance(record, by_key.get((name, OURS))), seconds(time)])
        head = ["solver", "status", "goals", "above the bound", "s"]
        text += f"\n**{name}**\n\n" + table(head, rows) + "\n"
    return text


def distance(record: Record, best: Record | None) -> list[float] | None:
    """Per goal, how far above the proved optimum, in per cent; None where one of the two is missing."""
    if best is None or best["status"] != "optimal" or not record.get("goals"):
        return None
    return [
        100.0 * (goal["value"] - proved["value"]) / max(1, proved["value"])
        for goal, proved in zip(record["goals"], best["goals"], strict=True)
    ]


def _distance(record: Record, best: Record | None) -> str:
    found = distance(record, best)
    return (
        "-"
        if found is None
        else ", ".join(f"{value:+.1f} %" if abs(value) >= 0.05 or not value else f"{value:+.4f} %" for value in found)
    )


def _samples(records: list[Record]) -> str:
    samples = [record for record in records if record["group"] == "sample"]
    if not samples:
        return ""
    text = "## How often a plan is found where one exists, and how good it is\n\n"
    text += "Random instances whose optimum is proved by placewright. expressible: in how many the peer's language can say the "
    text += "problem; found: valid plans (verified) of those that are expressible and feasible; optimal: plans that are best "
    text += (
        "in every goal; above: mean over found plans of how far the first goal that is not optimal lies above its optimum.\n"
    )
    for family in dict.fromkeys(record["family"] for record in samples):
        here = [record for record in samples if record["family"] == family]
        ours = {record["instance"]: record for record in here if record["solver"] == OURS}
        feasible = {name for name, record in ours.items() if record["status"] == "optimal"}
        impossible = sum(record["status"] == "infeasible" for record in ours.values())
        rows = []
        for solver in dict.fromkeys(record["solver"] for record in here):
            mine = [record for record in here if record["solver"] == solver]
            asked = [record for record in mine if record["status"] not in ("cannot express", "too large")]
            tried = [record for record in asked if record["instance"] in feasible]
            found = [record for record in tried if record["status"] in FOUND]
            gaps = [gap for record in found if (gap := distance(record, ours[record["instance"]])) is not None]
            best = sum(not any(gap) for gap in gaps)
            times = [record["times"]["whole"] for record in asked if "whole" in record["times"]]
            broken = sum(record["status"] == "breaks a rule" for record in tried)
            rows.append(
                [
                    solver,
                    f"{len(asked)}/{len(mine)}",
                    f"{len(found)}/{len(tried)}" + (f" ({100 * len(found) / len(tried):.0f} %)" if tried else ""),
                    best,
                    f"{statistics.mean(next(filter(None, gap), 0.0) for gap in gaps):+.1f} %" if gaps else "-",
                    broken,
                    seconds(statistics.median(times)) if times else "-",
                    seconds(max(times)) if times else "-",
                ]
            )
        text += f"\n**{family}**: {len(ours)} instances, {len(feasible)} feasible and proved, "
        text += f"{impossible} proved infeasible\n\n"
        head = ["solver", "expressible", "found", "optimal", "above", "breaks a rule", "median s", "most s"]
        text += table(head, rows) + "\n"
    return text


def _axes() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def _growth(folder: Path, records: list[Record]) -> str:
    points: dict[tuple[str, str], list[tuple[int, float, str]]] = {}
    for record in records:
        if record["group"] == "sample" or record.get("default_goals") or record["family"] == "one_too_many":
            continue
        time = record.get("times", {}).get("whole")
        if time and record["status"] in FOUND:
            point = (record["gpus"], time, record["status"])
            points.setdefault((record["family"], record["solver"]), []).append(point)
    ours = {family: sorted(here) for (family, solver), here in points.items() if solver == OURS and len(here) > 1}
    if not ours:
        return ""
    pyplot = _axes()
    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.2), sharey=True)
    for family, here in sorted(ours.items()):
        axes[0].plot([gpus for gpus, _, _ in here], [time for _, time, _ in here], "o-", label=family, markersize=4)
    for solver in dict.fromkeys(solver for _, solver in points):
        here = sorted(points.get(("equal", solver), []))
        if here:
            axes[1].plot([gpus for gpus, _, _ in here], [time for _, time, _ in here], "o-", label=solver, markersize=4)
    for axis, title in zip(axes, ("placewright, by family", "equal nodes, by solver"), strict=True):
        axis.set(xscale="log", yscale="log", xlabel="GPUs", title=title)
        axis.grid(True, which="major", alpha=0.3)
        axis.legend(fontsize=7)
    axes[0].set_ylabel("whole, seconds")
    figure.tight_layout()
    figure.savefig(folder / "time.png", dpi=80)
    pyplot.close(figure)
    rows = [
        [family, *(f"{gpus:,}: {seconds(time)}{'' if status == 'optimal' else ' (not proved)'}" for gpus, time, status in here)]
        for family, here in sorted(ours.items())
    ]
    width = max(len(row) for row in rows)
    rows = [[*row, *[""] * (width - len(row))] for row in rows]
    text = "## Time against GPUs\n\n![time against GPUs](time.png)\n\nGPUs: whole seconds of placewright.\n\n"
    return text + table(["family", *[""] * (width - 1)], rows)


def gap_curve(record: Record) -> list[tuple[float, float]]:
    """(seconds, gap in per cent of the value) of the goal that took longest, over the CP-SAT calls it took."""
    calls = [call for call in record.get("calls", []) if call.get("trace")]
    if not calls:
        return []
    longest = max(calls, key=lambda call: call["seconds"])
    goal = longest.get("goal")
    value: float | None = None
    bound: float | None = None
    curve = []
    for call in calls:
        if call is not longest and (goal is None or call.get("goal") != goal):
            continue
        for at, here, below in call["trace"]:
            value = here if value is None or (here is not None and here < value) else value
            bound = below if bound is None or below > bound else bound
            if value is not None and bound is not None and abs(bound) < 1e15:
                curve.append((call["start"] + at, max(0.0, 100 * (value - bound) / max(1.0, abs(value)))))
    return curve


def _gap(folder: Path, records: list[Record]) -> str:
    curves = {}
    for record in records:
        if record["solver"] == OURS and record["group"] != "sample":
            curve = gap_curve(record)
            if len(curve) > 3 and curve[-1][0] - curve[0][0] > 0.2:
                curves[record["instance"]] = curve
    if not curves:
        return ""
    pyplot = _axes()
    figure, axis = pyplot.subplots(figsize=(7, 4))
    longest = sorted(curves.items(), key=lambda entry: -entry[1][-1][0])[:8]
    for name, curve in longest:
        axis.step([at for at, _ in curve], [gap for _, gap in curve], where="post", label=name)
    axis.set(xscale="log", xlabel="seconds since the start", ylabel="gap, % of the value", title="Gap of the slowest goal")
    axis.set_yscale("symlog", linthresh=0.1)
    axis.set_ylim(bottom=0)
    axis.grid(True, alpha=0.3)
    axis.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(folder / "gap.png", dpi=80)
    pyplot.close(figure)
    rows = []
    for name, curve in longest:
        at_ten = [gap for at, gap in curve if at <= 10]
        rows.append([name, f"{at_ten[-1]:.2f} %" if at_ten else "-", f"{curve[-1][1]:.2f} %", seconds(curve[-1][0])])
    text = "## Gap over time\n\n![gap over time](gap.png)\n\n"
    text += "The goal that took longest, value over bound, while CP-SAT searched; its end is the proof, at gap 0.\n\n"
    return text + table(["instance", "gap after 10 s", "last gap", "at"], rows)


def _startup(folder: Path) -> str:
    path = folder / "startup.json"
    if not path.exists():
        return ""
    data = json.loads(path.read_text())
    rows = [[name, *(seconds(value[key]) for key in ("median", "least", "most"))] for name, value in data["seconds"].items()]
    text = "## Start\n\n" + table(["process", "median s", "least", "most"], rows)
    text += f"\n\nimport placewright / import pydantic: {data['import placewright / pydantic']} (target 1.5). "
    text += f"placewright plan / bare CP-SAT: {data['placewright plan / cp_model']} (target 1.5). "
    text += f"Heavy modules loaded by import placewright: {', '.join(data['unwanted modules loaded']) or 'none'}."
    if "growth" in data:
        whole = data["growth"]["whole"].items()
        rows = [[name, *(seconds(value[key]) for key in ("median", "least", "most"))] for name, value in whole]
        text += "\n\n## Growth\n\nProblem in memory to verified plan, each in processes of its own.\n\n"
        text += table(["instance", "median s", "least", "most"], rows)
        text += f"\n\nwhole(A) / whole(A with a tenth of the domains): {data['growth']['ratio of least']} by the least times, "
        text += f"{data['growth']['ratio of medians']} by the medians (target 12)."
    return text


def _odd(records: list[Record]) -> str:
    bad = {OURS: ("error", "no answer", "breaks a rule", "timeout", "nothing found")}
    odd = [r for r in records if r["status"] in bad.get(r["solver"], ("error", "no answer"))]
    if not odd:
        return ""
    rows = [[r["instance"], r["solver"], r["status"], r.get("note", "")[:120].replace("\n", " ")] for r in odd]
    return "## To look at\n\n" + table(["instance", "solver", "status", "note"], rows)


def _settings(folder: Path, records: list[Record]) -> None:
    """``settings.json`` and a README.md of the folder where it has none."""
    found: dict[str, Any] = {}
    for record in records:
        if "settings" in record:
            found.setdefault(record["solver"], {})[record["instance"]] = record["settings"]
    packed = {
        solver: [
            {"settings": json.loads(text), "instances": [name for name, here in by.items() if json.dumps(here) == text]}
            for text in dict.fromkeys(json.dumps(here) for here in by.values())
        ]
        for solver, by in found.items()
    }
    machine: Record = next((record["machine"] for record in records if "machine" in record), {})
    (folder / "settings.json").write_text(json.dumps({"machine": machine, "settings": packed}, indent=1) + "\n")
    readme = folder / "README.md"
    if not readme.exists():
        readme.write_text(
            f"# {folder.name}\n\n"
            "One run of `python -m benchmarks run`; how to read it is in benchmarks/README.md.\n\n"
            "- `report.md`: tables and plots, written by `python -m benchmarks report`\n"
            "- `runs.jsonl`: one record a run\n"
            "- `settings.json`: machine, versions and every solver's settings\n"
            "- `answers/`: every plan, read back and verified by `python -m benchmarks check`\n"
        )
