"""`crosswind show`: a study before its run."""

import click
from rich.console import Console

from crosswind.api.first_look import first_look
from crosswind.cell.binary import find_binary
from crosswind.cell.check import CheckedCell, check_study
from crosswind.cli.study_options import said_as_run_here
from crosswind.cli.text import seconds_text
from crosswind.errors import EngineError
from crosswind.execution.planning import plan_costs, runs_of
from crosswind.study.design import Study
from crosswind.study.files import load_study
from crosswind.study.plan import Plan
from crosswind.text.console import plain_console
from crosswind.text.terminal_table import TextColumn, print_table

_SHOWN_CELLS = 40


@click.command()
@click.argument("study", metavar="STUDY|FILE")
@click.option("--quick", is_flag=True, help="Show the study's short variant.")
@click.option("--toml", is_flag=True, help="Print only the study's source.")
def command(study: str, quick: bool, toml: bool) -> None:
    """Show a study: title, factors, cells, expected duration, source."""
    loaded = load_study(study)
    wanted = loaded.quick() if quick else loaded
    if toml:
        click.echo(wanted.to_toml(), nl=False)
        return
    chosen = said_as_run_here(loaded, quick=quick)
    console = plain_console()
    console.print(chosen.title, style="bold")
    if chosen.description:
        for paragraph in chosen.description.strip().split("\n\n"):
            console.print(" ".join(paragraph.split()))
    console.print()
    checked = _checked(chosen)
    _print_design(console, chosen, checked)
    if not quick:
        variant, _ = first_look(loaded)
        text = loaded.quick_without_table or _size(variant, _checked(variant))
        console.print(f"quick        {text}")
    console.print()
    _print_cells(console, chosen, checked)
    console.print()
    console.print("source", style="bold")
    console.print(wanted.to_toml().rstrip(), soft_wrap=True)


def _checked(study: Study) -> tuple[CheckedCell, ...] | None:
    """The cells as crosswind-cell sees them; None where there is none to ask. Raises: StudyError for a bad cell."""
    try:
        return check_study(study, binary=find_binary())
    except EngineError:
        return None


def _print_design(console: Console, study: Study, checked: tuple[CheckedCell, ...] | None) -> None:
    for key, texts in study.factors.items():
        console.print(f"factor       {key} = {', '.join(texts)}")
    for exclusion in study.exclusions:
        console.print(f"excluded     {exclusion.text}")
    console.print(f"plan         {_size(study, checked)}")
    console.print(f"seed         {study.seed}")
    for note in study.network_notes:
        console.print(note)
    for kind, declared in study.findings.items():
        for finding in declared:
            if finding.summary:
                name = kind if getattr(finding.table, "says", None) is None else "statement"
                console.print(f"{name:<12} {finding.summary}", soft_wrap=True)
    if study.models:
        console.print(f"models       {', '.join(study.models)}")
    if published := [number for number in study.findings["published"] if not number.summary]:
        sources = dict.fromkeys(str(getattr(number, "source", "")) for number in published)
        numbers = f"{len(published)} number{'s' if len(published) > 1 else ''}"
        console.print(f"published    {numbers}: {', '.join(sources)}", soft_wrap=True)


def _size(study: Study, checked: tuple[CheckedCell, ...] | None) -> str:
    plan = runs_of(Plan.of(study), checked or ())
    times = "repetition" if study.repetitions == 1 else "repetitions"
    most = "up to " if len(plan) < len(study) * study.repetitions else ""
    size = f"{len(study)} cells × {most}{study.repetitions} {times} = {len(plan)} runs"
    if checked is None:
        return size
    # As in `crosswind plan` for the same study.
    costs = plan_costs(Plan.of(study), checked)
    return f"{size}, in all about {seconds_text(costs.wall_ns / 1e9)}"


def _print_cells(console: Console, study: Study, checked: tuple[CheckedCell, ...] | None) -> None:
    factors = list(study.factors)
    columns = [TextColumn(head) for head in ("cell", *factors, *(["each takes about"] if checked else []))]
    rows = []
    by_cell = {cell.cell.index: cell for cell in checked or ()}
    cells = list(study.cells())
    for cell in cells[:_SHOWN_CELLS]:
        levels = [cell.levels.get(key, "–") for key in factors]
        takes = [seconds_text(by_cell[cell.index].forecast.duration_ns / 1e9)] if checked else []
        rows.append([str(cell.index), *levels, *takes])
    print_table(console, columns, rows)
    if len(cells) > _SHOWN_CELLS:
        console.print(f"and {len(cells) - _SHOWN_CELLS} more")
