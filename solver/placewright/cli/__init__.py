"""The command line: ``placewright COMMAND ...``; one file a command, listed in ``app.py``.

Exit codes: 0 done, 1 anything else, 2 invalid input or usage, 3 infeasible, 4 time limit with nothing found, 130 interrupted.
Data goes to stdout, everything else to stderr. Modify ``app.py`` when a command is added.
"""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    """Entry point of the installed ``placewright`` script; ends the process with the exit code."""
    # Importing OR-Tools makes a million objects that stay; looking through them again and again for garbage is wasted.
    gc.set_threshold(200_000, 50, 100)
    from placewright.cli.app import app

    try:
        app(prog_name="placewright")
    except SystemExit as end:
        if "ray" in sys.modules or not isinstance(end.code, int):
            raise
        _end(end.code)


def _end(code: int) -> None:
    """End now: taking numpy, pandas and OR-Tools down object by object takes a fifth of a second. (Not with Ray.)"""
    import atexit

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            # Nobody listens any more: see ``base.command`` for stdout.
            code = code or int(stream is sys.stdout)
    os._exit(code)
