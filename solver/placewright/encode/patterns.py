"""Node patterns: what one node of a class can hold, as few of them as the goals allow.

A pattern is a count per component. For components whose exact count per node no rule or goal looks at (*loose* ones) only
the largest counts matter: any smaller count of at least one fits as well, so a pattern stands for everything below it and
dominated patterns are dropped. For the others (*exact* ones) every count is a pattern of its own.
``docs/model.md`` has the proof. Usage: ``patterns(local, node_class, exact, limit)``. Modify this file when dominance changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

from placewright.encode.classes import NodeClass
from placewright.encode.local import Local

Pattern = tuple[int, ...]


class TooManyPatterns(Exception):
    """The class has more patterns than are worth a variable each; the caller encodes its nodes one by one."""


class Numbers(Sequence[tuple[int, ...]]):
    """The counts of one component as options; never written out, since there may be millions."""

    def __init__(self, counts: Sequence[int]) -> None:
        self.counts = counts

    def __len__(self) -> int:
        return len(self.counts)

    @overload
    def __getitem__(self, index: int) -> tuple[int, ...]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[tuple[int, ...]]: ...

    def __getitem__(self, index: int | slice) -> tuple[int, ...] | Sequence[tuple[int, ...]]:
        return Numbers(self.counts[index]) if isinstance(index, slice) else (self.counts[index],)


def patterns(local: Local, node_class: NodeClass, exact: frozenset[int], limit: int) -> list[Pattern]:
    """Every pattern of the class but the empty one, in a fixed order.

    Args:
        exact: components whose exact count per node matters.
        limit: how many patterns are too many.

    Raises:
        TooManyPatterns: if there are more than ``limit``, or finding them takes too long.
    """
    job = local.job
    leaders = dict(local.follows)
    choices = _choices(local, node_class, exact)
    if choices is None:
        return []
    apart = local.apart(node_class)
    counts = [0] * job.count
    position = {c: level for level, (members, _, _) in enumerate(choices) for c in members}
    found: dict[tuple[int, ...], list[Pattern]] = {}
    steps = 0
    shape = node_class.shape

    def follows(level: int) -> bool:
        """A follower is there exactly where its leader is; checked as soon as both are chosen."""
        return all(
            (counts[c] > 0) == (counts[leader] > 0)
            for c, leader in leaders.items()
            if max(position[c], position[leader]) == level
        )

    def acceptable() -> bool:
        if any(counts[a] and counts[b] for a, b in apart):
            return False
        return local.resources_fit(node_class, counts) and local.fits(shape, counts)

    def visit(level: int) -> None:
        nonlocal steps
        steps += 1
        if steps > 40 * limit:
            raise TooManyPatterns
        if level == len(choices):
            if any(counts):
                _keep(found, counts, exact)
                if len(found) > limit:
                    raise TooManyPatterns
            return
        members, options, loose = choices[level]
        first_fit = False
        for option in reversed(options):
            for c, number in zip(members, option, strict=True):
                counts[c] = number
            if follows(level) and (not any(option) or acceptable()):
                # The last loose component only ever needs its largest count, or none.
                if not (loose and level == len(choices) - 1 and first_fit and any(option)):
                    visit(level + 1)
                first_fit = first_fit or any(option)
        for c in members:
            counts[c] = 0

    visit(0)
    result = [pattern for group in found.values() for pattern in _undominated(group, exact)]
    if len(result) > limit:
        raise TooManyPatterns
    return sorted(result, reverse=True)


def _choices(
    local: Local, node_class: NodeClass, exact: frozenset[int]
) -> list[tuple[tuple[int, ...], Sequence[tuple[int, ...]], bool]] | None:
    """What to choose one after the other: colocated sets together, leaders before followers, widest choice last."""
    job = local.job
    together: set[int] = set()
    choices: list[tuple[tuple[int, ...], Sequence[tuple[int, ...]], bool]] = []
    for item in job.items:
        if len(item.members) > 1:
            together.update(item.members)
            choices.append((item.members, _colocated(local, node_class, item.members), False))
    singles = [c for c in range(job.count) if c not in together]
    leaders = dict(local.follows)

    def depth(c: int) -> int:
        steps = 0
        while c in leaders:
            c, steps = leaders[c], steps + 1
        return steps

    def order(c: int) -> tuple[int, bool, int, int]:
        return (depth(c), c not in exact, len(local.counts(node_class, c)), c)

    for c in sorted(singles, key=order):
        options: list[tuple[int, ...]] = [(n,) for n in local.counts(node_class, c)]
        choices.append(((c,), options, c not in exact and c not in leaders))
    if any(len(options) > 1 for _, options, _ in choices):
        return sorted(choices, key=lambda choice: max(depth(c) for c in choice[0]))
    return None


def _takes_nothing(local: Local, node_class: NodeClass, c: int) -> bool:
    """Whether workers of c take nothing from the node that could run short, so that only its largest count matters."""
    job = local.job
    free_of_cpu = node_class.cpu_units is None or not job.cpu_units[c]
    return not job.needs_gpu[c] and free_of_cpu and (node_class.memory is None or not job.memory[c])


def _colocated(local: Local, node_class: NodeClass, members: Sequence[int]) -> list[tuple[int, ...]]:
    """Counts of a colocated set that share one GPU set, none included."""
    job = local.job
    options: list[tuple[int, ...]] = [(0,) * len(members)]
    counts = [0] * job.count

    def extend(position: int) -> Iterator[tuple[int, ...]]:
        if position == len(members):
            if local.fits(node_class.shape, counts):
                yield tuple(counts[c] for c in members)
            return
        c = members[position]
        whole = [counts[m] * job.width[m] for m in members[:position] if not job.fractional[m]]
        for number in local.counts(node_class, c)[1:]:
            if whole and not job.fractional[c] and number * job.width[c] != whole[0]:
                continue
            counts[c] = number
            yield from extend(position + 1)
        counts[c] = 0

    options.extend(extend(0))
    return sorted(options)


def _keep(found: dict[tuple[int, ...], list[Pattern]], counts: Sequence[int], exact: frozenset[int]) -> None:
    """File the pattern under who is there and the exact counts."""
    key = tuple(n if c in exact else min(n, 1) for c, n in enumerate(counts))
    found.setdefault(key, []).append(tuple(counts))


def _undominated(group: list[Pattern], exact: frozenset[int]) -> list[Pattern]:
    """Drop patterns that another of the same group covers in every loose component."""
    best: list[Pattern] = []
    for pattern in sorted(set(group), reverse=True):
        if not any(all(a >= b for a, b in zip(other, pattern, strict=True)) for other in best):
            best.append(pattern)
    return best
