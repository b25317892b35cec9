"""What a design supports, decided before anything was drawn: by repetitions, values and how heavy the tail may be.

Refusing an interval after a look at the values would show the lucky samples and hide the others (docs/decisions/0012).
The numbers here are chosen so that the intervals in the coverage table of docs/statistics-reference.md hold.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Literal

MIN_UNITS = 3
"""Repetitions for any interval at all: two of them have a t of 12.7."""
SKEWED_UNITS = 10
SKEWED_EVENTS = 50
"""Of a skewed mean: repetitions, and the delayed exchanges that are to be expected among all. With messages that are
alike (ICC 0.2) 5 repetitions of 240 of mix cover 91 %, 10 cover 93 to 95 %."""
WHOLLY_SKEWED_UNITS = 5
"""Repetitions of a skewed mean where every exchange is delayed, as LN1: five of ten or more cover 95 to 96 %."""
SEEN_UNITS = 15
"""Minimum touched repetitions of a skewed design."""
UNPAIRED_UNITS = 20
"""Repetitions of a difference of skewed cells that are no pairs, which Welch's t judges alone."""
HEAVY_UNITS = 100
HEAVY_VALUES = 10_000
"""Of a heavy mean: repetitions and values."""
COEFFICIENT_UNITS = 20
COEFFICIENT_EVENTS = 15
"""Of a coefficient that is fitted to the means of many cells: repetitions of a cell, and delayed transfers to be
expected in it."""
TRIMMED_VALUES = 100
"""Of a trimmed mean: values, of which twenty are left out at each end."""
TAIL_VALUES = 20
"""Of a quantile over several values a repetition: values to be expected beyond it."""
TAIL_UNITS = 1
"""Of a quantile: repetitions times the share of values beyond it; 20 repetitions for p95, 100 for p99."""
QUANTILE_UNITS = 5
DELTA_UNITS = 5
"""Repetitions of a quantile's interval, and of Cliff's delta."""
MESSAGES_BEYOND = 5
"""Of a quantile that is taken of each repetition: values to be expected beyond it in each."""


class Tail(Enum):
    """How heavy the upper tail of a metric is by its design."""

    LIGHT = "light"
    """Nothing delays an exchange at random."""
    SKEWED = "skewed"
    """Losses delay exchanges. Below 12.5 % loss a doubling timer leaves the third moment finite: E[8^k] < infinity."""
    HEAVY = "heavy"
    """The third moment is not finite."""
    INFINITE = "infinite"
    """Nor is the variance, so that a mean has no interval, however many repetitions there are."""


NO_VARIANCE = (
    "no number of repetitions is enough: at this loss a doubling retransmission timer gives times without a finite "
    "variance (from 25 %); read the quantiles"
)


@dataclass(frozen=True)
class Design:
    """What is known of a metric of a cell before it is measured.

    Attributes:
        tail: see there. rate: the least share of values that something delays, in (0, 1]; 1 where that is not known.
        is_wait: whether the tail is the upper one, so that a lower limit may stand without an upper one.
        least: minimum repetitions of a mean. With a rate of 1 they are enough.
        seen: repetitions with enough expected touched ones (crosswind.stats.chance); None if unknown.
    """

    tail: Tail = Tail.LIGHT
    rate: float = 1.0
    is_wait: bool = True
    least: int = 0
    seen: int | None = None

    def joined(self, other: "Design") -> "Design":
        """The design of a comparison: the heavier tail, and the rarer delays."""
        tails = list(Tail)
        tail = tails[max(tails.index(self.tail), tails.index(other.tail))]
        skewed = [part for part in (self, other) if part.tail is not Tail.LIGHT]
        rate = min((part.rate for part in skewed), default=1.0)
        seen = [part.seen for part in skewed if part.seen is not None]
        is_wait = self.is_wait and other.is_wait
        least = max(self.least, other.least)
        return Design(tail, rate, is_wait, least, max(seen) if seen and len(seen) == len(skewed) else None)

    @property
    def is_lopsided(self) -> bool:
        """Whether limits err more often on one side: of skewed values, and of shares with bursty loss."""
        return self.tail is not Tail.LIGHT or self.least > 0

    def fewest(self, needed: int) -> int:
        """The needed repetitions, or those with enough touched ones if these are fewer."""
        return needed if self.seen is None or self.tail is not Tail.SKEWED else min(needed, max(self.seen, SEEN_UNITS))


LIGHT = Design()

QuantilesOf = Literal["cell", "difference", "ratio"]
"""What an interval of the repetitions' own quantiles is of."""

_DELAYED_UNITS: dict[QuantilesOf, int] = {"cell": 10, "difference": 10, "ratio": 20}
_HEAVY_UNITS: dict[QuantilesOf, int] = {"cell": 30, "difference": 30, "ratio": 100}
"""Repetitions of such quantiles where something delays exchanges at random. A difference takes as many as a cell:
beside a steady cell it is as skewed. With messages that are alike (ICC 0.2), 10 and 20 repetitions of a cell of LN2
cover 92 and 93 %, 30 cover 94; its ratio covers 91 % with 20, 92 with 30 and 94 with 100, that of LN1 and of mix 94 to
95 % with 20.
"""


@dataclass(frozen=True)
class Shortage:
    """Why a design does not support an interval. needed: repetitions that would; None where no number does."""

    message: str
    needed: int | None


def mean_shortage(design: Design, units: int, n: int) -> Shortage | None:
    """What a mean, a trimmed mean or a difference of means lacks; None where its interval is supported.

    Args: units: repetitions, or pairs of them. n: values in these.
    """
    if design.tail is Tail.INFINITE:
        return Shortage(NO_VARIANCE, None)
    needed = max(MIN_UNITS, design.least)
    each = max(n / units, 1.0) if units else 1.0
    is_measured = design.least > 0 and design.rate == 1
    if design.tail is Tail.SKEWED and not is_measured:
        fewest = WHOLLY_SKEWED_UNITS if design.rate == 1 else SKEWED_UNITS
        needed = max(needed, design.fewest(max(fewest, _up(SKEWED_EVENTS / (design.rate * each)))))
    elif design.tail is Tail.HEAVY:
        needed = max(needed, HEAVY_UNITS, _up(HEAVY_VALUES / each))
    why = "" if design.tail is Tail.LIGHT else " where losses delay exchanges"
    return _shortage(f"an interval of a mean{why}", needed, units)


@dataclass(frozen=True)
class Amount:
    """How much a cell has of a metric, in which design. units: repetitions. n: values in these."""

    design: Design
    units: int
    n: int

    @property
    def needed_by_coefficients(self) -> float:
        """Repetitions from which on the mean supports an interval of a coefficient; infinite where no number does."""
        each = max(self.n / self.units, 1.0) if self.units else 1.0
        if self.design.tail is Tail.SKEWED:
            return max(COEFFICIENT_UNITS, _up(COEFFICIENT_EVENTS / (self.design.rate * each)))
        short = mean_shortage(self.design, 1, _up(each))
        return math.inf if short is None or short.needed is None else short.needed


def coefficient_shortage(cells: Iterable[Amount]) -> Shortage | None:
    """What a coefficient of a formula lacks that is fitted to the means of many cells; None where its interval is
    supported: half of the cells have enough, so that few of which little is known do not prevent it.
    """
    amounts = list(cells)
    middle = (len(amounts) - 1) // 2
    if not amounts or 2 * sum(amount.units >= amount.needed_by_coefficients for amount in amounts) >= len(amounts):
        return None
    needed = sorted(amount.needed_by_coefficients for amount in amounts)[middle]
    if math.isinf(needed):
        return Shortage(NO_VARIANCE, None)
    return _shortage(
        "an interval of a fitted coefficient", int(needed), sorted(amount.units for amount in amounts)[middle]
    )


def unpaired_shortage(design: Design, units: int) -> Shortage | None:
    """What cells lack that are no pairs, of which Welch's t alone makes the interval."""
    needed = MIN_UNITS if design.tail is Tail.LIGHT else UNPAIRED_UNITS
    return _shortage("an interval of cells with other seeds", needed, units)


def trimmed_mean_shortage(units: int, n: int) -> Shortage | None:
    """What a trimmed mean lacks; None where its interval is supported."""
    each = max(n / units, 1.0) if units else 1.0
    return _shortage("an interval of a trimmed mean", max(MIN_UNITS, _up(TRIMMED_VALUES / each)), units)


def quantile_shortage(q: float, units: int, n: int, least: int = 0) -> Shortage | None:
    """What a quantile over several values a repetition lacks; None where its interval is supported.

    Args: least: repetitions, at least.
    """
    beyond = min(q, 1 - q)
    each = max(n / units, 1.0) if units else 1.0
    needed = max(least, QUANTILE_UNITS, _up(TAIL_UNITS / beyond), _up(TAIL_VALUES / (beyond * each)))
    return _shortage(f"an interval of {quantile_name(q)}", needed, units)


def repetition_quantile_shortage(design: Design, q: float, units: int, *, of: QuantilesOf) -> Shortage | None:
    """What the repetitions' own quantiles lack, of one cell or compared; None where their interval is supported.

    Each has five values beyond it, so that even where a single value has no variance, they have one.
    """
    what = f"an interval of {'' if of == 'cell' else f'a {of} of '}{quantile_name(q)}"
    if design.tail is Tail.LIGHT:
        return _shortage(what, MIN_UNITS, units)
    needed = (_DELAYED_UNITS if design.tail is Tail.SKEWED else _HEAVY_UNITS)[of]
    return _shortage(f"{what} where losses delay exchanges", design.fewest(needed), units)


def share_shortage(units: int, least: int = 0) -> Shortage | None:
    """What a share lacks; None where its interval is supported. Args: least: repetitions where events come together."""
    why = " where losses come together" if least > MIN_UNITS else ""
    return _shortage(f"an interval of a share{why}", max(MIN_UNITS, least), units)


def quantile_name(q: float) -> str:
    """A quantile in words: "the median", "p95"."""
    return "the median" if q == 0.5 else f"p{100 * q:g}"


def _shortage(what: str, needed: int, units: int) -> Shortage | None:
    if units >= needed:
        return None
    more = needed - units
    return Shortage(
        f"{what} needs {needed} repetitions, there {'is' if units == 1 else 'are'} {units}: {more} more", needed
    )


def _up(number: float) -> int:
    return math.ceil(round(number, 9))
