"""Requirements: the parts of a problem that can be dropped one by one, and the problem that is left.

A requirement is one component field or one entry of a rules list (design.md section 8). Dropping ``workers`` means {0, max},
dropping ``cpus`` or ``memory`` means 0; GPU geometry (H2, H3, H7) is never dropped. Modify this file when a field or a rule
that can make a problem infeasible is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from placewright_models.problem import Problem
from placewright_models.workload import Component, Rules

RULE_LISTS = ("colocate", "same_node", "same_domain", "separate_nodes", "separate_domains")
"""Rules whose entries are requirements; ``share_gpus`` only permits."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """``components.<component>.<field>``, or ``rules.<field>[index]``."""

    field: str
    component: str | None = None
    index: int | None = None

    @property
    def place(self) -> str:
        if self.component is not None:
            return f"components.{self.component}.{self.field}"
        return f"rules.{self.field}[{self.index}]"


def _drop_workers(component: Component) -> Component:
    return replace(component, min_workers=0 if component.min_workers is not None else None)


def _drop_follow(component: Component) -> Component:
    if component.auto:
        return replace(component, per_node_of=None, min_workers=0, max_workers=1)
    return replace(component, per_node_of=None)


FIELDS: dict[str, tuple[Callable[[Component], bool], Callable[[Component], Component]]] = {
    "workers": (lambda c: bool(c.min_workers), _drop_workers),
    "cpus": (lambda c: c.cpus > 0, lambda c: replace(c, cpus=Decimal(0))),
    "memory": (lambda c: c.memory > 0, lambda c: replace(c, memory=0)),
    "gpu_share": (lambda c: c.gpu_share is not None, lambda c: replace(c, gpu_share=None)),
    "accelerator": (lambda c: c.accelerator is not None, lambda c: replace(c, accelerator=None)),
    "labels": (lambda c: bool(c.labels), lambda c: replace(c, labels={})),
    "node_ids": (lambda c: c.node_ids is not None, lambda c: replace(c, node_ids=None)),
    "exclude_node_ids": (lambda c: bool(c.exclude_node_ids), lambda c: replace(c, exclude_node_ids=())),
    "group": (lambda c: c.group is not None, lambda c: replace(c, group=None)),
    "segment_size": (lambda c: c.segment_size is not None, lambda c: replace(c, segment_size=None)),
    "nodes": (lambda c: c.nodes is not None, lambda c: replace(c, nodes=None)),
    "per_node": (lambda c: c.per_node is not None, lambda c: replace(c, per_node=None)),
    "aligned": (lambda c: c.aligned, lambda c: replace(c, aligned=False)),
    "per_node_of": (lambda c: c.per_node_of is not None, _drop_follow),
}
"""Field -> whether the component has the requirement, and the component without it."""


def requirements_of(component: Component) -> list[Requirement]:
    """The requirements of one component, the number of workers first."""
    return [Requirement(name, component.name) for name, (has, _) in FIELDS.items() if has(component)]


def all_requirements(problem: Problem) -> list[Requirement]:
    """Every requirement, in the order in which dropping them is tried.

    Small components first, so that what is left names the large ones; then fields, then rules.
    """

    def size(component: Component) -> tuple[Decimal, str]:
        return (component.gpus * (component.min_workers or 0), component.name)

    components = sorted(problem.components, key=size)
    found = [r for component in components for r in requirements_of(component)]
    # Numbers of workers first: a component that is not needed takes all its fields with it.
    found.sort(key=lambda requirement: requirement.field != "workers")
    for name in RULE_LISTS:
        found += [Requirement(name, index=index) for index in range(len(getattr(problem.rules, name)))]
    return found


def keep_only(problem: Problem, kept: Iterable[Requirement]) -> Problem:
    """The problem with only these requirements, no goals, and without the components that nothing needs any more."""
    active = set(kept)
    components: dict[str, Component] = {}
    for component in problem.components:
        changed = component
        for name, (has, drop) in FIELDS.items():
            if has(component) and Requirement(name, component.name) not in active:
                changed = drop(changed)
        components[component.name] = changed
    lists: dict[str, tuple[tuple[str, ...], ...]] = {
        name: tuple(
            entry
            for index, entry in enumerate(getattr(problem.rules, name))
            if Requirement(name, index=index) in active
        )
        for name in RULE_LISTS
    }
    needed = {name for name, component in components.items() if _needed(component)}
    needed |= {name for entry in lists["colocate"] for name in entry}
    while True:
        leaders = {c.per_node_of for name, c in components.items() if name in needed and c.per_node_of is not None}
        if leaders <= needed:
            break
        needed |= leaders
    shorter = {name: tuple(tuple(n for n in entry if n in needed) for entry in entries) for name, entries in lists.items()}
    rules = _restrict(problem.rules, needed, shorter)
    return Problem(
        cluster=problem.cluster,
        components=tuple(component for name, component in components.items() if name in needed),
        rules=rules,
        goals=(),
    )


def alone(problem: Problem, name: str) -> Problem:
    """The problem with all that one component asks by itself: its fields, and the rules that name nothing else."""
    kept = requirements_of(problem.by_name[name])
    for rule in RULE_LISTS:
        entries = enumerate(getattr(problem.rules, rule))
        kept += [Requirement(rule, index=index) for index, entry in entries if set(entry) == {name}]
    return keep_only(problem, kept)


def _needed(component: Component) -> bool:
    """Whether the component's remaining requirements ask for any worker of it."""
    return bool(component.min_workers or component.nodes or isinstance(component.per_node, tuple) or component.per_node_of)


def _restrict(rules: Rules, needed: set[str], lists: dict[str, tuple[tuple[str, ...], ...]]) -> Rules:
    least = {"same_node": 1, "same_domain": 1}
    changed: dict[str, Any] = {
        name: tuple(entry for entry in entries if len(entry) >= least.get(name, 2)) for name, entries in lists.items()
    }
    shares = tuple(tuple(name for name in entry if name in needed) for entry in rules.share_gpus)
    pools = tuple((pool, tuple(name for name in members if name in needed)) for pool, members in rules.pools)
    return replace(rules, share_gpus=tuple(entry for entry in shares if len(entry) > 1), pools=pools, **changed)
