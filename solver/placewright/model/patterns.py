"""Node patterns: what one node of a class can hold, as few of them as the goals allow.

A pattern is a count per component. For components whose exact count per node no rule or goal looks at (*loose* ones) only
the largest counts matter: any smaller count of at least one fits as well, so a pattern stands for everything below it and
dominated patterns are dropped. For the others (*exact* ones) every count is a pattern of its own.
``docs/model.md`` has the proof. Usage: ``patterns(local, node_class, exact, limit)``. Modify this file when dominance changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

from placewright.index.topology import NodeClass
from placewright.model.local import Local

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
    choices = _choices(local, node_class, exact)
    if choices is None:
        return []
    if local.countable(node_class):
        # Resources decide alone.
        result = _countable(local, node_class, limit, choices)
    else:
        found = _Enumeration(local, node_class, exact, limit, choices).run()
        result = [pattern for group in found.values() for pattern in _undominated(group)]
    if len(result) > limit:
        raise TooManyPatterns
    return sorted(result, reverse=True)


_MOST_HARD = 100
"""Searches for a layout that may be given up per class, each followed by a solver call."""

_MOST_SEARCHES = 300
"""Searches for a layout per class, some ten milliseconds each: the time limit does not run yet."""


def _pairs_by_level(local: Local, node_class: NodeClass, choices: Sequence[Choice]) -> tuple[_Pairs, _Pairs]:
    """(follower, leader) and (a, b) that no node hosts together, each under the later of the two choices."""
    position = {c: level for level, choice in enumerate(choices) for c in choice.members}
    follows: _Pairs = [[] for _ in choices]
    for follower, leader in local.follows:
        follows[max(position[follower], position[leader])].append((follower, leader))
    apart: _Pairs = [[] for _ in choices]
    for pair in local.apart(node_class):
        apart[max(position[pair[0]], position[pair[1]])].append(pair)
    return follows, apart


_Pairs = list[list[tuple[int, int]]]


def _countable(local: Local, node_class: NodeClass, limit: int, choices: Sequence[Choice]) -> list[Pattern]:
    """Every undominated pattern of a class whose resources decide alone, all choices of one component at a time.

    A pattern is dominated exactly if one loose component that it holds could have its next larger count: what a dominating
    pattern holds of the other loose components is not less, so the step towards it fits.
    """
    # Only the encoder needs it: plans are read and verified without.
    import numpy as np

    resources = local.resources(node_class)
    capacity = np.array([resource.capacity for resource in resources], dtype=np.int64)
    counts = np.zeros((1, local.job.count), dtype=np.int64)
    used = np.zeros((1, len(resources)), dtype=np.int64)
    chosen: list[Any] = []
    usages: list[Any] = []
    follows, apart = _pairs_by_level(local, node_class, choices)
    for level, choice in enumerate(choices):
        options = np.array(choice.listed(), dtype=np.int64).reshape(-1, len(choice.members))
        usage = np.array(
            [[resource.used(local.job, choice.members, option) for resource in resources] for option in choice.listed()],
            dtype=np.int64,
        ).reshape(len(options), len(resources))
        if len(counts) * len(options) > _MOST_ROWS * limit:
            raise TooManyPatterns
        fits = (used[:, None, :] + usage[None, :, :] <= capacity).all(axis=2)
        # Whether a component is there: by option where it is chosen now, by row where it was before.
        there = {c: options[None, :, m] > 0 for m, c in enumerate(choice.members)}
        for follower, leader in follows[level]:
            fits &= there.get(follower, counts[:, follower, None] > 0) == there.get(leader, counts[:, leader, None] > 0)
        for a, b in apart[level]:
            fits &= ~(there.get(a, counts[:, a, None] > 0) & there.get(b, counts[:, b, None] > 0))
        rows, taken = np.nonzero(fits)
        counts = counts[rows]
        counts[:, list(choice.members)] = options[taken]
        used = used[rows] + usage[taken]
        chosen = [*(before[rows] for before in chosen), taken]
        usages.append(usage)
    keep = (counts > 0).any(axis=1)
    for choice, taken, usage in zip(choices, chosen, usages, strict=True):
        if choice.loose and len(usage) > 1:
            keep &= ~_could_hold_more(taken, usage, capacity - used)
    return [tuple(row) for row in counts[keep].tolist()]


def _could_hold_more(taken: Any, usage: Any, left: Any) -> Any:
    """Per row, whether a component that is there could have its next larger count with what is left of the resources."""
    following = (taken + 1).clip(max=len(usage) - 1)
    return (taken > 0) & (following > taken) & (usage[following] - usage[taken] <= left).all(axis=1)


_MOST_ROWS = 2000
"""Times the limit: combinations of what was chosen so far and the next component's counts."""


class _Enumeration:
    """Goes through the choices one after the other, and searches for a layout of what the resources let through."""

    def __init__(
        self, local: Local, node_class: NodeClass, exact: frozenset[int], limit: int, choices: list[Choice]
    ) -> None:
        self.local = local
        self.node_class = node_class
        self.exact = exact
        self.limit = limit
        self.choices = choices
        self.counts = [0] * local.job.count
        self.found: dict[tuple[int, ...], list[Pattern]] = {}
        self.steps = 0
        self.hard = 0
        self.searches = 0
        resources = local.resources(node_class)
        self.left = [resource.capacity for resource in resources]
        self.usage = [
            [[resource.used(local.job, choice.members, option) for resource in resources] for option in choice.listed()]
            for choice in choices
        ]
        self.follows, self.apart = _pairs_by_level(local, node_class, choices)

    def run(self) -> dict[tuple[int, ...], list[Pattern]]:
        self._visit(0)
        return self.found

    def _fits(self) -> bool:
        """Whether the counts chosen so far have a layout; gives up where too many searches were too hard."""
        fits = self.local.fits
        hard, searches = fits.hard, fits.searches
        answer = fits(self.node_class.shape, self.counts)
        self.hard += fits.hard - hard
        self.searches += fits.searches - searches
        if self.hard > _MOST_HARD or self.searches > _MOST_SEARCHES:
            raise TooManyPatterns
        return answer

    def _visit(self, level: int) -> None:
        self.steps += 1
        if self.steps > 40 * self.limit:
            raise TooManyPatterns
        counts, left = self.counts, self.left
        if level == len(self.choices):
            if any(counts):
                self._keep()
            return
        choice = self.choices[level]
        last = choice.loose and level == len(self.choices) - 1
        usage = self.usage[level]
        for index in range(len(choice.options) - 1, -1, -1):
            option = choice.options[index]
            for c, number in zip(choice.members, option, strict=True):
                counts[c] = number
            if any((counts[f] > 0) != (counts[leader] > 0) for f, leader in self.follows[level]):
                continue
            if index == 0:
                # The first option is always "none of them".
                self._visit(level + 1)
                continue
            if any(counts[a] and counts[b] for a, b in self.apart[level]):
                continue
            used = usage[index]
            if any(amount > rest for amount, rest in zip(used, left, strict=True)):
                continue
            if not self._fits():
                continue
            for r, amount in enumerate(used):
                left[r] -= amount
            self._visit(level + 1)
            for r, amount in enumerate(used):
                left[r] += amount
            if last:
                # The last loose component only ever needs its largest count, or none.
                for c in choice.members:
                    counts[c] = 0
                if not any((counts[f] > 0) != (counts[leader] > 0) for f, leader in self.follows[level]):
                    self._visit(level + 1)
                break
        for c in choice.members:
            counts[c] = 0

    def _keep(self) -> None:
        """File the pattern under who is there and the exact counts."""
        key = tuple(n if c in self.exact else min(n, 1) for c, n in enumerate(self.counts))
        self.found.setdefault(key, []).append(tuple(self.counts))
        if len(self.found) > self.limit:
            raise TooManyPatterns


class Choice(NamedTuple):
    """Members chosen together, the counts they may have (none first), and whether only large counts matter."""

    members: tuple[int, ...]
    options: Sequence[tuple[int, ...]]
    loose: bool

    def listed(self) -> Sequence[tuple[int, ...]]:
        """The options, refused where there are too many to write down."""
        if len(self.options) > 100_000:
            raise TooManyPatterns
        return self.options


def _choices(local: Local, node_class: NodeClass, exact: frozenset[int]) -> list[Choice] | None:
    """What to choose one after the other: colocated sets together, leaders before followers, widest choice last."""
    job = local.job
    together: set[int] = set()
    choices: list[Choice] = []
    for item in job.items:
        if len(item.members) > 1:
            together.update(item.members)
            choices.append(Choice(item.members, _colocated(local, node_class, item.members), False))
    singles = [c for c in range(job.count) if c not in together]
    followers = {c for c, _ in local.follows}

    def order(c: int) -> tuple[int, bool, int, int]:
        return (local.depth(c), c not in exact, len(local.counts(node_class, c)), c)

    for c in sorted(singles, key=order):
        loose = c not in exact and c not in followers
        counts = local.counts(node_class, c)
        if loose and len(counts) > 2 and _takes_nothing(local, node_class, c):
            counts = (0, counts[-1])
        choices.append(Choice((c,), Numbers(counts), loose))
    if any(len(choice.options) > 1 for choice in choices):
        return sorted(choices, key=lambda choice: max(local.depth(c) for c in choice.members))
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


def _undominated(group: list[Pattern]) -> list[Pattern]:
    """Drop patterns that another of the same group covers in every loose component."""
    best: list[Pattern] = []
    for pattern in sorted(set(group), reverse=True):
        if not any(all(a >= b for a, b in zip(other, pattern, strict=True)) for other in best):
            best.append(pattern)
    return best
