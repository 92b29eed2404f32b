"""The long profile: thousands of random problems, planner against oracle in every encoding, with counts of what was seen.

``python -m tests.long_run --problems 20000 --log FILE [--seed 0]`` writes a summary in Markdown (JSON by its ending) and
exits 1 where anything differed. Problem number i depends on ``--seed + i`` alone, so one line repeats any of them:
``python -m tests.long_run --problems 1 --seed I``.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

sys.path.append(str(Path(__file__).parent))

from differential import ENCODINGS, Answer, difference, expected, refusable, spoken_of
from middle import equal_file, middle_file, traffic_file, uneven_file
from oracle import plain_model
from oracle.tiny import random_file

from placewright_models.codec import load_problem
from placewright_models.errors import InvalidProblem
from placewright_models.problem import Problem

EVERY_MIDDLE = 2000
"""One problem in so many is of middle size."""
EVERY_DOMAINS = 40
"""One problem in so many has several domains: equal, hardly two alike, or equal with groups and traffic, in turns."""
MIDDLE_SECONDS = 10.0


@dataclass
class Log:
    """Counts over a run."""

    status: Counter[str] = field(default_factory=Counter)
    oracle: Counter[str] = field(default_factory=Counter)
    rules: dict[str, Counter[str]] = field(default_factory=dict)
    goals: dict[str, Counter[str]] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def count(self, problem: Problem, want: Answer, oracle: str) -> None:
        """One problem that both sides agree on, or not."""
        self.status[want.status] += 1
        self.oracle[oracle] += 1
        if refusable(problem):
            self.oracle["of these: traffic of workers: auto, which the planner may refuse"] += 1
        for rule in set(spoken_of(problem)):
            self.rules.setdefault(rule, Counter())[want.status] += 1
        for name, value in want.goals.items():
            self.goals.setdefault(name, Counter())["above 0" if value else "0"] += 1

    def add(self, other: Log) -> None:
        """Take in what another part of the run counted."""
        self.status += other.status
        self.oracle += other.oracle
        for mine, theirs in ((self.rules, other.rules), (self.goals, other.goals)):
            for name, counts in theirs.items():
                mine[name] = mine.get(name, Counter()) + counts
        self.differences += other.differences
        self.seconds = max(self.seconds, other.seconds)

    def to_dict(self) -> dict[str, Any]:
        return {
            "problems": self.status.total(),
            "encodings": list(ENCODINGS),
            "status": dict(self.status),
            "oracle": dict(self.oracle),
            "rules": {name: dict(self.rules[name]) for name in sorted(self.rules)},
            "goals": {name: dict(self.goals[name]) for name in sorted(self.goals)},
            "differences": self.differences,
            "seconds": round(self.seconds),
            "ortools": version("ortools"),
            "python": platform.python_version(),
        }

    def to_markdown(self) -> str:
        head = self.to_dict()
        lines = [
            "# The long profile",
            "",
            f"{head['problems']} random problems, each planned in {len(ENCODINGS)} encodings ({', '.join(ENCODINGS)}) and",
            "compared with an oracle in status and in every goal's value, level by level: "
            f"**{len(self.differences)} differences**.",
            "",
            f"OR-Tools {head['ortools']}, Python {head['python']}, {head['seconds']} s.",
            "",
            *_table("status", "problems", self.status),
            *_table("oracle", "problems", self.oracle),
            "| rule with something to say | optimal | infeasible |",
            "| --- | ---: | ---: |",
            *(f"| {name} | {seen['optimal']} | {seen['infeasible']} |" for name, seen in sorted(self.rules.items())),
            "",
            "| goal | value 0 | value above 0 |",
            "| --- | ---: | ---: |",
            *(f"| {name} | {seen['0']} | {seen['above 0']} |" for name, seen in sorted(self.goals.items())),
            "",
            *(f"- {text}" for text in self.differences),
        ]
        return "\n".join(lines).rstrip() + "\n"


def _table(title: str, unit: str, counts: Counter[str]) -> list[str]:
    rows = [f"| {name} | {number} |" for name, number in sorted(counts.items())]
    return [f"| {title} | {unit} |", "| --- | ---: |", *rows, ""]


def one(seed: int, log: Log) -> None:
    """Draw the problem of this number, ask both sides, count."""
    rng = Random(seed)
    if seed % EVERY_DOMAINS == EVERY_DOMAINS - 1:
        file = (uneven_file, equal_file, traffic_file)[seed // EVERY_DOMAINS % 3]
        problem = load_problem((middle_file if seed % EVERY_MIDDLE == EVERY_MIDDLE - 1 else file)(rng))
        try:
            plain = plain_model.solve(problem, time_limit=MIDDLE_SECONDS)
        except plain_model.Undecided:
            log.oracle["plain model: undecided in time"] += 1
            return
        want, oracle = Answer(plain.status, plain.goals), "plain model"
    else:
        problem = draw(rng)
        want, oracle = expected(problem)
    log.count(problem, want, oracle)
    found = difference(problem, want)
    if found:
        log.differences.append(f"seed {seed}: {found}")
        print(log.differences[-1], file=sys.stderr, flush=True)


def draw(rng: Random) -> Problem:
    """The first valid tiny problem of this generator."""
    while True:
        try:
            return load_problem(random_file(rng))
        except InvalidProblem:
            continue


def run(problems: int, seed: int) -> Log:
    """So many problems from this number on."""
    log = Log()
    started = time.perf_counter()
    for index in range(problems):
        one(seed + index, log)
        if (index + 1) % 500 == 0:
            took = time.perf_counter() - started
            print(
                f"{index + 1}: {dict(log.status)}, {len(log.differences)} differences, {took:.0f} s",
                file=sys.stderr,
                flush=True,
            )
    log.seconds = time.perf_counter() - started
    return log


def run_parts(problems: int, seed: int, processes: int) -> Log:
    """The same, dealt out to several processes."""
    if processes <= 1:
        return run(problems, seed)
    cuts = [seed + problems * part // processes for part in range(processes + 1)]
    log = Log()
    with ProcessPoolExecutor(processes) as pool:
        for part in pool.map(run, [b - a for a, b in pairwise(cuts)], cuts[:-1]):
            log.add(part)
    return log


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--problems", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--log", type=Path)
    asked = parser.parse_args()
    log = run_parts(asked.problems, asked.seed, asked.processes)
    json_wanted = asked.log is not None and asked.log.suffix == ".json"
    text = json.dumps(log.to_dict(), indent=1) + "\n" if json_wanted else log.to_markdown()
    if asked.log is None:
        print(text, end="")
    else:
        asked.log.write_text(text)
    return 1 if log.differences else 0


if __name__ == "__main__":
    sys.exit(main())
