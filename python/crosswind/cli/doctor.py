"""`crosswind doctor`: this machine's capabilities."""

import json

import click

from crosswind.cell.doctor import Diagnosis, MachineCheck, examine_machine
from crosswind.text.console import plain_console


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
    from crosswind.report.page import Page, Section, Sentence, Tone
    from crosswind.report.tables.table import Table, names, sentences, words
    from crosswind.report.text.terminal import print_summary

    table = Table(
        "Checks",
        [*words("state"), *names("check"), *sentences("detail")],
        [
            [_state(check), check.name, "\n".join(filter(None, [check.detail, check.hint]))]
            for check in diagnosis.checks
        ],
        frozenset(row for row, check in enumerate(diagnosis.checks) if _state(check) == "missing"),
    )
    verdict = Sentence(_verdict(diagnosis), Tone.GOOD if diagnosis.ok else Tone.BAD)
    page = Page(
        "What this machine allows", "crosswind doctor", verdict, sections=[Section(table.title, tables=[table])]
    )
    print_summary(page, plain_console())


def _verdict(diagnosis: Diagnosis) -> str:
    if diagnosis.on_the_machines_clock:
        return "Cells can run here."
    if diagnosis.ok:
        return "Cells can run here in virtual time, and not on the machine's clock."
    missing = ", ".join(check.name for check in diagnosis.checks if check.required and not check.ok)
    return (
        f"Cells cannot run here: on the machine's clock they need {missing}, in virtual time only a kernel, "
        "which any user can run. The hints above say how to get either."
    )


def _state(check: MachineCheck) -> str:
    if check.ok:
        return "ok"
    return "missing" if check.required else "without"
