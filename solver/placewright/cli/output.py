"""Where a command's data goes: stdout, or a file that is written whole or not at all.

Modify this file when data can go to another place.
"""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from placewright.cli.base import EXIT_INVALID, CommandFailed, format_names, say
from placewright.export import TARGETS, Target, target_for_file, target_named
from placewright_models.plan import Plan


def choose_target(format: str | None, output: Path | None) -> Target:
    """The target that was asked for; else the one that the output file's ending speaks for; else text."""
    if format is not None:
        if format not in format_names():
            raise CommandFailed(f"--format {format}: write one of {', '.join(format_names())}", EXIT_INVALID)
        return target_named(format)
    if output is not None:
        return target_for_file(output.name) or TARGETS[0]
    return TARGETS[0]


def check_output(output: Path | None) -> None:
    """Find out before the work whether the file can be written after it.

    Raises:
        CommandFailed: if it cannot.
    """
    if output is None:
        return
    if output.is_dir():
        raise CommandFailed(f"{output}: is a directory, the output needs a file name", EXIT_INVALID)
    folder = output.parent
    if not folder.is_dir():
        wrong = "is not a directory" if folder.exists() else "there is no such directory"
        raise CommandFailed(f"{folder}: {wrong}, so {output.name} cannot be written there", EXIT_INVALID)
    if _is_special(output):
        return
    if not os.access(_real(output).parent, os.W_OK | os.X_OK):
        raise CommandFailed(f"{folder}: the directory is not writable, so {output.name} cannot be written there", EXIT_INVALID)


def check_map(path: Path | None) -> None:
    """Find out before the work whether the picture can be drawn and written after it.

    Raises:
        CommandFailed: if it cannot.
    """
    if path is None:
        return
    from placewright.picture import SUFFIXES

    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise CommandFailed(f"--map {path}: the name must end in {', '.join(SUFFIXES)}", EXIT_INVALID)
    if suffix != ".html" and find_spec("matplotlib") is None:
        wrong = "still pictures need matplotlib; pip install 'placewright[picture]', or draw an .html page"
        raise CommandFailed(f"--map {path}: {wrong}", EXIT_INVALID)
    check_output(path)


def put_map(plan: Plan, path: Path | None, quiet: bool) -> None:
    """Draw the plan into the file, whole or not at all."""
    if path is None:
        return
    from placewright.picture import save_map

    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder) / f"map{path.suffix.lower()}"
        save_map(plan, drawn)
        write_whole(path, drawn.read_bytes())
    say(f"{path}: drawn", quiet)


def put_plan(plan: Plan, target: Target, output: Path | None) -> None:
    """Write the plan to the file or to stdout; a table on a terminal is folded to its width and coloured."""
    if output is None and target.name == "text" and sys.stdout.isatty():
        _show(plan)
    else:
        put(target.write(plan), output)


def put(text: str, output: Path | None = None) -> None:
    """Write text to the file, whole or not at all, or to stdout."""
    if output is None:
        # Names may hold characters that the terminal's encoding does not have.
        with contextlib.suppress(AttributeError):
            sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_whole(output, text)


def write_whole(path: Path, content: str | bytes) -> None:
    """Replace a file by the content in one step: at every moment it is the old one or the new one.

    A symbolic link stays one, a file keeps its mode; a device or a pipe is written to.

    Raises:
        CommandFailed: if it cannot be written; an existing file is as it was.
    """
    try:
        if _is_special(path):
            path.write_bytes(_encoded(content))
            return
        _replace(_real(path), _encoded(content))
    except OSError as error:
        raise CommandFailed(f"{path}: cannot be written: {error.strerror or error}") from error


def _encoded(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.encode("utf-8")


def _replace(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, _mode(path))
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _mode(path: Path) -> int:
    if path.exists():
        return stat.S_IMODE(path.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path))


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file()


_STYLES = {"title": "bold", "head": "bold cyan", "row": "", "note": "dim", "warning": "yellow"}


def _show(plan: Plan) -> None:
    from rich.console import Console
    from rich.text import Text

    from placewright.export.text import lines

    console = Console(highlight=False)
    for line in lines(plan, max(40, console.width)):
        console.print(Text(line.text, style=_STYLES[line.style]), no_wrap=True, overflow="ignore", crop=False)
