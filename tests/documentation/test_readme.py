"""The README's snippets run, and show what they say they show."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import placewright

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def block(name: str) -> str:
    spec = importlib.util.spec_from_file_location("readme_block", ROOT / ".ci" / "readme_block.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text: str = module.block(name)
    return text


def without_time(text: str) -> str:
    return re.sub(r"\d+\.\d\d s\)", "s)", text).strip()


def test_every_fenced_block_is_marked_and_so_tested() -> None:
    names = re.findall(r"<!-- ([\w-]+) -->\s*```", README)
    assert len(names) == README.count("```") // 2
    assert set(names) == {"first-command", "first-output", "second-command", "problem", "python", "ray"}


def test_ci_runs_the_commands_shown() -> None:
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for name in ("first-command", "second-command"):
        assert f"readme {name} " in run
        assert block(name).startswith("python3 -m venv .venv && .venv/bin/pip install ")
    assert "-m pytest" in block("second-command")


def test_the_first_command_prints_what_is_shown() -> None:
    arguments = block("first-command").strip().partition(".venv/bin/placewright ")[2].split()
    done = subprocess.run(
        [sys.executable, "-m", "placewright", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert without_time(done.stdout) == without_time(block("first-output"))


def test_the_problem_is_planned() -> None:
    plan = placewright.plan(placewright.load_problem(yaml.safe_load(block("problem"))))
    assert plan.status == "optimal"
    assert plan.goal("traffic").value == 0


def test_the_python_snippet_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    exec(compile(block("python"), "README.md", "exec"), {})
    assert "a01" in capsys.readouterr().out


@pytest.mark.ray
def test_the_ray_snippet_runs() -> None:
    pytest.importorskip("ray.util")  # not plain "ray": the folder tests/on_ray would do for that
    done = subprocess.run([sys.executable, "-c", block("ray")], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "node-a" in done.stdout


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / target).exists(), target


def test_every_example_is_listed() -> None:
    for path in (ROOT / "examples").glob("*.yaml"):
        assert f"(examples/{path.name})" in README, path.name


def test_every_command_shown_exists() -> None:
    from placewright.cli.app import COMMANDS

    names = {name for name, _ in COMMANDS}
    for shown in re.findall(r"^    placewright (\w+)", README, re.MULTILINE):
        assert shown in names


def test_the_headline_tables_are_those_of_the_stored_run(tmp_path: Path) -> None:
    from benchmarks.headline import fill
    from benchmarks.registry import chosen
    from benchmarks.runs import append, run_one

    stored = re.search(r"\]\((benchmarks/results/[^)]+)/report\.md\)", README)
    copy = tmp_path / "README.md"
    copy.write_text(README, encoding="utf-8")
    if stored is not None:
        fill(ROOT / stored[1], copy)
        assert copy.read_text(encoding="utf-8") == README
        return
    folder = tmp_path / "tiny"
    folder.mkdir()
    instance = chosen(["tiny"])[0]
    append(folder, [run_one(instance, solver) for solver in ("placewright", "first-fit")])
    fill(folder, copy)
    text = copy.read_text(encoding="utf-8")
    assert re.search(r"\| placewright \| 1 of 1 \| 1 \| 1 \|", text)
    assert text.endswith(README.partition("<!-- /benchmarks -->")[2])
