"""From a minimal set of clashing requirements to sentences with numbers.

The first reason carries the verdict: what is short, where, by how much. A set that is one component's count gets the
sentence of its limiting resource and the most workers that fit; several components that together ask too much get a total;
sets with rules get one sentence per requirement. Modify this file when people do not understand a refusal.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from placewright.explain.core import Questions
from placewright.explain.counting import Counting, Room, listed
from placewright.explain.requirements import Requirement, alone, keep_only
from placewright.explain.shortage import FRAGMENTED, OCCUPIED, TOO_SMALL, holders, kind_of_shortage
from placewright_models.errors import Reason
from placewright_models.problem import Problem
from placewright_models.quantities import format_memory, plain_number
from placewright_models.workload import Component

_FILTERS = ("accelerator", "labels", "node_ids", "exclude_node_ids")
_MOST_UNITS = 6


def sentences(questions: Questions, core: Sequence[Requirement]) -> list[Reason]:
    """One reason per requirement of the core, the verdict first."""
    reduced = keep_only(questions.problem, core)
    counted = [r.component for r in core if r.field == "workers" and r.component is not None]
    concerned = {r.component for r in core if r.component is not None}
    only_fields = all(r.component is not None for r in core)
    if only_fields and len(concerned) == 1:
        name = next(iter(concerned))
        return _one_component(questions, core, reduced, reduced.by_name.get(name) or questions.problem.by_name[name])
    if only_fields and counted and all(r.field in ("workers", "cpus", "memory", "gpu_share") for r in core):
        return _total(questions, core, reduced, counted)
    return _clash(questions, core, reduced)


# One component's count


def _one_component(questions: Questions, core: Sequence[Requirement], reduced: Problem, component: Component) -> list[Reason]:
    fields = {r.field for r in core}
    kind = kind_of_shortage(questions, reduced)
    counting = Counting(reduced)
    room = counting.room(component, fields)
    most = questions.most_workers(alone(questions.problem, component.name), component.name) if "workers" in fields else None
    if most is None and "workers" in fields:
        most = questions.most_workers(reduced, component.name)
    verdict = room.sentence
    if most is not None:
        verdict += f"; at most {most} of {component.min_workers} workers fit"
    verdict += _kind_text(kind, reduced) + _demand_text(questions.problem, room)
    first = next((r for r in core if r.field == "workers"), core[0])
    reasons = [
        Reason(
            requirement=first.place,
            sentence=verdict,
            components=(component.name,),
            resource=room.resource,
            needed=room.needed,
            available=room.available,
            shortage=kind,
            per_unit=dict(list(room.per_unit.items())[:64]),
            most_workers=most,
        )
    ]
    for requirement in core:
        if requirement != first:
            reasons.append(_plain(questions.problem, requirement))
    return reasons


def _kind_text(kind: str | None, problem: Problem) -> str:
    if kind == OCCUPIED:
        plans = holders(problem)
        by = f" by {', '.join(plans)}" if plans else ""
        return f" (occupied{by}: it would fit if the cluster were idle)"
    if kind == FRAGMENTED:
        return " (fragmented: it would fit if each node's free GPUs were consecutive)"
    if not kind:
        return ""
    excluded = [node.id for node in problem.cluster.nodes if node.excluded]
    without = f", without the excluded {listed(excluded)}" if excluded else ""
    return f" (too small even when idle{without})"


def _demand_text(problem: Problem, room: Room) -> str:
    """A total shortage also states the whole job's demand."""
    if not room.total or len(problem.components) < 2:
        return ""
    if room.resource == "cpus":
        units = sum((c.min_workers or 0) * c.cpu_units for c in problem.components)
        return f"; the whole job asks {units / 10_000:g} CPUs"
    rules = problem.rules
    shared = rules.share_gpus or rules.colocate or rules.strategy == "colocate" or rules.env_strategy == "device-colocate"
    if room.resource == "gpus" and not shared:  # a sum would count shared GPUs several times
        gpus = sum(((c.min_workers or 0) * c.gpus for c in problem.components), Decimal(0))
        return f"; the whole job asks {plain_number(gpus)} GPUs"
    return ""


# Several components that together ask too much


def _total(questions: Questions, core: Sequence[Requirement], reduced: Problem, counted: Sequence[str]) -> list[Reason]:
    kind = kind_of_shortage(questions, reduced)
    counting = Counting(reduced)
    room = counting.total_room({r.field for r in core})
    verdict = room.sentence + _kind_text(kind, reduced) + _demand_text(questions.problem, room)
    most: int | None = None
    if len(counted) == 1:
        most = questions.most_workers(reduced, counted[0])
    reasons = [
        Reason(
            requirement=core[0].place,
            sentence=verdict,
            components=tuple(dict.fromkeys(r.component for r in core if r.component is not None)),
            resource=room.resource,
            needed=room.needed,
            available=room.available,
            shortage=kind,
            per_unit=dict(list(room.per_unit.items())[:64]),
            most_workers=most,
        )
    ]
    reasons += [_plain(questions.problem, requirement) for requirement in core[1:]]
    return reasons


# Rules that clash


def _clash(questions: Questions, core: Sequence[Requirement], reduced: Problem) -> list[Reason]:
    kind = kind_of_shortage(questions, reduced)
    reasons = [_plain(questions.problem, requirement) for requirement in core]
    # The verdict goes with the first rule if there is one: it is what ties the rest together.
    reasons.sort(key=lambda reason: not reason.requirement.startswith("rules."))
    first = reasons[0]
    names = tuple(dict.fromkeys(name for reason in reasons for name in reason.components))
    counting = Counting(reduced)
    verdict = f"{first.sentence}; that cannot hold together with what follows"
    if kind != TOO_SMALL:
        verdict += _kind_text(kind, reduced)
    verdict += counting.rule_numbers(first.requirement, names)
    reasons[0] = Reason(
        requirement=first.requirement,
        sentence=verdict,
        components=names,
        resource=first.resource,
        needed=first.needed,
        available=first.available,
        shortage=kind,
        per_unit=first.per_unit,
    )
    return reasons


def _plain(problem: Problem, requirement: Requirement) -> Reason:
    """What one requirement asks, in a sentence."""
    if requirement.component is None:
        return _rule(problem, requirement)
    component = problem.by_name[requirement.component]
    name, workers = component.name, component.min_workers or 0
    gpus = plain_number(component.gpus)
    text, resource = "", requirement.field
    needed: float | int | None = None
    if requirement.field == "workers":
        unit = "share" if component.fractional else "GPU" if gpus == 1 else "GPUs"
        text = f"{name} needs {workers} worker{'s' if workers != 1 else ''}"
        text += f" of {gpus} {unit}" if component.gpus else " without GPU"
        resource, needed = "gpus" if component.gpus else "workers", workers
    elif requirement.field == "cpus":
        each = plain_number(component.cpus)
        text, needed = f"{name} needs {each} CPUs per worker", float(component.cpus)
        if workers:
            text += f" ({plain_number(component.cpus * workers)} CPUs in all)"
    elif requirement.field == "memory":
        text, needed = f"{name} needs {format_memory(component.memory)} of memory per worker", component.memory
    elif requirement.field == "gpu_share":
        text = f"{name} holds {plain_number(component.gpu_share or Decimal(0))} of each of its GPUs"
    elif requirement.field == "accelerator":
        text = f"{name} needs accelerator {component.accelerator}"
    elif requirement.field == "labels":
        text = f"{name} needs nodes labelled " + ", ".join(f"{k}={v}" for k, v in sorted(component.labels.items()))
    elif requirement.field == "node_ids":
        text = f"{name} may only use {_some(component.node_ids or ())}"
    elif requirement.field == "exclude_node_ids":
        text = f"{name} may not use {_some(component.exclude_node_ids)}"
    elif requirement.field == "group" and component.group is not None:
        group = component.group
        text = f"{name}'s groups of {group.workers} workers must each lie inside one {group.within}"
        if not group.required:
            text = f"{name}'s workers come in groups of {group.workers}"
        resource, needed = "groups", workers // group.workers
    elif requirement.field == "segment_size":
        where = "of one NVLink domain" if component.segment_required else "of one size"
        text = f"{name} takes whole nodes in segments of {component.segment_size} {where}"
        resource, needed = "segments", None
    elif requirement.field == "nodes":
        text, needed = f"{name} must use exactly {component.nodes} nodes", component.nodes
    elif requirement.field == "per_node":
        each_node = component.per_node if isinstance(component.per_node, int) else list(component.per_node or ())
        text = f"{name} must have exactly {each_node} workers on each of its nodes"
    elif requirement.field == "aligned":
        text = f"{name}'s workers must start at GPU indices that are multiples of {component.gpus_per_worker}"
    elif requirement.field == "per_node_of":
        text = f"{name} must have one worker on each node of {component.per_node_of}"
    return Reason(requirement.place, text, (name,), resource, needed)


def _rule(problem: Problem, requirement: Requirement) -> Reason:
    names = getattr(problem.rules, requirement.field)[requirement.index or 0]
    named = ", ".join(names[:-1]) + f" and {names[-1]}" if len(names) > 1 else names[0]
    text = {
        "colocate": f"{named} must use exactly the same GPUs",
        "same_node": f"all workers of {named} must be on one node",
        "same_domain": f"all workers of {named} must be in one NVLink domain",
        "separate_nodes": f"no node may host two of {named}",
        "separate_domains": f"no NVLink domain may host two of {named}",
    }[requirement.field]
    resource = {"colocate": "sharing", "same_domain": "domains", "separate_domains": "domains"}.get(requirement.field, "nodes")
    return Reason(requirement.place, text, tuple(names), resource)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_MOST_UNITS])
    return shown if len(names) <= _MOST_UNITS else f"{shown} and {len(names) - _MOST_UNITS} more"
