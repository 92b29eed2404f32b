"""The commands import, check and export for RLightning, verl and NeMo-RL, through their real entry point.

The command lines are those of docs/rlightning.md, docs/verl.md and docs/nemo-rl.md; the configurations are in the tests of
each framework. Modify this file when these commands get another option.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "placewright", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, cwd=folder, env={**os.environ, "COLUMNS": "100"}
    )


def blocks(page: str) -> list[tuple[str, str]]:
    """Files (name, content) that a page shows: a fenced block whose first line is a comment with a file name."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.findall(r"```yaml\n# (\S+\.yaml)\n(.*?)```", text, re.DOTALL)


def commands(page: str) -> list[tuple[str, int]]:
    """Command lines of a page, and the exit codes that it names behind them."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    found = re.findall(r"^placewright (.*?)(?: +# ends (\d))?$", text, re.MULTILINE)
    return [(line.split("  #")[0].strip(), int(code or 0)) for line, code in found]


@pytest.mark.parametrize("page", ["rlightning.md", "verl.md", "nemo-rl.md"])
def test_the_pages_command_lines(page: str, tmp_path: Path) -> None:
    for name, content in blocks(page):
        (tmp_path / name).write_text(content)
    lines = commands(page)
    assert len(lines) >= 4
    for line, code in lines:
        done = run(tmp_path, *shlex.split(line))
        assert done.returncode == code, f"{line}: {done.stdout}{done.stderr}"
        assert "Traceback" not in done.stderr


def test_check_as_json(tmp_path: Path) -> None:
    config = tmp_path / "verl.yaml"
    config.write_text("trainer: {nnodes: 2, n_gpus_per_node: 3}\nalgorithm: {adv_estimator: grpo}\n")
    cluster = tmp_path / "cluster.yaml"
    cluster.write_text(yaml.safe_dump({"cluster": {"nodes": [{"id": "a", "gpus": 4}, {"id": "b", "gpus": 2}]}}))
    overrides = ["actor_rollout_ref.rollout.tensor_model_parallel_size=1"]
    done = run(tmp_path, "check", "--from", "verl", str(config), "--cluster", str(cluster), "--format", "json", *overrides)
    assert done.returncode == 3
    assert json.loads(done.stdout)["verdict"] == "hangs"
    assert done.stderr == ""


def test_import_says_what_it_assumed(tmp_path: Path) -> None:
    (tmp_path / "rl.yaml").write_text("cluster: {eval_worker_num: 2}\n")
    done = run(tmp_path, "import", "--from", "rlightning", "rl.yaml", "--nodes", "1", "--gpus-per-node", "8")
    assert done.returncode == 0, done.stderr
    assert "note: train_worker_num is not in the configuration: 1 worker taken" in done.stderr
    assert "eval_worker_num" not in done.stderr


def test_import_to_stdout(tmp_path: Path) -> None:
    (tmp_path / "nemo.yaml").write_text("policy: {generation: {backend: vllm}}\ncluster: {num_nodes: 2, gpus_per_node: 8}\n")
    done = run(
        tmp_path, "import", "--from", "nemo-rl", "nemo.yaml", "--nodes", "2", "--gpus-per-node", "8", "--cpus-per-node", "32"
    )
    assert done.returncode == 0
    assert yaml.safe_load(done.stdout)["components"]["policy"]["workers"] == 16


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["check", "--from", "ray", "x.yaml", "--nodes", "1", "--gpus-per-node", "1"],
            "write one of rlightning, verl, nemo-rl",
        ),
        (["check", "--from", "verl", "x.yaml", "--nodes", "1", "--gpus-per-node", "1"], "there is no such file"),
        (["check", "--from", "verl", "c.yaml"], "say what hardware there is"),
        (["check", "--from", "verl", "c.yaml", "--nodes", "1"], "say what hardware there is"),
        (["check", "--from", "verl", "c.yaml", "--nodes", "1", "--gpus-per-node", "1", "nnodes"], "no override"),
        (["import", "--from", "verl", "c.yaml", "--cluster", "c.yaml", "--nodes", "1"], "not both"),
        (["import", "--from", "nemo-rl", "c.yaml", "--nodes", "1", "--gpus-per-node", "1"], "no configuration of nemo-rl"),
    ],
)
def test_wrong_usage_ends_2(arguments: list[str], words: str, tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("trainer: {nnodes: 1, n_gpus_per_node: 1}\n")
    done = run(tmp_path, *arguments)
    assert done.returncode == 2
    assert words in done.stderr


@pytest.mark.parametrize("command", ["check", "import"])
@pytest.mark.parametrize("framework", ["rlightning", "verl", "nemo-rl"])
def test_a_file_of_something_else_is_refused(framework: str, command: str, tmp_path: Path) -> None:
    """Every setting of rlightning and verl has a default, so any mapping could pass for their configuration."""
    config = tmp_path / "pod.yaml"
    config.write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\n")
    line = (command, "--from", framework, "pod.yaml", "--nodes", "2", "--gpus-per-node", "8")
    done = run(tmp_path, *line)
    assert done.returncode == 2 and not done.stdout
    assert f"pod.yaml: this is no configuration of {framework}" in done.stderr
    config.write_text("{}\n")
    assert "no configuration of" not in run(tmp_path, *line).stderr
