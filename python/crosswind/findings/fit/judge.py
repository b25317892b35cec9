"""Curves through a run's cells, fitted like a published report's, for comparable coefficients.

cells at one level of `by` and one of `over` -> means at each loss -> a, b, c -> averages over the levels of `over`
"""

from collections.abc import Sequence

from crosswind.analysis.axes import losses_of
from crosswind.analysis.cells import CellData
from crosswind.catalog.metrics import METRICS
from crosswind.decisions.statement import LevelText, Note, Stored
from crosswind.findings.fit.curves import (
    METHOD,
    FittedCurve,
    average_coefficients,
    fit_curve,
    refused_coefficient,
    shape_of,
)
from crosswind.findings.fit.result import Fit, FitRow, PublishedFit
from crosswind.findings.judged import Context, Judging
from crosswind.models import caia
from crosswind.stats.estimate import Interval
from crosswind.text.quantities import TIME


class AskedFitLevel(Stored):
    """Published coefficients for a level of a fit's `by`."""

    source: str
    level: LevelText
    a: float | None = None
    b: float | None = None
    c: float | None = None
    note: Note = None
    cells: frozenset[int] | None = None


class AskedFit(Stored):
    """A curve to fit over `x`, once for each level of `over`, a row for each level of `by`."""

    title: str
    model: str
    metric: str
    x: str
    by: str
    over: str
    note: Note = None
    published: tuple[AskedFitLevel, ...] = ()
    cells: frozenset[int]


def judge_fits(context: Context) -> list[Fit]:
    """The fits of a run; refused coefficients are null with a reason."""
    asked = map(AskedFit.model_validate, context.record.asked.get("fit", ()))
    return [_fit(fit, context.data, context.level) for fit in asked]


def _fit(asked: AskedFit, data: Sequence[CellData], level: float) -> Fit:
    fitted_to = [cell for cell in data if cell.cell in asked.cells]
    losses = losses_of(asked.x, fitted_to)
    rows = []
    for name, cells in _grouped(fitted_to, asked.by).items():
        if len({losses[cell.cell] for cell in cells}) < 2:
            continue  # One place has no curve.
        curves = [
            fit_curve(over, members, asked.metric, losses, level=level)
            for over, members in _grouped(cells, asked.over).items()
        ]
        published = [entry for entry in asked.published if _belongs(entry, name, cells)]
        rows.append(_row(name, curves, published, level))
    unit = METRICS[asked.metric].unit
    return Fit(
        **asked.shared_with(Fit),
        formula=caia.FORMULA,
        unit="s" if unit is TIME else unit.name,
        method=METHOD,
        published_method=caia.HOW_FITTED,
        rows=rows,
    )


def _grouped(cells: Sequence[CellData], key: str) -> dict[str | None, list[CellData]]:
    groups: dict[str | None, list[CellData]] = {}
    for cell in cells:
        groups.setdefault(cell.levels.get(key), []).append(cell)
    return groups


def _belongs(published: AskedFitLevel, level: str | None, cells: Sequence[CellData]) -> bool:
    """Whether the plan named one of the cells; for plans without names, whether the level reads alike."""
    if published.cells is not None:
        return any(cell.cell in published.cells for cell in cells)
    return published.level == level


def _row(name: str | None, curves: Sequence[FittedCurve], published: Sequence[AskedFitLevel], level: float) -> FitRow:
    coefficients = _averages(curves, level)
    best = [curve.best for curve in curves if curve.best is not None]
    r_squared = straight = None
    if len(best) == len(curves):
        unexplained = sum(float(fit.unexplained[0]) for fit in best)
        r_squared = 1 - unexplained / sum(float(fit.total[0]) for fit in best)
        each = [curve.curve.aicc_straight for curve in curves if curve.curve.aicc_straight is not None]
        straight = sum(each) if each else None
    return FitRow(
        level=name,
        **coefficients,
        r_squared=r_squared,
        aicc_straight=straight,
        shape=shape_of(straight),
        published=[_beside(entry, coefficients["b"], coefficients["c"]) for entry in published],
        series=[curve.curve for curve in curves],
    )


def _averages(curves: Sequence[FittedCurve], level: float) -> dict[str, Interval]:
    """The coefficients averaged over curves; refused for a failed curve, with its name."""
    n = sum(curve.n for curve in curves)
    failed = [curve.curve for curve in curves if curve.best is None]
    if failed:
        names = ", ".join(curve.level for curve in failed if curve.level) if len(failed) < len(curves) else ""
        reasons = "; ".join(dict.fromkeys(curve.c.reason for curve in failed if curve.c.reason))
        nothing = refused_coefficient(f"{names}: {reasons}" if names else reasons, n, level)
        return {"a": nothing, "b": nothing, "c": nothing}
    best = [curve.best for curve in curves if curve.best is not None]
    resampled = [curve.resampled for curve in curves if curve.resampled is not None]
    units = min((curve.units for curve in curves if curve.units), default=0)
    short = next((curve.shortage for curve in curves if curve.shortage), None)
    return average_coefficients(best, resampled, n, level, units=units, shortage=short)


def _beside(published: AskedFitLevel, b: Interval, c: Interval) -> PublishedFit:
    return PublishedFit(
        **published.shared_with(PublishedFit),
        b_ratio=b.over(published.b),
        c_ratio=c.over(published.c),
        b_inside=b.meets(published.b, published.b),
        c_inside=c.meets(published.c, published.c),
    )


JUDGING = Judging("fit", "fits", Fit, judge_fits)
