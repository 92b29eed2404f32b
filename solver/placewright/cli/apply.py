"""``placewright apply``: a plan carried out on Ray or on simulated nodes.

Modify this file when applying gets another option.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from placewright.cli.base import EXIT_INVALID, CommandFailed, NoColor, PlanFile, Quiet, Verbose, say
from placewright.cli.reading import Address

if TYPE_CHECKING:
    from placewright.apply import AppliedPlan

LAYOUTS = ("pool", "node", "component")


def apply(
    plan: PlanFile,
    simulate: Annotated[bool, typer.Option("--simulate", help="Start the plan's nodes as simulated Ray nodes here.")] = False,
    address: Address = None,
    detach: Annotated[
        str | None, typer.Option("--detach", metavar="NAME", help="Leave it for other drivers, under this name.")
    ] = None,
    hold: Annotated[bool, typer.Option("--hold", help="Keep everything until Ctrl-C.")] = False,
    layout: Annotated[str, typer.Option("--layout", metavar="NAME", help="One group per pool, node or component.")] = "pool",
    any_gpus: Annotated[bool, typer.Option("--any-gpus", help="Accept any GPUs of the right node, and show which.")] = False,
    timeout: Annotated[float, typer.Option("--timeout", metavar="S", help="Seconds to wait for Ray.")] = 60.0,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
) -> None:
    """Make Ray placement groups on exactly the planned GPUs.

    Proves it from inside each, and prints what was found.
    Without --detach or --hold everything is let go again: a rehearsal.

    \b
    placewright apply plan.json --simulate
    placewright apply plan.json --address 10.0.0.1:6379 --detach my-job
    """
    from placewright.verify import verify
    from placewright_models.codec import load_plan

    if layout not in LAYOUTS:
        raise CommandFailed(f"--layout {layout}: write {', '.join(LAYOUTS)}", EXIT_INVALID)
    if simulate and (address or detach):
        raise CommandFailed("--simulate brings its own nodes: leave out --address and --detach", EXIT_INVALID)
    read = load_plan(plan)
    verify(read.problem, read)

    from placewright.apply import apply as carry_out
    from placewright.apply import simulate as rehearse

    exact = not any_gpus
    if simulate:
        with rehearse(read, layout=layout, exact=exact, timeout=timeout) as applied:
            _show(applied, hold, quiet)
        return
    with carry_out(read, address=address, layout=layout, exact=exact, timeout=timeout, detach=detach) as applied:
        _show(applied, hold, quiet)
    if detach is not None:
        say(f"applied as {detach}; let it go with: placewright release {detach}", quiet)
    elif not hold:
        say("applied and let go again; --detach NAME leaves it standing", quiet)


def _show(applied: AppliedPlan, hold: bool, quiet: bool) -> None:
    from placewright.apply import readback_text
    from placewright.cli.output import put

    put(readback_text(applied) + "\n")
    if hold:
        import threading

        say("holding; Ctrl-C lets go", quiet)
        try:
            threading.Event().wait()
        except KeyboardInterrupt:
            say("letting go", quiet)
