"""The page of median load time as a waterfall: each object waiting, asked for, and arriving."""

from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl

from crosswind.analysis import CellData
from crosswind.record import CellRun
from crosswind.report.charts.charts import PALETTE, PANELS, Chart, Panels, spec_of
from crosswind.report.text.format import levels, quantity, scale_of
from crosswind.report.text.headline import number_of

_SPANS = (
    ("waiting", "queued_ns", "sent_ns", "#A6A6A6"),
    ("until its first byte", "sent_ns", "first_ns", PALETTE[0]),
    ("arriving", "first_ns", "received_ns", PALETTE[1]),
)


@dataclass(frozen=True)
class MedianPage:
    """The page of a cell whose load time is the median of those that loaded whole, the smaller of the two middle ones.

    Attributes: load_ns: its time. pages: how many there are. start_ns: when it began, by the clock of its objects.
    """

    repetition: int
    page: int
    load_ns: int
    pages: int
    start_ns: int
    objects: pl.DataFrame


def median_page(runs: list[CellRun]) -> MedianPage | None:
    """The median page of some repetitions; None where no page with objects loaded whole."""
    found: list[tuple[int, int, int, int, CellRun]] = []
    for run in runs:
        if run.objects.is_empty():
            continue
        whole = run.samples.filter((pl.col("outcome") == "ok") & pl.col("received_ns").is_not_null())
        for page, sent, received in whole.select("exchange", "sent_ns", "received_ns").iter_rows():
            found.append((received - sent, run.repetition, page, sent, run))
    if not found:
        return None
    found.sort(key=lambda entry: entry[:3])
    load_ns, repetition, page, start_ns, run = found[(len(found) - 1) // 2]
    objects = run.objects.filter(pl.col("page") == page)
    return MedianPage(repetition, page, load_ns, len(found), start_ns, objects)


def waterfalls(data: list[CellData]) -> Panels:
    """A waterfall for each cell that loaded pages."""
    found = [(one, page) for one in data if (page := median_page(one.runs)) is not None]
    charts = [Chart(levels(one.levels), _drawing(page), _notes(page)) for one, page in found[:PANELS]]
    return Panels(charts, len(found))


def spans_of(page: MedianPage) -> list[dict[str, Any]]:
    """Every span of every object in ns from the page's beginning; objects in the order in which they were asked for."""
    rows = []
    ordered = page.objects.sort("queued_ns", "sent_ns", "received_ns", nulls_last=True)
    for one in ordered.iter_rows(named=True):
        for name, begin, end, _ in _SPANS:
            if one[begin] is not None and one[end] is not None:
                rows.append({
                    "object": one["object"],
                    "span": name,
                    "from": one[begin] - page.start_ns,
                    "to": one[end] - page.start_ns,
                    "connection": one["connection"],
                    "bytes": one["bytes"],
                })  # fmt: skip
    return rows


def _drawing(page: MedianPage) -> dict[str, Any]:
    divisor, unit = scale_of([page.load_ns], "ns")
    rows = [{**row, "from": row["from"] / divisor, "to": row["to"] / divisor} for row in spans_of(page)]
    order = list(dict.fromkeys(row["object"] for row in rows))
    colours = alt.Scale(domain=[name for name, *_ in _SPANS], range=[colour for *_, colour in _SPANS])
    fields = ("object:N", "span:N", "connection:N", "bytes:Q", "from:Q", "to:Q")
    drawing = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_bar(height={"band": 0.7})
        .encode(
            y=alt.Y("object:N", title=None, sort=order, axis=alt.Axis(grid=False)),
            x=alt.X("from:Q", title=f"since the page was asked for, {unit}", axis=alt.Axis(tickCount=6)),
            x2="to:Q",
            color=alt.Color("span:N", scale=colours, legend=alt.Legend(title=None, orient="top")),
            tooltip=[alt.Tooltip(field) for field in fields],
        )
    )
    return spec_of(drawing, 60 + 14 * len(order))


def _notes(page: MedianPage) -> tuple[str, ...]:
    said = (
        f"Page {page.page + 1} of repetition {page.repetition + 1}: {quantity(page.load_ns, 'ns')}, the median of "
        f"n = {number_of(page.pages)} pages."
    )
    return (said,)
