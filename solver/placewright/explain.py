from __future__ import annotations
from placewright_models.errors import InfeasibleProblem, Reason
def quick_reasons(problem): return None
def explain(problem, params): return InfeasibleProblem([Reason("cluster","infeasible")])
