"""What is too short to be measured once: the start of the package and its command line, and how planning time grows.

Each is a process of its own. Commands alternate, so that a busy machine hurts all of them; the median and the spread of each
are reported. Modify this file when another command's start matters.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
UNWANTED = ("ray", "ortools", "matplotlib", "pandas", "networkx")
EIGHT_NODES = """\
cluster:
  nodes:
    - {id: "node-{}", count: 8, gpus: 8, cpus: 128, nvlink_domain: "rack{}", nodes_per_domain: 4}
components:
  train: {workers: 32, gpus: 1}
  rollout: {workers: 6, gpus: 4}
  env: {workers: 8, gpus: 0.5}
"""
TRIVIAL = (
    "from ortools.sat.python import cp_model as c; m = c.CpModel(); x = m.new_int_var(0, 9, 'x'); "
    "m.maximize(x); s = c.CpSolver(); s.parameters.num_workers = 1; s.solve(m)"
)

WHOLE = (
    "import sys, time; from benchmarks.registry import instances; from placewright.pipeline import plan; "
    "warm, problem = (next(i for i in instances() if i.name == name).problem() for name in ('equal-128', sys.argv[1])); "
    "plan(warm); began = time.perf_counter(); plan(problem); print(time.perf_counter() - began)"
)
"""A small problem first, so that no import is measured."""


def growth(large: str = "A", small: str = "A-tenth", repeat: int = 7) -> dict[str, Any]:
    """Seconds from problem object to verified plan of an instance and one with a tenth of its domains, and their ratios."""
    found: dict[str, list[float]] = {large: [], small: []}
    for _ in range(repeat):
        for name, values in found.items():
            line = [sys.executable, "-c", WHOLE, name]
            ended = subprocess.run(line, capture_output=True, text=True, check=True, cwd=ROOT, timeout=120)
            values.append(float(ended.stdout))
    return {
        "repeat": repeat,
        "whole": {name: _spread(values) for name, values in found.items()},
        # Other work on the machine only ever adds.
        "ratio of least": round(min(found[large]) / min(found[small]), 1),
        "ratio of medians": round(statistics.median(found[large]) / statistics.median(found[small]), 1),
    }


def _spread(values: list[float]) -> dict[str, float]:
    return {"median": round(statistics.median(values), 4), "least": round(min(values), 4), "most": round(max(values), 4)}


def startup(repeat: int = 7) -> dict[str, Any]:
    """Seconds of each process, and the two ratios that have a target."""
    python = sys.executable
    with tempfile.TemporaryDirectory() as folder:
        problem = Path(folder) / "eight.yaml"
        problem.write_text(EIGHT_NODES)
        command = Path(python).with_name("placewright")
        tool = [str(command)] if command.exists() else [python, "-c", "import placewright.cli as c; c.main()"]
        commands = {
            "python": [python, "-c", "pass"],
            "import pydantic.BaseModel": [python, "-c", "from pydantic import BaseModel"],
            "import placewright": [python, "-c", "import placewright"],
            "import cp_model and a trivial solve": [python, "-c", TRIVIAL],
            "placewright plan (8 nodes)": [*tool, "plan", str(problem), "--format", "json"],
        }
        seconds: dict[str, list[float]] = {name: [] for name in commands}
        failed: dict[str, str] = {}
        for _ in range(repeat):
            for name, line in commands.items():
                began = time.perf_counter()
                ended = subprocess.run(line, capture_output=True, text=True, check=False, cwd=folder, timeout=120)
                seconds[name].append(time.perf_counter() - began)
                if ended.returncode:
                    failed[name] = ended.stderr[-300:]
    loaded = subprocess.run(
        [python, "-c", f"import placewright, sys; print(*[n for n in {UNWANTED!r} if n in sys.modules])"],
        capture_output=True,
        text=True,
        check=True,
    )
    median = {name: statistics.median(values) for name, values in seconds.items()}
    return {
        "repeat": repeat,
        "seconds": {name: _spread(values) for name, values in seconds.items()},
        "import placewright / pydantic": round(median["import placewright"] / median["import pydantic.BaseModel"], 2),
        "placewright plan / cp_model": round(
            median["placewright plan (8 nodes)"] / median["import cp_model and a trivial solve"], 2
        ),
        "unwanted modules loaded": loaded.stdout.split(),
        "failed": failed,
        "growth": growth(repeat=repeat),
    }
