"""What a topology source is, and how one of several is chosen.

A source says, for each node, the NVLink domain it is in. Names of two sources cannot be compared, so domains of one cluster
always come from a single source; what only another one knows stays unknown, with a warning. Modify this file when sources
should say more than domains.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from placewright.apply.view import LiveNode

_NOTHING = {"", "n/a", "na", "none", "null", "unknown"}
_ZERO = re.compile(r"[0.\-:]+")


@dataclass(frozen=True, slots=True)
class TopologySource:
    """A way to know a node's NVLink domain.

    Attributes:
        name: what people call it, for warnings.
        read: the raw domain id of a node; None where the source says nothing about it.
    """

    name: str
    read: Callable[[LiveNode], str | None]


def label_source(label: str) -> TopologySource:
    """The source that reads a Ray node label."""
    return TopologySource(f"label {label}", lambda node: node.labels.get(label))


def valid_domain(raw: str | None) -> str | None:
    """The domain id, or None where it says that there is none: empty, zero or N/A.

    >>> valid_domain("rack0"), valid_domain("00000000-0000-0000-0000-000000000000.0"), valid_domain("N/A")
    ('rack0', None, None)
    """
    text = (raw or "").strip()
    return None if text.lower() in _NOTHING or _ZERO.fullmatch(text) else text


def choose_domains(
    nodes: Mapping[str, LiveNode], sources: Sequence[TopologySource], chosen: TopologySource | None = None
) -> tuple[dict[str, str], list[str]]:
    """The NVLink domain of each node that has one, from one source, and warnings.

    Args:
        nodes: live node by id.
        sources: the sources to look at; the one that knows most nodes with GPUs is taken, the first one among equals.
        chosen: the only source to look at, if the user named one.
    """
    warnings: list[str] = []
    known: list[tuple[TopologySource, dict[str, str]]] = []
    for source in [chosen] if chosen else sources:
        raw = {node_id: source.read(node) for node_id, node in nodes.items()}
        valid = {node_id: domain for node_id, text in raw.items() if (domain := valid_domain(text)) is not None}
        known.append((source, valid))
        void = [node_id for node_id, text in raw.items() if text is not None and node_id not in valid]
        if void:
            warnings.append(f"{source.name} names no domain (empty, zero or N/A) for {_names(void)}: unknown")

    def covered(entry: tuple[TopologySource, dict[str, str]]) -> int:
        return sum(nodes[node_id].gpus > 0 for node_id in entry[1])

    source, domains = max(known, key=covered)
    if not domains:
        if chosen:
            warnings.append(f"no node has a domain in {chosen.name}")
        return {}, warnings
    without = [node_id for node_id, node in nodes.items() if node.gpus and node_id not in domains]
    if without:
        warnings.append(
            f"NVLink domains come from {source.name}, which does not know {_names(without)}: their domain is unknown"
        )
    for other, also in known:
        if other is not source and also:
            warnings.append(
                f"{other.name} names domains too, for {_names(list(also))}; two sources are never mixed, so it is not used"
            )
    return domains, warnings


def _names(ids: Sequence[str]) -> str:
    return ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
