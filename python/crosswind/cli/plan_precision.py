"""A precision's forecast from an earlier run: repetitions per cell, and time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.text import Text

from crosswind.cell.check import CheckedCell
from crosswind.cli.text import levels_text, seconds_text, warn_of_damage
from crosswind.errors import StoreError, UsageError
from crosswind.execution.planning import precision
from crosswind.report.text.format import NOTHING, count, quantity
from crosswind.study.design import Study
from crosswind.study.precision import most_repetitions
from crosswind.text.terminal_table import TextColumn, number_columns, print_table

if TYPE_CHECKING:
    from crosswind.analysis.needed import NeededRepetitions

_HINT = 'add --precision 5%, or [[precision]] with target = "5%" to the study'
_FOOTNOTE = (
    "The expected repetitions assume the spread of the earlier run; the 80 % range in brackets is that of the spread. "
    "Cells with random loss or delay have no range, because the earlier run may have missed rare long waits. “Without "
    "looks” is the number for --repetitions that gives the same width. Times are those of the earlier run, one "
    "repetition after another."
)


def needed_for(study: Study, checked: Sequence[CheckedCell], run: Path) -> "list[NeededRepetitions]":
    """The repetitions needed for a study's precisions, from an earlier run.

    Raises: UsageError for a study without precision or with unchecked cells; StoreError for an unreadable run or one
        without results.
    """
    asked = precision(study)
    if asked is None:
        raise UsageError("--from RUN needs a precision to forecast", hint=_HINT)
    if not checked:
        raise UsageError("--from RUN needs crosswind-cell to match cells", hint="`crosswind doctor`")
    # Statistics take over a second to import: no other plan should wait.
    from crosswind.analysis.needed import needed_repetitions
    from crosswind.store.run import load

    record = load(run).measured()
    warn_of_damage(record)
    cells = {cell.cell.index: (cell.cell.levels, cell.parameters, cell.effect) for cell in checked}
    needed = needed_repetitions(asked, cells, record)
    if all(row.pilot_cell is None for row in needed):
        raise StoreError(f"{run} has none of the cells of this study", hint="run a pilot: --repetitions 5")
    return needed


def seconds_of_a_repetition(run: Path) -> dict[int, float]:
    """Mean seconds per repetition, by cell."""
    from crosswind.store.run import load

    taken: dict[int, list[float]] = {}
    for result in load(run).results().values():
        taken.setdefault(result.planned.cell, []).append(result.elapsed_ns / 1e9)
    return {cell: fmean(seconds) for cell, seconds in taken.items()}


def precision_facts(study: Study) -> Iterator[str]:
    """The study's precisions, and the maximum number of repetitions per cell."""
    for asked in study.precisions:
        metric = asked.metric or "the main metric"
        where = ", ".join(f"{key} = {text}" for key, text in asked.where.texts.items())
        place = f" where {where}" if where else ""
        most = most_repetitions(study.table)
        yield f"{asked.statistic} of {metric} ± {asked.text}{place}, at most {most} repetitions"


def print_needed(
    console: Console, study: Study, needed: "Sequence[NeededRepetitions]", seconds: Mapping[int, float]
) -> None:
    """A row for each precision in each cell, and the time of all."""
    levels = {cell.index: levels_text(cell.levels) or "all" for cell in study.cells()}
    heads = ("asked", "earlier", "spread", "repetitions", "without looks", "time")
    rows: list[list[str]] = []
    for row in needed:
        name = f"{levels[row.cell]}: {row.statistic}({row.metric})"
        if row.reason:
            rows.append([name, f"± {row.target}", str(row.pilot_units), NOTHING, row.reason, "", ""])
            continue
        time = seconds_text(_repetitions(row) * seconds.get(row.pilot_cell or 0, 0.0))
        fixed = "too many" if row.fixed is None else count(row.fixed)
        earlier = str(row.pilot_units)
        rows.append([name, f"± {row.target}", earlier, _spread(row), needed_text(row), fixed, time])
    print_table(console, [TextColumn("precision"), *number_columns(*heads)], rows)
    total_s = sum(seconds_by_cell(needed, seconds).values())
    console.print(Text(f"all cells, one by one: about {seconds_text(total_s)}"))
    console.print(Text(_FOOTNOTE, style="dim"))


def needed_text(row: "NeededRepetitions") -> str:
    """Repetitions with their range, if they have one: "27 [18, 40]"; beyond the most, "more than 100"."""
    if not row.has_range or row.low == row.needed == row.high:
        return f"more than {row.most}" if row.needed is None else count(row.needed)
    ends = [f"> {row.most}" if end is None else count(end) for end in (row.needed, row.low, row.high)]
    return f"{ends[0]} [{ends[1]}, {ends[2]}]"


def seconds_by_cell(needed: "Sequence[NeededRepetitions]", seconds: Mapping[int, float]) -> dict[int, float]:
    """Seconds for each cell's repetitions, under its most demanding precision."""
    by_cell: dict[int, float] = {}
    for row in needed:
        if row.reason is None and row.pilot_cell is not None:
            by_cell[row.cell] = max(by_cell.get(row.cell, 0.0), _repetitions(row) * seconds.get(row.pilot_cell, 0.0))
    return by_cell


def as_json(needed: "Sequence[NeededRepetitions]", seconds: Mapping[int, float]) -> dict[str, Any]:
    """For programs."""
    return {
        "needed": [asdict(row) for row in needed],
        "seconds": sum(seconds_by_cell(needed, seconds).values()),
    }


def _repetitions(row: "NeededRepetitions") -> int:
    return row.most if row.needed is None else row.needed


def _spread(row: "NeededRepetitions") -> str:
    if row.target.endswith("%") and row.value and row.spread is not None:
        return f"{100 * row.spread / abs(row.value):.2g} %"
    return quantity(row.spread, row.unit)
