"""Detached plans over several drivers; drivers that are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import free_now, settled, soon_free
from planhelp import make_plan, one_each

from placewright.apply import DetachedNameError, apply, attach, rayapi, record, release
from placewright.apply.bundles import Bundle
from placewright.apply.groups import Ledger
from placewright.apply.view import live_nodes

NODES = {"n0": 2, "n1": 2}
WORKERS = {"train": one_each("n0", [1, 0]) + one_each("n1", [1])}


@pytest.fixture(scope="module")
def cluster(start_cluster: Callable[..., Any]) -> Any:
    return start_cluster(("n0", 2, 4), ("n1", 2, 4))


def driver(body: str) -> str:
    """A program that imports what the tests import and then runs the body."""
    paths = [str(Path(__file__).parent), *(path for path in sys.path if path)]
    return f"import sys, json, time\nsys.path[:0] = {paths!r}\nfrom planhelp import *\nfrom placewright.apply import *\n{body}"


def run_driver(body: str) -> dict[str, Any]:
    ended = subprocess.run([sys.executable, "-c", driver(body)], capture_output=True, text=True, timeout=100, env=os.environ)
    assert ended.returncode == 0, ended.stderr
    answer: dict[str, Any] = json.loads(ended.stdout.strip().splitlines()[-1])
    return answer


def test_survives_its_driver_and_serves_another(cluster: Any, nothing_left: None) -> None:
    before = settled()
    seen = run_driver(
        f"applied = apply(make_plan({NODES!r}, {WORKERS!r}), address={cluster.address!r}, detach='job-1')\n"
        "with applied: pass\n"
        "print(json.dumps({'gpus': [w.gpu_ids for w in applied.ranks('train')], 'env': applied.env('train', 2)}))\n"
    )
    assert free_now() != before
    with attach("job-1") as applied:
        assert [list(worker.gpu_ids) for worker in applied.ranks("train")] == seen["gpus"] == [[1], [0], [1]]
        assert applied.env("train", 2) == seen["env"]
        assert [row.state for row in applied.health()] == ["ok"] * 3
        import ray

        class Eye:
            def see(self) -> list[int]:
                import ray

                return [int(gpu) for gpu in ray.get_gpu_ids()]

        eye = ray.remote(Eye).options(**applied.options("train", 2)).remote()
        assert ray.get(eye.see.remote(), timeout=60) == [1]
    assert free_now() != before, "leaving an attached plan leaves it standing"
    with pytest.raises(DetachedNameError, match="job-1 already"):
        apply(make_plan(NODES, {"eval": one_each("n1", [0])}), detach="job-1")
    release("job-1")
    assert soon_free(before)
    with pytest.raises(DetachedNameError, match="no plan is applied under the name job-1"):
        attach("job-1")
    with pytest.raises(DetachedNameError):
        release("job-1")


def test_the_name_is_free_again(nothing_left: None) -> None:
    for _ in range(2):
        apply(make_plan(NODES, {"eval": one_each("n1", [1])}), detach="again", namespace="mine").shutdown()
    with pytest.raises(ValueError, match="is not a name"):
        apply(make_plan(NODES, {"eval": one_each("n1", [1])}), detach="a/b")


def test_a_plan_that_cannot_stand_gives_its_name_back(nothing_left: None) -> None:
    import placewright.apply.exact as exact

    def stop(*_: object) -> None:
        raise RuntimeError

    with pytest.MonkeyPatch.context() as patch, pytest.raises(RuntimeError):
        patch.setattr(exact, "probe", stop)
        apply(make_plan(NODES, WORKERS), detach="failing")
    with pytest.raises(DetachedNameError):
        attach("failing")


def test_release_finds_what_a_lost_driver_left(nothing_left: None) -> None:
    """A driver that was killed between its first group and its record."""
    record.Record.claim("half", None)
    node = next(node for node in live_nodes() if node.name == "n0")
    Ledger(record.group_prefix("half", None), detached=True).create("g", [Bundle("n0", (0,), 0, 0, ())], {"n0": node})
    with pytest.raises(DetachedNameError, match="driver was lost; release it"):
        attach("half")
    release("half")


def test_a_killed_driver_leaves_nothing(cluster: Any, nothing_left: None) -> None:
    before = settled()
    body = (
        f"applied = apply(make_plan({NODES!r}, {WORKERS!r}), address={cluster.address!r})\n"
        "print('standing', flush=True)\n"
        "time.sleep(100)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", driver(body)], stdout=subprocess.PIPE, text=True, env=os.environ)
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if "standing" in line:
                break
        assert free_now() != before
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert soon_free(before)
    assert rayapi.groups_by_prefix("placewright/") == []
