"""Every cell of a large run, in a page beside its report: one at a time is drawn, when it is asked for."""

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import polars as pl

from crosswind.analysis.overview import Overview
from crosswind.analysis.result import Result
from crosswind.catalog.metrics import METRICS
from crosswind.cell.record import RunRecord
from crosswind.report import html
from crosswind.report.markup import escaped
from crosswind.report.text.exploration import main_metrics, statistic_of
from crosswind.report.text.format import factor_names, scale_of_metric
from crosswind.text.visible import visible


def render_cells(record: RunRecord, result: Result, overview: Overview, report: str) -> str:
    """The page as one HTML document. Args: report: name of the report's page beside it."""
    data = json.dumps(_data(result, overview), ensure_ascii=False, separators=(",", ":"))
    body = (
        f"<header><h1>{escaped(result.title)}</h1><p>Cells of the Crosswind study {escaped(record.name)}; "
        f'<a href="{escaped(quote(report))}">report</a></p></header>\n'
        '<form id="choice" class="choice"></form>\n<div id="cell"></div>\n<div id="list"></div>'
    )
    island = visible(data.replace("<", "\\u003c"), backslash=r"\\")
    return html.document(
        f"Cells: {result.title}", body, f'<script id="cells" type="application/json">{island}</script>', "cells"
    )


def _data(result: Result, overview: Overview) -> dict[str, Any]:
    """The script's data: texts once, and each cell's numbers."""
    factors = list(dict.fromkeys(key for cell in result.cells for key in cell.levels))
    short = factor_names(factors)
    levels = {key: dict.fromkeys(cell.levels.get(key, "") for cell in result.cells) for key in factors}
    places = {key: {level: at for at, level in enumerate(of_factor)} for key, of_factor in levels.items()}
    metrics = main_metrics(result)
    scales = {name: scale_of_metric(name, result.cells) for name in metrics}
    of_repetitions = _repetitions(overview.units, {name: scales[name][0] for name in metrics})
    cells = []
    for cell in result.cells:
        said = [f"invalid: {cell.reason}"] if cell.reason else []
        said += [f"warning: {warning.sentence}" for warning in cell.warnings]
        estimates = [
            None if (made := cell.estimates.get(name)) is None
            else [
                [None if (value := made.statistic(key).value) is None else _short(value / scales[name][0])
                 for key in ("median", "mean")],
                of_repetitions.get((name, cell.cell), []),
            ]
            for name in metrics
        ]  # fmt: skip
        level_places = [places[key][cell.levels.get(key, "")] for key in factors]
        cells.append([cell.cell, level_places, cell.n, cell.lost, cell.repetitions, int(cell.valid), said, estimates])
    return {
        "factors": [[short[key], list(levels[key])] for key in factors],
        "metrics": [
            [METRICS[name].title, scales[name][1], int(statistic_of(METRICS[name]) == "mean")] for name in metrics
        ],
        "cells": cells,
    }


def _repetitions(units: pl.DataFrame, divisors: Mapping[str, float]) -> dict[tuple[str, int], list[float]]:
    """Each repetition's mean, by metric and cell."""
    means: dict[tuple[str, int], list[float]] = {}
    rows = units.filter(pl.col("metric").is_in(list(divisors)), statistic="mean").sort("cell", "repetition")
    for name, cell, mean in rows.select("metric", "cell", "value").iter_rows():
        means.setdefault((name, cell), []).append(_short(mean / divisors[name]))
    return means


def _short(value: float) -> float:
    return float(f"{value:.5g}")
