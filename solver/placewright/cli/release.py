"""``placewright release``: let go of what ``apply --detach`` left standing.

Modify this file when releasing gets another option.
"""

from __future__ import annotations

from typing import Annotated

import typer

from placewright.cli.base import NoColor, Quiet, Verbose, say
from placewright.cli.reading import Address


def release(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name given to apply --detach.")],
    address: Address = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
) -> None:
    """Let go of a plan that apply --detach left standing.

    Its placement groups are removed, and its name is free again.

    \b
    placewright release my-job --address 10.0.0.1:6379
    """
    from placewright.apply import release as let_go

    let_go(name, address=address)
    say(f"{name}: released", quiet)
