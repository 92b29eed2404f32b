"""A plan from plain data. What the plan says is ``verify``'s to judge; here only whether it is a plan at all.

Modify this file when the plan's JSON form changes; keep reading old files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from placewright_models.errors import Fault, InvalidProblem
from placewright_models.plan import PLAN_FORMAT, GoalValue, Idle, Plan, Pool, PoolNode, Worker
from placewright_models.problem import Problem
from placewright_models.ranges import Range
from placewright_models.values import nearest, show

_STATUSES = ("optimal", "feasible", "greedy")
_MAX_INDEX = 65_535
_ENOUGH = 100
"""A file with that many faults is not a plan with a slip; reading stops."""


class _Enough(Exception):
    pass


class _Reader:
    """Collects faults while reading, so that all are told at once."""

    def __init__(self) -> None:
        self.faults: list[Fault] = []

    def fault(self, place: str, wrong: str, right: str = "") -> None:
        self.faults.append(Fault(place, wrong, right))
        if len(self.faults) >= _ENOUGH:
            raise _Enough

    def mapping(self, value: Any, place: str) -> Mapping[str, Any]:
        if isinstance(value, Mapping):
            bad = [key for key in value if not isinstance(key, str)]
            if not bad:
                return value
            self.fault(place, f"the key {show(bad[0])} is not text")
        else:
            self.fault(place, f"{show(value)} is not a mapping")
        return {}

    def items(self, value: Any, place: str) -> Sequence[Any]:
        if isinstance(value, (list, tuple)):
            return value
        self.fault(place, f"{show(value)} is not a list")
        return ()

    def key(self, data: Mapping[str, Any], key: str, place: str) -> Any:
        if key not in data:
            self.fault(f"{place}.{key}" if place else key, "is missing")
        return data.get(key)

    def text(self, value: Any, place: str) -> str:
        if isinstance(value, str):
            return value
        self.fault(place, f"{show(value)} is not text")
        return ""

    def whole(self, value: Any, place: str) -> int:
        if type(value) is int:
            return value
        self.fault(place, f"{show(value)} is not a whole number")
        return 0

    def ranges(self, value: Any, place: str) -> tuple[Range, ...]:
        found: list[Range] = []
        for pair in self.items(value, place):
            if isinstance(pair, (list, tuple)) and len(pair) == 2:
                start, end = pair
                if type(start) is int and type(end) is int and 0 <= start <= end <= _MAX_INDEX:
                    found.append((start, end))
                    continue
            self.fault(place, f"{show(pair)} is not a range of GPU indices", "write [start, end], both inclusive, start at most end")
        return tuple(found)


def plan_from_dict(data: Mapping[str, Any], problem: Problem | None = None) -> Plan:
    """Read a plan from plain data (``placewright/plan/1``); ``problem`` replaces the one inside.

    Raises:
        InvalidProblem: if the data is not a plan, or carries an invalid problem.
    """
    reader = _Reader()
    try:
        plan = _plan(reader, data, problem)
    except _Enough:
        plan = None
    if reader.faults or plan is None:
        raise InvalidProblem(reader.faults, "plan")
    return plan


def _plan(reader: _Reader, data: Any, problem: Problem | None) -> Plan | None:
    data = reader.mapping(data, "")
    if reader.faults:
        return None
    written = data.get("format")
    if written != PLAN_FORMAT:
        wrong = "is missing: this is not a plan" if written is None else f"{show(written)} is not a format that this version reads"
        reader.fault("format", wrong, f"a plan has format: {PLAN_FORMAT}")
        return None
    status = reader.text(reader.key(data, "status", ""), "status") if "status" in data else reader.key(data, "status", "") or ""
    if "status" in data and status not in _STATUSES:
        reader.fault("status", f"{show(status)} is not a status", nearest(status, _STATUSES))
    if problem is None:
        problem = _problem(reader, data)
    wall = data.get("wall_time_s", 0.0)
    if isinstance(wall, bool) or not isinstance(wall, (int, float)):
        reader.fault("wall_time_s", f"{show(wall)} is not a number")
        wall = 0.0
    found = {
        key: reader.key(data, key, "") for key in ("goals", "pools", "workers", "idle")
    }
    goals = _goals(reader, found["goals"]) if "goals" in data else ()
    pools = _pools(reader, found["pools"]) if "pools" in data else ()
    workers = _workers(reader, found["workers"]) if "workers" in data else {}
    idle = _idle(reader, found["idle"]) if "idle" in data else Idle()
    warnings = tuple(
        reader.text(item, f"warnings[{index}]") for index, item in enumerate(reader.items(data.get("warnings", ()), "warnings"))
    )
    solver = reader.text(data.get("solver", "cp-sat"), "solver")
    if problem is None:
        return None
    return Plan(status, solver, goals, pools, workers, idle, warnings, problem, float(wall))


def _problem(reader: _Reader, data: Mapping[str, Any]) -> Problem | None:
    from placewright_models.codec import load_problem

    if not isinstance(data.get("problem"), Mapping):
        wrong = f"{show(data['problem'])} is not a mapping" if "problem" in data else "is missing"
        reader.fault("problem", wrong, "a plan carries its problem; or give the problem beside it")
        return None
    try:
        return load_problem(data["problem"])
    except InvalidProblem as error:
        for fault in error.faults:
            reader.fault(f"problem.{fault.place}" if fault.place else "problem", fault.wrong, fault.right)
        return None


def _goals(reader: _Reader, value: Any) -> tuple[GoalValue, ...]:
    goals: list[GoalValue] = []
    for index, item in enumerate(reader.items(value, "goals")):
        place = f"goals[{index}]"
        goal = reader.mapping(item, place)
        bound = goal.get("bound")
        goals.append(
            GoalValue(
                reader.text(reader.key(goal, "name", place), f"{place}.name") if "name" in goal else reader.key(goal, "name", place) or "",
                reader.whole(goal["value"], f"{place}.value") if "value" in goal else reader.key(goal, "value", place) or 0,
                None if bound is None else reader.whole(bound, f"{place}.bound"),
            )
        )
    return tuple(goals)


def _pools(reader: _Reader, value: Any) -> tuple[Pool, ...]:
    pools: list[Pool] = []
    for index, item in enumerate(reader.items(value, "pools")):
        place = f"pools[{index}]"
        pool = reader.mapping(item, place)
        nodes: list[PoolNode] = []
        for position, raw in enumerate(reader.items(pool.get("nodes"), f"{place}.nodes")):
            where = f"{place}.nodes[{position}]"
            node = reader.mapping(raw, where)
            nodes.append(
                PoolNode(
                    reader.text(node.get("node_id"), f"{where}.node_id"),
                    reader.whole(node.get("gpus"), f"{where}.gpus"),
                    {
                        name: reader.ranges(ranges, f"{where}.allocations.{name}")
                        for name, ranges in reader.mapping(node.get("allocations"), f"{where}.allocations").items()
                    },
                )
            )
        pools.append(Pool(reader.text(pool.get("name"), f"{place}.name"), tuple(nodes)))
    return tuple(pools)


def _workers(reader: _Reader, value: Any) -> dict[str, tuple[Worker, ...]]:
    found: dict[str, tuple[Worker, ...]] = {}
    for name, items in reader.mapping(value, "workers").items():
        placed: list[Worker] = []
        for index, item in enumerate(reader.items(items, f"workers.{name}")):
            if isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], str):
                placed.append(Worker(item[0], reader.ranges(item[1], f"workers.{name}[{index}]")))
            else:
                reader.fault(f"workers.{name}[{index}]", f"{show(item)} is not a worker", "write [node id, [[start, end]]]")
        found[name] = tuple(placed)
    return found


def _idle(reader: _Reader, value: Any) -> Idle:
    idle = reader.mapping(value, "idle")
    return Idle(
        reader.whole(idle.get("gpus", 0), "idle.gpus"),
        tuple(reader.text(node, f"idle.nodes[{i}]") for i, node in enumerate(reader.items(idle.get("nodes", ()), "idle.nodes"))),
        {
            node: reader.ranges(ranges, f"idle.ranges.{node}")
            for node, ranges in reader.mapping(idle.get("ranges", {}), "idle.ranges").items()
        },
    )
