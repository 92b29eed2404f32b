"""HiGHS beside CP-SAT: the same optima where it decides alone, no answer where it must not be asked, and no noise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from differential import Answer, planned
from ortools.sat.python import cp_model

from placewright.params import SolveParams
from placewright.search import highs as mip
from placewright.search.highs import Linear, minimise
from placewright_models.codec import load_problem

OPTIMA = [json.loads(line) for line in (Path(__file__).parents[1] / "vectors" / "optima.jsonl").read_text().splitlines()]
ALONE = SolveParams(workers=1, first_work=1e-9, probing_work=0.0, deterministic_work=1e-9, bound_work=1e-9)
"""CP-SAT gets no work at all before HiGHS is asked."""


def covering() -> tuple[cp_model.CpModel, Any, Any]:
    """Minimise 3x + 2y with 5x + 3y >= 16: 10 with x = 2, y = 2, below it the relaxation's 9.6."""
    model = cp_model.CpModel()
    x, y = model.new_int_var(0, 9, "x"), model.new_int_var(0, 9, "y")
    model.add(5 * x + 3 * y >= 16)
    model.minimize(3 * x + 2 * y)
    return model, x, y


def test_optimum_and_bound() -> None:
    found = minimise(covering()[0], None, 10.0)
    assert found is not None and found.values is not None
    assert found.proved and found.bound == 10
    assert 3 * found.values[0] + 2 * found.values[1] == 10 and 5 * found.values[0] + 3 * found.values[1] >= 16


def test_an_offset_counts() -> None:
    model, x, y = covering()
    model.minimize(3 * x + 2 * y + 100)
    found = minimise(model, [9, 9], 10.0)
    assert found is not None and found.proved and found.bound == 110


def test_nothing_possible() -> None:
    model, x, _ = covering()
    model.add(2 * x == 7)
    found = minimise(model, None, 10.0)
    assert found is not None and found.values is None and not found.proved


def not_linear(model: cp_model.CpModel, x: Any, y: Any) -> None:
    model.add_multiplication_equality(model.new_int_var(0, 99, "p"), [x, y])


def under_a_condition(model: cp_model.CpModel, x: Any, y: Any) -> None:
    model.add(x >= 2).only_enforce_if(model.new_bool_var("b"))


def with_a_gap(model: cp_model.CpModel, x: Any, y: Any) -> None:
    model.add(x == model.new_int_var_from_domain(cp_model.Domain.from_values([0, 4]), "gap"))


def too_large(model: cp_model.CpModel, x: Any, y: Any) -> None:
    model.add(1_000_000 * x >= y)


def never(model: cp_model.CpModel, x: Any, y: Any) -> None:
    model.add_bool_or([])


@pytest.mark.parametrize("change", [not_linear, under_a_condition, with_a_gap, too_large, never])
def test_not_asked(change: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mip.subprocess, "run", lambda *_, **__: pytest.fail("HiGHS was asked"))
    model, x, y = covering()
    change(model, x, y)
    assert minimise(model, None, 10.0) is None


@pytest.mark.parametrize("executable", ["", "/no/such/python", "/bin/false", "/bin/true"])
def test_without_it_there_is_no_answer(executable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mip.sys, "executable", executable)
    assert minimise(covering()[0], None, 10.0) is None


def test_a_rounded_point_must_satisfy_every_row() -> None:
    program = Linear([0, 0], [9, 9], [3, 2], 0, [16], [2**62], [0], [0, 1], [5, 3])
    assert program.holds((2, 2)) and program.objective((2, 2)) == 10
    assert not program.holds((2, 1))
    assert not program.holds((10, 2))


@pytest.mark.parametrize("row", range(0, len(OPTIMA), 4))
def test_recorded_optima(row: int, capfd: pytest.CaptureFixture[str]) -> None:
    wanted = OPTIMA[row]["expect"]
    assert planned(load_problem(OPTIMA[row]["problem"]), ALONE) == Answer(wanted["status"], wanted.get("goals", {}))
    assert capfd.readouterr().out == ""


def test_it_is_really_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = mip.subprocess.run

    def run(*arguments: Any, **named: Any) -> Any:
        asked.append(1)
        return real(*arguments, **named)

    monkeypatch.setattr(mip.subprocess, "run", run)
    for row in range(0, len(OPTIMA), 16):
        planned(load_problem(OPTIMA[row]["problem"]), ALONE)
    assert asked


@pytest.mark.parametrize("line", ["{}", "5", "[]", '{"optimal": true, "bound": 1, "values": [1]}', "no data", ""])
def test_a_broken_answer_is_none(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = mip.subprocess.CompletedProcess([], 0, line)
    monkeypatch.setattr(mip.subprocess, "run", lambda *_, **__: ended)
    assert minimise(covering()[0], None, 10.0) is None


@pytest.mark.parametrize("seconds_late", [0.0, 0.3])
def test_an_answer_that_comes_late_counts(seconds_late: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The solution is taken up although the time limit is over; without one nothing is called proved."""
    import time

    from benchmarks.families.uneven import build

    from placewright.pipeline import plan
    from placewright.search import lexicographic

    limit = 5.0
    problem = load_problem({**build(3, 32), "goals": ["nodes_used"]})
    proved = minimise
    started = time.perf_counter()

    def late(model: Any, hint: Any, seconds: float, seed: int = 0) -> Any:
        found = proved(model, hint, 20.0, seed)
        time.sleep(max(0.0, started + limit + seconds_late - time.perf_counter()))
        return found

    monkeypatch.setattr(lexicographic, "minimise", late)
    params = ALONE.with_(first_work=0.02, neighbourhood_work=0.0, time_limit=limit)
    found = plan(problem, params=params)
    assert found.status == "optimal" and all(goal.proved for goal in found.goals)


def test_ctrl_c_while_it_runs(tmp_path: Path) -> None:
    """KeyboardInterrupt reaches the caller, and no process is left, whichever engine was at work."""
    import os
    import signal
    import subprocess
    import sys
    import time

    code = (
        "import sys\n"
        "sys.path[:0] = sys.argv[1:]\n"
        "from benchmarks.families.uneven import build\n"
        # A signal in the middle of an import would be an ImportError.
        "from placewright import explain\n"
        "from placewright.decode import workers\n"
        "from placewright.search import highs, staged\n"
        "from placewright.pipeline import plan\n"
        "from placewright_models.codec import load_problem\n"
        "real = highs.subprocess.run\n"
        "def run(*given, **named):\n"
        "    print('HiGHS', flush=True)\n"
        "    return real(*given, **named)\n"
        "highs.subprocess.run = run\n"
        "problem = load_problem(build(305, 64))\n"
        "print('ready', flush=True)\n"
        "try:\n"
        # Domains one by one, which takes long and needs HiGHS.
        "    plan(problem, time_limit=60, together_ratio=0.0)\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(7)\n"
    )
    for at in ("ready", "HiGHS"):
        command = [sys.executable, "-c", code, *sys.path]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
        assert process.stdout is not None
        for line in process.stdout:
            if line.strip() == at:
                break
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 7, at
        process.stdout.close()
        limit = time.monotonic() + 10
        while time.monotonic() < limit:
            try:
                os.killpg(process.pid, 0)
            except ProcessLookupError:
                break
            time.sleep(0.1)
        else:
            pytest.fail(f"a process is left after Ctrl-C at {at}")
