"""A run as notebooks read it: tables and charts of a run made by hand, whose numbers are known."""

from collections.abc import Container
from pathlib import Path

import altair as alt
import polars as pl
import pytest

from crosswind.api.runs import Run
from crosswind.cell.record import RunRecord
from crosswind.errors import UsageError
from crosswind.findings.pipeline import analyse
from crosswind.findings.question.chart import answer_chart
from crosswind.findings.question.result import Answer
from records import MS, echoes, parted, record, run, runs, timed

TCP = {"workload": {"kind": "echo", "transport": "tcp"}}
STATEMENT = {
    "asks": "It doubles", "source": "A paper", "metric": "rtt", "yes": "within", "scale": "ratio",
    "factor": "path.loss", "low": 1.9, "high": 2.1, "cells": [0, 1],
}  # fmt: skip


class OfRecord(Run):
    """A run whose record is not on a disk."""

    def __init__(self, made: RunRecord) -> None:
        self._made = made

    def record(self, cells: Container[int] | None = None) -> RunRecord:
        return self._made


def two_cells(each: int = 60) -> OfRecord:
    """Round trips of 10 ms and some, and of twice as much and up to 50 µs more, in six repetitions."""
    times = [10 * MS + at * 1000 for at in range(6 * each)]
    cells = [
        runs(
            index,
            [
                echoes([time + index * (time + at * 10_000) for time in part])
                for at, part in enumerate(parted(times, 6))
            ],
            {"path.loss": f"{index}%"},
        )
        for index in (0, 1)
    ]
    return OfRecord(record(*(one for cell in cells for one in cell), questions=[STATEMENT]))


def test_samples_have_their_levels_and_their_metrics() -> None:
    made = OfRecord(
        record(
            run(0, echoes([10 * MS, None], connect_ns=3), {"path.loss": "5%"}),
            run(1, timed([7 * MS]), {"path.loss": "0%"}, parameters={"workload": {"kind": "transfer"}}),
        )
    )
    samples = made.samples()
    assert samples.columns[:5] == ["path.loss", "cell", "repetition", "block", "clock"]
    assert {"connection", "outcome", "sent_ns"} <= set(samples.columns)
    shown = samples.select("path.loss", "cell", "outcome", "rtt", "transfer_time").rows()
    # What failed has no round trip, and a transfer has none at all.
    assert shown == [
        ("5%", 0, "ok", 10e6, None), ("5%", 0, "timeout", None, None), ("0%", 1, "ok", None, 7e6),
    ]  # fmt: skip
    assert samples["goodput"].to_list() == [None, None, 8e9 * 1_000_000 / (8 * MS)]
    # What takes more than one sample to know is no column of samples.
    assert not {"delayed_share", "completion", "cpu_client"} & set(samples.columns)


def test_estimates_comparisons_and_statements_are_tables() -> None:
    made = two_cells()
    medians = made.estimates().filter(metric="rtt", statistic="median").select("path.loss", "n").rows()
    assert medians == [("0%", 360), ("1%", 360)]
    (row,) = made.compare("mean").filter(metric="rtt").rows(named=True)
    assert (row["factor"], row["reference"], row["other"], row["at"]) == ("path.loss", "0%", "1%", "")
    assert row["ratio"] == pytest.approx(2, rel=0.01)
    assert row["difference_low"] < row["difference"] < row["difference_high"]
    assert (row["verdict"], row["unit"]) == ("larger", "ns")
    (statement,) = made.statements().rows(named=True)
    assert (statement["verdict"], statement["says"]) == ("yes", "It doubles")
    assert statement["sentence"].startswith("Holds: It doubles. ")


def test_a_run_without_anything_has_empty_tables() -> None:
    nothing = OfRecord(record(run(0, None)))
    assert all(
        frame.is_empty() for frame in (nothing.samples(), nothing.compare(), nothing.statements(), nothing.answers())
    )
    assert nothing.compare().schema["ratio"] == pl.Float64
    with pytest.raises(UsageError, match="this run has no metric 'rtt'") as caught:
        nothing.plot("rtt")
    assert caught.value.hint == "it has none"
    with pytest.raises(UsageError, match="this run has no metric to draw"):
        nothing.plot()


@pytest.mark.parametrize(
    ("kind", "field", "expected"),
    [
        ("intervals", "cell", {"0%", "1%"}),
        ("distribution", "colour", {"0%", "1%"}),
        ("comparisons", "comparison", {"loss 1% / 0%"}),
        ("shift", "quantile", {10, 20, 30, 40, 50, 60, 70, 80, 90}),
    ],
)
def test_charts_are_those_of_the_report(kind: str, field: str, expected: set[object], tmp_path: Path) -> None:
    chart = two_cells().plot("rtt", kind)
    assert two_cells().plot(kind=kind).to_dict() == chart.to_dict()
    assert isinstance(chart, alt.VConcatChart)
    rows = [row for rows in chart.to_dict()["datasets"].values() for row in rows]
    assert {row[field] for row in rows if field in row} == expected
    chart.save(tmp_path / "chart.svg")
    assert "<svg" in (tmp_path / "chart.svg").read_text(encoding="utf-8")


def test_a_shift_of_everything_by_as_much_is_flat() -> None:
    times = [10 * MS + at * 1000 for at in range(360)]
    cells = [
        runs(at, [echoes([time + at * 5 * MS for time in part]) for part in parted(times, 6)], {"path.loss": f"{at}%"})
        for at in (0, 1)
    ]
    made = OfRecord(record(*(one for cell in cells for one in cell)))
    rows = [row for rows in made.plot("rtt", "shift").to_dict()["datasets"].values() for row in rows]
    assert [row["shift"] for row in rows if "quantile" in row] == pytest.approx([5.0] * 9)


def test_a_shift_that_no_chart_could_show_is_none() -> None:
    cells = [runs(at, [echoes([10 * MS + at * 100] * 60)] * 6, {"path.loss": f"{at}%"}) for at in (0, 1)]
    with pytest.raises(UsageError, match="nothing to draw of rtt as shift"):
        OfRecord(record(*(one for cell in cells for one in cell))).plot("rtt", "shift")


def test_whether_levels_are_the_same_is_drawn_beside_its_margin() -> None:
    made = two_cells()
    alike = {
        "asks": "As fast?", "metric": "rtt", "factor": "path.loss", "yes": "same", "scale": "ratio", "margin": "25%",
        "bound": 0.25, "low": 0.8, "high": 1.25, "cells": [0, 1, 2],
    }  # fmt: skip
    third = runs(2, [echoes([10 * MS + at * 1000] * 60) for at in range(6)], {"path.loss": "2%"})
    result = analyse(record(*made.record().cells, *third, questions=[alike]))
    chart = answer_chart(result.of(Answer)[0], result)
    assert chart is not None
    rows = [row for rows in chart.specification["datasets"].values() for row in rows]
    drawn = [row for row in rows if "comparison" in row]
    assert [(row["comparison"], row["verdict"]) for row in drawn] == [
        ("loss 1% / 0%", "no"), ("loss 2% / 0%", "yes"), ("loss 2% / 1%", "no"),
    ]  # fmt: skip
    assert all(row["low"] < row["value"] < row["high"] for row in drawn)
    assert [row for row in rows if row.keys() == {"low", "high"}] == [{"low": 0.8, "high": 1.25}]
    assert [row for row in rows if row.keys() == {"at"}] == [{"at": 1.0}]
    assert chart.notes == ("Shaded: the margin.",)


def test_what_cannot_be_drawn_says_what_can() -> None:
    with pytest.raises(UsageError, match="this run has no metric 'rt'") as caught:
        two_cells().plot("rt")
    assert "it has rtt" in str(caught.value.hint)
    with pytest.raises(UsageError, match="'pie' is not a kind of chart"):
        two_cells().plot("rtt", "pie")
    with pytest.raises(UsageError, match="nothing to draw of rtt as distribution"):
        two_cells(each=2).plot("rtt", "distribution")
