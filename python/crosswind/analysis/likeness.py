"""Warnings for cells with unlike repetitions: drifting over the run, or resembling their predecessor."""

from collections.abc import Mapping, Sequence

from crosswind.analysis.result import CellResult
from crosswind.catalog.metrics import METRICS, MetricPlace
from crosswind.catalog.warning import ResultWarning, WarningKind
from crosswind.decisions.families import ALPHA, LIKENESS
from crosswind.decisions.judge import adjust_exploratory
from crosswind.stats.exchangeability import Diagnostics


def with_likeness(cells: Sequence[CellResult]) -> list[CellResult]:
    """The cells, with warnings where a main metric's repetitions drift or resemble their neighbours.

    P-values are corrected over a run's cells (`LIKENESS`): a sound run has a warning once in twenty.
    """
    asked = [
        (cell.cell, METRICS[name].title, likeness)
        for cell in cells
        for name, likeness in _known(cell).items()
        if METRICS[name].place is MetricPlace.MAIN
    ]
    warnings: dict[int, list[ResultWarning]] = {}
    drifts = adjust_exploratory((likeness.drift_p for *_, likeness in asked), LIKENESS)
    lags = adjust_exploratory((likeness.lag1_p for *_, likeness in asked), LIKENESS)
    for (cell, title, likeness), drift_p, lag1_p in zip(asked, drifts, lags, strict=True):
        if drift_p is not None and drift_p < ALPHA:
            warning = WarningKind.DRIFT.warning(metric=title, correlation=likeness.drift)
            warnings.setdefault(cell, []).append(warning)
        elif lag1_p is not None and lag1_p < ALPHA:
            warning = WarningKind.LAG.warning(metric=title, correlation=likeness.lag1)
            warnings.setdefault(cell, []).append(warning)
    return [
        cell.model_copy(update={"warnings": [*cell.warnings, *warnings[cell.cell]]}) if cell.cell in warnings else cell
        for cell in cells
    ]


def _known(cell: CellResult) -> Mapping[str, Diagnostics]:
    """Diagnostics for each metric with enough repetitions to judge their order."""
    diagnostics = {name: estimates.diagnostics for name, estimates in cell.estimates.items()}
    return {name: made for name, made in diagnostics.items() if made is not None and made.drift_p is not None}
