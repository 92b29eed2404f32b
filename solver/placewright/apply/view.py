"""The live cluster as Ray shows it now: nodes, what they have, what is free.

Modify this file when a node of the live cluster gets a new property that matching, checking or discovery needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from placewright.apply import rayapi
from placewright_models.quantities import UNITS

ACCELERATORS = ("GPU", "NPU", "TPU", "HPU", "neuron_cores", "RBLN", "FURIOSA", "MBLT", "TTNPU")
"""Ray resources that are devices with an id of their own, in the order in which a node's is looked for."""
_HEAD = "node:__internal_head__"


@dataclass(frozen=True, slots=True)
class LiveNode:
    """One Ray node. ``total`` and ``free`` are Ray's resources by name; ``death`` says why a dead node died."""

    ray_id: str
    ip: str
    host: str
    name: str
    alive: bool = True
    total: Mapping[str, float] = field(default_factory=dict)
    free: Mapping[str, float] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    death: str = ""

    @property
    def head(self) -> bool:
        """Whether it is the head node."""
        return _HEAD in self.total

    @property
    def accelerator(self) -> str:
        """Ray's resource name of its devices; ``GPU`` where it has none."""
        return next((name for name in ACCELERATORS if self.total.get(name)), "GPU")

    @property
    def gpus(self) -> int:
        """How many devices it has."""
        return int(self.total.get(self.accelerator, 0))

    @property
    def free_gpus(self) -> float:
        """How many of its devices nobody has reserved; parts of one count."""
        return self.free.get(self.accelerator, 0.0)

    @property
    def free_cpu_units(self) -> int:
        """Free CPUs in units of 1e-4."""
        return round(self.free.get("CPU", 0.0) * UNITS)

    def __str__(self) -> str:
        return f"{self.host} (NodeName {self.name}, ip {self.ip})"


def live_nodes() -> list[LiveNode]:
    """Every node that Ray knows, dead ones too, as it stands now. Needs a connection."""
    free = rayapi.available_by_node()
    return [_live_node(entry, free.get(str(entry["NodeID"]), {})) for entry in rayapi.ray_module().nodes()]


def _live_node(entry: Mapping[str, Any], free: Mapping[str, float]) -> LiveNode:
    return LiveNode(
        ray_id=str(entry["NodeID"]),
        ip=str(entry.get("NodeManagerAddress", "")),
        host=str(entry.get("NodeManagerHostname", "")),
        name=str(entry.get("NodeName", "")),
        alive=bool(entry.get("Alive")),
        total=dict(entry.get("Resources") or {}),
        free=dict(free),
        labels={str(key): str(value) for key, value in (entry.get("Labels") or {}).items()},
        death=str(entry.get("DeathReasonMessage") or ""),
    )
