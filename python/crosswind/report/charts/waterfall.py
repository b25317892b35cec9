"""The page of median load time as a waterfall: each object waiting, asked for, and arriving."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import altair as alt
import polars as pl

from crosswind.analysis.cells import CellData
from crosswind.cell.record import CellRun
from crosswind.report.charts.panels import MAX_PANELS
from crosswind.report.charts.style import (
    LOG_SPREAD,
    PALETTE,
    Along,
    Specification,
    colour_of,
    inline,
    specification,
    tips,
)
from crosswind.report.page import Chart, Panels
from crosswind.report.text.format import count, levels, quantity
from crosswind.text.quantities import TIME


@dataclass(frozen=True)
class _Span:
    """An object's loading span: its name, the columns of its ends, and its colour."""

    name: str
    begin: str
    end: str
    colour: str


_SPANS = (
    _Span("waiting", "queued_ns", "sent_ns", "#A6A6A6"),
    _Span("until its first byte", "sent_ns", "first_ns", PALETTE[0]),
    _Span("arriving", "first_ns", "received_ns", PALETTE[1]),
)


@dataclass(frozen=True)
class MedianPage:
    """A cell's page with the median load time among whole loads, the smaller of the two middle ones.

    Attributes: load_ns: its time. pages: their number. start_ns: its beginning, by its objects' clock.
    """

    repetition: int
    page: int
    load_ns: int
    pages: int
    start_ns: int
    objects: pl.DataFrame


def median_page(runs: Sequence[CellRun]) -> MedianPage | None:
    """The median page of some repetitions; None where no page with objects loaded whole."""
    pages: list[tuple[int, int, int, int, CellRun]] = []
    for run in runs:
        if run.objects.is_empty():
            continue
        whole = run.samples.filter((pl.col("outcome") == "ok") & pl.col("received_ns").is_not_null())
        for page, sent, received in whole.select("exchange", "sent_ns", "received_ns").iter_rows():
            pages.append((received - sent, run.repetition, page, sent, run))
    if not pages:
        return None
    pages.sort(key=lambda entry: entry[:3])
    load_ns, repetition, page, start_ns, run = pages[(len(pages) - 1) // 2]
    objects = run.objects.filter(pl.col("page") == page)
    return MedianPage(repetition, page, load_ns, len(pages), start_ns, objects)


def waterfalls(data: Sequence[CellData]) -> Panels:
    """A waterfall for each cell with page loads."""
    pages = [(cell, page) for cell in data if (page := median_page(cell.runs)) is not None]
    drawn = pages[:MAX_PANELS]
    loads_ns = [page.load_ns for _, page in drawn]
    # One scale if the shortest stays visible.
    share_scale = bool(loads_ns) and max(loads_ns) <= LOG_SPREAD * min(loads_ns)
    charts = [
        Chart(levels(cell.levels), _drawing(page, max(loads_ns) if share_scale else page.load_ns), _notes(page))
        for cell, page in drawn
    ]
    return Panels(charts, len(pages))


@dataclass(frozen=True)
class ObjectSpan:
    """A span of an object's loading, `begin` and `end` since the page was asked for."""

    object: str
    span: str
    begin: float
    end: float
    connection: int | None
    bytes: int | None


def spans_of(page: MedianPage) -> list[ObjectSpan]:
    """Every object's spans in ns; objects by request order."""
    spans = []
    ordered = page.objects.sort("queued_ns", "sent_ns", "received_ns", nulls_last=True)
    for loaded in ordered.iter_rows(named=True):
        for span in _SPANS:
            if loaded[span.begin] is not None and loaded[span.end] is not None:
                begin, end = loaded[span.begin] - page.start_ns, loaded[span.end] - page.start_ns
                spans.append(ObjectSpan(loaded["object"], span.name, begin, end, loaded["connection"], loaded["bytes"]))
    return spans


def _drawing(page: MedianPage, end_ns: float) -> Specification:
    """Args: end_ns: where its axis ends."""
    divisor, unit = TIME.scale_for([end_ns])
    spans = [replace(span, begin=span.begin / divisor, end=span.end / divisor) for span in spans_of(page)]
    order = list(dict.fromkeys(span.object for span in spans))
    along = Along(f"since the page was asked for, {unit}", alt.Scale(domain=[0, end_ns / divisor], nice=True))
    drawing = (
        alt.Chart(inline(spans))
        .mark_bar(height={"band": 0.7})
        .encode(
            y=alt.Y("object:N", title=None, sort=order, axis=alt.Axis(grid=False)),
            x=along.x("begin"),
            x2="end:Q",
            color=colour_of("span", {span.name: span.colour for span in _SPANS}),
            tooltip=tips("object", "span", "connection", "bytes:Q", "begin:Q", "end:Q"),
        )
    )
    return specification(drawing, 60 + 14 * len(order))


def _notes(page: MedianPage) -> tuple[str, ...]:
    return (
        f"Page {page.page + 1} of repetition {page.repetition + 1}: {quantity(page.load_ns, 'ns')}, the median of "
        f"n = {count(page.pages)} pages.",
    )
