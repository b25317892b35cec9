"""Two runs compared, on a terminal: what they do not share, what changed in each common cell, and conditions."""

import re
import textwrap
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from crosswind.analysis.two_runs.result import (
    AskedCondition,
    Change,
    CommonCell,
    ConditionInCell,
    Differing,
    MetricChange,
    MetricOverview,
    RunComparison,
    RunSide,
)
from crosswind.metrics import metric_named
from crosswind.report.text.format import (
    MINUS,
    NOTHING,
    count,
    count_of,
    levels,
    listed,
    number,
    scale_of,
    three_digits,
)
from crosswind.report.text.two_runs_why import part_rows, why_sentences
from crosswind.terminal_table import TextColumn, number_columns, print_table

_SHOWN_DIFFERENCES = 12
_COLOURS = {
    "worse": "red", "better": "green", "fail": "bold red", "pass": "green",
    "cannot tell": "yellow", "inconclusive": "yellow",
}  # fmt: skip


def print_comparison(comparison: RunComparison, console: Console) -> None:
    """Print a comparison; rich colours it on a terminal only, and not where NO_COLOR is set."""
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        _print_wrapped(console, side_text(name, side))
        for text in side.damaged:
            _print_wrapped(console, f"damaged: {text}")
    _print_wrapped(console, common_text(comparison))
    for text in overview_sentences(comparison):
        _print_wrapped(console, text)
    for name, cells in (("A", comparison.only_a), ("B", comparison.only_b)):
        if cells:
            _print_wrapped(console, f"only in {name}: {listed([levels(cell) for cell in cells])}")
    _print_differing(console, "different settings", comparison.settings)
    _print_differing(console, "different surroundings", comparison.surroundings)
    _print_reasons(console, comparison)
    for metric in dict.fromkeys(change.metric for cell in comparison.common for change in cell.changes):
        _print_metric(console, metric, comparison.common)
    _print_doubts(console, comparison)
    for condition in comparison.conditions:
        _print_condition(console, condition)


def change_text(change: Change, *, is_ratio: bool, unit: str) -> str:
    """A change with its interval: "+12.3 [+10.1, +14.6] %", "+12 % in every repetition"; without one by itself."""
    if change.value is None:
        return NOTHING
    parts = [change.value] + [end for end in (change.low, change.high) if end is not None]
    scale, label = _scale(parts, is_ratio=is_ratio, unit=unit)
    value, *ends = (_signed((part - is_ratio) * scale) for part in parts)
    if change.low is not None and change.low == change.high:
        return f"{value} {label} in every repetition"
    most = ", the median of the pairs" if change.of_most else ""
    return f"{value} [{', '.join(ends)}] {label}{most}" if ends else f"{value} {label}"


def side_text(name: str, side: RunSide) -> str:
    """A run in one line: its directory, title, start, clocks and size."""
    started = f", {side.started[:16].replace('T', ' ')}" if side.started else ""
    counts = f"{count_of(side.cells, 'cell')}, {count_of(side.repetitions, 'repetition')}"
    return f"{name}  {side.directory}: {side.title}{started}, {' and '.join(side.clocks)} clock, {counts}"


def common_text(comparison: RunComparison) -> str:
    """How many common cells there are, and which of them are looked at."""
    matched = f"matched by {matched_text(comparison.common)}"
    if comparison.overview is None:
        return f"{count_of(len(comparison.common), 'common cell')}, {matched}"
    cells = count_of(comparison.overview.cells, "common cell")
    if not comparison.common:
        return f"{cells}, none of which changed"
    return f"{cells}; the {len(comparison.common)} whose change stands out the most from their repetitions, {matched}"


def overview_sentences(comparison: RunComparison) -> list[str]:
    """What is known of all common cells of large runs."""
    overviews = comparison.overview.metrics if comparison.overview is not None else []
    return [_overview_sentence(overview) for overview in overviews]


def _overview_sentence(overview: MetricOverview) -> str:
    metric = metric_named(overview.metric)
    title = metric.title if metric else overview.metric
    which = f"larger in {count_of(overview.larger, 'cell')}, smaller in {count(overview.smaller)}"
    if overview.middle is None:
        return f"{title}: {which} of {count(overview.cells)}."
    ends = " to ".join(three_digits(end) for end in (overview.least, overview.most))
    middle = three_digits(overview.middle)
    return f"{title}: {ends} times that of A, in the middle {middle}; {which} of {count(overview.cells)}."


def matched_text(cells: Sequence[CommonCell]) -> str:
    """What common cells have in common."""
    ways = [cell.matched_by for cell in cells]
    kinds = list(dict.fromkeys(ways))
    return kinds[0] if len(kinds) == 1 else ", ".join(f"{kind} ({ways.count(kind)})" for kind in kinds)


def _print_differing(console: Console, title: str, differing: Sequence[Differing]) -> None:
    if not differing:
        return
    console.print(Text(title, style="dim"))
    for row in differing[:_SHOWN_DIFFERENCES]:
        _print_wrapped(console, f"  {row.what}: {row.a or 'not set'} → {row.b or 'not set'}")
    if len(differing) > _SHOWN_DIFFERENCES:
        _print_wrapped(console, f"  and {len(differing) - _SHOWN_DIFFERENCES} more, which --json lists")


def _print_reasons(console: Console, comparison: RunComparison) -> None:
    said = list(why_sentences(comparison))
    if not said:
        return
    console.print()
    console.print(Text("Why", style="bold"))
    for sentence in said:
        _print_wrapped(console, sentence)
    for cell in comparison.common:
        if cell.why is not None and cell.why.differing:
            console.print()
            if len(comparison.common) > 1:
                console.print(Text(levels(cell.levels), style="dim"))
            rows = [list(row) for row in part_rows(cell.why)]
            print_table(console, [TextColumn("spent on"), *number_columns("A", "B", "change")], rows)


def _print_metric(console: Console, name: str, cells: Sequence[CommonCell]) -> None:
    rows = [(cell, change) for cell in cells for change in cell.changes if change.metric == name]
    if all(change.a is None for _, change in rows):
        return
    metric = metric_named(name)
    values = [value for _, change in rows for value in (change.a, change.b)]
    divisor, label = scale_of(values, rows[0][1].unit)
    has_levels = any(cell.levels for cell, _ in rows)
    heads = [TextColumn("cell")] if has_levels else []
    lines: list[list[str | Text]] = []
    for cell, change in rows:
        named = [levels(cell.levels)] if has_levels else []
        ends = [number(value, divisor) for value in (change.a, change.b)]
        shown, is_ratio = scaled(change)
        text = change_text(shown, is_ratio=is_ratio, unit=change.unit)
        verdict = Text(verdict_text(change), style=_COLOURS.get(change.verdict, ""))
        lines.append([*named, change.statistic, *ends, text, units_text(change), verdict])
    console.print()
    console.print(Text(f"{metric.title if metric else name}, {label}", style="bold"))
    print_table(
        console,
        [*heads, TextColumn("statistic"), *number_columns("A", "B", "change", "n"), TextColumn("verdict")],
        lines,
    )
    for note in notes_on(rows):
        _print_wrapped(console, note, style="dim")


def scaled(change: MetricChange) -> tuple[Change, bool]:
    """The ratio, else the difference, whichever has an interval of its statistic; and which of them it is."""
    is_of_difference = change.difference.low is not None and not change.difference.of_most
    has_interval = change.ratio.low is not None and not (change.ratio.of_most and is_of_difference)
    has_interval = has_interval or change.difference.low is None
    return (change.ratio, True) if change.ratio.value is not None and has_interval else (change.difference, False)


def units_text(change: MetricChange) -> str:
    """Repetitions on which a change rests: "20 pairs", "20 and 15"."""
    if change.a is None:
        return NOTHING
    if change.paired:
        left = " and ".join(
            f"{number} of {run}" for run, number in (("A", change.left_a), ("B", change.left_b)) if number
        )
        return f"{count_of(change.units_a, 'pair')}{f' ({left} without a partner)' if left else ''}"
    return f"{change.units_a} and {change.units_b}"


def verdict_text(change: MetricChange) -> str:
    """What is known of a change: "worse by 12 to 19 %", "no difference shown", "cannot tell" and why."""
    shown, is_ratio = scaled(change)
    if change.verdict in ("worse", "better"):
        ends = [end for end in (shown.low, shown.high, shown.value) if end is not None][:2]
        sizes = sorted(abs(end - 1) if is_ratio else abs(end) for end in ends)
        most = " in most repetitions" if shown.of_most else ""
        return f"{change.verdict} by {_range(sizes, is_ratio=is_ratio, unit=change.unit)}{most}"
    if change.verdict == "cannot tell":
        return f"cannot tell: {change.reason}"
    if change.verdict == "same":
        return "the same in every repetition" if change.units_a > 1 else "the same"
    return change.verdict


def _range(sizes: Sequence[float], *, is_ratio: bool, unit: str) -> str:
    """Sizes of a change, the smaller first: "12 to 19 %"."""
    scale, label = _scale(sizes, is_ratio=is_ratio, unit=unit)
    texts = list(dict.fromkeys(_signed(size * scale).removeprefix("+") for size in sizes))
    return f"{' to '.join(texts)} {label}"


def _scale(changes: Sequence[float], *, is_ratio: bool, unit: str) -> tuple[float, str]:
    """By what to multiply changes to show them, and the label of the result."""
    if is_ratio:
        return 100.0, "%"
    if unit == "1":
        return 100.0, "points"
    divisor, label = scale_of([max(changes, key=abs)], unit)
    return 1 / divisor, label


def notes_on(rows: Sequence[tuple[CommonCell, MetricChange]]) -> Iterator[str]:
    """What to say below the changes of a metric."""
    changes = [change for _, change in rows]
    yield from _two_quantiles(rows)
    if any(change.failed_a or change.failed_b for change in changes if change.statistic == "mean"):
        yield "Means are over successful exchanges; quantiles count failed ones as the worst."
    unknown = [change for change in changes if change.verdict == "no difference shown" and change.needed]
    if unknown:
        fewest = min(change.needed or 0 for change in unknown)
        yield (
            f"Showing differences as large as the observed ones would take {fewest:,} repetitions or more".replace(
                ",", " "
            )
            + " of each run. “No difference shown” does not mean equal: to test that, give a margin with --fail-if."
        )


def _two_quantiles(rows: Sequence[tuple[CommonCell, MetricChange]]) -> Iterator[str]:
    """The quantile of all exchanges, which a report has, beside the mean of the repetitions' own, which is compared."""
    for statistic in dict.fromkeys(change.statistic for _, change in rows if change.pooled_a is not None):
        of_statistic = [(cell, change) for cell, change in rows if change.statistic == statistic]
        divisor, label = scale_of([change.pooled_a for _, change in of_statistic], of_statistic[0][1].unit)
        texts = [
            f"{f'{levels(cell.levels)}: ' if cell.levels else ''}A {number(change.pooled_a, divisor)}, "
            f"B {number(change.pooled_b, divisor)} {label}"
            for cell, change in of_statistic[:_SHOWN_DIFFERENCES]
        ]
        more = "; --json has all" if len(of_statistic) > _SHOWN_DIFFERENCES else ""
        yield (
            f"{statistic} is the mean of the repetitions' own {statistic}. Of all exchanges together, as in a report, "
            f"it is {'; '.join(texts)}{more}."
        )


def _print_doubts(console: Console, comparison: RunComparison) -> None:
    for cell in comparison.common:
        for name, reason in (("A", cell.invalid_a), ("B", cell.invalid_b)):
            if reason:
                _print_wrapped(console, f"! not valid in {name}: {levels(cell.levels)}: {reason}", style="bold red")


def condition_text(asked: AskedCondition) -> str:
    """A condition; one that passes with what was shown: "p95(rtt) not worse by 10%"."""
    if asked.answer != "pass":
        return asked.condition
    what, direction, amount = re.split(r" +(worse|better|differs) ", asked.condition, maxsplit=1)
    return f"{what} {'does not differ' if direction == 'differs' else f'not {direction}'} {amount}"


def _print_condition(console: Console, asked: AskedCondition) -> None:
    console.print()
    console.print(Text(f"{asked.answer.capitalize()}: {condition_text(asked)}", style=_COLOURS[asked.answer]))
    cells = [cell for cell in asked.cells if cell.answer == asked.answer]
    for cell in cells[:_SHOWN_DIFFERENCES]:
        _print_wrapped(console, f"  {levels(cell.levels)}: {answer_text(cell, asked)}")
    if len(cells) > _SHOWN_DIFFERENCES:
        _print_wrapped(console, f"  and {len(cells) - _SHOWN_DIFFERENCES} more cells, which --json lists")


def answer_text(cell: ConditionInCell, asked: AskedCondition) -> str:
    """What decides a condition in a cell, or why nothing does."""
    change = change_text(cell.change, is_ratio=asked.is_ratio, unit=asked.unit)
    if cell.answer != "inconclusive":
        return f"the change is {change}"
    if cell.reason:
        return f"inconclusive: {cell.reason}"
    more = "no number of repetitions is likely to decide" if cell.needed is None else _more(cell.needed)
    return f"the change is {change}; inconclusive: {more}"


def _more(repetitions: int) -> str:
    many = f"{repetitions:,}".replace(",", " ")
    return f"about {many} more repetition{'' if repetitions == 1 else 's'} of each run would"


def _signed(value: float) -> str:
    """Three digits, below a thousandth 0."""
    size = abs(value)
    text = "0" if size < 0.001 else f"{size:.3g}" if size < 999.5 else f"{size:.0f}"
    return f"{MINUS if value < 0 and text != '0' else '+'}{text}"


def _print_wrapped(console: Console, text: str, style: str = "") -> None:
    for line in textwrap.wrap(text, console.width - 1, subsequent_indent="   "):
        console.print(Text(line, style=style))
