"""What domain_span and node_span have in common: places counted per component, and what counting says of such a sum.

Modify this file when a bound of a span changes; what a place is stands in the goals' own files.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from placewright.goals.goal import Goal

if TYPE_CHECKING:
    from placewright.frame.frame import Frame, Place


class Span(Goal):
    """Sum over components of span_weight x places that host it."""

    level: ClassVar[Place]
    """What a place is."""

    def least(self, frame: Frame) -> int:
        """Fewest places of each component, and of those that exclude each other together."""
        return frame.bounds.least_span(self.level)

    def implied(self, frame: Frame, value: int) -> Iterator[Any]:
        """Few places are shared: in sum there is room for few more than the fewest, and so many different ones are needed."""
        for components, most in frame.bounds.most_shared(self.level, value):
            shared = frame.shared(self.level, components)
            if shared is not None:
                yield shared <= most
