"""One worker of an applied plan: where it is, as proved from inside its bundle, and a check for the actor itself.

Plain values, so that it can be sent to actors. Modify this file when a worker's place has a new property.
"""

from __future__ import annotations

from dataclasses import dataclass

from placewright.apply import rayapi
from placewright_models.errors import PlanMismatch


@dataclass(frozen=True, slots=True)
class AppliedWorker:
    """Where one worker is.

    Attributes:
        component: its component.
        index: its index there, which is its ``rank``.
        node_id: the node's id in the plan.
        ray_node_id: Ray's id of the node now.
        ip: the node's address.
        planned_gpus: node-local ids that the plan names; empty without GPU.
        gpu_ids: physical ids read back from inside the bundles, in the order of ``bundles``.
        gpu_uuids: the UUIDs of those GPUs, where the node has nvidia-smi.
        rank: rank in the component.
        world_size: workers of the component.
        local_rank: rank among the component's workers on the node.
        local_world_size: how many of them are on the node.
        group: name of its placement group.
        bundles: indices of its bundles there, one, or one per GPU.
        num_gpus: GPUs or share of one that it takes of each bundle.
        num_cpus: CPUs that it takes of each bundle.
        memory: bytes that it takes of each bundle.
        accelerator: Ray's resource name of its devices.
    """

    component: str
    index: int
    node_id: str
    ray_node_id: str
    ip: str
    planned_gpus: tuple[int, ...]
    gpu_ids: tuple[int, ...]
    gpu_uuids: tuple[str, ...]
    rank: int
    world_size: int
    local_rank: int
    local_world_size: int
    group: str
    bundles: tuple[int, ...]
    num_gpus: tuple[float, ...]
    num_cpus: tuple[float, ...]
    memory: tuple[int, ...]
    accelerator: str = "GPU"

    @property
    def bundle(self) -> int:
        """Index of its (first) bundle."""
        return self.bundles[0]

    def check_here(self, gpu: int | None = None) -> None:
        """Call inside the worker's actor: checks that it runs on its node and sees its GPUs.

        Args:
            gpu: for an actor that has one of several bundles, which one (as for ``AppliedPlan.options``).

        Raises:
            PlanMismatch: if node or GPU ids differ.
        """
        context = rayapi.ray_module().get_runtime_context()
        faults: list[str] = []
        if context.get_node_id() != self.ray_node_id:
            faults.append(f"runs on Ray node {context.get_node_id()[:8]}, not on {self.node_id} ({self.ray_node_id[:8]})")
        expected = self.gpu_ids if gpu is None else (self.gpu_ids[gpu],)
        seen = {str(value) for value in context.get_accelerator_ids().get(self.accelerator, [])}
        wanted = {str(value) for value in expected}
        names = set(self.gpu_uuids if gpu is None else self.gpu_uuids[gpu : gpu + 1])
        if seen != wanted and seen != names:
            faults.append(
                f"sees {self.accelerator}s {', '.join(sorted(seen)) or 'none'}, not {', '.join(sorted(wanted)) or 'none'}"
            )
        if faults:
            raise PlanMismatch(
                [f"{self.component} {self.index} {fault}" for fault in faults], "the actor is not where it should be"
            )
