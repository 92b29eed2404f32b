"""Exact quantities: decimals in units of 1e-4, memory in bytes, names with numbers in them.

Floats never enter a sum: a share or a CPU count is the decimal as the user wrote it, cut down to whole units of 1e-4
(Ray's own resolution). Modify this file when a new unit of measure enters the problem file.
"""

from __future__ import annotations

import re
from decimal import ROUND_FLOOR, Decimal
from functools import lru_cache

UNITS = 10_000
"""Units in one GPU or one CPU: Ray's fixed-point resolution of 1e-4."""

_MEMORY_UNITS = {"": 1, "B": 1, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_MEMORY = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([A-Za-z]*)\s*$")
_DIGITS = re.compile(r"(\d+)")


def decimal_of(value: int | float | str | Decimal) -> Decimal:
    """The decimal as written: ``Decimal(repr(x))`` for floats, never the binary expansion.

    >>> decimal_of(0.1)
    Decimal('0.1')
    """
    return value if isinstance(value, Decimal) else Decimal(str(value) if isinstance(value, (int, str)) else repr(value))


def units_of(value: int | float | str | Decimal) -> int:
    """Whole units of 1e-4, cut down.

    >>> units_of(0.33) + units_of(0.56) + units_of(0.11)
    10000
    >>> units_of(1 / 7)
    1428
    """
    return int((decimal_of(value) * UNITS).to_integral_value(rounding=ROUND_FLOOR))


def plain_number(value: Decimal) -> int | float:
    """The decimal as a JSON number: an int where it is whole, else the float whose repr is the decimal.

    >>> plain_number(Decimal("8")), plain_number(Decimal("0.18"))
    (8, 0.18)
    """
    return int(value) if value == value.to_integral_value() else float(value)


def memory_of(value: int | float | str) -> int:
    """Bytes of a number or of a text with KiB, MiB, GiB or TiB.

    >>> memory_of("1.5GiB")
    1610612736

    Raises:
        ValueError: if the text is not a number followed by one of those units.
    """
    if isinstance(value, bool):
        raise ValueError(f"{value!r} is not an amount of memory")
    if isinstance(value, (int, float)):
        return int(value)
    match = _MEMORY.match(value)
    if match is None or match.group(2).upper() not in _MEMORY_UNITS:
        raise ValueError(f"{value!r} is not an amount of memory; write bytes, or a number with KiB, MiB, GiB or TiB")
    return int(Decimal(match.group(1)) * _MEMORY_UNITS[match.group(2).upper()])


def format_memory(amount: int) -> str:
    """Bytes in the largest unit that is not below one.

    >>> format_memory(3 * 2**30)
    '3 GiB'
    """
    for name in ("TiB", "GiB", "MiB", "KiB"):
        size = _MEMORY_UNITS[name.upper()]
        if amount >= size:
            return f"{amount / size:.4g} {name}"
    return f"{amount} B"


@lru_cache(maxsize=65_536)
def natural_key(name: str) -> tuple[str | int, ...]:
    """Sort key under which numbers inside names read as numbers.

    >>> sorted(["node66", "node7", "10.0.0.66", "10.0.0.7"], key=natural_key)
    ['10.0.0.7', '10.0.0.66', 'node7', 'node66']
    """
    parts = _DIGITS.split(name)
    return tuple(int(part) if index % 2 else part for index, part in enumerate(parts))
