"""Fitted coefficients beside the published ones, and the single curves behind the averages."""

from collections.abc import Iterator

from crosswind.analysis.result import Result
from crosswind.catalog.metrics import METRICS
from crosswind.findings.fit.result import Fit, FitCurve, FitRow, PublishedFit
from crosswind.report.page import Panels, Section
from crosswind.report.showing import Showing
from crosswind.report.tables.table import Shown, Table, grouped, names, numbers, words
from crosswind.report.text.format import NOTHING, count, factor_name, listed, three_digits
from crosswind.stats.estimate import Interval

_HOW_TO_READ = (
    "R²: share of the variance between the cells' means that the curves explain. Shape: preferred by AICc by 2 or "
    "more; “exponential” means better than straight lines; another shape may fit as well."
)


def _fit_table(fit: Fit, *, explained: bool) -> Table:
    by = factor_name(fit.by)
    rows: list[list[str]] = []
    narrow: list[list[str]] = []
    for row in fit.rows:
        published: list[PublishedFit | None] = [*row.published]
        for coefficient in published or [None]:
            b, c = _beside("b", row.b, coefficient), _beside("c", row.c, coefficient)
            rows.append([row.level or "all", *b, *c, _r_squared(row), row.shape or NOTHING])
            narrow += [[f"{row.level or 'all'} · b", *b], [f"{row.level or 'all'} · c", *c]]
    beside = ("published", "ratio")
    columns = [*names(by), *numbers(f"b, {fit.unit} [95 %]", *beside, "c [95 %]", *beside, "R²"), *words("shape")]
    notes = [*([fit.note] if fit.note else []), *_footnotes(fit, explained=explained)]
    small = Table(fit.title, [*names(by), *numbers("ours [95 %]", *beside)], narrow, footnotes=notes)
    return Table(fit.title, columns, rows, footnotes=notes, narrow=small)


def _footnotes(fit: Fit, *, explained: bool) -> list[str]:
    published = [published_row for row in fit.rows for published_row in row.published]
    sources = dict.fromkeys(published_row.source for published_row in published)
    refused = grouped(
        (coefficient.reason, f"{row.level or 'all'}: {key}")
        for row in fit.rows
        for key, coefficient in (("b", row.b), ("c", row.c))
        if coefficient.reason
    )
    return [
        f"{fit.formula}, p the loss as a fraction, to {METRICS[fit.metric].title.lower()}; b and c are averages over "
        f"{factor_name(fit.over)}.",
        *([f"Published: {', '.join(sources)}. {fit.published_method}"] if sources else []),
        *((fit.method, _HOW_TO_READ) if explained else ()),
        *(f"{listed(where)}: {why}" for why, where in refused.items()),
        *(published_row.note for published_row in published if published_row.note),
    ]


def _curves_table(fit: Fit) -> Table:
    curves = [(row, curve) for row in fit.rows for curve in row.series]
    rows = [
        [
            *_curve_names(row, curve),
            count(curve.c.n),
            *(_coefficient(part) for part in (curve.a, curve.b, curve.c)),
            _r_squared(curve),
            curve.shape or NOTHING,
        ]
        for row, curve in curves
    ]
    heads = numbers("n", f"a, {fit.unit} [95 %]", f"b, {fit.unit} [95 %]", "c [95 %]", "R²")
    refused = grouped(
        (coefficient.reason, " · ".join(_curve_names(row, curve)))
        for row, curve in curves
        for coefficient in (curve.b, curve.c)
        if coefficient.reason
    )
    notes = [f"{listed(where)}: {why}" for why, where in refused.items()]
    columns = [*names(factor_name(fit.by), factor_name(fit.over)), *heads, *words("shape")]
    return Table("Individual curves", columns, rows, footnotes=notes, shown=Shown.FOLDED)


def _curve_names(row: FitRow, curve: FitCurve) -> list[str]:
    return [row.level or "all", curve.level or "all"]


def _beside(key: str, ours: Interval, theirs: PublishedFit | None) -> list[str]:
    """A coefficient, the published one as it was printed, and their ratio."""
    if theirs is None:
        return [_coefficient(ours), NOTHING, NOTHING]
    published, ratio = (theirs.b, theirs.b_ratio) if key == "b" else (theirs.c, theirs.c_ratio)
    return [_coefficient(ours), NOTHING if published is None else f"{published:g}", three_digits(ratio)]


def _coefficient(estimate: Interval) -> str:
    """Three digits in each number: a coefficient's limits lie far to one side."""
    if estimate.value is None:
        return NOTHING
    if estimate.low is None or estimate.high is None:
        return three_digits(estimate.value)
    return f"{three_digits(estimate.value)} [{three_digits(estimate.low)}, {three_digits(estimate.high)}]"


def _r_squared(curve: FitCurve) -> str:
    return NOTHING if curve.r_squared is None else f"{curve.r_squared:.3f}"


def _sections(result: Result, has_charts: bool) -> Iterator[Section]:
    """For each fit its coefficients, as charts and as a table, and its single curves, folded away.

    The first one has the remarks on method for all.
    """
    for number, fit in enumerate(result.of(Fit)):
        tables = [_fit_table(fit, explained=number == 0), _curves_table(fit)]
        yield Section(fit.title, charts=_charts(fit) if has_charts else [], tables=tables)


def _charts(fit: Fit) -> list[Panels]:
    # Altair takes a while to import.
    from crosswind.findings.fit.chart import fit_charts

    return [fit_charts(fit)]


SHOWING = Showing(_sections)
