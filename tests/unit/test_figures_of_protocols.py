"""Charts of connections by phase, of the median page, and of processor time: their rows, worked out by hand."""

import json
import re
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from crosswind.analysis.cells import collect
from crosswind.cell.record import OBJECT_SCHEMA, CellRun, RunRecord
from crosswind.findings.pipeline import analyse
from crosswind.report.charts.profiles import profile_charts
from crosswind.report.charts.stacked import Stratum, cell_phases, phase_charts
from crosswind.report.charts.waterfall import median_page, spans_of, waterfalls
from crosswind.report.page import Panels
from crosswind.report.run_page import render
from crosswind.report.tables.profiles import profile_tables
from records import MS, finished, record, run, table
from screens import render as render_text


def rows_of(panels: Panels) -> list[list[dict[str, Any]]]:
    """The data of each chart."""
    return [
        [row for values in chart.specification["datasets"].values() for row in values]
        if "datasets" in chart.specification
        else chart.specification["data"]["values"]
        for chart in panels.charts
    ]


def connections(kind: str, phases: dict[str, int], *, count: int = 30, rtt: int = 20) -> pl.DataFrame:
    return table(
        count,
        connection=list(range(count)),
        intended_ns=list(range(count)),
        sent_ns=[0] * count,
        received_ns=[rtt * MS] * count,
        connect_ns=[sum(phases.values()) * MS] * count,
        outcome=["ok"] * count,
        **{f"{name}_ns": [ms * MS] * count for name, ms in phases.items()},
    )


def opening(*, connection: str = "new") -> RunRecord:
    phases = {
        "tcp": {"transport": 20},
        "wss": {"transport": 20, "security": 22, "upgrade": 21},
        "quic": {"security": 20},
    }
    return record(*(
        run(
            cell,
            connections("echo", of),
            {"workload.transport": name},
            parameters={"workload": {"kind": "echo", "transport": name, "connection": connection}},
        )
        for cell, (name, of) in enumerate(phases.items())
    ))  # fmt: skip


def test_phases_and_the_exchange_are_stacked() -> None:
    made = opening()
    data = collect(made)
    assert cell_phases(data[1]) == [
        Stratum("TCP handshake", "handshake_transport", 20 * MS, 30),
        Stratum("TLS or QUIC handshake", "handshake_security", 22 * MS, 30),
        Stratum("Upgrade", "handshake_upgrade", 21 * MS, 30),
        Stratum("Exchange", "rtt", 20 * MS, 30),
    ]
    panels = phase_charts(analyse(made), data)
    assert (len(panels.charts), panels.total) == (1, 1)
    (rows,) = rows_of(panels)
    assert [(row["cell"], row["part"], row["mean"]) for row in rows] == [
        ("tcp", "TCP handshake", 20),
        ("tcp", "Exchange", 20),
        ("wss", "TCP handshake", 20),
        ("wss", "TLS or QUIC handshake", 22),
        ("wss", "Upgrade", 21),
        ("wss", "Exchange", 20),
        ("quic", "TLS or QUIC handshake", 20),
        ("quic", "Exchange", 20),
    ]
    assert panels.charts[0].notes[0].startswith("Means of n = 30 connections a cell")


def test_kept_connections_and_runs_without_phases_have_no_such_chart() -> None:
    kept = opening(connection="kept")
    assert phase_charts(analyse(kept), collect(kept)).total == 0
    parameters = {"workload": {"kind": "connect", "transport": "tcp"}}
    old = record(run(0, table(3, connect_ns=[MS] * 3, outcome=["ok"] * 3), parameters=parameters))
    assert phase_charts(analyse(old), collect(old)).total == 0


PAGE = {"workload": {"kind": "page", "transport": "http2"}}


def pages(repetition: int, *loads_ms: int | None) -> CellRun:
    """A repetition that loads one page a second, each in so many milliseconds (None: a timeout).

    The HTML of a page takes the first half of its time, and an image the second half.
    """
    samples = table(
        len(loads_ms),
        connection=[0] * len(loads_ms),
        intended_ns=[at * 1000 * MS for at in range(len(loads_ms))],
        sent_ns=[at * 1000 * MS for at in range(len(loads_ms))],
        received_ns=[None if ms is None else (at * 1000 + ms) * MS for at, ms in enumerate(loads_ms)],
        outcome=["timeout" if ms is None else "ok" for ms in loads_ms],
    )
    rows = []
    for at, ms in enumerate(loads_ms):
        start, half = at * 1000 * MS, (ms or 100) * MS // 2
        common = {"page": at, "connection": 0, "bytes": 1000, "outcome": "ok"}
        rows += [
            common | {"object": "image 1", "queued_ns": start + half, "sent_ns": start + half,
                      "first_ns": start + half + 10 * MS, "received_ns": None if ms is None else start + 2 * half},
            common | {"object": "html", "queued_ns": start, "sent_ns": start + 4 * MS, "first_ns": start + 6 * MS,
                      "received_ns": start + half},
        ]  # fmt: skip
    made = run(0, samples, {"workload.transport": "http2"}, parameters=PAGE, repetition=repetition, end=finished())
    object.__setattr__(made, "objects", pl.DataFrame(rows, schema=OBJECT_SCHEMA))
    return made


def test_the_median_page_is_one_that_was_loaded() -> None:
    runs = [pages(0, 400, None, 200), pages(1, 300, 900)]
    page = median_page(runs)
    # 200 300 400 900: the smaller of the two in the middle
    assert (page.repetition, page.page, page.load_ns, page.pages) == (1, 0, 300 * MS, 4)
    assert median_page([pages(0, None)]) is None
    assert median_page([run(0, connections("echo", {"transport": 20}))]) is None


def test_a_waterfall_counts_from_when_the_page_was_asked_for() -> None:
    runs = [pages(0, 900, 100, 200)]
    page = median_page(runs)
    assert (page.page, page.start_ns) == (2, 2000 * MS)
    spans = [(span.object, span.span, span.begin / MS, span.end / MS) for span in spans_of(page)]
    assert spans == [
        ("html", "waiting", 0, 4),
        ("html", "until its first byte", 4, 6),
        ("html", "arriving", 6, 100),
        ("image 1", "waiting", 100, 100),
        ("image 1", "until its first byte", 100, 110),
        ("image 1", "arriving", 110, 200),
    ]
    (chart,) = waterfalls(collect(record(*runs))).charts
    assert chart.caption == "http2"
    assert chart.notes == ("Page 3 of repetition 1: 200 ms, the median of n = 3 pages.",)


@pytest.mark.parametrize(("others_ms", "ends"), [((100, 400), {0.4}), ((1, 400), {0.001, 0.4})])
def test_waterfalls_beside_each_other_have_one_scale(others_ms: tuple[int, int], ends: set[float]) -> None:
    """Unless nothing could be seen of the shortest."""
    runs = [replace(pages(0, load_ms), cell=cell) for cell, load_ms in enumerate(others_ms)]
    encodings = [chart.specification["encoding"]["x"] for chart in waterfalls(collect(record(*runs))).charts]
    scales = {"ms": 1e-3, "s": 1.0}
    assert {each["scale"]["domain"][1] * scales[each["title"].rpartition(", ")[2]] for each in encodings} == ends


def test_what_never_arrived_has_no_bar() -> None:
    page = median_page([pages(0, 200)])
    without = page.objects.with_columns(received_ns=pl.lit(None, dtype=pl.Int64))
    object.__setattr__(page, "objects", without)
    assert {span.span for span in spans_of(page)} == {"waiting", "until its first byte"}


def profiled() -> RunRecord:
    client = {"samples": 200, "cpu_ns": 30 * MS, "parts": {"system calls": 50, "masking": 150, "other": 0}}
    server = {"samples": 100, "cpu_ns": 6 * MS, "parts": {"system calls": 100, "masking": 0, "other": 0}}
    end = finished() | {"profile": {"interval_ns": MS, "client": client, "server": server}}
    samples = connections("echo", {"transport": 1}, count=10)
    parameters = {"workload": {"kind": "echo", "transport": "websocket"}}
    levels = {"workload.transport": "websocket"}
    return record(*(run(0, samples, levels, parameters=parameters, repetition=at, end=end) for at in range(2)))


def test_processor_time_is_divided_as_its_samples_are() -> None:
    made = profiled()
    (rows,) = rows_of(profile_charts(analyse(made), collect(made)))
    # 60 ms of the client and 12 ms of the server in 20 messages
    assert [(row["bar"], row["part"], row["time"], row["share"], row["n"]) for row in rows] == [
        ("websocket · client", "system calls", pytest.approx(0.75), "25 %", 400),
        ("websocket · client", "masking", pytest.approx(2.25), "75 %", 400),
        ("websocket · server", "system calls", pytest.approx(0.6), "100 %", 200),
    ]


def test_samples_of_one_process_have_shares_without_intervals() -> None:
    (shares,) = profile_tables(analyse(profiled()))
    assert shares.headings == ["cell", "host", "n", "system calls", "masking", "other"]
    assert shares.rows[0][:4] == ["websocket", "client", "400", "25 %"]
    assert shares.rows[1][4:] == ["0 %", "0 %"]
    assert "Where processor time goes" in render_text(analyse(profiled()), everything=True)


@pytest.mark.parametrize(
    ("made", "heading"),
    [
        (opening(), "Setting connections up, by phase"),
        (record(pages(0, 400, 300, 200)), "The page of median load time"),
        (profiled(), "Where processor time goes"),
    ],
)
def test_each_has_its_section_on_the_page(made: RunRecord, heading: str) -> None:
    text = render(made, analyse(made))
    assert f"<h2>{heading}</h2>" in text
    specs = json.loads(re.search(r'<script id="specs"[^>]*>(.*?)</script>', text, re.S).group(1))
    assert set(specs) == set(re.findall(r'class="chart" id="([^"]+)"', text))
    plain = record(run(0, connections("echo", {}), parameters={"workload": {"kind": "echo", "transport": "udp"}}))
    assert f"<h2>{heading}</h2>" not in render(plain, analyse(plain))
