"""`crosswind doctor`: what this machine allows."""

import json

import click
from rich.text import Text

from crosswind.cell.doctor import Diagnosis, MachineCheck, examine_machine
from crosswind.cli.output import plain_console
from crosswind.terminal_table import TextCell, TextColumn, print_table


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, schema crosswind.doctor/1.")
def command(as_json: bool) -> int:
    """Show what this machine allows, and how to allow the rest.

    Exit status: 0 when cells can run here, 1 when they cannot.
    """
    diagnosis = examine_machine()
    if as_json:
        click.echo(json.dumps(diagnosis.as_json(), indent=2, ensure_ascii=False))
    else:
        _print(diagnosis)
    return 0 if diagnosis.ok else 1


def _print(diagnosis: Diagnosis) -> None:
    rows: list[list[TextCell]] = []
    for check in diagnosis.checks:
        detail = Text(check.detail)
        if check.hint:
            detail += Text(f"\n{check.hint}", style="yellow")
        rows.append([_verdict(check), check.name, detail])
    console = plain_console()
    print_table(console, [TextColumn(), TextColumn(), TextColumn()], rows)
    console.print(_summary(diagnosis))


def _summary(diagnosis: Diagnosis) -> str:
    if diagnosis.on_the_machines_clock:
        return "cells can run here"
    if diagnosis.ok:
        return "cells can run here in virtual time, and not on the machine's clock"
    missing = ", ".join(check.name for check in diagnosis.checks if check.required and not check.ok)
    return (
        f"cells cannot run here: on the machine's clock they need {missing}, in virtual time only a kernel, "
        "which any user can run; the hints above say how to get either"
    )


def _verdict(check: MachineCheck) -> Text:
    if check.ok:
        return Text("ok", style="green")
    return Text("missing", style="bold red") if check.required else Text("without", style="yellow")
