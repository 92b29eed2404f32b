"""The rank environment of every worker, one line each, as shells and launchers read it.

A line is ``COMPONENT=train RANK=0 WORLD_SIZE=8 ... CUDA_VISIBLE_DEVICES=0,1``; ``env $(grep ...) python ...`` starts with it.
RANK is the worker's index in the plan, LOCAL_RANK counts the component's workers on the node. A port is not planned, so
MASTER_PORT is left to the launcher. Modify this file when a worker needs another variable.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator

from placewright.export.target import Target
from placewright_models.plan import Plan
from placewright_models.ranges import indices_of


def rank_environments(plan: Plan) -> Iterator[dict[str, str]]:
    """The environment of each worker, component by component, by rank."""
    known = plan.problem.node_by_id
    for name, workers in plan.workers.items():
        on_node = Counter(worker.node_id for worker in workers)
        seen: Counter[str] = Counter()
        for rank, worker in enumerate(workers):
            found = {
                "COMPONENT": name,
                "RANK": str(rank),
                "WORLD_SIZE": str(len(workers)),
                "LOCAL_RANK": str(seen[worker.node_id]),
                "LOCAL_WORLD_SIZE": str(on_node[worker.node_id]),
                "NODE": worker.node_id,
            }
            seen[worker.node_id] += 1
            node, head = known.get(worker.node_id), known.get(workers[0].node_id)
            if node is not None and node.ip:
                found["NODE_IP"] = node.ip
            if head is not None and head.ip:
                found["MASTER_ADDR"] = head.ip
            found["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, indices_of(worker.ranges)))
            yield found


def write_env(plan: Plan) -> str:
    """One line for each worker, after a comment."""
    lines = ["# One line for each worker; CUDA_VISIBLE_DEVICES are GPU indices of its node."]
    lines += [
        " ".join(f"{key}={shlex.quote(value) if value else ''}" for key, value in found.items())
        for found in rank_environments(plan)
    ]
    return "\n".join(lines) + "\n"


TARGET = Target("env", "rank environment of every worker, a line each", write_env, (".env",))
