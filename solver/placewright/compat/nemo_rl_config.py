"""NeMo-RL's configuration: as a problem, and checked for what NeMo-RL itself would do with it.

Usage: ``import_nemo_rl(config, cluster)`` gives the plain data of a problem, ``check_nemo_rl(config, cluster)`` a report.
``config`` is a GRPO, distillation or SFT configuration (plain data, OmegaConf, or the path of a recipe, with what its
``defaults`` name), ``overrides`` are ``key=value`` as on its command line, ``cluster`` is the cluster section of a problem,
a file with one, or a ``Cluster``.

What NeMo-RL assumes is written out: whole nodes of ``gpus_per_node`` GPUs, roles on nodes of their own unless colocated, a
CPU per GPU for each worker group, and groups (tensor x context, or expert tensor x expert parallel) inside a segment.

When to modify: when NeMo-RL's configuration gets a new field that says where something runs.
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


@dataclass(frozen=True)
class Role:
    """One role: a virtual cluster of ``nodes`` logical nodes with ``gpus`` GPUs each.

    Attributes:
        name: the component.
        nodes: logical nodes.
        gpus: GPUs of each.
        cpus: CPUs of a bundle, one for each worker group on it.
        segment: nodes of a segment; None where nothing is asked.
        span: GPUs of the widest group that talks all the time.
        parallel: GPUs of one model replica, which divides the role's GPUs.
        unified: whether its bundles are one placement group, and by which strategy.
    """

    name: str
    nodes: int
    gpus: int
    cpus: int = 1
    segment: int | None = None
    span: int = 1
    parallel: int = 1
    unified: str = ""

    @property
    def size(self) -> int:
        """GPUs of all its nodes."""
        return self.nodes * self.gpus


@dataclass(frozen=True)
class NemoSettings:
    """What a configuration says about placement, defaults filled in.

    Attributes:
        roles: the virtual clusters, in the order in which NeMo-RL makes them; colocated generation is in the first.
        generation: the colocated generation; None where it has a cluster of its own or there is none.
        refusal: why NeMo-RL itself stops before it asks for anything; empty where it does not.
        num_nodes: cluster.num_nodes.
        gpus_per_node: cluster.gpus_per_node.
        segment: cluster.segment_size.
        notes: what was assumed.
    """

    roles: tuple[Role, ...]
    generation: Role | None
    refusal: str
    num_nodes: int
    gpus_per_node: int
    segment: int | None
    notes: tuple[str, ...] = ()


def read_settings(config: Any, overrides: Iterable[str] = ()) -> NemoSettings:
    """What the configuration says.

    Raises:
        InvalidProblem: if it is no configuration of NeMo-RL, with all faults.
    """
    data = read(config, overrides, "nemo-rl")
    for key in ("cluster.num_nodes", "cluster.gpus_per_node"):
        if not data.has(key):
            data.faults.append(Fault(key, "is not in the configuration", "NeMo-RL has no default for it"))
    nodes, gpus = data.whole("cluster.num_nodes", 1), data.whole("cluster.gpus_per_node", 1)
    segment = data.whole("cluster.segment_size", 1) if data.has("cluster.segment_size") else None
    span, parallel = _policy_parallel(data)
    generates = data.has("policy.generation")
    backend = str(data.get("policy.generation.backend", "vllm"))
    engine = _engine(data, backend, span)
    colocated = data.get("policy.generation.colocated")
    if isinstance(colocated, Mapping) or colocated is None:
        colocated = data.flag("policy.generation.colocated.enabled", True)
    reward_nodes, reward_gpus = _reward(data)
    teachers = _teachers(data, gpus, segment)
    rest = nodes - (reward_nodes if nodes > 1 else 0) - sum(role.nodes for role in teachers)
    roles: list[Role] = []
    generation: Role | None = None
    refusal = ""
    taken = reward_gpus if nodes == 1 else 0
    if rest < 1 or gpus - taken < 1:
        refusal = f"policy_nodes must be > 0: {nodes} nodes less those of reward model and teachers"
    elif not generates or colocated:
        groups = 1 if backend == "megatron" or not generates else 2
        unified = "SPREAD" if generates and engine > gpus - taken else ""
        policy = Role("policy", rest, gpus - taken, groups, segment, span, parallel, unified)
        roles.append(policy)
        if generates:
            generation = replace(policy, name="generation", cpus=0, span=engine, parallel=engine)
    else:
        policy = Role("policy", rest, gpus, 1, segment, span, parallel)
        roles, refusal = _separate(data, policy, engine, taken)
    if reward_nodes:
        roles.append(Role("reward", reward_nodes, reward_gpus))
    roles += teachers
    data.notes.append("NeMo-RL reserves one CPU per GPU for each worker group of a cluster")
    data.done()
    return NemoSettings(tuple(roles), generation, refusal, nodes, gpus, segment, tuple(data.notes))


def _policy_parallel(data: Settings) -> tuple[int, int]:
    """GPUs of the policy's widest tight group, and of one model replica."""
    if data.flag("policy.megatron_cfg.enabled"):
        key = "policy.megatron_cfg"
        dense = data.whole(f"{key}.tensor_model_parallel_size", 1) * data.whole(f"{key}.context_parallel_size", 1)
        expert = data.whole(f"{key}.expert_tensor_parallel_size", 1) * data.whole(f"{key}.expert_model_parallel_size", 1)
        pipeline = data.whole(f"{key}.pipeline_model_parallel_size", 1)
        return max(dense, expert), max(dense, expert) * pipeline
    key = "policy.dtensor_cfg"
    dense = data.whole(f"{key}.tensor_parallel_size", 1) * data.whole(f"{key}.context_parallel_size", 1)
    return max(dense, data.whole(f"{key}.expert_parallel_size", 1)), dense


def _engine(data: Settings, backend: str, span: int) -> int:
    """GPUs of one generation instance."""
    if backend == "megatron":
        return span
    if backend == "sglang":
        return data.whole("policy.generation.sglang_cfg.gpus_per_server", 1)
    key = f"policy.generation.{backend}_cfg"
    return data.whole(f"{key}.tensor_parallel_size", 1) * data.whole(f"{key}.pipeline_parallel_size", 1)


def _reward(data: Settings) -> tuple[int, int]:
    """Nodes and GPUs per node of a reward model, which runs where a data set's environment names it."""
    names = {value for section in _sections(data.get("data", {})) if (value := section.get("env_name"))}
    if "reward_model" not in names and not data.flag("env.reward_model.enabled"):
        return 0, 0
    key = "env.reward_model.resources"
    return data.whole(f"{key}.num_nodes", 1), data.whole(f"{key}.gpus_per_node", 1)


def _sections(value: Any) -> Iterable[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        yield value
        for inner in value.values():
            yield from _sections(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _sections(inner)


def _teachers(data: Settings, gpus: int, segment: int | None) -> list[Role]:
    """Teachers with nodes of their own; each is one segment where segments are asked at all."""
    key = "on_policy_distillation"
    if not data.flag(f"{key}.enabled") or not data.flag(f"{key}.non_colocated_teachers.enabled"):
        return []
    models = data.get(f"{key}.teacher_model_by_agent_name", {})
    count = len(set(models.values())) if isinstance(models, Mapping) and models else 1
    default = f"{key}.non_colocated_teachers.default_teacher_cfg"
    nodes, each = data.whole(f"{default}.num_nodes", 1), data.whole(f"{default}.gpus_per_node", gpus)
    return [Role(f"teacher-{index}", nodes, each, 1, nodes if segment else None) for index in range(count)]


def _separate(data: Settings, policy: Role, engine: int, taken: int) -> tuple[list[Role], str]:
    """Training and inference on GPUs of their own, and NeMo-RL's refusal where the numbers are not to its mind."""
    key = "policy.generation.colocated.resources"
    gpus = data.whole(f"{key}.gpus_per_node", 1) if data.has(f"{key}.gpus_per_node") else None
    nodes = data.whole(f"{key}.num_nodes", 1) if data.has(f"{key}.num_nodes") else None
    if policy.nodes == 1:
        if gpus is None or nodes not in (None, 1):
            return [policy], f"{key} must have gpus_per_node, and num_nodes 1 or null, where training has one node"
        left = policy.gpus - taken - gpus
        if left < 1:
            return [policy], f"not enough GPUs for training: {policy.gpus} - {gpus} of generation leave {max(0, left)}"
        return [replace(policy, gpus=left), Role("generation", 1, gpus, 1, None, engine, engine)], ""
    if nodes is None:
        return [policy], f"{key}.num_nodes must be > 0 where cluster.num_nodes > 1 and generation is not colocated"
    if gpus != policy.gpus:
        return [policy], f"{key}.gpus_per_node must be set and equal to cluster.gpus_per_node {policy.gpus}, but is {gpus}"
    if nodes >= policy.nodes:
        return [policy], f"no node is left for training: {policy.nodes} nodes, {nodes} of them for generation"
    span_nodes = -(-engine // gpus)
    # As NeMo-RL: generation gets segments where an instance is wider than a node and they come out even.
    segment = span_nodes if policy.segment and span_nodes > 1 and nodes % span_nodes == 0 else None
    unified = "PACK" if engine > gpus else ""
    return [
        replace(policy, nodes=policy.nodes - nodes),
        Role("generation", nodes, gpus, 1, segment, engine, engine, unified),
    ], ""


def import_nemo_rl(config: Any, cluster: Any, overrides: Iterable[str] = ()) -> dict[str, Any]:
    """The configuration as the plain data of a problem, valid and complete.

    Raises:
        InvalidProblem: if configuration or cluster is wrong, or NeMo-RL itself refuses the configuration.
    """
    settings = read_settings(config, overrides)
    _refuse(settings)
    return problem_to_dict(problem_of(settings, cluster), discovery_order=True)


def _refuse(settings: NemoSettings) -> None:
    from placewright_models.errors import InvalidProblem

    if settings.refusal:
        raise InvalidProblem([Fault("cluster", settings.refusal)], "nemo-rl")


def problem_of(settings: NemoSettings, cluster: Any) -> Problem:
    """The problem that the settings pose on a cluster."""
    known = load_problem({"components": {}}, cluster).cluster
    domains = any(node.nvlink_domain for node in known.nodes)
    roles = [*settings.roles, *([settings.generation] if settings.generation is not None else [])]
    rules: dict[str, Any] = {}
    if settings.generation is not None:
        rules["colocate"] = [["policy", "generation"]]
    if settings.num_nodes > 1 and len(settings.roles) > 1:
        rules["separate_nodes"] = [[role.name for role in settings.roles]]
    components = {role.name: _component(role, domains, role is settings.generation) for role in roles}
    return load_problem({"components": components, "rules": rules}, known)


def _component(role: Role, domains: bool, follows: bool) -> dict[str, Any]:
    """A role's component; colocated generation ``follows`` the policy, which carries what both need."""
    entry: dict[str, Any] = {"workers": role.size, "gpus": 1, "cpus": role.cpus}
    if not follows:
        entry["per_node"] = role.gpus
        if role.segment is not None and domains:
            entry["segment_size"] = role.segment
    if role.gpus < role.span and role.size % role.span == 0 and domains:
        # Without a segment NeMo-RL does not insist on one NVLink domain.
        entry["group"] = {"workers": role.span, "within": "nvlink_domain", "mode": "required" if role.segment else "preferred"}
    if role.name.startswith("teacher"):
        entry["kind"] = "collective"
    return entry


def check_nemo_rl(config: Any, cluster: Any, overrides: Iterable[str] = ()) -> CheckReport:
    """Whether NeMo-RL, placing this configuration itself, would start, fail, or cut a node or a group.

    Nothing is changed and nothing is started: its choice of segments and Ray's choice of nodes are followed on the cluster.

    Raises:
        InvalidProblem: if configuration or cluster is wrong.
    """
    from placewright.compat._nemo_start import Start, smallest_change

    settings = read_settings(config, overrides)
    known = load_problem({"components": {}}, cluster).cluster
    start = Start(settings, known)
    start.run()
    notes = (*settings.notes, *start.notes)
    if start.verdict == "starts":
        return CheckReport("nemo-rl", "starts", tuple(start.findings), "", notes)
    if settings.refusal:
        return CheckReport("nemo-rl", "fails", tuple(start.findings), "", notes)
    reasons, change = smallest_change(settings, known, start.verdict)
    return CheckReport("nemo-rl", start.verdict, (*start.findings, *reasons), change, notes)
