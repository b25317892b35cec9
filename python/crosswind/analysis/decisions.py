"""What decides a question: of each case whether the answer is shown to be yes, to be no, or neither.

Yes and no are two claims about the effect of a case, and each has to be shown: less than the reference is a yes, not
less the no to it. With a margin the place between them is the smallest effect that matters. Both claims are tested
two-sided, that is each at half of 5 %, as a 95 % interval that lies on one side; and corrected by Holm's method over
all cases of all questions, since a study declares them together. crosswind.stats.beyond says what the claims are about.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from crosswind.analysis.asked import AskedQuestion
from crosswind.analysis.result import AnswerCase, CaseVerdict
from crosswind.stats import EXACT, holm
from crosswind.stats.beyond import agreeing_at, beyond
from crosswind.stats.design import MIN_UNITS, Tail
from crosswind.stats.effect import Effect
from crosswind.stats.majority import repetitions_in_a_row, repetitions_of_most
from crosswind.stats.sample_size import repetitions_needed

ALPHA = 0.05
LEVEL = 0.95


@dataclass(frozen=True)
class Case:
    """Two cells that answer a question: what the result has of them, and their effect as far as there is one.

    Attributes: size: of the two numbers, in the effect's unit; 1 for a ratio.
    """

    question: AskedQuestion
    made: AnswerCase
    effect: Effect | None
    size: float

    @property
    def is_exact(self) -> bool:
        """Whether both cells come out the same every time."""
        return self.effect is not None and self.effect.how == EXACT

    @property
    def margin(self) -> float:
        """The margin on the scale of effects, on which a ratio is a logarithm; 0 without one."""
        bound = self.question.bound or 0.0
        return math.log1p(bound) if self.question.is_ratio else bound


@dataclass(frozen=True)
class _Claims:
    """Two-sided p-values of the two claims that answer a question: each is small where its claim is shown."""

    yes: float
    no: float

    @property
    def verdict(self) -> CaseVerdict:
        if self.yes < ALPHA:
            return "yes"
        return "no" if self.no < ALPHA else "cannot tell"


def decided(cases: Sequence[Case]) -> list[AnswerCase]:
    """With p-values and verdicts. What is exact needs no test; what cannot be tested stays open."""
    claims = {number: made for number, case in enumerate(cases) if (made := _claims(case)) is not None}
    tested = {number: made for number, made in claims.items() if not cases[number].is_exact}
    corrected = _corrected(tested)
    verdicts = [made.verdict for made in corrected.values()]
    open_ = _Open(*(max(len(verdicts) - verdicts.count(verdict), 1) for verdict in ("yes", "no")))
    return [_with_verdict(case, claims.get(number), corrected.get(number), open_) for number, case in enumerate(cases)]


def _corrected(tested: dict[int, _Claims]) -> dict[int, _Claims]:
    """By Holm's method, each kind of claim by itself: of a case only one of them can be right."""
    yes, no = holm([made.yes for made in tested.values()]), holm([made.no for made in tested.values()])
    return {number: _Claims(*both) for number, both in zip(tested, zip(yes, no, strict=True), strict=True)}


@dataclass(frozen=True)
class _Open:
    """Of how many tested cases each claim is not shown, by which Holm's method multiplies the next p-value."""

    yes: int
    no: int

    def for_claim(self, made: _Claims | None) -> int:
        """Of the claim that a case is nearer to; of both the larger number where nothing is known of it."""
        if made is None:
            return max(self.yes, self.no)
        return self.yes if made.yes < made.no else self.no


def _with_verdict(case: Case, made: _Claims | None, corrected: _Claims | None, open_: _Open) -> AnswerCase:
    final = corrected or made
    verdict = "cannot tell" if final is None else final.verdict
    update: dict[str, object] = {"verdict": verdict}
    if corrected is not None:
        update |= {"p_yes": corrected.yes, "p_no": corrected.no}
    if verdict == "cannot tell":
        update["needed"] = _needed(case, open_.for_claim(made), made)
    return case.made.model_copy(update=update)


def _claims(case: Case) -> _Claims | None:
    """What speaks against the answer being yes, and against its being no; None where there is no test."""
    effect, margin, yes = case.effect, case.margin, case.question.yes
    if effect is None:
        return None
    lower, upper = (beyond(effect, place, size=case.size) for place in (-margin, margin))
    if lower is None or upper is None:
        return None
    if yes == "less":
        return _two_sided(lower.below, lower.not_below)
    if yes == "more":
        return _two_sided(upper.above, upper.not_above)
    apart = min(upper.above, lower.below)
    near = max(lower.above, upper.below) if margin > 0 else upper.at
    return _two_sided(apart, near) if yes == "different" else _two_sided(near, apart)


def _two_sided(yes: float, no: float) -> _Claims:
    return _Claims(min(1.0, 2 * yes), min(1.0, 2 * no))


def _needed(case: Case, tests: int, made: _Claims | None) -> int | None:
    """Repetitions of each cell with which a test would probably decide, if the effect is what it seems to be.

    None where no number would, or nothing is known of it. Args: tests: that are corrected for. made: None: not tested.
    """
    effect, margin = case.effect, case.margin
    if effect is None or case.is_exact:
        return None
    alpha = ALPHA / tests
    if case.made.of_most:
        # Just at the margin neither claim is ever shown.
        if case.made.constant and made is not None and min(made.yes, made.no) == 1:
            return None
        places = {"less": (-margin,), "more": (margin,)}.get(case.question.yes, (-margin, margin))
        agreeing = min(agreeing_at(effect, place, size=case.size) for place in places)
        found = repetitions_of_most(agreeing, effect.units, p=alpha / 2)
        # A light design decides by its interval as soon as there is one.
        is_sooner = effect.design.tail is Tail.LIGHT and effect.needed is not None and not case.made.constant
        return min(effect.needed or 0, found or effect.needed or 0) if is_sooner else found
    # That there is an effect at all is tested before an interval is supported.
    fewest = max(effect.needed or 0 if margin else 0, MIN_UNITS)
    if effect.units < 2:
        return fewest
    if effect.error == 0 or (made is None and effect.shortage is not None and effect.needed is None):
        return None
    if case.question.yes in ("less", "more"):
        distance = abs(effect.value - (-margin if case.question.yes == "less" else margin))
    else:
        distance = abs(abs(effect.value) - margin)
    if any(effect.has_ties(place) for place in (-margin, margin)):
        fewest = max(fewest, repetitions_in_a_row(alpha / 2))
    found = repetitions_needed(effect.spread, distance, alpha=alpha)
    return None if found is None else max(fewest, found)
