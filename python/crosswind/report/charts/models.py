"""Throughput against loss: the models' curves beside the measurements."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import altair as alt
import numpy as np

from crosswind.analysis.cells import CellData
from crosswind.analysis.result import CellResult, Result
from crosswind.catalog.metrics import METRICS
from crosswind.models import model_named, predict_situation, situation
from crosswind.report.charts.colours import Colours
from crosswind.report.charts.panels import MAX_PANELS, NO_PANELS
from crosswind.report.charts.style import (
    GREY,
    Along,
    Specification,
    dash_by_model,
    inline,
    is_log,
    specification,
)
from crosswind.report.page import Chart, Panels
from crosswind.report.text.format import factor_and_level, interval, observed
from crosswind.text.quantities import SHARE

_METRIC = METRICS["goodput"]
_CURVE_POINTS = 40
_COLOUR_FACTOR = "host.congestion_control"
_LOWEST_SHARE = 1 / 20  # share of a value down to which a logarithmic axis shows an interval reaching 0 or below


@dataclass(frozen=True)
class _Point:
    """A cell: its loss, %, and its goodput with limits."""

    loss: float
    measured: str
    value: float
    low: float
    high: float
    estimate: str
    n: int


@dataclass(frozen=True)
class _Predicted:
    loss: float
    model: str
    value: float


def goodput_by_loss(result: Result, data: Sequence[CellData], models: Sequence[str]) -> Panels:
    """A panel for each path different in more than loss and congestion control.

    Measured means stand at their loss with intervals; curves are the models', capped by the link, at the panel's delay.
    """
    by_cell = {cell.cell: cell for cell in data}
    cells = [cell for cell in result.cells if _METRIC.name in cell.estimates]
    losses = {cell.cell: by_cell[cell.cell].settings.data_direction.loss for cell in cells}
    names = [name for name in models if model_named(name).metric == _METRIC.name]
    if not names or len(set(losses.values())) < 2 or not any(losses.values()):
        return NO_PANELS
    panels: dict[str, list[CellResult]] = {}
    for cell in cells:
        panels.setdefault(_caption(cell), []).append(cell)
    lossy = [(caption, members) for caption, members in panels.items() if any(losses[cell.cell] for cell in members)]
    colours = Colours(cell.levels for cell in result.cells)
    charts = []
    for caption, members in lossy[:MAX_PANELS]:
        divisor, unit = _METRIC.unit.scale_for([max(_centre(cell) for cell in members)])
        curves = _curves(members, by_cell[members[0].cell], losses, names, divisor)
        points = [_point(cell, losses[cell.cell], divisor) for cell in members]
        charts.append(Chart(caption, _drawing(points, curves, unit, colours)))
    return Panels(charts, len(lossy))


def _point(cell: CellResult, loss: float, divisor: float) -> _Point:
    estimates, value = cell.estimates[_METRIC.name], _centre(cell)
    mean = estimates.mean
    low, high = max(mean.low or value, value * _LOWEST_SHARE), mean.high or value
    name = cell.levels.get(_COLOUR_FACTOR, "measured")
    text = observed((estimates.smallest, estimates.largest), divisor) if mean.value is None else interval(mean, divisor)
    return _Point(100 * loss, name, value / divisor, low / divisor, high / divisor, text, mean.n)


def _centre(cell: CellResult) -> float:
    """Where a cell's goodput is drawn: its mean, or the middle of too few samples."""
    estimates = cell.estimates[_METRIC.name]
    return estimates.mean.value if estimates.mean.value is not None else (estimates.smallest + estimates.largest) / 2


def _curves(
    cells: Sequence[CellResult], first: CellData, losses: Mapping[int, float], models: Sequence[str], divisor: float
) -> list[_Predicted]:
    """Each model at the delay of the panel's first cell, from a tenth of the smallest loss to the largest."""
    lossy = [loss for loss in losses.values() if loss > 0]
    inputs = [prediction.inputs for cell in cells for prediction in cell.models]
    rtts = [known["rtt_s"] * 1e9 for known in inputs if "rtt_s" in known]
    # The curves describe Reno, whatever was measured.
    here = replace(situation(first.parameters, first.effect, min(rtts, default=None)), congestion_control="reno")
    predicted = []
    for name in models:
        for loss in map(float, np.geomspace(min(lossy) / 10, max(lossy), _CURVE_POINTS)):
            prediction = predict_situation(name, replace(here, loss=loss, loss_back=loss))
            if prediction is not None and prediction.value:
                predicted.append(_Predicted(100 * loss, prediction.title, prediction.value / divisor))
    return predicted


def _drawing(points: Sequence[_Point], curves: Sequence[_Predicted], unit: str, colours: Colours) -> Specification:
    drawn = [*(point.value for point in points), *(predicted.value for predicted in curves)]
    values = [value for value in drawn if value > 0]
    log = is_log(values, _METRIC.unit, _METRIC.axis)
    log_x = is_log([point.loss for point in points], SHARE)
    x = Along.of("loss, %", log=log_x, nice=False, padding=12).x("loss")
    y = Along.of(f"{_METRIC.title.lower()}, {unit}", log=log, nice=True).y("value")
    colour = colours.by("measured", _COLOUR_FACTOR, [point.measured for point in points])
    measured = alt.Chart(inline(points)).encode(x=x, color=colour)
    layers = [
        measured.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2="high:Q"),
        measured.mark_line(strokeWidth=1.2, opacity=0.8).encode(y=y),
        measured.mark_point(size=60, filled=True, opacity=1).encode(
            y=y, tooltip=["measured:N", "loss:Q", "estimate:N", "n:Q"]
        ),
    ]
    if curves:
        lines = alt.Chart(inline(curves)).mark_line(color=GREY, strokeWidth=1.6)
        dash = dash_by_model(predicted.model for predicted in curves)
        layers.insert(0, lines.encode(x=x, y=y, strokeDash=dash, tooltip=["model:N", "loss:Q", "value:Q"]))
    return specification(layers, 300)


def _caption(cell: CellResult) -> str:
    kept = {key: level for key, level in cell.levels.items() if not key.endswith(".loss") and key != _COLOUR_FACTOR}
    return " · ".join(factor_and_level(key, level) for key, level in kept.items())
