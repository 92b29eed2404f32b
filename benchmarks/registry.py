"""What there is to run: families of seeded synthetic problems, and the named instances of each.

A family is one file in ``families/`` that calls ``register`` once when it is imported; nothing else has to be told.

Usage::

    for instance in instances():
        problem = instance.problem()

Modify this file when an instance needs another property; a new family is a new file.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

from placewright_models.codec import load_problem
from placewright_models.problem import Problem

GOALS = ("domain_span", "node_span", "nodes_used")
"""The goals of the issue's table; every component has span_weight 1 unless an instance is the ``-default`` one."""
Data = dict[str, Any]
Build = Callable[..., Data]


@dataclass(frozen=True)
class Instance:
    """One problem to run.

    Attributes:
        name: how it is called on the command line, e.g. ``A`` or ``equal-10k``.
        family: the family that builds it.
        build: makes the problem's plain data from ``seed`` and ``size``.
        size: the family's size parameters.
        seed: seed of everything random in it.
        group: ``target`` (the issue's table), ``growth`` (one point of a curve), ``sample`` (one of many random ones).
        time_limit: seconds for placewright.
        peer_limit: seconds for each peer.
        peers: names of the peers that run on it; None is all.
        default: leave kinds, span weights and goals at their defaults.
        feasible: False where the answer is a reason.
    """

    name: str
    family: str
    build: Build
    size: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 1
    group: str = "target"
    time_limit: float = 30.0
    peer_limit: float = 30.0
    peers: tuple[str, ...] | None = None
    default: bool = False
    feasible: bool = True

    def data(self) -> Data:
        """The problem as plain data."""
        data = self.build(self.seed, **self.size)
        if self.default:
            data.pop("goals", None)
            for component in data["components"].values():
                component.pop("span_weight", None)
        return data

    def problem(self) -> Problem:
        """The problem."""
        return load_problem(self.data())

    def with_defaults(self) -> Instance:
        """The same with the default kinds and goals."""
        return replace(self, name=f"{self.name}-default", default=True)


def fingerprint(data: Data) -> str:
    """What tells whether an instance built again is the one that was run."""
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Family:
    """A way to build problems, its instances, and the sizes of its smoke run."""

    name: str
    what: str
    build: Build
    instances: tuple[Instance, ...]
    smoke: tuple[Instance, ...]


_FAMILIES: dict[str, Family] = {}


def register(
    name: str,
    what: str,
    build: Build,
    smoke: Mapping[str, Any],
    instances: Mapping[str, Mapping[str, Any]],
    smoke_count: int = 1,
) -> Family:
    """Add a family.

    Args:
        name: its name.
        what: one sentence for README and report.
        build: makes a problem's plain data from a seed and size parameters.
        smoke: size parameters of a run in a fraction of a second.
        instances: name -> ``size`` and any other field of ``Instance``.
        smoke_count: how many seeds the smoke run takes.
    """
    known = _FAMILIES.get(name)
    if known is not None and known.build.__module__ != build.__module__:
        raise ValueError(f"two families are called {name}")
    found = tuple(Instance(title, name, build, **fields) for title, fields in instances.items())
    feasible = all(instance.feasible for instance in found) or name != "one_too_many"
    small = tuple(
        Instance(
            f"{name}-smoke{'' if index == 0 else index}", name, build, smoke, 1 + index, "smoke", 5.0, 1.0, feasible=feasible
        )
        for index in range(smoke_count)
    )
    family = _FAMILIES[name] = Family(name, what, build, found, small)
    return family


def families() -> tuple[Family, ...]:
    """Every family, each file of ``families/`` imported once."""
    package = import_module("benchmarks.families")
    for module in sorted(info.name for info in iter_modules(package.__path__)):
        if not module.startswith("_"):
            import_module(f"benchmarks.families.{module}")
    return tuple(_FAMILIES.values())


def instances(smoke: bool = False) -> Iterator[Instance]:
    """Every instance, the targets first and in the order of their letters."""
    found = [instance for family in families() for instance in (family.smoke if smoke else family.instances)]
    for group in ("smoke", "target", "growth", "sample"):
        here = [instance for instance in found if instance.group == group]
        yield from sorted(here, key=lambda instance: instance.name) if group == "target" else here


def chosen(names: list[str], smoke: bool = False) -> list[Instance]:
    """Instances by name, family or group; everything where no name is given.

    Raises:
        KeyError: for a name that there is not.
    """
    everything = list(instances(smoke))
    if not names:
        return everything
    found: list[Instance] = []
    for name in names:
        here = [one for one in everything if name in (one.name, one.family, one.group)]
        if not here:
            raise KeyError(name)
        found += [one for one in here if one not in found]
    return found
