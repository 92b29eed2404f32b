"""Every goal of design.md section 5, one file each, listed once.

``GOALS`` is the only list: the verifier and the solver both look goals up there by name. To add a goal, write its file, put
it here, and add its name to ``placewright_models.workload.GOAL_NAMES``.
"""

from __future__ import annotations

from placewright.goals.domain_capacity import DomainCapacity
from placewright.goals.domain_span import DomainSpan
from placewright.goals.evenness import Evenness
from placewright.goals.goal import Goal
from placewright.goals.gpu_nodes_used import GpuNodesUsed
from placewright.goals.groups_split import GroupsSplit
from placewright.goals.moves import Moves
from placewright.goals.node_span import NodeSpan
from placewright.goals.nodes_used import NodesUsed
from placewright.goals.traffic import TrafficCost
from placewright.goals.unplaced import Unplaced

GOALS: tuple[Goal, ...] = (
    Unplaced(),
    Moves(),
    GroupsSplit(),
    DomainSpan(),
    TrafficCost(),
    NodeSpan(),
    GpuNodesUsed(),
    NodesUsed(),
    Evenness(),
    DomainCapacity(),
)
"""Every goal, in the default order."""

GOAL_BY_NAME: dict[str, Goal] = {goal.name: goal for goal in GOALS}
"""Goals by the name that the problem file uses."""

__all__ = ["GOALS", "GOAL_BY_NAME", "Goal"]
