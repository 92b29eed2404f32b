"""What happens when NeMo-RL starts a configuration: its segments, its virtual clusters, its groups; followed without Ray.

Usage: through :mod:`placewright.compat.nemo_rl_config`.

When to modify: when NeMo-RL chooses nodes or makes its clusters in another way.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from placewright.compat._nemo_config import NVLINK_DOMAIN_UNKNOWN, TOPO_RANK_UNKNOWN
from placewright.compat._nemo_topology import ResourceInsufficientError, select_segment_nodes
from placewright.compat._ray_rooms import Rooms
from placewright.compat.nemo_rl_config import NemoSettings, Role, problem_of
from placewright_models.cluster import Cluster
from placewright_models.errors import InfeasibleProblem, InvalidProblem, SolveTimeout

_ORDER = ("starts", "splits", "hangs", "fails")
_MOST_TRIES = 200
_TIME_LIMIT_S = 10.0


class Start:
    """One start on a cluster.

    Attributes:
        verdict: the worst that was found.
        findings: sentences.
        notes: what NeMo-RL does silently.
    """

    def __init__(self, settings: NemoSettings, cluster: Cluster) -> None:
        self.settings = settings
        self.verdict = "starts"
        self.findings: list[str] = []
        self.notes: list[str] = []
        self._rooms = Rooms(cluster.nodes)
        self._total = (self._rooms.gpus, self._rooms.cpus)
        self._topology = {
            node.id: (
                node.nvlink_domain or NVLINK_DOMAIN_UNKNOWN,
                TOPO_RANK_UNKNOWN if node.topo_rank is None else node.topo_rank,
            )
            for node in cluster.nodes
            if node.excluded is None
        }
        self._domains = any(domain != NVLINK_DOMAIN_UNKNOWN for domain, _ in self._topology.values())

    def _find(self, verdict: str, sentence: str) -> None:
        self.verdict = max(self.verdict, verdict, key=_ORDER.index)
        self.findings.append(sentence)

    def run(self) -> None:
        """Follow the start to its end, or to the first step that stops it."""
        settings = self.settings
        if settings.refusal:
            self._find("fails", f"NeMo-RL stops: {settings.refusal}")
            return
        roles = [*settings.roles, *([settings.generation] if settings.generation else [])]
        for role in roles:
            if role.size % role.parallel:
                wide = f"a model replica is {role.parallel} GPUs"
                self._find("fails", f"NeMo-RL stops: {role.name} has {role.size} GPUs and {wide}, which does not divide them")
        domains = self._segments()
        if self.verdict == "fails" or domains is None:
            return
        for role in settings.roles:
            ranks = self._place(role, domains.get(role.name))
            if ranks is None:
                return
            self._groups(role, ranks)
            if role is settings.roles[0] and settings.generation is not None:
                self._groups(settings.generation, ranks)

    def _segments(self) -> dict[str, list[str]] | None:
        """The NVLink domain of each logical node, by role; None where NeMo-RL stops."""
        chosen: dict[str, list[str]] = {}
        if any(role.segment for role in self.settings.roles) and not self._domains:
            self.notes.append("segment_size is set but no node tells its NVLink domain: NeMo-RL takes any nodes, in any order")
            return chosen
        left = dict(self._topology)
        for role in self.settings.roles:
            if role.segment is None:
                continue
            try:
                selected, remaining = select_segment_nodes(left, role.segment, role.nodes)
            except (ValueError, ResourceInsufficientError) as error:
                self._find("fails", f"NeMo-RL stops at the nodes of {role.name}: {type(error).__name__}: {error}")
                return None
            chosen[role.name] = [left[node][0] for node in selected]
            left = {node: left[node] for node in remaining}
        return chosen

    def _place(self, role: Role, domains: Sequence[str] | None) -> list[str] | None:
        """The node of each rank; None where NeMo-RL stops or waits."""
        for what, wanted, there in (
            ("GPU", role.size, self._total[0]),
            ("CPU", role.size * role.cpus, self._total[1]),
        ):
            if there is not None and wanted > there:
                self._find(
                    "fails",
                    f"NeMo-RL stops after its tries: Not enough {what}s available. Requested {wanted} {what}s, but only "
                    f"{there} are available in the cluster.",
                )
                return None
        ranks: list[str] = []
        if role.unified and domains is None:
            usable = sum(1 for room in self._rooms.all if room.bundles(role.cpus))
            found = self._unified(role)
            if found is None:
                self._waits(role, f"the group of {role.size} bundles")
                return None
            used = Counter(found)
            if len(used) > role.nodes:
                self._find(
                    "splits",
                    f"{role.name} asks {role.nodes} nodes of {role.gpus} GPUs in one group with strategy {role.unified}: Ray "
                    f"puts its {role.size} bundles on {len(used)} of {usable} nodes, {max(used.values())} on one at most",
                )
            return sorted(found, key=list(dict.fromkeys(found)).index)
        for index in range(role.nodes):
            allowed = None
            if domains is not None:
                allowed = {node for node, (domain, _) in self._topology.items() if domain == domains[index]}
            placed = self._rooms.pack(role.gpus, role.cpus, allowed)
            if placed is None:
                self._waits(role, f"logical node {index} of {role.gpus} GPUs and {role.gpus * role.cpus} CPUs")
                return None
            if len(set(placed)) > 1:
                where = " and ".join(f"{node} ({count})" for node, count in Counter(placed).items())
                self._find("splits", f"logical node {index} of {role.name}, {role.gpus} GPUs, is cut over {where}")
            ranks += placed
        if role.segment and domains is not None:
            # With segments the ranks go by topology.
            ranks.sort(key=lambda node: (self._least_rank(self._topology[node][0]), *self._topology[node], node))
        return ranks

    def _least_rank(self, domain: str) -> int:
        return min(rank for other, rank in self._topology.values() if other == domain)

    def _unified(self, role: Role) -> list[str] | None:
        if role.unified == "SPREAD":
            return self._rooms.spread(role.size, role.cpus)
        return self._rooms.pack(role.size, role.cpus)

    def _waits(self, role: Role, what: str) -> None:
        self._find(
            "hangs",
            f"{what} of {role.name} waits: NeMo-RL gives up with a TimeoutError after three minutes; then free: "
            f"{self._rooms.told(role.cpus)}",
        )

    def _groups(self, role: Role, ranks: Sequence[str]) -> None:
        """Whether the groups lie in one node where they fit, and in one domain where domains are known."""
        if role.span < 2:
            return
        if role.span <= role.gpus:
            crossing = [
                index
                for index in range(len(ranks) // role.span)
                if len(set(ranks[index * role.span : (index + 1) * role.span])) > 1
            ]
            if crossing:
                self._find(
                    "splits",
                    f"{len(crossing)} groups of {role.span} GPUs of {role.name} lie on several nodes, the first is group "
                    f"{crossing[0]}",
                )
            return
        if not self._domains:
            return
        for index in range(len(ranks) // role.span):
            nodes = dict.fromkeys(ranks[index * role.span : (index + 1) * role.span])
            units = dict.fromkeys(self._unit(node) for node in nodes)
            if len(units) > 1:
                self._find(
                    "splits",
                    f"group {index} of {role.span} GPUs of {role.name} lies over {len(nodes)} nodes of {len(units)} NVLink "
                    f"domains ({', '.join(units)})",
                )
                return

    def _unit(self, node: str) -> str:
        """The node's NVLink domain; the node itself where it has none."""
        domain = self._topology[node][0]
        return node if domain == NVLINK_DOMAIN_UNKNOWN else domain


def smallest_change(settings: NemoSettings, cluster: Cluster, verdict: str) -> tuple[list[str], str]:
    """The planner's reasons where it finds no placement either, and the smallest change that helps."""
    from placewright.pipeline import plan

    problem = problem_of(settings, cluster)
    if verdict == "splits":
        problem = replace(
            problem,
            components=tuple(
                component if component.group is None else replace(component, group=replace(component.group, mode="required"))
                for component in problem.components
            ),
        )
    changed = next(_others(settings, cluster), "")
    try:
        # Whether there is a placement does not depend on the goals.
        plan(replace(problem, goals=()), time_limit=_TIME_LIMIT_S)
    except InfeasibleProblem as error:
        reasons = [reason.sentence for reason in error.reasons]
        most = [
            f"at most {reason.most_workers} GPUs of {name} fit"
            for reason in error.reasons
            if reason.most_workers is not None
            for name in reason.components
        ]
        return reasons, changed or f"no placement exists on this cluster{': ' + '; '.join(most) if most else ''}"
    except (SolveTimeout, InvalidProblem) as error:
        return [str(error)], changed
    planned = "plan it and run it with PLACEWRIGHT_PLAN=PLAN python -m placewright.compat.nemo_rl SCRIPT"
    return [], f"a placement exists: {planned}" + (f"; or {changed}" if changed else "")


def _others(settings: NemoSettings, cluster: Cluster) -> Iterator[str]:
    """Settings that start: another segment size first, then fewer nodes for training, then GPUs per node."""
    policy = settings.roles[0]
    for tried, (text, other) in enumerate(_candidates(settings, policy)):
        if tried >= _MOST_TRIES:
            return
        start = Start(other, cluster)
        start.run()
        if start.verdict == "starts":
            yield text


def _candidates(settings: NemoSettings, policy: Role) -> Iterator[tuple[str, NemoSettings]]:
    def with_policy(**fields: int | None) -> NemoSettings:
        changed = replace(policy, **fields)  # type: ignore[arg-type]
        generation = settings.generation
        if generation is not None:
            generation = replace(generation, nodes=changed.nodes, gpus=changed.gpus, segment=changed.segment)
        return replace(settings, roles=(changed, *settings.roles[1:]), generation=generation)

    least = -(-policy.span // policy.gpus)
    sizes = [size for size in range(policy.nodes, 0, -1) if policy.nodes % size == 0 and size % least == 0]
    for size in sorted(sizes, key=lambda size: abs(size - (policy.segment or 0))):
        if size != policy.segment:
            yield f"cluster.segment_size={size}", with_policy(segment=size)
    others = settings.num_nodes - policy.nodes
    if policy.segment is None and len({role.gpus for role in settings.roles}) == 1:
        for gpus in range(policy.gpus - 1, 0, -1):
            # The same GPUs in more and smaller nodes.
            if policy.size % gpus == 0 and others == 0:
                nodes = policy.size // gpus
                text = f"cluster.gpus_per_node={gpus} cluster.num_nodes={nodes} (the same {policy.size} GPUs)"
                yield text, with_policy(gpus=gpus, nodes=nodes)
    for nodes in range(policy.nodes - 1, 0, -1):
        if (policy.segment is None or nodes % policy.segment == 0) and nodes + others > 1 - others:
            text = f"cluster.num_nodes={nodes + others} ({policy.nodes - nodes} nodes fewer for training)"
            yield text, with_policy(nodes=nodes)
    for gpus in range(policy.gpus - 1, 0, -1):
        if others == 0:
            yield f"cluster.gpus_per_node={gpus}", with_policy(gpus=gpus)
