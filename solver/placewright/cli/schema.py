"""``placewright schema``: the JSON schema of problem files, for editors. Modify this file when plans get a schema too."""

from __future__ import annotations

from placewright.cli.base import NoColor, Output, Quiet, Verbose


def schema(
    output: Output = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
) -> None:
    """Write the JSON schema of problem files, for editors.

    Editors complete and check problem files with it.
    Then let the problem file begin with the line: # yaml-language-server: $schema=problem.schema.json

    \b
    placewright schema -o problem.schema.json
    """
    from importlib.resources import files

    from placewright.cli.output import check_output, put

    check_output(output)
    put(files("placewright_models").joinpath("problem.schema.json").read_text(encoding="utf-8"), output)
