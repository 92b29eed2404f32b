"""C made infeasible by one segment too many: instance H."""

from __future__ import annotations

from collections import Counter
from random import Random

from benchmarks.families._parts import available, degraded_nodes, four
from benchmarks.registry import Data, register


def build(seed: int, domains: int) -> Data:
    """C's cluster and one segment of train more than its domains hold.

    The other components shrink so that there are GPUs enough in all: what is short is segments and nothing else.
    """
    nodes = degraded_nodes(Random(seed), domains)
    whole = Counter(node["nvlink_domain"] for node in nodes if "unavailable_gpus" not in node)
    segments = sum(count // 2 for count in whole.values()) + 1
    left = max(0, available(nodes) - segments * 16)
    data = four(segments * 2, max(1, left // 16), max(1, left // 32), max(1, left // 16))
    return {"cluster": {"nodes": nodes}, **data}


register(
    "one_too_many",
    "the degraded fleet with one segment of train more than fits: the answer is the reason",
    build,
    {"domains": 3},
    {
        "H": {"size": {"domains": 782}, "seed": 57, "feasible": False, "peers": ()},
        "H-default": {"size": {"domains": 782}, "seed": 57, "default": True, "feasible": False, "peers": ()},
    },
)
