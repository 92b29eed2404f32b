"""What is generated for people is up to date, and the JSON schema takes what the loader takes."""

from __future__ import annotations

import importlib.util
import json
from importlib.resources import files
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from strategies import problems

from placewright_models.errors import Fault
from placewright_models.reading import schema

ROOT = Path(__file__).resolve().parents[2]
SCHEMA: dict[str, Any] = json.loads(files("placewright_models").joinpath("problem.schema.json").read_text(encoding="utf-8"))
CHECKER = jsonschema.Draft7Validator(SCHEMA)


@pytest.fixture(scope="module")
def make_reference() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_reference", ROOT / "docs" / "make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_files_are_up_to_date(make_reference: ModuleType) -> None:
    old = [path.name for path, text in make_reference.made().items() if path.read_text(encoding="utf-8") != text]
    assert not old, "run python docs/make_reference.py"


def test_the_schema_is_one() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.stem)
def test_examples_are_right(path: Path) -> None:
    CHECKER.validate(yaml.safe_load(path.read_text(encoding="utf-8")))


def test_pictures_are_right() -> None:
    for entry in yaml.safe_load((ROOT / "docs" / "pictures.yaml").read_text(encoding="utf-8")).values():
        CHECKER.validate(entry["problem"])


NODES: dict[str, Any] = {"nodes": [{"id": "n0", "gpus": 8}]}


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({"clusters": NODES}, []),
        ({"cluster": {"nodes": [{"gpus": 8}]}}, ["cluster", "nodes", 0]),
        ({"cluster": {"nodes": [{"id": "n0", "gpu": 8}]}}, ["cluster", "nodes", 0]),
        ({"cluster": {"nodes": [{"id": "n0", "gpus": "8"}]}}, ["cluster", "nodes", 0, "gpus"]),
        ({"components": {"train": {"workers": -1}}}, ["components", "train", "workers"]),
        ({"components": {"train": {"wrokers": 4}}}, ["components", "train"]),
        ({"components": {"train": {"workers": {"min": 1}}}}, ["components", "train", "workers"]),
        ({"components": {"train": {"workers": 4, "gpus": 1.5}}}, ["components", "train", "gpus"]),
        ({"components": {"train": {"workers": 4, "group": {"workers": 0}}}}, ["components", "train", "group"]),
        ({"rules": {"strategy": "colocated"}}, ["rules"]),
        ({"rules": {"share_gpus": ["a", "b"]}}, ["rules"]),
        ({"traffic": [{"weight": 1}]}, ["traffic", 0]),
        ({"goals": ["node_spam"]}, ["goals", 0]),
    ],
)
def test_wrong_files_are_marked_where_they_are_wrong(data: dict[str, Any], place: list[str | int]) -> None:
    errors = list(CHECKER.iter_errors(data))
    assert [list(error.absolute_path) for error in errors] == [place]


@given(problems())
@settings(max_examples=100, deadline=None)
def test_whatever_the_loader_takes_is_right(problem: dict[str, Any]) -> None:
    CHECKER.validate(problem)


ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, 2, 5, 4096, 10**7, 10**10, 10**20, -1, -0.5, 0.5, 0.00001, 0.0001, 1.5),
    *("", "x", "8", "auto", "64GiB", "1.5 gib", "64GB", "required", "even", "colocate", "replicas"),
    *([], [1], [1, 1], [1, 2], ["a"], ["a", "a"], ["a", 1], [[]], [["a", "b"]], [None], [0.5]),
    *({}, {"a": "b"}, {"a": 1}, {"a": None}, {"a": 0.5}, {"min": 1, "max": 2}, {"min": 1}, {"workers": 2}, {"mode": "x"}),
)


def field_cases() -> list[tuple[type[schema.Entry], str]]:
    models = (schema.NodeEntry, schema.ComponentEntry, schema.RulesEntry, schema.TrafficEntry, schema.OccupationEntry)
    return [(model, field) for model in (*models, schema.GroupEntry) for field in model.model_fields]


@pytest.mark.parametrize(("model", "field"), field_cases(), ids=lambda case: getattr(case, "__name__", case))
def test_the_schema_takes_what_the_loader_takes(model: type[schema.Entry], field: str) -> None:
    checker = jsonschema.Draft7Validator(
        {**SCHEMA["$defs"][model.__name__], "required": [], "$defs": SCHEMA["$defs"]},
    )
    for value in ODD_VALUES:
        faults: list[Fault] = []
        schema.validate_part(model, {field: value}, "here", faults)
        assert checker.is_valid({field: value}) == (not faults), (value, faults)
