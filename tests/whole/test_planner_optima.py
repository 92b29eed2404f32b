"""Every recorded optimum, in every encoding: status and all goal values."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from differential import ENCODINGS, Answer, planned

from placewright_models.codec import load_problem

OPTIMA = [json.loads(line) for line in (Path(__file__).parents[1] / "vectors" / "optima.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("row", range(len(OPTIMA)))
def test_recorded_optimum(row: int, encoding: str) -> None:
    wanted = OPTIMA[row]["expect"]
    found = planned(load_problem(OPTIMA[row]["problem"]), ENCODINGS[encoding])
    assert found == Answer(wanted["status"], wanted.get("goals", {}))


def test_there_are_enough_of_them() -> None:
    assert len(OPTIMA) >= 60
    assert {row["expect"]["status"] for row in OPTIMA} == {"optimal", "infeasible"}
