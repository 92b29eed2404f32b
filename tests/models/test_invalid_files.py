"""Files that are no problem at all: missing, huge, hostile, not text, not YAML.

When to modify: with reading.py.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from placewright_models.codec import load_problem
from placewright_models.errors import InvalidProblem


def written(tmp_path: Path, content: str | bytes, name: str = "p.yaml") -> Path:
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 30)
)
MERGE_BOMB = "a0: &a0 {x: 1}\n" + "".join(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}\n" for i in range(1, 30))
FILE_FAULTS: list[tuple[str, str | bytes, str]] = [
    ("p.yaml", "", "the file is empty"),
    ("p.yaml", "   \n\n", "the file is empty"),
    ("p.yaml", "# only a comment\n", "the file holds nothing"),
    ("p.yaml", "null\n", "holds nothing, not a mapping"),
    ("p.yaml", "- a\n", "a list, not a mapping"),
    ("p.yaml", "just text\n", "text, not a mapping"),
    ("p.yaml", b"\x89PNG\r\n\x1a\n\x00\x00\xff", "not UTF-8 text"),
    ("p.yaml", "cluster: é".encode("latin-1"), "not UTF-8 text"),
    ("p.yaml", "a: \x00\n", "not YAML"),
    ("p.yaml", "a: [1, 2\n", "not YAML: line 2"),
    ("p.yaml", "a: 1\n  b: 2\n", "not YAML: line 2"),
    ("p.yaml", "a: 1\n---\nb: 2\n", "not YAML"),
    ("p.yaml", "a: 1\na: 2\n", "line 2, column 1: the key 'a' stands twice"),
    ("p.yaml", "a: {b: 1, b: 2}\n", "the key 'b' stands twice"),
    ("p.yaml", "a: !!python/object/apply:os.system [ls]\n", "not YAML"),
    ("p.yaml", "a: &a [*a]\n", "an alias refers to what contains it"),
    ("p.yaml", BOMB, "aliases expand"),
    ("p.yaml", MERGE_BOMB, "aliases expand"),
    ("p.yaml", "[" * 5000, "not YAML|nested"),
    ("p.yaml", "a: " + "[" * 200 + "]" * 200, "nested more than"),
    ("p.yaml", "a: " + "9" * 5000, "not YAML"),
    ("p.yaml", "a: 2024-13-45\n", "not YAML"),
    ("p.yaml", "a: !!int x\n", "not YAML"),
    ("p.yaml", "a: !!int ''\n", "not YAML"),
    ("p.yaml", "a: !!bool x\n", "not YAML"),
    ("p.yaml", "a: !!timestamp x\n", "not YAML"),
    ("p.yaml", "id: 007\n", "YAML reads 007 as another number .*quotes"),
    ("p.yaml", "id: 0x1F\n", "YAML reads 0x1F as another number"),
    ("p.yaml", '{"a": 1, "a": 2}', "the key 'a' stands twice"),
    ("p.yaml", "id: 1:30\n", "YAML reads 1:30 as another number"),
    ("p.yaml", "? {a: 1}\n: 2\n", "not YAML"),
    ("p.json", "{", "not JSON: line 1"),
    ("p.json", "[1]", "a list, not a mapping"),
    ("p.json", '{"a": 1, "a": 2}', "the key 'a' stands twice"),
    ("p.json", "[" * 100_000, "nested too deeply"),
    ("p.json", '{"a": ' + "9" * 5000 + "}", "not JSON"),
]


@pytest.mark.parametrize(("name", "content", "text"), FILE_FAULTS, ids=range(len(FILE_FAULTS)))
def test_a_file_that_cannot_be_read(tmp_path: Path, name: str, content: str | bytes, text: str) -> None:
    path = written(tmp_path, content, name)
    began = time.process_time()
    with pytest.raises(InvalidProblem, match=text) as caught:
        load_problem(path)
    assert caught.value.source == str(path)
    assert time.process_time() - began < 5


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path, text in ((tmp_path / "none.yaml", "no such file"), (tmp_path, "is a directory"), ("a\0b", "not a path")):
        with pytest.raises(InvalidProblem, match=text):
            load_problem(path)
    with pytest.raises(InvalidProblem, match="no such file"):
        load_problem("cluster: {nodes: []}\n")


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "huge.yaml"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    began = time.process_time()
    with pytest.raises(InvalidProblem, match="104,857,600 bytes"):
        load_problem(path)
    assert time.process_time() - began < 0.5


def test_an_endless_file_is_refused() -> None:
    with pytest.raises(InvalidProblem, match="more than 67,108,864 bytes"):
        load_problem("/dev/zero")


def test_a_file_of_too_many_values_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a: [" + "1," * 6_000_000 + "]")
    began = time.process_time()
    with pytest.raises(InvalidProblem, match="too many values"):
        load_problem(path)
    assert time.process_time() - began < 5


def test_aliases_and_merge_keys_of_ordinary_size_are_fine(tmp_path: Path) -> None:
    text = """
base: &base {gpus: 8, cpus: 64}
"""
    path = written(tmp_path, text + "cluster: {nodes: [{<<: *base, id: n0}, {<<: *base, id: n1, gpus: 4}]}\n")
    with pytest.raises(InvalidProblem, match="base: unknown key"):
        load_problem(path)
    path = written(tmp_path, "cluster: {nodes: [&n {id: n0, gpus: 8}, {<<: *n, id: n1, gpus: 4}]}\n")
    assert [node.gpus for node in load_problem(path).cluster.nodes] == [8, 4]


def test_the_source_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, "cluster: {nodes: [{id: n0, gpu: 8}]}\n")
    with pytest.raises(InvalidProblem, match=r"p\.yaml: invalid problem\n  cluster\.nodes\[0\]\.gpu: unknown key"):
        load_problem(path)


@pytest.mark.parametrize("source", [5, None, [1], b"bytes"])
def test_a_source_of_another_type(source: Any) -> None:
    with pytest.raises(InvalidProblem, match="neither a path nor a mapping"):
        load_problem(source)


def test_json_numbers_that_are_none(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps({"cluster": {"nodes": [{"id": "n", "cpus": float("nan")}]}}), "p.json")
    with pytest.raises(InvalidProblem, match="nan is not a number"):
        load_problem(path)
