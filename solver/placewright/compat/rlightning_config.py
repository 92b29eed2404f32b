"""RLightning's configuration: as a problem, and checked for what RLightning itself would do with it.

Usage: ``import_rlightning(config, cluster)`` gives the plain data of a problem, ``check_rlightning(config, cluster)`` a report.
``config`` is a whole configuration (``cluster``, ``env``, ``policy``, ``buffer``) or only its cluster section; plain data, or
objects with ``to_dict``, ``model_dump`` or a mapping's methods (Hydra's). ``cluster`` is the cluster section of a problem, a
file with one, or a ``Cluster``.

What RLightning leaves unsaid is taken as its own defaults: one train and one eval worker of 1 GPU and 1 CPU, one buffer.
When to modify: when RLightning's configuration gets a new field that says where something runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from placewright.compat._rlightning_problem import Kinds
from placewright.compat.check_report import CheckReport
from placewright.greedy.reference.manual import component_entries, parse_index_string, plain_mapping
from placewright.greedy.reference.planner import ComponentScheduling, NodeResource, Scheduling
from placewright_models.codec import load_problem, problem_to_dict
from placewright_models.errors import Fault, InvalidProblem
from placewright_models.problem import Problem


@dataclass(frozen=True)
class Settings:
    """What a configuration says about placement, defaults filled in.

    Attributes:
        scheduling: what the components need.
        mode: ``auto`` or ``manual``.
        strategy: ``default``, ``disaggregate`` or ``colocate`` (``default`` in manual mode).
        env_strategy: ``default`` or ``device-colocate``.
        pools: the manual pools.
        notes: what was assumed.
    """

    scheduling: ComponentScheduling
    mode: str
    strategy: str
    env_strategy: str
    pools: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = field(default=())

    @property
    def kinds(self) -> Kinds:
        """The kinds of workers."""
        return Kinds.of(self.scheduling)


def read_settings(config: Any, overrides: Iterable[str] = ()) -> Settings:
    """What the configuration says.

    Args:
        config: the configuration, whole or the cluster section only.
        overrides: ``key=value`` as on Hydra's command line, such as ``cluster.train_worker_num=8`` or ``env.0.num_gpus=0.5``.

    Raises:
        InvalidProblem: if it is no configuration of RLightning, with all faults.
    """
    data = plain(config)
    if not isinstance(data, dict):
        raise InvalidProblem([Fault("", "not a configuration", "a mapping with RLightning's cluster section")])
    for override in overrides:
        _override(data, override)
    cluster = data["cluster"] if isinstance(data.get("cluster"), dict) else data
    policy = data.get("policy") if isinstance(data.get("policy"), dict) else {}
    storage = ((data.get("buffer") or {}) if isinstance(data.get("buffer"), dict) else {}).get("storage") or {}
    placement = cluster.get("placement") or {}
    faults: list[Fault] = []
    notes: list[str] = []
    mode = _choice(placement, "mode", ("auto", "manual"), "auto", faults)
    strategy = _choice(placement, "strategy", ("default", "disaggregate", "colocate"), "default", faults)
    env_strategy = _choice(placement, "env_strategy", ("default", "device-colocate"), "default", faults)
    pools = _pools(cluster, faults) if mode == "manual" else ()

    def policy_workers(name: str) -> Scheduling:
        # The planner reads policy.*_num_gpus; *_each_gpu_num is what the actors of the default strategy ask for.
        each = cluster.get(f"{name}_each_gpu_num", 1.0) if not policy or strategy == "default" else 1.0
        gpus = policy.get(f"{name}_num_gpus", each) if policy else each
        if f"{name}_worker_num" not in cluster:
            notes.append(f"{name}_worker_num is not in the configuration: 1 worker taken")
        count = _number(cluster, f"{name}_worker_num", 1, faults)
        return Scheduling(count, 1, _amount(gpus, f"{name}_num_gpus", faults))

    buffers = cluster.get("buffer_worker_num", 1)
    if buffers != "auto":
        buffers = _number(cluster, "buffer_worker_num", 1, faults)
    scheduling = ComponentScheduling(
        env_worker=_env_groups(data, cluster, pools, notes, faults),
        train_worker=policy_workers("train"),
        eval_worker=policy_workers("eval"),
        buffer_worker=Scheduling(buffers, 1, 1 if storage.get("device") == "cuda" else 0),
    )
    if faults:
        raise InvalidProblem(faults, "rlightning")
    return Settings(scheduling, mode, "default" if mode == "manual" else strategy, env_strategy, tuple(pools), tuple(notes))


def import_rlightning(config: Any, cluster: Any, overrides: Iterable[str] = ()) -> dict[str, Any]:
    """The configuration as the plain data of a problem, valid and complete.

    Manual pools give the pools and what may share (components whose written ranges overlap); where exactly the workers were
    written is left to the solver. Env and eval get traffic of weight 1.

    Raises:
        InvalidProblem: if configuration or cluster is wrong.
    """
    return problem_to_dict(_problem(read_settings(config, overrides), cluster), discovery_order=True)


def _problem(settings: Settings, cluster: Any) -> Problem:
    kinds = settings.kinds
    rules: dict[str, Any] = {}
    if settings.strategy != "default":
        rules |= {"strategy": settings.strategy, "env_strategy": settings.env_strategy}
    lists = kinds.share_gpus(settings.env_strategy)
    if settings.mode == "manual":
        lists += _overlaps(settings, kinds)
        members = _pool_members(settings, kinds)
        if len(members) > 1:
            rules["pools"] = members
    if lists:
        rules["share_gpus"] = lists
    components = {name: entry for name, entry in kinds.components().items() if entry["workers"] != 0}
    return load_problem(
        {
            "components": components,
            "rules": rules,
            "traffic": [pair for pair in kinds.traffic() if set(pair["between"]) <= set(components)],
        },
        cluster,
    )


def _pool_members(settings: Settings, kinds: Kinds) -> dict[str, list[str]]:
    owner: dict[str, str] = {}
    names = [str(pool.get("name")) for pool in settings.pools]
    for name, pool in zip(names, settings.pools, strict=True):
        for component, _ in component_entries(pool):
            owner.setdefault(component, name)
    owner.setdefault("buffer", owner.get("train", names[0] if names else "global_pool"))
    members: dict[str, list[str]] = {name: [] for name in names}
    for kind in kinds.all:
        if kind.count or kind.scheduling.worker_num == "auto":
            members.setdefault(owner.get(kind.component, names[0] if names else "global_pool"), []).append(kind.name)
    return {name: found for name, found in members.items() if found}


def _overlaps(settings: Settings, kinds: Kinds) -> list[list[str]]:
    """Pairs of components whose written ranges meet in one pool."""
    found: list[list[str]] = []
    present = {kind.component: kind.name for kind in kinds.all if kind.count}
    for pool in settings.pools:
        sets = {
            name: {index for start, end in parse_index_string(value) for index in range(start, min(end, start + 10**6) + 1)}
            for name, value in component_entries(pool)
        }
        names = [name for name in sets if name in present]
        for place, first in enumerate(names):
            for second in names[place + 1 :]:
                if sets[first] & sets[second]:
                    pairs = [[a.name, b.name] for a in kinds.named(first) for b in kinds.named(second)]
                    found += [pair for pair in pairs if pair not in found]
    return found


def check_rlightning(config: Any, cluster: Any, overrides: Iterable[str] = ()) -> CheckReport:
    """Whether RLightning, placing this configuration itself, would start, fail, hang, or cut a worker in two.

    Nothing is changed and nothing is started: its planner and its group stage are followed on the cluster as described.
    """
    from placewright.compat._rlightning_start import Start

    settings = read_settings(config, overrides)
    problem = _problem(settings, cluster)
    nodes = {
        node.id: NodeResource(node.id, node.ip or "", 10**6 if node.cpus is None else int(node.cpus), node.gpus)
        for node in problem.cluster.nodes
        if node.excluded is None
    }
    start = Start(settings.scheduling, nodes)
    start.run(settings.mode, settings.strategy, settings.env_strategy, settings.pools)
    change = "" if start.verdict == "starts" else _change(problem, settings)
    return CheckReport("rlightning", start.verdict, tuple(start.findings), change, settings.notes)


def _change(problem: Problem, settings: Settings) -> str:
    """A plan that RLightning can take over, or what must give way for there to be one."""
    from placewright.pipeline import plan
    from placewright_models.errors import InfeasibleProblem, SolveTimeout

    wide = [kind for kind in settings.kinds.all if kind.scheduling.num_gpus > 1 and kind.count]
    try:
        plan(problem)
    except InfeasibleProblem as error:
        most = [
            f"{name}_worker_num: {reason.most_workers} (the most that fit)"
            for reason in error.reasons
            if reason.most_workers is not None
            for name in reason.components
        ]
        reasons = "; ".join(reason.sentence for reason in error.reasons)
        return f"no placement exists on this cluster: {reasons}" + (f". Set {', or '.join(most)}" if most else "")
    except SolveTimeout as error:
        return str(error)
    if wide:
        names = ", ".join(dict.fromkeys(kind.component for kind in wide))
        return (
            f"a placement exists, but RLightning's group stage only knows workers of at most 1 GPU ({names}): use "
            "placewright.compat.rlightning.GlobalResourceManager"
        )
    return (
        "a placement exists: plan it and set placement.mode: manual with the pools of `placewright export PLAN --format "
        "rlightning`, or import GlobalResourceManager from placewright.compat.rlightning"
    )


# Reading


def plain(value: Any) -> Any:
    """Plain dictionaries, lists and values of a configuration, whatever objects it is made of."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, Mapping) or (hasattr(value, "keys") and hasattr(value, "__getitem__")):
        return {str(key): plain(value[key]) for key in value}
    if isinstance(value, (list, tuple, set, frozenset)) or (hasattr(value, "__iter__") and hasattr(value, "__len__")):
        return [plain(item) for item in value]
    if hasattr(value, "to_dict") or hasattr(value, "model_dump"):
        return plain(plain_mapping(value))
    if hasattr(value, "__dict__"):
        return {key: plain(item) for key, item in vars(value).items() if not key.startswith("_")}
    return value


def _override(data: dict[str, Any], text: str) -> None:
    import yaml

    key, found, value = text.partition("=")
    parts = key.strip().lstrip("+").split(".")
    if not found or not all(parts):
        raise InvalidProblem([Fault(text, "no override", "write key=value, such as cluster.train_worker_num=8")])
    target: Any = data
    if parts[0] == "cluster" and not isinstance(data.get("cluster"), dict):
        parts = parts[1:] or parts
    for part in parts[:-1]:
        if isinstance(target, list):
            if not part.isdigit() or int(part) >= len(target):
                raise InvalidProblem([Fault(key, f"there is no entry {part}", f"0 to {len(target) - 1}")])
            target = target[int(part)]
        else:
            target = target.setdefault(part, {})
        if not isinstance(target, (dict, list)):
            raise InvalidProblem([Fault(key, f"{part} has no parts")])
    last: Any = parts[-1]
    if isinstance(target, list):
        if not last.isdigit() or int(last) >= len(target):
            raise InvalidProblem([Fault(key, f"there is no entry {last}")])
        last = int(last)
    try:
        target[last] = yaml.safe_load(value)
    except yaml.YAMLError:
        raise InvalidProblem([Fault(key, f"{value!r} cannot be read")]) from None


def _choice(section: Mapping[str, Any], key: str, options: Sequence[str], default: str, faults: list[Fault]) -> str:
    value = str(section.get(key) or default).lower()
    if value not in options:
        faults.append(Fault(f"placement.{key}", f"{value} is not known to RLightning", f"one of {', '.join(options)}"))
        return default
    return value


def _number(section: Mapping[str, Any], key: str, default: int, faults: list[Fault]) -> int:
    value = section.get(key, default)
    if type(value) is not int or value < 0:
        faults.append(Fault(key, f"{value!r} is not a number of workers"))
        return default
    return value


def _amount(value: Any, place: str, faults: list[Fault]) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        faults.append(Fault(place, f"{value!r} is not an amount"))
        return 1
    return int(value) if value == int(value) else value


def _pools(cluster: Mapping[str, Any], faults: list[Fault]) -> tuple[Mapping[str, Any], ...]:
    pools = cluster.get("resource_pool")
    if isinstance(pools, Mapping):
        pools = [pools]
    if not isinstance(pools, list) or not all(isinstance(pool, Mapping) for pool in pools):
        faults.append(Fault("resource_pool", "placement.mode is manual and there is no list of pools", "write resource_pool"))
        return ()
    return tuple(pools)


def _env_groups(
    data: Mapping[str, Any],
    cluster: Mapping[str, Any],
    pools: Sequence[Mapping[str, Any]],
    notes: list[str],
    faults: list[Fault],
) -> list[Scheduling]:
    """Groups of env workers; where only the cluster section is there, one worker for each GPU of the written env ranges."""
    groups = data.get("env")
    if isinstance(groups, dict):
        groups = [groups] if "num_workers" in groups or not groups else list(groups.values())
    if isinstance(groups, list):
        found = []
        for index, group in enumerate(groups):
            if not isinstance(group, Mapping):
                faults.append(Fault(f"env[{index}]", f"{group!r} is no group of env workers"))
                continue
            count = _number(group, "num_workers", 1, faults)
            gpus = _amount(group.get("num_gpus", 0), f"env[{index}].num_gpus", faults)
            found.append(Scheduling(count, _amount(group.get("num_cpus", 1), f"env[{index}].num_cpus", faults), gpus))
        return found
    gpus_written = sum(
        end - start + 1
        for pool in pools
        for name, value in component_entries(pool)
        if name == "env" and isinstance(value, (str, int)) and re.fullmatch(r"[\d\s,-]*", str(value))
        for start, end in parse_index_string(value)
    )
    if gpus_written:
        notes.append(f"env is not in the configuration: a worker of 1 GPU and 1 CPU taken for each of its {gpus_written} GPUs")
        return [Scheduling(gpus_written, 1, 1)]
    notes.append("env is not in the configuration: no env workers taken")
    return []
