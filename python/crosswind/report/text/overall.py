"""Two cells compared in one sentence, from the whole picture: the typical exchange, the tail, and what is missing.

    quic is 1.12 [1.11, 1.13] times as fast as websocket
    websocket is 1.02 [1.01, 1.03] times as fast as webtransport in median; webtransport is in mean (25.1 times) and p95
    udp loses 3.8 % of its exchanges (38 of 1 000), tcp none; of the others, udp is 1.08 times as fast as tcp

A level is faster without restriction only where every statistic agrees and nothing is missing.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from crosswind.analysis.result import MEAN, CellResult
from crosswind.catalog.metrics import STATISTICS, Metric, Per
from crosswind.report.text.effects import exactly_said, inverse, named_level, number_of_ratio
from crosswind.report.text.format import count, interval, percent, quantity
from crosswind.stats.estimate import Interval
from crosswind.text.lists import listed
from crosswind.text.quantities import RATE, TIME

TAIL = "p95"
_LOOKED_AT = ("median", MEAN, TAIL)
_SLOWEST = "the slowest exchange"
_EQUAL = 1e-3
"""Relative difference between numbers called equal."""


def is_speed(metric: Metric) -> bool:
    """Whether a metric means speed, by time or rate: counts beside exchanges do not."""
    return metric.unit in (TIME, RATE) and metric.per is not Per.COUNTED


def are_equal(ratio: float) -> bool:
    """Whether two numbers with a ratio are called equal."""
    return abs(ratio - 1) <= _EQUAL


@dataclass(frozen=True)
class Measured:
    """One of two compared cells.

    Attributes: name: its level, in a sentence. numbers: estimates by statistic. slowest: the worst single value. n,
        failed: exchanges. stalled: of its `repetitions`. is_valid: whether the cell is.
    """

    name: str
    numbers: Mapping[str, Interval]
    slowest: float | None
    n: int
    failed: int
    stalled: int = 0
    repetitions: int = 0
    is_valid: bool = True

    @classmethod
    def of(cls, name: str, cell: CellResult, metric: Metric) -> Self:
        """A cell by one metric."""
        estimates = cell.estimates.get(metric.name)
        if estimates is None:
            return cls(name, {}, None, cell.n, cell.lost, is_valid=cell.valid)
        numbers = {by: estimates.statistic(by) for by in STATISTICS}
        slowest = estimates.smallest if metric.more_is_better else estimates.largest
        return cls(name, numbers, slowest, cell.n, cell.lost, estimates.stalled, cell.repetitions, cell.valid)

    @property
    def failed_share(self) -> float:
        """Of its exchanges."""
        return self.failed / self.n if self.n else 0.0


@dataclass(frozen=True)
class Respect:
    """A statistic by which two cells compare.

    Attributes: speed: the other's over the reference's; 0 or infinite where one timed out. is_shown: whether the
        intervals exclude equality.
    """

    name: str
    speed: float
    is_shown: bool

    @property
    def winner(self) -> int | None:
        """0 for the reference, 1 for the other, None for equal ones."""
        if are_equal(self.speed):
            return None
        return int(self.speed > 1)


def sentence_of_cells(
    factor: str, levels: Sequence[tuple[str, CellResult]], metric: Metric, statistic: str, effect: Interval
) -> str:
    """Two cells of a run, different in a factor. Args: levels: reference and other, each with its cell."""
    reference, other = (Measured.of(named_level(factor, level), cell, metric) for level, cell in levels)
    return overall_sentence((reference, other), metric, statistic, effect)


def overall_sentence(
    sides: tuple[Measured, Measured],
    metric: Metric,
    statistic: str,
    effect: Interval,
    respects: Sequence[Respect] | None = None,
) -> str:
    """Who is better in what, without a full stop.

    Args: sides: reference and other. metric: a time or a rate. effect: the other's statistic over the reference's.
        respects: the asked one first; None: those of the sides.
    """
    invalid = [side.name for side in sides if not side.is_valid]
    if invalid:
        return f"{' and '.join(invalid)} {'is' if len(invalid) == 1 else 'are'} invalid: no comparison"
    fruitless = [side for side in sides if side.n and side.failed == side.n]
    if fruitless:
        others = [
            f"; with {side.name} {count(side.n - side.failed)} of {count(side.n)} do"
            for side in sides
            if side not in fruitless
        ]
        return f"no exchange succeeds with {' or '.join(side.name for side in fruitless)}{''.join(others)}"
    known = _respects_of(sides, metric, statistic, effect) if respects is None else respects
    speed, missing = _speed(sides, metric, statistic, effect, known), _missing(sides)
    # Quantiles count failures as longer than their timeout, means leave them out.
    of_whom = "" if STATISTICS[statistic].quantile is not None else "of the others, "
    said = f"{missing}; {of_whom}{speed}" if missing and speed else missing or speed
    return f"{said}{_stalls(sides, metric)}"


def _respects_of(sides: tuple[Measured, Measured], metric: Metric, statistic: str, effect: Interval) -> list[Respect]:
    """The asked statistic first, then the others known for both cells. Args: as of `overall_sentence`."""
    asked = _speed_of(effect, metric)
    respects = []
    if asked.value:
        name = STATISTICS[statistic].heading
        if effect.is_sign_test:
            name = f"all {count(effect.units)} repetitions" if _is_constant(effect) else "the median repetition"
        is_shown = asked.is_exact or (asked.is_whole and not _holds_one(asked))
        respects.append(Respect(name, asked.value, is_shown))
    is_of_successes = any(side.failed for side in sides) and STATISTICS[statistic].quantile is None
    looked_at: tuple[str, ...] = (MEAN,) if is_of_successes else _LOOKED_AT
    others = [name for name in looked_at if effect.is_sign_test or name != statistic]
    known = [made for name in others if (made := _by(name, sides, metric)) is not None]
    if not any(respect.name == TAIL for respect in (*respects, *known)):
        known += _by_slowest(sides, metric)
    return [*respects, *known]


def _speed(
    sides: tuple[Measured, Measured], metric: Metric, statistic: str, effect: Interval, respects: Sequence[Respect]
) -> str:
    """Who is faster, in what; empty without a number."""
    if not respects or not effect.value:
        return ""
    asked, *others = respects
    winner = asked.winner
    first, second = sides if winner == 0 else sides[::-1]
    differing = [respect for respect in others if respect.winner not in (None, winner)]
    against = [respect for respect in differing if respect.is_shown]
    open_ = [respect for respect in differing if not respect.is_shown] if winner is not None else []
    is_stalling, has_failures = any(side.stalled for side in sides), any(side.failed for side in sides)
    speed = _speed_of(effect, metric)
    times, remark = (
        ("exactly " if speed.is_exact and speed.value == 1 else "", _apart(speed))
        if winner is None
        else _times(speed if winner else inverse(speed))
    )
    said = f"{first.name} is {times}as fast as {second.name}"
    if differing or is_stalling or has_failures or statistic != MEAN or effect.is_sign_test:
        said += f" in {asked.name}"
    said += remark
    for level in dict.fromkeys(respect.winner for respect in against):
        own = [_with_ratio(respect) for respect in against if respect.winner == level]
        said += f"; {sides[level or 0].name} is faster in {listed(own)}"
    if open_ and not is_stalling:
        said += f"; {listed([respect.name for respect in open_])} {'is' if len(open_) == 1 else 'are'} not decided"
    return said


def _stalls(sides: tuple[Measured, Measured], metric: Metric) -> str:
    """Who stalls more often; empty if nobody does."""
    most, least = sorted(sides, key=lambda side: -side.stalled)
    if not most.stalled:
        return ""
    slowest = max(side.slowest or 0.0 for side in sides if side.stalled)
    longest = f"{count(most.repetitions)} repetitions (up to {quantity(slowest, metric.unit.name)})"
    if most.stalled == least.stalled:
        return f", but both stall in {count(most.stalled)} of {longest}"
    other = f"in {count(least.stalled)}" if least.stalled else "in none"
    return f", but {most.name} stalls in {count(most.stalled)} of {longest}, {least.name} {other}"


def _is_constant(effect: Interval) -> bool:
    """Whether every repetition has the same."""
    ends = effect.spread or (effect.low, effect.high)
    return ends[0] is not None and ends[0] == ends[1]


def _times(speed: Interval) -> tuple[str, str]:
    """A ratio above 1, and a remark on it: "1.02 [1.01, 1.03] times ", "exactly 1.5 times ", " (no interval)"."""
    number, bracket, remark = exactly_said(interval(speed)).partition(" (")
    return f"{number} times ", "" if remark.startswith("in all ") else f"{bracket}{remark}"


def _apart(speed: Interval) -> str:
    """A ratio called equal, with limits that are not: " (1.000 [0.950, 1.053] times)"."""
    limits = speed.limits or (1.0, 1.0)
    return "" if all(abs(end - 1) <= _EQUAL for end in limits) else f" ({interval(speed)} times)"


def _missing(sides: tuple[Measured, Measured]) -> str:
    """Who loses more exchanges; empty if nobody loses any."""
    least, most = sorted(sides, key=lambda side: side.failed_share)
    if not most.failed:
        return ""
    if least.failed_share == most.failed_share:
        return f"{sides[0].name} and {sides[1].name} each fail in {_failed(most)}"
    return f"{most.name} fails in {_failed(most)}, {least.name} in {_failed(least) if least.failed else 'none'}"


def _failed(side: Measured) -> str:
    return f"{percent(side.failed_share)} of exchanges ({count(side.failed)} of {count(side.n)})"


def _speed_of(effect: Interval, metric: Metric) -> Interval:
    """The other's speed over the reference's."""
    return effect if metric.more_is_better else inverse(effect)


def _by(name: str, sides: tuple[Measured, Measured], metric: Metric) -> Respect | None:
    """One statistic over all exchanges; None without numbers to compare."""
    made = [side.numbers.get(name) for side in sides]
    # A rate's slow tail is not its 95th percentile.
    if made[0] is None or made[1] is None or (name == TAIL and metric.more_is_better):
        return None
    reference, other = (_limits(number) for number in (made[0], made[1]))
    if reference is None or other is None:
        return None
    # A quantile beyond a timeout lies anywhere above it.
    speed = _ratio(reference[1], other[1], metric)
    is_shown = reference[2] < other[0] or other[2] < reference[0]
    return None if math.isnan(speed) else Respect(STATISTICS[name].heading, speed, is_shown)


def _limits(number: Interval) -> tuple[float, float, float] | None:
    """Its low limit, value and high limit; an unknown limit leaves everything possible."""
    if number.value is None:
        return None if number.low is None else (number.low, math.inf, math.inf)
    low, high = (number.value, number.value) if number.is_exact else (number.low, number.high)
    return (0.0 if low is None else low), number.value, (math.inf if high is None else high)


def _by_slowest(sides: tuple[Measured, Measured], metric: Metric) -> Iterator[Respect]:
    reference, other = (side.slowest for side in sides)
    if reference and other:
        yield Respect(_SLOWEST, _ratio(reference, other, metric), is_shown=False)


def _ratio(reference: float, other: float, metric: Metric) -> float:
    """The other's speed over the reference's; NaN if both are unknown."""
    slow, fast = (reference, other) if not metric.more_is_better else (other, reference)
    if math.isinf(slow) and math.isinf(fast):
        return math.nan
    return slow / fast if fast else math.nan


def _holds_one(speed: Interval) -> bool:
    return speed.low is None or speed.high is None or speed.low <= 1 <= speed.high


def _with_ratio(respect: Respect) -> str:
    """A respect with its size: "p95 (251 times)"."""
    speed = respect.speed if respect.speed >= 1 else 1 / respect.speed if respect.speed else math.inf
    return respect.name if math.isinf(speed) else f"{respect.name} ({number_of_ratio(speed)} times)"
