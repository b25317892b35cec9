"""Differences between two cells.

Cells in one run share their blocks and their seeds: repetition r meets the same losses in both at about the same time.
So they are compared repetition by repetition (paired), if every repetition of one cell has its match in the other;
otherwise by Welch's interval and a permutation test (unpaired).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from crosswind.stats.arrays import Array
from crosswind.stats.chance import NO_CHANCE, Chance, ChanceOfTwo
from crosswind.stats.design import (
    LIGHT,
    MESSAGES_BEYOND,
    MIN_UNITS,
    Design,
    Shortage,
    Tail,
    mean_shortage,
    quantile_name,
    repetition_quantile_shortage,
    trimmed_mean_shortage,
    unpaired_shortage,
)
from crosswind.stats.effect import CONSTANT, PAIRED, WELCH, ComparedStatistic, Effect
from crosswind.stats.estimate import EXACT, TooFewSamples
from crosswind.stats.linearised import NO_SPREAD, Linearised, mean_of
from crosswind.stats.mean import trimmed_mean_of
from crosswind.stats.repetitions import RepetitionKey, Repetitions

INSTANT_NS = 1000.0
"""In virtual time an exchange without delay takes some clock steps of a nanosecond; shorter times have no ratio."""
INSTANT = "both take less than 1 µs, of which there is no ratio"


@dataclass(frozen=True, eq=False)
class Side:
    """One of two compared cells.

    Attributes: exact: whether its values come out the same every time. is_share: whether each is 0 or 1. event: the
        possible effect of chance on a statistic. is_instant: whether its times are shorter than anything they consist
        of.
    """

    units: Repetitions
    design: Design = LIGHT
    exact: bool = False
    is_share: bool = False
    event: Callable[[ComparedStatistic, Repetitions], Chance] | None = field(default=None, repr=False)
    is_instant: bool = False

    def chance(self, statistic: ComparedStatistic, units: Repetitions | None = None) -> Chance:
        """A statistic's unseen events. Args: units: a subset of the repetitions."""
        if self.exact:
            return NO_CHANCE
        if self.is_share:
            return Chance(enough=self.design.least) if self.design.least else NO_CHANCE
        if self.event is None:
            return NO_CHANCE if self.design.tail is Tail.LIGHT else Chance()
        return self.event(statistic, self.units if units is None else units)


def difference(reference: Side, other: Side, statistic: ComparedStatistic = "mean") -> Effect:
    """other - reference. Raises: TooFewSamples where a statistic does not exist.

    A difference of inconstant shares is never surer than one between independent exchanges.
    """
    effect = _effect(reference, other, statistic, is_ratio=False)
    if reference.is_share and other.is_share and not effect.is_constant:
        return independent_at_best(effect, reference, other)
    return effect


def independent_at_best(effect: Effect, reference: Side, other: Side) -> Effect:
    """A difference of two shares, never surer than one between independent exchanges."""
    sides = [reference, other]
    pairs = pairs_of(reference.units, other.units)
    if effect.how == PAIRED and pairs is not None:
        sides = [replace(side, units=side.units.chosen(pairs)) for side in sides]
    return no_surer_than_independent(effect, [side.units for side in sides if not side.exact])


def ratio(reference: Side, other: Side, statistic: ComparedStatistic = "mean") -> Effect:
    """ln(other / reference), linearised.

    Raises: TooFewSamples where a statistic does not exist or is not above 0, and where both sides are instant.
    """
    if reference.is_instant and other.is_instant:
        raise TooFewSamples(INSTANT)
    return _effect(reference, other, statistic, is_ratio=True)


def pairs_of(reference: Repetitions, other: Repetitions) -> list[RepetitionKey] | None:
    """Repetitions common to two cells, with equal seeds; None unless one cell has no others."""
    keys = set(other.keys)
    common = [key for key in reference.keys if key in keys]
    return common if common and len(common) == min(reference.count, other.count) else None


def statistic_of(units: Repetitions, statistic: ComparedStatistic, *, exact: bool = False) -> Linearised:
    """A cell's statistic. A quantile is the mean over the repetitions' own.

    Args:   exact: whether the values come out the same every time: a quantile of few is then exact too.
    Raises: TooFewSamples for repetitions with too few values for their own.
    """
    if statistic == "mean":
        return mean_of(units)
    if statistic == "trimmed":
        return trimmed_mean_of(units)
    q = float(statistic)
    needed = math.ceil(round(MESSAGES_BEYOND / min(q, 1 - q), 9))
    fewest = int((units.sizes + units.censored).min()) if units.count else 0
    if fewest < needed and not exact:
        raise TooFewSamples(
            f"to compare {quantile_name(q)}, each repetition needs {needed} messages, one has {fewest}", needed=needed
        )
    quantiles = units.quantiles(q)
    if not np.isfinite(quantiles).all():
        raise TooFewSamples(f"{quantile_name(q)} of a repetition is an exchange that timed out")
    value = float(quantiles.mean())
    return Linearised(value, quantiles - value, units.n)


def own_values(units: Repetitions, statistic: ComparedStatistic) -> Array:
    """Each repetition's own statistic, shape (units,)."""
    if statistic == "mean":
        return units.means
    if statistic == "trimmed":
        return np.array([trimmed_mean_of(units.chosen([key])).value for key in units.keys])
    return units.quantiles(float(statistic))


def _effect(reference: Side, other: Side, statistic: ComparedStatistic, *, is_ratio: bool) -> Effect:
    size = 1.0 if is_ratio else max(reference.units.largest, other.units.largest)
    return replace(_unrounded(reference, other, statistic, is_ratio=is_ratio), size=size).without_rounding


def _unrounded(reference: Side, other: Side, statistic: ComparedStatistic, *, is_ratio: bool) -> Effect:
    pairs = pairs_of(reference.units, other.units) if not (reference.exact or other.exact) else None
    a, b = reference.units, other.units
    if pairs is not None:
        a, b = _paired(a.chosen(pairs), b.chosen(pairs), statistic)
    elif reference.exact != other.exact:
        _refuse_all_timed_out(b if reference.exact else a, statistic)
    numbers = [statistic_of(units, statistic, exact=side.exact) for units, side in ((a, reference), (b, other))]
    statistics = [_on_scale(number, is_ratio=is_ratio) for number in numbers]
    sizes = (numbers[0].value, numbers[1].value) if is_ratio else None
    chance = ChanceOfTwo(reference.chance(statistic, a), other.chance(statistic, b), sizes)
    value, n = statistics[1].value - statistics[0].value, statistics[0].n + statistics[1].n
    needs = _Needs(reference.design.joined(other.design), statistic, is_ratio, chance)
    if pairs is not None:
        made = _of_one(Linearised(value, statistics[1].parts - statistics[0].parts, n), needs, PAIRED)
        return replace(made, own=lambda: (own_values(a, statistic), own_values(b, statistic)))
    random = [of for of, side in zip(statistics, (reference, other), strict=True) if not side.exact]
    if len(random) == 2:
        return _unpaired(statistics[0], statistics[1], needs)
    if not random:
        return Effect(value, None, 0.0, 1.0, n, 1, needs.design, EXACT, is_ratio)
    sign = 1.0 if other.exact is False else -1.0
    made = _of_one(Linearised(value, sign * random[0].parts, random[0].n), needs, CONSTANT, n)

    def beside_exact() -> tuple[Array, Array]:
        varied = own_values(a if other.exact else b, statistic)
        exact = statistic_of(b if other.exact else a, statistic, exact=True).value
        constant = np.full(varied.size, exact)
        return (varied, constant) if other.exact else (constant, varied)

    return replace(made, own=beside_exact)


def _paired(a: Repetitions, b: Repetitions, statistic: ComparedStatistic) -> tuple[Repetitions, Repetitions]:
    """The pairs with successful exchanges. Raises: TooFewSamples for success in only one of the two cells."""
    if np.any((a.sizes > 0) != (b.sizes > 0)):
        raise TooFewSamples("in a repetition of one of the cells no exchange succeeded")
    for units in (a, b):
        _refuse_all_timed_out(units, statistic)
    keys = [key for key, size in zip(a.keys, a.sizes, strict=True) if size > 0]
    return a.chosen(keys), b.chosen(keys)


def _refuse_all_timed_out(units: Repetitions, statistic: ComparedStatistic) -> None:
    """A repetition with only timeouts has no trimmed mean, and unknown quantiles."""
    if statistic != "mean" and np.any((units.sizes == 0) & (units.censored > 0)):
        raise TooFewSamples("in a repetition no exchange succeeded")


@dataclass(frozen=True)
class _Needs:
    """A comparison's statistic, design, scale, and unseen events."""

    design: Design
    statistic: ComparedStatistic
    is_ratio: bool
    chance: ChanceOfTwo

    def shortage(self, units: int, n: int) -> Shortage | None:
        """The interval's shortage. Args: units: repetitions, or pairs. n: values in these."""
        if isinstance(self.statistic, str):
            few = trimmed_mean_shortage(units, n) if self.statistic == "trimmed" else None
            return mean_shortage(self.design, units, n) or few
        return repetition_quantile_shortage(
            self.design, self.statistic, units, of="ratio" if self.is_ratio else "difference"
        )


def _of_one(linear: Linearised, needs: _Needs, how: str, n: int | None = None) -> Effect:
    """An effect with its error from one set of contributions."""
    of_one_cell = linear.n if how == CONSTANT else linear.n // 2
    short = needs.shortage(linear.units, of_one_cell)
    shortage = None if short is None else short.message
    if short is None and linear.error == 0:
        shortage = NO_SPREAD
    return Effect(
        linear.value,
        linear,
        linear.error,
        linear.freedom,
        n or linear.n,
        linear.units,
        needs.design,
        how,
        needs.is_ratio,
        shortage,
        None if short is None else short.needed,
        chance=needs.chance,
    )


def _unpaired(a: Linearised, b: Linearised, needs: _Needs) -> Effect:
    error, fewest = math.hypot(a.error, b.error), min(a.units, b.units)
    smaller = a if a.units <= b.units else b
    short = needs.shortage(fewest, smaller.n) or unpaired_shortage(needs.design, fewest)
    shortage = None if short is None else short.message
    if short is None and error == 0:
        shortage = NO_SPREAD
    return Effect(
        value=b.value - a.value,
        linear=None,
        error=error,
        freedom=_welch(a, b),
        n=a.n + b.n,
        units=fewest,
        design=needs.design,
        how=WELCH,
        is_ratio=needs.is_ratio,
        shortage=shortage,
        needed=None if short is None else short.needed,
        chance=needs.chance,
        sides=(a.value + a.parts, b.value + b.parts),
    )


def _on_scale(of: Linearised, *, is_ratio: bool) -> Linearised:
    if not is_ratio:
        return of
    if of.value <= 0:
        raise TooFewSamples("a ratio needs two numbers above 0")
    return Linearised(math.log(of.value), of.parts / of.value, of.n)


def _welch(a: Linearised, b: Linearised) -> float:
    """Welch's and Satterthwaite's degrees of freedom."""
    squares = a.error**2, b.error**2
    below = squares[0] ** 2 / a.freedom + squares[1] ** 2 / b.freedom
    return sum(squares) ** 2 / below if below > 0 else float(a.freedom + b.freedom)


def no_surer_than_independent(effect: Effect, random: Sequence[Repetitions]) -> Effect:
    """A difference of shares with the larger standard error: its own, or that between independent exchanges.

    Args: random: the values, 0 or 1, in the inexact ones among both cells.
    """
    if effect.how == EXACT or effect.units < MIN_UNITS:
        return effect
    least = math.hypot(*(_independent_error(units) for units in random))
    if effect.error >= least:
        return effect
    # The interval's own test: a permutation would only know the differences between repetitions.
    shortage = None if effect.needed is None else effect.shortage
    return replace(effect, linear=None, sides=None, error=least, shortage=shortage)


def _independent_error(units: Repetitions) -> float:
    """The standard error of a share over independent exchanges, with one more of either kind.

    Source: Agresti & Caffo, The American Statistician 54 (2000).
    """
    share = (float(units.values.sum()) + 1) / (units.n + 2)
    return math.sqrt(share * (1 - share) / (units.n + 2))
