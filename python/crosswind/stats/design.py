"""The intervals a design supports, decided before any draw: by repetitions, values and the tail's weight.

Refusing an interval after a look at the values would show the lucky samples and hide the others (docs/decisions/0012).
The numbers here keep the intervals' coverage in docs/statistics-reference.md.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Literal

MIN_UNITS = 3
"""Minimum repetitions for any interval: two have a t of 12.7."""
SKEWED_UNITS = 10
SKEWED_EVENTS = 50
"""For a skewed mean: repetitions, and the expected delayed exchanges among all. With similar
messages (ICC 0.2) 5 repetitions with 240 from mix cover 91 %, 10 cover 93 to 95 %.
"""
WHOLLY_SKEWED_UNITS = 5
"""Repetitions for a skewed mean with every exchange delayed, as LN1: five with ten or more cover 95 to 96 %."""
SEEN_UNITS = 15
"""Minimum touched repetitions in a skewed design."""
UNPAIRED_UNITS = 20
"""Repetitions for a difference between unpaired skewed cells, judged by Welch's t alone."""
HEAVY_UNITS = 100
HEAVY_VALUES = 10_000
"""For a heavy mean: repetitions and values."""
COEFFICIENT_UNITS = 20
COEFFICIENT_EVENTS = 15
"""For a coefficient fitted to many cells' means: repetitions per cell, and expected delayed transfers in it."""
TRIMMED_VALUES = 100
"""For a trimmed mean: values, twenty of them cut at each end."""
TAIL_VALUES = 20
"""For a quantile over several values a repetition: expected values beyond it."""
TAIL_UNITS = 1
"""For a quantile: repetitions times the share beyond it; 20 repetitions for p95, 100 for p99."""
QUANTILE_UNITS = 5
DELTA_UNITS = 5
"""Repetitions for a quantile's interval, and for Cliff's delta."""
MESSAGES_BEYOND = 5
"""For a quantile in each repetition: expected values beyond it in each."""


class Tail(Enum):
    """A metric's upper tail, by design."""

    LIGHT = "light"
    """Nothing delays an exchange at random."""
    SKEWED = "skewed"
    """Losses delay exchanges. Below 12.5 % loss a doubling timer leaves the third moment finite: E[8^k] < infinity."""
    HEAVY = "heavy"
    """The third moment is not finite."""
    INFINITE = "infinite"
    """Without a variance too: a mean never has an interval."""


NO_VARIANCE = (
    "no number of repetitions is enough: at this loss a doubling retransmission timer gives times without a finite "
    "variance (from 25 %); read the quantiles"
)


@dataclass(frozen=True)
class Design:
    """Prior knowledge of a cell's metric.

    Attributes:
        tail: see there. rate: the least share of delayed values, in (0, 1]; 1 if unknown.
        is_wait: whether the tail is the upper one: a lower limit may then stand without an upper one.
        least: minimum repetitions for a mean. With a rate of 1 they are enough.
        seen: repetitions with enough expected touched ones (crosswind.stats.chance); None if unknown.
    """

    tail: Tail = Tail.LIGHT
    rate: float = 1.0
    is_wait: bool = True
    least: int = 0
    seen: int | None = None

    def joined(self, other: "Design") -> "Design":
        """A comparison's design: the heavier tail, and the rarer delays."""
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
        """Whether limits err more often on one side: skewed values, and shares with bursty loss."""
        return self.tail is not Tail.LIGHT or self.least > 0

    def fewest(self, needed: int) -> int:
        """The needed repetitions, or those with enough touched ones if these are fewer."""
        return needed if self.seen is None or self.tail is not Tail.SKEWED else min(needed, max(self.seen, SEEN_UNITS))


LIGHT = Design()

QuantilesOf = Literal["cell", "difference", "ratio"]
"""The subject of an interval from the repetitions' own quantiles."""

_DELAYED_UNITS: dict[QuantilesOf, int] = {"cell": 10, "difference": 10, "ratio": 20}
_HEAVY_UNITS: dict[QuantilesOf, int] = {"cell": 30, "difference": 30, "ratio": 100}
"""Repetitions for such quantiles under random delays. A difference takes as many as a cell: beside a steady cell it is
as skewed. With similar messages (ICC 0.2), 10 and 20 repetitions in an LN2 cell cover 92 and 93 %, 30 cover 94; its
ratio covers 91 % with 20, 92 with 30 and 94 with 100, for LN1 and mix 94 to 95 % with 20.
"""


@dataclass(frozen=True)
class Shortage:
    """Why a design does not support an interval. needed: sufficient repetitions; None if no number is."""

    message: str
    needed: int | None


def mean_shortage(design: Design, units: int, n: int) -> Shortage | None:
    """The shortage for a mean, a trimmed mean or a difference of means; None if its interval is supported.

    Args: units: repetitions, or pairs. n: values in these.
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
    """A cell's amount of data on a metric, with its design. units: repetitions. n: values in these."""

    design: Design
    units: int
    n: int

    @property
    def needed_by_coefficients(self) -> float:
        """Repetitions needed before the mean supports a coefficient's interval; infinite if no number is enough."""
        each = max(self.n / self.units, 1.0) if self.units else 1.0
        if self.design.tail is Tail.SKEWED:
            return max(COEFFICIENT_UNITS, _up(COEFFICIENT_EVENTS / (self.design.rate * each)))
        short = mean_shortage(self.design, 1, _up(each))
        return math.inf if short is None or short.needed is None else short.needed


def coefficient_shortage(cells: Iterable[Amount]) -> Shortage | None:
    """The shortage for a coefficient fitted to many cells' means; None if its interval is supported: half of the cells
    have enough, so a few little-known ones do not prevent it.
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
    """The shortage for unpaired cells, with an interval from Welch's t alone."""
    needed = MIN_UNITS if design.tail is Tail.LIGHT else UNPAIRED_UNITS
    return _shortage("an interval of cells with other seeds", needed, units)


def trimmed_mean_shortage(units: int, n: int) -> Shortage | None:
    """The shortage for a trimmed mean; None if its interval is supported."""
    each = max(n / units, 1.0) if units else 1.0
    return _shortage("an interval of a trimmed mean", max(MIN_UNITS, _up(TRIMMED_VALUES / each)), units)


def quantile_shortage(q: float, units: int, n: int, least: int = 0) -> Shortage | None:
    """The shortage for a quantile over several values a repetition; None if its interval is supported.

    Args: least: minimum repetitions.
    """
    beyond = min(q, 1 - q)
    each = max(n / units, 1.0) if units else 1.0
    needed = max(least, QUANTILE_UNITS, _up(TAIL_UNITS / beyond), _up(TAIL_VALUES / (beyond * each)))
    return _shortage(f"an interval of {quantile_name(q)}", needed, units)


def repetition_quantile_shortage(design: Design, q: float, units: int, *, of: QuantilesOf) -> Shortage | None:
    """The shortage for the repetitions' own quantiles, in one cell or compared; None if their interval is supported.

    Each has five values beyond it: enough for a variance even if a single value has none.
    """
    what = f"an interval of {'' if of == 'cell' else f'a {of} of '}{quantile_name(q)}"
    if design.tail is Tail.LIGHT:
        return _shortage(what, MIN_UNITS, units)
    needed = (_DELAYED_UNITS if design.tail is Tail.SKEWED else _HEAVY_UNITS)[of]
    return _shortage(f"{what} where losses delay exchanges", design.fewest(needed), units)


def share_shortage(units: int, least: int = 0) -> Shortage | None:
    """The shortage for a share; None if its interval is supported. Args: least: repetitions for clustered events."""
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
