"""The same problem gives the same plan, byte for byte: again, in another order of nodes and components, with more threads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest
from differential import refusable
from oracle.tiny import random_file

from placewright.params import SolveParams
from placewright.pipeline import plan
from placewright_models.codec import load_problem
from placewright_models.errors import InfeasibleProblem, InvalidProblem

VECTORS = Path(__file__).parents[1] / "vectors" / "optima.jsonl"
OPTIMA = [json.loads(line) for line in VECTORS.read_text().splitlines()]


def bytes_of(data: dict[str, Any], **settings: Any) -> str:
    """The plan as written to a file, its wall time apart; the sentence where there is none."""
    try:
        made = plan(load_problem(data), params=SolveParams(**{"workers": 1, **settings})).to_dict()
    except InfeasibleProblem as error:
        return str(error)
    made.pop("wall_time_s")
    return json.dumps(made)


def shuffled(data: dict[str, Any], rng: Random) -> dict[str, Any]:
    """The same problem with nodes and components in another order."""
    again = json.loads(json.dumps(data))
    rng.shuffle(again["cluster"]["nodes"])
    names = rng.sample(list(again["components"]), len(again["components"]))
    again["components"] = {name: again["components"][name] for name in names}
    return again


def some_problems(count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    seed = 5000
    while len(found) < count:
        seed += 1
        data = random_file(Random(seed))
        try:
            if not refusable(load_problem(data)):
                found.append(data)
        except InvalidProblem:
            continue
    return found


@pytest.mark.parametrize("row", range(0, len(OPTIMA), 3))
def test_recorded_problems_repeat_and_ignore_order(row: int) -> None:
    data = OPTIMA[row]["problem"]
    first = bytes_of(data)
    assert bytes_of(data) == first
    assert bytes_of(shuffled(data, Random(row))) == first


def test_tiny_problems_repeat_and_ignore_order() -> None:
    for seed, data in enumerate(some_problems(40)):
        first = bytes_of(data)
        assert bytes_of(data) == first, seed
        assert bytes_of(shuffled(data, Random(seed))) == first, seed


def test_threads_do_not_change_an_optimal_plan() -> None:
    for data in [row["problem"] for row in OPTIMA[::9]] + some_problems(15):
        assert bytes_of(data, workers=2) == bytes_of(data, workers=1)


def test_parallel_search_is_made_canonical() -> None:
    """No deterministic share at all: every goal is searched by two threads, and the plan still repeats."""
    proved = 0
    for data in [row["problem"] for row in OPTIMA[::11]]:
        first = bytes_of(data, workers=2, deterministic_work=1e-6)
        assert bytes_of(shuffled(data, Random(1)), workers=2, deterministic_work=1e-6) == first
        proved += '"optimal"' in first
    assert proved >= 4


def test_another_process_gives_the_same_plan() -> None:
    """Nothing hangs on the order of sets or on the hash seed of the interpreter."""
    data = next(
        row["problem"] for row in OPTIMA if row["expect"]["status"] == "optimal" and len(row["problem"]["components"]) > 2
    )
    code = (
        "import json, sys\n"
        "from placewright.params import SolveParams\n"
        "from placewright.pipeline import plan\n"
        "from placewright_models.codec import load_problem\n"
        "made = plan(load_problem(json.load(sys.stdin)), params=SolveParams(workers=1)).to_dict()\n"
        "made.pop('wall_time_s')\n"
        "print(json.dumps(made), end='')\n"
    )
    found = {bytes_of(data)}
    for hash_seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps(data),
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": hash_seed, "PYTHONPATH": ":".join(sys.path)},
        )
        found.add(done.stdout)
    assert len(found) == 1
