"""A plan in force inside verl: entry point of the group ``verl.plugins``, which verl loads when it is imported.

Usage: set ``PLACEWRIGHT_PLAN`` to a plan file that the driver's and the task runner's node can read, and start verl as ever::

    PLACEWRIGHT_PLAN=/shared/plan.json python -m verl.trainer.main_ppo ...

Without the variable nothing happens. With it, pools whose ``name_prefix`` the plan knows (also ``rollout_pool_0``, ... of
standalone replicas) get placement groups on exactly the planned nodes and GPUs; all others are verl's own. Pools keep
verl's rank order by ip, read as numbers; ``PLACEWRIGHT_ORDER=topology`` asks for the plan's topological order. A verl that
does not load plugins takes this module through ``VERL_USE_EXTERNAL_MODULES=placewright.compat.verl_plugin``.

When to modify: when verl's pool class moves or its method changes. A plan file that cannot be read is an error at the first
pool, since verl hides errors of plugins.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import logging
import os
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from placewright.compat._plan_in_force import PLAN_VARIABLE, plan_in_force

ORDER_VARIABLE = "PLACEWRIGHT_ORDER"
"""Environment variable: ``ip`` or ``topology``."""
POOLS_MODULE = "verl.single_controller.ray.base"
RUNTIME_MODULE = "verl.trainer.constants_ppo"

log = logging.getLogger("placewright.verl")

_first_replica: dict[str, int] = {}
_places: dict[str, int] = {}
"""Rank order of the groups made here, by group id."""


def groups_for(pool: Any) -> list[Any] | None:
    """The planned placement groups of one of verl's pools, in rank order; None where the plan says nothing about it.

    Raises:
        PlanMismatch, ApplyTimeout: if the pool or the cluster is not as planned.
        InvalidProblem: if the plan file cannot be read.
    """
    plan = plan_in_force()
    if plan is None or not pool.use_gpu or not pool.store:
        return None
    from placewright.compat._verl_planned import cut, make_groups, pool_slots

    name = str(pool.name_prefix)
    order = os.environ.get(ORDER_VARIABLE, "ip")
    stem, _, number = name.rpartition("_")
    first = _first_replica.setdefault(stem, int(number)) if number.isdigit() else 0
    slots = pool_slots(plan, name, sum(pool.store), order, first)
    if slots is None:
        log.warning("the plan has no pool %s: verl places it itself", name)
        return None
    groups = cut(name, slots, pool.store)
    if len(set(pool.store)) > 1:
        # The counts in the order of the groups, as verl's workers are numbered.
        groups = tuple(sorted(groups, key=lambda group: [node for node, _ in slots].index(group[0])))
        pool._store = [len(gpus) for _, gpus in groups]
    prefix = f"{name}verl_group_{'_'.join(map(str, pool.store))}:"
    made, pool._placewright = make_groups(plan, prefix, groups, pool.max_colocate_count, bool(pool.detached))
    for group in made:
        _places[group.id.hex()] = len(_places)
    log.info("pool %s is on the planned GPUs: %s", name, groups)
    return made


def patch_pools(module: ModuleType) -> None:
    """Give verl's pool class the planned groups, and its sorting their order."""
    pool_class: Any = getattr(module, "RayResourcePool", None)
    if pool_class is None or getattr(pool_class.get_placement_groups, "_placewright", False):
        return
    original = pool_class.get_placement_groups

    def get_placement_groups(self: Any, *arguments: Any, **options: Any) -> Any:
        if self.pgs is None:
            self.pgs = groups_for(self)
        return self.pgs if self.pgs is not None else original(self, *arguments, **options)

    get_placement_groups._placewright = True  # type: ignore[attr-defined]
    pool_class.get_placement_groups = get_placement_groups
    sort: Any = getattr(module, "sort_placement_group_by_node_ip", None)
    if sort is None:
        return

    def sort_placement_group_by_node_ip(pgs: Sequence[Any]) -> list[Any]:
        places = [_places.get(group.id.hex()) for group in pgs]
        if None in places:
            return list(sort(pgs))
        return [group for _, group in sorted(zip(places, pgs, strict=True), key=lambda pair: pair[0] or 0)]

    module.sort_placement_group_by_node_ip = sort_placement_group_by_node_ip  # type: ignore[attr-defined]


def patch_runtime(module: ModuleType) -> None:
    """Hand the plan on to verl's task runner, which makes the pools in a process of its own."""
    original: Any = getattr(module, "get_ppo_ray_runtime_env", None)
    if original is None or getattr(original, "_placewright", False):
        return

    def get_ppo_ray_runtime_env(*arguments: Any, **options: Any) -> Any:
        # After verl's own function, which drops what this process has in its environment already.
        runtime = original(*arguments, **options)
        handed = {name: os.environ[name] for name in (PLAN_VARIABLE, ORDER_VARIABLE) if name in os.environ}
        if PLAN_VARIABLE in handed:
            handed[PLAN_VARIABLE] = os.path.abspath(handed[PLAN_VARIABLE])
        runtime.setdefault("env_vars", {}).update(handed)
        return runtime

    get_ppo_ray_runtime_env._placewright = True  # type: ignore[attr-defined]
    module.get_ppo_ray_runtime_env = get_ppo_ray_runtime_env  # type: ignore[attr-defined]


_PATCHES = {POOLS_MODULE: patch_pools, RUNTIME_MODULE: patch_runtime}


class _Finder(importlib.abc.MetaPathFinder):
    """Patches verl's modules right after they are loaded; verl loads plugins before them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _PATCHES:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                load(module)
                _PATCHES[fullname](module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def install() -> None:
    """Patch verl's modules, those already loaded now and the others when they are. Does nothing without a plan."""
    if not os.environ.get(PLAN_VARIABLE):
        return
    for name, patch in _PATCHES.items():
        module = sys.modules.get(name)
        if module is not None:
            patch(module)
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


install()
