"""The time of each exchange over the time when it was due, where the path changes meanwhile."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import polars as pl

from crosswind.analysis.cells import CellData
from crosswind.catalog.metrics import MetricScale
from crosswind.cell.record import CellRun
from crosswind.report.charts.colours import Colours
from crosswind.report.charts.panels import COLOUR_FIRST, MAX_PANELS, NO_PANELS, Roles
from crosswind.report.charts.style import (
    GREY,
    LEAST_TIME_NS,
    PALETTE,
    Along,
    Specification,
    inline,
    is_log,
    specification,
    tips,
)
from crosswind.report.page import Chart, Panels
from crosswind.report.text.format import count
from crosswind.text.quantities import TIME

MOST_POINTS = 500
"""Maximum exchanges drawn for a cell, half of them from the slowest tenth; and as many lost ones."""
MOST_PERIODS = 100
"""Maximum periods drawn for a repeating change."""

_HEIGHT = 220
_ABOVE = 0.25
"""Share of the height above the exchanges, for the changes' names and lost exchanges."""
_NAMES_AT = (2, 14)
"""Alternating heights, so adjacent changes' names do not meet."""
_LOST_AT = 34
_SLOWEST = 0.9


def over_time(data: Sequence[CellData]) -> Panels:
    """A panel for all cells on a changing path with equal levels but transport or congestion control."""
    drawn = [cell for cell in data if _changes_meanwhile(cell)]
    varied = {key for key in COLOUR_FIRST if 1 < len({cell.levels.get(key) for cell in drawn}) <= len(PALETTE)}
    colour = next((key for key in COLOUR_FIRST if key in varied), None)
    panels: dict[tuple[tuple[str, str], ...], list[CellData]] = {}
    for cell in drawn:
        panels.setdefault(tuple((key, level) for key, level in cell.levels.items() if key != colour), []).append(cell)
    if not panels:
        return NO_PANELS
    keys = tuple(dict.fromkeys(key for cell in drawn for key in cell.levels if key != colour))
    roles, colours = Roles(colour, None, keys), Colours(cell.levels for cell in data)
    charts = [_chart(cells, roles, colours) for cells in list(panels.values())[:MAX_PANELS]]
    return Panels(charts, len(panels))


def _changes_meanwhile(cell: CellData) -> bool:
    """Whether its path changes, over several exchanges to show it."""
    changes = cell.effect.forward.changes or cell.effect.reverse.changes
    return changes and any(run.samples.height > 1 for run in cell.runs)


@dataclass(frozen=True)
class Exchange:
    """An exchange: when it was due since the first packet, and how long it took; None: it was lost."""

    colour: str
    repetition: int
    due: float
    time: float | None = None


@dataclass(frozen=True)
class ChangePeriod:
    """A period of a change, certain, or possible after a random begin."""

    name: str
    begin: float
    end: float
    certain: bool


def exchanges_of(cell: CellData, colour: str) -> list[Exchange]:
    """All repetitions' exchanges with a known due time, in ns."""
    return [exchange for run in cell.runs for exchange in _exchanges(run, colour)]


def _exchanges(run: CellRun, colour: str) -> Iterator[Exchange]:
    rows = run.samples.select(
        due=pl.coalesce("intended_ns", "sent_ns"),
        # The connection of the first exchange was asked for with the first packet.
        asked=pl.coalesce("sent_ns", "intended_ns") - pl.col("connect_ns").fill_null(0),
        received=pl.when(pl.col("outcome") == "ok").then("received_ns"),
    ).filter(pl.col("due").is_not_null())
    if rows.is_empty():
        return
    first = rows["asked"].min()
    assert isinstance(first, int)
    for due, _, received in rows.iter_rows():
        yield Exchange(colour, run.repetition + 1, due - first, None if received is None else received - due)


def change_periods(changes: Sequence[Mapping[str, Any]], end_ns: float) -> list[ChangePeriod]:
    """Periods of changes until some time, in ns: certain ones, and around them those possible with a random begin."""
    periods = []
    for at, change in enumerate(changes):
        name, spread = str(change.get("name") or at + 1), change.get("spread_ns") or 0
        begin, lasts, every = change.get("start_ns") or 0, change.get("for_ns"), change.get("every_ns")
        if change.get("trace") and lasts is None:
            continue  # A shade is useless for a permanent change.
        starts = np.arange(begin, end_ns, every)[:MOST_PERIODS].tolist() if every else [begin]
        for start in starts:
            stop = end_ns if lasts is None else start + lasts
            if spread:
                periods.append(ChangePeriod(name, start, min(end_ns, stop + spread), certain=False))
            periods.append(ChangePeriod(name, start + spread, min(end_ns, stop), certain=True))
    return [period for period in periods if period.begin < period.end]


def thinned(exchanges: Sequence[Exchange], most: int = MOST_POINTS) -> list[Exchange]:
    """Some of many exchanges, always with the slowest, half of them from the slowest tenth."""
    answered = sorted(
        (exchange for exchange in exchanges if exchange.time is not None), key=lambda exchange: exchange.time or 0.0
    )
    lost = [exchange for exchange in exchanges if exchange.time is None]
    return [answered[at] for at in _ranks(len(answered), most)] + [
        lost[at] for at in np.unique(np.linspace(0, max(0, len(lost) - 1), min(len(lost), most)).astype(int))
    ]


def _ranks(n: int, most: int) -> list[int]:
    if n <= most:
        return list(range(n))
    body = np.linspace(0, _SLOWEST * n, most // 2, endpoint=False)
    tail = np.linspace(_SLOWEST * n, n - 1, most - most // 2)
    return [int(rank) for rank in np.unique(np.concatenate([body, tail]).astype(int))]


def _chart(cells: Sequence[CellData], roles: Roles, colours: Colours) -> Chart:
    by_cell = [exchanges_of(cell, roles.level(roles.colour, cell.levels)) for cell in cells]
    exchanges = [exchange for cell_points in by_cell for exchange in thinned(cell_points)]
    total, kept = sum(map(len, by_cell)), len(exchanges)
    end_ns = max((exchange.due for cell_points in by_cell for exchange in cell_points), default=0.0) or 1.0
    periods = change_periods(cells[0].parameters["path"].get("changes") or [], end_ns)
    notes = []
    if kept < total:
        notes.append(f"{count(kept)} of {count(total)} exchanges are drawn, the slowest among them.")
    if any(not period.certain for period in periods):
        notes.append("The changes begin at random: where the shade is fainter, in some repetitions alone.")
    names = list(dict.fromkeys(exchange.colour for exchange in exchanges))
    return Chart(
        roles.panel(cells[0].levels),
        _drawing(exchanges, periods, end_ns, colours.by("colour", roles.colour, names)),
        tuple(notes),
    )


def _drawing(
    exchanges: Sequence[Exchange], periods: Sequence[ChangePeriod], end_ns: float, colour: alt.Color
) -> Specification:
    along_divisor, along_unit = TIME.scale_for([end_ns])
    times = [max(exchange.time, LEAST_TIME_NS) for exchange in exchanges if exchange.time is not None]
    divisor, unit = TIME.scale_for(times or [LEAST_TIME_NS])
    log = bool(times) and is_log(times, TIME, MetricScale.AUTOMATIC)
    marks = [
        Exchange(
            exchange.colour,
            exchange.repetition,
            float(f"{exchange.due / along_divisor:.6g}"),
            None if exchange.time is None else float(f"{max(exchange.time, LEAST_TIME_NS) / divisor:.6g}"),
        )
        for exchange in exchanges
    ]
    shades = [
        ChangePeriod(period.name, period.begin / along_divisor, period.end / along_divisor, period.certain)
        for period in periods
    ]
    scale = alt.Scale(domain=[0, end_ns / along_divisor], nice=False, padding=6)
    along = Along(f"due, {along_unit} after the first packet", scale)
    domain = _domain(times or [LEAST_TIME_NS], divisor, log=log)
    height = Along.of(f"time, {unit}", log=log, domain=domain, nice=False).y("time")
    said = tips("colour", "repetition:Q", "due:Q", "time:Q")
    points = alt.Chart(inline(marks)).encode(x=along.x("due"), color=colour, tooltip=said)
    shaded = alt.Chart(inline(shades)).encode(x=along.x("begin"))
    firsts = list({shade.name: shade for shade in reversed(shades)}.values())[::-1]
    names = [
        alt.Chart(inline(firsts[row :: len(_NAMES_AT)]))
        .mark_text(align="left", baseline="top", dx=3, color=GREY)
        .encode(x=along.x("begin"), y=alt.value(at), text="name:N")
        for row, at in enumerate(_NAMES_AT)
        if firsts[row:]
    ]
    return specification(
        [
            shaded.mark_rect(color=GREY, clip=True).encode(
                x2="end:Q",
                opacity=alt.condition("datum.certain", alt.value(0.25), alt.value(0.12)),
                tooltip=tips("name", "begin:Q", "end:Q"),
            ),
            *names,
            points.transform_filter("isValid(datum.time)")
            .mark_point(shape="circle", size=16, filled=True, opacity=0.6)
            .encode(y=height),
            points.transform_filter("!isValid(datum.time)")
            .mark_point(shape="cross", angle=45, size=36, filled=True, opacity=0.6)
            .encode(y=alt.value(_LOST_AT)),
        ],
        _HEIGHT,
    )


def _domain(times: Sequence[float], divisor: float, *, log: bool) -> list[float]:
    low, high = min(times) / divisor, max(times) / divisor
    if log:
        low *= 0.8
        return [low, high * (high / low) ** (_ABOVE / (1 - _ABOVE))]
    return [0, high / (1 - _ABOVE)]
