"""Problems and plans to and from files and plain data.

``load_problem`` reads a YAML or JSON file, or the same structure as Python objects, and refuses invalid input with all its
faults at once. ``problem_to_dict`` writes the complete canonical form, and ``load_problem(problem_to_dict(p))`` is ``p`` again
up to order. Modify this file when the problem file gets a new section; fields are read in ``schema.py`` and its neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from placewright_models.cluster import Cluster, Node
from placewright_models.errors import Fault, InvalidProblem
from placewright_models.plan import Plan
from placewright_models.plan_codec import plan_from_dict as plan_from_dict
from placewright_models.problem import Problem
from placewright_models.quantities import plain_number
from placewright_models.reading.text import MAX_PLAN_BYTES, MAX_PROBLEM_BYTES, read_mapping
from placewright_models.reading.values import closest, nearest, show
from placewright_models.workload import Component, Rules

_SECTIONS = ("cluster", "components", "rules", "traffic", "goals")
Source: TypeAlias = "str | Path | Mapping[str, Any]"
OccupiedBy: TypeAlias = "str | Path | Plan | tuple[str, str | Path | Plan]"


def load_problem(
    source: Source,
    cluster: Source | Cluster | None = None,
    *,
    exclude: str | Sequence[str] = (),
    overlays: Source | Sequence[Source] = (),
    occupied: str | Path | Plan | Sequence[OccupiedBy] = (),
) -> Problem:
    """Read a problem: cluster and job in one source, or the job in ``source`` and the cluster in ``cluster``.

    Args:
        source: path of a YAML or JSON file, or the same structure as Python objects.
        cluster: the cluster where ``source`` has none: a file or mapping with or without the key ``cluster`` around it, or a
            ``Cluster``.
        exclude: ids of nodes or NVLink domains that host nothing this time.
        overlays: files or mappings as in ``overlay.py``, laid over the cluster in this order.
        occupied: plans whose GPUs, CPUs and memory are taken; a plan read from a file is named by the file's stem, and
            ``(name, plan)`` gives it another name.

    Raises:
        InvalidProblem: with every fault found, each with its place, what is wrong and what would be right.
    """
    from placewright_models.reading.cluster import parse_cluster
    from placewright_models.reading.component_checks import Context, check_components
    from placewright_models.reading.job import build_component, default_within, parse_components
    from placewright_models.reading.rule_checks import check_goal_sizes, parse_goals, parse_rules, parse_traffic

    faults: list[Fault] = []
    name = str(source) if isinstance(source, (str, Path)) else ""
    data = _sections(_read(source, MAX_PROBLEM_BYTES), faults)
    section = _cluster_section(data, cluster, faults)
    if isinstance(section, Cluster):
        base, known = section, True
    elif section is None:
        base, known = Cluster(()), False
    else:
        base, known = parse_cluster(section, faults)
    base = _lay_over(
        base,
        [exclude] if isinstance(exclude, str) else exclude,
        [overlays] if isinstance(overlays, (str, Path, Mapping)) else overlays,
        [occupied] if isinstance(occupied, (str, Path, Plan)) else occupied,
        known,
        faults,
    )

    drafts = parse_components(data.get("components"), base, faults)
    context = Context(drafts, base, {node.id for node in base.nodes}, known)
    faults.extend(check_components(context))
    rules = parse_rules(data.get("rules"), drafts, faults)
    traffic = parse_traffic(data.get("traffic"), drafts, faults)
    goals = parse_goals(data.get("goals"), faults)
    faults.extend(check_goal_sizes(drafts, traffic, goals, base))
    if faults:
        raise InvalidProblem(faults, name)
    within = default_within(base)
    components = tuple(build_component(draft, within) for draft in drafts.values())
    return Problem(base, components, rules, traffic, goals)


def check_goals(problem: Problem, has_previous: bool) -> None:
    """Refuse the goal ``moves`` where there is no previous plan to move from.

    Raises:
        InvalidProblem: if ``moves`` is among the goals and there is no previous plan.
    """
    if "moves" in problem.goals and not has_previous:
        place = f"goals[{problem.goals.index('moves')}]"
        raise InvalidProblem([Fault(place, "moves without a previous plan", "give the previous plan, or drop moves")])


def load_plan(path: str | Path, problem: Problem | None = None) -> Plan:
    """Read a plan file (JSON, or the same as YAML); ``problem`` replaces the one inside.

    Raises:
        InvalidProblem: if the file cannot be read or is not a plan.
    """
    data = read_mapping(path, limit=MAX_PLAN_BYTES, what="plan")
    try:
        return plan_from_dict(data, problem)
    except InvalidProblem as error:
        raise InvalidProblem(error.faults, str(path), "plan") from None


def dump_yaml(data: Any) -> str:
    """Plain data as YAML: keys in the given order, small collections on one line, no aliases."""
    import yaml

    base: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)

    class Dumper(base):  # type: ignore[misc]
        def ignore_aliases(self, data: Any) -> bool:
            return True

        def represent_sequence(self, tag: Any, sequence: Any, flow_style: Any = None) -> Any:
            # A worker is [node, [[first, last]]]: one line, not four.
            return super().represent_sequence(tag, sequence, True if _few(sequence) else flow_style)

    text: str = yaml.dump(data, Dumper=Dumper, sort_keys=False, default_flow_style=None, width=120, allow_unicode=True)
    return text


def _few(data: Any) -> bool:
    """Whether nested lists hold nothing but a few plain values."""
    values, lists = 0, [data]
    while lists and values <= 6:
        for item in lists.pop():
            if isinstance(item, Mapping):
                return False
            if isinstance(item, (list, tuple)):
                lists.append(item)
            else:
                values += 1
    return values <= 6


def _read(source: Source, limit: int) -> Mapping[str, Any]:
    if isinstance(source, (str, Path)):
        return read_mapping(source, limit=limit)
    if isinstance(source, Mapping):
        return source
    raise InvalidProblem(
        [Fault("", f"{show(source)} is neither a path nor a mapping", "a problem has the keys cluster and components")]
    )


def _sections(data: Mapping[Any, Any], faults: list[Fault]) -> dict[str, Any]:
    """The sections of a problem; a misspelt one is read as the one that was meant, so that its names are not absent too."""
    sections = {key: value for key, value in data.items() if key in _SECTIONS}
    for key, value in data.items():
        if key not in _SECTIONS:
            faults.append(Fault(key if isinstance(key, str) else show(key), "unknown key", nearest(key, _SECTIONS)))
            meant = closest(key, [section for section in _SECTIONS if section not in data])
            if meant is not None:
                sections[meant] = value
    return sections


def _cluster_section(data: Mapping[str, Any], cluster: Source | Cluster | None, faults: list[Fault]) -> Any:
    inside = data.get("cluster")
    if cluster is None:
        if inside is None:
            faults.append(Fault("cluster", "is missing", "write cluster: with its nodes, or give a cluster file"))
        return inside
    if inside is not None:
        faults.append(Fault("cluster", "is given twice: in the problem and on its own", "drop one of them"))
    if isinstance(cluster, Cluster):
        return cluster
    given = _read(cluster, MAX_PROBLEM_BYTES)
    if "cluster" not in given:
        return given
    for key in given:
        if key != "cluster":
            faults.append(Fault(str(key), "stands in the cluster file beside cluster", "the job belongs in the problem file"))
    return given["cluster"]


def _lay_over(
    cluster: Cluster,
    exclude: Sequence[str],
    overlays: Sequence[Source],
    occupied: Sequence[OccupiedBy],
    known: bool,
    faults: list[Fault],
) -> Cluster:
    """Overlays, then excluded names, then other plans. What names a node is left out where the cluster has faults itself."""
    if not (exclude or overlays or occupied):
        return cluster
    from placewright_models.reading import overlay

    found = faults if known else []
    for index, item in enumerate(overlays):
        place = Path(item).name if isinstance(item, (str, Path)) else f"overlays[{index}]"
        cluster = overlay.overlay(cluster, _read(item, MAX_PROBLEM_BYTES), place, found)
    cluster = overlay.exclude(cluster, exclude, found)
    for index, held in enumerate(occupied):
        name, plan = held if isinstance(held, tuple) else ("", held)
        if isinstance(plan, (str, Path)):
            name = name or Path(plan).stem
            plan = load_plan(plan)
        cluster = overlay.occupy(cluster, plan, name or f"plan {index + 1}", found)
    return cluster


def problem_to_dict(problem: Problem, discovery_order: bool = False) -> dict[str, Any]:
    """The problem in the form of the problem file: complete, deterministic, plain data.

    Nodes come in topological order, or in discovery order where that is what decides (greedy).
    """
    cluster = problem.cluster
    nodes = cluster.nodes if discovery_order else cluster.topological_order()
    written: dict[str, Any] = {}
    if cluster.levels:
        written["levels"] = list(cluster.levels)
    if cluster.schedule_on_head:
        written["schedule_on_head"] = True
    written["nodes"] = [_node_to_dict(node) for node in nodes]
    data: dict[str, Any] = {
        "cluster": written,
        "components": {component.name: _component_to_dict(component) for component in problem.components},
    }
    rules = _rules_to_dict(problem.rules)
    if rules:
        data["rules"] = rules
    if problem.traffic:
        data["traffic"] = [{"between": list(pair.between), "weight": pair.weight} for pair in problem.traffic]
    data["goals"] = list(problem.goals)
    return data


def _node_to_dict(node: Node) -> dict[str, Any]:
    data: dict[str, Any] = {"id": node.id, "gpus": node.gpus}
    if node.cpus is not None:
        data["cpus"] = plain_number(node.cpus)
    for field in ("memory", "ip", "node_name", "ray_node_id", "nvlink_domain", "topo_rank", "accelerator"):
        value = getattr(node, field)
        if value is not None:
            data[field] = value
    if node.labels:
        data["labels"] = dict(sorted(node.labels.items()))
    if node.unavailable_gpus:
        data["unavailable_gpus"] = list(node.unavailable_gpus)
    if node.cpus_in_use:
        data["cpus_in_use"] = plain_number(node.cpus_in_use)
    if node.reserved_cpus:
        data["reserved_cpus"] = plain_number(node.reserved_cpus)
    if node.memory_in_use:
        data["memory_in_use"] = node.memory_in_use
    if node.occupied:
        data["occupied"] = [
            {"plan": held.plan, "gpus": list(held.gpus), "cpus": plain_number(held.cpus), "memory": held.memory}
            for held in node.occupied
        ]
    if node.excluded is not None:
        data["excluded"] = node.excluded
    if node.head:
        data["head"] = True
    return data


def _component_to_dict(component: Component) -> dict[str, Any]:
    """What decides is always written, also where it is the default; the rest where it says something."""
    workers: Any = component.max_workers
    if component.auto:
        workers = "auto"
    elif component.elastic:
        workers = {"min": component.min_workers, "max": component.max_workers}
    data: dict[str, Any] = {"workers": workers, "gpus": plain_number(component.gpus), "cpus": plain_number(component.cpus)}
    if component.memory:
        data["memory"] = component.memory
    if component.gpu_share is not None:
        data["gpu_share"] = plain_number(component.gpu_share)
    data["kind"] = component.kind
    if component.accelerator is not None:
        data["accelerator"] = component.accelerator
    if component.labels:
        data["labels"] = dict(sorted(component.labels.items()))
    if component.node_ids is not None:
        data["node_ids"] = list(component.node_ids)
    if component.exclude_node_ids:
        data["exclude_node_ids"] = list(component.exclude_node_ids)
    if component.group is not None:
        group = component.group
        data["group"] = {"workers": group.workers, "within": group.within, "mode": group.mode}
    if component.segment_size is not None:
        data["segment_size"] = component.segment_size
        data["segment_mode"] = component.segment_mode
    if component.nodes is not None:
        data["nodes"] = component.nodes
    if component.per_node is not None:
        data["per_node"] = list(component.per_node) if isinstance(component.per_node, tuple) else component.per_node
    data["spread"] = component.spread
    data["span_weight"] = component.span_weight
    if component.priority != 1:
        data["priority"] = component.priority
    if component.aligned:
        data["aligned"] = True
    if component.per_node_of is not None:
        data["per_node_of"] = component.per_node_of
    return data


def _rules_to_dict(rules: Rules) -> dict[str, Any]:
    data: dict[str, Any] = {}
    if rules.strategy is not None:
        data["strategy"] = rules.strategy
    if rules.env_strategy is not None:
        data["env_strategy"] = rules.env_strategy
    if rules.explicit_pools:
        data["pools"] = {name: list(members) for name, members in rules.pools}
    for key in ("share_gpus", "colocate", "same_node", "same_domain", "separate_nodes", "separate_domains"):
        entries = getattr(rules, key)
        if entries:
            data[key] = [list(entry) for entry in entries]
    return data
