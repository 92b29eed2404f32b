"""Reading a framework's configuration: plain data or OmegaConf-like objects, overrides, and references inside it.

Usage: ``settings = read(config, overrides, "verl")``, then ``settings.whole("trainer.nnodes", 1)``. Faults are collected
in ``settings.faults``; ``settings.done()`` raises them all at once. ``load_file(path)`` reads a file with what its
``defaults`` name.

When to modify: when configurations come in another form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from placewright.compat.rlightning_config import plain
from placewright_models.errors import Fault, InvalidProblem

_REFERENCE = re.compile(r"\$\{(?:oc\.select:)?\s*([\w.]+)\s*(?:,\s*([^{}]*))?\}")
_DEPTH = 20
"""References that lead on further than this go in a circle."""
MISSING = "???"
"""OmegaConf's mark of a value that somebody must still give."""


class Settings:
    """A configuration that is asked by dotted keys.

    Attributes:
        data: the configuration as plain data.
        faults: what was wrong so far.
        notes: what was assumed so far.
    """

    def __init__(self, data: dict[str, Any], framework: str) -> None:
        self.data = data
        self.framework = framework
        self.faults: list[Fault] = []
        self.notes: list[str] = []

    def get(self, key: str, default: Any = None) -> Any:
        """The value under a dotted key with its references followed; the default where it is absent or null."""
        found = self._find(key)
        return default if found is None else found

    def first(self, keys: Iterable[str], default: Any = None) -> Any:
        """The value of the first key that has one: names changed between versions."""
        return next((found for key in keys if (found := self._find(key)) is not None), default)

    def has(self, key: str) -> bool:
        """Whether there is a value that is not null."""
        return self._find(key) is not None

    def whole(self, key: str, default: int, least: int = 1) -> int:
        """A whole number of at least ``least``; a fault and the default where it is something else."""
        value = self.get(key, default)
        if isinstance(value, str) and re.fullmatch(r"-?\d+", value.strip()):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            self.faults.append(Fault(key, f"{value!r} is not a whole number", f"at least {least}"))
            return default
        return value

    def flag(self, key: str, default: bool = False) -> bool:
        """A truth value."""
        value = self.get(key, default)
        return value.strip().lower() in ("true", "1", "yes") if isinstance(value, str) else bool(value)

    def done(self) -> None:
        """Raise what was found wrong.

        Raises:
            InvalidProblem: with all faults.
        """
        if self.faults:
            raise InvalidProblem(self.faults, self.framework)

    def _find(self, key: str, depth: int = 0) -> Any:
        value: Any = self.data
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        return self._resolved(value, depth)

    def _resolved(self, value: Any, depth: int) -> Any:
        if not isinstance(value, str) or depth > _DEPTH:
            return value
        if value == MISSING:
            return None
        reference = _REFERENCE.fullmatch(value.strip())
        if reference is not None:
            found = self._find(reference[1], depth + 1)
            return yaml.safe_load(reference[2]) if found is None and reference[2] else found
        # Anything else in braces is computed by a resolver that is not known here.
        return None if "${" in value else value


def read(config: Any, overrides: Iterable[str], framework: str) -> Settings:
    """The configuration with ``key=value`` overrides laid over it.

    Args:
        config: a mapping, an object with a mapping's methods (OmegaConf), or the path of a YAML file.
        overrides: as on the framework's command line; ``+``, ``++`` and ``~`` in front as Hydra has them.
        framework: name for messages.

    Raises:
        InvalidProblem: if it is no configuration.
    """
    data = load_file(config) if isinstance(config, (str, Path)) else plain(config)
    if not isinstance(data, dict):
        raise InvalidProblem([Fault("", "not a configuration", f"a mapping with the settings of {framework}")])
    for text in overrides:
        _override(data, text)
    return Settings(data, framework)


def load_file(path: str | Path) -> dict[str, Any]:
    """A YAML file laid over the files that its ``defaults`` name (paths, as NeMo-RL's recipes have them).

    Raises:
        InvalidProblem: if a file is missing or no mapping.
    """
    return _load(Path(path), ())


def _load(path: Path, seen: tuple[Path, ...]) -> dict[str, Any]:
    if path.resolve() in seen:
        raise InvalidProblem([Fault(str(path), "names itself among its defaults")])
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidProblem([Fault(str(path), f"cannot be read: {error}")]) from error
    if not isinstance(data, dict):
        raise InvalidProblem([Fault(str(path), "not a configuration", "a mapping")])
    named = data.pop("defaults", None)
    merged: dict[str, Any] = {}
    for name in [named] if isinstance(named, str) else named if isinstance(named, list) else []:
        # Hydra's config groups (mappings, _self_) belong to an installed package and are not found beside the file.
        if isinstance(name, str) and name.endswith((".yaml", ".yml")):
            merged = _merged(merged, _load(path.parent / name, (*seen, path.resolve())))
    return _merged(merged, data)


def _merged(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        old = result.get(key)
        result[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, Mapping) else value
    return result


def _override(data: dict[str, Any], text: str) -> None:
    key, found, value = text.partition("=")
    parts = key.strip().lstrip("+~").split(".")
    if not found or not all(parts):
        raise InvalidProblem([Fault(text, "no override", "write key=value, such as trainer.nnodes=2")])
    target = data
    for part in parts[:-1]:
        inner = target.get(part)
        if not isinstance(inner, dict):
            inner = target[part] = {}
        target = inner
    try:
        target[parts[-1]] = yaml.safe_load(value)
    except yaml.YAMLError:
        raise InvalidProblem([Fault(key, f"{value!r} cannot be read")]) from None
