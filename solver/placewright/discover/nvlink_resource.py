"""NVLink domains from a custom Ray resource ``nvlink_domain_<id>``, as NeMo-RL's launcher registers it.

Modify this file when launchers name that resource in another way.
"""

from __future__ import annotations

from placewright.apply.view import LiveNode
from placewright.discover.source import TopologySource

_PREFIX = "nvlink_domain_"


def _read(node: LiveNode) -> str | None:
    found = sorted(name[len(_PREFIX) :] for name, amount in node.total.items() if name.startswith(_PREFIX) and amount > 0)
    # A node that claims two domains tells nothing.
    return None if not found else found[0] if len(found) == 1 else "N/A"


SOURCE = TopologySource("resource nvlink_domain_<id>", _read)
