"""Where Ray would put placement groups on an idle cluster, followed without Ray.

Ray serves groups one after another and never moves one again. A STRICT_PACK group goes to the node that keeps the
greatest share of what it asks for free (measured on 2.60, see tests/on_ray/test_compat_verl.py), so a small group can take
the large node from a later one although both would fit.

When to modify: when Ray chooses nodes in another way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from placewright_models.cluster import Node
from placewright_models.quantities import UNITS


@dataclass(slots=True)
class Room:
    """What is free on a node. CPUs in units of 1e-4; None is unlimited."""

    name: str
    gpus: int
    cpu_units: int | None

    def holds(self, gpus: int, cpus: int) -> bool:
        """Whether so many GPUs and CPUs are free."""
        return self.gpus >= gpus and (self.cpu_units is None or self.cpu_units >= cpus * UNITS)

    def take(self, gpus: int, cpus: int) -> None:
        """Take them."""
        self.gpus -= gpus
        if self.cpu_units is not None:
            self.cpu_units -= cpus * UNITS

    def bundles(self, cpus: int) -> int:
        """How many bundles of one GPU and so many CPUs there is room for."""
        if self.cpu_units is None or not cpus:
            return self.gpus
        return min(self.gpus, self.cpu_units // (cpus * UNITS))

    def left(self, gpus: int, cpus: int) -> float:
        """Ray's score: the share that stays free, summed over the resources that are asked for."""
        score = (self.gpus - gpus) / self.gpus if self.gpus and gpus else 0.0
        if cpus:
            score += 1.0 if self.cpu_units is None else (self.cpu_units - cpus * UNITS) / self.cpu_units
        return score


class Rooms:
    """The free room of all nodes that Ray has; head nodes too, since frameworks do not leave them out."""

    def __init__(self, nodes: Iterable[Node]) -> None:
        self.all = [Room(node.id, node.available_gpus, node.free_cpu_units) for node in nodes if node.excluded is None]

    @property
    def gpus(self) -> int:
        """Free GPUs of all nodes."""
        return sum(room.gpus for room in self.all)

    @property
    def cpus(self) -> int | None:
        """Free CPUs of all nodes; None is unlimited."""
        if any(room.cpu_units is None for room in self.all):
            return None
        return sum(room.cpu_units or 0 for room in self.all) // UNITS

    def strict_pack(self, gpus: int, cpus: int, allowed: Collection[str] | None = None) -> str | None:
        """Put a group on one node and return its name; None where it waits."""
        fitting = [room for room in self.all if room.holds(gpus, cpus) and (allowed is None or room.name in allowed)]
        if not fitting:
            return None
        best = max(fitting, key=lambda room: room.left(gpus, cpus))
        best.take(gpus, cpus)
        return best.name

    def pack(self, count: int, cpus: int, allowed: Collection[str] | None = None) -> list[str] | None:
        """Put ``count`` bundles of one GPU on one node if one has room, else on as few as possible; a name per bundle."""
        whole = self.strict_pack(count, count * cpus, allowed)
        if whole is not None:
            return [whole] * count
        rooms = [room for room in self.all if allowed is None or room.name in allowed]
        if sum(room.bundles(cpus) for room in rooms) < count:
            return None
        names: list[str] = []
        for room in sorted(rooms, key=lambda room: -room.bundles(cpus)):
            taken = min(room.bundles(cpus), count - len(names))
            room.take(taken, taken * cpus)
            names += [room.name] * taken
        return names

    def spread(self, count: int, cpus: int) -> list[str] | None:
        """Put ``count`` bundles of one GPU one after another on different nodes, over and over; a name per bundle."""
        if sum(room.bundles(cpus) for room in self.all) < count:
            return None
        names: list[str] = []
        while len(names) < count:
            for room in self.all:
                if len(names) < count and room.bundles(cpus):
                    room.take(1, cpus)
                    names.append(room.name)
        return names

    def told(self, cpus: int) -> str:
        """Free GPUs (and CPUs where they are asked for and bounded) of each node that has any, for messages."""
        shown = [
            f"{room.name} {room.gpus} GPUs"
            + (f" and {room.cpu_units / UNITS:g} CPUs" if cpus and room.cpu_units is not None else "")
            for room in self.all
            if room.gpus
        ]
        return ", ".join(shown[:6]) + (f", and {len(shown) - 6} more nodes" if len(shown) > 6 else "") or "no GPUs"
