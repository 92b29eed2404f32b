"""Makes what is generated: the JSON schema of problem files, its reference page, and the command line reference.

::

    python docs/make_reference.py            # write
    python docs/make_reference.py --check    # say what is out of date, and fail

The schema comes from the pydantic models in ``placewright_models/reading/schema.py``: types and limits from their fields'
checks, descriptions from the text below each field. It says what single values may be; how they fit together is checked when
a file is loaded. The rest of the reference page is ``web/problem.md.template``. Modify this file when a check of
``placewright_models/reading/values.py`` is added (``TAKES``) or the problem file gets a new section (``problem_schema``).
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from string import Template
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from placewright_models.reading import schema, values
from placewright_models.workload import DEFAULT_GOALS, GOAL_NAMES

HERE = Path(__file__).resolve().parent
SCHEMA_FILE = HERE.parent / "models" / "placewright_models" / "problem.schema.json"
PROBLEM_PAGE = HERE / "problem.md"
COMMANDS_PAGE = HERE / "commands.md"
Json = dict[str, Any]

# The JSON schema

LONG = 10**18 - 1
"""Longest number that is taken as a name."""
NAME: Json = {"type": ["string", "integer"], "minLength": 1, "maxLength": values.MAX_NAME, "minimum": -LONG, "maximum": LONG}
WORKERS: Json = {"type": "integer", "minimum": 0, "maximum": values.MAX_WORKERS}
ELASTIC: Json = {
    "type": "object",
    "properties": {"min": WORKERS, "max": WORKERS},
    "required": ["min", "max"],
    "additionalProperties": False,
}
PER_NODE: Json = {"type": "integer", "minimum": 1, "maximum": values.MAX_WORKERS}
NUMBER: Json = {"type": "number", "minimum": 0, "maximum": int(values.MAX_CPUS)}
WORKER_GPUS: Json = {
    "anyOf": [
        {"type": "integer", "minimum": 0, "maximum": int(values.MAX_CPUS)},
        {"type": "number", "minimum": 0.0001, "maximum": 1},
    ]
}
MEMORY: Json = {
    "anyOf": [
        {"type": "number", "multipleOf": 1, "minimum": 0, "maximum": values.MAX_MEMORY},
        {"type": "string", "pattern": r"^\s*\d+(\.\d+)?\s*(([KkMmGgTt][Ii])?[Bb])?\s*$"},
    ]
}
TAKES: dict[Callable[[object], Any], Json] = {
    values.number: NUMBER,
    values.worker_gpus: WORKER_GPUS,
    values.replica_gpus: {"anyOf": [{**WORKER_GPUS["anyOf"][0], "minimum": 1}, WORKER_GPUS["anyOf"][1]]},
    values.share: {"type": "number", "minimum": 0.0001, "maximum": 1},
    values.memory: MEMORY,
    values.flag: {"type": "boolean"},
    values.name: NAME,
    values.names: {"type": "array", "items": NAME, "uniqueItems": True},
    values.rule_names: {"type": "array", "items": NAME},
    values.label_map: {"type": "object", "additionalProperties": NAME},
    values.indices: {
        "type": "array",
        "items": {"type": "integer", "minimum": 0, "maximum": values.MAX_NODE_GPUS - 1},
        "uniqueItems": True,
    },
    values.reason: {"type": ["string", "boolean"], "minLength": 1, "maxLength": values.MAX_NAME},
    values.workers: {"anyOf": [WORKERS, {"const": "auto"}, ELASTIC]},
    values.replicas: {"anyOf": [WORKERS, ELASTIC]},
    values.per_node: {"anyOf": [PER_NODE, {"type": "array", "items": PER_NODE, "minItems": 1}]},
}
"""What each check of ``values.py`` takes."""


def taken_by(check: Callable[[object], Any]) -> Json:
    """The schema of what a check takes; checks made by ``whole``, ``choice`` and ``maybe`` are looked into."""
    if check in TAKES:
        return TAKES[check]
    made_of = inspect.getclosurevars(check).nonlocals
    if "low" in made_of:
        return {"type": "integer", "minimum": made_of["low"], "maximum": made_of["high"]}
    if "options" in made_of:
        return {"enum": list(made_of["options"])}
    if "check" in made_of:
        return {"anyOf": [taken_by(made_of["check"]), {"type": "null"}]}
    raise SystemExit(f"say in TAKES what {check} takes")


class _Generator(GenerateJsonSchema):
    def function_plain_schema(self, schema: Any) -> Json:
        return taken_by(schema["function"]["function"])

    def default_schema(self, schema: Any) -> Json:
        # Most defaults are "nothing written"; those that say something are told in the descriptions.
        return self.generate_inner(schema["schema"])


def descriptions(model: type[schema.Entry]) -> dict[str, str]:
    """Field -> the text below it."""
    body = ast.parse(inspect.getsource(model)).body[0]
    assert isinstance(body, ast.ClassDef)
    found = {}
    for field, text in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            if isinstance(text.value, ast.Constant):
                found[field.target.id] = " ".join(str(text.value.value).split())
    return found


def problem_schema() -> Json:
    """The JSON schema of a problem file."""
    models: list[type[schema.Entry]] = [
        schema.NodeEntry,
        schema.ComponentEntry,
        schema.RulesEntry,
        schema.TrafficEntry,
        schema.OccupationEntry,
        schema.GroupEntry,
    ]
    _, made = models_json_schema([(model, "validation") for model in models], schema_generator=_Generator)
    definitions: Json = {}
    for model in models:
        entry = made["$defs"][model.__name__]
        said = descriptions(model)
        for name, field in entry["properties"].items():
            field.pop("title", None)
            if "$ref" in field:
                # Draft 7 ignores what stands beside $ref.
                entry["properties"][name] = field = {"allOf": [field]}
            field["description"] = said[name]
        definitions[model.__name__] = {key: entry[key] for key in ("type", "properties", "additionalProperties")}
    definitions["NodeEntry"]["required"] = ["id"]
    definitions["TrafficEntry"]["required"] = ["between"]
    cluster = {
        "description": "The nodes; may stand in a file of its own (--cluster).",
        "type": "object",
        "properties": {
            "nodes": {
                "description": "One entry a node, or a row of equal nodes with count.",
                "type": "array",
                "items": {"$ref": "#/$defs/NodeEntry"},
            },
            "levels": {
                "description": "Levels above the NVLink domain, widest first; a node's unit is its label of that name.",
                "anyOf": [TAKES[values.names], {"type": "null"}],
            },
            "schedule_on_head": {
                "description": "Whether nodes with head: true may host something.",
                "type": ["boolean", "null"],
            },
        },
        "required": ["nodes"],
        "additionalProperties": False,
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "placewright problem",
        "description": "What placewright plans: a cluster, the components of a job, rules between them, goals in order.",
        "type": "object",
        "properties": {
            "cluster": cluster,
            "components": {
                "description": "The roles of the job by name; any name is allowed.",
                "type": ["object", "null"],
                "additionalProperties": {"$ref": "#/$defs/ComponentEntry"},
            },
            "rules": {
                "description": "Rules between components.",
                "anyOf": [{"$ref": "#/$defs/RulesEntry"}, {"type": "null"}],
            },
            "traffic": {
                "description": "Pairs of components that talk to each other, for the goal traffic.",
                "type": ["array", "null"],
                "items": {"$ref": "#/$defs/TrafficEntry"},
            },
            "goals": {
                "description": f"What to make good, first to last. Default: {', '.join(DEFAULT_GOALS)}.",
                "type": ["array", "null"],
                "items": {"enum": list(GOAL_NAMES)},
                "uniqueItems": True,
            },
        },
        "additionalProperties": False,
        "$defs": definitions,
    }


# The reference page

MADE = "<!-- Made by docs/make_reference.py; change that, or the text in placewright_models/reading/schema.py. -->\n"


def words(field: Json) -> str:
    """What a field takes, in words."""
    return " or ".join(dict.fromkeys(_words(field)))


def _words(field: Json) -> Iterator[str]:
    for part in field.get("anyOf", []) or field.get("allOf", []):
        yield from _words(part)
    if "enum" in field:
        yield " or ".join(f"`{option}`" for option in field["enum"])
    if "const" in field:
        yield f"`{field['const']}`"
    if "$ref" in field:
        yield {"GroupEntry": "[a group](#a-group)", "OccupationEntry": "entries"}[field["$ref"].rpartition("/")[2]]
    kinds = field.get("type", [])
    for kind in [kinds] if isinstance(kinds, str) else kinds:
        if kind in ("integer", "number") and "string" not in kinds:
            yield _range(kind, field)
        elif kind == "boolean":
            yield "`true` or `false`"
        elif kind == "string":
            yield "text"
        elif kind == "array":
            yield f"list of {words(field['items']).replace('whole number', 'whole numbers').replace('text', 'names')}"
        elif kind == "object":
            yield "`{min, max}`" if "properties" in field else f"names to {words(field['additionalProperties'])}"


def _range(kind: str, field: Json) -> str:
    noun = "whole number" if kind == "integer" or field.get("multipleOf") == 1 else "number"
    low, high = field.get("minimum", 0), field.get("maximum", 10**9)
    if high >= 10**6:
        return noun if low == 0 else f"{noun} from {low}"
    return f"{noun}, {low} to {high:,}"


def rows(entry: Json) -> str:
    """A table of an entry's keys."""
    shown = ["| key | takes | what it is |", "|---|---|---|"]
    for name, field in entry["properties"].items():
        must = " (needed)" if name in entry.get("required", ()) else ""
        shown.append(f"| `{name}` | {words(field)}{must} | {_coded(field['description'])} |")
    return "\n".join(shown) + "\n"


def _coded(text: str) -> str:
    """Patterns such as gpu-{} and {min, max} as code."""
    return re.sub(r"\S*\{[^}]*\}", lambda found: f"`{found.group()}`", text)


def problem_page() -> str:
    """``problem.md``, from its template."""
    whole = problem_schema()
    parts = whole["$defs"]
    cluster = whole["properties"]["cluster"]["properties"]
    return Template((HERE / "web" / "problem.md.template").read_text(encoding="utf-8")).substitute(
        {f"about_{name}": field["description"] for name, field in cluster.items()},
        made=MADE,
        about_goals=whole["properties"]["goals"]["description"].partition(" Default")[0],
        goals="\n".join(f"{number}. [`{name}`](goals/{name}.md)" for number, name in enumerate(DEFAULT_GOALS, 1)),
        node=rows(parts["NodeEntry"]),
        component=rows(parts["ComponentEntry"]),
        group=rows(parts["GroupEntry"]),
        rules=rows(parts["RulesEntry"]),
        traffic=rows(parts["TrafficEntry"]),
    )


# The command line reference


def commands_page() -> str:
    """``commands.md``, from every command's own help: its text, its examples, its options."""
    import typer

    from placewright.cli.app import COMMANDS, app

    group: Any = typer.main.get_command(app)
    parts = [
        MADE.replace(", or the text in placewright_models/reading/schema.py", " or the command's file"),
        "# Commands\n",
        _help_text(group.help),
        "Data goes to stdout, everything else to stderr. Colours appear on a terminal only; `--no-color` or the variable",
        "`NO_COLOR` turns them off. `placewright --install-completion` sets up completion for bash, zsh, fish or PowerShell.\n",
    ]
    for name, _ in COMMANDS:
        command = group.commands[name]
        parts += [f"## {name}\n", _help_text(command.help), "| option | what it does |", "|---|---|"]
        parts += [_option_row(option) for option in command.params]
        parts.append("")
    return "\n".join(parts)


def _help_text(text: str) -> str:
    """A docstring with its examples (after a backspace, as click has it) as code."""
    shown = []
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        lines = paragraph.split("\n")
        if lines[0] == "\b":
            shown.append("\n".join(["```bash", *lines[1:], "```"]))
        else:
            shown.append(" ".join(line.strip() for line in lines))
    return "\n\n".join(shown) + "\n"


def _option_row(option: Any) -> str:
    spelt = ", ".join(f"`{spelling}`" for spelling in sorted(option.opts, key=len)) if option.opts[0][0] == "-" else ""
    if not spelt:
        return f"| `{option.metavar or option.name.upper()}` | {option.help} |"
    kind = option.metavar or ("" if getattr(option, "is_flag", False) else "N")
    default = option.default
    given = isinstance(default, (int, float, str)) and not isinstance(default, bool) and option.show_default
    return f"| {spelt}{f' {kind}' if kind else ''} | {option.help}{f' Default: {default}.' if given else ''} |"


def made() -> dict[Path, str]:
    """Every generated file and what is to be in it."""
    return {
        SCHEMA_FILE: json.dumps(problem_schema(), indent=1) + "\n",
        PROBLEM_PAGE: problem_page(),
        COMMANDS_PAGE: commands_page(),
    }


def main(arguments: list[str]) -> int:
    """Write what is generated, or with ``--check`` compare it; returns the exit code."""
    old = [path for path, text in made().items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    if "--check" in arguments:
        for path in old:
            print(f"{path.relative_to(HERE.parent)} is out of date: run python docs/make_reference.py", file=sys.stderr)
        return 1 if old else 0
    for path, text in made().items():
        if path in old:
            path.write_text(text, encoding="utf-8")
            print(path.relative_to(HERE.parent))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
