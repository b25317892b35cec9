"""Break-evens, by places with a ratio's interval around 1.

The set inverts a test: it lacks a true break-even only if that place's own interval misses 1. So it holds each one with
the intervals' confidence, however many places were run.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf, isinf, log
from typing import Self

from crosswind.analysis.axes import axis_of
from crosswind.analysis.cells import CellData
from crosswind.analysis.comparisons import compared_cells, other_levels
from crosswind.catalog.metrics import metric_named
from crosswind.decisions.statement import ComparedLevel, Note, Stored
from crosswind.findings.break_even.result import (
    Better,
    BreakEven,
    BreakEvenGroup,
    BreakEvenPoint,
    BreakEvenStretch,
)
from crosswind.findings.break_even.sentence import break_even_sentence
from crosswind.findings.judged import Context, Judging
from crosswind.stats.estimate import Interval

LEVEL = 0.95
"""The confidence level."""


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
    exact: bool = False

    @classmethod
    def of(cls, x: float, effect: Interval) -> Self:
        """From a ratio at a place. An exact ratio is both of its limits."""
        value = None if effect.value is None or effect.value <= 0 else log(effect.value)
        if effect.is_exact and value is not None:
            return cls(x, value, value, value, exact=True)
        low = log(effect.low) if effect.low is not None and effect.low > 0 else -inf
        high = log(effect.high) if effect.high is not None and effect.high > 0 else inf
        return cls(x, value, low, high)

    @property
    def less(self) -> Better:
        """Whose statistic is less."""
        if self.high < 0:
            return "other"
        if self.low > 0:
            return "reference"
        return "same" if self.exact else "unknown"


def stretches_of(bands: Sequence[Band]) -> list[BreakEvenStretch]:
    """The stretches from the first place to the last. Args: bands: at least one, by rising place."""
    pieces = [piece for pair in pairwise(bands) for piece in _between(*pair)]
    pieces = pieces or [(bands[0].x, bands[0].x, bands[0].less)]
    joined: list[BreakEvenStretch] = []
    for low, high, less in pieces:
        if joined and joined[-1].less == less:
            joined[-1] = joined[-1].model_copy(update={"high": high})
        else:
            joined.append(BreakEvenStretch(low=low, high=high, less=less))
    return joined


def _between(one: Band, other: Band) -> Iterator[tuple[float, float, Better]]:
    """Pieces from one place to the next."""
    ends, decided = (one.x, other.x), ("reference", "other")
    if one.less == other.less:
        yield *ends, one.less
    elif one.exact and other.exact:
        # Two exact numbers say nothing of the line between them, but where one of them is equality itself.
        if "same" in (one.less, other.less):
            turn = one.x if one.less == "same" else other.x
            yield one.x, turn, one.less
            yield turn, other.x, other.less
        else:
            yield ends[0], ends[0], one.less
            yield *ends, "unknown"
            yield ends[1], ends[1], other.less
    else:
        low = _crossing(one, other, of_high=one.less == "other") if one.less in decided else ends[0]
        high = _crossing(one, other, of_high=other.less == "other") if other.less in decided else ends[1]
        if one.less in decided:
            yield ends[0], low, one.less
        yield min(low, high), max(low, high), "unknown"
        if other.less in decided:
            yield high, ends[1], other.less


def _crossing(one: Band, other: Band, *, of_high: bool) -> float:
    """A limit's zero between two places; beside an infinite one, the finite one's place."""
    a, b = (one.high, other.high) if of_high else (one.low, other.low)
    if isinf(a) or isinf(b):
        return other.x if isinf(a) else one.x
    return one.x + (other.x - one.x) * a / (a - b)


def _crossings(bands: Sequence[Band]) -> Iterator[float]:
    """The estimate's zeros."""
    known = [(band, band.value) for band in bands if band.value is not None]
    for (one, a), (other, b) in pairwise(known):
        if a * b < 0 and not (one.exact and other.exact):
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
    found = list(_points(asked, cells, axis.places))
    groups = [_group(levels, points) for levels, points in found if len(points) > 1 and axis.unit is not None]
    planned = asked.compare[0].cells | asked.compare[1].cells
    made = BreakEven(
        **asked.shared_with(BreakEven),
        reference=asked.compare[0].level,
        other=asked.compare[1].level,
        x_title=axis.title,
        x_unit=axis.unit or "",
        groups=groups,
        missing=len(planned - {cell.cell for cell in cells if cell.runs and cell.outcomes.get("ok")}),
        alone=sum(len(points) == 1 for _, points in found),
        reason=None if groups else f"this run has no two places along {asked.over} with both levels",
    )
    return made.model_copy(update={"sentence": break_even_sentence(made)})


def _points(
    asked: AskedBreakEven, cells: Sequence[CellData], places: Mapping[int, float]
) -> Iterator[tuple[dict[str, str], list[BreakEvenPoint]]]:
    """Pairs different in the compared factor alone, by the others' levels."""
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
        x = places[reference.cell]
        made = compared_cells(reference, other, asked.metric, asked.statistic, is_ratio=True, level=LEVEL)
        effect = made.estimate
        point = BreakEvenPoint(
            x=x,
            x_text=x_text,
            reference=reference.cell,
            other=other.cell,
            effect=effect,
            less=Band.of(x, effect).less,
        )
        groups.setdefault(tuple(levels.items()), []).append(point)
    for others, points in groups.items():
        yield dict(others), sorted(points, key=lambda point: point.x)


def _group(levels: dict[str, str], points: list[BreakEvenPoint]) -> BreakEvenGroup:
    bands = [Band.of(point.x, point.effect) for point in points]
    return BreakEvenGroup(
        levels=levels, points=points, stretches=stretches_of(bands), crossings=list(_crossings(bands))
    )


JUDGING = Judging("break_even", "break_evens", BreakEven, judge_break_evens)
