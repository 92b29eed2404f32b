"""The command line: ``python -m benchmarks run | check | report | startup | list``; see ``benchmarks/README.md``."""

from __future__ import annotations

import argparse
import json
import sys
import time
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run instances (all, or by name, family or group), verify, check and report")
    run.add_argument("names", nargs="*", metavar="NAME")
    run.add_argument("--smoke", action="store_true", help="every family at a tiny size, in this process, untimed")
    run.add_argument("--out", type=Path, help="folder; default benchmarks/results/<today>")
    run.add_argument("--name", default="", help="added to the dated folder's name")
    run.add_argument("--solver", action="append", default=[], help="only this solver (may be repeated)")
    run.add_argument("--time-limit", type=float, help="seconds, instead of each instance's own")
    run.add_argument("--no-report", action="store_true")
    one = commands.add_parser("one", help="run instances in this process and print their records (used by run)")
    one.add_argument("names", nargs="+", metavar="NAME")
    one.add_argument("--solver", default="placewright")
    one.add_argument("--out", type=Path)
    one.add_argument("--time-limit", type=float)
    for name, text in (("check", "verify every stored answer again"), ("report", "write report.md and plots")):
        command = commands.add_parser(name, help=text)
        command.add_argument("folder", type=Path)
        if name == "report":
            command.add_argument("--readme", action="store_true", help="put the headline tables into README.md too")
    startup = commands.add_parser("startup", help="time imports and the command line as processes")
    startup.add_argument("--out", type=Path)
    startup.add_argument("--repeat", type=int, default=7)
    commands.add_parser("list", help="families and instances")
    given = parser.parse_args(arguments)
    return int(globals()[f"_{given.command}"](given))


def _run(given: argparse.Namespace) -> int:
    from benchmarks.registry import chosen
    from benchmarks.runs import run_all, smoke

    try:
        instances = chosen(given.names, given.smoke)
    except KeyError as error:
        print(f"there is no instance, family or group {error}: see python -m benchmarks list", file=sys.stderr)
        return 2
    if given.smoke:
        return _smoke(given, smoke(instances, given.out))
    today = date.today().isoformat()
    out = given.out or RESULTS / (f"{today}-{given.name}" if given.name else today)
    lost = run_all(instances, out.resolve(), given.solver, given.time_limit)
    if not given.names and not given.solver and not (out / "startup.json").exists():
        from benchmarks.startup import startup

        (out / "startup.json").write_text(json.dumps(startup(), indent=1) + "\n")
    bad = _check(argparse.Namespace(folder=out))
    if not given.no_report:
        _report(argparse.Namespace(folder=out))
    return 1 if lost or bad else 0


def _smoke(given: argparse.Namespace, records: list[dict[str, object]]) -> int:
    from benchmarks.runs import OURS, append

    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        append(given.out, records)
    bad = [
        record
        for record in records
        if record["status"] == "error" or (record["solver"] == OURS and record["status"] not in ("optimal", "infeasible"))
    ]
    for record in records:
        print(f"{record['instance']!s:24} {record['solver']!s:18} {record['status']}  {record.get('note', '')!s:.60}")
    print(f"{len(records)} runs, {len(bad)} wrong", file=sys.stderr)
    return 1 if bad else 0


def _one(given: argparse.Namespace) -> int:
    from benchmarks.registry import chosen
    from benchmarks.runs import run_one

    for instance in chosen(given.names):
        print(json.dumps(run_one(instance, given.solver, given.out, given.time_limit)), flush=True)
    return 0


def _check(given: argparse.Namespace) -> int:
    from benchmarks.answers import check

    began = time.perf_counter()
    wrong = check(given.folder)
    for text in wrong:
        print(text, file=sys.stderr)
    seconds = round(time.perf_counter() - began, 1)
    (given.folder / "check.json").write_text(json.dumps({"wrong": wrong, "seconds": seconds}, indent=1) + "\n")
    print(f"stored answers verified again: {len(wrong)} wrong")
    return 1 if wrong else 0


def _report(given: argparse.Namespace) -> int:
    from benchmarks.report import report

    print(f"wrote {report(given.folder)}")
    if getattr(given, "readme", False):
        from benchmarks.headline import README, fill

        fill(given.folder)
        print(f"wrote the tables into {README.name}")
    return 0


def _startup(given: argparse.Namespace) -> int:
    from benchmarks.startup import startup

    text = json.dumps(startup(given.repeat), indent=1)
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "startup.json").write_text(text + "\n")
    print(text)
    return 0


def _list(given: argparse.Namespace) -> int:
    from benchmarks.registry import families

    for family in families():
        names = [instance.name for instance in family.instances]
        shown = ", ".join(names) if len(names) < 12 else f"{names[0]} .. {names[-1]}"
        print(f"{family.name}: {family.what}\n    {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
