"""All commands, listed once. To add a command, write its file and put its function into ``COMMANDS``.

A command is a function with typer's annotations that returns nothing; ``base.command`` gives it exit codes and error
messages. Nothing heavy may be imported at the top of a command's file: ``placewright --help`` loads all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from placewright.cli import apply, check, discover, explain, export, import_, plan, release, schema, verify
from placewright.cli.base import command

COMMANDS: tuple[tuple[str, Callable[..., None]], ...] = (
    ("plan", plan.plan),
    ("verify", verify.verify),
    ("explain", explain.explain),
    ("check", check.check),
    ("import", import_.import_),
    ("export", export.export),
    ("discover", discover.discover),
    ("apply", apply.apply),
    ("release", release.release),
    ("schema", schema.schema),
)
"""Every command, in the order of the help text."""

app = typer.Typer(
    add_completion=True,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        import placewright

        typer.echo(f"placewright {placewright.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Decide which GPUs each part of an RL post-training job gets, and prove it.

    \b
    placewright plan problem.yaml              # plan and print a table
    placewright plan problem.yaml -o plan.json # keep the plan
    placewright verify plan.json               # check it independently
    placewright apply plan.json                # carry it out on Ray

    Exit codes: 0 done, 2 invalid input, 3 infeasible, 4 time limit with nothing found, 1 anything else.
    """


for _name, _function in COMMANDS:
    app.command(_name)(command(_function))
