"""HiGHS beside CP-SAT: the same optima where it decides alone, no answer where it must not be asked, and no noise."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from differential import Answer, planned
from ortools.sat.python import cp_model

from placewright import mip
from placewright.mip import Linear, minimise
from placewright.params import SolveParams
from placewright_models.codec import load_problem

OPTIMA = [json.loads(line) for line in (Path(__file__).parent / "vectors" / "optima.jsonl").read_text().splitlines()]
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
