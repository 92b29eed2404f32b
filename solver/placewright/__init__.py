"""placewright decides which GPUs each part of an RL post-training job gets, and proves it.

::

    import placewright

    problem = placewright.load_problem("problem.yaml")
    plan = placewright.plan(problem)
    placewright.verify(problem, plan)

Importing this package loads nothing heavy: every name below is fetched from its module when it is first used, so programs
that only read a plan never load OR-Tools, and only ``apply`` and ``discover_ray`` load Ray. Modify this file when a name
becomes public: it goes into ``_HOME`` and into the block for type checkers.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from placewright.apply import AppliedPlan as AppliedPlan
    from placewright.apply import apply as apply
    from placewright.apply import attach as attach
    from placewright.apply import release as release
    from placewright.apply import simulate as simulate
    from placewright.discover import discover_ray as discover_ray
    from placewright.explain import explain as explain
    from placewright.export import ExportRefused as ExportRefused
    from placewright.export import export as export
    from placewright.params import SolveParams as SolveParams
    from placewright.pipeline import plan as plan
    from placewright.verify import verify as verify
    from placewright.verify import violations as violations
    from placewright_models.cluster import Cluster as Cluster
    from placewright_models.cluster import Node as Node
    from placewright_models.codec import load_plan as load_plan
    from placewright_models.codec import load_problem as load_problem
    from placewright_models.codec import problem_to_dict as problem_to_dict
    from placewright_models.errors import Fault as Fault
    from placewright_models.errors import InfeasibleProblem as InfeasibleProblem
    from placewright_models.errors import InvalidProblem as InvalidProblem
    from placewright_models.errors import PlacewrightError as PlacewrightError
    from placewright_models.errors import PlanMismatch as PlanMismatch
    from placewright_models.errors import Reason as Reason
    from placewright_models.errors import SolveTimeout as SolveTimeout
    from placewright_models.plan import GoalValue as GoalValue
    from placewright_models.plan import Plan as Plan
    from placewright_models.plan import Worker as Worker
    from placewright_models.problem import Problem as Problem
    from placewright_models.workload import Component as Component
    from placewright_models.workload import Group as Group
    from placewright_models.workload import Rules as Rules
    from placewright_models.workload import Traffic as Traffic

_HOME = {
    "AppliedPlan": "placewright.apply",
    "Cluster": "placewright_models.cluster",
    "Component": "placewright_models.workload",
    "ExportRefused": "placewright.export",
    "Fault": "placewright_models.errors",
    "GoalValue": "placewright_models.plan",
    "Group": "placewright_models.workload",
    "InfeasibleProblem": "placewright_models.errors",
    "InvalidProblem": "placewright_models.errors",
    "Node": "placewright_models.cluster",
    "PlacewrightError": "placewright_models.errors",
    "Plan": "placewright_models.plan",
    "PlanMismatch": "placewright_models.errors",
    "Problem": "placewright_models.problem",
    "Reason": "placewright_models.errors",
    "Rules": "placewright_models.workload",
    "SolveParams": "placewright.params",
    "SolveTimeout": "placewright_models.errors",
    "Traffic": "placewright_models.workload",
    "Worker": "placewright_models.plan",
    "apply": "placewright.apply",
    "attach": "placewright.apply",
    "discover_ray": "placewright.discover",
    "explain": "placewright.explain",
    "export": "placewright.export",
    "load_plan": "placewright_models.codec",
    "load_problem": "placewright_models.codec",
    "plan": "placewright.pipeline",
    "problem_to_dict": "placewright_models.codec",
    "release": "placewright.apply",
    "simulate": "placewright.apply",
    "verify": "placewright.verify",
    "violations": "placewright.verify",
}
"""Every public name and the module that has it."""

__all__ = [*sorted(_HOME), "__version__"]

_NAMESAKES = frozenset(name for name, home in _HOME.items() if home == f"placewright.{name}")
"""Functions with the name of their module: ``apply``, ``explain``, ``export``, ``verify``."""


class _CallableModule(ModuleType):
    """A module that is called as its function: ``placewright.verify(...)`` and ``placewright.verify.violations`` both work."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return getattr(self, self.__name__.rpartition(".")[2])(*arguments, **options)


class _Package(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        """The import system binds a submodule here; one that shares its function's name becomes callable."""
        if name in _NAMESAKES and isinstance(value, ModuleType) and not callable(value):
            value.__class__ = _CallableModule
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("placewright")
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = import_module(home)
    value = module if name in _NAMESAKES else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
