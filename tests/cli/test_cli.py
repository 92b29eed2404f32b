"""The command line through its real entry point: exit codes, what goes where, files written whole or not at all."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import placewright
from placewright.cli import output as cli_output
from placewright.cli.app import COMMANDS
from placewright.cli.base import CommandFailed
from placewright_models.errors import InvalidProblem

ROOT = Path(__file__).resolve().parents[2]
SMALL: dict[str, Any] = {
    "cluster": {"nodes": [{"id": "n{}", "count": 2, "gpus": 4, "cpus": 16, "nvlink_domain": "d{}", "nodes_per_domain": 1}]},
    "components": {"train": {"workers": 4, "gpus": 1}, "rollout": {"workers": 1, "gpus": 2}},
}
# Full to the last GPU, so first-fit fails; nodes that differ, so CP-SAT needs more than a moment.
TIGHT: dict[str, Any] = {
    "cluster": {"nodes": [{"id": f"n{i}", "gpus": 10, "cpus": 100 + i} for i in range(40)]},
    "components": {
        "a": {"workers": 20, "gpus": 5},
        "b": {"workers": 40, "gpus": 4},
        "c": {"workers": 20, "gpus": 3},
        "d": {"workers": 40, "gpus": 2},
    },
}


def run(*arguments: str | Path, env: dict[str, str] | None = None, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "placewright", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "COLUMNS": "100", **(env or {})},
        **options,
    )


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    return write(tmp_path / "problem.yaml", SMALL)


@pytest.fixture(scope="module")
def plan_text() -> str:
    return placewright.export(placewright.plan(placewright.load_problem(SMALL)), "json")


@pytest.fixture
def plan_file(tmp_path: Path, plan_text: str) -> Path:
    path = tmp_path / "plan.json"
    path.write_text(plan_text)
    return path


def write(path: Path, data: Any) -> Path:
    path.write_text(data if isinstance(data, str) else yaml.safe_dump(data, sort_keys=False))
    return path


def infeasible() -> dict[str, Any]:
    return {**SMALL, "components": {"train": {"workers": 9, "gpus": 1}}}


def no_trace(text: str) -> bool:
    return "Traceback" not in text and ".py" not in text


# plan


def test_plan_prints_a_table(problem: Path) -> None:
    done = run("plan", problem)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("optimal plan")
    assert "train" in done.stdout
    assert "\x1b" not in done.stdout


def test_stdout_carries_the_data_alone(problem: Path) -> None:
    done = run("plan", problem, "--format", "json", "--verbose", "--log", "--workers", "1", "--seed", "3")
    assert done.returncode == 0
    assert json.loads(done.stdout)["status"] == "optimal"
    assert "goal" in done.stderr


def test_the_installed_script_is_the_same_program(problem: Path) -> None:
    script = Path(sys.executable).with_name("placewright")
    if not script.exists():
        pytest.skip("the package is not installed in this environment")
    done = subprocess.run([script, "plan", problem], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0
    assert done.stdout.startswith("optimal plan")


@pytest.mark.parametrize(("name", "load"), [("plan.json", json.loads), ("plan.yaml", yaml.safe_load)])
def test_the_files_ending_chooses_the_format(name: str, load: Callable[[str], Any], problem: Path, tmp_path: Path) -> None:
    done = run("plan", problem, "-o", tmp_path / name)
    assert done.returncode == 0
    assert done.stdout == ""
    assert "optimal plan" in done.stderr
    assert load((tmp_path / name).read_text())["format"] == "placewright/plan/1"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, "problem.yaml"])


def test_quiet_says_nothing(problem: Path, tmp_path: Path) -> None:
    done = run("plan", problem, "-q", "-o", tmp_path / "plan.json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_two_runs_give_the_same_bytes(problem: Path) -> None:
    texts = []
    for _ in range(2):
        data = json.loads(run("plan", problem, "-f", "json").stdout)
        del data["wall_time_s"]
        texts.append(json.dumps(data))
    assert texts[0] == texts[1]


def test_cluster_overlay_exclude_and_occupied(tmp_path: Path) -> None:
    job = write(tmp_path / "job.yaml", {"components": {"train": {"workers": 2, "gpus": 1}}})
    cluster = write(tmp_path / "cluster.yaml", {"nodes": [{"id": "n{}", "count": 4, "gpus": 2}]})
    overlay = write(tmp_path / "health.yaml", {"nodes": {"n0": {"excluded": "ECC errors"}}})
    first = tmp_path / "first.json"
    assert run("plan", job, "--cluster", cluster, "-o", first, "--overlay", overlay).returncode == 0
    assert {worker[0] for worker in json.loads(first.read_text())["workers"]["train"]} == {"n1"}
    done = run("plan", job, "--cluster", cluster, "--overlay", overlay, "--occupied", first, "--exclude", "n2", "-f", "json")
    assert done.returncode == 0, done.stderr
    assert {worker[0] for worker in json.loads(done.stdout)["workers"]["train"]} == {"n3"}
    done = run("plan", job, "--cluster", cluster, "--occupied", first)
    assert "idle: 4 GPUs, 2 empty nodes" in done.stdout, "a node that the other plan fills is not empty"
    assert re.search(r"n1 +none +hosts first", done.stdout)
    done = run("explain", job, "--cluster", cluster, "--exclude", "n0,n1,n2,n3")
    assert done.returncode == 3
    assert "without the excluded n0, n1, n2, n3" in done.stdout


def test_greedy_on_request(problem: Path) -> None:
    done = run("plan", problem, "--solver", "greedy", "-f", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "greedy"


# Exit codes


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("cluster: [", "YAML"),
        ("- a\n- b\n", "mapping"),
        ("cluster: {nodes: []}\ncomponent: {}\n", "components"),
        ("cluster: {nodes: [{id: n0, gpu: 8}]}\ncomponents: {train: {workers: 1}}\n", "gpus"),
    ],
)
def test_invalid_files_end_2(text: str, says: str, tmp_path: Path) -> None:
    done = run("plan", write(tmp_path / "problem.yaml", text))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("Error: ")
    assert says in done.stderr
    assert no_trace(done.stderr)


def test_binary_and_absent_files_end_2(tmp_path: Path) -> None:
    (tmp_path / "problem.yaml").write_bytes(bytes(range(256)))
    assert run("plan", tmp_path / "problem.yaml").returncode == 2
    done = run("plan", tmp_path / "absent.yaml")
    assert done.returncode == 2
    assert "there is no such file" in done.stderr
    assert run("plan", tmp_path).returncode == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan"],
        ["nonsense"],
        ["plan", "problem.yaml", "--nonsense"],
        ["plan", "problem.yaml", "--time-limit", "0"],
        ["plan", "problem.yaml", "--time-limit", "nan"],
        ["plan", "problem.yaml", "--workers", "0"],
        ["plan", "problem.yaml", "--solver", "magic"],
        ["plan", "problem.yaml", "--format", "xml"],
        ["plan", "problem.yaml", "--exclude", "n7"],
        ["plan", "problem.yaml", "--address", "10.0.0.1:6379"],
        ["explain", "problem.yaml", "--format", "yaml"],
        ["verify", "problem.yaml"],
        ["verify", "plan.json", "--cluster", "problem.yaml"],
        ["apply", "plan.json", "--layout", "rack"],
        ["apply", "plan.json", "--simulate", "--detach", "x"],
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_2(arguments: list[str], problem: Path, plan_file: Path) -> None:
    done = run(*arguments, cwd=problem.parent)
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert "Error: " in done.stderr
    assert no_trace(done.stderr.replace("problem.yaml", ""))


def test_infeasible_ends_3_and_says_why(tmp_path: Path) -> None:
    path = write(tmp_path / "problem.yaml", infeasible())
    done = run("plan", path)
    assert done.returncode == 3
    assert done.stdout == ""
    assert done.stderr.startswith("Error: no placement exists")
    assert "train" in done.stderr
    assert no_trace(done.stderr)


def test_time_limit_with_nothing_found_ends_4(tmp_path: Path) -> None:
    # Without node_span among the goals nothing says that nodes are full.
    done = run("plan", write(tmp_path / "problem.yaml", {**TIGHT, "goals": ["nodes_used"]}), "--time-limit", "0.001")
    assert done.returncode == 4, done.stderr
    assert done.stdout == ""
    assert "Give more time" in done.stderr


def test_a_wrong_plan_ends_1_with_each_difference(plan_file: Path) -> None:
    data = json.loads(plan_file.read_text())
    data["workers"]["train"][0][1] = [[1, 1]]
    data["goals"][0]["value"] = data["goals"][0]["bound"] = 5
    plan_file.write_text(json.dumps(data))
    done = run("verify", plan_file)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n  ") >= 2
    assert "the plan says 5" in done.stderr
    assert no_trace(done.stderr)


def test_interrupt_ends_130(tmp_path: Path) -> None:
    # A pipe that nobody writes to: the command waits in reading it.
    pipe = tmp_path / "problem.yaml"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [sys.executable, "-m", "placewright", "plan", str(pipe)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    # Opening the other end succeeds once the command is there.
    for _ in range(1200):
        try:
            held = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError:
            time.sleep(0.05)
    else:
        process.kill()
        pytest.fail("the command never opened its file")
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    os.close(held)
    assert process.returncode == 130, err
    assert out == ""
    assert err == "Error: interrupted\n"


def test_verbose_shows_where_an_error_arose(tmp_path: Path) -> None:
    done = run("plan", tmp_path / "absent.yaml", "--verbose")
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "there is no such file" in done.stderr


# Output files


def test_an_absent_directory_is_noticed_before_the_work(problem: Path, tmp_path: Path) -> None:
    done = run("plan", problem, "-o", tmp_path / "absent" / "plan.json")
    assert done.returncode == 2
    assert "there is no such directory" in done.stderr
    assert run("plan", problem, "-o", tmp_path).returncode == 2


def test_an_unwritable_directory_is_told(problem: Path, tmp_path: Path) -> None:
    folder: Path = tmp_path / "locked"
    folder.mkdir()
    folder.chmod(0o555)
    if os.access(folder, os.W_OK):
        # The super-user writes everywhere but here.
        folder = Path("/proc")
        if not folder.is_dir():
            pytest.skip("no directory that refuses the super-user")
    done = run("plan", problem, "-o", folder / "plan.json")
    assert done.returncode in (1, 2)
    assert "written" in done.stderr
    assert done.stdout == ""
    assert no_trace(done.stderr)


def test_an_existing_file_is_kept_when_anything_fails(tmp_path: Path, plan_file: Path) -> None:
    kept = write(tmp_path / "kept.yaml", "precious\n")
    bad = write(tmp_path / "problem.yaml", infeasible())
    assert run("plan", bad, "-o", kept).returncode == 3
    data = json.loads(plan_file.read_text().replace('"train"', '"num_gpus"'))
    refused = run("export", write(tmp_path / "odd.json", json.dumps(data)), "-f", "rlightning", "-o", kept)
    assert refused.returncode == 1
    assert "num_gpus" in refused.stderr
    assert kept.read_text() == "precious\n"
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_failing_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = write(tmp_path / "kept.json", "precious")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CommandFailed, match="No space left on device"):
        cli_output.write_whole(kept, "new")
    assert kept.read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir()] == ["kept.json"]


def test_a_written_file_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    real = write(tmp_path / "real.json", "old")
    real.chmod(0o640)
    link = tmp_path / "link.json"
    link.symlink_to(real)
    cli_output.write_whole(link, "new")
    assert link.is_symlink()
    assert real.read_text() == "new"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    fresh = tmp_path / "fresh.json"
    cli_output.write_whole(fresh, "x")
    plain = write(tmp_path / "plain.json", "x")
    assert fresh.stat().st_mode == plain.stat().st_mode


def test_devices_are_written_to_and_not_replaced(problem: Path) -> None:
    done = run("plan", problem, "-o", os.devnull, "-f", "json")
    assert done.returncode == 0, done.stderr
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_broken_pipe_is_no_error(plan_file: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    process = subprocess.run(
        [sys.executable, "-m", "placewright", "export", str(plan_file), "-f", "json"],
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    os.close(write_end)
    assert process.returncode == 0
    assert process.stderr == ""


# Pictures


def test_a_picture_is_drawn_beside_the_plan(problem: Path, tmp_path: Path) -> None:
    done = run("plan", problem, "--map", tmp_path / "map.html", "-f", "json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["status"] == "optimal"
    assert "<html" in (tmp_path / "map.html").read_text(encoding="utf-8")


def test_export_draws_and_prints_nothing_else(plan_file: Path, tmp_path: Path) -> None:
    done = run("export", plan_file, "--map", tmp_path / "map.html")
    assert (done.returncode, done.stdout) == (0, "")
    assert "map.html: drawn" in done.stderr


def test_a_wrong_kind_of_picture_is_refused_before_the_work(problem: Path, tmp_path: Path) -> None:
    done = run("plan", problem, "--map", tmp_path / "map.pdf")
    assert done.returncode == 2
    assert ".html" in done.stderr
    assert run("plan", problem, "--map", tmp_path / "absent" / "map.html").returncode == 2


# verify, explain, export


def test_verify_accepts_and_says_so(plan_file: Path, problem: Path, tmp_path: Path) -> None:
    done = run("verify", plan_file)
    assert (done.returncode, done.stderr) == (0, "")
    assert "is right" in done.stdout
    assert run("verify", plan_file, "--problem", problem, "--quiet").stdout == ""
    other = {**SMALL, "components": {**SMALL["components"], "rollout": {"workers": 2, "gpus": 2}}}
    against = run("verify", plan_file, "--problem", write(tmp_path / "other.yaml", other))
    assert against.returncode == 1
    assert "rollout" in against.stderr


def test_explain_text_and_json(problem: Path, tmp_path: Path) -> None:
    done = run("explain", problem)
    assert (done.returncode, done.stdout) == (0, "a plan exists\n")
    bad = write(tmp_path / "bad.yaml", infeasible())
    done = run("explain", bad)
    assert done.returncode == 3
    assert done.stdout.startswith("no placement exists")
    assert "components.train.workers" in done.stdout
    assert done.stderr == ""
    done = run("explain", bad, "-f", "json")
    assert done.returncode == 3
    data = json.loads(done.stdout)
    assert data["feasible"] is False
    assert data["reasons"][0]["most_workers"] == 8
    assert json.loads(run("explain", problem, "-f", "json").stdout) == {"feasible": True, "reasons": []}


def test_explain_refuses_invalid_input(tmp_path: Path) -> None:
    assert run("explain", write(tmp_path / "problem.yaml", "components: 3\n")).returncode == 2


@pytest.mark.parametrize("name", ["text", "json", "yaml", "rlightning"])
def test_export_equals_plan_in_that_format(name: str, plan_file: Path) -> None:
    done = run("export", plan_file, "--format", name)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == placewright.export(placewright.load_plan(plan_file), name)


# Help and terminals


@pytest.mark.parametrize("name", [name for name, _ in COMMANDS])
def test_every_command_has_help_with_an_example(name: str) -> None:
    done = run(name, "--help")
    assert done.returncode == 0
    assert f"placewright {name} " in done.stdout
    assert "Usage: placewright" in done.stdout


def test_help_and_version() -> None:
    done = run("--help")
    assert done.returncode == 0
    for name, _ in COMMANDS:
        assert f"  {name} " in done.stdout
    assert run("--version").stdout == f"placewright {placewright.__version__}\n"


def test_starting_loads_nothing_heavy() -> None:
    code = (
        "import sys; from placewright.cli.app import app; "
        "print([m for m in ('ortools', 'ray', 'pandas', 'numpy', 'networkx', 'matplotlib', 'yaml') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def in_terminal(arguments: list[str | Path], env: dict[str, str] | None = None) -> tuple[int, str]:
    """Run with stdout and stderr on a pseudo-terminal of 70 columns."""
    import fcntl
    import pty
    import struct
    import termios

    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 70, 0, 0))
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "COLUMNS", "CI", "FORCE_COLOR")}
    process = subprocess.Popen(
        [sys.executable, "-m", "placewright", *map(str, arguments)],
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env={**clean, "TERM": "xterm-256color", **(env or {})},
    )
    os.close(slave)
    seen = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:
            break
        if not part:
            break
        seen += part
    os.close(master)
    return process.wait(timeout=60), seen.decode()


def test_on_a_terminal_the_table_is_coloured_and_folded(problem: Path) -> None:
    code, text = in_terminal(["plan", problem])
    assert code == 0
    assert "\x1b[1m" in text
    shown = text.rpartition("\x1b[2K")[2]
    assert "what it says" in shown
    assert "solving" not in shown


@pytest.mark.parametrize(("options", "env"), [(["--no-color"], {}), ([], {"NO_COLOR": "1"})])
def test_no_colours_when_asked(options: list[str], env: dict[str, str], problem: Path) -> None:
    code, text = in_terminal(["plan", problem, "--quiet", *options], env)
    assert code == 0
    assert "\x1b[3" not in text
    assert "optimal plan" in text


# In process: what is hard to bring about from outside


def test_bugs_are_called_bugs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import typer

    from placewright.cli.base import command

    def broken() -> None:
        raise ZeroDivisionError("division by zero")

    with pytest.raises(typer.Exit) as ended:
        command(broken)()
    assert ended.value.exit_code == 1
    assert "this is a bug in placewright" in capsys.readouterr().err


def test_every_error_has_its_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    from placewright.cli.base import _tell
    from placewright_models.errors import Fault

    codes = [
        (InvalidProblem([Fault("x", "y")]), 2),
        (placewright.InfeasibleProblem([]), 3),
        (placewright.SolveTimeout("late"), 4),
        (placewright.PlanMismatch(["a"]), 1),
        (placewright.PlacewrightError("b"), 1),
        (OSError("disk"), 1),
        (ValueError("c"), 1),
    ]
    for error, code in codes:
        assert _tell(error, False) == code
    assert "Error: " in capsys.readouterr().err


# Ray


@pytest.mark.ray
@pytest.mark.timeout(300)
def test_apply_simulated_prints_the_plan_and_what_was_found(tmp_path: Path) -> None:
    pytest.importorskip("ray.util")  # not plain "ray": the folder tests/on_ray would do for that
    plan = placewright.plan(placewright.load_problem(ROOT / "examples" / "verl-8-and-4.yaml"))
    file = write(tmp_path / "plan.json", placewright.export(plan, "json"))
    done = subprocess.run(
        [sys.executable, "-m", "placewright", "apply", str(file), "--simulate"], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr
    header, *rows = done.stdout.splitlines()
    assert header.startswith("component")
    assert len(rows) == sum(map(len, plan.workers.values()))
    assert all(row.endswith("yes") for row in rows)
