"""Where two levels may take the same: places whose interval of the ratio holds 1.

The set is a test turned into an interval: a place at which the two are equal is left out only if its own interval
misses 1, so the set holds each such place with the intervals' confidence, however many places were run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isinf, log

from crosswind.analysis.axes import axis_of
from crosswind.analysis.cells import CellData
from crosswind.analysis.comparisons import compared, other_levels
from crosswind.catalog.metrics import metric_named
from crosswind.decisions.statement import ComparedLevel, Note, Stored
from crosswind.findings.break_even.result import BreakEven, BreakEvenGroup, BreakEvenPiece, BreakEvenPoint
from crosswind.findings.break_even.sentence import break_even_sentence
from crosswind.findings.judged import Context, Judging
from crosswind.stats.estimate import Interval, TooFewSamples, refused


class AskedBreakEven(Stored):
    """A break-even as the plan has it."""

    asks: str
    metric: str
    statistic: str
    factor: str
    over: str
    compare: tuple[ComparedLevel, ComparedLevel]
    where: Mapping[str, str]
    cells: frozenset[int]
    note: Note = None


@dataclass(frozen=True)
class Band:
    """The ratio's logarithm at a place: its value, if any, and its limits; an unknown one is infinite."""

    x: float
    value: float | None
    low: float
    high: float

    @classmethod
    def of(cls, point: BreakEvenPoint) -> "Band":
        """A point's. A ratio that comes out the same every time is its own limits."""
        effect = point.effect
        value = None if effect.value is None or effect.value <= 0 else log(effect.value)
        if effect.is_exact and value is not None:
            return cls(point.x, value, value, value)
        low = log(effect.low) if effect.low is not None and effect.low > 0 else -inf
        high = log(effect.high) if effect.high is not None and effect.high > 0 else inf
        return cls(point.x, value, low, high)

    @property
    def side(self) -> int:
        """-1 where the ratio is below 1, 1 where it is above, 0 where it may be 1."""
        return -1 if self.high < 0 else 1 if self.low > 0 else 0


def open_pieces(bands: Sequence[Band]) -> list[tuple[float, float]]:
    """The pieces of places at which the logarithm may be 0, from the first place to the last.

    Args: bands: at least one, by rising place.
    """
    pieces: list[tuple[float, float]] = []

    def add(low: float, high: float) -> None:
        if pieces and low <= pieces[-1][1]:
            pieces[-1] = (pieces[-1][0], max(pieces[-1][1], high))
        else:
            pieces.append((low, high))

    if len(bands) == 1 and bands[0].side == 0:
        return [(bands[0].x, bands[0].x)]
    for one, other in pairwise(bands):
        if one.side == other.side != 0:
            continue
        ends = [one.x, other.x]
        if one.side:
            ends[0] = _crossing(one, other, of_high=one.side < 0)
        if other.side:
            ends[1] = _crossing(one, other, of_high=other.side < 0)
        add(min(ends), max(ends))
    return pieces


def _crossing(one: Band, other: Band, *, of_high: bool) -> float:
    """Where a limit is 0 between two places; the place of a finite limit beside an infinite one."""
    a, b = (one.high, other.high) if of_high else (one.low, other.low)
    if isinf(a) or isinf(b):
        return other.x if isinf(a) else one.x
    return one.x + (other.x - one.x) * a / (a - b)


def _crossings(bands: Sequence[Band]) -> Iterator[float]:
    """Where the estimate is 0."""
    known = [band for band in bands if band.value is not None]
    for one, other in pairwise(known):
        a, b = one.value or 0.0, other.value or 0.0
        if a == 0:
            yield one.x
        elif a * b < 0:
            yield one.x + (other.x - one.x) * a / (a - b)


def judge_break_evens(context: Context) -> list[BreakEven]:
    """A run's break-evens. One without cells in the run says so."""
    asked = map(AskedBreakEven.model_validate, context.record.asked.get("break_even", ()))
    return [_break_even(each, context.data) for each in asked]


def _break_even(asked: AskedBreakEven, data: Sequence[CellData]) -> BreakEven:
    metric = metric_named(asked.metric)
    assert metric is not None  # The study was checked.
    cells = [cell for cell in data if cell.cell in asked.cells and metric.applies(cell.settings.workload)]
    axis = axis_of(asked.over, cells)
    groups = [
        _group(asked, levels, points)
        for levels, points in _points(asked, cells, axis.places)
        if len(points) > 1 and axis.unit is not None
    ]
    made = BreakEven(
        **asked.shared_with(BreakEven),
        reference=asked.compare[0].level,
        other=asked.compare[1].level,
        x_title=axis.title,
        x_unit=axis.unit or "",
        groups=groups,
        reason=None if groups else f"this run has no two places along {asked.over} with both levels",
    )
    return made.model_copy(update={"sentence": break_even_sentence(made)})


def _points(
    asked: AskedBreakEven, cells: Sequence[CellData], places: Mapping[int, float]
) -> Iterator[tuple[dict[str, str], list[BreakEvenPoint]]]:
    """Pairs of cells that differ in the compared factor alone, by the levels of the others."""
    pairs: dict[tuple[tuple[str, str], ...], dict[int, CellData]] = {}
    for cell in cells:
        for at, level in enumerate(asked.compare):
            if cell.cell in level.cells:
                pairs.setdefault(tuple(other_levels(cell, asked.factor).items()), {})[at] = cell
    groups: dict[tuple[tuple[str, str], ...], list[BreakEvenPoint]] = {}
    for fixed, sides in pairs.items():
        levels = {key: level for key, level in fixed if key not in asked.where}
        if len(sides) < 2 or asked.over not in levels:
            continue
        x_text = levels.pop(asked.over)
        reference, other = sides[0], sides[1]
        point = BreakEvenPoint(
            x=places[reference.cell],
            x_text=x_text,
            reference=reference.cell,
            other=other.cell,
            effect=_effect(asked, reference, other),
        )
        groups.setdefault(tuple(levels.items()), []).append(point)
    for others, points in groups.items():
        yield dict(others), sorted(points, key=lambda point: point.x)


def _effect(asked: AskedBreakEven, reference: CellData, other: CellData) -> Interval:
    try:
        sides = reference.side(asked.metric), other.side(asked.metric)
    except TooFewSamples as error:
        return refused(error.message, n=0, level=LEVEL)
    return compared(sides[0], sides[1], asked.statistic, is_ratio=True, level=LEVEL).estimate


LEVEL = 0.95
"""Of the set, and of each interval."""


def _group(asked: AskedBreakEven, levels: dict[str, str], points: list[BreakEvenPoint]) -> BreakEvenGroup:
    bands = [Band.of(point) for point in points]
    reference, other = (level.level for level in asked.compare)
    less = {-1: other, 1: reference, 0: None}
    pieces = open_pieces(bands)
    first, last = bands[0].x, bands[-1].x

    def beside(x: float, *, is_below: bool) -> str | None:
        """The level that is less at the nearest place on one side of a piece's end."""
        places = [band for band in bands if (band.x <= x if is_below else band.x >= x)]
        return less[places[-1 if is_below else 0].side] if places else None

    return BreakEvenGroup(
        levels=levels,
        points=points,
        pieces=[
            BreakEvenPiece(
                low=None if low <= first and bands[0].side == 0 else low,
                high=None if high >= last and bands[-1].side == 0 else high,
                below=None if low <= first and bands[0].side == 0 else beside(low, is_below=True),
                above=None if high >= last and bands[-1].side == 0 else beside(high, is_below=False),
            )
            for low, high in pieces
        ],
        crossings=list(_crossings(bands)),
        always=None if pieces else less[bands[0].side],
    )


JUDGING = Judging("break_even", "break_evens", BreakEven, judge_break_evens)
