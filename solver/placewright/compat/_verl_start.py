"""What happens when verl starts a configuration: its check, its placement groups, its engines; followed without Ray.

Usage: through :mod:`placewright.compat.verl_config`.

When to modify: when verl makes its pools or engines in another way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from placewright.compat._ray_rooms import Rooms
from placewright.compat.verl_config import STANDALONE_COLOCATE, PoolSpec, VerlSettings, problem_of
from placewright_models.cluster import Cluster
from placewright_models.errors import InfeasibleProblem, InvalidProblem, SolveTimeout

_ORDER = ("starts", "splits", "hangs", "fails")
_MOST_TRIES = 400
_TIME_LIMIT_S = 10.0


class Start:
    """One start on a cluster.

    Attributes:
        verdict: the worst that was found.
        findings: sentences.
    """

    def __init__(self, settings: VerlSettings, cluster: Cluster) -> None:
        self.settings = settings
        self.cluster = cluster
        self.verdict = "starts"
        self.findings: list[str] = []
        self._rooms = Rooms(cluster.nodes)
        self._address = {node.id: node.ip or node.id for node in cluster.nodes}
        self._domain = {node.id: node.nvlink_domain for node in cluster.nodes}

    def _find(self, verdict: str, sentence: str) -> None:
        self.verdict = max(self.verdict, verdict, key=_ORDER.index)
        self.findings.append(sentence)

    def run(self) -> None:
        """Follow the start to its end, or to the first step that stops it."""
        if not self._manager_check(self.settings.pools):
            return
        for pool in self.settings.pools:
            ranks = self._place(pool)
            if ranks is None:
                return
            self._engines(pool, ranks)
            if self.verdict == "fails":
                return
        self._standalone()

    def _manager_check(self, pools: Sequence[PoolSpec]) -> bool:
        available, wanted = self._rooms.gpus, sum(pool.size for pool in pools)
        if available < wanted:
            self._find("fails", f"verl stops: Total available GPUs {available} is less than total desired GPUs {wanted}")
        return available >= wanted

    def _place(self, pool: PoolSpec) -> list[str] | None:
        """The node of each rank; None where a group waits for ever, or the pool cannot be laid out."""
        groups: list[tuple[str, int]] = []
        for number, count in enumerate(pool.counts, 1):
            cpus = count * pool.colocate
            node = self._rooms.strict_pack(count, cpus)
            if node is None:
                self._find(
                    "hangs",
                    f"group {number} of {len(pool.counts)} of {pool.name} asks {count} GPUs and {cpus} CPUs of one node and "
                    f"waits for ever; then free: {self._rooms.told(cpus)}",
                )
                return None
            groups.append((node, count))
        # verl sorts by the text of the ip; stores are not sorted with the groups.
        groups.sort(key=lambda group: self._address[group[0]])
        first = pool.counts[0]
        small = [count for _, count in groups if count < first]
        if small:
            self._find(
                "fails",
                f"verl's worker group takes {first} workers, the first count of {pool.name}, on every node: AssertionError on "
                f"a group of {small[0]}",
            )
            return None
        if len(groups) * first < pool.size:
            self._find(
                "hangs",
                f"verl's worker group starts {len(groups) * first} workers of {pool.name} (the first count, {first}, on each "
                f"of {len(groups)} groups) with WORLD_SIZE {pool.size}: they wait for the others for ever",
            )
            return None
        return [node for node, count in groups for _ in range(count)]

    def _engines(self, pool: PoolSpec, ranks: Sequence[str]) -> None:
        per_node = pool.counts[0]
        for role in ("rollout", "reward"):
            if role in pool.roles:
                width = self.settings.widths[role]
                if self._width_fits(role, width, per_node, pool.size):
                    self._cut(f"{role} replica", ranks, width, per_node)
        if "actor" in pool.roles and self.settings.tensor > 1:
            if pool.size % self.settings.tensor:
                self._find("fails", f"{pool.size} actor ranks are no multiple of its parallel size {self.settings.tensor}")
            else:
                self._cut("actor's tensor parallel group", ranks, self.settings.tensor, per_node)

    def _width_fits(self, role: str, width: int, per_node: int, size: int) -> bool:
        if size % width:
            self._find("fails", f"verl stops: {role} world_size {size} is not divisible by {width}, the GPUs of one replica")
            return False
        if width > per_node and width % per_node:
            self._find("fails", f"verl stops: a {role} replica of {width} GPUs must be divisible by gpus_per_node {per_node}")
            return False
        return True

    def _cut(self, what: str, ranks: Sequence[str], width: int, per_node: int) -> None:
        for index in range(len(ranks) // width):
            nodes = list(dict.fromkeys(ranks[index * width : (index + 1) * width]))
            domains = {self._domain[node] or node for node in nodes}
            if len(nodes) == 1:
                continue
            if width <= per_node:
                self._find("splits", f"{what} {index} of {width} GPUs is cut over {' and '.join(nodes)}")
                return
            if len(domains) > 1 and any(self._domain[node] for node in nodes):
                where = " and ".join(sorted(domains))
                self._find("splits", f"{what} {index} of {width} GPUs lies over the NVLink domains {where}")
                return

    def _standalone(self) -> None:
        settings = self.settings
        if not settings.standalone:
            return
        width, per_node = settings.widths["rollout"], settings.standalone[0]
        if not self._width_fits("rollout", width, per_node, sum(settings.standalone)):
            return
        for index in range(settings.replicas):
            pool = PoolSpec(f"rollout_pool_{index}", settings.replica_counts(), ("rollout",), STANDALONE_COLOCATE)
            if not self._manager_check([pool]):
                return
            ranks = self._place(pool)
            if ranks is None:
                return
            self._cut(f"rollout replica {index}:", ranks, width, min(width, per_node))


def smallest_change(settings: VerlSettings, cluster: Cluster, verdict: str) -> tuple[list[str], str]:
    """The planner's reasons where it finds no placement either, and the smallest change that helps."""
    reasons, order = _reasons(settings, cluster, verdict)
    changed = _other_numbers(settings, cluster) if settings.uniform else _even_pools(settings, cluster)
    if order:
        planned = "plan it (placewright import, placewright plan) and run verl with PLACEWRIGHT_PLAN set to the plan"
        planned += " and PLACEWRIGHT_ORDER=topology" if order == "topology" else ""
        return [], f"{changed}, or a placement exists: {planned}" if changed else f"a placement exists: {planned}"
    if changed:
        return reasons, changed
    return reasons, "no placement exists on this cluster, and no smaller trainer.nnodes and n_gpus_per_node helps"


def _reasons(settings: VerlSettings, cluster: Cluster, verdict: str) -> tuple[list[str], str]:
    """Why the planner finds no placement that verl can carry out; nothing, and the rank order, where it finds one."""
    from dataclasses import replace

    from placewright.export.target import ExportRefused
    from placewright.export.verl import ordered_pools
    from placewright.pipeline import plan

    # Whether there is a placement does not depend on the goals.
    problem = replace(problem_of(settings, cluster), goals=())
    if verdict == "splits":
        whole = [
            component if component.group is None else replace(component, group=replace(component.group, mode="required"))
            for component in problem.components
        ]
        problem = replace(problem, components=tuple(whole))
    try:
        _, order = ordered_pools(plan(problem, time_limit=_TIME_LIMIT_S))
    except InfeasibleProblem as error:
        return [reason.sentence for reason in error.reasons], ""
    except ExportRefused as error:
        return list(error.causes), ""
    except (SolveTimeout, InvalidProblem) as error:
        return [str(error)], ""
    return [], order


def _starts(settings: VerlSettings, cluster: Cluster) -> bool:
    start = Start(settings, cluster)
    start.run()
    return start.verdict == "starts"


def _other_numbers(settings: VerlSettings, cluster: Cluster) -> str:
    """Other trainer.nnodes and n_gpus_per_node that start, losing the fewest GPUs, then changing the fewest groups."""
    pool = settings.pools[0]
    nnodes, n_gpus = len(pool.counts), pool.counts[0]
    # A replica that lies in one group now stays in one: verl would start it over several, on any machines.
    least = min(settings.widths["rollout"], n_gpus)
    pairs = (pair for pair in _pairs(nnodes, n_gpus, Rooms(cluster.nodes).gpus) if pair[1] >= least)
    for tried, (other_nodes, other_gpus) in enumerate(pairs):
        if tried >= _MOST_TRIES:
            break
        if (other_nodes, other_gpus) != (nnodes, n_gpus) and _starts(settings.resized(other_nodes, other_gpus), cluster):
            lost = pool.size - other_nodes * other_gpus
            text = f"trainer.nnodes={other_nodes} trainer.n_gpus_per_node={other_gpus}"
            if lost:
                return f"{text} ({lost} GPU{'' if lost == 1 else 's'} fewer)"
            return f"{text} (the same {pool.size} GPUs, in groups of {other_gpus})"
    return ""


def _pairs(nnodes: int, n_gpus: int, most: int) -> Iterator[tuple[int, int]]:
    for total in range(min(nnodes * n_gpus, most), 0, -1):
        divisors = [size for size in range(1, total + 1) if total % size == 0]
        # Large groups first: a group is what verl takes for a node.
        for size in sorted(divisors, key=lambda size: (size > n_gpus, -size if size <= n_gpus else size)):
            yield total // size, size


def _even_pools(settings: VerlSettings, cluster: Cluster) -> str:
    """Pools of unequal counts cut into groups of one size, where that starts."""
    import math
    from dataclasses import replace

    pools = tuple(
        replace(pool, counts=(math.gcd(*pool.counts),) * (pool.size // math.gcd(*pool.counts))) for pool in settings.pools
    )
    if pools == settings.pools or not _starts(replace(settings, pools=pools), cluster):
        return ""
    texts = [
        f"resource_pool_spec.{pool.name}={list(pool.counts)}"
        for pool, old in zip(pools, settings.pools, strict=True)
        if pool != old
    ]
    return " ".join(texts)
