"""How long the package and its command line take to start, as processes, beside what cannot be avoided.

``startup`` alternates the commands, so that a busy machine hurts all of them, and reports the median and the spread of each.
Modify this file when another command's start matters.
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
        "seconds": {
            name: {"median": round(median[name], 4), "least": round(min(values), 4), "most": round(max(values), 4)}
            for name, values in seconds.items()
        },
        "import placewright / pydantic": round(median["import placewright"] / median["import pydantic.BaseModel"], 2),
        "placewright plan / cp_model": round(
            median["placewright plan (8 nodes)"] / median["import cp_model and a trivial solve"], 2
        ),
        "unwanted modules loaded": loaded.stdout.split(),
        "failed": failed,
    }
