"""Colours of components: safe for colour-blind readers, the same for the same role in every picture.

Well-known roles have fixed colours (Okabe and Ito's palette, then Paul Tol's); other names take what is left, in canonical
order. Beyond ``len(PALETTE)`` components colours repeat, and labels and hover tell them apart. Modify this file to change a
colour; greys for idle, unavailable and occupied GPUs belong to ``still.py`` and ``map.css``.
"""

from __future__ import annotations

from collections.abc import Iterable

from placewright_models.workload import component_key

PALETTE = (
    "#0072b2",  # blue
    "#e69f00",  # orange
    "#009e73",  # bluish green
    "#cc79a7",  # reddish purple
    "#d55e00",  # vermillion
    "#56b4e9",  # sky blue
    "#f0e442",  # yellow
    "#882255",  # wine
    "#999933",  # olive
    "#332288",  # indigo
    "#44aa99",  # teal
    "#ddcc77",  # sand
    "#aa4499",  # purple
    "#117733",  # green
    "#cc6677",  # rose
    "#88ccee",  # cyan
)
"""Okabe-Ito without black, then those of Tol's muted palette that stand apart from it."""

FIXED = {
    "train": PALETTE[0],
    "actor": PALETTE[0],
    "policy": PALETTE[0],
    "rollout": PALETTE[1],
    "generation": PALETTE[1],
    "env": PALETTE[2],
    "eval": PALETTE[3],
    "reward": PALETTE[4],
    "ref": PALETTE[5],
    "critic": PALETTE[6],
    "buffer": PALETTE[7],
    "teacher": PALETTE[8],
}
"""Colours of well-known roles."""

DARK_TEXT = "#0f1318"
LIGHT_TEXT = "#ffffff"


def colours(names: Iterable[str]) -> dict[str, str]:
    """A colour for each component name.

    >>> colours(["train", "rollout", "sim"])
    {'train': '#0072b2', 'rollout': '#e69f00', 'sim': '#009e73'}
    """
    ordered = sorted(set(names), key=component_key)
    found: dict[str, str] = {}
    for name in ordered:
        colour = FIXED.get(name)
        if colour is not None and colour not in found.values():
            found[name] = colour
    for position, name in enumerate(name for name in ordered if name not in found):
        free = [colour for colour in PALETTE if colour not in found.values()]
        found[name] = free[0] if free else PALETTE[position % len(PALETTE)]
    return {name: found[name] for name in ordered}


def text_on(colour: str) -> str:
    """Dark or light text, whichever has the higher contrast (WCAG) on the colour.

    >>> text_on("#0072b2"), text_on("#f0e442")
    ('#ffffff', '#0f1318')
    """
    ground = luminance(colour)
    light = (luminance(LIGHT_TEXT) + 0.05) / (ground + 0.05)
    dark = (ground + 0.05) / (luminance(DARK_TEXT) + 0.05)
    return LIGHT_TEXT if light > dark else DARK_TEXT


def luminance(colour: str) -> float:
    """Relative luminance of ``#rrggbb`` as WCAG defines it."""
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
