"""Single values of an input file: is it a number, a name, a share? And how to say that it is not.

Each function takes what the file holds and returns the value in the type that the rest of the library uses, or raises
``Wrong`` with what is wrong and what would be right. They are the field types of ``schema.py``; nothing here knows where a
value stands. Modify this file when a field takes a kind of value that no other field takes.
"""

from __future__ import annotations

import difflib
import math
import re
import reprlib
from collections.abc import Callable, Collection, Iterable, Mapping
from decimal import Decimal
from typing import NamedTuple, TypeVar

from placewright_models.quantities import decimal_of, memory_of, units_of

MAX_NODES = 2_000_000
MAX_WORKERS = 10_000_000
MAX_WEIGHT = 1_000_000
MAX_NODE_GPUS = 4_096
"""More devices than any machine has; keeps index arithmetic on hostile files cheap."""
MAX_COUNT = 10**9
MAX_RANK = 2**53
MAX_NAME = 1_000
MAX_CPUS = Decimal(10**6)
MAX_MEMORY = 2**60
_MAX_DIGITS = 17

T = TypeVar("T")

_short = reprlib.Repr()
_short.maxstring = _short.maxother = _short.maxlong = 60
_short.maxlevel = 3


class Wrong(ValueError):
    """A value that cannot be right: ``wrong`` says why, ``right`` what would be."""

    def __init__(self, wrong: str, right: str = "") -> None:
        super().__init__(wrong)
        self.wrong = wrong
        self.right = right


class Workers(NamedTuple):
    """How many workers the file asks for: from ``low`` to ``high``; both None is ``auto``."""

    low: int | None
    high: int | None


def show(value: object) -> str:
    """The value as the user knows it, cut where it is long.

    >>> show("8"), show(True), show(None)
    ("'8'", 'true', 'nothing')
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return str(value)
    try:
        return _short.repr(value)
    except ValueError:  # an integer with more digits than Python is willing to write
        return "a number of thousands of digits"


def listed(names: Iterable[str], most: int = 8) -> str:
    """Names with commas between them, the first few where there are many.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    kept = list(names)
    text = ", ".join(kept[:most])
    return f"{text} and {len(kept) - most} more" if len(kept) > most else text


def closest(name: object, options: Collection[str]) -> str | None:
    """The option that was probably meant, None where none is close.

    >>> closest("wrokers", ["workers", "gpus"])
    'workers'
    """
    text = str(name)[:200]
    pool: Iterable[str] = options
    if len(options) > 2_000:
        # difflib is quadratic; among many node ids only those that begin alike are worth a look.
        pool = [option for option in options if option[:3] == text[:3]][:2_000]
    close = difflib.get_close_matches(text, pool, 1) or difflib.get_close_matches(text.lower(), pool, 1)
    return close[0] if close else None


def nearest(name: object, options: Collection[str]) -> str:
    """Advice that names the option closest to what was written, or all of them where none is close.

    >>> nearest("wrokers", ["workers", "gpus"])
    'did you mean workers?'
    """
    if not options:
        return "there is none"
    close = closest(name, options)
    if close is not None:
        return f"did you mean {close}?"
    return f"one of: {listed(options, 30)}" if len(options) <= 60 else f"there are {len(options)}, such as {listed(options, 3)}"


def maybe(check: Callable[[object], T]) -> Callable[[object], T | None]:
    """The same check with None (nothing written) let through."""

    def checked(value: object) -> T | None:
        return None if value is None else check(value)

    return checked


def whole(low: int, high: int) -> Callable[[object], int]:
    """A check for a whole number from ``low`` to ``high``."""

    def checked(value: object) -> int:
        if type(value) is not int:
            raise Wrong(f"{show(value)} is not a whole number", _number_advice(value, "write a whole number such as 8"))
        if not low <= value <= high:
            raise Wrong(f"{show(value)} is {'below' if value < low else 'above'} what can be", f"from {low} to {high}")
        return value

    return checked


def _number_advice(value: object, otherwise: str) -> str:
    if isinstance(value, str):
        try:
            number = float(value)
        except ValueError:
            return otherwise
        return f"it is text: write {value.strip()} as a number, without quotes" if math.isfinite(number) else otherwise
    if isinstance(value, float) and math.isfinite(value) and value.is_integer():
        return f"write {int(value)}"
    return otherwise


def number(value: object) -> Decimal:
    """A finite decimal from 0 to ``MAX_CPUS``, exactly as written."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        advice = _number_advice(value, "write a number such as 0.5")
        if isinstance(value, str) and re.fullmatch(r"\d+e[-+]?\d+", value.strip(), re.IGNORECASE):
            advice = "YAML reads that as text: write it as a plain decimal such as 0.0001"
        raise Wrong(f"{show(value)} is not a number", advice)
    if isinstance(value, int):
        if not 0 <= value <= MAX_CPUS:
            raise Wrong(f"{show(value)} is {'negative' if value < 0 else 'too large'}", f"from 0 to {MAX_CPUS}")
        return Decimal(value)
    if not math.isfinite(value):
        raise Wrong(f"{value} is not a number", f"from 0 to {MAX_CPUS}")
    decimal = decimal_of(value)
    if not 0 <= decimal <= MAX_CPUS:
        raise Wrong(f"{show(value)} is {'negative' if decimal < 0 else 'too large'}", f"from 0 to {MAX_CPUS}")
    if len(decimal.as_tuple().digits) > _MAX_DIGITS:
        raise Wrong(f"{show(value)} has more than {_MAX_DIGITS} digits", "write fewer: the resolution is 0.0001")
    return decimal


def worker_gpus(value: object) -> Decimal:
    """GPUs of one worker: 0, a share below 1 of at least 0.0001, or a whole number."""
    gpus = number(value)
    if gpus > 1 and gpus != int(gpus):
        raise Wrong(f"{show(value)} is above 1 and not whole", f"a share below 1, or {int(gpus)} or {int(gpus) + 1}")
    if gpus and not units_of(gpus):
        raise Wrong(f"{show(value)} is a share of 0 units", "the smallest share is 0.0001; without GPU write 0")
    return gpus


def replica_gpus(value: object) -> Decimal:
    """GPUs of one replica: like those of a worker, but more than none."""
    gpus = worker_gpus(value)
    if not gpus:
        raise Wrong("a replica with 0 GPUs", "write workers: and gpus: 0 instead")
    return gpus


def share(value: object) -> Decimal:
    """A share of one GPU, from 0.0001 to 1."""
    amount = number(value)
    if amount > 1 or not units_of(amount):
        raise Wrong(f"{show(value)} is not a share of a GPU", "from 0.0001 to 1")
    return amount


def memory(value: object) -> int:
    """An amount of memory in bytes, or as text with KiB, MiB, GiB or TiB."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise Wrong(f"{show(value)} is not an amount of memory", "bytes, or text such as 64GiB")
    if isinstance(value, float) and math.isfinite(value) and not value.is_integer():
        raise Wrong(f"{show(value)} is not a whole number of bytes", "write whole bytes, or text such as 1.5GiB")
    if isinstance(value, str) and len(value) > 100:
        raise Wrong(f"{show(value)} is not an amount of memory", "bytes, or text such as 64GiB")
    try:
        amount = memory_of(value)
    except (ValueError, OverflowError, ArithmeticError):
        raise Wrong(f"{show(value)} is not an amount of memory", "bytes, or a number with KiB, MiB, GiB or TiB") from None
    if not 0 <= amount <= MAX_MEMORY:
        raise Wrong(f"{show(value)} is {'negative' if amount < 0 else 'too large'}", "from 0 to 1 EiB")
    return amount


def flag(value: object) -> bool:
    """true or false."""
    if not isinstance(value, bool):
        raise Wrong(f"{show(value)} is neither true nor false", "write true or false")
    return value


def name(value: object) -> str:
    """A name: text that is not empty and can be printed; a whole number is taken as its digits."""
    if type(value) is int and abs(value) < 10**18:
        return str(value)
    if not isinstance(value, str):
        kind = "a truth value" if isinstance(value, bool) else "not text"
        raise Wrong(f"{show(value)} is {kind}, a name is needed", "put it in quotes")
    if not value.strip():
        raise Wrong("the name is empty", "write a name")
    if len(value) > MAX_NAME:
        raise Wrong(f"{show(value)} has {len(value):,} characters", f"at most {MAX_NAME}")
    if not value.isprintable():
        raise Wrong(f"{show(value)} holds a character that cannot be printed", "use letters, digits and punctuation")
    return value


def names(value: object) -> tuple[str, ...]:
    """A list of different names."""
    found: dict[str, None] = {}
    for item in sequence(value):
        text = name(item)
        if text in found:
            raise Wrong(f"{text} stands there twice", "name each once")
        found[text] = None
    return tuple(found)


def rule_names(value: object) -> tuple[str, ...]:
    """One entry of a rules list: a list of names; how many it needs and which exist is checked later."""
    if isinstance(value, str):
        raise Wrong(f"{show(value)} is one name, a list of names is needed", "write a list of lists such as [[a, b]]")
    return tuple(name(item) for item in sequence(value))


def sequence(value: object) -> list[object]:
    """A list."""
    if not isinstance(value, (list, tuple)):
        raise Wrong(f"{show(value)} is not a list", "write a list such as [a, b]")
    return list(value)


def label_map(value: object) -> dict[str, str]:
    """Labels: names to text; whole numbers are taken as their digits."""
    if not isinstance(value, Mapping):
        raise Wrong(f"{show(value)} is not a mapping of labels", "write it as {block: b0}")
    labels: dict[str, str] = {}
    for key, item in value.items():
        if not isinstance(item, str) and type(item) is not int:
            raise Wrong(f"the label {show(key)} is {show(item)}, which is not text", "put it in quotes")
        labels[name(key)] = name(item)
    return labels


def indices(value: object) -> tuple[int, ...]:
    """Different GPU indices, ascending; the node says which exist."""
    check = whole(0, MAX_NODE_GPUS - 1)
    found = [check(item) for item in sequence(value)]
    if len(set(found)) < len(found):
        twice = next(index for index in found if found.count(index) > 1)
        raise Wrong(f"the index {twice} stands there twice", "name each once")
    return tuple(sorted(found))


def reason(value: object) -> str | None:
    """Why a node is excluded: text; ``true`` gives no reason, ``false`` is not excluded."""
    if isinstance(value, bool):
        return "excluded" if value else None
    if not isinstance(value, str) or not value.strip():
        raise Wrong(f"{show(value)} is not a reason", "write why, in quotes")
    return name(value)


def choice(*options: str) -> Callable[[object], str]:
    """A check for one of the options."""

    def checked(value: object) -> str:
        if not isinstance(value, str) or value not in options:
            raise Wrong(f"{show(value)} is not one of {listed(options)}", nearest(value, options))
        return value

    return checked


def workers(value: object) -> Workers:
    """A number of workers, ``auto``, or ``{min, max}``."""
    if value == "auto":
        return Workers(None, None)
    if isinstance(value, Mapping):
        return _elastic(value)
    if type(value) is not int:
        advice = _number_advice(value, "a whole number, auto, or {min: 1, max: 8}")
        raise Wrong(f"{show(value)} is not a number of workers", advice)
    count = whole(0, MAX_WORKERS)(value)
    return Workers(count, count)


def replicas(value: object) -> Workers:
    """A number of replicas, or ``{min, max}``."""
    if isinstance(value, str):
        raise Wrong(f"{show(value)} is not a number of replicas", _number_advice(value, "a whole number, or {min: 1, max: 8}"))
    return workers(value)


def _elastic(value: Mapping[object, object]) -> Workers:
    for key in value:
        if key not in ("min", "max"):
            raise Wrong(f"unknown key {show(key)}", nearest(key, ("min", "max")))
    ends: list[int] = []
    for key in ("min", "max"):
        if key not in value:
            raise Wrong(f"{key} is missing", "write {min: 1, max: 8}")
        try:
            ends.append(whole(0, MAX_WORKERS)(value[key]))
        except Wrong as wrong:
            raise Wrong(f"{key}: {wrong.wrong}", wrong.right) from None
    if ends[0] > ends[1]:
        raise Wrong(f"min {ends[0]} is above max {ends[1]}", "min at most max")
    return Workers(ends[0], ends[1])


def per_node(value: object) -> int | tuple[int, ...]:
    """Workers on each used node: a number, or a list taken as a multiset (returned ascending)."""
    check = whole(1, MAX_WORKERS)
    if not isinstance(value, (list, tuple)):
        return check(value)
    if not value:
        raise Wrong("the list is empty", "write one number for each node, such as [7, 8]")
    return tuple(sorted(check(item) for item in value))
