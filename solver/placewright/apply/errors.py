"""How applying a plan can fail beyond ``PlanMismatch``: time ran out, or a name for detached groups is taken or unknown.

The facts behind each message are attributes. Modify this file when applying can fail in a new way.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placewright_models.errors import PlacewrightError


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """What the plan takes on a node, and what is free there: GPUs and CPUs in whole numbers or decimals."""

    wanted_gpus: float
    free_gpus: float
    wanted_cpus: float
    free_cpus: float


class ApplyTimeout(PlacewrightError, TimeoutError):
    """The time limit passed before Ray had carried out the plan. Everything made so far was removed.

    Attributes:
        waited_s: seconds since ``apply`` was called.
        states: Ray's own state of each group of the plan, e.g. ``PENDING / NO_RESOURCES``.
        nodes: plan node -> what the groups still waiting want there and what is free.
        short: one sentence for each thing that is short.
    """

    def __init__(self, waited_s: float, states: Mapping[str, str], nodes: Mapping[str, NodeRoom], short: Sequence[str]) -> None:
        self.waited_s = waited_s
        self.states = dict(states)
        self.nodes = dict(nodes)
        self.short = tuple(short)
        lines = [f"the plan was not applied within {waited_s:.1f} s; everything made for it was removed"]
        lines += [f"  group {name}: {state}" for name, state in self.states.items()]
        lines += [
            f"  node {name}: wants {room.wanted_gpus:g} GPUs and {room.wanted_cpus:g} CPUs,"
            f" free are {room.free_gpus:g} GPUs and {room.free_cpus:g} CPUs"
            for name, room in self.nodes.items()
        ]
        lines += [f"  {sentence}" for sentence in self.short]
        super().__init__("\n".join(lines))


class DetachedNameError(PlacewrightError, LookupError):
    """A name for a detached plan is already in use, or nothing is applied under it. ``name`` is that name."""

    def __init__(self, name: str, message: str) -> None:
        self.name = name
        super().__init__(message)
