"""Unseen events: rare events in no repetition so far. A claim of absence has to allow for them.

If a share q of repetitions has a costly event and none of them was drawn, no limit computed from the values covers. So
a claim of absence rests on many repetitions touched by chance, or adds the cost of one event in the largest plausible
share of repetitions.
"""

import math
from dataclasses import dataclass

from crosswind.stats.design import SEEN_UNITS

TOUCHED = SEEN_UNITS
"""Touched repetitions with enough spread for a limit without an allowance (docs/statistics.md)."""

ONE_SIDED = 0.4
"""Factor on the tail probability in skewed designs: limits err up to 2.5 times as often as stated on the tail's side
(docs/statistics-reference.md).
"""


@dataclass(frozen=True)
class Chance:
    """The effect of chance on a statistic: seen in some repetitions, possible in others.

    Attributes:
        touched: repetitions with an event; None: all.
        more, less: the largest increase and decrease of a repetition's statistic by one event, in its unit; infinite if
            unknown.
        share: an upper bound on the share of repetitions with an event, from the cell's settings.
        enough: touched repetitions needed for a limit without an allowance.
    """

    touched: int | None = None
    more: float = math.inf
    less: float = math.inf
    share: float = 1.0
    enough: int = TOUCHED

    def is_known(self, units: int) -> bool:
        """Whether an upper or a lower limit is finite."""
        return self.is_seen(units) or math.isfinite(min(self.more, self.less) * self.share)

    def allowance(self, units: int, alpha: float) -> tuple[float, float]:
        """The statistic's possible decrease and increase by unseen events, one-sided at a level.

        Source: n repetitions lack an event with share q with probability (1 - q)^n.
        """
        if self.is_seen(units):
            return 0.0, 0.0
        share = min(self.share, share_limit(units, alpha))
        return share * self.less, share * self.more

    def seen_from(self, units: int) -> int | None:
        """Repetitions with enough expected touched ones, at the rate so far; None at rate 0."""
        if self.touched is None:
            return self.enough
        return math.ceil(self.enough * units / self.touched) if self.touched else None

    def is_seen(self, units: int) -> bool:
        """Whether enough repetitions are touched."""
        return (units if self.touched is None else min(units, self.touched)) >= self.enough


NO_CHANCE = Chance(more=0.0, less=0.0)
"""No unseen events."""


@dataclass(frozen=True)
class ChanceOfTwo:
    """The effect of chance on two cells. Attributes: sizes: for a log ratio, both cells' numbers."""

    reference: Chance = NO_CHANCE
    other: Chance = NO_CHANCE
    sizes: tuple[float, float] | None = None

    def is_known(self, units: int) -> bool:
        """Whether both cells' limits are finite."""
        return self.reference.is_known(units) and self.other.is_known(units)

    def allowance(self, units: int, alpha: float) -> tuple[float, float]:
        """The effect's possible decrease and increase by unseen events, on its scale."""
        less, more = self.other.allowance(units, alpha)
        reference_less, reference_more = self.reference.allowance(units, alpha)
        if self.sizes is None:
            return less + reference_more, more + reference_less
        of_reference, of_other = self.sizes
        return (
            _logarithm(of_other, of_other - less) + _logarithm(of_reference + reference_more, of_reference),
            _logarithm(of_other + more, of_other) + _logarithm(of_reference, of_reference - reference_less),
        )

    def seen_from(self, units: int) -> int | None:
        """Pairs with enough expected touched repetitions in both cells; None at a rate of 0."""
        both = [chance.seen_from(units) for chance in (self.reference, self.other) if chance != NO_CHANCE]
        known = [needed for needed in both if needed is not None]
        return max(known, default=0) if len(known) == len(both) else None


ALL_SEEN = ChanceOfTwo()


def expected_allowance(chance: Chance | ChanceOfTwo, units: int, repetitions: int, alpha: float) -> tuple[float, float]:
    """The expected allowance after some repetitions, at the rate so far. Args: units: repetitions so far."""
    seen = chance.seen_from(units)
    return (0.0, 0.0) if seen is not None and repetitions >= seen else chance.allowance(repetitions, alpha)


def share_limit(units: int, alpha: float = 0.05) -> float:
    """Upper limit on an event's share without an occurrence in n repetitions (exact binomial, one-sided)."""
    return float(1 - alpha ** (1 / units))


def _logarithm(more: float, less: float) -> float:
    return math.log(more / less) if less > 0 and math.isfinite(more) else math.inf
