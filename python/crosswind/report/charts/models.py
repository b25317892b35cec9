"""Throughput against loss with the models' curves beside what was measured."""

import copy
from typing import Any

import altair as alt
import numpy as np

from crosswind.analysis import CellData
from crosswind.analysis.result import Cell, Result
from crosswind.models import MODELS, predict
from crosswind.report.charts.charts import DASHES, LOG_SPREAD, PALETTE, PANELS, Chart, Panels, spec_of
from crosswind.report.text.format import factor_name, scale_of

_CURVE_POINTS = 40
_GREY = "#888888"


def goodput_by_loss(result: Result, data: list[CellData], models: list[str]) -> Panels:
    """A panel for each path that differs in something else than loss and congestion control.

    Measured means stand at their loss with intervals; curves are the models', capped by the link, at the panel's delay.
    """
    by_cell = {one.cell: one for one in data}
    cells = [cell for cell in result.cells if "goodput" in cell.estimates]
    losses = {cell.cell: _loss(by_cell[cell.cell]) for cell in cells}
    names = [name for name in models if MODELS[name.replace("_", "-")].metric == "goodput"]
    if not names or len(set(losses.values())) < 2 or not any(losses.values()):
        return Panels([], 0)
    panels: dict[str, list[Cell]] = {}
    for cell in cells:
        panels.setdefault(_panel(cell), []).append(cell)
    lossy = [(panel, members) for panel, members in panels.items() if any(losses[cell.cell] for cell in members)]
    drawn = [Chart(panel, _draw(members, by_cell, losses, names)) for panel, members in lossy[:PANELS]]
    return Panels(drawn, len(lossy))


def _draw(cells: list[Cell], data: dict[int, CellData], losses: dict[int, float], models: list[str]) -> dict[str, Any]:
    divisor, unit = scale_of([max(centre(cell) for cell in cells)], "bit/s")
    points: list[dict[str, Any]] = []
    for cell in cells:
        mean, value = cell.estimates["goodput"].mean, centre(cell)
        # An interval may reach below 0, where a logarithmic axis does not.
        low, high = max(mean.low or value, value / 20), mean.high or value
        numbers = {"value": value / divisor, "low": low / divisor, "high": high / divisor}
        points.append({"loss": 100 * losses[cell.cell], "who": _who(cell), **numbers})
    curves = _curves(cells, data, losses, models, divisor)
    values = [row["value"] for row in points + curves if row["value"] > 0]
    log = max(values) / min(values) > LOG_SPREAD
    title = f"goodput, {unit}{', log scale' if log else ''}"
    scale = alt.Scale(type="log" if log else "linear", nice=True)
    y = alt.Y("value:Q", title=title, scale=scale, axis=alt.Axis(format="~g", tickCount=5))
    x = alt.X("loss:Q", title="loss, %", scale=alt.Scale(nice=False, padding=12))
    who = list(dict.fromkeys(str(row["who"]) for row in points))
    titles = list(dict.fromkeys(str(row["model"]) for row in curves))
    who_scale = alt.Scale(domain=who, range=PALETTE[: len(who)])
    colour = alt.Color("who:N", scale=who_scale, legend=alt.Legend(title="measured", orient="top"))
    dash_scale = alt.Scale(domain=titles, range=(DASHES[1:] + DASHES[:1])[: len(titles)])
    dash_legend = alt.Legend(title="model", orient="bottom", columns=2, symbolStrokeColor=_GREY, symbolType="stroke")
    dash = alt.StrokeDash("model:N", scale=dash_scale, legend=dash_legend)
    measured = alt.Chart(alt.InlineData(values=points)).encode(x=x, color=colour)
    tips = ["who:N", "loss:Q", "value:Q", "low:Q", "high:Q"]
    drawn = alt.Chart(alt.InlineData(values=curves)).mark_line(color=_GREY, strokeWidth=1.6)
    layers = [
        drawn.encode(x=x, y=y, strokeDash=dash, tooltip=["model:N", "loss:Q", "value:Q"]),
        measured.mark_rule(strokeWidth=2).encode(y=alt.Y("low:Q"), y2="high:Q"),
        measured.mark_line(strokeWidth=1.2, opacity=0.8).encode(y=y),
        measured.mark_point(size=60, filled=True, opacity=1).encode(y=y, tooltip=tips),
    ]
    return spec_of(alt.layer(*(layers if curves else layers[1:])), 300)


def centre(cell: Cell) -> float:
    """Where a cell's goodput is drawn: its mean, or the middle of too few samples."""
    found = cell.estimates["goodput"]
    return found.mean.value if found.mean.value is not None else (found.smallest + found.largest) / 2


def _curves(
    cells: list[Cell], data: dict[int, CellData], losses: dict[int, float], models: list[str], divisor: float
) -> list[dict[str, Any]]:
    """Each model at the panel's delay, from a tenth of the smallest loss to the largest."""
    lossy = [loss for loss in losses.values() if loss > 0]
    parameters = copy.deepcopy(data[cells[0].cell].parameters)
    parameters.setdefault("host", {})["congestion_control"] = "reno"  # what the curves describe, whatever was measured
    rtts = [one.inputs["rtt_s"] * 1e9 for cell in cells for one in cell.models if "rtt_s" in one.inputs]
    rows = []
    for name in models:
        for loss in np.geomspace(min(lossy) / 10, max(lossy), _CURVE_POINTS):
            for way in ("forward", "reverse"):
                parameters.setdefault("path", {}).setdefault(way, {})["loss"] = float(loss)
            made = predict(name, parameters, measured_rtt_ns=min(rtts, default=None))
            if made is not None and made.value:
                rows.append({"model": made.title, "loss": 100 * float(loss), "value": made.value / divisor})
    return rows


def _loss(one: CellData) -> float:
    path = one.parameters.get("path") or {}
    way = "reverse" if one.workload.get("direction") == "download" else "forward"
    return float((path.get(way) or {}).get("loss") or 0.0)


def _who(cell: Cell) -> str:
    return cell.levels.get("host.congestion_control", "measured")


def _panel(cell: Cell) -> str:
    told = "host.congestion_control"
    kept = {key: value for key, value in cell.levels.items() if not key.endswith(".loss") and key != told}
    return " · ".join(f"{factor_name(key)} {value}" for key, value in kept.items())
