"""`crosswind plan`: what a run would be and take, without running it."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosswind.cell.binary import find_binary
from crosswind.cell.check import CheckedCell, check_study
from crosswind.cli.output import plain_console
from crosswind.cli.plan_precision import as_json as precision_as_json
from crosswind.cli.plan_precision import needed_for, precision_facts, print_needed, seconds_of_a_repetition
from crosswind.cli.run import study_from
from crosswind.cli.settings import chosen, parse_set, setting_options
from crosswind.cli.text import levels_text, seconds_text, size_text
from crosswind.errors import EngineError, UsageError
from crosswind.execution.planning import PlanCosts, plan_costs, refuse_unknown_models, runs_of
from crosswind.execution.unmeasured import refuse_unmeasured
from crosswind.forecast.cost import HEAVY, Forecast
from crosswind.report.text.format import count, quantity
from crosswind.study.cells import Cell
from crosswind.study.design import Study
from crosswind.study.plan import Plan, PlanItem

SCHEMA = "crosswind.plan/1"

_LONGEST = 10
_MUCH_SHORTER = 3
"""How many times shorter a run has to be in virtual time for a plan to say so."""
_FOOTNOTE = (
    "These forecasts are meant to be right within a factor of two or three. They are computed from the parameters of "
    "the cells alone: from round trips, the rate of the link, TCP's slow start, what loss costs TCP, and 0.06 s of "
    "set-up for each run. “Side by side” assumes as many runs at a time as {capacity:g} of {processors} processors can "
    "carry, at most {most}. A run that keeps more than {heavy} of a processor busy, or whose path takes less than 1 ms "
    "there and back, runs alone, after the others. A run in virtual time takes 0.1 s and 0.11 ms for each packet, "
    "whatever it waits for."
)


@click.command()
@click.argument("study", metavar="STUDY|FILE|KIND")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Set a key of the study, dotted.")
@click.option("--quick", is_flag=True, help="The study's variant for a first look.")
@click.option("--repetitions", type=click.IntRange(1), help="How often every cell is run.")
@click.option("--precision", metavar="TARGET", help="Run until intervals are this narrow: 5%, of the mean; or 2ms.")
@click.option("--repetitions-max", type=click.IntRange(1), help="How often a cell is run at most for its precision.")
@click.option(
    "--from",
    "pilot",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Forecast from RUN what the precision takes.",
)
@click.option("--seed", type=click.IntRange(0), help="What every random decision derives from.")
@click.option("--packets", is_flag=True, help="Count the space of one record a packet.")
@click.option("--capture", "--pcapng", is_flag=True, help="Count the space of pcapng files.")
@click.option("--order", is_flag=True, help="List every run in its order.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, schema crosswind.plan/1.")
@setting_options
def command(
    *,
    study: str,
    assignments: tuple[str, ...],
    quick: bool,
    repetitions: int | None,
    precision: str | None,
    repetitions_max: int | None,
    pilot: Path | None,
    seed: int | None,
    packets: bool,
    capture: bool,
    order: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Show what `crosswind run` with the same arguments would run and take: cells, order, time, packets, disk space.

    A dry run: it needs no privilege and leaves nothing behind. crosswind-cell checks every cell as at a real start;
    where there is none, the plan has no forecasts.
    """
    design = {"study.repetitions": repetitions, "study.repetitions_max": repetitions_max, "study.seed": seed}
    overrides = {**parse_set(assignments), **{key: value for key, value in design.items() if value is not None}}
    wanted = study_from(study, chosen(settings), overrides, quick=quick, precision=precision)
    if wanted is None:
        raise UsageError("nothing to plan", hint="name a study: `crosswind studies` lists them")
    refuse_unknown_models(wanted)
    plan = Plan.of(wanted)
    checked, remark = _checked(wanted)
    planned = _Planned.of(plan, checked)
    costs = plan_costs(plan, checked, packets=packets, capture=capture) if checked else None
    needed = needed_for(wanted, checked, pilot) if pilot is not None else []
    seconds = seconds_of_a_repetition(pilot) if pilot is not None else {}
    if as_json:
        document = _as_dict(planned, costs, checked=remark, order=order)
        document |= {"precision": precision_as_json(needed, seconds)} if needed else {}
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    _print(plain_console(), planned, costs, remark)
    if needed:
        plain_console().print()
        print_needed(plain_console(), wanted, needed, seconds)
    if order:
        _print_order(plain_console(), planned)


@dataclass(frozen=True)
class _Planned:
    """A study's plan as it will be run.

    Attributes: runs: in order. each: the forecast of a run of each cell, by its index; empty without crosswind-cell.
        virtual: cells in virtual time. exact: those of them that come out the same every time, and run once.
    """

    study: Study
    runs: tuple[PlanItem, ...]
    each: Mapping[int, Forecast]
    virtual: frozenset[int]
    exact: frozenset[int]

    @classmethod
    def of(cls, plan: Plan, checked: Sequence[CheckedCell]) -> Self:
        """The plan, and what crosswind-cell says of its cells."""
        return cls(
            plan.study,
            runs_of(plan, checked),
            {cell.cell.index: cell.forecast for cell in checked},
            frozenset(cell.cell.index for cell in checked if cell.is_virtual),
            frozenset(cell.cell.index for cell in checked if cell.exact),
        )

    @property
    def cells(self) -> list[Cell]:
        """The cells, in the order of their first runs."""
        return [item.cell for item in self.runs if item.repetition == 0]

    def clock(self, cell: int) -> str | None:
        """The clock of a cell; None where nobody could say what this machine allows."""
        if not self.each:
            return None
        return "virtual" if cell in self.virtual else "real"


def _checked(study: Study) -> tuple[tuple[CheckedCell, ...], str]:
    """Every cell as crosswind-cell sees it, and what came of asking it; no cells where it cannot be asked.

    Raises: StudyError when a cell is impossible, or cannot measure what is asked.
    """
    try:
        checked = check_study(study, binary=find_binary())
    except EngineError as error:
        return (), f"not by crosswind-cell: {error.message}"
    refuse_unmeasured(study, checked)
    return checked, "each cell, by crosswind-cell"


# For people


def _print(console: Console, planned: _Planned, costs: PlanCosts | None, checked: str) -> None:
    study, cells = planned.study, planned.cells
    console.print(study.title, style="bold")
    console.print()
    facts = [("plan", f"{len(cells)} cells, {_repetitions(planned)}, {len(planned.runs)} runs")]
    facts += [("precision", text) for text in precision_facts(study)]
    facts += [("factor", f"{key} = {', '.join(texts)}") for key, texts in study.factors.items()]
    facts += [("seed", str(study.seed)), ("checked", checked), *_clocks(planned)]
    _print_facts(console, facts)
    if costs is None:
        return
    console.print()
    _print_longest(console, cells, planned.each)
    console.print()
    _print_facts(console, _totals(costs))
    console.print()
    note = _FOOTNOTE.format(capacity=costs.capacity, processors=costs.processors, most=costs.most, heavy=HEAVY)
    console.print(Text(note, style="dim"))


def _repetitions(planned: _Planned) -> str:
    """How often the cells are run; with a precision, at first."""
    most = max((item.repetition + 1 for item in planned.runs), default=0)
    times = f"{most} repetition{'' if most == 1 else 's'}"
    if planned.study.precisions:
        return f"{times} at first"
    return f"{times} at most" if len(planned.runs) < len(planned.cells) * most else times


def _clocks(planned: _Planned) -> Iterator[tuple[str, str]]:
    """Which clock the cells have, and which of them run once."""
    if not planned.each:
        return
    cells = len(planned.cells)
    virtual, exact = len(planned.virtual), len(planned.exact)
    some = "" if virtual in (0, cells) else f" in {virtual} of {cells} cells, real in the others"
    yield "clock", f"virtual{some}" if virtual else "real"
    if exact:
        which = f"{exact} of {cells} cells: each runs once" if exact < cells else "each cell runs once"
        yield "exact", f"{which}: nothing in it is left to chance"


def _totals(costs: PlanCosts) -> list[tuple[str, str]]:
    alone = f", {costs.alone_runs} of the runs alone" if costs.alone_runs else ""
    totals = []
    if costs.serial_ns:
        totals += [
            ("one by one", f"about {_time(costs.serial_ns)}"),
            ("side by side", f"about {_time(costs.parallel_ns)}{alone}"),
        ]
        if not costs.unknown_runs and _MUCH_SHORTER * costs.if_virtual_ns < costs.parallel_ns:
            totals.append(("--clock virtual", f"about {_time(costs.if_virtual_ns)} (docs/virtual-time.md)"))
    if costs.virtual_runs:
        totals.append(("in virtual time", f"{costs.virtual_runs} runs in about {_time(costs.virtual_ns)}"))
    totals += [
        ("packets", count(costs.packets)),
        ("carried", size_text(costs.bytes)),
        ("disk space", size_text(costs.disk_bytes)),
    ]
    if costs.unknown_runs:
        totals.append(("programs", f"{costs.unknown_runs} runs, taken as 10 s each; what they send is not counted"))
    return totals


def _print_facts(console: Console, facts: Sequence[tuple[str, str]]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, text in facts:
        table.add_row(name, Text(text))
    console.print(table)


def _print_longest(console: Console, cells: Sequence[Cell], each: Mapping[int, Forecast]) -> None:
    longest = sorted(cells, key=lambda cell: -each[cell.index].duration_ns)[:_LONGEST]
    head = "each run of the longest cells" if len(cells) > _LONGEST else "each run of a cell"
    table = _runs_table(head, "cell", numbers=("takes", "packets", "load"))
    for cell in longest:
        table.add_row(str(cell.index), _levels(cell), *_numbers(each[cell.index]))
    console.print(table)
    if len(cells) > len(longest):
        console.print(Text(f"and {len(cells) - len(longest)} cells that take less", style="dim"))


def _print_order(console: Console, planned: _Planned) -> None:
    console.print()
    each = planned.each
    table = _runs_table("run", "order", "key", "block", numbers=("takes",) if each else ())
    for item in planned.runs:
        takes = _numbers(each[item.cell.index])[:1] if each else ()
        table.add_row(str(item.order), item.key, str(item.block), _levels(item.cell), *takes)
    console.print(table)


def _runs_table(head: str, *keys: str, numbers: Sequence[str]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for key in keys:
        table.add_column(key, no_wrap=True, justify="left" if key == "key" else "right")
    table.add_column(head, overflow="fold")
    for name in numbers:
        table.add_column(name, no_wrap=True, justify="right")
    return table


def _levels(cell: Cell) -> str:
    return levels_text(cell.levels) or "the only cell"


def _numbers(forecast: Forecast) -> tuple[str, str, str]:
    return _time(forecast.duration_ns), count(forecast.packets), f"{forecast.load:.2g}"


def _time(duration_ns: int) -> str:
    return quantity(duration_ns, "ns") if duration_ns < 60e9 else seconds_text(duration_ns / 1e9)


# For programs


def _as_dict(planned: _Planned, costs: PlanCosts | None, *, checked: str, order: bool) -> dict[str, Any]:
    study = planned.study
    times = Counter(item.cell.index for item in planned.runs)
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "name": study.name,
        "title": study.title,
        "study_digest": study.digest(),
        "seed": study.seed,
        "repetitions": study.repetitions,
        "runs": len(planned.runs),
        "factors": {key: list(texts) for key, texts in study.factors.items()},
        "checked": checked,
        "total": None if costs is None else asdict(costs),
        "cells": [
            {
                "cell": cell.index,
                "levels": dict(cell.levels),
                "runs": times[cell.index],
                "clock": planned.clock(cell.index),
                "exact": cell.index in planned.exact,
                **_expected(planned.each.get(cell.index)),
            }
            for cell in sorted(planned.cells, key=lambda cell: cell.index)
        ],
    }
    if order:
        document["order"] = [
            {
                "order": item.order,
                "key": item.key,
                "cell": item.cell.index,
                "repetition": item.repetition,
                "block": item.block,
                "seed": item.seed,
                "levels": dict(item.cell.levels),
                "exact": item.cell.index in planned.exact,
                **_expected(planned.each.get(item.cell.index)),
            }
            for item in planned.runs
        ]
    return document


def _expected(costs: Forecast | None) -> dict[str, Any]:
    if costs is None:
        return {}
    return {
        "expected_ns": costs.duration_ns,
        "expected_packets": costs.packets,
        "expected_bytes": costs.bytes,
        "expected_load": costs.load,
        "undelayed": costs.undelayed,
    }
