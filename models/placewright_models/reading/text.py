"""From a file to plain data: size, encoding, YAML and JSON, with every way to go wrong told in a sentence.

Nothing here knows what the data means. Hostile files are refused early: by size before they are read, by the number of
values before they are composed, by what their aliases expand to before they are constructed. Modify this file when another
file format can be read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from placewright_models.errors import Fault, InvalidProblem

MAX_PROBLEM_BYTES = 64 * 2**20
MAX_PLAN_BYTES = 2**30
MAX_YAML_VALUES = 2_000_000
"""About 125,000 nodes written out; PyYAML takes some ten seconds for them, json less than one."""
MAX_JSON_VALUES = 100_000_000
MAX_ALIAS_GROWTH = 100_000
"""Values that aliases may add to a file."""
MAX_DEPTH = 100
"""Deepest nesting; a problem needs six. libyaml itself stops at 1,000, before its own stack ends."""


def read_mapping(path: str | Path, *, limit: int = MAX_PROBLEM_BYTES, what: str = "problem") -> dict[str, Any]:
    """The mapping that a YAML or JSON file holds.

    Raises:
        InvalidProblem: if the file cannot be read, is too large, is not UTF-8 text, not YAML or JSON, or no mapping.
    """
    source = str(path)
    try:
        return _parse(_text(Path(path), limit), Path(path).suffix.lower() == ".json", what)
    except _Unreadable as problem:
        raise InvalidProblem([Fault("", str(problem), problem.right)], source) from None


class _Unreadable(Exception):
    def __init__(self, wrong: str, right: str = "") -> None:
        super().__init__(wrong)
        self.right = right


def _text(path: Path, limit: int) -> str:
    try:
        if path.is_dir():
            raise _Unreadable("is a directory", "give a YAML or JSON file")
        # The size is asked first so that a huge file costs nothing; devices and pipes have none, so reading is bounded too.
        if path.stat().st_size > limit:
            raise _Unreadable(
                f"the file has {path.stat().st_size:,} bytes", f"at most {limit:,}; write equal nodes as one entry with count"
            )
        with path.open("rb") as file:
            raw = file.read(limit + 1)
    except FileNotFoundError:
        raise _Unreadable("there is no such file") from None
    except OSError as error:
        raise _Unreadable(f"cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the path
        raise _Unreadable(f"is not a path: {error}") from None
    if len(raw) > limit:
        raise _Unreadable(f"there are more than {limit:,} bytes")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _Unreadable(f"is not UTF-8 text (byte {error.start})", "write YAML or JSON as UTF-8 text") from None
    if not text.strip():
        raise _Unreadable("the file is empty", "a problem has the keys cluster and components")
    return text


def _parse(text: str, is_json: bool, what: str) -> dict[str, Any]:
    # Each value needs a separator of its own, so their number bounds the number of values.
    size = sum(map(text.count, (",", "\n", ":", "[", "{", "- ")))
    if size > MAX_JSON_VALUES:
        raise _Unreadable(f"the file holds too many values (about {size:,})", "write equal nodes as one entry with count")
    try:
        # JSON is read as such whatever the file is called: it is many times faster.
        data = _json(text) if is_json else _json_or_none(text)
        if data is None and not is_json:
            if size > MAX_YAML_VALUES:
                advice = "write equal nodes as one entry with count, or use JSON"
                raise _Unreadable(f"the file holds too many values for YAML (about {size:,})", advice)
            data = _yaml(text)
    except RecursionError:
        raise _Unreadable("the file is nested too deeply") from None
    if not isinstance(data, Mapping):
        kind = {list: "a list", str: "text", type(None): "nothing"}.get(type(data), "a single value")
        raise _Unreadable(f"the file holds {kind}, not a mapping", f"a {what} is a mapping of keys")
    return dict(data)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _Unreadable(f"the key {twice!r} stands twice in one mapping", "keep one of them")
    return found


def _json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        raise _Unreadable(f"is not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except ValueError as error:  # an integer of thousands of digits
        raise _Unreadable(f"is not JSON: {error}") from None


def _json_or_none(text: str) -> Any:
    """What the text holds if it is JSON and a mapping, else None: YAML has the word then."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return None


def _yaml(text: str) -> Any:
    import yaml

    loader_type: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    loader = loader_type(text)
    try:
        node = loader.get_single_node()
        if node is None:
            raise _Unreadable("the file holds nothing", "a problem has the keys cluster and components")
        _check_nodes(node)
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise _Unreadable(f"is not YAML: {place}{error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError, ArithmeticError, LookupError, TypeError, AttributeError) as error:
        # SafeConstructor lets a few of these through for absurd scalars (a timestamp of month 13, !!int on a word).
        raise _Unreadable(f"is not YAML: {' '.join(str(error).split())[:200]}") from None
    finally:
        loader.dispose()


def _check_nodes(root: Any) -> None:
    """Refuse twice written keys, values that YAML 1.1 reads otherwise than written, and aliases that grow without end."""
    import yaml

    sizes: dict[int, int] = {}
    open_nodes: set[int] = set()

    def size_of(node: Any, depth: int) -> int:
        if isinstance(node, yaml.ScalarNode):
            _check_scalar(node)
            return 1
        known = sizes.get(id(node))
        if known is not None:
            return known
        if id(node) in open_nodes:
            raise _Unreadable(f"line {node.start_mark.line + 1}: an alias refers to what contains it")
        if depth > MAX_DEPTH:
            raise _Unreadable(f"line {node.start_mark.line + 1}: nested more than {MAX_DEPTH} deep")
        open_nodes.add(id(node))
        size = 1
        if isinstance(node, yaml.MappingNode):
            seen: set[tuple[str, str]] = set()
            for key, value in node.value:
                size += size_of(key, depth + 1) + size_of(value, depth + 1)
                if isinstance(key, yaml.ScalarNode):
                    if (key.tag, key.value) in seen:
                        place = f"line {key.start_mark.line + 1}, column {key.start_mark.column + 1}"
                        raise _Unreadable(f"{place}: the key {key.value!r} stands twice in one mapping", "keep one of them")
                    seen.add((key.tag, key.value))
        else:
            size += sum(size_of(item, depth + 1) for item in node.value)
        open_nodes.discard(id(node))
        sizes[id(node)] = size
        own.append(len(node.value))
        return size

    own: list[int] = []
    total = size_of(root, 0)
    written = 1 + sum(own) * 2
    if total > written + MAX_ALIAS_GROWTH:
        raise _Unreadable(
            f"its aliases expand {written:,} values to {total:,}",
            "write the values out, or equal nodes as one entry with count",
        )


_ODD_INT = re.compile(r"[-+]?0[0-9_xb].*|.*:.*")


def _check_scalar(node: Any) -> None:
    if node.tag == "tag:yaml.org,2002:int" and not node.style and _ODD_INT.fullmatch(node.value):
        raise _Unreadable(
            f"line {node.start_mark.line + 1}: YAML reads {node.value} as another number",
            "put it in quotes, or write a plain decimal",
        )
