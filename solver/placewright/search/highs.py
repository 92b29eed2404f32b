"""A second engine: the same model as a mixed-integer program, solved by HiGHS.

Where hardly two domains are alike, the linear relaxation is close and what is left is branching on it, which HiGHS does far
better than CP-SAT (docs/model.md, section 7). Its solutions are checked in whole numbers before they are used. Its bounds come
from floating-point arithmetic with a tolerance of 1e-6; they are used only where every coefficient is a whole number far below
the inverse of that, and rounded towards caution. Usage: ``found = minimise(model, hint, seconds, seed)``, which runs
``highs_process.py``. Modify this file when another solver is to take this part.
"""

from __future__ import annotations

import json
import logging
import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

logger = logging.getLogger(__name__)

MOST_COEFFICIENT = 10_000
"""Beyond that a tolerance of 1e-6 could hide a whole unit."""
MOST_VALUE = 10**9
TOLERANCE = 0.01
_GRACE_S = 5.0
"""For starting and stopping the process."""


@dataclass(frozen=True, slots=True)
class Found:
    """What HiGHS came to: values by variable index (None without a solution), a lower bound, whether it is proved."""

    values: tuple[int, ...] | None
    bound: int
    proved: bool


@dataclass(slots=True)
class Linear:
    """A model whose constraints are all linear, in the arrays that HiGHS takes."""

    lower: list[int]
    upper: list[int]
    cost: list[int]
    offset: int
    row_lower: list[int]
    row_upper: list[int]
    starts: list[int]
    columns: list[int]
    coefficients: list[int]

    def holds(self, values: Sequence[int]) -> bool:
        """Whether whole numbers satisfy every row and every bound exactly."""
        if any(not low <= value <= high for low, value, high in zip(self.lower, values, self.upper, strict=True)):
            return False
        ends = [*self.starts[1:], len(self.columns)]
        for row, (start, end) in enumerate(zip(self.starts, ends, strict=True)):
            activity = sum(self.coefficients[k] * values[self.columns[k]] for k in range(start, end))
            if not self.row_lower[row] <= activity <= self.row_upper[row]:
                return False
        return True

    def objective(self, values: Sequence[int]) -> int:
        return self.offset + sum(cost * value for cost, value in zip(self.cost, values, strict=True) if cost)


def minimise(model: Any, hint: Sequence[int] | None, seconds: float, seed: int = 0) -> Found | None:
    """Minimise a CP-SAT model's objective; None where the model is not linear, or HiGHS is not there.

    Args:
        model: a ``CpModel`` with an objective.
        hint: values of every variable, a known solution.
        seconds: time limit.
    """
    linear = _linear(model.proto)
    if linear is None or not sys.executable:
        return None
    asked = {**asdict(linear), "seconds": seconds, "seed": seed, "hint": hint}
    command = [sys.executable, str(Path(__file__).with_name("highs_process.py"))]
    try:
        ended = subprocess.run(
            command, input=json.dumps(asked), capture_output=True, text=True, timeout=seconds + _GRACE_S, check=True
        )
        answer = json.loads(ended.stdout.splitlines()[-1])
        optimal, dual, values = bool(answer["optimal"]), float(answer["bound"]), answer["values"]
        if values is not None and len(values) != len(linear.lower):
            raise ValueError(f"{len(values)} values for {len(linear.lower)} variables")
    except (OSError, subprocess.SubprocessError, ValueError, IndexError, KeyError, TypeError) as error:
        logger.info("HiGHS gave no answer: %s", error)
        return None
    if values is not None and not linear.holds(values):
        # What rounding breaks is no solution.
        values = None
    bound = math.ceil(dual - TOLERANCE) if math.isfinite(dual) else -(2**62)
    proved = optimal and values is not None and linear.objective(values) <= bound
    logger.info("HiGHS: %s, bound %d", None if values is None else linear.objective(values), bound)
    return Found(None if values is None else tuple(values), bound, proved)


def _linear(proto: Any) -> Linear | None:
    """The model's arrays; None where a constraint is not linear or a number too large for the tolerance."""
    found = Linear([], [], [0] * len(proto.variables), int(proto.objective.offset), [], [], [], [], [])
    for variable in proto.variables:
        domain = list(variable.domain)
        if len(domain) != 2 or max(map(abs, domain)) > MOST_VALUE:
            return None
        found.lower.append(domain[0])
        found.upper.append(domain[1])
    for index, coefficient in zip(list(proto.objective.vars), list(proto.objective.coeffs), strict=True):
        if index < 0 or abs(coefficient) > MOST_COEFFICIENT:
            return None
        found.cost[index] += coefficient
    for constraint in proto.constraints:
        if not constraint.has_linear() or list(constraint.enforcement_literal):
            return None
        domain = list(constraint.linear.domain)
        columns, coefficients = list(constraint.linear.vars), list(constraint.linear.coeffs)
        if len(domain) != 2 or any(abs(c) > MOST_COEFFICIENT for c in coefficients) or any(v < 0 for v in columns):
            return None
        found.row_lower.append(domain[0])
        found.row_upper.append(domain[1])
        found.starts.append(len(found.columns))
        found.columns.extend(columns)
        found.coefficients.extend(coefficients)
    return found
