"""The command line: ``placewright COMMAND ...``; one file a command, listed in ``app.py``.

Exit codes: 0 done, 1 anything else, 2 invalid input or usage, 3 infeasible, 4 time limit with nothing found, 130 interrupted.
Data goes to stdout, everything else to stderr. Modify ``app.py`` when a command is added.
"""

from __future__ import annotations


def main() -> None:
    """Entry point of the installed ``placewright`` script; ends the process with the exit code."""
    from placewright.cli.app import app

    app(prog_name="placewright")
