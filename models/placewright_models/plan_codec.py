"""A plan from plain data. What the plan says is ``verify``'s to judge; here only whether it is a plan at all.

Modify this file when the plan's JSON form changes; keep reading old files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from placewright_models.errors import Fault, InvalidProblem
from placewright_models.plan import PLAN_FORMAT, GoalValue, Idle, Plan, Pool, PoolNode, Worker
from placewright_models.problem import Problem
from placewright_models.ranges import Range
from placewright_models.reading.values import nearest, show

_STATUSES = ("optimal", "feasible", "greedy")
_MAX_INDEX = 65_535
_ENOUGH = 100
"""A file with that many faults is not a plan with a slip; reading stops."""


T = TypeVar("T")


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

    def required(self, data: Mapping[str, Any], key: str, place: str, read: Callable[[Any, str], T], empty: Any) -> T:
        """The value of a key that every plan has; where it is missing, what ``read`` makes of ``empty``."""
        where = f"{place}.{key}" if place else key
        if key in data:
            return read(data[key], where)
        self.fault(where, "is missing")
        return read(empty, where)

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
            self.fault(
                place, f"{show(pair)} is not a range of GPU indices", "write [start, end], both inclusive, start at most end"
            )
        return tuple(found)

    def status(self, value: Any, place: str) -> str:
        if value not in _STATUSES:
            self.fault(place, f"{show(value)} is not a status", nearest(value, _STATUSES))
        return str(value)

    def seconds(self, value: Any, place: str) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 10**9:
            self.fault(place, f"{show(value)} is not a number of seconds")
            return 0.0
        return float(value)

    def texts(self, value: Any, place: str) -> tuple[str, ...]:
        return tuple(self.text(item, f"{place}[{index}]") for index, item in enumerate(self.items(value, place)))

    def allocations(self, value: Any, place: str) -> dict[str, tuple[Range, ...]]:
        return {name: self.ranges(ranges, f"{place}.{name}") for name, ranges in self.mapping(value, place).items()}

    def goals(self, value: Any, place: str) -> tuple[GoalValue, ...]:
        goals: list[GoalValue] = []
        for index, item in enumerate(self.items(value, place)):
            where = f"{place}[{index}]"
            goal = self.mapping(item, where)
            bound = goal.get("bound")
            goals.append(
                GoalValue(
                    self.required(goal, "name", where, self.text, ""),
                    self.required(goal, "value", where, self.whole, 0),
                    None if bound is None else self.whole(bound, f"{where}.bound"),
                )
            )
        return tuple(goals)

    def pools(self, value: Any, place: str) -> tuple[Pool, ...]:
        pools: list[Pool] = []
        for index, item in enumerate(self.items(value, place)):
            where = f"{place}[{index}]"
            pool = self.mapping(item, where)
            name = self.required(pool, "name", where, self.text, "")
            pools.append(Pool(name, self.required(pool, "nodes", where, self.pool_nodes, ())))
        return tuple(pools)

    def pool_nodes(self, value: Any, place: str) -> tuple[PoolNode, ...]:
        nodes: list[PoolNode] = []
        for index, item in enumerate(self.items(value, place)):
            where = f"{place}[{index}]"
            node = self.mapping(item, where)
            nodes.append(
                PoolNode(
                    self.required(node, "node_id", where, self.text, ""),
                    self.required(node, "gpus", where, self.whole, 0),
                    self.required(node, "allocations", where, self.allocations, {}),
                )
            )
        return tuple(nodes)

    def workers(self, value: Any, place: str) -> dict[str, tuple[Worker, ...]]:
        found: dict[str, tuple[Worker, ...]] = {}
        for name, items in self.mapping(value, place).items():
            placed: list[Worker] = []
            for index, item in enumerate(self.items(items, f"{place}.{name}")):
                where = f"{place}.{name}[{index}]"
                if isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], str):
                    placed.append(Worker(item[0], self.ranges(item[1], where)))
                else:
                    self.fault(where, f"{show(item)} is not a worker", "write [node id, [[start, end]]]")
            found[name] = tuple(placed)
        return found

    def idle(self, value: Any, place: str) -> Idle:
        idle = self.mapping(value, place)
        return Idle(
            self.whole(idle.get("gpus", 0), f"{place}.gpus"),
            self.texts(idle.get("nodes", ()), f"{place}.nodes"),
            self.allocations(idle.get("ranges", {}), f"{place}.ranges"),
        )


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
        raise InvalidProblem(reader.faults, "", "plan")
    return plan


def _plan(reader: _Reader, data: Any, problem: Problem | None) -> Plan | None:
    data = reader.mapping(data, "")
    if reader.faults:
        return None
    written = data.get("format")
    if written != PLAN_FORMAT:
        wrong = (
            "is missing: this is not a plan" if written is None else f"{show(written)} is not a format that this version reads"
        )
        reader.fault("format", wrong, f"a plan has format: {PLAN_FORMAT}")
        return None
    if problem is None:
        problem = _problem(reader, data)
    status = reader.required(data, "status", "", reader.status, _STATUSES[0])
    solver = reader.text(data.get("solver", "cp-sat"), "solver")
    goals = reader.required(data, "goals", "", reader.goals, ())
    pools = reader.required(data, "pools", "", reader.pools, ())
    workers = reader.required(data, "workers", "", reader.workers, {})
    idle = reader.required(data, "idle", "", reader.idle, {})
    warnings = reader.texts(data.get("warnings", ()), "warnings")
    wall = reader.seconds(data.get("wall_time_s", 0.0), "wall_time_s")
    if problem is None:
        return None
    return Plan(status, solver, goals, pools, workers, idle, warnings, problem, wall)


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
