"""One run: an instance, a solver, a record. And many of them, each in a process of its own.

``run_one`` does the work and returns a plain record; ``run_all`` starts ``python -m benchmarks one ...`` for each pair of
instance and solver that the folder has no record of yet, so that a broken run goes on where it stopped. Random samples are
run in one process a solver and family, since their times are small against a start. Modify this file when a record needs
another field.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.answers import assemble, load, store
from benchmarks.peers import PEER_BY_NAME, CannotExpress, NothingFound, TooLarge
from benchmarks.peers.peer import workers_of
from benchmarks.registry import Instance, fingerprint
from benchmarks.stopwatch import Stopwatch
from placewright.params import SolveParams
from placewright.pipeline import plan
from placewright_models.errors import InfeasibleProblem, PlanMismatch, SolveTimeout
from placewright_models.plan import Plan
from placewright_models.problem import Problem

OURS = "placewright"
ROOT = Path(__file__).resolve().parent.parent
Record = dict[str, Any]


def solvers_of(instance: Instance) -> list[str]:
    """placewright and the peers that run on the instance."""
    peers = list(PEER_BY_NAME) if instance.peers is None else list(instance.peers)
    return [OURS, *peers]


def machine() -> Record:
    """The processor and the versions that a number depends on."""
    model = platform.processor() or platform.machine()
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    versions = {"python": platform.python_version()}
    for name in ("ortools", "highspy", "numpy", "placewright"):
        with contextlib.suppress(PackageNotFoundError):
            versions[name] = version(name)
    commit = _git("rev-parse", "HEAD")
    changed = _git("status", "--porcelain", "--", "solver", "models")
    versions["commit"] = commit + ("+changes" if changed else "")
    return {"cpu": model, "cores": os.cpu_count(), "system": platform.platform(terse=True), "versions": versions}


def _git(*arguments: str) -> str:
    try:
        found = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return found.stdout.strip()


def run_one(instance: Instance, solver: str, out: Path | None = None, time_limit: float | None = None) -> Record:
    """Plan once, verify, store, verify what was stored; never raises for what a solver does."""
    limit = time_limit or (instance.time_limit if solver == OURS else instance.peer_limit)
    data = instance.data()
    begun = time.perf_counter()
    problem = instance.problem()
    loaded = time.perf_counter() - begun
    settings = SolveParams(time_limit=limit)
    record: Record = {
        "instance": instance.name,
        "family": instance.family,
        "group": instance.group,
        "solver": solver,
        "seed": instance.seed,
        "size": dict(instance.size),
        "default_goals": instance.default,
        "nodes": len(problem.cluster.nodes),
        "gpus": sum(node.available_gpus for node in problem.cluster.nodes),
        "domains": len({node.nvlink_domain or node.id for node in problem.cluster.nodes}),
        "workers": {component.name: component.max_workers for component in problem.components},
        "fingerprint": fingerprint(data),
        "settings": settings.to_dict() if solver == OURS else {"time_limit": limit, "threads": 2},
        "time_limit": limit,
        "at": time.strftime("%Y-%m-%dT%H:%M:%S"),
        "load_average": round(os.getloadavg()[0], 2),
    }
    del data
    times: dict[str, float] = {"load": loaded}
    # Where nothing is found, ``whole`` is the time until that was said.
    begun = time.perf_counter()
    answer: Plan | None = None
    try:
        answer = _ours(problem, settings, record, times) if solver == OURS else _peer(problem, solver, limit, times)
        record["status"] = answer.status
    except InfeasibleProblem as error:
        record["status"] = "infeasible"
        record["reasons"] = [reason.to_dict() | {"per_unit": {}} for reason in error.reasons]
        record["note"] = str(error)[:600]
    except SolveTimeout as error:
        record |= {"status": "timeout", "note": str(error)[:300]}
    except CannotExpress as error:
        record |= {"status": "cannot express", "note": str(error)}
    except TooLarge as error:
        record |= {"status": "too large", "note": str(error)}
    except NothingFound as error:
        record |= {"status": "infeasible" if error.proved else "nothing found", "note": str(error)[:300]}
    except PlanMismatch as error:
        record |= {"status": "breaks a rule", "note": str(error)[:300]}
    except Exception as error:  # a crash of one solver must not end the others' runs, and is told in the record
        record |= {"status": "error", "note": f"{type(error).__name__}: {error}"[:300]}
    times.setdefault("whole", time.perf_counter() - begun)
    record["times"] = {stage: round(seconds, 5) for stage, seconds in times.items()}
    record["peak_memory_mib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1)
    if answer is not None:
        record["goals"] = [{"name": g.name, "value": g.value, "bound": g.bound} for g in answer.goals]
        record["placed"] = sum(len(workers) for workers in answer.workers.values())
        record["verified"] = True
        if out is not None:
            path = Path("answers") / f"{instance.name}.{solver}.json.gz"
            store(out / path, problem, answer, record["fingerprint"], instance.name)
            load(out / path, problem)
            record["answer"] = str(path)
    return record


def _ours(problem: Problem, settings: SolveParams, record: Record, times: dict[str, float]) -> Plan:
    import ortools.sat.python.cp_model  # noqa: F401  # its import is not part of a plan

    watch = Stopwatch()
    with watch:
        begun = time.perf_counter()
        try:
            return plan(problem, params=settings, progress=watch.progress)
        finally:
            times["whole"] = time.perf_counter() - begun
            times.update({stage: watch.times.get(stage, 0.0) for stage in ("build", "search", "solve", "decode", "verify")})
            if "explain" in watch.times:
                times["explain"] = watch.times["explain"]
            record["goal_times"] = watch.goal_times()
            record["calls"] = watch.calls
            if watch.missing:
                record["stages_missing"] = watch.missing


def _peer(problem: Problem, solver: str, limit: float, times: dict[str, float]) -> Plan:
    begun = time.perf_counter()
    try:
        found = PEER_BY_NAME[solver].solve(problem, limit)
    finally:
        times["solve"] = time.perf_counter() - begun
    before = time.perf_counter()
    try:
        workers = workers_of(problem, found)
    except ValueError as error:
        raise PlanMismatch([str(error)]) from error
    times["decode"] = time.perf_counter() - before
    before = time.perf_counter()
    answer = assemble(problem, workers, found.status, found.bounds)
    times["verify"] = time.perf_counter() - before
    times["whole"] = time.perf_counter() - begun
    return answer


# Many runs


def read_records(folder: Path) -> list[Record]:
    """Every record of a results folder; of several for one instance and solver, the last."""
    path = folder / "runs.jsonl"
    if not path.exists():
        return []
    found: dict[tuple[str, str], Record] = {}
    for line in path.read_text().splitlines():
        if line.strip():
            record = json.loads(line)
            found[record["instance"], record["solver"]] = record
    return list(found.values())


def append(folder: Path, records: Iterable[Record]) -> None:
    """Add records to ``runs.jsonl``."""
    with (folder / "runs.jsonl").open("a") as file:
        for record in records:
            file.write(json.dumps(record) + "\n")


def batches(
    instances: Sequence[Instance], solvers: Sequence[str], done: set[tuple[str, str]]
) -> Iterator[tuple[str, list[Instance]]]:
    """(solver, instances of one process): samples of a family together, everything else alone."""
    samples: dict[tuple[str, str], list[Instance]] = {}
    for instance in instances:
        for solver in solvers_of(instance):
            if (solvers and solver not in solvers) or (instance.name, solver) in done:
                continue
            if instance.group == "sample":
                samples.setdefault((instance.family, solver), []).append(instance)
            else:
                yield solver, [instance]
    for (_, solver), here in samples.items():
        yield solver, here


def run_all(instances: Sequence[Instance], out: Path, solvers: Sequence[str] = (), time_limit: float | None = None) -> int:
    """Run what the folder has no record of; returns how many runs ended without any record."""
    out.mkdir(parents=True, exist_ok=True)
    here = machine()
    done = {(record["instance"], record["solver"]) for record in read_records(out)}
    lost = 0
    for solver, some in batches(instances, solvers, done):
        names = [instance.name for instance in some]
        limits = [time_limit or (one.time_limit if solver == OURS else one.peer_limit) for one in some]
        command = [sys.executable, "-m", "benchmarks", "one", "--solver", solver, "--out", str(out), *names]
        if time_limit:
            command += ["--time-limit", str(time_limit)]
        title = names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]}"
        began = time.perf_counter()
        lines: list[str] = []
        note = ""
        try:
            ended = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=60 + 2 * sum(limits),
                check=False,
                cwd=ROOT,
                env={**os.environ, "PYTHONHASHSEED": "0"},
            )
            lines = ended.stdout.splitlines()
            note = "" if not ended.returncode else f"exit {ended.returncode}: {ended.stderr.strip()[-300:]}"
        except subprocess.TimeoutExpired as error:
            output = error.stdout or b""
            lines = (output.decode() if isinstance(output, bytes) else output).splitlines()
            note = "ended from outside: it did not keep its time limit"
        records = [{**json.loads(line), "machine": here} for line in lines if line.startswith("{")]
        answered = {record["instance"] for record in records}
        for instance in some:
            if instance.name not in answered:
                lost += 1
                records.append(
                    {
                        "instance": instance.name,
                        "family": instance.family,
                        "group": instance.group,
                        "solver": solver,
                        "status": "no answer",
                        "note": note,
                        "times": {},
                        "machine": here,
                    }
                )
        append(out, records)
        statuses = sorted({record["status"] for record in records})
        print(f"{title:24} {solver:18} {time.perf_counter() - began:7.1f} s  {', '.join(statuses)}", flush=True)
    return lost


def smoke(instances: Sequence[Instance], out: Path | None = None) -> list[Record]:
    """Every instance with every solver, in this process, untimed."""
    return [run_one(instance, solver, out) for instance in instances for solver in solvers_of(instance)]
