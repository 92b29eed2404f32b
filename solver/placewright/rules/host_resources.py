"""H6: CPUs and memory are per node and add up over everything on the node, shared GPUs or not.

Modify this file when a node gets another resource that is not a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator

from placewright.facts import Facts
from placewright.rules.rule import Rule
from placewright_models.quantities import UNITS, format_memory


class HostResources(Rule):
    """What all workers of a node ask is at most what the node has left for this job."""

    name = "host_resources"
    code = "H6"

    def check(self, facts: Facts) -> Iterator[str]:
        """Sums CPUs in units of 1e-4 and memory in bytes per node."""
        cpus = {component.name: component.cpu_units for component in facts.problem.components}
        memory = {component.name: component.memory for component in facts.problem.components}
        any_memory = any(memory.values())
        for node_id, names in facts.on.items():
            node = facts.nodes[node_id]
            free = node.free_cpu_units
            if free is not None:
                asked = sum(facts.x[name][node_id] * cpus[name] for name in names)
                if asked > free:
                    who = ", ".join(f"{facts.x[name][node_id]} {name}" for name in names if cpus[name])
                    yield f"{node_id} is asked for {asked / UNITS:g} CPUs ({who}) and has {free / UNITS:g} free"
            if any_memory and node.free_memory is not None:
                asked = sum(facts.x[name][node_id] * memory[name] for name in names)
                if asked > node.free_memory:
                    who = ", ".join(f"{facts.x[name][node_id]} {name}" for name in names if memory[name])
                    free_text = format_memory(node.free_memory)
                    yield f"{node_id} is asked for {format_memory(asked)} of memory ({who}) and has {free_text} free"
