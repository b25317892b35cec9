"""What charts of effects and of wide ranges show: labels, the reach of axes, one unit, published numbers."""

import math
from dataclasses import replace

import pytest

from crosswind.analysis.cells import collect
from crosswind.catalog.metrics import METRICS
from crosswind.findings.figure.chart import figure_chart
from crosswind.findings.figure.judge import Figure
from crosswind.findings.pipeline import analyse
from crosswind.report.charts.distributions import distribution
from crosswind.report.charts.forest import ForestRow, cut_note, ratio_forest
from crosswind.report.charts.intervals import intervals
from crosswind.report.charts.rows import row_labels
from crosswind.report.charts.shifts import quantile_shifts
from crosswind.report.tables.metrics import metric_table
from records import MS, echoes, path, record, runs

FACTOR = "workload.transport"


def cells(*rtts_ns: list[list[int]]):
    """A cell for each list of repetitions, over transports a, b, and so on."""
    made = []
    for index, repetitions in enumerate(rtts_ns):
        level = "abcdefgh"[index]
        made += runs(index, [echoes(rtts) for rtts in repetitions], {FACTOR: level})
    return made


def data_of(specification: dict) -> list[dict]:
    return [row for table in specification["datasets"].values() for row in table]


def test_a_long_pair_of_levels_is_broken_between_its_words() -> None:
    text = "transport socketio-webtransport / socketio-websocket · 15%"
    assert row_labels([text]) == {text: "transport\nsocketio-webtransport /\nsocketio-websocket · 15%"}


def row(value: float, low: float, high: float) -> ForestRow:
    return ForestRow("b / a", value, low, high, "", 10, "larger", "mean")


def test_an_axis_of_ratios_reaches_twice_as_far_as_the_ratios() -> None:
    shown = [row(4, 0, math.inf), row(1, 0.9, 1.1)]
    drawn = [each for each in data_of(ratio_forest(shown, METRICS["rtt"])) if "verdict" in each]
    assert {(each["low"], each["value"], each["high"]) for each in drawn} == {(0.25, 4, 16), (0.9, 1, 1.1)}
    assert cut_note(shown) == "Intervals beyond the axis end at its edge."
    assert cut_note(shown[1:]) == ""


def test_a_ratio_of_almost_nothing_does_not_stretch_the_axis_without_end() -> None:
    shown = [row(1e-7, 1e-7, 1e-7)]
    (drawn,) = (each for each in data_of(ratio_forest(shown, METRICS["rtt"])) if "verdict" in each)
    assert (drawn["value"], cut_note(shown) != "") == (1e-5, True)


def test_verdicts_have_colours_of_their_own() -> None:
    verdicts = ["larger", "smaller", "not enough repetitions", "no difference shown"]
    shown = [replace(row(2, 1, 3), comparison=verdict, verdict=verdict) for verdict in verdicts]
    layers = ratio_forest(shown, METRICS["rtt"])["layer"]
    (scale,) = {repr(layer["encoding"]["color"]["scale"]["range"]) for layer in layers if "color" in layer["encoding"]}
    assert len(set(scale.split(","))) == len(verdicts)


def test_an_interval_far_beyond_the_shifts_is_cut() -> None:
    steady = [[10 * MS + 1000 * (at + rep) for at in range(40)] for rep in range(4)]
    jumping = [[rtt * MS + 1000 * at for at in range(40)] for rtt in (20, 20, 20, 2000)]
    made = record(*cells(steady, jumping))
    (chart,) = quantile_shifts(analyse(made), collect(made)).charts
    shifts = [each for each in data_of(chart.specification) if each.get("low") is not None]
    assert shifts
    most = max(each["shift"] for each in shifts)
    assert all(-most <= each["low"] and each["high"] <= 2 * most for each in shifts)
    assert chart.notes[0].endswith("Intervals beyond the axis end at its edge.")


def test_a_time_of_a_few_nanoseconds_lies_at_the_edge_of_a_logarithmic_axis() -> None:
    made = record(*cells(*([[rtt] * 40] * 3 for rtt in (8, 8, 20 * MS))))
    result = analyse(made)
    (chart,) = intervals("rtt", result, collect(made)).charts
    assert min(each["value"] for each in data_of(chart.specification)) == pytest.approx(1000)
    assert chart.notes == ("Values below 1 µs are drawn at the edge.",)
    scale = distribution("rtt", result, collect(made)).charts[0].specification["encoding"]["x"]["scale"]
    assert (scale["type"], scale["domain"][0]) == ("log", pytest.approx(1000))


def test_the_charts_and_the_table_of_a_metric_have_one_unit() -> None:
    """Most medians are some microseconds, the means are a few milliseconds."""
    made = record(*cells(*([[2_000 + at for at in range(99)] + [900 * MS]] * 3 for _ in range(3))))
    result = analyse(made)
    title = metric_table("rtt", result).title
    (dots,) = intervals("rtt", result, collect(made)).charts
    (curves,) = distribution("rtt", result, collect(made)).charts
    unit = title.removeprefix("Round-trip time, ")
    assert f"Round-trip time, {unit}, log scale" == curves.specification["encoding"]["x"]["title"]
    # Most of what the dots show are means, for which a linear axis is right.
    assert {layer["encoding"]["x"]["title"] for layer in dots.specification["layer"]} == {f"Round-trip time, {unit}"}


def test_a_linear_axis_ends_before_the_last_of_the_slowest() -> None:
    made = record(*cells([[20 * MS + at for at in range(1000)] + [390 * MS]] * 3))
    (chart,) = distribution("rtt", analyse(made), collect(made)).charts
    assert chart.specification["encoding"]["x"]["scale"]["domain"][1] == pytest.approx(20, rel=1e-3)
    assert chart.notes == ("At most 1 % of a cell's samples lie beyond the axis.",)


def test_a_published_number_beside_several_series_is_one_grey_mark() -> None:
    published = [
        {"source": "S", "metric": "rtt", "levels": {"path.loss": "1%"}, "unit": "ms", "mean": 11, "cells": [0, 1]}
    ]
    asked = {"title": "A", "metric": "rtt", "x": "path.loss", "series": FACTOR, "models": [], "note": "lower case",
             "scale": "auto", "cells": [0, 1, 2, 3]}  # fmt: skip
    levels = [{FACTOR: transport, "path.loss": loss} for loss in ("1%", "2%") for transport in "ab"]
    rtts = [10 * MS + at for at in range(10)]
    made = []
    for index, own in enumerate(levels):
        parameters = {
            "path": path(loss=int(own["path.loss"][0]) / 100),
            "workload": {"kind": "echo", "transport": "tcp"},
        }
        made += runs(index, [echoes(rtts)] * 3, own, parameters=parameters)
    result = analyse(record(*made, figures=[asked], published=published))
    (figure,) = result.of(Figure)
    chart = figure_chart(figure, result)
    hollow = [layer for layer in chart.specification["layer"] if layer["mark"].get("shape") == "diamond"]
    assert [("color" in layer["encoding"], "color" in layer["mark"]) for layer in hollow] == [
        (True, False), (False, True)
    ]  # fmt: skip
    marks = [each for each in data_of(chart.specification) if each.get("kind", "").startswith("published")]
    assert [(each["kind"], each["series"]) for each in marks] == [("published for several series", "a, b")]
    assert chart.notes[-1] == "Lower case."
