"""What charts draw: colours, labels, axes, lines and what a reader sees beside a mark."""

import json
import subprocess

import pytest

from conftest import ROOT, requires
from crosswind.analysis.axes import axis_of
from crosswind.analysis.cells import collect
from crosswind.catalog.metrics import are_far_apart
from crosswind.cell.record import RunRecord
from crosswind.findings.figure.chart import figure_chart
from crosswind.findings.figure.judge import Figure
from crosswind.findings.pipeline import analyse
from crosswind.report.charts.colours import Colours
from crosswind.report.charts.intervals import intervals
from crosswind.report.charts.over_time import ChangePeriod, change_periods
from crosswind.report.charts.panels import separating
from crosswind.report.charts.rows import LINE, row_labels, rows_height
from crosswind.report.charts.style import LOG_SPREAD, PALETTE
from crosswind.report.page import Chart
from crosswind.report.text.format import levels
from crosswind.text.quantities import RATE, TIME
from records import MS, echoes, parted, path, record, runs

TRANSPORTS = ("tcp", "quic", "websocket")


def by_transport(**changes):
    """Twenty times as long over each further transport, at two losses; five repetitions a cell."""
    cells = [(transport, loss) for transport in TRANSPORTS for loss in ("0%", "2%")]
    made = []
    for index, (transport, loss) in enumerate(cells):
        rtts = [20 ** TRANSPORTS.index(transport) * MS + 1000 * (at * 37 % 100) for at in range(100)]
        levels = {"workload.transport": transport, "path.loss": loss}
        workload = {"kind": "echo", "transport": transport}
        parameters = {"path": path(loss=float(loss[0]) / 100), "workload": workload}
        made += runs(index, [echoes(part) for part in parted(rtts, 5)], levels, parameters=parameters)
    return record(*made, **changes)


def figure(x: str, series: str | None, **changes) -> dict:
    return {"title": "A", "metric": "rtt", "x": x, "series": series, "models": [], "note": "", "scale": "auto",
            "cells": list(range(6))} | changes  # fmt: skip


def chart_of(made: RunRecord) -> Chart:
    """The chart of the only figure of a run."""
    result = analyse(made)
    (one,) = result.of(Figure)
    return figure_chart(one, result)


def drawn(asked: dict):
    """The only figure of a run, as its specification."""
    return chart_of(by_transport(figures=[asked])).specification


def scale_of(specification: dict, channel: str) -> dict:
    return next(layer["encoding"][channel]["scale"] for layer in specification["layer"] if channel in layer["encoding"])


def test_a_level_has_one_colour_in_all_charts() -> None:
    of_levels = dict(zip(TRANSPORTS, PALETTE, strict=False))
    made = by_transport(figures=[figure("path.loss", "workload.transport", cells=[2, 3, 4, 5])])
    result = analyse(made)
    one = chart_of(made)
    scale = scale_of(one.specification, "color")
    assert dict(zip(scale["domain"], scale["range"], strict=True)) == {name: of_levels[name] for name in TRANSPORTS[1:]}
    panels = intervals("rtt", result, collect(made), most=2)
    for chart in panels.charts:
        own = scale_of(chart.specification, "color")
        assert dict(zip(own["domain"], own["range"], strict=True)) == {name: of_levels[name] for name in own["domain"]}


def test_names_that_are_no_levels_are_told_apart() -> None:
    colours = Colours([{"workload.transport": name} for name in TRANSPORTS])
    assert colours.range_of("workload.transport", ["websocket"]) == [PALETTE[2]]
    assert colours.range_of("workload.transport", ["websocket · kept", "websocket · new"]) == PALETTE[:2]
    assert len(set(PALETTE)) == 16


@pytest.mark.parametrize(
    ("key", "is_ordered"),
    [("path.queue", True), ("path.forward.queue", True), ("workload.streams", True), ("path.rate", True),
     ("workload.transport", False), ("host.congestion_control", False), ("part", False), ("path.count", False),
     ("workload.connection", False)],
)  # fmt: skip
def test_what_is_ordered_follows_from_the_catalogue(key: str, is_ordered: bool) -> None:
    assert axis_of(key, []).is_ordered is is_ordered


@pytest.mark.parametrize(
    ("times", "is_log"),
    [
        ([0.00002, 0.0003, 3, 6, 30, 60, 90], False),  # paths without delay, and those whose round trips are the point
        ([0.02, 0.03, 0.1, 1, 10], True),  # files of a kB to 10 MB
        ([20, 21, 22, 23, 900], True),  # a tail
        ([5, 10, 60], False),
        ([0, 1, 2, 1000], False),
    ],
)
def test_of_times_a_few_that_are_nothing_make_no_axis_logarithmic(times: list[float], is_log: bool) -> None:
    assert are_far_apart(times, LOG_SPREAD, TIME) is is_log
    # Of other numbers each counts.
    assert are_far_apart(times, LOG_SPREAD, RATE) is (times[0] > 0 and times[-1] > 20 * times[0])


def test_a_label_keeps_what_distinguishes_it() -> None:
    long = [f"a-program-with-a-very-long-name-{end}" for end in ("one", "two")]
    texts = [f"{name} · socketio-webtransport · 10ms · 5%" for name in long]
    labels = row_labels(texts)
    assert list(labels) == texts
    assert len(set(labels.values())) == 2
    assert [label.split("\n")[1:] for label in labels.values()] == [["socketio-webtransport · 10ms", "5%"]] * 2
    assert all(len(line) <= LINE for label in labels.values() for line in label.split("\n"))
    assert [label.split("\n")[0][-4:] for label in labels.values()] == ["-one", "-two"]


def test_a_level_that_says_nothing_by_itself_has_its_factors_name() -> None:
    of_cell = {"path.loss": "5%", "host.window_scaling": "false", "workload.streams": "8", "workload.transport": "tcp"}
    assert levels(of_cell) == "5% · window scaling off · streams 8 · tcp"


def test_labels_that_would_be_equal_keep_all_their_characters() -> None:
    texts = [f"the-same-beginning-{middle}-and-the-same-end" for middle in ("this", "that")]
    assert row_labels(texts) == {text: text for text in texts}


def test_a_chart_has_room_for_the_lines_of_its_labels() -> None:
    assert rows_height(["a", "b"], frame_px=50) == 50 + 2 * 22
    assert rows_height(["a\nb", "c"], frame_px=50) == 50 + 2 * 36
    assert rows_height([], frame_px=50) == 50


_NODE = """
global.document = {
  getElementById: () => ({ textContent: "{}" }), body: { clientWidth: 420 },
  createElement: () => ({ getContext: () => ({ measureText: (text) => ({ width: 7 * text.length }) }) }),
};
global.window = { matchMedia: () => ({}) };
global.getComputedStyle = () => ({ fontFamily: "sans-serif" });
const [source, spec] = JSON.parse(require("fs").readFileSync(0, "utf8"));
console.log(eval(`${source}; height(spec, 380)`));
"""


@pytest.mark.parametrize(
    ("names", "lines"), [(["tcp", "udp"], 1), (["socketio-websocket", "socketio-webtransport"], 2)]
)
@pytest.mark.parametrize(("axis", "free"), [({"labelExpr": "datum.label"}, 1), ({}, 2)])
def test_a_legend_takes_no_room_from_the_names_of_rows(names: list[str], lines: int, axis: dict, free: int) -> None:
    """At 420 px a legend of two lines pushed two rows onto each other."""
    source = (ROOT / "python/crosswind/report/draw.js").read_text(encoding="utf-8").partition("// Numbers as")[0]
    source += "const isNarrow = (width) => width < 560 && document.body.clientWidth < 600;"
    encoding = {"y": {"field": "row", "axis": axis}, "color": {"field": "row", "scale": {"domain": names}}}
    spec = {"height": 126, "encoding": encoding, "datasets": {"d": [{"row": name} for name in names]}}
    given = json.dumps([source, spec])
    node = [requires("node"), "-e", _NODE]
    done = subprocess.run(node, input=given, capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) == 126 + 17 * max(0, lines - free)


_RESIZED = """
const place = { clientWidth: 0, closest: () => null, replaceChildren() {} }, drawn = [];
const [source, spec, widths] = JSON.parse(require("fs").readFileSync(0, "utf8"));
global.document = {
  getElementById: (id) => (id === "specs" ? { textContent: JSON.stringify({ bars: spec }) } : place),
  body: { get clientWidth() { return place.clientWidth + 40; } }, documentElement: null,
  createElement: () => ({ getContext: () => ({ measureText: (text) => ({ width: 7 * text.length }) }) }),
};
global.window = { matchMedia: () => ({}) };
global.getComputedStyle = () => ({ fontFamily: "sans-serif", getPropertyValue: () => "#000000" });
global.vegaEmbed = async (_, { config, height }) => (drawn.push([config.legend.columns, height]), { finalize() {} });
eval(`${source}; for (const width of widths) { place.clientWidth = width; draw(); }`);
console.log(JSON.stringify(drawn));
"""


def test_a_chart_is_laid_out_anew_where_a_window_of_another_width_asks_for_it() -> None:
    """At 360 px a legend of four columns was cut off, which 1280 px have room for."""
    source = (ROOT / "python/crosswind/report/draw.js").read_text(encoding="utf-8")
    before, _, rest = source.partition("// A chart as a file")
    source = before + "// A chart for" + rest.partition("// A chart for")[2].partition("draw();\nfor (const fold")[0]
    names = ["Handshakes", "Propagation", "Congestion window", "Loss recovery"]
    encoding = {"y": {"field": "row", "axis": {}}, "color": {"field": "row", "scale": {"domain": names}}}
    spec = {"height": 126, "encoding": encoding, "datasets": {"d": [{"row": name} for name in names]}}

    def drawn(*widths: int) -> list[list[int]]:
        given = json.dumps([source, spec, widths])
        node = [requires("node"), "-e", _RESIZED]
        return json.loads(
            subprocess.run(node, input=given, capture_output=True, text=True, timeout=60, check=True).stdout
        )

    assert drawn(1280) == [[4, 126]]
    assert drawn(320) == [[1, 126 + 17 * 2]]
    # Only where anything is different.
    assert drawn(1280, 1200, 320, 1280) == drawn(1280) + drawn(320) + drawn(1280)


def test_cells_whose_bars_would_vanish_beside_others_have_panels_of_their_own() -> None:
    result = analyse(by_transport())
    sizes = {cell.cell: cell.estimates["rtt"].mean.value or 0.0 for cell in result.cells}
    assert separating(result.cells, sizes, most=40) == ("workload.transport",)
    assert separating(result.cells[:4], sizes, most=40) == ()


def test_changes_are_drawn_until_the_chart_ends() -> None:
    outage = {"name": "outage", "start_ns": 2, "for_ns": 1}
    assert change_periods([outage], 2) == []
    assert change_periods([{"start_ns": 2}], 5) == [ChangePeriod("1", 2, 5, certain=True)]
    periods = change_periods([outage | {"every_ns": 4}], 10.5)
    assert [(each.begin, each.end) for each in periods] == [(2, 3), (6, 7), (10, 10.5)]
