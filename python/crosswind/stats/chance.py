"""What chance may do that no repetition has shown: a claim that nothing happens has to allow for it.

Where a share q of repetitions is delayed by a rare event and none of them was drawn, their values say nothing of it: no
limit that is computed from them covers. So a limit on which such a claim rests is either of many repetitions that
chance has touched, or it adds what one event more would cost in the largest share of repetitions that may have it.
"""

import math
from dataclasses import dataclass

from crosswind.stats.design import SEEN_UNITS

TOUCHED = SEEN_UNITS
"""Repetitions that chance has touched from which on their own spread bounds what it does (docs/statistics.md)."""

ONE_SIDED = 0.4
"""Of the level of a claim about a design that is not light: its limits err on the side of the tail up to two and a half
times as often as they should (docs/statistics-reference.md)."""


@dataclass(frozen=True)
class Chance:
    """What chance did in the repetitions of a cell, and what it may do in others.

    Attributes:
        touched: repetitions in which it did something; None: in all of them.
        more, less: by how much an event makes a repetition's statistic larger or smaller, at most, in its unit;
            infinite where nobody knows.
        share: of repetitions that have an event, at most, where that follows from the cell.
        enough: repetitions that have to be touched until their own spread bounds what it does.
    """

    touched: int | None = None
    more: float = math.inf
    less: float = math.inf
    share: float = 1.0
    enough: int = TOUCHED

    def is_known(self, units: int) -> bool:
        """Whether so many repetitions bound what it may do, from above or from below."""
        return self.is_seen(units) or math.isfinite(min(self.more, self.less) * self.share)

    def allowance(self, units: int, alpha: float) -> tuple[float, float]:
        """By how much the statistic may be less, and more, than repetitions show, one-sided at a level.

        Source: of a share q of repetitions n have none with probability (1 - q)^n.
        """
        if self.is_seen(units):
            return 0.0, 0.0
        share = min(self.share, share_limit(units, alpha))
        return share * self.less, share * self.more

    def seen_from(self, units: int) -> int | None:
        """Of how many repetitions enough are probably touched, by those so far; None where none was."""
        if self.touched is None:
            return self.enough
        return math.ceil(self.enough * units / self.touched) if self.touched else None

    def is_seen(self, units: int) -> bool:
        """Whether so many repetitions have been touched often enough."""
        return (units if self.touched is None else min(units, self.touched)) >= self.enough


NO_CHANCE = Chance(more=0.0, less=0.0)
"""Nothing happens to a statistic but what its repetitions show."""


@dataclass(frozen=True)
class ChanceOfTwo:
    """The same of an effect. Attributes: sizes: of a ratio the two numbers, whose logarithms are compared."""

    reference: Chance = NO_CHANCE
    other: Chance = NO_CHANCE
    sizes: tuple[float, float] | None = None

    def is_known(self, units: int) -> bool:
        """Whether so many pairs bound what it may do, from above or from below."""
        return self.reference.is_known(units) and self.other.is_known(units)

    def allowance(self, units: int, alpha: float) -> tuple[float, float]:
        """By how much the effect may be less, and more, than pairs show, on its scale."""
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
        """Of how many pairs enough are probably touched in both cells."""
        both = [chance.seen_from(units) for chance in (self.reference, self.other) if chance != NO_CHANCE]
        known = [needed for needed in both if needed is not None]
        return max(known, default=0) if len(known) == len(both) else None


ALL_SEEN = ChanceOfTwo()


def share_limit(units: int, alpha: float = 0.05) -> float:
    """The largest share of repetitions that may be different, where none of some was (exact binomial, one-sided)."""
    return float(1 - alpha ** (1 / units))


def _logarithm(more: float, less: float) -> float:
    return math.log(more / less) if less > 0 and math.isfinite(more) else math.inf
