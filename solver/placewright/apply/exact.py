"""Making a plan's groups so that every worker has exactly the GPUs that the plan names, and proving it.

Ray offers no way to ask for a GPU by number: a group gets the lowest free ids of its node, ascending by bundle index. So
the groups are made and read back; where other ids came out (a gap in the plan, somebody else's job), every free GPU of
those nodes is held for the moment, the holds on exactly the wanted ids are let go, and the group is made anew: it can get
no others. The result is read back again, so the outcome is either the planned ids or an explicit ``PlanMismatch``.

Modify this file when Ray deals out ids in another way.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from placewright.apply.bundles import Bundle, Group, Layout
from placewright.apply.groups import Ledger, MadeGroup, wait_created, wait_settled
from placewright.apply.probe import Found, probe
from placewright.apply.view import LiveNode, live_nodes
from placewright_models.errors import PlanMismatch
from placewright_models.ranges import format_ranges, ranges_of

log = logging.getLogger("placewright.apply")

TRIES = 5
_STOLEN_AFTER_S = 5.0

OnTimeout = Callable[[Sequence[MadeGroup]], Exception]


@dataclass(frozen=True, slots=True)
class Placed:
    """A group that stands: for each bundle of the plan the index of Ray's bundle that is it, and what was found by index."""

    made: MadeGroup
    index: tuple[int, ...]
    found: tuple[Found, ...]


class _Lost(Exception):
    """This try came to nothing because another job took a GPU in between."""


def place(
    layout: Layout, nodes: Mapping[str, LiveNode], ledger: Ledger, *, exact: bool, deadline: float, on_timeout: OnTimeout
) -> list[Placed]:
    """Make all groups of a layout and match their bundles to the plan.

    Args:
        layout: the groups.
        nodes: live node of each plan node.
        ledger: where every group made is written down.
        exact: demand the planned ids; otherwise any ids on the right node are accepted.
        deadline: ``time.monotonic()`` at which to give up.
        on_timeout: makes the exception for the groups still waiting then.

    Raises:
        PlanMismatch: if a planned id belongs to somebody else, naming node, id and the free ids; if Ray can never place a
            group; if a node dies meanwhile.
    """
    made = [_create(ledger, group, nodes) for group in layout.groups]
    wait_created(made, deadline, on_timeout)
    found = probe(made, deadline, on_timeout)
    _check_nodes(made, found)
    placed: list[Placed | None] = [
        _matched(group, made[place], found[place], exact) for place, group in enumerate(layout.groups)
    ]
    wrong = _wrong_nodes(layout, placed, found)
    if wrong:
        _remake(layout, nodes, ledger, placed, wrong, deadline, on_timeout)
    return [entry for entry in placed if entry is not None]


def _create(ledger: Ledger, group: Group, nodes: Mapping[str, LiveNode]) -> MadeGroup:
    return ledger.create(group.name, group.bundles, nodes)


def match_bundles(wanted: Sequence[Bundle], found: Sequence[Found], exact: bool = True) -> tuple[int, ...] | None:
    """For each planned bundle the index of the bundle that is it; None if the planned ids are not all there.

    Bundle ``i`` was made for planned bundle ``i``; where Ray dealt the ids of a node in another order, another bundle of
    the same node and shape stands in. Without ``exact``, the bundles of a node and shape are taken by ascending id.

    Args:
        wanted: planned bundles.
        found: what stands in the bundle of each index.
    """
    answer = list(range(len(wanted)))
    alike: dict[tuple[str, tuple[int, int, int]], list[int]] = {}
    for index, bundle in enumerate(wanted):
        if bundle.gpus:
            alike.setdefault((bundle.node_id, bundle.shape), []).append(index)
    for indices in alike.values():
        by_ids = sorted(indices, key=lambda index: found[index].gpus)
        by_plan = sorted(indices, key=lambda index: wanted[index].gpus)
        for planned, actual in zip(by_plan, by_ids, strict=True):
            if exact and wanted[planned].gpus != found[actual].gpus:
                return None
            answer[planned] = actual
    return tuple(answer)


def _matched(group: Group, made: MadeGroup, found: Sequence[Found], exact: bool) -> Placed | None:
    index = match_bundles(group.bundles, found, exact)
    return None if index is None else Placed(made, index, tuple(found))


def _check_nodes(made: Sequence[MadeGroup], found: Sequence[Sequence[Found]]) -> None:
    """A pin is hard; that each bundle stands on its node is proved all the same."""
    faults = [
        f"node {bundle.node_id}: bundle {index} of group {group.name} is on Ray node {answer.ray_id[:8]}"
        for group, answers in zip(made, found, strict=True)
        for index, (bundle, answer) in enumerate(zip(group.bundles, answers, strict=True))
        if answer.ray_id != group.nodes[bundle.node_id].ray_id
    ]
    if faults:
        raise PlanMismatch(faults, "Ray put bundles on other nodes")


def _wrong_nodes(layout: Layout, placed: Sequence[Placed | None], found: Sequence[Sequence[Found]]) -> set[str]:
    """Plan nodes on which a group got other ids than planned."""
    wrong: set[str] = set()
    for place, group in enumerate(layout.groups):
        if placed[place] is None:
            for bundle, answer in zip(group.bundles, found[place], strict=True):
                if bundle.gpus != answer.gpus:
                    wrong.add(bundle.node_id)
    return wrong


def _gpus_on(group: Group, node_ids: set[str]) -> set[tuple[str, int]]:
    """The group's GPUs on these nodes."""
    return {(bundle.node_id, gpu) for bundle in group.bundles if bundle.node_id in node_ids for gpu in bundle.gpus}


def _remake(
    layout: Layout,
    nodes: Mapping[str, LiveNode],
    ledger: Ledger,
    placed: list[Placed | None],
    wrong: set[str],
    deadline: float,
    on_timeout: OnTimeout,
) -> None:
    """Make the groups that touch the wrong nodes anew, until every one has its ids."""
    missing_before: set[tuple[str, int]] = set()
    for attempt in range(TRIES):
        last = attempt == TRIES - 1
        # A group that is right may hold an id that another one wants back, so all that touch these nodes go.
        touched = [place for place, group in enumerate(layout.groups) if _gpus_on(group, wrong)]
        log.debug("try %d: nodes %s got other GPU ids than planned", attempt + 1, ", ".join(sorted(wrong)))
        ledger.remove([group for group in ledger.open if not _kept(group, placed, touched)], free_limit_s=1.0)
        for place in touched:
            placed[place] = None
        held = _hold_free(wrong, nodes, ledger, deadline, on_timeout)
        missing = {
            (node_id, gpu)
            for place in touched
            for node_id, gpu in _gpus_on(layout.groups[place], wrong)
            if gpu not in held[node_id]
        }
        if missing:
            # A job that takes and releases GPUs all the time may let go of it, so an id counts as taken when seen so twice.
            if last or missing & missing_before:
                raise _taken(missing, held)
            missing_before = missing
            _release(held, ledger)
            time.sleep(0.2)
            continue
        try:
            for place in touched:
                placed[place] = _remake_group(layout.groups[place], nodes, ledger, held, wrong, deadline, on_timeout)
        except _Lost:
            _release(held, ledger)
            continue
        _release(held, ledger)
        return
    raise PlanMismatch(
        [f"node {node_id}: other jobs kept taking and releasing GPUs through {TRIES} tries" for node_id in sorted(wrong)],
        "the planned GPUs could not be had",
    )


def _kept(group: MadeGroup, placed: Sequence[Placed | None], touched: Sequence[int]) -> bool:
    return any(entry is not None and entry.made is group for place, entry in enumerate(placed) if place not in touched)


Held = dict[str, dict[int, MadeGroup]]


def _hold_free(
    node_ids: set[str], nodes: Mapping[str, LiveNode], ledger: Ledger, deadline: float, on_timeout: OnTimeout
) -> Held:
    """Hold every free GPU of the nodes, each by a group of its own; by node and physical id."""
    return hold_free({node_id: nodes[node_id] for node_id in sorted(node_ids)}, ledger, deadline, on_timeout)


def hold_free(nodes: Mapping[str, LiveNode], ledger: Ledger, deadline: float, on_timeout: OnTimeout) -> Held:
    """Hold every GPU of the nodes that is free as a whole, for the moment, and find out which ones these are.

    Args:
        nodes: the nodes, by a name for each.
        ledger: where the holding groups are written down; the caller removes them.
        deadline: ``time.monotonic()`` at which to give up.
        on_timeout: makes the exception for probes that do not answer.
    """
    now = {node.ray_id: node for node in live_nodes() if node.alive}
    fillers: list[MadeGroup] = []
    for node_id, node in nodes.items():
        if node.ray_id not in now:
            raise PlanMismatch([f"node {node_id} died"], "the plan was not applied")
        for _ in range(int(now[node.ray_id].free_gpus + 1e-6)):
            bundle = Bundle(node_id, (0,), 0, 0, ())
            fillers.append(ledger.create(f"hold-{node_id}", [bundle], nodes, helper=True))
    wait_settled(fillers)
    standing = [group for group in fillers if group.state()[0] == "CREATED"]
    # What is free only in parts, or was taken meanwhile, cannot be held.
    ledger.remove([group for group in fillers if group not in standing], free_limit_s=0.5)
    held: Held = {node_id: {} for node_id in nodes}
    for group, answers in zip(standing, probe(standing, deadline, on_timeout) if standing else [], strict=True):
        held[group.bundles[0].node_id][answers[0].gpus[0]] = group
    return held


def _release(held: Held, ledger: Ledger) -> None:
    ledger.remove([group for by_id in held.values() for group in by_id.values()], free_limit_s=1.0)
    for by_id in held.values():
        by_id.clear()


def _remake_group(
    group: Group,
    nodes: Mapping[str, LiveNode],
    ledger: Ledger,
    held: Held,
    wrong: set[str],
    deadline: float,
    on_timeout: OnTimeout,
) -> Placed:
    """Let go of exactly the ids that the group wants, and make it: it gets those, unless another job is quicker."""
    ledger.remove([held[node_id].pop(gpu) for node_id, gpu in _gpus_on(group, set(held))], free_limit_s=1.0)
    made = _create(ledger, group, nodes)

    def stolen(waiting: Sequence[MadeGroup]) -> Exception:
        return on_timeout(waiting) if time.monotonic() > deadline else _Lost()

    wait_created([made], min(deadline, time.monotonic() + _STOLEN_AFTER_S), stolen)
    found = probe([made], deadline, on_timeout)
    _check_nodes([made], found)
    placed = _matched(group, made, found[0], True)
    if placed is None:
        wrong.update(
            bundle.node_id for bundle, answer in zip(group.bundles, found[0], strict=True) if bundle.gpus != answer.gpus
        )
        raise _Lost
    return placed


def _taken(missing: set[tuple[str, int]], held: Held) -> PlanMismatch:
    faults: list[str] = []
    for node_id in sorted({node_id for node_id, _ in missing}):
        ids = [gpu for node, gpu in sorted(missing) if node == node_id]
        free = format_ranges(ranges_of(held[node_id])) or "none"
        name = "GPU" if len(ids) == 1 else "GPUs"
        verb = "is" if len(ids) == 1 else "are"
        faults.append(f"node {node_id}: {name} {format_ranges(ranges_of(ids))} {verb} held by somebody else; free are {free}")
    return PlanMismatch(faults, "planned GPUs are taken")
