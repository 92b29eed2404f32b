"""What every encoding of one problem starts from: node classes, their patterns, and what counting says.

Found once, then used by the exact model, its relaxations and its restrictions. Usage: ``prepared = Prepared(problem, params)``,
then ``Encoding(prepared)``. Modify this file when something else is to be known before a model is built.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from placewright.frame.needs import Needs
from placewright.goals import GOAL_BY_NAME, Goal
from placewright.index.job import Job
from placewright.index.topology import Topology
from placewright.model.bounds import Bounds
from placewright.model.local import Local
from placewright.model.patterns import Pattern, TooManyPatterns, patterns
from placewright.params import SolveParams
from placewright.rules import RULES, Rule
from placewright_models.problem import Problem


class Prepared:
    """A problem by node classes.

    Attributes:
        topology: nodes and domains by class; classes with the same patterns are made one.
        needs: what the rules and the problem's goals declared.
        patterns: per node class what one of its nodes can hold; None where that is too much, and nodes are encoded one by one.
    """

    def __init__(self, problem: Problem, params: SolveParams | None = None, topology: Topology | None = None) -> None:
        """``topology``: classes made before, by the levels of ``needed_levels``."""
        self.problem = problem
        self.params = params or SolveParams()
        self.job = Job(problem)
        self.local = Local(self.job)
        self.topology = topology or Topology(self.job, needed_levels(self.job))
        self.needs = Needs.union(speaker.needs(self.job) for speaker in _speakers(self.job))
        self.patterns = [self._patterns(t) for t in range(len(self.topology.classes))]
        if self.params.merge_classes:
            self._merge_classes()

    def _patterns(self, t: int) -> list[Pattern] | None:
        try:
            found = patterns(self.local, self.topology.classes[t], self.needs.exact, self.params.pattern_limit)
        except TooManyPatterns:
            return None
        return None if any(self._too_high(found, c) for c in self.needs.squares - self.needs.exact) else found

    def _too_high(self, found: Sequence[Pattern], c: int) -> bool:
        """Counts too high for a variable per level, and limited, so that the closed form does not hold either."""
        top = max((pattern[c] for pattern in found), default=0)
        return top > self.params.most_levels and any(0 < p[c] < (self.job.components[c].max_workers or 0) for p in found)

    def _merge_classes(self) -> None:
        """Make node classes one where they have the same patterns and look the same to every rule.

        A node without GPU 3 and one without GPU 7 often hold the same mixes of workers; which GPUs those get is the
        decoder's business. Fewer node classes make fewer domain classes.
        """
        seen: dict[object, int] = {}
        same: dict[int, int] = {}
        for t, node_class in enumerate(self.topology.classes):
            found = self.patterns[t]
            if found is not None:
                look = (node_class.gpus, node_class.shape.available, node_class.unknown, tuple(found))
                same[t] = seen.setdefault(look, t)
        self.topology.merge(same)

    @cached_property
    def per_domain(self) -> bool:
        """Whether some rule or goal of the problem needs domains one by one."""
        return any(speaker.per_domain(self.job, self.topology) for speaker in _speakers(self.job))

    @cached_property
    def single_domain_patterns(self) -> int:
        """How many pattern variables it takes to count every domain by itself."""
        return sum(len(self.patterns[t] or ()) for domain in self.topology.domains if domain.known for t in domain.nodes)

    @cached_property
    def bounds(self) -> Bounds:
        """Fewest nodes and domains, by counting."""
        return Bounds(self.local, self.topology)

    def usable(self, t: int) -> bool:
        """Whether anything may lie on nodes of the class."""
        return self.local.usable(self.topology.classes[t])


def _speakers(job: Job) -> list[Rule | Goal]:
    """Every rule, and the problem's goals."""
    return [*RULES, *(GOAL_BY_NAME[name] for name in job.problem.goals)]


def needed_levels(job: Job) -> list[str]:
    """Levels above the NVLink domain that some rule or goal of the problem looks at."""
    return sorted(Needs.union(speaker.needs(job) for speaker in _speakers(job)).levels)
