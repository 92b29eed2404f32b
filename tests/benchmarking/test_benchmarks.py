"""The benchmark harness, untimed: every family at a tiny size with every solver, stored answers, report.

That the numbers of the stored runs are right is checked by ``python -m benchmarks check``; here only that the harness would
notice if they were not.
"""

from __future__ import annotations

import doctest
import gzip
import importlib.util
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

from benchmarks import answers, report, runs  # noqa: E402
from benchmarks.families._parts import SHARES  # noqa: E402
from benchmarks.peers import PEER_BY_NAME, kueue  # noqa: E402
from benchmarks.registry import Instance, chosen, families, instances  # noqa: E402

SMOKE = list(instances(smoke=True))
SOLVED = ("optimal", "feasible", "greedy")
ANSWERS = {*SOLVED, "infeasible", "nothing found", "cannot express", "breaks a rule"}
NEEDS = {"highs": "highspy"}


def by_name(name: str) -> Instance:
    return chosen([name])[0]


def available(solver: str) -> bool:
    return solver not in NEEDS or importlib.util.find_spec(NEEDS[solver]) is not None


@pytest.mark.parametrize("instance", SMOKE, ids=lambda instance: instance.name)
def test_every_family_runs_with_every_solver(instance: Instance) -> None:
    records = [runs.run_one(instance, solver) for solver in runs.solvers_of(instance) if available(solver)]
    for record in records:
        assert record["status"] in ANSWERS, record
        assert record["times"]["whole"] >= 0 and record["peak_memory_mib"] > 0
        assert (record["status"] in SOLVED) == bool(record.get("verified"))
    ours = records[0]
    assert ours["solver"] == "placewright" and ours["status"] in ("optimal", "infeasible"), ours
    assert not ours.get("stages_missing"), "the stopwatch no longer finds a stage: see benchmarks/stopwatch.py"
    for record in records[1:]:
        if ours["status"] == "infeasible":
            assert record["status"] not in SOLVED, record
        elif record["status"] in SOLVED:
            assert all(goal["value"] == goal["bound"] for goal in ours["goals"])
            best = [goal["value"] for goal in ours["goals"]]
            assert [goal["value"] for goal in record["goals"]] >= best, (record["solver"], best)
            if record["status"] == "optimal":
                assert [goal["value"] for goal in record["goals"]] == best, record["solver"]
        else:
            assert record["status"] != "infeasible", record


def test_every_peer_can_say_some_smoke_instance() -> None:
    said = set()
    for instance in SMOKE:
        for name in PEER_BY_NAME:
            if name in said or not available(name):
                continue
            if runs.run_one(instance, name)["status"] in SOLVED:
                said.add(name)
    assert said == {name for name in PEER_BY_NAME if available(name)}


def test_the_instances_of_the_table() -> None:
    a = by_name("A").problem()
    assert len(a.cluster.nodes) == 12_512
    assert len({node.nvlink_domain for node in a.cluster.nodes}) == 782
    assert {c.name: c.max_workers for c in a.components} == {"train": 4378, "rollout": 8758, "reward": 4003, "env": 10009}
    assert a.goals == ("domain_span", "node_span", "nodes_used") and all(c.span_weight == 1 for c in a.components)
    b = by_name("B").data()
    assert b["cluster"]["nodes"][0]["count"] == 124_920 and b["components"]["train"]["workers"] % 16 == 0
    used = sum(component["workers"] * component["gpus"] for component in b["components"].values())
    assert 0.795 < used / 499_680 <= 0.8
    c = by_name("C").data()["cluster"]["nodes"]
    assert 12_200 < len(c) < 12_300 and 0.005 < sum("unavailable_gpus" in node for node in c) / len(c) < 0.015
    e = by_name("E").data()["cluster"]["nodes"]
    shapes: dict[str, list[int]] = {}
    for node in e:
        shapes.setdefault(node["nvlink_domain"], []).append(node["gpus"])
    assert (len(shapes), len({tuple(sorted(sizes)) for sizes in shapes.values()})) == (64, 55)
    f, g = by_name("F").problem(), by_name("G").problem()
    assert (len(f.cluster.nodes), len(f.components), len(g.cluster.nodes)) == (8, 8, 1024)
    assert g.traffic and any(component.group for component in g.components)
    i = by_name("I").problem()
    assert (len(i.cluster.nodes), i.cluster.levels) == (4096, ("zone", "block"))
    assert by_name("A-default").problem().goals[0] == "unplaced"
    assert 0.87 < sum(SHARES.values()) < 0.89


def test_names_are_unique_and_seeds_decide() -> None:
    everything = list(instances())
    assert len({instance.name for instance in everything}) == len(everything)
    assert by_name("small-3").data() == by_name("small-3").data()
    assert by_name("small-3").data() != by_name("small-4").data()
    assert {"equal", "degraded", "uneven", "nvl72", "mixed", "multi_level", "tiny"} <= {f.name for f in families()}


@pytest.mark.parametrize("module", [kueue, report])
def test_examples_of_the_documentation(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def stored(tmp_path: Path, names: tuple[str, ...] = ("tiny-1", "small-2")) -> Path:
    found = []
    for name in names:
        for solver in ("placewright", "first-fit"):
            record = runs.run_one(by_name(name), solver, tmp_path)
            found.append({**record, "machine": {"cpu": "x", "cores": 2, "versions": {"python": "3"}}})
    runs.append(tmp_path, found)
    return tmp_path


def test_stored_answers_are_verified_again(tmp_path: Path) -> None:
    folder = stored(tmp_path)
    assert any(record.get("answer") for record in runs.read_records(folder))
    assert answers.check(folder) == []


def test_a_changed_answer_is_noticed(tmp_path: Path) -> None:
    folder = stored(tmp_path, ("small-2",))
    path = folder / "answers" / "small-2.placewright.json.gz"
    data = json.loads(gzip.decompress(path.read_bytes()))
    data["goals"][0][1] += 1
    path.write_bytes(gzip.compress(json.dumps(data).encode()))
    assert any("small-2, placewright" in text for text in answers.check(folder))


def test_a_bound_that_another_answer_beats_is_noticed(tmp_path: Path) -> None:
    from placewright_models.plan import GoalValue

    proved = [GoalValue("domain_span", 5, 5), GoalValue("node_span", 9, 9)]
    assert answers.beats([4, 9], proved) is not None
    assert answers.beats([5, 8], proved) is not None
    assert answers.beats([6, 1], proved) is None
    assert answers.beats([5, 9], proved) is None


def test_finished_runs_are_not_run_again() -> None:
    some = [by_name("F"), by_name("tiny-1"), by_name("tiny-2")]
    everything = list(runs.batches(some, ["placewright"], set()))
    assert everything == [("placewright", some[:1]), ("placewright", some[1:])]
    done = {("F", "placewright"), ("tiny-1", "placewright")}
    assert list(runs.batches(some, ["placewright"], done)) == [("placewright", some[2:])]


def test_a_run_in_a_process_of_its_own(tmp_path: Path) -> None:
    instance = by_name("equal-128")
    assert runs.run_all([instance], tmp_path, ["placewright"]) == 0
    (record,) = runs.read_records(tmp_path)
    assert record["status"] == "optimal" and record["machine"]["versions"]["ortools"]
    assert record["settings"]["time_limit"] == instance.time_limit
    assert record["times"]["solve"] > 0 and sum(goal["calls"] for goal in record["goal_times"]) > 0
    stages = sum(record["times"][stage] for stage in ("build", "search", "solve", "decode", "verify"))
    assert 0 < stages <= record["times"]["whole"] * 1.01


def test_growth_measures_both_sizes() -> None:
    from benchmarks.startup import growth

    found = growth("equal-1k", "equal-128", repeat=1)
    assert set(found["whole"]) == {"equal-1k", "equal-128"}
    assert found["ratio of least"] == found["ratio of medians"] > 0


def test_report_from_stored_records(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    folder = stored(tmp_path)
    record = runs.read_records(folder)[0]
    for name, gpus, seconds in (("A", 100_096, 1.5), ("A-tenth", 9_984, 0.2)):
        times = {**record["times"], "whole": seconds}
        runs.append(folder, [{**record, "instance": name, "family": "equal", "group": "target", "gpus": gpus, "times": times}])
    spread = {"median": 0.3, "least": 0.2, "most": 0.4}
    started = {
        "seconds": {"python": spread},
        "import placewright / pydantic": 0.2,
        "placewright plan / cp_model": 1.4,
        "unwanted modules loaded": [],
        "growth": {"whole": {"A": spread, "A-tenth": spread}, "ratio of least": 9.0, "ratio of medians": 7.5},
    }
    (folder / "startup.json").write_text(json.dumps(started))
    text = report.report(folder).read_text()
    assert "| A |" in text and "9.0 by the least times, 7.5 by the medians (target 12)" in text and "**small**" in text
    assert (folder / "time.png").exists() and (folder / "settings.json").exists() and (folder / "README.md").exists()


def test_a_solver_that_crashes_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    def crash(problem: object, time_limit: float) -> None:
        raise RuntimeError("boom")

    monkeypatch.setattr(PEER_BY_NAME["first-fit"], "solve", crash)
    record = runs.run_one(by_name("small-2"), "first-fit")
    assert record["status"] == "error" and "boom" in record["note"]


def test_a_time_limit_is_kept_and_recorded() -> None:
    instance = replace(by_name("uneven-1k"), time_limit=1.0)
    record = runs.run_one(instance, "placewright")
    assert record["settings"]["time_limit"] == 1.0 and record["status"] in (*SOLVED, "timeout")


def test_command_line(tmp_path: Path) -> None:
    listed = subprocess.run([sys.executable, "-m", "benchmarks", "list"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "equal:" in listed.stdout
    wrong = subprocess.run([sys.executable, "-m", "benchmarks", "run", "no-such"], cwd=ROOT, capture_output=True, text=True)
    assert wrong.returncode == 2 and "no-such" in wrong.stderr
