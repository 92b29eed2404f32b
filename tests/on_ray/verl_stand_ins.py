"""verl's own single controller without what it imports and does not use here: torch, tensordict and the like.

``pip install verl --no-deps`` is a small download; with it the real RayWorkerGroup runs. ``load_verl(folder)`` gives verl's
module ``verl.single_controller.ray.base``, or skips the test where verl is not installed. Missing packages are stood in for.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
import types
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock

import pytest

PACKAGES = (
    "torch",
    "tensordict",
    "transformers",
    "pandas",
    "datasets",
    "accelerate",
    "peft",
    "codetiming",
    "hydra",
    "omegaconf",
    "torchdata",
)


class _StandIn(types.ModuleType):
    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = mock.MagicMock(name=f"{self.__name__}.{name}")
        setattr(self, name, value)
        return value


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, names: set[str]) -> None:
        self._names = names

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        wanted = fullname.partition(".")[0] in self._names
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True) if wanted else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def load_verl(folder: Path) -> Any:
    """verl's ``verl.single_controller.ray.base``, with our entry point in force as if the wheel were installed."""
    if importlib.util.find_spec("verl") is None:
        pytest.skip("verl is not installed: pip install verl --no-deps")
    missing = {name for name in PACKAGES if name not in sys.modules and importlib.util.find_spec(name) is None}
    sys.meta_path.append(_Finder(missing))
    if "torch" in missing:
        torch = importlib.import_module("torch")
        torch.__version__ = "2.8.0"
        torch.cuda.is_available = lambda: True
        torch.npu.is_available = lambda: False
        # Without a real torch verl cannot tell the platform.
        os.environ["VERL_PLATFORM"] = "nvidia"
    if "tensordict" in missing:
        importlib.import_module("tensordict").__version__ = "0.8.0"
    info = folder / "placewright_entry-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: placewright-entry\nVersion: 0\n")
    # As pyproject.toml has it; the package need not be installed for these tests.
    (info / "entry_points.txt").write_text("[verl.plugins]\nplacewright = placewright.compat.verl_plugin\n")
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    importlib.import_module("verl")
    return importlib.import_module("verl.single_controller.ray.base")
