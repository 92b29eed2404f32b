"""Stand-ins for Ray's module and functions that import Ray on first use.

Usage: ``ray: Any = LazyModule("ray")`` gives a module global that callers and tests may replace, while importing the
module that holds it neither needs nor loads Ray.

When to modify: only if a compat module needs another kind of late lookup.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


class LazyModule:
    """A module that is imported when an attribute of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        # Protocol probes (pickle, copy, inspect) must not import Ray.
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        # Not cached: a test that swaps sys.modules must be seen, and the lookup is one dictionary access.
        return getattr(importlib.import_module(self._name), attribute)

    def __reduce__(self) -> tuple[type[LazyModule], tuple[str]]:
        return type(self), (self._name,)

    def __repr__(self) -> str:
        return f"<lazy module {self._name!r}>"


class LazyAttribute:
    """A function or class of a module that is imported when it is called, asked for an attribute or used in isinstance."""

    def __init__(self, module: str, name: str) -> None:
        self._module = module
        self._name = name

    def _resolve(self) -> Any:
        return getattr(importlib.import_module(self._module), self._name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._resolve()(*args, **kwargs)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("__"):
            raise AttributeError(attribute)
        return getattr(self._resolve(), attribute)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, self._resolve())

    def __reduce__(self) -> tuple[type[LazyAttribute], tuple[str, str]]:
        return type(self), (self._module, self._name)

    def __repr__(self) -> str:
        return f"<lazy {self._module}.{self._name}>"


class LazyRemote:
    """A Ray task that is made from its function on first use; has ``options`` and ``remote`` like the real one.

    ``get_ray`` returns the Ray module to use. It is asked at every call, so that a test's replacement is honoured.
    """

    def __init__(self, function: Callable[..., Any], get_ray: Callable[[], Any], **options: Any) -> None:
        self._function = function
        self._get_ray = get_ray
        self._options = options
        self._made: tuple[Any, Any] | None = None

    def _task(self) -> Any:
        ray = self._get_ray()
        # One task object per Ray module: every new one would be exported to the cluster again.
        if self._made is None or self._made[0] is not ray:
            task = ray.remote(**self._options)(self._function) if self._options else ray.remote(self._function)
            self._made = (ray, task)
        return self._made[1]

    def options(self, **options: Any) -> Any:
        """The task with other Ray options; call ``.remote(...)`` on the result."""
        return self._task().options(**options)

    def remote(self, *args: Any, **kwargs: Any) -> Any:
        """Submit the task; returns Ray's object reference."""
        return self._task().remote(*args, **kwargs)
