"""Whether the statements of documents hold, each decided by its rule on the bounds of intervals.

A claim has parts: a number of every cell, or of every two cells that the rule compares. It holds where every part does,
so that each may be judged at 95 % by itself; to find one part among many that does not hold, its interval is made at
the level 1 - 0.05 / parts (Bonferroni). So each of the two verdicts is wrong in 5 % of studies at most.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, pairwise
from typing import Literal

from crosswind.analysis.asked import AskedClaim, absence_of
from crosswind.analysis.axes import axis_of
from crosswind.analysis.cells import CellData
from crosswind.analysis.comparisons import compared_statistic, other_levels
from crosswind.analysis.effects import exponent_of, mean_error, over_model, per_step
from crosswind.analysis.estimates import deciding_estimate
from crosswind.analysis.predictions import predictions_of
from crosswind.analysis.result import ClaimPart, ClaimResult, ClaimVerdict, Interval, ModelPrediction
from crosswind.metrics import METRICS
from crosswind.stats import TooFewSamples, difference, ratio, refused
from crosswind.stats.beyond import effect_estimate, size_of

ALPHA = 0.05

Scale = Literal["value", "difference", "ratio", "exponent", "slope", "error"]
_Make = Callable[[float], Interval]


@dataclass(frozen=True)
class Range:
    """Where a number has to lie: between low and high (None: no such end), or outside of them.

    Attributes: is_open: whether the ends themselves are on the other side.
    """

    low: float | None
    high: float | None
    inside: bool = True
    is_open: bool = False

    def verdict(self, at_95: Interval, corrected: Interval) -> ClaimVerdict:
        """What an interval says. Args: corrected: the same at the level of all parts together."""
        if self._is_within(at_95) if self.inside else self._is_beyond(at_95):
            return "holds"
        if self._is_beyond(corrected) if self.inside else self._is_within(corrected):
            return "does not hold"
        return "cannot tell"

    def _is_within(self, effect: Interval) -> bool:
        """Whether the whole interval lies between low and high."""
        least, most = _ends(effect)
        return (self.low is None or (least is not None and self._reaches(least, self.low))) and (
            self.high is None or (most is not None and self._reaches(-most, -self.high))
        )

    def _is_beyond(self, effect: Interval) -> bool:
        """Whether the whole interval lies below low, or above high."""
        least, most = _ends(effect)
        below = self.low is not None and most is not None and not self._reaches(most, self.low)
        above = self.high is not None and least is not None and not self._reaches(-least, -self.high)
        return below or above

    def _reaches(self, number: float, end: float) -> bool:
        return number > end if self.is_open else number >= end


def claims_of(asked: Iterable[AskedClaim], data: Sequence[CellData]) -> list[ClaimResult]:
    """The verdict on every claim of a run. One about cells that the run does not have says so."""
    return [_judged(claim, data) for claim in asked]


@dataclass(frozen=True)
class _Part:
    """A number of a claim: of which cells, and its interval at any level."""

    reference: str | None
    other: str | None
    fixed: dict[str, str]
    cells: list[int]
    make: _Make
    violated: Sequence[str] = ()


def _judged(claim: AskedClaim, data: Sequence[CellData]) -> ClaimResult:
    metric = METRICS[claim.metric]
    own = [cell for cell in data if cell.cell in claim.cells and metric.applies(cell.settings.workload)]
    parts = list(_PARTS[claim.rule](claim, own))
    bounds = Range(claim.low, claim.high, claim.rule != "differs", claim.rule in ("rises", "falls"))
    judged = [_judge(part, bounds, len(parts)) for part in parts]
    scale, absent = _scale(claim), _incomplete(claim, data)
    verdict = _together([part.verdict for part in judged])
    return ClaimResult(
        says=claim.says,
        source=claim.source,
        metric=claim.metric,
        statistic=claim.statistic,
        rule=claim.rule,
        factor=claim.factor,
        model=claim.model,
        scale=scale,
        unit="1" if scale in ("ratio", "exponent", "error") else metric.unit.name,
        low=claim.low,
        high=claim.high,
        inside=bounds.inside,
        # One part that contradicts a statement is enough; those that bear it out have to be all of them.
        verdict="cannot tell" if absent and (verdict == "holds" or claim.rule == "model-error") else verdict,
        parts=judged,
        reason=absent if judged else _absence(claim),
        note=claim.note,
    )


def _judge(part: _Part, bounds: Range, parts: int) -> ClaimPart:
    effect = part.make(1 - ALPHA)
    return ClaimPart(
        reference=part.reference,
        other=part.other,
        fixed=part.fixed,
        cells=part.cells,
        effect=effect,
        verdict=bounds.verdict(effect, part.make(1 - ALPHA / parts) if parts > 1 else effect),
        violated=list(part.violated),
    )


def _together(verdicts: Sequence[ClaimVerdict]) -> ClaimVerdict:
    if "does not hold" in verdicts:
        return "does not hold"
    return "holds" if verdicts and all(verdict == "holds" for verdict in verdicts) else "cannot tell"


def _incomplete(claim: AskedClaim, data: Sequence[CellData]) -> str | None:
    """What the run lacks of what the claim was declared for; None where it has all."""
    absent = [f"{claim.factor} {level.level}" for level in claim.compare if not level.cells]
    return absence_of((*claim.missing, *absent), claim.cells, {cell.cell for cell in data})


def _absence(claim: AskedClaim) -> str:
    """Why a claim has no parts."""
    where = ", ".join(f"{key} {level}" for key, level in claim.where.items())
    if not claim.cells:
        return f"this run has no cell with {where}"
    missing = [level.level for level in claim.compare if not level.cells]
    if missing:
        return f"this run has no cell with {claim.factor} {' or '.join(missing)}{f', {where}' if where else ''}"
    if claim.model is not None:
        return f"{claim.model} says nothing of {claim.metric} in these cells"
    return f"this run has no two cells that differ in {claim.factor} alone" if claim.factor else "no cell was executed"


def _scale(claim: AskedClaim) -> Scale:
    named: dict[str, Scale] = {
        "value": "value", "power-law": "exponent", "slope": "slope", "difference": "difference", "model-error": "error",
    }  # fmt: skip
    if claim.rule in ("equivalent", "differs") and not claim.is_ratio:
        return "difference"
    return named.get(claim.rule, "ratio")


def _of_cells(claim: AskedClaim, cells: Sequence[CellData]) -> Iterator[_Part]:
    for cell in cells:
        yield _Part(None, None, dict(cell.levels), [cell.cell], partial(_value, claim, cell))


def _of_model(claim: AskedClaim, cells: Sequence[CellData]) -> Iterator[_Part]:
    """Of every cell that the model says something of, what was measured divided by it."""
    for cell in cells:
        prediction = _prediction(claim, cell)
        if prediction is not None and prediction.value:
            make = partial(_over_model, claim, cell, prediction.value)
            yield _Part(None, None, dict(cell.levels), [cell.cell], make, prediction.violated)


def _of_model_error(claim: AskedClaim, cells: Sequence[CellData]) -> Iterator[_Part]:
    """One part: how far the model is off on average over the cells that it says something of."""
    made = [(cell, _prediction(claim, cell)) for cell in cells]
    found = [(cell, prediction) for cell, prediction in made if prediction is not None and prediction.value]

    def make(level: float) -> Interval:
        each = 1 - (1 - level) / len(found)
        measured = [_value(claim, cell, each) for cell, _ in found]
        return mean_error(measured, [prediction.value or 0.0 for _, prediction in found])

    if found:
        violated = list(dict.fromkeys(broken for _, prediction in found for broken in prediction.violated))
        yield _Part(None, None, _common(cell for cell, _ in found), [cell.cell for cell, _ in found], make, violated)


def _common(cells: Iterable[CellData]) -> dict[str, str]:
    """The levels in which some cells are the same."""
    first, *others = [cell.levels for cell in cells]
    return {key: level for key, level in first.items() if all(other.get(key) == level for other in others)}


def _of_two(claim: AskedClaim, cells: Sequence[CellData]) -> Iterator[_Part]:
    for group in _groups(claim, cells):
        yield from (_compared(claim, *pair) for pair in combinations(group, 2))


def _of_neighbours(claim: AskedClaim, cells: Sequence[CellData]) -> Iterator[_Part]:
    factor = str(claim.factor)
    places = axis_of(factor, cells).places
    for group in _groups(claim, cells):
        for lower, upper in pairwise(sorted(group, key=lambda cell: places[cell.cell])):
            if claim.rule != "power-law" or places[lower.cell] > 0:
                yield _compared(claim, lower, upper, (places[lower.cell], places[upper.cell]))


_PARTS: Mapping[str, Callable[[AskedClaim, Sequence[CellData]], Iterator[_Part]]] = {
    "value": _of_cells,
    "model": _of_model,
    "model-error": _of_model_error,
    "ratio": _of_two,
    "difference": _of_two,
    "equivalent": _of_two,
    "differs": _of_two,
    "rises": _of_neighbours,
    "falls": _of_neighbours,
    "power-law": _of_neighbours,
    "slope": _of_neighbours,
}
"""The parts of a claim, by its rule (crosswind.study.claims says what each rule means)."""


def _groups(claim: AskedClaim, cells: Sequence[CellData]) -> list[list[CellData]]:
    """Cells that differ in the claim's factor alone, in the order of `compare` where the claim names levels."""
    factor = str(claim.factor)
    groups: dict[tuple[tuple[str, str], ...], list[CellData]] = {}
    for cell in cells:
        if factor in cell.levels:
            groups.setdefault(tuple(other_levels(cell, factor).items()), []).append(cell)
    if not claim.compare:
        return list(groups.values())
    orders = {cell: order for order, level in enumerate(claim.compare) for cell in level.cells}
    named = [[cell for cell in group if cell.cell in orders] for group in groups.values()]
    return [sorted(group, key=lambda cell: orders[cell.cell]) for group in named]


def _compared(
    claim: AskedClaim, reference: CellData, other: CellData, places: tuple[float, float] | None = None
) -> _Part:
    """Two cells by the scale of the claim. Args: places: of both along the factor, for a law about its numbers."""
    factor = str(claim.factor)

    def make(level: float) -> Interval:
        scale = _scale(claim)
        effect = _effect(claim, reference, other, level, is_ratio=scale in ("ratio", "exponent"))
        if places is None or scale not in ("exponent", "slope"):
            return effect
        return exponent_of(effect, *places) if scale == "exponent" else per_step(effect, places[1] - places[0])

    fixed, cells = other_levels(reference, factor), [reference.cell, other.cell]
    return _Part(reference.levels[factor], other.levels[factor], fixed, cells, make)


def _effect(claim: AskedClaim, reference: CellData, other: CellData, level: float, *, is_ratio: bool) -> Interval:
    """The difference or the ratio of two cells, or why there is none."""
    unit = "1" if is_ratio else METRICS[claim.metric].unit.name
    try:
        sides = reference.side(claim.metric), other.side(claim.metric)
        effect = (ratio if is_ratio else difference)(*sides, compared_statistic(claim.statistic))
        size = 1.0 if is_ratio else size_of(*sides)
        return Interval.of(effect_estimate(effect, size=size, unit=unit, level=level))
    except TooFewSamples as error:
        n = sum(cell.samples[claim.metric].n for cell in (reference, other) if claim.metric in cell.samples)
        return Interval.of(refused(error.message, n=n, level=level, unit=unit))


def _value(claim: AskedClaim, cell: CellData, level: float) -> Interval:
    """The claim's statistic of a cell."""
    return deciding_estimate(cell, claim.metric, claim.statistic, level=level)


def _over_model(claim: AskedClaim, cell: CellData, predicted: float, level: float) -> Interval:
    return over_model(_value(claim, cell, level), predicted)


def _prediction(claim: AskedClaim, cell: CellData) -> ModelPrediction | None:
    made = predictions_of([str(claim.model)], {}, cell)
    return next((prediction for prediction in made if prediction.metric == claim.metric), None)


def _ends(effect: Interval) -> tuple[float | None, float | None]:
    """The ends of an interval; of an exact number both are the number."""
    return (effect.value, effect.value) if effect.is_exact else (effect.low, effect.high)
