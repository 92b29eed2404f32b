"""The public names, and what importing them costs."""

from __future__ import annotations

import importlib
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

import placewright

HEAVY = ("ray", "ortools", "matplotlib", "plotly", "pandas", "numpy", "networkx", "pydantic", "typer", "rich")


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def loaded_after(statement: str) -> set[str]:
    return set(run(f"import sys\n{statement}\nprint(*[m for m in {HEAVY!r} if m in sys.modules])").split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_after("import placewright; dir(placewright)") == set()


def test_a_plan_is_verified_and_exported_without_solver_or_ray() -> None:
    code = "from placewright import verify, export, load_plan; verify.violations; export.TARGETS; load_plan"
    assert not loaded_after(code) & {"ray", "ortools", "networkx", "matplotlib", "pandas"}


@pytest.mark.parametrize("command", [["verify"], ["export", "--format", "text"], ["export", "--format", "yaml"]])
def test_plans_are_read_without_solver(command: list[str], tmp_path: Path) -> None:
    """Neither OR-Tools nor what comes with it."""
    path = tmp_path / "plan.json"
    problem = {"cluster": {"nodes": [{"id": "a", "gpus": 2}]}, "components": {"train": {"workers": 2, "gpus": 1}}}
    path.write_text(placewright.export(placewright.plan(placewright.load_problem(problem)), "json"))
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(('ortools', 'numpy', 'pandas', 'highspy', 'ray')))\n"
        f"sys.argv = ['placewright', {command[0]!r}, {str(path)!r}, *{command[1:]!r}]\n"
        "from placewright.cli import main\n"
        "main()\n"
    )
    assert run(code)


def test_apply_and_discovery_load_no_ray_until_called() -> None:
    assert not loaded_after("from placewright import apply, discover_ray, simulate") & {"ray", "ortools"}


def test_importing_costs_little() -> None:
    def least(code: str) -> float:
        times = []
        for _ in range(3):
            started = time.perf_counter()
            run(code)
            times.append(time.perf_counter() - started)
        return min(times)

    # The shared machine is noisy, so the margin is wide: what is seen here is a heavy import slipping in.
    assert least("import placewright") < 1.5 * least("from pydantic import BaseModel") + 0.1


@pytest.mark.parametrize("name", placewright.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(placewright, name) is not None
    assert name in dir(placewright)


def test_type_checkers_see_the_same_names() -> None:
    source = importlib.util.find_spec("placewright").origin  # type: ignore[union-attr]
    assert source is not None
    with open(source, encoding="utf-8") as file:
        text = file.read()
    for name in placewright.__all__:
        assert name == "__version__" or f"import {name} as {name}\n" in text, name


def test_an_absent_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'plam'"):
        placewright.plam  # noqa: B018
    assert not hasattr(placewright, "__wrapped__")


@pytest.mark.parametrize("name", ["apply", "explain", "export", "verify"])
def test_functions_named_as_their_module_work_both_ways(name: str) -> None:
    module = importlib.import_module(f"placewright.{name}")
    assert isinstance(module, ModuleType)
    assert getattr(placewright, name) is module
    assert callable(module)


@pytest.mark.parametrize(
    "first",
    ["import placewright.verify", "import placewright.pipeline", "from placewright.verify import verify", "placewright.verify"],
)
def test_the_call_works_whatever_was_imported_first(first: str) -> None:
    code = f"""
import placewright
{first}
problem = placewright.load_problem({{"cluster": {{"nodes": []}}, "components": {{}}}})
idle = placewright.Plan("optimal", "cp-sat", (), (), {{}}, __import__("placewright_models.plan").plan.Idle(), (), problem)
print(len(placewright.verify.violations(problem, idle)) > 0)
try:
    placewright.verify(problem, idle)
except placewright.PlanMismatch:
    print("called")
"""
    assert run(code).split() == ["True", "called"]
