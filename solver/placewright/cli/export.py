"""``placewright export``: a plan in another form. Modify this file when exporting gets another option."""

from __future__ import annotations

from placewright.cli.base import Format, Map, NoColor, Output, PlanFile, Quiet, Verbose, say


def export(
    plan: PlanFile,
    format: Format = None,
    output: Output = None,
    map: Map = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    no_color: NoColor = False,
) -> None:
    """Write a plan as text, data or a framework's configuration.

    A format that cannot say what the plan says refuses, and says what it cannot say.

    \b
    placewright export plan.json
    placewright export plan.json --format rlightning -o cluster.yaml
    placewright export plan.json --map map.html
    """
    from placewright.cli.output import check_map, check_output, choose_target, put_map, put_plan
    from placewright_models.codec import load_plan

    target = choose_target(format, output)
    check_output(output)
    check_map(map)
    read = load_plan(plan)
    # With a picture alone asked for, nothing is printed.
    if map is None or format is not None or output is not None:
        put_plan(read, target, output)
    put_map(read, map, quiet)
    if output is not None:
        say(f"{output}: written ({target.name})", quiet)
