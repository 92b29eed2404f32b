"""verl's configuration: as a problem, and checked for what verl itself would do with it.

Usage: ``import_verl(config, cluster)`` gives the plain data of a problem, ``check_verl(config, cluster)`` a report.
``config`` is verl's trainer configuration (plain data, OmegaConf, or the path of a YAML file), ``overrides`` are
``key=value`` as on verl's command line, ``cluster`` is the cluster section of a problem, a file with one, or a ``Cluster``.

What verl assumes is written out: a pool is one group of ``n_gpus_per_node`` GPUs on one node for each of ``nnodes``
(two groups may lie on one node); all roles of a pool use all its GPUs; a bundle reserves max_colocate_count CPUs per GPU;
a rollout replica is tensor x data x pipeline parallel size GPUs wide.

When to modify: when verl's configuration gets a new field that says where something runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from placewright.compat._settings import Settings, read
from placewright.compat.check_report import CheckReport
from placewright_models.codec import load_problem, problem_to_dict
from placewright_models.errors import Fault
from placewright_models.problem import Problem

MANAGER_COLOCATE = 3
"""max_colocate_count of the pools that verl's ResourcePoolManager makes."""
STANDALONE_COLOCATE = 2
"""The same for the pools of standalone rollout replicas."""
ENGINES = ("rollout", "reward")
"""Roles that run as engines of several GPUs."""
ROLE_PARTS = {
    "actor": ("actor",),
    "rollout": ("rollout",),
    "actorrollout": ("actor", "rollout"),
    "actorrolloutref": ("actor", "ref", "rollout"),
    "critic": ("critic",),
    "ref": ("ref",),
    "refpolicy": ("ref",),
    "rm": ("reward",),
    "rewardmodel": ("reward",),
    "reward": ("reward",),
    "teacher": ("teacher",),
    "teachermodel": ("teacher",),
}
"""verl's roles, letters only, and the components that stand for them."""


@dataclass(frozen=True)
class PoolSpec:
    """One resource pool: processes per group, the components in it, CPUs per GPU."""

    name: str
    counts: tuple[int, ...]
    roles: tuple[str, ...]
    colocate: int = MANAGER_COLOCATE

    @property
    def size(self) -> int:
        """Processes of all groups."""
        return sum(self.counts)


@dataclass(frozen=True)
class VerlSettings:
    """What a configuration says about placement, defaults filled in.

    Attributes:
        pools: the pools that verl's manager makes, in its order.
        widths: GPUs of one engine, by component.
        standalone: counts per node of a rollout that has nodes of its own (``nnodes`` times ``n_gpus_per_node``).
        tensor: size of the actor's tensor and context parallel groups.
        uniform: whether the first pool comes from trainer.nnodes and n_gpus_per_node.
        notes: what was assumed.
    """

    pools: tuple[PoolSpec, ...]
    widths: Mapping[str, int]
    standalone: tuple[int, ...] = ()
    tensor: int = 1
    uniform: bool = True
    notes: tuple[str, ...] = ()

    @property
    def replicas(self) -> int:
        """Standalone rollout replicas."""
        return sum(self.standalone) // self.widths["rollout"]

    def replica_counts(self) -> tuple[int, ...]:
        """Processes per group of one standalone replica."""
        width = self.widths["rollout"]
        per_node = min(width, self.standalone[0])
        return (per_node,) * (width // per_node)

    def resized(self, nnodes: int, n_gpus: int) -> VerlSettings:
        """The same with other numbers for trainer.nnodes and trainer.n_gpus_per_node."""
        return replace(self, pools=(replace(self.pools[0], counts=(n_gpus,) * nnodes), *self.pools[1:]))


def read_settings(config: Any, overrides: Iterable[str] = ()) -> VerlSettings:
    """What the configuration says.

    Raises:
        InvalidProblem: if it is no configuration of verl, with all faults.
    """
    data = read(config, overrides, "verl")
    nnodes, n_gpus = data.whole("trainer.nnodes", 1), data.whole("trainer.n_gpus_per_node", 8)
    for key, taken in (("trainer.nnodes", nnodes), ("trainer.n_gpus_per_node", n_gpus)):
        if not data.has(key) and not data.has("resource_pool_spec"):
            data.notes.append(f"{key} is not in the configuration: {taken}, verl's default")
    rollout = "actor_rollout_ref.rollout"
    if not data.has(f"{rollout}.tensor_model_parallel_size"):
        data.notes.append(f"{rollout}.tensor_model_parallel_size is not in the configuration: 2, verl's default")
    reward = next((key for key in ("reward.reward_model", "reward_model") if data.flag(f"{key}.enable")), None)
    widths = {"rollout": _width(data, rollout), "reward": _width(data, f"{reward}.rollout") if reward else 1}
    standalone = _standalone(data)
    roles = ["actor", *([] if standalone else ["rollout"])]
    if data.flag("actor_rollout_ref.actor.use_kl_loss") or data.flag("algorithm.use_kl_in_reward"):
        roles.append("ref")
    if data.flag("critic.enable", str(data.get("algorithm.adv_estimator", "gae")).lower() == "gae"):
        roles.append("critic")
    pools = [PoolSpec("global_pool", (n_gpus,) * nnodes, tuple(roles))]
    if reward is not None:
        if data.flag(f"{reward}.enable_resource_pool"):
            pools.append(PoolSpec("reward_pool", _uniform(data, reward), ("reward",)))
        else:
            pools[0] = replace(pools[0], roles=(*pools[0].roles, "reward"))
    if data.flag("distillation.enabled") or data.flag("distillation.enable"):
        pools.append(PoolSpec("teacher_pool", _uniform(data, "distillation"), ("teacher",)))
    uniform = not data.has("resource_pool_spec")
    if not uniform:
        pools = _written_pools(data, standalone)
    tensor = "actor_rollout_ref.actor.megatron"
    width = data.whole(f"{tensor}.tensor_model_parallel_size", 1) * data.whole(f"{tensor}.context_parallel_size", 1)
    width = max(width, data.whole("actor_rollout_ref.actor.ulysses_sequence_parallel_size", 1))
    data.notes.append(f"verl reserves max_colocate_count CPUs for each GPU: {MANAGER_COLOCATE}")
    data.done()
    return VerlSettings(tuple(pools), widths, standalone, width, uniform, tuple(data.notes))


def _width(data: Settings, key: str) -> int:
    tensor = data.whole(f"{key}.tensor_model_parallel_size", 2)
    return tensor * data.whole(f"{key}.data_parallel_size", 1) * data.whole(f"{key}.pipeline_model_parallel_size", 1)


def _uniform(data: Settings, key: str) -> tuple[int, ...]:
    return (data.whole(f"{key}.n_gpus_per_node", 8),) * data.whole(f"{key}.nnodes", 1)


def _standalone(data: Settings) -> tuple[int, ...]:
    """Nodes of a rollout that does not share the trainer's GPUs: a section of its own, or nnodes in the rollout section."""
    for key in ("rollout", "actor_rollout_ref.rollout"):
        if data.whole(f"{key}.nnodes", 0, least=0):
            default = data.whole("trainer.n_gpus_per_node", 8)
            return (data.whole(f"{key}.n_gpus_per_node", default),) * data.whole(f"{key}.nnodes", 1)
    return ()


def _written_pools(data: Settings, standalone: tuple[int, ...]) -> list[PoolSpec]:
    """The pools of resource_pool_spec, with the roles that ``mapping`` gives them."""
    spec, mapping = data.get("resource_pool_spec"), data.get("mapping") or {}
    if not isinstance(spec, Mapping) or not all(
        isinstance(counts, list) and counts and all(type(count) is int and count > 0 for count in counts)
        for counts in spec.values()
    ):
        data.faults.append(Fault("resource_pool_spec", "not pools with processes per node", "write name: [8, 8]"))
        return [PoolSpec("global_pool", (8,), ("actor",))]
    roles: dict[str, list[str]] = {name: [] for name in spec}
    if not mapping:
        data.notes.append(f"no mapping: the actor and its rollout taken to be in {next(iter(spec))}")
        mapping = {"ActorRollout": next(iter(spec))}
    for role, pool in mapping.items() if isinstance(mapping, Mapping) else ():
        letters = str(role).rpartition(".")[2].replace("_", "").lower()
        if pool not in roles:
            data.faults.append(Fault(f"mapping.{role}", f"there is no pool {pool}", f"one of {', '.join(roles)}"))
        elif letters not in ROLE_PARTS:
            data.faults.append(Fault(f"mapping.{role}", "is no role of verl", f"one of {', '.join(ROLE_PARTS)}"))
        else:
            taken = {name for names in roles.values() for name in names}
            roles[pool] += [name for name in ROLE_PARTS[letters] if name not in taken]
    empty = [name for name, members in roles.items() if not members]
    for name in empty:
        roles[name] = [name]
        data.notes.append(f"no role is mapped to {name}: taken as a component of that name")
    return [
        PoolSpec(name, tuple(counts), tuple(role for role in roles[name] if not (role == "rollout" and standalone)))
        for name, counts in spec.items()
    ]


def import_verl(config: Any, cluster: Any, overrides: Iterable[str] = ()) -> dict[str, Any]:
    """The configuration as the plain data of a problem, valid and complete.

    Raises:
        InvalidProblem: if configuration or cluster is wrong.
    """
    return problem_to_dict(problem_of(read_settings(config, overrides), cluster), discovery_order=True)


def problem_of(settings: VerlSettings, cluster: Any) -> Problem:
    """The problem that the settings pose on a cluster."""
    known = load_problem({"components": {}}, cluster).cluster
    widest = max((node.gpus for node in known.nodes if node.excluded is None), default=0)
    components: dict[str, dict[str, Any]] = {}
    rules: dict[str, list[list[str]]] = {"colocate": [], "share_gpus": [], "same_node": []}
    pools: dict[str, list[str]] = {}
    for pool in settings.pools:
        members = {role: _component(settings, pool, role, role == pool.roles[0], widest) for role in pool.roles}
        components |= members
        pools[pool.name] = list(members)
        if len(pool.counts) == 1 and pool.roles:
            rules["same_node"].append([pool.roles[0]])
        covering = [role for role, entry in members.items() if entry["workers"] * entry["gpus"] == pool.size]
        if len(covering) > 1:
            rules["colocate"].append(covering)
        # An engine that does not divide the pool leaves GPUs of it alone.
        rules["share_gpus"] += [[other, role] for role in members if role not in covering for other in members if other != role]
    if settings.standalone:
        width = settings.widths["rollout"]
        pool = PoolSpec("rollout_pool", settings.replica_counts() * settings.replicas, ("rollout",), STANDALONE_COLOCATE)
        if settings.replicas:
            components["rollout"] = _engine(pool.size, width, STANDALONE_COLOCATE, widest)
            pools[pool.name] = ["rollout"]
    written: dict[str, Any] = {key: lists for key, lists in rules.items() if lists}
    return load_problem({"components": components, "rules": {"pools": pools, **written}}, known)


def _component(settings: VerlSettings, pool: PoolSpec, role: str, first: bool, widest: int) -> dict[str, Any]:
    """A role of a pool. The first one carries the CPUs and the groups; the others lie on the same GPUs."""
    cpus = pool.colocate if first else 0
    if role in ENGINES:
        width = settings.widths[role]
        entry = _engine(pool.size, width, cpus, widest)
        per_group = pool.counts[0] // width
        if (
            first
            and per_group > 1
            and len(pool.counts) > 1
            and len(set(pool.counts)) == 1
            and pool.counts[0] % width == 0
            and "group" not in entry
        ):
            entry["group"] = {"workers": per_group, "within": "node"}
        return entry
    entry = {"workers": pool.size, "gpus": 1, "cpus": cpus}
    if first and len(set(pool.counts)) > 1:
        entry["per_node"] = list(pool.counts)
    elif first and len(pool.counts) > 1 and pool.counts[0] > 1:
        # verl's groups are STRICT_PACK: each on one node, several perhaps on the same.
        entry["group"] = {"workers": pool.counts[0], "within": "node"}
    return entry


def _engine(gpus: int, width: int, cpus: int, widest: int) -> dict[str, Any]:
    """Engines of ``width`` GPUs: one worker each, or a group of workers where no node is so wide."""
    if width <= widest:
        return {"workers": gpus // width, "gpus": width, "cpus": cpus * width}
    return {"workers": gpus // width * width, "gpus": 1, "cpus": cpus, "group": {"workers": width, "mode": "preferred"}}


def check_verl(config: Any, cluster: Any, overrides: Iterable[str] = ()) -> CheckReport:
    """Whether verl, placing this configuration itself, would start, fail, hang, or cut an engine over nodes or domains.

    Nothing is changed and nothing is started: the manager's check and Ray's choice of nodes are followed on the cluster.

    Raises:
        InvalidProblem: if configuration or cluster is wrong.
    """
    from placewright.compat._verl_start import Start, smallest_change

    settings = read_settings(config, overrides)
    known = load_problem({"components": {}}, cluster).cluster
    start = Start(settings, known)
    start.run()
    if start.verdict == "starts":
        return CheckReport("verl", "starts", tuple(start.findings), "", settings.notes)
    reasons, change = smallest_change(settings, known, start.verdict)
    return CheckReport("verl", start.verdict, (*start.findings, *reasons), change, settings.notes)
