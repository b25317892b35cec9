"""The chart of TCP throughput: each model's expectation with its interval, beside the measurement."""

from collections.abc import Iterator
from dataclasses import dataclass

import altair as alt

from crosswind.live.lines import goodput_text
from crosswind.live.report.account import Account
from crosswind.report.charts.rows import row_axis, row_labels, rows_height
from crosswind.report.charts.style import PALETTE, axis, inline, is_log, scale_type, specification
from crosswind.report.page import Chart
from crosswind.report.text.format import quantity, scale_of
from crosswind.text.quantities import RATE

_EXPECTED, _MEASURED = "expected", "measured"
_COLOURS = {_EXPECTED: PALETTE[0], _MEASURED: PALETTE[1]}
_AT_LEAST = "A line without a dot begins at the model's minimum, because no loss was seen."


@dataclass(frozen=True)
class _Row:
    """A model, or a transfer. value: None where only a limit is known. low, high: the value, or the other limit."""

    row: str
    source: str
    value: float | None
    low: float
    high: float
    text: str
    n: int


def goodput_chart(account: Account) -> Chart | None:
    """A row for each; None where nothing has a rate."""
    rates = list(_rates(account))
    known = [end for rate in rates for end in rate.ends if end is not None]
    if not known:
        return None
    divisor, unit = scale_of(known, "bit/s")
    most = max(known)
    rows = [_row(rate, divisor, most) for rate in rates]
    log = is_log(known, RATE)
    labels = row_labels(row.row for row in rows)
    scale = alt.Scale(type=scale_type(log=log), zero=not log, nice=not log, padding=10 if log else 0)
    title = f"goodput of one TCP flow, {unit}{', log scale' if log else ''}"
    sources = [source for source in _COLOURS if any(row.source == source for row in rows)]
    colours = alt.Scale(domain=sources, range=[_COLOURS[source] for source in sources])
    legend = alt.Legend(title=None, orient="top") if len(sources) > 1 else None
    base = alt.Chart(inline(rows)).encode(
        y=alt.Y("row:N", title=None, sort=None, axis=row_axis()),
        color=alt.Color("source:N", scale=colours, legend=legend),
        tooltip=[alt.Tooltip(f"{field}:N") for field in ("row", "text", "n")],
    )
    along = axis(log=log)
    layers = [
        base.mark_rule(strokeWidth=2.2).encode(x=alt.X("low:Q", title=title, scale=scale, axis=along), x2="high:Q"),
        base.transform_filter("isValid(datum.value)")
        .mark_point(size=80, filled=True, opacity=1)
        .encode(x=alt.X("value:Q", title=title, scale=scale, axis=along)),
    ]
    notes = (_AT_LEAST,) if any(row.value is None for row in rows) else ()
    return Chart("", specification(layers, rows_height(labels.values())), notes)


@dataclass(frozen=True)
class _Rate:
    """A row's rate, bit/s. ends: value, low and high, each None if unknown."""

    name: str
    source: str
    ends: tuple[float | None, float | None, float | None]
    text: str
    n: int


def _rates(account: Account) -> Iterator[_Rate]:
    for expectation in account.expectations:
        goodput = expectation.goodput
        ends = (goodput.value, goodput.low, goodput.high)
        if expectation.unit == "bit/s" and any(end is not None for end in ends):
            yield _Rate(expectation.title, _EXPECTED, ends, goodput_text(goodput), goodput.n)
    for measured in account.subject.measured:
        rate = measured.goodput.value
        text = f"{quantity(rate, 'bit/s')}, one transfer"
        yield _Rate(f"TCP, {measured.direction}", _MEASURED, (rate, None, None), text, measured.goodput.n)


def _row(rate: _Rate, divisor: float, most: float) -> _Row:
    """Args: most: the largest rate, where lines with an open end stop."""
    value, low, high = rate.ends
    begin = next(end for end in (low, value, high) if end is not None)
    stop = next((end for end in (high, value) if end is not None), most)
    begin, stop = (_rounded(end / divisor) for end in (begin, stop))
    shown = None if value is None else _rounded(value / divisor)
    return _Row(rate.name, rate.source, shown, begin, stop, rate.text, rate.n)


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
