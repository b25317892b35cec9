"""The judge: yes, no or cannot tell for each case of a statement, and the repetitions needed to tell.

Yes and no are two claims about one number, inside or outside its range, and each has to be shown. A number is an effect
between two cells, with p-values at every place (crosswind.stats.significance), or anything with an interval at every
level. Families (crosswind.decisions.families) set the corrections.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

from crosswind.decisions.families import ALPHA, Correction, Exploration, Family
from crosswind.decisions.statement import Range, Verdict
from crosswind.stats.design import MIN_UNITS, Tail
from crosswind.stats.effect import Effect
from crosswind.stats.estimate import EXACT, Interval
from crosswind.stats.majority import repetitions_in_a_row, repetitions_of_most
from crosswind.stats.multiplicity import benjamini_hochberg, holm
from crosswind.stats.sample_size import more_to_decide
from crosswind.stats.significance import Significance, agreeing_at, is_sign_test, significance


@dataclass(frozen=True)
class OfEffect:
    """An effect between two cells, on a statement's scale.

    Attributes: effect: if any. place: from a bound to its place on the effect's scale, as the logarithm of a ratio.
    """

    effect: Effect | None
    range: Range
    place: Callable[[float], float] = field(default=lambda bound: bound)

    @property
    def is_exact(self) -> bool:
        """Whether it comes out the same every time by design, and so needs no test."""
        return self.effect is not None and self.effect.how == EXACT

    @property
    def is_testable(self) -> bool:
        """Whether any claim about it can be shown: its pairs, or its design, support a test."""
        return self._sides is not None

    def p(self, *, yes: bool) -> float | None:
        """The p-value for its lying in its range (yes) or outside; None for an exact effect, or without a test."""
        if self.is_exact or self._sides is None:
            return None
        return self._p(self._sides, inside=yes == self.range.inside)

    def shows(self, *, yes: bool, alpha: float) -> bool:
        """Whether it is shown at a level to lie in its range (yes), or outside."""
        return self._sides is not None and self._p(self._sides, inside=yes == self.range.inside) < alpha

    @cached_property
    def _places(self) -> tuple[float | None, float | None]:
        low, high = self.range.low, self.range.high
        return None if low is None else self.place(low), None if high is None else self.place(high)

    @cached_property
    def _sides(self) -> tuple[Significance | None, Significance | None] | None:
        """Its side of each end; None without a test."""
        if self.effect is None:
            return None
        effect = self.effect
        made = [None if at is None else significance(effect, at) for at in self._places]
        if any(sides is None and at is not None for sides, at in zip(made, self._places, strict=True)):
            return None
        return made[0], made[1]

    def _p(self, ends: tuple[Significance | None, Significance | None], *, inside: bool) -> float:
        """Twice the one-sided p-value, as for a two-sided interval."""
        low, high = ends
        is_open = self.range.is_open
        if inside:
            if low is not None and self._places[0] == self._places[1]:
                bounds = [low.at]
            else:
                bounds = [low.above if is_open else low.not_below] if low else []
                bounds += [high.below if is_open else high.not_above] if high else []
            return min(1.0, 2 * max(bounds, default=0.0))
        bounds = [_either(low.not_more, low.not_above) if is_open else low.below] if low else []
        bounds += [_either(high.not_less, high.not_below) if is_open else high.above] if high else []
        return min(1.0, 2 * min(bounds, default=1.0))

    def needed(self, *, yes: bool | None, alpha: float) -> int | None:
        """Repetitions to show it, probably, if the effect is as observed; None if unknown, or impossible."""
        effect, places = self.effect, [place for place in self._places if place is not None]
        if effect is None or self.is_exact or not places:
            return None
        if effect.units < 2:
            return max(effect.needed or 0, MIN_UNITS)
        if is_sign_test(effect) and not self._is_of_absence(yes=yes):
            return self._of_most(effect, places, yes=yes, alpha=alpha)
        return self._by_limits(effect, places, 0 if effect.is_bounded else effect.needed or 0, alpha=alpha / 2)

    def _by_limits(self, effect: Effect, places: Iterable[float], fewest: int, *, alpha: float) -> int | None:
        if effect.design.tail in (Tail.HEAVY, Tail.INFINITE):
            return None
        at = min(places, key=lambda place: abs(effect.value - place))
        if effect.has_ties(at):
            fewest = max(fewest, repetitions_in_a_row(alpha))
        repetitions = effect.repetitions_to_show(at, above=effect.value > at, alpha=alpha)
        return None if repetitions is None else max(fewest, repetitions)

    def _is_of_absence(self, *, yes: bool | None) -> bool:
        """Whether a verdict would also be true under no effect. Args: yes: the verdict; None: the value's own."""
        assert self.effect is not None
        is_inside = self._is_within(self.effect.value) if yes is None else yes == self.range.inside
        low, high = self._places
        is_beyond = (low is not None and low > 0) or (high is not None and high < 0)
        return self._is_within(0.0) if is_inside else is_beyond

    def _is_within(self, value: float) -> bool:
        low, high = self._places
        return (low is None or low < value) and (high is None or value < high)

    def _of_most(self, effect: Effect, places: Iterable[float], *, yes: bool | None, alpha: float) -> int | None:
        constant = effect.is_constant
        # Just at an end neither claim is ever shown.
        if constant and yes is not None and self.p(yes=yes) == 1:
            return None
        agreeing = min(agreeing_at(effect, place) for place in places)
        repetitions = repetitions_of_most(agreeing, effect.units, p=alpha / 2)
        if constant:
            return repetitions
        # A light design decides by its interval as soon as there is one.
        if effect.design.tail is Tail.LIGHT and effect.needed is not None:
            return min(effect.needed, repetitions or effect.needed)
        seen = effect.chance.seen_from(effect.units)
        if repetitions is not None or seen is None:
            return repetitions
        return self._by_limits(effect, places, max(effect.needed or 0, seen), alpha=alpha / 2)


def _either(of_most: float | None, p: float) -> float:
    return p if of_most is None else of_most


@dataclass(frozen=True)
class OfInterval:
    """Anything with an interval at every level.

    Attributes: effect: a cell's statistic, for the repetitions needed; else None. most: about most repetitions, able to
        show a number outside its range.
    """

    make: Callable[[float], Interval]
    range: Range
    effect: Effect | None = None
    most: Callable[[float], Interval] | None = None

    @cached_property
    def at_95(self) -> Interval:
        """With its 95 % interval."""
        return self.make(1 - ALPHA)

    @property
    def is_exact(self) -> bool:
        """As for effects."""
        return self.at_95.is_exact

    @property
    def is_testable(self) -> bool:
        """Whether it has an interval."""
        return self.at_95.is_exact or self.at_95.low is not None or self.at_95.high is not None

    def p(self, *, yes: bool) -> float | None:
        """None: it has intervals alone."""
        del yes
        return None

    def shows(self, *, yes: bool, alpha: float) -> bool:
        """Whether the whole interval lies in the range, or outside."""
        made = self.at_95 if alpha == ALPHA else self.make(1 - alpha)
        ends = (made.value, made.value) if made.is_exact else (made.low, made.high)
        if yes == self.range.inside:
            return self.range.encloses(*ends)
        if self.most is None:
            return self.range.misses(*ends)
        of_most = self.most(1 - alpha)
        return self.range.misses(of_most.low, of_most.high)

    def deciding(self, verdict: Verdict) -> Interval:
        """The interval beside a verdict: that about most repetitions, if it decided."""
        is_outside = verdict != "cannot tell" and (verdict == "yes") != self.range.inside
        return self.most(1 - ALPHA) if is_outside and self.most is not None else self.at_95

    def needed(self, *, yes: bool | None, alpha: float) -> int | None:
        """As for effects, if the value is the true one: its interval narrows with the square root of its units."""
        del yes
        made = self.at_95
        if made.value is None or made.is_exact or not made.units or not self.range.ends:
            return None
        value = made.value
        bound = min(self.range.ends, key=lambda end: abs(value - end))
        if self.effect is not None:
            return self.effect.repetitions_to_show(bound, above=self.effect.value > bound, alpha=alpha / 2)
        more = more_to_decide(value, made.low if value > bound else made.high, bound, made.units)
        return None if more is None else made.units + more


Number = OfEffect | OfInterval
"""A statement's number."""


@dataclass(frozen=True)
class Judged:
    """A case's verdict.

    Attributes: p_yes, p_no: None without a test. Corrected by Holm's method over the family; but p_yes is uncorrected
        for a case to be shown with all others in its statement. needed: repetitions to decide it, probably; None if
        decided, or unknown. If every case is a yes by itself, and the statement is none in its family, those for the
        statement.
    """

    verdict: Verdict
    p_yes: float | None = None
    p_no: float | None = None
    needed: int | None = None


@dataclass(frozen=True)
class Ruling:
    """A statement's verdict, and its cases'."""

    verdict: Verdict | Literal["mixed"]
    cases: Sequence[Judged]


def judge(statements: Sequence[Sequence[Number]], family: Family) -> list[Ruling]:
    """Every statement in a family, in order. Args: statements: each one's numbers."""
    cases = [case for statement_cases in statements for case in statement_cases]
    each = [[case] for case in cases]
    shown_yes = _shown(each, Correction.NONE if family.together else family.yes, yes=True)
    shown_no = _shown(each, family.no, yes=False)
    verdicts: list[Verdict] = [
        "yes" if is_yes else "no" if is_no else "cannot tell" for is_yes, is_no in zip(shown_yes, shown_no, strict=True)
    ]
    p_yes = [case.p(yes=True) for case in cases]
    p_no = _holm([case.p(yes=False) for case in cases], cases)
    if not family.together:
        p_yes = _holm(p_yes, cases)
    whole = _shown(statements, family.yes, yes=True) if family.together else shown_yes
    left = {
        True: _left(statements if family.together else each, whole, family.yes),
        False: _left(each, shown_no, family.no),
    }
    of_cases = iter([
        Judged(verdict, yes, no, None if verdict != "cannot tell" else _needed(case, left))
        for case, verdict, yes, no in zip(cases, verdicts, p_yes, p_no, strict=True)
    ])  # fmt: skip
    judged = [[next(of_cases) for _ in statement_cases] for statement_cases in statements]
    if not family.together:
        return [Ruling(_mixed(made), made) for made in judged]
    return [
        _with_need(Ruling(_together(made, shown=shown), made), statement_cases, lambda case: _needed(case, left))
        for statement_cases, made, shown in zip(statements, judged, whole, strict=True)
    ]


def adjust_exploratory(p_values: Iterable[float | None], tests: Exploration) -> list[float | None]:
    """Exploratory tests' corrected p-values. An impossible test has none and does not count."""
    given = list(p_values)
    correct = holm if tests.correction is Correction.HOLM else benjamini_hochberg
    corrected = iter(correct([p for p in given if p is not None]))
    return [None if p is None else next(corrected) for p in given]


def _with_need(ruling: Ruling, numbers: Sequence[Number], needed: Callable[[Number], int | None]) -> Ruling:
    """With the repetitions needed for a statement true in every case by itself, and not shown in its family."""
    if ruling.verdict != "cannot tell" or any(case.verdict != "yes" for case in ruling.cases):
        return ruling
    cases = [replace(case, needed=needed(number)) for case, number in zip(ruling.cases, numbers, strict=True)]
    return Ruling(ruling.verdict, cases)


def _left(claims: Sequence[Sequence[Number]], shown: Sequence[bool], correction: Correction) -> int:
    """The factor on the next p-value among some claims: the number tested and not yet shown."""
    if correction is Correction.NONE:
        return 1
    open_ = [numbers for numbers, is_shown in zip(claims, shown, strict=True) if not is_shown]
    return max(1, sum(_is_tested(numbers) for numbers in open_))


def _is_tested(numbers: Sequence[Number]) -> bool:
    return not _needs_no_test(numbers) and any(number.is_testable for number in numbers)


def _mixed(cases: Sequence[Judged]) -> Verdict | Literal["mixed"]:
    verdicts = {case.verdict for case in cases}
    return "mixed" if len(verdicts) > 1 else next(iter(verdicts), "cannot tell")


def _together(cases: Sequence[Judged], *, shown: bool) -> Verdict:
    """A statement needing every case: one contradicting case is enough."""
    if any(case.verdict == "no" for case in cases):
        return "no"
    return "yes" if shown else "cannot tell"


def _shown(claims: Sequence[Sequence[Number]], correction: Correction, *, yes: bool) -> list[bool]:
    """The claims shown. All numbers in a claim have to support it."""

    def is_shown(numbers: Sequence[Number], alpha: float) -> bool:
        return bool(numbers) and all(number.shows(yes=yes, alpha=alpha) for number in numbers)

    are_shown = [_needs_no_test(numbers) and is_shown(numbers, ALPHA) for numbers in claims]
    left = [at for at, numbers in enumerate(claims) if _is_tested(numbers)]
    while left:
        # Holm (1979): a claim shown at the level for all the rest leaves a larger level for the others.
        alpha = ALPHA / len(left) if correction is Correction.HOLM else ALPHA
        new = [at for at in left if is_shown(claims[at], alpha)]
        for at in new:
            are_shown[at] = True
        left = [at for at in left if not are_shown[at]] if new and correction is Correction.HOLM else []
    return are_shown


def _needs_no_test(numbers: Sequence[Number]) -> bool:
    """Whether numbers are exact, and so need no correction."""
    return all(number.is_exact for number in numbers)


def _holm(p_values: Sequence[float | None], cases: Sequence[Number]) -> list[float | None]:
    """Corrected; a test by interval alone counts in the family."""
    tested = [_is_tested([case]) for case in cases]
    adjusted = iter(holm([1.0 if p is None else p for p, is_tested in zip(p_values, tested, strict=True) if is_tested]))
    made = [next(adjusted) if is_tested else None for is_tested in tested]
    return [None if p is None else corrected for p, corrected in zip(p_values, made, strict=True)]


def _needed(case: Number, left: dict[bool, int]) -> int | None:
    """Args: left: unshown cases for each claim, Holm's factor on the next p-value."""
    p_yes, p_no = (case.p(yes=yes) for yes in (True, False))
    if p_yes is None or p_no is None or p_yes == p_no:
        return case.needed(yes=None, alpha=ALPHA / max(left.values()))
    yes = p_yes < p_no
    return case.needed(yes=yes, alpha=ALPHA / left[yes])
