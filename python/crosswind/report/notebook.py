"""Charts of the report as Altair's objects, for notebooks: drawn there, changed, saved as a picture."""

from collections.abc import Callable, Sequence
from typing import Literal

import altair as alt

from crosswind.analysis.cells import CellData
from crosswind.analysis.result import Result
from crosswind.catalog.metrics import METRICS
from crosswind.errors import UsageError
from crosswind.report.charts.distributions import distribution
from crosswind.report.charts.forest import comparison_forests
from crosswind.report.charts.intervals import intervals
from crosswind.report.charts.shifts import quantile_shifts
from crosswind.report.page import Chart, Panels
from crosswind.report.text.exploration import main_metrics

ChartKind = Literal["intervals", "distribution", "comparisons", "shift"]
_WIDTH = 640

_Make = Callable[[str, Result, Sequence[CellData]], Panels]
_KINDS: dict[ChartKind, _Make] = {
    "intervals": intervals,
    "distribution": distribution,
    "comparisons": lambda metric, result, _: comparison_forests(_only(result, metric)),
    "shift": lambda metric, result, data: quantile_shifts(_only(result, metric), data),
}
"""Each kind of chart's maker, for one metric."""


def chart_of(metric: str | None, kind: ChartKind, result: Result, data: Sequence[CellData]) -> alt.VConcatChart:
    """A metric's charts, one below the other.

    Args: metric: None for the first compared one. Raises: UsageError without one.
    """
    if kind not in _KINDS:
        raise UsageError(f"{kind!r} is not a kind of chart", hint=f"one of {', '.join(_KINDS)}")
    known = [name for name in METRICS if any(name in cell.estimates for cell in result.cells)]
    metric = metric or next(iter(main_metrics(result)), "")
    if metric not in known:
        raise UsageError(
            f"this run has no metric {metric!r}" if metric else "this run has no metric to draw",
            hint=f"it has {', '.join(known) or 'none'}",
        )
    panels = _KINDS[kind](metric, result, data)
    if not panels.charts:
        hint = "distributions need 30 samples of a cell, comparisons two levels, shifts several messages a repetition"
        raise UsageError(f"this run has nothing to draw of {metric} as {kind}", hint=hint)
    return _below_each_other(panels.charts)


def _only(result: Result, metric: str) -> Result:
    """A result with one metric's comparisons."""
    return result.model_copy(
        update={"comparisons": [comparison for comparison in result.comparisons if comparison.metric == metric]}
    )


def _below_each_other(charts: Sequence[Chart]) -> alt.VConcatChart:
    """Charts with their captions as titles, in their own width: a notebook's cell gives none."""
    # Altair keeps the data of all views in one place, at the top.
    datasets: dict[str, object] = {}
    views = []
    for chart in charts:
        view = {**chart.specification, "width": _WIDTH, "title": chart.caption}
        datasets |= view.pop("datasets", {})
        views.append(view)
    made: alt.VConcatChart = alt.VConcatChart.from_dict({"vconcat": views, "datasets": datasets})
    return made
