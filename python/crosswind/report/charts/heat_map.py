"""A map of all cells in a run: two factors across and down, the metric as a colour, further factors as panels."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from crosswind.analysis.result import CellResult
from crosswind.catalog.metrics import METRICS, Metric
from crosswind.report.charts.panels import MAX_PANELS, NO_PANELS
from crosswind.report.charts.style import is_log, scale_type
from crosswind.report.page import Chart, Panels, Specification
from crosswind.report.text.exploration import statistic_of
from crosswind.report.text.format import factor_and_level, factor_name, scale_of_metric
from crosswind.text.quantities import SHARE

_ROW = 18
_HEIGHTS = (60, 560)
_IN_A_ROW = 50
"""Cells in a row, if they differ in one factor alone."""


def heat_map(name: str, cells: Sequence[CellResult], beside: str) -> Panels:
    """A map of a metric over all its cells. Args: beside: the page linked from each cell; empty: none."""
    metric = METRICS[name]
    statistic = statistic_of(metric)
    divisor, unit = scale_of_metric(name, cells)

    def value(cell: CellResult) -> float | None:
        made = cell.estimates[name].statistic(statistic).value if name in cell.estimates else None
        return None if made is None else made / divisor

    return _maps(cells, value, f"{metric.title}, {unit}", beside, metric)


def map_of_losses(cells: Sequence[CellResult], beside: str) -> Panels:
    """Each cell's share of unsuccessful exchanges."""
    return _maps(cells, lambda cell: 100 * cell.lost / cell.n if cell.n else None, "Exchanges lost, %", beside, None)


@dataclass(frozen=True)
class _Layout:
    """The factors across, down, and over panels. Down: None with one varying factor."""

    across: str
    down: str | None
    panels: Sequence[str]
    levels: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, cells: Sequence[CellResult]) -> "_Layout | None":
        levels: dict[str, dict[str, None]] = {}
        for cell in cells:
            for key, level in cell.levels.items():
                levels.setdefault(key, {})[level] = None
        varied = sorted((key for key in levels if len(levels[key]) > 1), key=lambda key: -len(levels[key]))
        if not varied:
            return None
        across, *others = varied
        down = others[0] if others else None
        panels = [key for key in levels if key in others[1:]]
        return cls(across, down, panels, {key: list(levels[key]) for key in varied})

    def place(self, cell: CellResult) -> dict[str, str]:
        """Where a cell is drawn."""
        level = cell.levels.get(self.across, "")
        if self.down is not None:
            return {"x": level, "y": cell.levels.get(self.down, "")}
        row, column = divmod(self.levels[self.across].index(level), _IN_A_ROW)
        return {"x": str(column), "y": str(row)}

    def orders(self) -> tuple[Sequence[str], Sequence[str]]:
        """The places across and down, in order."""
        if self.down is not None:
            return self.levels[self.across], self.levels[self.down]
        count = len(self.levels[self.across])
        return [str(at) for at in range(min(count, _IN_A_ROW))], [str(at) for at in range(-(-count // _IN_A_ROW))]


def _maps(
    cells: Sequence[CellResult],
    value: Callable[[CellResult], float | None],
    title: str,
    beside: str,
    metric: Metric | None,
) -> Panels:
    layout = _Layout.of(cells)
    known = [made for cell in cells if (made := value(cell)) is not None]
    if layout is None or not known:
        return NO_PANELS
    log = metric is not None and metric.unit is not SHARE and is_log(known, metric.unit, metric.axis)
    scale = {"type": scale_type(log=log), "scheme": "viridis", "domain": [min(known), max(known)], "nice": False}
    panels: dict[tuple[str | None, ...], list[dict[str, Any]]] = {}
    for cell in cells:
        key = tuple(cell.levels.get(factor) for factor in layout.panels)
        made = value(cell)
        row: dict[str, Any] = {**layout.place(cell), "cell": cell.cell}
        row |= {} if made is None else {"value": float(f"{made:.4g}")}
        row |= {} if cell.valid else {"invalid": 1}
        row |= {} if layout.down is not None else {"level": cell.levels.get(layout.across, "")}
        panels.setdefault(key, []).append(row)
    charts = [
        Chart(_caption(layout.panels, key), _specification(layout, rows, title, scale, beside))
        for key, rows in list(panels.items())[:MAX_PANELS]
    ]
    return Panels(charts, len(panels))


def _caption(factors: Sequence[str], levels: Sequence[str | None]) -> str:
    named = [factor_and_level(key, level) for key, level in zip(factors, levels, strict=True) if level is not None]
    return ", ".join(named)


def _specification(
    layout: _Layout, rows: Sequence[Mapping[str, Any]], title: str, scale: Mapping[str, Any], beside: str
) -> Specification:
    across, down = layout.orders()
    name = factor_name(layout.across)
    encoding: dict[str, Any]
    if layout.down is not None:
        places = {"x": (name, across), "y": (factor_name(layout.down), down)}
        encoding = {
            channel: {
                "field": channel, "type": "ordinal", "sort": list(order), "title": factor,
                "axis": {"labelOverlap": "greedy", "ticks": False, "domain": False},
            }
            for channel, (factor, order) in places.items()
        }  # fmt: skip
        said = [{"field": channel, "title": factor} for channel, (factor, _) in places.items()]
    else:
        encoding = {
            channel: {"field": channel, "type": "ordinal", "sort": list(order), "axis": None}
            for channel, order in (("x", across), ("y", down))
        }
        said = [{"field": "level", "title": name}]
    encoding["tooltip"] = [*said, {"field": "value", "title": title}, {"field": "cell", "title": "cell"}]
    calculated = []
    if beside:
        # An address in this page's folder: quoted, a name cannot end an expression's text, and a cell is a number.
        calculated = [{"calculate": f"'{quote(beside)}#' + datum.cell", "as": "href"}]
        encoding["href"] = {"field": "href"}
    colour = {"field": "value", "type": "quantitative", "title": title, "scale": dict(scale)}
    colour["legend"] = {"orient": "top", "gradientLength": 200}
    least, most = _HEIGHTS
    return {
        "width": "container",
        "height": max(least, min(most, _ROW * len(down))),
        "data": {"name": "cells"},
        **({"transform": calculated} if calculated else {}),
        "encoding": encoding,
        "layer": [
            {"mark": {"type": "rect"}, "encoding": {"color": colour}},
            {
                "transform": [{"filter": "datum.invalid"}],
                "mark": {"type": "point", "shape": "cross", "size": 40, "color": "#D55E00", "filled": True},
            },
        ],
        "datasets": {"cells": list(rows)},
        "usermeta": {"embedOptions": {"renderer": "canvas"}},
    }
