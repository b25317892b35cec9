"""`crosswind plan`: a run's cells and costs, without running it."""

import json
from pathlib import Path
from typing import Any

import click

from crosswind.cell.binary import find_binary
from crosswind.cell.check import CheckedCell, check_study, preflight_warnings
from crosswind.cell.clocks import real_time_obstacle
from crosswind.cli.places import RUN_PATH
from crosswind.cli.plan_precision import as_json as precision_as_json
from crosswind.cli.plan_precision import needed_for, print_needed, seconds_of_a_repetition
from crosswind.cli.plan_text import print_order, print_plan
from crosswind.cli.planned import PlannedRuns, as_dict
from crosswind.cli.settings import setting_options, variant_options
from crosswind.cli.study_options import StudyOptions
from crosswind.cli.to import to_option
from crosswind.errors import EngineError, UsageError
from crosswind.execution.planning import plan_costs, precision, refuse_unknown_models, refuse_unmeasured, warnings_of
from crosswind.store.directory import check_place
from crosswind.study.design import Study
from crosswind.study.plan import Plan
from crosswind.text.console import plain_console


@click.command()
@click.argument("study", metavar="STUDY|FILE|KIND")
@variant_options
@click.option(
    "--from",
    "pilot",
    type=RUN_PATH,
    metavar="RUN",
    help="Forecast from RUN how many repetitions the precision needs.",
)
@click.option("--seed", type=click.IntRange(0), help="Seed of all random decisions.")
@click.option("--output", type=RUN_PATH, metavar="DIR|s3://...", help="Check that a run can be written there.")
@click.option("--packets", is_flag=True, help="Include the disk space of packet records.")
@click.option("--capture", "--pcapng", is_flag=True, help="Include the disk space of pcapng files.")
@click.option("--cpu-profile", is_flag=True, help="Check that processor time can be profiled.")
@click.option("--order", is_flag=True, help="List all repetitions in order.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, schema crosswind.plan/1.")
@to_option
@setting_options
def command(
    *,
    study: str,
    pilot: Path | None,
    output: Path | None,
    packets: bool,
    capture: bool,
    cpu_profile: bool,
    order: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Show what `crosswind run` would do with the same arguments: cells, order, time, packets, disk space.

    A dry run needs no privilege and leaves nothing behind. It checks what a run needs, and crosswind-cell checks every
    cell. Without crosswind-cell the plan has no forecasts.
    """
    wanted = StudyOptions.of(study, given, needs_machine=cpu_profile).study()
    if wanted is None:
        raise UsageError("nothing to plan", hint="name a study: `crosswind studies` lists them")
    refuse_unknown_models(wanted)
    plan = Plan.of(wanted)
    checked, remark = _checked(wanted, profile=cpu_profile)
    if output is not None:
        check_place(output)
    planned = PlannedRuns.of(plan, checked)
    costs = plan_costs(plan, checked, packets=packets, capture=capture) if checked else None
    needed = needed_for(wanted, checked, pilot) if pilot is not None else []
    seconds = seconds_of_a_repetition(pilot) if pilot is not None else {}
    for text in warnings_of(checked):
        click.echo(f"warning: {text}", err=True)
    if as_json:
        document = as_dict(planned, costs, checked=remark, order=order)
        document["warnings"] = [
            warning.model_dump() | {"cells": cells} for warning, cells in preflight_warnings(checked).items()
        ]
        document |= {"precision": precision_as_json(needed, seconds)} if needed else {}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    print_plan(plain_console(), planned, costs, remark)
    if needed:
        plain_console().print()
        print_needed(plain_console(), wanted, needed, seconds)
    if order:
        print_order(plain_console(), planned)


def _checked(study: Study, *, profile: bool) -> tuple[tuple[CheckedCell, ...], str]:
    """Every cell after its check, and the check's result in words; no cells without crosswind-cell.

    Raises: StudyError for an impossible cell, or one unable to measure a requested metric.
    """
    try:
        binary = find_binary()
    except EngineError as error:
        return (), f"not by crosswind-cell: {error.message}"
    checked = check_study(study, binary=binary)
    refuse_unmeasured(study, checked, profile=profile)
    if (asked := precision(study)) is not None:
        # Slow to import: no other plan should wait.
        from crosswind.api.running import PrecisionRules

        PrecisionRules().check(asked, {cell.cell.index: (cell.parameters, cell.effect) for cell in checked})
    needs_machine = any(not cell.is_virtual and not cell.is_over_network for cell in checked)
    obstacle = real_time_obstacle() if needs_machine else None
    here = "" if obstacle is None else f"; but this machine does not run them: {obstacle.message} ({obstacle.hint})"
    return checked, f"each cell, by crosswind-cell{here}"
