"""What happens when RLightning starts a configuration: its planner, then its placement groups, followed without Ray.

Source: reference.md, sections 1.7 and 2. Usage: through :mod:`placewright.compat.rlightning_config`.

When to modify: when RLightning's group stage changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from placewright.greedy.reference.planner import ComponentScheduling, NodeResource, ResourcePool, ResourcePoolPlanner
from placewright_models.ranges import format_ranges, ranges_of

_ACTORS_PER_GPU = 10
"""Actors ask for 0.1 GPU each whenever a placement strategy is in force, so that a GPU bundle holds ten."""


class Start:
    """One start on a cluster.

    Attributes:
        verdict: ``starts``, ``fails``, ``hangs`` or ``splits``; the worst that was found.
        findings: sentences.
    """

    def __init__(self, scheduling: ComponentScheduling, nodes: Mapping[str, NodeResource]) -> None:
        self.scheduling = scheduling
        self.nodes = nodes
        self.verdict = "starts"
        self.findings: list[str] = []
        self._needs: dict[str, list[float]] = {}
        for name, worker in (("train", scheduling.train_worker), ("eval", scheduling.eval_worker)):
            if worker is not None:
                self._needs[name] = [worker.num_gpus] * int(worker.worker_num)
        self._needs["env"] = [group.num_gpus for group in scheduling.env_worker or () for _ in range(int(group.worker_num))]

    def _find(self, verdict: str, sentence: str) -> None:
        order = ("starts", "splits", "hangs", "fails")
        self.verdict = max(self.verdict, verdict, key=order.index)
        self.findings.append(sentence)

    def run(self, mode: str, strategy: str, env_strategy: str, pools_cfg: Sequence[Mapping[str, Any]]) -> None:
        """Follow the start to its end or to the first step that stops it."""
        if mode == "auto" and strategy == "default":
            self._default()
            return
        resources = {
            node.node_id: {"ip": node.ip, "CPU": node.total_cpus, "GPU": node.total_gpus} for node in self.nodes.values()
        }
        planner = ResourcePoolPlanner(self.scheduling, {"node_id_to_resources": resources})
        try:
            if mode == "manual":
                pools = planner.load_manual_resource_pools(pools_cfg)
            else:
                pools = planner.plan_resource_pools(strategy, env_strategy)
        except (ValueError, RuntimeError, AssertionError, KeyError, TypeError) as error:
            if "is outside the pool" in str(error):
                self._find("hangs", f"reading the pools never ends: {error}")
            else:
                self._find("fails", f"its planner stops: {type(error).__name__}: {error}")
            return
        self._split_workers(pools)
        self._groups(pools)

    def _split_workers(self, pools: Mapping[str, ResourcePool]) -> None:
        """Workers of several GPUs whose GPUs lie on two nodes."""
        for name, needs in self._needs.items():
            width = max(needs, default=0)
            if width <= 1:
                continue
            spots = [
                (node.node_id, gpu)
                for pool in pools.values()
                for node in pool.nodes
                for start, end in node.allocations.get(name, ())
                for gpu in range(int(start), int(end) + 1)
            ]
            taken = 0
            for index, need in enumerate(needs):
                piece = dict.fromkeys(node_id for node_id, _ in spots[taken : taken + int(need)])
                taken += int(need)
                if len(piece) > 1:
                    self._find("splits", f"{name} worker {index} of {need:g} GPUs is cut over {' and '.join(piece)}")
                    break

    def _groups(self, pools: Mapping[str, ResourcePool]) -> None:
        """One group per pool and node, one bundle per GPU; then all workers must have been put on one."""
        placed: dict[str, int] = {}
        tracked: dict[str, int] = {}
        held: dict[str, list[int]] = {}
        for pool in pools.values():
            for name in pool.component_types:
                if name in self._needs:
                    tracked[name] = len(self._needs[name])
                elif name != "buffer":
                    self._find("fails", f"{name} is in {pool.name}, and RLightning knows train, eval, env and buffer only")
                    return
            for node in pool.nodes:
                if not node.total_gpus:
                    self._find("fails", f"{node.node_id} is in {pool.name} and has no GPU: AssertionError")
                    return
                held.setdefault(node.node_id, [0, 0])
                for which, amount in enumerate(self._pack(pool, node, placed)):
                    held[node.node_id][which] += amount
        for name, total in tracked.items():
            if placed.get(name, 0) != total:
                self._find("fails", f"{name} workers placed number mismatch: {placed.get(name, 0)}/{total}")
        for name, needs in self._needs.items():
            if needs and name not in tracked:
                free = sum(node.total_gpus for node in self.nodes.values()) - sum(gpus for _, gpus in held.values())
                room = free * _ACTORS_PER_GPU >= len(needs)
                where = "wherever Ray puts them, on no planned GPU" if room else f"nowhere: {free} GPUs are left for them"
                self._find("starts" if room else "hangs", f"{name} is in no pool: its {len(needs)} workers go {where}")
        for node_id, amounts in held.items():
            node = self.nodes[node_id]
            for amount, have, what in zip(amounts, (node.total_cpus, node.total_gpus), ("CPUs", "GPUs"), strict=True):
                if amount > have:
                    asked = f"the groups on {node_id} ask for {amount} {what} and it has {have}"
                    self._find("hangs", f"{asked}: Ray waits for ever")

    def _pack(self, pool: ResourcePool, node: NodeResource, placed: dict[str, int]) -> tuple[int, int]:
        """Put workers on the units of their ranges as RLightning does; returns CPUs and GPUs of the node's bundles."""
        actors: dict[int, int] = {}
        cpus = [0] * node.total_gpus
        on_node: set[str] = set()
        for name in pool.component_types:
            needs = self._needs.get(name)
            if needs is None or name not in node.allocations:
                continue
            each = 1 if name == "env" or self._cpus(name) is None else self._cpus(name)
            room = [1.0] * node.total_gpus
            for start, end in node.allocations[name]:
                for gpu in range(int(start), int(end) + 1):
                    done = placed.get(name, 0)
                    while done < len(needs) and room[gpu] >= needs[done]:
                        room[gpu] -= needs[done]
                        cpus[gpu] += int(each or 0)
                        actors[gpu] = actors.get(gpu, 0) + 1
                        on_node.add(name)
                        done += 1
                        placed[name] = done
        crowded = [gpu for gpu, count in actors.items() if count > _ACTORS_PER_GPU]
        if crowded:
            where = format_ranges(ranges_of(crowded))
            self._find("hangs", f"more than {_ACTORS_PER_GPU} workers of 0.1 GPU on GPU {where} of {node.node_id}")
        hole = sum(not cpus[gpu] for gpu in range(max(actors, default=-1) + 1))
        if hole:
            # Bundles without CPUs are dropped, and the workers after them keep the old number of theirs (D9, FC-15).
            text = f"{hole} unused GPUs of {node.node_id} lie before used ones"
            self._find("hangs", f"{text}: their bundles are dropped and workers point at bundles that are not theirs")
        train = bool(node.allocations.get("train"))
        if train and "train" not in on_node:
            self._find("fails", f"{node.node_id} got GPUs for train and no worker of it: KeyError 'train'")
        return sum(cpus) + train, sum(count > 0 for count in cpus)

    def _cpus(self, name: str) -> float | None:
        worker = {"train": self.scheduling.train_worker, "eval": self.scheduling.eval_worker}.get(name)
        return None if worker is None else worker.num_cpus

    def _default(self) -> None:
        """Strategy ``default``: Ray places the actors one by one; only what fits no node, or not all nodes, is sure to wait."""
        total = sum(node.total_gpus for node in self.nodes.values())
        widest = max((node.total_gpus for node in self.nodes.values()), default=0)
        buffer = self.scheduling.buffer_worker
        first = next(iter(self.nodes.values()), None)
        if buffer is not None and buffer.worker_num == "auto" and first is not None and not first.total_gpus:
            self._find("fails", f"the automatic number of buffers divides by the GPUs of {first.node_id}: ZeroDivisionError")
        for name, needs in self._needs.items():
            if max(needs, default=0) > widest:
                self._find("hangs", f"a worker of {name} asks for {max(needs):g} GPUs and the largest node has {widest}")
        demand = sum(sum(needs) for needs in self._needs.values())
        if demand > total:
            self._find("hangs", f"all workers ask for {demand:g} GPUs and the cluster has {total}: the last ones wait for ever")

