"""Layouts of one node: what fits (closed forms, interval search, GPU model, exhaustive), and how the decoder arranges it.

``exhaustive`` tries every set of GPUs for every component and shares no code with the library; the wishes of ``Arrange``
(design.md H5, H7) are compared with the best over all of its layouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise, product
from random import Random
from typing import Any

import pytest
from oracle.handmade import problem

from placewright.index.job import Job
from placewright.node.arrange import Arrange
from placewright.node.fits import Fits
from placewright.node.gpu_model import decide
from placewright.node.shape import Shape, demand
from placewright_models.cluster import Node
from placewright_models.ranges import ranges_of

Layout = dict[int, tuple[int, ...]]
"""Component -> workers on each GPU index of the node."""


def job_of(components: dict[str, Any], gpus: int = 8, unavailable: Sequence[int] = (), **rules: Any) -> tuple[Job, Shape]:
    asked = problem({"a": {"gpus": gpus, "unavailable_gpus": list(unavailable)}}, components, **rules)
    node = asked.cluster.nodes[0]
    return Job(asked), Shape(node.gpus, node.runs)


def runs_of(gpus: int, unavailable: Sequence[int]) -> Shape:
    return Shape(gpus, Node("a", gpus=gpus, unavailable_gpus=tuple(unavailable)).runs)


# Every layout, the slow way


def uses(job: Job, c: int, count: int, shape: Shape) -> Iterator[tuple[int, ...]]:
    """Every way to put ``count`` workers of one component on the node, as workers per GPU."""
    free = [g for start, end in shape.runs for g in range(start, end + 1)]
    component = job.components[c]
    found: set[tuple[int, ...]] = set()
    if component.fractional:
        units = int(component.gpus * 10_000)
        for numbers in product(range(10_000 // units + 1), repeat=len(free)):
            if sum(numbers) == count:
                found.add(tuple(dict(zip(free, numbers, strict=True)).get(g, 0) for g in range(shape.gpus)))
    else:
        width = int(component.gpus)
        starts = [s for s in free if all(s + i in free for i in range(width)) and not (component.aligned and s % width)]
        for chosen in combinations(starts, count):
            if all(b - a >= width for a, b in pairwise(chosen)):
                on = {g for s in chosen for g in range(s, s + width)}
                found.add(tuple(int(g in on) for g in range(shape.gpus)))
    whole = not free or free[-1] - free[0] + 1 == len(free)
    for use in sorted(found):
        on_gpus = [g for g in range(shape.gpus) if use[g]]
        if not whole or not on_gpus or on_gpus[-1] - on_gpus[0] + 1 == len(on_gpus):
            yield use


def layouts(job: Job, shape: Shape, counts: Sequence[int]) -> Iterator[Layout]:
    """Every layout of the node that H2 to H5, H7, H11 and alignment allow."""
    with_gpus = [c for c in range(job.count) if job.components[c].gpus]
    colocated = [set(job.names(list(names))) for names in job.problem.colocated_sets]
    for picked in product(*(list(uses(job, c, counts[c], shape)) for c in with_gpus)):
        layout = dict(zip(with_gpus, picked, strict=True))
        if fits_together(job, shape, layout, colocated):
            yield layout


def fits_together(job: Job, shape: Shape, layout: Layout, colocated: Sequence[set[int]]) -> bool:
    for members in colocated:
        if len({tuple(n > 0 for n in layout[c]) for c in members}) > 1:
            return False
    for g in range(shape.gpus):
        here = [c for c in layout if layout[c][g]]
        for a, b in combinations(here, 2):
            if not job.problem.may_share(job.components[a].name, job.components[b].name):
                return False
        units = 0
        for c in here:
            component = job.components[c]
            share = component.gpus if component.fractional else component.gpu_share
            units += 0 if share is None else int(share * 10_000) * layout[c][g]
        if units > 10_000:
            return False
    return True


def exhaustive(job: Job, shape: Shape, counts: Sequence[int]) -> bool:
    return next(layouts(job, shape, counts), None) is not None


# Random questions

NAMES = ("train", "rollout", "eval", "env")


def random_job(rng: Random) -> tuple[Job, Shape]:
    names = rng.sample(NAMES, rng.randint(1, 3))
    components: dict[str, Any] = {}
    for name in names:
        gpus = rng.choice([1, 1, 2, 2, 3, 0.5, 0.34])
        components[name] = {"workers": 6, "gpus": gpus}
        if gpus >= 1 and rng.random() < 0.4:
            components[name]["gpu_share"] = rng.choice([0.3, 0.5, 0.7])
        if gpus >= 1 and rng.random() < 0.25:
            components[name]["aligned"] = True
    rules: dict[str, Any] = {}
    if len(names) > 1:
        if rng.random() < 0.6:
            rules["share_gpus"] = [rng.sample(names, 2) for _ in range(rng.randint(1, 2))]
        if rng.random() < 0.25:
            rules["colocate"] = [rng.sample(names, 2)]
    gpus = rng.choice([3, 4, 5])
    unavailable = rng.sample(range(gpus), rng.choice([0, 0, 1, 2]))
    return job_of(components, gpus, sorted(unavailable), **rules)


def random_counts(rng: Random, job: Job) -> tuple[int, ...]:
    return tuple(rng.choice([0, 1, 1, 2, 3, 4]) for _ in range(job.count))


def test_fits_model_and_exhaustion_agree() -> None:
    seen = {True: 0, False: 0}
    for seed in range(600):
        rng = Random(seed)
        job, shape = random_job(rng)
        fits = Fits(job)
        counts = random_counts(rng, job)
        want = exhaustive(job, shape, counts)
        seen[want] += 1
        assert fits(shape, counts) == want, (seed, shape, counts, job.components)
        pieces = demand(job, counts)
        if pieces is None:
            assert not want
        elif pieces:
            assert decide(job, shape, counts, [piece.item for piece in pieces]) == want, seed
    assert min(seen.values()) > 130, seen


def test_what_fits_remembers_from_other_questions_is_right() -> None:
    """One instance asked many counts in any order: an answer taken from more or fewer workers must be the searched one."""
    for seed in range(3000, 3120):
        rng = Random(seed)
        job, shape = random_job(rng)
        fits = Fits(job)
        for _ in range(12):
            counts = random_counts(rng, job)
            assert fits(shape, counts) == exhaustive(job, shape, counts), (seed, shape, counts, job.components)


def test_arrangements_are_layouts_and_the_best_ones() -> None:
    """In this order: fewest GPUs for shares, fewest ranges, most GPUs of the node used; left to right is tested below."""
    done = 0
    for seed in range(1000, 2600):
        rng = Random(seed)
        job, shape = random_job(rng)
        counts = random_counts(rng, job)
        if not any(counts) or not Fits(job)(shape, counts):
            continue
        made = Arrange(job)(shape, counts)
        mine: Layout = {}
        for c in range(job.count):
            use = [0] * shape.gpus
            for ranges in made.workers.get(c, ()):
                for start, end in ranges:
                    for g in range(start, end + 1):
                        use[g] += 1
            mine[c] = tuple(use)
            assert len(made.workers.get(c, ())) == counts[c]
            assert made.ranges.get(c, ()) == ranges_of(g for g in range(shape.gpus) if use[g])
        every = list(layouts(job, shape, counts))
        assert mine in every, (seed, mine)
        assert wish(job, mine) == min(wish(job, layout) for layout in every), (seed, mine, job.components)
        done += 1
    assert done > 400


def wish(job: Job, layout: Layout) -> tuple[int, int, int]:
    """GPUs of components that are only shares, ranges of each colocated set or component, minus GPUs used."""
    shares, ranges = 0, 0
    for item in job.items:
        on = [g for g, n in enumerate(layout[item.members[0]]) if n]
        ranges += len(ranges_of(on))
        if not item.whole:
            shares += len(on)
    used = {g for use in layout.values() for g, n in enumerate(use) if n}
    return shares, ranges, -len(used)


# Examples worked out by hand


def fits(
    counts: dict[str, int], components: dict[str, Any], gpus: int = 8, unavailable: Sequence[int] = (), **rules: Any
) -> bool:
    job, shape = job_of(components, gpus, unavailable, **rules)
    return Fits(job)(shape, [counts.get(component.name, 0) for component in job.components])


def arranged(
    counts: dict[str, int], components: dict[str, Any], gpus: int = 8, unavailable: Sequence[int] = (), **rules: Any
) -> Any:
    job, shape = job_of(components, gpus, unavailable, **rules)
    made = Arrange(job)(shape, tuple(counts.get(component.name, 0) for component in job.components))
    return {component.name: made.ranges[c] for c, component in enumerate(job.components) if c in made.ranges}


def w(gpus: float, **fields: Any) -> dict[str, Any]:
    return {"workers": 64, "gpus": gpus, **fields}


CIRCLE = [["p", "r"], ["q", "s"], ["r", "t"], ["s", "p"], ["t", "q"]]
"""Who may share, so that those who may not are a circle of five."""


@pytest.mark.parametrize(
    ("what", "gpus", "counts", "components", "rules", "want"),
    [
        (
            "0.7 + 0.25 + 0.05",
            1,
            {"actor": 1, "env": 1, "reward": 1},
            {"actor": w(1, gpu_share=0.7), "env": w(0.25), "reward": w(0.05)},
            {"share_gpus": [["actor", "env", "reward"]]},
            True,
        ),
        (
            "0.7 + 0.25 + 0.0501",
            1,
            {"actor": 1, "env": 1, "reward": 1},
            {"actor": w(1, gpu_share=0.7), "env": w(0.25), "reward": w(0.0501)},
            {"share_gpus": [["actor", "env", "reward"]]},
            False,
        ),
        (
            "1.0 + 0.01",
            1,
            {"rollout": 1, "helper": 1},
            {"rollout": w(1, gpu_share=1.0), "helper": w(0.01)},
            {"share_gpus": [["rollout", "helper"]]},
            False,
        ),
        (
            "0.9 + 0.01",
            1,
            {"rollout": 1, "helper": 1},
            {"rollout": w(1, gpu_share=0.9), "helper": w(0.01)},
            {"share_gpus": [["rollout", "helper"]]},
            True,
        ),
        (
            "0.33 + 0.56 + 0.11",
            1,
            {"train": 1, "rollout": 1, "reward": 1},
            {"train": w(0.33), "rollout": w(0.56), "reward": w(0.11)},
            {"share_gpus": [["train", "rollout", "reward"]]},
            True,
        ),
        (
            "two actors of 0.5, four env of 0.18",
            2,
            {"actor": 2, "env": 4},
            {"actor": w(1, gpu_share=0.5), "env": w(0.18)},
            {"share_gpus": [["actor", "env"]]},
            True,
        ),
        (
            "two actors of 0.5, five env of 0.18",
            2,
            {"actor": 2, "env": 5},
            {"actor": w(1, gpu_share=0.5), "env": w(0.18)},
            {"share_gpus": [["actor", "env"]]},
            False,
        ),
        ("5 x 0.6 on 5", 5, {"eval": 5}, {"eval": w(0.6)}, {}, True),
        ("5 x 0.6 on 4", 4, {"eval": 5}, {"eval": w(0.6)}, {}, False),
        ("40 x 0.18 on 8", 8, {"env": 40}, {"env": w(0.18)}, {}, True),
        ("41 x 0.18 on 8", 8, {"env": 41}, {"env": w(0.18)}, {}, False),
        ("7 x 1/7 on 1", 1, {"env": 7}, {"env": w(1 / 7)}, {}, True),
        (
            "those that give no share take turns",
            1,
            {"actor": 1, "ref": 1, "env": 5},
            {"actor": w(1), "ref": w(1), "env": w(0.2)},
            {"share_gpus": [["actor", "ref", "env"]]},
            True,
        ),
        ("circle of five on 5", 5, dict.fromkeys("pqrst", 1), {name: w(2) for name in "pqrst"}, {"share_gpus": CIRCLE}, False),
        ("circle of five on 6", 6, dict.fromkeys("pqrst", 1), {name: w(2) for name in "pqrst"}, {"share_gpus": CIRCLE}, True),
        (
            "env over actor and rollout",
            4,
            {"actor": 2, "rollout": 2, "env": 4},
            {"actor": w(1), "rollout": w(1), "env": w(1)},
            {"share_gpus": [["env", "actor"], ["env", "rollout"]]},
            True,
        ),
        (
            "actor and rollout apart",
            3,
            {"actor": 2, "rollout": 2},
            {"actor": w(1), "rollout": w(1), "env": w(1)},
            {"share_gpus": [["env", "actor"], ["env", "rollout"]]},
            False,
        ),
        (
            "engines over actors",
            8,
            {"actor": 8, "rollout": 2},
            {"actor": w(1), "rollout": w(4)},
            {"colocate": [["actor", "rollout"]]},
            True,
        ),
        (
            "engines over too few actors",
            8,
            {"actor": 6, "rollout": 2},
            {"actor": w(1), "rollout": w(4)},
            {"colocate": [["actor", "rollout"]]},
            False,
        ),
    ],
)
def test_fits_by_hand(what: str, gpus: int, counts: dict[str, int], components: Any, rules: Any, want: bool) -> None:
    assert fits(counts, components, gpus, **rules) == want
    job, shape = job_of(components, gpus, **rules)
    vector = [counts.get(component.name, 0) for component in job.components]
    if gpus <= 2 or all(not component.fractional for component in job.components):
        assert exhaustive(job, shape, vector) == want
    if want:
        Arrange(job)(shape, tuple(vector))
    else:
        with pytest.raises(ValueError, match="no layout"):
            Arrange(job)(shape, tuple(vector))


def test_holes() -> None:
    assert not fits({"train": 1}, {"train": w(5)}, 8, [3, 7])
    assert fits({"train": 2}, {"train": w(3)}, 8, [3, 7])
    assert not fits({"train": 3}, {"train": w(2)}, 8, [1, 3, 5])
    assert fits({"train": 1, "ref": 4}, {"train": w(2), "ref": w(1)}, 8, [1, 3])
    assert not fits({"train": 1}, {"train": w(4, aligned=True)}, 8, [0, 7])
    assert fits({"train": 1}, {"train": w(4)}, 8, [0, 7])


def test_left_to_right() -> None:
    """train, actor, critic, ref, reward, rollout, eval, env, buffer, then other names in natural order."""
    components = {name: w(1) for name in ("judge10", "judge2", "env", "eval", "rollout", "reward", "ref", "train")}
    found = arranged(dict.fromkeys(components, 1), components)
    order = ("train", "ref", "reward", "rollout", "eval", "env", "judge2", "judge10")
    assert found == {name: ((i, i),) for i, name in enumerate(order)}


def test_on_a_node_with_the_first_gpus_gone() -> None:
    found = arranged({"train": 2, "rollout": 1}, {"train": w(1), "rollout": w(2)}, 8, [0, 1, 2, 3])
    assert found == {"train": ((4, 5),), "rollout": ((6, 7),)}


def test_fewest_ranges_on_a_node_with_holes() -> None:
    assert arranged({"train": 3}, {"train": w(1)}, 8, [2]) == {"train": ((3, 5),)}
    assert arranged({"train": 2}, {"train": w(1)}, 8, [2]) == {"train": ((0, 1),)}
    assert arranged({"train": 6}, {"train": w(1)}, 8, [2]) == {"train": ((0, 1), (3, 6))}


def test_components_that_may_share_overlap_only_as_far_as_they_must() -> None:
    components = {"train": w(1), "rollout": w(1)}
    share = {"share_gpus": [["train", "rollout"]]}
    assert arranged({"train": 4, "rollout": 4}, components, **share) == {"train": ((0, 3),), "rollout": ((4, 7),)}
    assert arranged({"train": 6, "rollout": 4}, components, **share) == {"train": ((0, 5),), "rollout": ((4, 7),)}
    assert arranged({"train": 8, "rollout": 4}, components, **share) == {"train": ((0, 7),), "rollout": ((0, 3),)}


def test_shares_take_the_fewest_gpus() -> None:
    assert arranged({"env": 12}, {"env": w(0.18)}) == {"env": ((0, 2),)}
    job, shape = job_of({"env": w(0.18)})
    made = Arrange(job)(shape, (12,))
    assert [ranges[0][0] for ranges in made.workers[0]] == [0] * 5 + [1] * 5 + [2] * 2


def test_workers_are_numbered_left_to_right() -> None:
    job, shape = job_of({"rollout": w(2), "train": w(1)})
    made = Arrange(job)(shape, (3, 2))
    assert made.workers == {0: (((0, 0),), ((1, 1),), ((2, 2),)), 1: (((3, 4),), ((5, 6),))}


def test_colocated_members_have_equal_gpus() -> None:
    components = {"actor": w(1), "rollout": w(4), "train": w(1)}
    found = arranged({"actor": 4, "rollout": 1, "train": 3}, components, colocate=[["actor", "rollout"]])
    assert found == {"train": ((0, 2),), "actor": ((3, 6),), "rollout": ((3, 6),)}


@pytest.mark.parametrize(
    ("train", "rollout", "reward", "want"),
    [
        (8, 8, 8, True),
        (8, 8, 9, False),
        (9, 8, 8, False),
        (12, 6, 6, True),
        (12, 6, 7, False),
        (10, 7, 7, True),
        (9, 7, 10, True),
    ],
)
def test_three_kinds_of_shares_on_eight_gpus(train: int, rollout: int, reward: int, want: bool) -> None:
    """0.33 + 0.56 + 0.11 is one GPU exactly; a search over all splits of these took hours, so it may give up to a solver."""
    components = {"train": w(0.33), "rollout": w(0.56), "reward": w(0.11)}
    job, shape = job_of(components, 8, share_gpus=[list(components)])
    order = {"train": train, "rollout": rollout, "reward": reward}
    counts = [order[component.name] for component in job.components]
    assert Fits(job)(shape, counts) == want
    if want:
        made = Arrange(job)(shape, tuple(counts))
        assert [len(made.workers[c]) for c in range(3)] == counts
