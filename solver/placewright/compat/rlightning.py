"""RLightning's placement with its own names, arguments, results and errors, and our planner behind them.

Usage: in place of ``rlightning.utils.placement``::

    from placewright.compat.rlightning import ComponentScheduling, GlobalResourceManager, ResourcePoolPlanner, Scheduling

``ResourcePoolPlanner(scheduling, cluster_info)`` plans with CP-SAT: every worker whole, shares and CPUs kept, every pool
complete. ``solver="greedy"`` is RLightning's own planner to the letter, defects included. Nothing here imports Ray before
``GlobalResourceManager.initialize`` (or a planner without ``cluster_info``) asks it for the cluster.

When to modify: when RLightning's placement module gets another public name.
"""

from __future__ import annotations

from placewright.compat._rlightning_manager import GlobalResourceManager, get_global_resource_manager
from placewright.compat._rlightning_planner import InfeasibleScheduling, ResourcePoolPlanner, get_cluster_resources
from placewright.compat._rlightning_problem import PlannedPool
from placewright.greedy.reference.planner import (
    ComponentAllocation,
    ComponentScheduling,
    NodeResource,
    ResourcePool,
    Scheduling,
)

__all__ = [
    "ComponentAllocation",
    "ComponentScheduling",
    "GlobalResourceManager",
    "InfeasibleScheduling",
    "NodeResource",
    "PlannedPool",
    "ResourcePool",
    "ResourcePoolPlanner",
    "Scheduling",
    "get_cluster_resources",
    "get_global_resource_manager",
]
