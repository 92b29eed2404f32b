"""What all commands share: options, how errors are told, how output is written.

A command function is wrapped by ``command``: it turns exceptions into one message on stderr and an exit code. Modify this
file when all commands get another common option, or an error another exit code.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

EXIT_OTHER = 1
EXIT_INVALID = 2
EXIT_INFEASIBLE = 3
EXIT_TIMEOUT = 4
EXIT_INTERRUPTED = 130

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing on stderr but errors.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Say more on stderr: steps, and where an error arose.")]
NoColor = Annotated[bool, typer.Option("--no-color", help="No colours; the variable NO_COLOR does the same.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help="Write to FILE, whole or not at all, instead of stdout."),
]
Map = Annotated[
    Path | None,
    typer.Option("--map", metavar="FILE", help="Also draw the plan: FILE ends in .html, .svg or .png."),
]
PlanFile = Annotated[Path, typer.Argument(metavar="PLAN", help="A plan file, as written by plan -o.")]
ProblemFile = Annotated[Path, typer.Argument(metavar="PROBLEM", help="A problem file (YAML or JSON).")]
Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="NAME",
        help="text, json, yaml, rlightning, verl, nemo-rl, env.",
        autocompletion=lambda: format_names(),
    ),
]


def format_names() -> list[str]:
    """Names of all export targets."""
    from placewright.export import TARGETS

    return [target.name for target in TARGETS]


class CommandFailed(Exception):
    """A command's own way to fail: a message and an exit code."""

    def __init__(self, message: str, code: int = EXIT_OTHER) -> None:
        super().__init__(message)
        self.code = code


def command(function: Callable[..., None]) -> Callable[..., None]:
    """The function with its exceptions told in one voice, and the exit code that belongs to them."""

    @functools.wraps(function)
    def run(*arguments: Any, **options: Any) -> None:
        verbose = bool(options.get("verbose"))
        if options.get("no_color"):
            os.environ["NO_COLOR"] = "1"
        if verbose:
            logging.basicConfig(stream=sys.stderr, format="%(message)s")
            logging.getLogger("placewright").setLevel(logging.INFO)
        code = 0
        try:
            function(*arguments, **options)
            sys.stdout.flush()
        except BrokenPipeError:
            # Whoever read our output has seen enough, as with `placewright plan ... | head`.
            _drop_stdout()
        except KeyboardInterrupt:
            code = EXIT_INTERRUPTED
            say_error("interrupted")
        except typer.Exit:
            raise
        except Exception as error:
            code = _tell(error, verbose)
        if code:
            raise typer.Exit(code)

    return run


def _tell(error: Exception, verbose: bool) -> int:
    """Report an error; returns its exit code."""
    from placewright_models.errors import InfeasibleProblem, InvalidProblem, PlacewrightError, SolveTimeout

    if verbose:
        import traceback

        traceback.print_exception(error)
    code = EXIT_OTHER
    if isinstance(error, InvalidProblem):
        code = EXIT_INVALID
    elif isinstance(error, InfeasibleProblem):
        code = EXIT_INFEASIBLE
    elif isinstance(error, SolveTimeout):
        code = EXIT_TIMEOUT
    elif isinstance(error, CommandFailed):
        code = error.code
    if isinstance(error, (PlacewrightError, CommandFailed)):
        say_error(str(error))
    elif isinstance(error, (OSError, MemoryError)):
        say_error(f"{type(error).__name__}: {error}")
    else:
        hint = "" if verbose else "; --verbose shows where"
        say_error(f"this is a bug in placewright, please report it: {type(error).__name__}: {error}{hint}")
    return code


def say_error(message: str) -> None:
    """One error on stderr."""
    _say(f"Error: {message}")


def say(message: str, quiet: bool = False) -> None:
    """One remark on stderr."""
    if not quiet:
        _say(message)


def _say(message: str) -> None:
    # Nobody may be listening on stderr; that is no reason to fail.
    with contextlib.suppress(OSError, ValueError):
        print(message, file=sys.stderr, flush=True)


def _drop_stdout() -> None:
    """Let what is still buffered go nowhere, so that the interpreter's last flush does not fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
