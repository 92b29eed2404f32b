"""Carrying a plan out on Ray: placement groups on exactly the planned nodes and GPUs, proved by reading back.

::

    with placewright.apply(plan) as applied:
        actors = [Trainer.options(**applied.options("train", i)).remote() for i in range(64)]

The way: ``bundles`` (plan -> groups) -> ``match`` (plan nodes -> live nodes) -> ``room`` (is there room) -> ``groups`` and
``probe`` (make, wait, read back, remove) -> ``exact`` (until the ids are right) -> ``applied`` (what the user gets); ``run``
puts them in order, ``record`` keeps detached plans, ``simulate`` brings a cluster along. Only ``rayapi`` touches what is
private in Ray. Importing this package imports no Ray.

This module can be called: ``placewright.apply(plan)`` and ``placewright.apply.simulate(plan)`` both work. Modify this file
when a name becomes public.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from placewright.apply.applied import AppliedPlan, WorkerHealth
from placewright.apply.errors import ApplyTimeout, DetachedNameError, NodeRoom
from placewright.apply.ports import PortWindow
from placewright.apply.readback import HEADER, ReadbackRow, readback_rows, readback_text
from placewright.apply.run import apply, attach, release
from placewright.apply.simulate import SimulatedCluster, simulate
from placewright.apply.worker import AppliedWorker

__all__ = [
    "HEADER",
    "AppliedPlan",
    "AppliedWorker",
    "ApplyTimeout",
    "DetachedNameError",
    "NodeRoom",
    "PortWindow",
    "ReadbackRow",
    "SimulatedCluster",
    "WorkerHealth",
    "apply",
    "attach",
    "readback_rows",
    "readback_text",
    "release",
    "simulate",
]


class _CallableModule(ModuleType):
    """The package and the function have one name, ``placewright.apply``; whichever was bound last, a call works."""

    def __call__(self, *arguments: Any, **options: Any) -> AppliedPlan:
        return apply(*arguments, **options)


sys.modules[__name__].__class__ = _CallableModule
