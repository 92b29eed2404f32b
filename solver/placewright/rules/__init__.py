"""Every hard rule of design.md section 4, one file each, listed once.

``RULES`` is the only list: the verifier and the model both walk it. To add a rule, write its file and put it here.
"""

from __future__ import annotations

from placewright.rules.aligned import Aligned
from placewright.rules.all_placed import AllPlaced
from placewright.rules.capacity import Capacity
from placewright.rules.colocate import Colocate
from placewright.rules.contiguous import Contiguous
from placewright.rules.groups import Groups
from placewright.rules.host_resources import HostResources
from placewright.rules.node_count import NodeCount
from placewright.rules.node_filters import NodeFilters
from placewright.rules.per_node import PerNode
from placewright.rules.per_node_of import PerNodeOf
from placewright.rules.pools import Pools
from placewright.rules.rule import Rule
from placewright.rules.same_domain import SameDomain
from placewright.rules.same_node import SameNode
from placewright.rules.segments import Segments
from placewright.rules.separate_domains import SeparateDomains
from placewright.rules.separate_nodes import SeparateNodes
from placewright.rules.shares import Shares
from placewright.rules.sharing import Sharing
from placewright.rules.whole_workers import WholeWorkers

RULES: tuple[Rule, ...] = (
    AllPlaced(),
    WholeWorkers(),
    Capacity(),
    Sharing(),
    Shares(),
    HostResources(),
    Contiguous(),
    Groups(),
    Segments(),
    PerNodeOf(),
    NodeFilters(),
    Colocate(),
    SameNode(),
    SameDomain(),
    SeparateNodes(),
    SeparateDomains(),
    Pools(),
    NodeCount(),
    PerNode(),
    Aligned(),
)
"""Every hard rule, in the order of design.md."""

__all__ = ["RULES", "Rule"]
