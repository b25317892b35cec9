"""The tables of a report as plain rows of text, shared by terminal and HTML."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest

from crosswind.analysis.metrics import METRICS
from crosswind.analysis.result import (
    Cell,
    Direction,
    Fit,
    FitCurve,
    FitPublished,
    Interval,
    LevelComparison,
    Metric,
    Result,
)
from crosswind.report.text.format import (
    MINUS,
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
from crosswind.report.text.headline import number_of


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


PHASES = ("handshake_transport", "handshake_security", "handshake_upgrade")
"""Metrics that add up to a connection's set-up."""

STATISTICS = ("median", "mean", "p95", "p99")
COMPARISONS = 60
"""Most comparisons of a table; beyond, the largest of each family."""


def factor_columns(cells: list[Cell]) -> list[str]:
    """Keys of the factors, in the order of the first cell that has them."""
    return list(dict.fromkeys(key for cell in cells for key in cell.levels))


def metric_tables(result: Result) -> list[tuple[str, Table]]:
    """(metric name, its table) for every metric that any cell has, in the registry's order, unless it shares one."""
    present = {name for cell in result.cells for name in cell.estimates}
    own = [name for name, metric in METRICS.items() if name in present and not metric.table]
    return [(name, metric_table(name, result)) for name in own]


def is_connecting(result: Result) -> bool:
    """Whether connections are all that a run measured, so that their set-up is what it is about."""
    kept = {name for cell in result.cells for name in cell.estimates if not METRICS[name].table}
    return "connect" in kept and kept <= {"connect", *PHASES}


def metric_table(name: str, result: Result) -> Table:
    """n, median, mean, p95 and p99 of one metric, each with its interval, in one unit, for each cell that has it.

    A statistic that no cell supports has no column; a footnote says why. The narrow form leaves p95 and p99 out.
    """
    cells = [cell for cell in result.cells if name in cell.estimates]
    factors = factor_columns(cells)
    short = factor_names(factors)
    metrics = [cell.estimates[name] for cell in cells]
    divisor, unit = scale_of([_middle(metric) for metric in metrics], metrics[0].unit)
    kept = ("mean",) if METRICS[name].share else STATISTICS
    shown = [one for one in kept if any(_part(metric, one).value is not None for metric in metrics)]
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
    notes = footnotes(cells, metrics, kept)
    small = Table(title, [" · ".join(names), "n", *_with_interval(central), *extra], narrow, 1, marked, notes)
    return Table(title, [*names, "n", "lost", *_with_interval(shown), *extra], rows, len(names), marked, notes, small)


def footnotes(cells: list[Cell], metrics: list[Metric], statistics: Sequence[str] = STATISTICS) -> list[str]:
    """Methods in use, each once, and for every absent number its reason, each once with the cells it concerns."""
    used: dict[str, list[str]] = {}
    absent: dict[str, list[str]] = {}
    for cell, metric in zip(cells, metrics, strict=True):
        for statistic in statistics:
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
    for one in largest(tested, COMPARISONS):
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
    if len(tested) > COMPARISONS:
        notes.insert(
            0, f"Shown: {len(rows)} of {number_of(len(tested))}, the largest ratios of each factor and metric, "
        )
        notes[0] += "clear ones first. The JSON result has all."
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


def largest(compared: list[LevelComparison], most: int) -> list[LevelComparison]:
    """All comparisons, or `most` of them: from each family (factor and metric) alike, those of the largest ratio first.

    Within a family, a difference that was shown goes before one that was not.
    """
    if len(compared) <= most:
        return compared
    families: dict[tuple[str, str], list[LevelComparison]] = {}
    for one in compared:
        families.setdefault((one.metric, one.factor), []).append(one)
    for family in families.values():
        family.sort(key=lambda one: (one.verdict == "no difference shown", -abs(math.log(one.ratio.value or 1.0))))
    turns = (one for turn in zip_longest(*families.values()) for one in turn if one is not None)
    chosen = {id(one) for one in islice(turns, most)}
    return [one for family in families.values() for one in family if id(one) in chosen]


def fit_tables(result: Result) -> list[tuple[Table, Table]]:
    """For each fit its coefficients beside the published ones, and the single curves that were averaged."""
    return [(_fit_table(fit, explained=number == 0), _curves_table(fit)) for number, fit in enumerate(result.fits)]


def _fit_table(fit: Fit, *, explained: bool) -> Table:
    """Coefficients of one fit; `explained`: with the remarks on method, which the first of a page has."""
    by = factor_name(fit.by)
    rows: list[list[str]] = []
    narrow: list[list[str]] = []
    reasons: dict[str, list[str]] = {}
    for row in fit.rows:
        name = row.level or "all"
        beside: list[FitPublished | None] = [*row.published]
        for theirs in beside or [None]:
            parts = []
            for key, ours in (("b", row.b), ("c", row.c)):
                published = NOTHING if theirs is None else _printed(getattr(theirs, key))
                ratio = NOTHING if theirs is None else _three(getattr(theirs, f"{key}_ratio"))
                parts.append([_coefficient(ours), published, ratio])
                narrow.append([f"{name} · {key}", *parts[-1]])
            rows.append([name, *parts[0], *parts[1], _r_squared(row), row.shape or NOTHING])
        for key, ours in (("b", row.b), ("c", row.c)):
            if ours.reason:
                reasons.setdefault(ours.reason, []).append(f"{name}: {key}")
    columns = [by, f"b, {fit.unit} [95 %]", "published", "ratio", "c [95 %]", "published", "ratio", "R²", "shape"]
    sources = dict.fromkeys(theirs.source for row in fit.rows for theirs in row.published)
    notes = [
        f"{fit.formula}, p the loss as a fraction, to {METRICS[fit.metric].title.lower()}; b and c are averages over "
        f"{factor_name(fit.over)}.",
        *([f"Published: {', '.join(sources)}. {fit.published_method}"] if sources else []),
        *((fit.method, _HOW_TO_READ) if explained else ()),
        *(f"{_joined(where)}: {why}" for why, where in reasons.items()),
        *(theirs.note for row in fit.rows for theirs in row.published if theirs.note),
    ]
    small = Table(fit.title, [by, "ours [95 %]", "published", "ratio"], narrow, 1)
    return Table(fit.title, columns, rows, 1, footnotes=notes, narrow=small)


def _curves_table(fit: Fit) -> Table:
    rows = []
    reasons: dict[str, list[str]] = {}
    for row in fit.rows:
        for one in row.series:
            names = [row.level or "all", one.level or "all"]
            ours = [_coefficient(part) for part in (one.a, one.b, one.c)]
            rows.append([*names, number_of(one.c.n), *ours, _r_squared(one), one.shape or NOTHING])
            for part in dict.fromkeys(filter(None, (one.b.reason, one.c.reason))):
                reasons.setdefault(part, []).append(" · ".join(names))
    heads = [factor_name(fit.by), factor_name(fit.over)]
    columns = [*heads, "n", f"a, {fit.unit} [95 %]", f"b, {fit.unit} [95 %]", "c [95 %]", "R²", "shape"]
    notes = [f"{_joined(where)}: {why}" for why, where in reasons.items()]
    return Table("The single curves", columns, rows, 2, footnotes=notes)


_HOW_TO_READ = (
    "R²: share of the differences between the cells' means that the curves explain. Shape: what AICc prefers by 2 or "
    "more; “exponential” says better than straight lines, not that nothing else would do as well."
)


def _coefficient(one: Interval) -> str:
    """Three digits of each number: the limits of a coefficient lie far to one side."""
    if one.value is None or one.low is None or one.high is None:
        return NOTHING
    value, low, high = (f"{part:.3g}".replace("-", MINUS) for part in (one.value, one.low, one.high))
    return f"{value} [{low}, {high}]"


def _r_squared(one: FitCurve) -> str:
    return NOTHING if one.r_squared is None else f"{one.r_squared:.3f}"


def _joined(names: list[str]) -> str:
    return ", ".join(names) if len(names) <= 6 else f"{', '.join(names[:6])} and {len(names) - 6} more"


def _printed(value: float | None) -> str:
    """A published coefficient as it was printed."""
    return NOTHING if value is None else f"{value:g}"


def trust_table(result: Result) -> Table:
    """Ledger and fidelity of each cell; attempts, the hosts' probes and kernel drops where there are any."""
    kept = [cell.fidelity for cell in result.cells if cell.fidelity]
    probed = any(one.probe_starvation is not None for one in kept)
    counted = any(one.kernel_drops is not None for one in kept)
    again = any(cell.attempts > cell.repetitions for cell in result.cells)
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
        extra = [number_of(cell.attempts)] if again else []
        if probed:
            extra.append(percent(fidelity.probe_starvation if fidelity else None))
        if counted:
            dropped = fidelity.kernel_drops if fidelity else None
            extra.append(NOTHING if dropped is None else number_of(dropped))
        rows.append([levels(cell.levels), "valid" if cell.valid else "INVALID", *ways, *error, budget, *extra])
    columns = ["cell", "", "forward: in", "reverse: in", "closed", "late by: p50", "p99", "max", "in budget"]
    columns += ["attempts"] * again + ["hosts waited"] * probed + ["kernel drops"] * counted
    marked = frozenset(row for row, cell in enumerate(result.cells) if not cell.valid)
    notes = ["Each direction: packets in = delivered + lost + dropped by the queue + by the device + still queued."]
    if probed:
        notes.append("Hosts waited: largest share of time in which a probe on a host's processor waited for it.")
    said: dict[str, list[str]] = {}
    for cell in result.cells:
        for text in filter(None, (cell.reason, *cell.warnings)):
            said.setdefault(text, []).append(levels(cell.levels))
    notes += [f"{_joined(where)}: {text}" for text, where in said.items()]
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
