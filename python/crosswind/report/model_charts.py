"""Throughput against loss with the models' curves beside what was measured."""

import copy
from typing import Any

import altair as alt
import numpy as np

from crosswind.analysis import CellData
from crosswind.models import MODELS, predict
from crosswind.report.charts import DASHES, PALETTE, Chart, spec_of
from crosswind.report.format import factor_name, scale_of
from crosswind.result import Cell, Result

_CURVE_POINTS = 40


def goodput_by_loss(result: Result, data: list[CellData], models: list[str]) -> list[Chart]:
    """A panel for each path that differs in something else than loss and congestion control.

    Measured means stand at their loss with intervals; curves are the models', capped by the link, at the panel's delay.
    """
    by_cell = {one.cell: one for one in data}
    cells = [cell for cell in result.cells if "goodput" in cell.estimates and cell.estimates["goodput"].mean.value]
    losses = {cell.cell: _loss(by_cell[cell.cell]) for cell in cells}
    if len(set(losses.values())) < 2 or not any(losses.values()):
        return []
    panels: dict[str, list[Cell]] = {}
    for cell in cells:
        panels.setdefault(_panel(cell), []).append(cell)
    names = [name for name in models if MODELS[name.replace("_", "-")].metric == "goodput"]
    return [
        Chart(panel, _draw(members, by_cell, losses, names))
        for panel, members in panels.items()
        if any(losses[cell.cell] for cell in members)
    ]


def _draw(cells: list[Cell], data: dict[int, CellData], losses: dict[int, float], models: list[str]) -> dict[str, Any]:
    top = max(cell.estimates["goodput"].mean.value or 0.0 for cell in cells)
    divisor, unit = scale_of([top], "bit/s")
    points = []
    for cell in cells:
        mean = cell.estimates["goodput"].mean
        low, high = (part if part is not None else mean.value for part in (mean.low, mean.high))
        points.append({"loss": 100 * losses[cell.cell], "value": (mean.value or 0.0) / divisor, "who": _who(cell),
                       "low": max(low or 0.0, top / 1e6) / divisor, "high": (high or 0.0) / divisor})  # fmt: skip
    curves = _curves(cells, data, losses, models, divisor)
    values = [row["value"] for row in points + curves if row["value"] > 0]
    log = max(values) / min(values) > 20
    y = alt.Y("value:Q", title=f"goodput, {unit}{', log scale' if log else ''}",
              scale=alt.Scale(type="log" if log else "linear", nice=True), axis=alt.Axis(format="~g", tickCount=5))  # fmt: skip
    x = alt.X("loss:Q", title="loss, %", scale=alt.Scale(nice=False, padding=12))
    who, titles = list(dict.fromkeys(row["who"] for row in points)), list(dict.fromkeys(row["model"] for row in curves))
    colour = alt.Color("who:N", scale=alt.Scale(domain=who, range=PALETTE[: len(who)]),
                       legend=alt.Legend(title="measured", orient="top"))  # fmt: skip
    dash = alt.StrokeDash("model:N", scale=alt.Scale(domain=titles, range=(DASHES[1:] + DASHES[:1])[: len(titles)]),
                          legend=alt.Legend(title="model", orient="top", symbolStrokeColor="#888888"))  # fmt: skip
    measured = alt.Chart(alt.Data(values=points))
    layers = [
        alt.Chart(alt.Data(values=curves)).mark_line(color="#888888", strokeWidth=1.6).encode(
            x=x, y=y, strokeDash=dash, tooltip=["model:N", "loss:Q", "value:Q"]),
        measured.mark_rule(strokeWidth=2).encode(x=x, y=alt.Y("low:Q"), y2="high:Q", color=colour),
        measured.mark_line(strokeWidth=1, opacity=0.5).encode(x=x, y=y, color=colour),
        measured.mark_point(size=60, filled=True, opacity=1).encode(
            x=x, y=y, color=colour, tooltip=["who:N", "loss:Q", "value:Q", "low:Q", "high:Q"]),
    ]  # fmt: skip
    return spec_of(alt.layer(*(layers if curves else layers[1:])), 300)


def _curves(
    cells: list[Cell], data: dict[int, CellData], losses: dict[int, float], models: list[str], divisor: float
) -> list[dict[str, Any]]:
    """Each model at the panel's delay, from the smallest loss above 0 to the largest."""
    lossy = [loss for loss in losses.values() if loss > 0]
    parameters = copy.deepcopy(data[cells[0].cell].parameters)
    parameters.setdefault("host", {})["congestion_control"] = "reno"  # what the curves describe, whatever was measured
    rtts = [one.inputs["rtt_s"] * 1e9 for cell in cells for one in cell.models if "rtt_s" in one.inputs]
    rows = []
    for name in models:
        for loss in np.geomspace(min(lossy) / 2, max(lossy), _CURVE_POINTS):
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
    kept = {
        key: value
        for key, value in cell.levels.items()
        if not key.endswith(".loss") and key != "host.congestion_control"
    }
    return " · ".join(f"{factor_name(key)} {value}" for key, value in kept.items())
