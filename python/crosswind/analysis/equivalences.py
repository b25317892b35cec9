"""Whether the levels of a factor make a difference that matters: a study's claims, each against its margin."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from crosswind.analysis.asked import AskedEquivalence, absence_of
from crosswind.analysis.cells import CellData
from crosswind.analysis.comparisons import compared_statistic, other_levels
from crosswind.analysis.result import EquivalenceClaim, EquivalencePair, Interval
from crosswind.metrics import METRICS, Metric
from crosswind.stats import (
    EquivalenceTest,
    TooFewSamples,
    holm,
    margin_of_ratio,
    refused,
    tost,
    tost_ratio,
    tost_shares,
)
from crosswind.stats.beyond import share_limit
from crosswind.stats.effect import Statistic
from crosswind.stats.majority import repetitions_in_a_row

ALPHA = 0.05


def equivalences_of(asked: Sequence[AskedEquivalence], data: Sequence[CellData]) -> list[EquivalenceClaim]:
    """The claims of a run. One whose factor does not vary, as in a quick variant, is left out.

    P-values are corrected over all pairs of all claims: a study declares them together.
    """
    made = [claim for claim in (_claim(claim, data) for claim in asked) if claim.pairs]
    pairs = iter(_corrected([pair for claim in made for pair in claim.pairs]))
    return [claim.model_copy(update={"pairs": [next(pairs) for _ in claim.pairs]}) for claim in made]


def _claim(claim: AskedEquivalence, data: Sequence[CellData]) -> EquivalenceClaim:
    metric = METRICS[claim.metric]
    test = _Test(metric, compared_statistic(claim.statistic), claim.is_ratio, claim.bound)
    groups: dict[tuple[tuple[str, str], ...], list[CellData]] = {}
    for cell in data:
        if cell.cell in claim.cells and claim.factor in cell.levels and metric.applies(cell.settings.workload):
            groups.setdefault(tuple(other_levels(cell, claim.factor).items()), []).append(cell)
    pairs = [
        _pair(test, claim.factor, reference, other)
        for group in groups.values()
        for reference, other in combinations(group, 2)
    ]
    low, high = margin_of_ratio(claim.bound) if claim.is_ratio else (-claim.bound, claim.bound)
    return EquivalenceClaim(
        title=claim.title,
        metric=claim.metric,
        statistic=claim.statistic,
        factor=claim.factor,
        margin=claim.margin,
        scale="ratio" if claim.is_ratio else "difference",
        unit="1" if claim.is_ratio else metric.unit.name,
        low=low,
        high=high,
        alpha=ALPHA,
        note=claim.note,
        reason=absence_of(claim.missing, claim.cells, {cell.cell for cell in data}),
        pairs=pairs,
    )


@dataclass(frozen=True)
class _Test:
    """What two cells are tested for: whether a statistic of a metric is within `bound`, by ratio or difference."""

    metric: Metric
    statistic: Statistic
    is_ratio: bool
    bound: float

    def of(self, reference: CellData, other: CellData) -> EquivalenceTest:
        """Raises: TooFewSamples."""
        sides = reference.side(self.metric.name), other.side(self.metric.name)
        if self.metric.is_share:
            return tost_shares(*sides, margin=self.bound, alpha=ALPHA)
        if self.is_ratio:
            return tost_ratio(*sides, margin=self.bound, statistic=self.statistic, alpha=ALPHA)
        unit = self.metric.unit.name
        return tost(*sides, margin=self.bound, unit=unit, statistic=self.statistic, alpha=ALPHA)


def _pair(test: _Test, factor: str, reference: CellData, other: CellData) -> EquivalencePair:
    tested: EquivalenceTest | None = None
    try:
        tested = test.of(reference, other)
        effect = Interval.of(tested.estimate)
    except TooFewSamples as error:
        name, unit = test.metric.name, test.metric.unit.name
        n = sum(cell.samples[name].values.size for cell in (reference, other) if name in cell.samples)
        effect = Interval.of(refused(error.message, n=n, level=1 - 2 * ALPHA, unit=unit))
    random = None if effect.is_exact else tested
    constant = tested is not None and tested.is_constant
    return EquivalencePair(
        reference=reference.levels[factor],
        other=other.levels[factor],
        fixed=other_levels(reference, factor),
        reference_cell=reference.cell,
        other_cell=other.cell,
        effect=effect,
        p=random.p if random else None,
        p_holm=None,
        p_beyond=random.p_beyond if random else None,
        p_beyond_holm=None,
        of_most=tested is not None and tested.of_most,
        constant=constant,
        exceptions_at_most=share_limit(effect.units, level=1 - ALPHA) if constant else None,
        verdict=_exact_verdict(tested) if tested and effect.is_exact else "cannot tell",
    )


def _exact_verdict(tested: EquivalenceTest) -> Literal["equivalent", "differs"]:
    return "equivalent" if tested.equivalent else "differs"


def _corrected(pairs: Sequence[EquivalencePair]) -> list[EquivalencePair]:
    """With Holm's correction, each of the two claims by itself: of a pair only one of them can be wrong."""
    within = iter(holm([pair.p for pair in pairs if pair.p is not None]))
    beyond = iter(holm([pair.p_beyond for pair in pairs if pair.p_beyond is not None]))
    judged = [pair if pair.p is None else _judged(pair, next(within), next(beyond)) for pair in pairs]
    tested = [pair.verdict for pair in judged if pair.p is not None]
    open_ = _Open(*(len(tested) - tested.count(verdict) for verdict in ("equivalent", "differs")))
    return [pair.model_copy(update={"needed": open_.needed(pair)}) for pair in judged]


def _judged(pair: EquivalencePair, within: float, beyond: float) -> EquivalencePair:
    verdict: Literal["equivalent", "differs", "cannot tell"] = "cannot tell"
    if within < ALPHA:
        verdict = "equivalent"
    elif beyond < ALPHA:
        verdict = "differs"
    return pair.model_copy(update={"p_holm": within, "p_beyond_holm": beyond, "verdict": verdict})


@dataclass(frozen=True)
class _Open:
    """Of how many tested pairs each claim is not shown, by which Holm's method multiplies the next p-value."""

    equivalent: int
    differs: int

    def needed(self, pair: EquivalencePair) -> int | None:
        """Repetitions that decide a pair which is open and the same in each of them.

        None for all other pairs, and at an end of the margin, where no number does.
        """
        if not pair.constant or pair.verdict != "cannot tell" or pair.p is None or pair.p_beyond is None:
            return None
        if pair.p < 1:
            return repetitions_in_a_row(ALPHA / self.equivalent)
        return repetitions_in_a_row(ALPHA / self.differs / 2) if pair.p_beyond < 1 else None
