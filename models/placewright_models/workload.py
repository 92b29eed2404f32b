"""The job: components, their rules, their traffic.

Everything is frozen and complete: defaults are already filled in (``kind``, ``span_weight``, ``spread``, group ``within``).
Modify this file when a component or the rules section gets a new field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from placewright_models.quantities import UNITS, natural_key, units_of

ORDER_ON_NODE = ("train", "actor", "critic", "ref", "reward", "rollout", "eval", "env", "buffer")
"""Left to right on a node; other names follow, naturally ordered (design.md section 4, H7)."""

KIND_BY_NAME = {
    "train": "collective",
    "actor": "collective",
    "policy": "collective",
    "critic": "collective",
    "ref": "collective",
    "teacher": "collective",
    "rollout": "replicas",
    "generation": "replicas",
    "eval": "replicas",
    "reward": "replicas",
    "env": "helpers",
}

GOAL_NAMES = (
    "unplaced",
    "moves",
    "groups_split",
    "domain_span",
    "traffic",
    "node_span",
    "gpu_nodes_used",
    "nodes_used",
    "evenness",
    "domain_capacity",
)
"""Every goal there is; ``moves`` only with a previous plan."""

DEFAULT_GOALS = tuple(name for name in GOAL_NAMES if name != "moves")


def component_key(name: str) -> tuple[int, tuple[str | int, ...], str]:
    """Canonical order of components: the order on a node, then natural names."""
    place = ORDER_ON_NODE.index(name) if name in ORDER_ON_NODE else len(ORDER_ON_NODE)
    return (place, natural_key(name), name)


@dataclass(frozen=True, slots=True)
class Group:
    """``workers`` workers that talk all the time and should lie inside one unit of level ``within``."""

    workers: int
    within: str
    mode: str = "required"

    @property
    def required(self) -> bool:
        return self.mode == "required"


@dataclass(frozen=True, slots=True)
class Component:
    """A role of the job. Counts are in workers; ``gpus`` and ``cpus`` are per worker, memory in bytes per worker.

    ``min_workers`` and ``max_workers`` are equal unless the component is elastic; both are None for ``workers: auto``
    (as many as ``per_node_of`` asks). ``per_node`` is a number (that many on each used node), a tuple (a multiset:
    exactly these nodes in any order) or None.
    """

    name: str
    min_workers: int | None
    max_workers: int | None
    gpus: Decimal = Decimal(0)
    cpus: Decimal = Decimal(1)
    memory: int = 0
    gpu_share: Decimal | None = None
    kind: str = "collective"
    accelerator: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    node_ids: tuple[str, ...] | None = None
    exclude_node_ids: tuple[str, ...] = ()
    group: Group | None = None
    segment_size: int | None = None
    segment_mode: str = "required"
    nodes: int | None = None
    per_node: int | tuple[int, ...] | None = None
    spread: str = "pack"
    span_weight: int = 1
    priority: int = 1
    aligned: bool = False
    per_node_of: str | None = None

    @property
    def elastic(self) -> bool:
        return self.min_workers != self.max_workers

    @property
    def auto(self) -> bool:
        """One worker on each node of ``per_node_of``, however many that are."""
        return self.max_workers is None

    @property
    def fractional(self) -> bool:
        """Its workers take a share below one GPU."""
        return 0 < self.gpus < 1

    @property
    def gpus_per_worker(self) -> int:
        """Whole GPUs of one worker; 0 for CPU-only and for fractional workers."""
        return int(self.gpus) if self.gpus >= 1 else 0

    @property
    def share_units(self) -> int | None:
        """Share of each of its GPUs that one worker holds, in units of 1e-4; None where it gives none."""
        if self.fractional:
            return units_of(self.gpus)
        return None if self.gpu_share is None else units_of(self.gpu_share)

    @property
    def workers_per_gpu(self) -> int:
        """Most workers on one GPU when alone there: 1 for whole workers, 0 without GPU."""
        if not self.fractional:
            return 1 if self.gpus else 0
        return UNITS // units_of(self.gpus)

    @property
    def cpu_units(self) -> int:
        """CPUs of one worker in units of 1e-4."""
        return units_of(self.cpus)

    @property
    def segment_required(self) -> bool:
        return self.segment_mode == "required"


@dataclass(frozen=True, slots=True)
class Traffic:
    """Workers of the two components talk to each other; ``weight`` says how much a missing local partner costs."""

    between: tuple[str, str]
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules section. ``pools`` is complete: every component once, in order; ``explicit_pools`` says who wrote it."""

    strategy: str | None = None
    env_strategy: str | None = None
    pools: tuple[tuple[str, tuple[str, ...]], ...] = ()
    explicit_pools: bool = False
    share_gpus: tuple[tuple[str, ...], ...] = ()
    colocate: tuple[tuple[str, ...], ...] = ()
    same_node: tuple[tuple[str, ...], ...] = ()
    same_domain: tuple[tuple[str, ...], ...] = ()
    separate_nodes: tuple[tuple[str, ...], ...] = ()
    separate_domains: tuple[tuple[str, ...], ...] = ()
