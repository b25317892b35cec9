"""The tables of a report as plain rows of text, shared by terminal and HTML."""

import re
from dataclasses import dataclass, field

from crosswind.analysis.metrics import METRICS
from crosswind.report.format import (
    NOTHING,
    factor_name,
    factor_names,
    interval,
    levels,
    number,
    observed,
    p_value,
    percent,
    quantity,
    scale_of,
)
from crosswind.report.headline import number_of
from crosswind.result import Cell, Direction, Interval, Metric, Result


@dataclass(frozen=True)
class Table:
    """A table of text.

    Attributes:
        text: how many leading columns hold words (left-aligned); the rest are numbers. marked: rows of invalid cells.
        footnotes: sentences below it: methods, and why numbers are absent. narrow: the same with fewer columns.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    text: int
    marked: frozenset[int] = frozenset()
    footnotes: list[str] = field(default_factory=list)
    narrow: "Table | None" = None


STATISTICS = ("median", "mean", "p95", "p99")


def factor_columns(cells: list[Cell]) -> list[str]:
    """Keys of the factors, in the order of the first cell that has them."""
    return list(dict.fromkeys(key for cell in cells for key in cell.levels))


def metric_tables(result: Result) -> list[tuple[str, Table]]:
    """(metric name, its table) for every metric that any cell has, in the registry's order."""
    present = {name for cell in result.cells for name in cell.estimates}
    return [(name, metric_table(name, result)) for name in METRICS if name in present]


def metric_table(name: str, result: Result) -> Table:
    """n, median, mean, p95 and p99 of one metric, each with its interval, in one unit, for each cell that has it.

    A statistic that no cell supports has no column; a footnote says why. The narrow form leaves p95 and p99 out.
    """
    cells = [cell for cell in result.cells if name in cell.estimates]
    factors = factor_columns(cells)
    short = factor_names(factors)
    metrics = [cell.estimates[name] for cell in cells]
    divisor, unit = scale_of([_middle(metric) for metric in metrics], metrics[0].unit)
    shown = [one for one in STATISTICS if any(_part(metric, one).value is not None for metric in metrics)]
    central = [one for one in shown if one in ("median", "mean")]
    bare = any(metric.mean.value is None for metric in metrics)
    extra = ["observed"] if bare else []
    rows, narrow = [], []
    for cell, metric in zip(cells, metrics, strict=True):
        values = {one: interval(_part(metric, one), divisor) for one in shown}
        n = number_of(metric.median.n)
        heads = [cell.levels.get(key, NOTHING) for key in factors] or ["the only cell"]
        seen = [observed((metric.smallest, metric.largest), divisor) if metric.mean.value is None else NOTHING]
        seen = seen if bare else []
        rows.append([*heads, n, number_of(cell.lost), *values.values(), *seen])
        narrow.append([levels(cell.levels), n, *(values[one] for one in central), *seen])
    names = [short[key] for key in factors] or ["cell"]
    title = f"{METRICS[name].title}, {unit}"
    marked = frozenset(row for row, cell in enumerate(cells) if not cell.valid)
    notes = footnotes(cells, metrics)
    small = Table(title, [" · ".join(names), "n", *_with_interval(central), *extra], narrow, 1, marked, notes)
    return Table(title, [*names, "n", "lost", *_with_interval(shown), *extra], rows, len(names), marked, notes, small)


def footnotes(cells: list[Cell], metrics: list[Metric]) -> list[str]:
    """Methods in use, each once, and for every absent number its reason, each once with the cells it concerns."""
    used: dict[str, list[str]] = {}
    absent: dict[str, list[str]] = {}
    for cell, metric in zip(cells, metrics, strict=True):
        for statistic in STATISTICS:
            part = _part(metric, statistic)
            if part.value is not None:
                names = used.setdefault(method(part.method), [])
                names.append(statistic)
            elif part.reason:
                why = re.sub(r", there are \d+$", "", part.reason)
                absent.setdefault(f"{statistic}: {why}", []).append(levels(cell.levels))
    notes = [f"{', '.join(dict.fromkeys(names))}: {how}" for how, names in used.items()]
    notes += [f"{why} ({where[0] if len(where) == 1 else f'{len(where)} cells'})" for why, where in absent.items()]
    return notes


def method(name: str) -> str:
    """A method's name without the length of its blocks, so that cells share a footnote."""
    parts = re.sub(r" \(blocks of \d+\)|, \d+ (?=effective)", lambda cut: ", " if "," in cut[0] else "", name).split(
        " and "
    )
    return " and ".join(dict.fromkeys(parts))


def loss_table(result: Result) -> Table | None:
    """Exchanges lost, where any were."""
    cells = [cell for cell in result.cells if cell.loss is not None]
    if not any(cell.lost for cell in cells):
        return None
    rows, methods = [], []
    for cell in cells:
        if cell.loss is None:
            continue
        methods.append(cell.loss.method)
        outcomes = ", ".join(f"{outcome} {number_of(count)}" for outcome, count in cell.outcomes.items())
        share = f"{percent(cell.loss.value)} [{percent(cell.loss.low)}, {percent(cell.loss.high)}]"
        rows.append([levels(cell.levels), number_of(cell.n), number_of(cell.lost), share, outcomes])
    columns = ["cell", "n", "lost", "share, 95 %", "outcomes"]
    return Table("Exchanges lost", columns, rows, 1, footnotes=list(dict.fromkeys(methods)))


def models_table(result: Result) -> Table | None:
    """Models beside the measurement."""
    rows = []
    remarks: dict[str, dict[str, None]] = {}
    for cell in result.cells:
        for one in cell.models:
            measured = one.measured.value if one.measured else None
            divisor, unit = scale_of([one.value, measured, *(one.observed or ())], one.unit)
            for remark in (*one.violated, *one.notes):
                remarks.setdefault(remark, {})[one.title] = None
            capped = one.uncapped is not None and one.uncapped != one.value
            uncapped = "silent" if one.uncapped is None else quantity(one.uncapped, one.unit) if capped else NOTHING
            rows.append([
                levels(cell.levels),
                one.title,
                quantity(1e9 * one.inputs["rtt_s"], "ns") if "rtt_s" in one.inputs else NOTHING,
                "silent" if one.value is None else f"{number(one.value, divisor)} {unit}",
                uncapped,
                f"{observed(one.observed, divisor) if measured is None else interval(one.measured, divisor)} {unit}",
                _three(one.ratio),
                NOTHING if one.uncapped is None else "no" if one.violated else "yes",
            ])  # fmt: skip
    if not rows:
        return None
    columns = ["cell", "model", "RTT", "predicted", "uncapped", "measured mean", "ratio", "assumptions hold"]
    order = (0, 1, 3, 5, 6)
    small = Table("Models", [columns[index] for index in order], [[row[index] for index in order] for row in rows], 2)
    notes = [f"{'; '.join(titles)}: {remark}" for remark, titles in remarks.items()]
    return Table("Models", columns, rows, 2, footnotes=notes, narrow=small)


def published_table(result: Result) -> Table | None:
    """Published figures beside ours."""
    by_cell = {cell.cell: cell for cell in result.cells}
    rows, notes = [], []
    for one in result.published:
        divisor, unit = scale_of([one.theirs], one.unit)
        spread = "" if one.theirs_ci is None else f" ± {one.theirs_ci / divisor:.4g}"
        theirs = f"{one.theirs / divisor:.4g}{spread} {unit}"
        if one.note:
            notes.append(f"{one.source}: {one.note}")
        cell = by_cell.get(one.cell) if one.cell is not None else None
        title = METRICS[one.metric].title.lower() if one.metric in METRICS else one.metric
        ours = NOTHING
        if one.ours is not None:
            ours = (
                f"{observed(one.observed, divisor) if one.ours.value is None else interval(one.ours, divisor)} {unit}"
            )
        where = levels(cell.levels if cell else one.levels)
        what = f"{one.statistic} {title}"
        rows.append([one.source, where, what, theirs, ours, _three(one.ratio), one.remark])
    if not rows:
        return None
    columns = ["source", "cell", "metric", "published", "ours, 95 %", "ours / theirs", "remark"]
    narrow = [[*row[:2], *row[3:6]] for row in rows]
    small = Table("Published figures", [*columns[:2], *columns[3:6]], narrow, 2)
    return Table("Published figures", columns, rows, 3, footnotes=list(dict.fromkeys(notes)), narrow=small)


def comparisons_table(result: Result) -> Table | None:
    """Levels of each factor against its first one."""
    rows, methods = [], []
    tested = [one for one in result.comparisons if one.p is not None]
    for one in tested:
        divisor, unit = scale_of([one.difference.value], one.unit)
        methods.append(method(one.difference.method))
        rows.append([
            METRICS[one.metric].title,
            f"{factor_name(one.factor)} {one.other} against {one.reference}",
            levels(one.fixed) if one.fixed else NOTHING,
            f"{interval(one.difference, divisor)} {unit}",
            interval(one.ratio),
            interval(one.cliffs_delta),
            p_value(one.p_holm),
            one.verdict,
        ])  # fmt: skip
    if not rows:
        return None
    columns = ["metric", "levels", "at", "difference of means", "ratio of means", "Cliff's δ", "p (Holm)", "verdict"]
    notes = [
        *dict.fromkeys(f"Difference and ratio: {one}." for one in methods),
        "Intervals are 95 %, each by itself; p is corrected by Holm's method within one factor and metric. "
        "“No difference shown” does not mean equal.",
    ]
    untested = len(result.comparisons) - len(tested)
    if untested:
        notes.append(f"Left out for want of samples: {untested} more.")
    only = rows[0][0] if len({row[0] for row in rows}) == 1 else None
    order = (() if only else (0,)) + (1, 2, 4, 7)
    shorter = {" against ": " / ", "no difference shown": "none shown"}
    narrow = [[_replaced(row[index], shorter) for index in order] for row in rows]
    title = f"Comparisons: {only.lower()}" if only else "Comparisons"
    small = Table(title, [*(columns[index] for index in order[:-1]), "difference"], narrow, len(order) - 2)
    if only:
        columns, rows = columns[1:], [row[1:] for row in rows]
    return Table(title, columns, rows, len(columns) - 5, footnotes=notes, narrow=small)


def trust_table(result: Result) -> Table:
    """Ledger and fidelity of each cell."""
    rows = []
    for cell in result.cells:
        ledger, fidelity = cell.ledger, cell.fidelity
        error = [NOTHING] * 3
        if fidelity:
            parts = fidelity.delay_error
            error = [quantity(part, "ns") for part in (parts.p50, parts.p99, parts.max)]
        ways = (
            [_way(ledger.forward), _way(ledger.reverse), "yes" if ledger.closed else "NO"] if ledger else [NOTHING] * 3
        )
        budget = NOTHING if fidelity is None else "yes" if fidelity.within_budget else "NO"
        rows.append([levels(cell.levels), "valid" if cell.valid else "INVALID", *ways, *error, budget])
    columns = ["cell", "", "forward: in", "reverse: in", "closed", "late by: p50", "p99", "max", "in budget"]
    marked = frozenset(row for row, cell in enumerate(result.cells) if not cell.valid)
    notes = ["Each direction: packets in = delivered + lost + dropped by the queue + by the device + still queued."]
    notes += [
        f"{levels(cell.levels)}: {text}" for cell in result.cells for text in [cell.reason, *cell.warnings] if text
    ]
    return Table("Ledger and fidelity", columns, rows, 2, marked, notes)


def _way(way: Direction) -> str:
    parts = (way.delivered, way.dropped.loss, way.dropped.queue, way.dropped.device, way.queued)
    return f"{number_of(way.in_)} = {' + '.join(number_of(part) for part in parts)}"


def _replaced(text: str, words: dict[str, str]) -> str:
    for long, short in words.items():
        text = text.replace(long, short)
    return text


def _three(ratio: float | None) -> str:
    return NOTHING if ratio is None else f"{ratio:.3g}"


def _with_interval(statistics: list[str]) -> list[str]:
    return [f"{one} [95 %]" for one in statistics]


def _part(metric: Metric, statistic: str) -> Interval:
    part: Interval = getattr(metric, statistic)
    return part


def _middle(metric: Metric) -> float:
    known = (metric.median.value, metric.mean.value, metric.smallest)
    return next(value for value in known if value is not None)
