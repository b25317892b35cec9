"""`crosswind plan`: what a run would be and take, without running it."""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from crosswind.cell.process import check_cell, find_binary
from crosswind.cell.spec import cell_json
from crosswind.cli.output import plain_console
from crosswind.cli.run import study_from
from crosswind.cli.runs import size_text
from crosswind.cli.settings import chosen, parse_set, setting_options
from crosswind.errors import EngineError, UsageError
from crosswind.execution.admission import CAPACITY
from crosswind.execution.progress import duration_text, seconds_text
from crosswind.execution.session import refuse_unknown_models
from crosswind.forecast.cost import HEAVY, Forecast, disk_bytes, forecast, makespan_ns
from crosswind.report.text.format import factor_names
from crosswind.study.cells import Cell
from crosswind.study.plan import Plan

SCHEMA = "crosswind.plan/1"

MOST = 500
"""Runs side by side, at most."""

CHECKED_CELLS = 500
"""Checking one takes about 4 ms, and so these two seconds. Of more, the start of the run checks every one."""

_LONGEST = 10
_FOOTNOTE = (
    "Forecasts from the cells' parameters alone, meant to be right within a factor of two or three: round trips, the "
    "link, TCP's slow start and what loss costs it, 0.06 s of set-up a run. Side by side is what {capacity:g} of "
    "{processors} processors carry, at most {most} runs at once; a run that keeps more than {heavy} of one busy runs "
    "alone, after the others."
)


@dataclass(frozen=True)
class _Costs:
    """All runs of a plan together."""

    serial_ns: int
    parallel_ns: int
    heavy_runs: int
    unknown_runs: int
    packets: int
    bytes: int
    disk_bytes: int
    processors: int
    capacity: float
    most: int


@click.command()
@click.argument("study", metavar="STUDY|FILE|KIND")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Set a key of the study, dotted.")
@click.option("--quick", is_flag=True, help="The study's variant for a first look.")
@click.option("--repetitions", type=click.IntRange(1), help="How often every cell is run.")
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
    seed: int | None,
    packets: bool,
    capture: bool,
    order: bool,
    as_json: bool,
    **settings: Any,
) -> None:
    """Show what `crosswind run` with the same arguments would run and take: cells, order, time, packets, disk space.

    A dry run: it needs no privilege and no crosswind-cell, and leaves nothing behind. Where there is a crosswind-cell,
    it checks every cell as at a real start.
    """
    design = {"study.repetitions": repetitions, "study.seed": seed}
    overrides = {**parse_set(assignments), **{key: value for key, value in design.items() if value is not None}}
    wanted = study_from(study, chosen(settings), overrides, quick=quick)
    if wanted is None:
        raise UsageError("nothing to plan", hint="name a study: `crosswind studies` lists them")
    refuse_unknown_models(wanted)
    plan = Plan.of(wanted)
    checked = _checked(plan)
    each = {item.cell.index: forecast(item.cell) for item in plan}
    costs = _costs(plan, each, packets=packets, capture=capture)
    if as_json:
        document = _as_dict(plan, each, costs, checked=checked, order=order)
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    _print(plain_console(), plan, each, costs, checked)
    if order:
        _print_order(plain_console(), plan, each)


def _checked(plan: Plan) -> str:
    """Has crosswind-cell check each cell. Returns what came of it. Raises: StudyError when one is impossible."""
    cells = [item for item in plan if item.repetition == 0]
    if len(cells) > CHECKED_CELLS:
        return f"not yet: {len(cells)} cells are checked at the start of the run"
    try:
        binary = find_binary()
        for item in cells:
            check_cell({**cell_json(item), "output": {}}, binary=binary)
    except EngineError as error:
        return f"not by crosswind-cell: {error.message}"
    return "each cell, by crosswind-cell"


def _costs(plan: Plan, each: dict[int, Forecast], *, packets: bool, capture: bool) -> _Costs:
    processors = len(os.sched_getaffinity(0))
    capacity = CAPACITY * processors
    runs = [each[item.cell.index] for item in plan]
    space = {item.cell.index: disk_bytes(item.cell, packets=packets, capture=capture) for item in plan}
    return _Costs(
        serial_ns=sum(one.duration_ns for one in runs),
        parallel_ns=makespan_ns(runs, capacity=capacity, most=MOST),
        heavy_runs=sum(one.load > HEAVY for one in runs),
        unknown_runs=sum(item.cell.parameters.workload.kind == "program" for item in plan),
        packets=sum(one.packets for one in runs),
        bytes=sum(one.bytes for one in runs),
        disk_bytes=sum(space[item.cell.index] for item in plan),
        processors=processors,
        capacity=capacity,
        most=MOST,
    )


# For people


def _print(console: Console, plan: Plan, each: dict[int, Forecast], costs: _Costs, checked: str) -> None:
    study = plan.study
    cells = [item.cell for item in plan if item.repetition == 0]
    console.print(study.title, style="bold")
    console.print()
    times = "repetition" if study.repetitions == 1 else "repetitions"
    fewer = " at most" if len(plan) < len(cells) * study.repetitions else ""
    facts = [("plan", f"{len(cells)} cells, {study.repetitions} {times}{fewer}, {len(plan)} runs")]
    facts += [("factor", f"{key} = {', '.join(texts)}") for key, texts in study.factors.items()]
    facts += [("seed", str(study.seed)), ("checked", checked)]
    _print_facts(console, facts)
    console.print()
    _print_longest(console, cells, each)
    console.print()
    _print_facts(console, _totals(costs))
    console.print()
    note = _FOOTNOTE.format(capacity=costs.capacity, processors=costs.processors, most=costs.most, heavy=HEAVY)
    console.print(Text(note, style="dim"))


def _totals(costs: _Costs) -> list[tuple[str, str]]:
    alone = f", {costs.heavy_runs} of the runs alone" if costs.heavy_runs else ""
    totals = [
        ("one by one", f"about {_time(costs.serial_ns)}"),
        ("side by side", f"about {_time(costs.parallel_ns)}{alone}"),
        ("packets", f"{costs.packets:,}".replace(",", "\u202f")),
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


def _print_longest(console: Console, cells: Sequence[Cell], each: dict[int, Forecast]) -> None:
    longest = sorted(cells, key=lambda cell: -each[cell.index].duration_ns)[:_LONGEST]
    head = "each run of the longest cells" if len(cells) > _LONGEST else "each run of a cell"
    table = _runs_table(head, "cell")
    for cell in longest:
        table.add_row(str(cell.index), _levels(cell), *_numbers(each[cell.index]))
    console.print(table)
    if len(cells) > len(longest):
        console.print(Text(f"and {len(cells) - len(longest)} cells that take less", style="dim"))


def _print_order(console: Console, plan: Plan, each: dict[int, Forecast]) -> None:
    console.print()
    table = _runs_table("run", "order", "key", "block")
    for item in plan:
        table.add_row(
            str(item.order), item.key, str(item.block), _levels(item.cell), *_numbers(each[item.cell.index])[:1]
        )
    console.print(table)


def _runs_table(head: str, *keys: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for key in keys:
        table.add_column(key, no_wrap=True, justify="left" if key == "key" else "right")
    table.add_column(head, overflow="fold")
    names = ("takes", "packets", "load") if keys == ("cell",) else ("takes",)
    for name in names:
        table.add_column(name, no_wrap=True, justify="right")
    return table


def _levels(cell: Cell) -> str:
    """A cell by its levels, each with the last word of its key; keys that share one are written out."""
    names = factor_names(cell.levels)
    return " ".join(f"{names[key]}={text}" for key, text in cell.levels.items()) or "the only cell"


def _numbers(one: Forecast) -> tuple[str, str, str]:
    return _time(one.duration_ns), f"{one.packets:,}".replace(",", "\u202f"), f"{one.load:.2g}"


def _time(duration_ns: int) -> str:
    return duration_text(duration_ns) if duration_ns < 60e9 else seconds_text(duration_ns / 1e9)


# For programs


def _as_dict(plan: Plan, each: dict[int, Forecast], costs: _Costs, *, checked: str, order: bool) -> dict[str, Any]:
    study = plan.study
    times: dict[int, int] = {}
    for item in plan:
        times[item.cell.index] = times.get(item.cell.index, 0) + 1
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "name": study.name,
        "title": study.title,
        "study_digest": study.digest(),
        "seed": study.seed,
        "repetitions": study.repetitions,
        "runs": len(plan),
        "factors": {key: list(texts) for key, texts in study.factors.items()},
        "checked": checked,
        "total": asdict(costs),
        "cells": [
            {
                "cell": item.cell.index,
                "levels": dict(item.cell.levels),
                "runs": times[item.cell.index],
                **_expected(each[item.cell.index]),
            }
            for item in sorted(plan.items, key=lambda item: item.cell.index)
            if item.repetition == 0
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
                **_expected(each[item.cell.index]),
            }
            for item in plan
        ]
    return document


def _expected(one: Forecast) -> dict[str, Any]:
    return {
        "expected_ns": one.duration_ns,
        "expected_packets": one.packets,
        "expected_bytes": one.bytes,
        "expected_load": one.load,
    }
