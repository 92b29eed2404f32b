"""Where everything of a scene goes, in units of one GPU cell; the same for still pictures and pages.

Up to a size every node is a row of its own under its domain's title (*detail*); beyond it every NVLink domain is a row of
nodes side by side (*overview*), wrapped where it is long. Domains stand in columns, read downwards and then to the right.
Modify this file to change distances or the way in which columns are broken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placewright.picture.scene import Scene, shortened

LABEL_SIZE = 0.42
"""Height of a node's or domain's name in cells."""
LETTER = 0.62
"""Width of a letter in heights, generous for any common typeface."""
MARKER = 1.5
"""Width of a component's marker for workers without GPU."""
TITLE = 1.1
BETWEEN_BOXES = 1.2
ROW = 1.22
OVERVIEW_ROW = 1.5
NODE_GAP = 0.5
ROWS_IN_BOX = (18, 12, 9, 6)
"""Most nodes of one domain below each other in detail: as many as look well."""
COMFORTABLE = 16.0
"""Height in cells of a sheet on which cells have their full size."""
OVERVIEW_CELLS = 160
"""GPUs of one domain beside each other in overview."""
MOST_DETAILED = 2048
"""More GPUs than this are always an overview."""
MOST_DETAILED_NODES = 160


@dataclass(frozen=True, slots=True)
class Box:
    """A domain's nodes in a grid. ``x`` and ``y`` are those of its first cell's corner; titles and labels stand outside."""

    domain: int
    start: int
    end: int
    x: float
    y: float
    rows: int
    """In detail: rows before the next column of nodes begins. In overview: 1."""


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Boxes and the measures that place nodes in them."""

    overview: bool
    width: float
    height: float
    column: float
    """In detail: distance of columns of nodes in a box. In overview: 0, nodes follow each other."""
    gutter: float
    """Room for labels to the left of a strip."""
    boxes: tuple[Box, ...]

    @property
    def row(self) -> float:
        """Distance of rows."""
        return OVERVIEW_ROW if self.overview else ROW

    def positions(self, scene: Scene) -> list[tuple[float, float]]:
        """Corner of every node's strip, in the order of the nodes."""
        found: list[tuple[float, float]] = []
        for box in self.boxes:
            x = box.x
            for place, node in enumerate(scene.nodes[box.start : box.end]):
                if self.overview:
                    found.append((x, box.y))
                    x += strip_width(scene.content(node).gpus) + NODE_GAP
                else:
                    found.append((box.x + place // box.rows * self.column, box.y + place % box.rows * ROW))
        return found


def strip_width(gpus: int) -> int:
    """Cells of a node's strip; a node without GPUs has a plate of one cell."""
    return max(1, gpus)


def arrange(scene: Scene, aspect: float = 1.75) -> Arrangement:
    """Places for all nodes, about ``aspect`` times as wide as high."""
    gpus = sum(scene.content(node).gpus for node in scene.nodes)
    overview = gpus > MOST_DETAILED or len(scene.nodes) > MOST_DETAILED_NODES
    return _overview(scene, aspect) if overview else _detail(scene, aspect)


def _detail(scene: Scene, aspect: float) -> Arrangement:
    gutter = max((len(node.label) for node in scene.nodes), default=0) * LABEL_SIZE * LETTER + 0.5
    strip = max((strip_width(scene.content(node).gpus) + _markers(scene, node.content) for node in scene.nodes), default=1)
    column = gutter + strip
    best: tuple[float, Arrangement] | None = None
    for most_rows in ROWS_IN_BOX:
        tried = _boxes(scene, aspect, gutter, column, most_rows)
        # A picture that is small anyway gains nothing by more columns.
        scale = min(aspect / tried.width, 1 / tried.height, 1 / COMFORTABLE)
        if best is None or scale > best[0] * 1.1:
            best = (scale, tried)
    assert best is not None
    return best[1]


def _boxes(scene: Scene, aspect: float, gutter: float, column: float, most_rows: int) -> Arrangement:
    rows: list[int] = []
    sizes: list[tuple[float, float]] = []
    for domain in scene.domains:
        count = domain.end - domain.start
        rows.append(-(-count // -(-count // most_rows)))
        columns = -(-count // rows[-1])
        sizes.append((columns * column + BETWEEN_BOXES, rows[-1] * ROW + TITLE + BETWEEN_BOXES - 0.4))
    places, width, height = _columns(sizes, aspect)
    width, height = max(1.0, width - BETWEEN_BOXES + 0.5), max(1.0, height - BETWEEN_BOXES + 0.4)
    boxes = tuple(
        Box(number, domain.start, domain.end, x + gutter + 0.1, y + TITLE, rows[number])
        for (number, domain), (x, y) in zip(enumerate(scene.domains), places, strict=True)
    )
    return Arrangement(False, width, height, column, gutter, boxes)


def _markers(scene: Scene, content: int) -> float:
    kinds = len(scene.contents[content].without_gpu)
    return kinds * MARKER + 0.4 if kinds else 0.0


def _overview(scene: Scene, aspect: float) -> Arrangement:
    longest = max((len(shortened(domain.name or "", 14)) for domain in scene.domains), default=0)
    gutter = max(4.0, longest * 2.9 + 2)
    pieces: list[tuple[int, int, int, float]] = []
    for number, domain in enumerate(scene.domains):
        start, width = domain.start, 0.0
        for at in range(domain.start, domain.end):
            wide = strip_width(scene.content(scene.nodes[at]).gpus) + NODE_GAP
            if at > start and width + wide > OVERVIEW_CELLS:
                pieces.append((number, start, at, width))
                start, width = at, 0.0
            width += wide
        pieces.append((number, start, domain.end, width))
    column = gutter + max((width for *_, width in pieces), default=1) + 3
    places, width, height = _columns([(column, OVERVIEW_ROW)] * len(pieces), aspect)
    boxes = tuple(
        Box(number, start, end, x + gutter, y, 1) for (number, start, end, _), (x, y) in zip(pieces, places, strict=True)
    )
    return Arrangement(True, width, height, 0.0, gutter, boxes)


def _columns(sizes: Sequence[tuple[float, float]], aspect: float) -> tuple[list[tuple[float, float]], float, float]:
    """Places of boxes in columns of that height which comes closest to the aspect."""
    best: tuple[float, list[tuple[float, float]], float, float] | None = None
    total = sum(height for _, height in sizes)
    tallest = max((height for _, height in sizes), default=1.0)
    for number in range(1, min(len(sizes), 40) + 1):
        limit = max(tallest, total / number)
        for slack in (0.0, tallest / 2):
            places, width, height = _fill(sizes, limit + slack + 1e-9)
            # How large it could be drawn on a sheet of that aspect counts; a tie goes to fewer columns.
            scale = min(aspect / width, 1 / height)
            if best is None or scale > best[0] * 1.001:
                best = (scale, places, width, height)
    if best is None:
        return [], 1.0, 1.0
    return best[1], best[2], best[3]


def _fill(sizes: Sequence[tuple[float, float]], limit: float) -> tuple[list[tuple[float, float]], float, float]:
    places: list[tuple[float, float]] = []
    x = y = widest = highest = 0.0
    for width, height in sizes:
        if y and y + height > limit:
            x, y, widest = x + widest, 0.0, 0.0
        places.append((x, y))
        y += height
        widest, highest = max(widest, width), max(highest, y)
    return places, x + widest, highest
