"""The judge against Student's t, the binomial and a published example, and Holm's method by hand."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from sys import float_info
from typing import Any

import numpy as np
import pytest
from scipy import stats

from conftest import ROOT
from crosswind.decisions.families import (
    CHANGES,
    CONDITIONS,
    DOCUMENT,
    EXPLORATIONS,
    FAMILIES,
    LEVELS,
    QUESTIONS,
    THRESHOLDS,
    Family,
)
from crosswind.decisions.judge import Number, OfEffect, OfInterval, adjust_exploratory, judge
from crosswind.decisions.statement import Range, range_of
from crosswind.stats.chance import Chance
from crosswind.stats.design import LIGHT, Design, Tail
from crosswind.stats.differences import Side, difference, ratio
from crosswind.stats.estimate import Interval
from crosswind.stats.repetitions import Repetitions
from crosswind.stats.significance import agreeing_at

A, B = np.array([10.1, 10.4, 9.8, 10.0, 10.3]), np.array([10.2, 10.6, 10.1, 9.9, 10.4])
LESS, MORE, SAME, DIFFERENT = (range_of(yes, 0.5, is_ratio=False) for yes in ("less", "more", "same", "different"))
ALL = (LESS, MORE, SAME, DIFFERENT)


def side(values: Sequence[float] | np.ndarray, first: int = 0, design: Design = LIGHT, *, exact: bool = False) -> Side:
    """Repetitions of one value each; `first`: the number of the first one."""
    return Side(Repetitions.of(np.asarray(values), first + np.arange(len(values))), design, exact)


def apart(a: Side, b: Side, wanted: Range) -> OfEffect:
    """The difference of two cells, of some ten."""
    return OfEffect(difference(a, b), wanted)


def times(a: Side, b: Side, wanted: Range) -> OfEffect:
    return OfEffect(ratio(a, b), wanted, lambda bound: log(max(bound, float_info.min)))


def p_of(number: Number) -> tuple[float | None, float | None]:
    """The p-values of its lying in its range, and outside."""
    return number.p(yes=True), number.p(yes=False)


def interval(low: float | None, high: float | None, value: float | None = 1.0, **fields: Any) -> Interval:
    return replace(Interval(value, low, high, n=8, level=0.95, method="m", units=8), **fields)


# A number with p-values, whichever side it lies on.


@pytest.mark.parametrize("wanted", ALL)
@pytest.mark.parametrize("first", [0, 100])
def test_p_values_agree_with_scipy(wanted: Range, first: int) -> None:
    """Pairs by Student's t, cells of other seeds by Welch's; doubled, as of a two-sided interval."""

    def t(place: float, alternative: str) -> float:
        if first:
            return stats.ttest_ind(B - place, A, equal_var=False, alternative=alternative).pvalue
        return stats.ttest_1samp(B - A, place, alternative=alternative).pvalue

    below, above = (lambda place: t(place, "less")), (lambda place: t(place, "greater"))
    within, outside = max(above(-0.5), below(0.5)), 2 * min(below(-0.5), above(0.5))
    yes, no = {
        LESS: (below(-0.5), above(-0.5)), MORE: (above(0.5), below(0.5)), SAME: (within, outside),
        DIFFERENT: (outside, within),
    }[wanted]  # fmt: skip
    number = apart(side(A), side(B, first), wanted)
    assert number.is_testable
    assert not number.is_exact
    # Either end of a range may be the one that a number lies beyond, which the two sides of a test have counted.
    twice = (1 if wanted == DIFFERENT else 2, 1 if wanted == SAME else 2)
    assert p_of(number) == pytest.approx((min(1, twice[0] * yes), min(1, twice[1] * no)))


SLEEP = (
    [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0], [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4],
)  # fmt: skip
"""Hours of sleep that ten patients gained by two drugs (Student 1908)."""


@pytest.mark.parametrize(("first", "p"), [(0, 0.989), (100, 0.890)])
def test_two_one_sided_tests_are_those_of_the_literature(first: int, p: float) -> None:
    """Within half an hour, t(9) = 2.777 and t(17.78) = 1.272 (as the R package TOSTER has it of the same data)."""
    found = apart(side(SLEEP[0]), side(SLEEP[1], first), SAME)
    assert found.p(yes=True) == pytest.approx(min(1.0, 2 * p), abs=1e-3)
    t, freedom = (2.777, 9) if first == 0 else (1.272, 17.78)
    assert found.p(yes=False) == pytest.approx(2 * stats.t.sf(t, freedom), rel=2e-3)


@pytest.mark.parametrize("first", [0, 1000])
def test_the_interval_within_the_margin_and_p_below_alpha_are_one_thing(first: int) -> None:
    rng = np.random.default_rng(21)
    a, b = side(rng.normal(10, 0.5, 500)), side(rng.normal(10, 0.5, 500), first)
    edge = max(abs(end) for end in difference(a, b).limits(0.95))
    for margin in (0.97 * edge, 1.03 * edge):
        found = apart(a, b, Range(-margin, margin))
        assert found.shows(yes=True, alpha=0.05) == (margin > edge)
        assert (found.p(yes=True) < 0.05) == (margin > edge)


def test_a_margin_of_ratios_is_the_same_turned_round() -> None:
    rng = np.random.default_rng(3)
    a, b = side(rng.normal(100, 5, 15)), side(rng.normal(104, 9, 15))
    within = range_of("same", 0.25, is_ratio=True)
    assert (within.low, within.high) == (0.8, 1.25)
    assert p_of(times(a, b, within)) == pytest.approx(p_of(times(b, a, within)))
    assert times(a, b, within).shows(yes=True, alpha=0.05)
    assert not times(a, b, range_of("same", 0.01, is_ratio=True)).shows(yes=True, alpha=0.05)
    # Every ratio is above 0.
    assert p_of(times(a, b, Range(0.0, 1.25)))[0] == p_of(times(a, b, Range(None, 1.25)))[0]
    assert p_of(times(a, b, Range(None, 0.0))) == pytest.approx((1.0, 0.0))


@pytest.mark.parametrize(
    ("pairs", "away", "yes", "no"),
    [
        # Within ±0.5, two-sided: as many heads in a row as there are pairs.
        (6, 0.0, 2 / 64, 1.0),
        (6, 0.25, 2 / 64, 1.0),
        (6, -0.25, 2 / 64, 1.0),
        (5, 0.0, 2 / 32, 1.0),
        (2, 0.0, 2 / 4, 1.0),
        # Beyond it.
        (6, 0.75, 1.0, 2 / 64),
        (6, -0.75, 1.0, 2 / 64),
        # An end belongs to the range.
        (6, 0.5, 2 / 64, 1.0),
        (6, -0.5, 2 / 64, 1.0),
    ],
)
def test_a_difference_that_is_the_same_every_time_has_sign_tests(
    pairs: int, away: float, yes: float, no: float
) -> None:
    values = 10 + np.arange(pairs) / 8
    number = apart(side(values), side(values + away), SAME)
    assert p_of(number) == (yes, no)
    assert p_of(replace(number, range=DIFFERENT)) == (no, yes)


def test_the_end_of_an_open_range_is_outside() -> None:
    values = 10 + np.arange(6) / 8
    edge = times(side(values), side(values * 1.25), Range(1.25, None, is_open=True))
    assert p_of(edge) == (1.0, 2 / 64)
    assert p_of(replace(edge, range=Range(1.25, None))) == (2 / 64, 1.0)
    # Nothing but no difference at all is within 0 and 0.
    alike = apart(side(values), side(values), Range(0.0, 0.0))
    assert p_of(alike) == (2 / 64, 1.0)
    assert p_of(apart(side(A), side(B), Range(0.0, 0.0)))[0] == 1.0


def test_a_single_pair_and_unpaired_constants_prove_nothing() -> None:
    # Of other seeds nothing says that the cells would be the same in the same block.
    for number in (apart(side(A[:1]), side(A[:1]), SAME), apart(side([10.0] * 9), side([10.0] * 9, 100), SAME)):
        assert not number.is_testable
        assert p_of(number) == (None, None)
        assert not any(number.shows(yes=yes, alpha=0.05) for yes in (True, False))
    assert OfEffect(None, SAME).needed(yes=None, alpha=0.05) is None


def test_what_most_repetitions_do_shows_no_absence() -> None:
    """Of 14 pairs of a skewed design all are within the margin, and of a rare event nothing is known."""
    reference = side(10 + np.arange(14) / 8, design=Design(Tail.SKEWED, 0.05))
    same = apart(reference, side(reference.units.values, design=reference.design), SAME)
    assert p_of(same) == (1.0, 1.0)
    less = apart(reference, side(reference.units.values - 1, design=reference.design), Range(None, 0.0, is_open=True))
    assert p_of(less) == (2 * 0.5**14, 1.0)


# A number with an interval at every level.


def of_interval(wanted: Range, at_95: Interval, corrected: Interval | None = None) -> OfInterval:
    """Args: corrected: at any higher level."""
    return OfInterval(lambda level: at_95 if level == pytest.approx(0.95) else corrected or at_95, wanted)


def said(wanted: Range, made: Interval) -> str:
    (ruling,) = judge([[of_interval(wanted, made)]], QUESTIONS)
    return ruling.verdict


def test_an_interval_has_to_be_whole_on_its_side() -> None:
    between, beyond, above = Range(0.5, 2), Range(0.5, 2, inside=False), Range(1, None, is_open=True)
    assert said(between, interval(0.5, 2)) == "yes"
    assert said(between, interval(0.4, 2)) == "cannot tell"
    assert said(between, interval(2.1, 3)) == said(between, interval(0.1, 0.4)) == "no"
    assert [said(beyond, made) for made in (interval(2.1, 3), interval(1, 3), interval(0.6, 1))] == [
        "yes", "cannot tell", "no",
    ]  # fmt: skip
    # A lower bound alone can bear out "at least", and contradict "at most"; it can do nothing else.
    assert said(above, interval(1.1, None)) == "yes"
    assert said(Range(None, 1), interval(1.1, None)) == "no"
    assert said(between, interval(1.1, None)) == "cannot tell"
    # An end belongs to a range, unless that is open.
    assert [said(Range(1, None), interval(1, 2)), said(above, interval(1, 2))] == ["yes", "cannot tell"]
    assert [said(Range(1, None), interval(0, 1)), said(above, interval(0, 1))] == ["cannot tell", "no"]
    # No interval decides nothing, and an exact number everything: exactly 1 is not above 1.
    assert said(between, interval(None, None)) == "cannot tell"
    exactly = [interval(None, None, value, method="exact") for value in (1.0, 1.01, 2.0)]
    assert [said(above, made) for made in exactly] == ["no", "yes", "yes"]
    assert said(between, exactly[-1]) == "yes"


def test_one_interval_among_many_is_not_believed_as_easily() -> None:
    """What a single comparison contradicts at 95 %, one of two does not; what has no interval is no other one."""
    doubtful = of_interval(Range(None, 1.0), interval(1.01, 1.4, 1.2), interval(0.95, 1.5, 1.2))
    beside, absent = (of_interval(Range(None, 1.0), interval(*ends)) for ends in ((0.9, 1.1), (None, None)))
    for family in (QUESTIONS, DOCUMENT, THRESHOLDS):
        assert judge([[doubtful]], family)[0].verdict == "no"
        assert judge([[doubtful], [beside]], family)[0].cases[0].verdict == "cannot tell"
        assert judge([[doubtful], [absent]], family)[0].cases[0].verdict == "no"


# Families, by numbers whose p-values are given.


@dataclass(frozen=True)
class Given:
    """A number with these p-values. None: neither can be shown."""

    yes: float | None
    no: float = 1.0
    is_exact: bool = False

    @property
    def is_testable(self) -> bool:
        return self.yes is not None

    def p(self, *, yes: bool) -> float | None:
        return None if self.is_exact or self.yes is None else self.yes if yes else self.no

    def shows(self, *, yes: bool, alpha: float) -> bool:
        return self.yes is not None and (self.yes if yes else self.no) < alpha

    def needed(self, *, yes: bool | None, alpha: float) -> int | None:
        """By how much its p-value is divided, for the test to see which claim it is asked of, and at which level."""
        return round(0.05 / alpha) * (1 if yes else -1)


def ruled(family: Family, *statements: Sequence[Given]) -> list[tuple[str, ...]]:
    """Of each statement its verdict, and those of its cases."""
    return [(ruling.verdict, *(case.verdict for case in ruling.cases)) for ruling in judge(statements, family)]


def test_questions_step_down_over_all_cases() -> None:
    """0.016 * 3, then 0.024 * 2, then 0.049: each is shown because the one before it is."""
    first, second, third = Given(0.016), Given(0.024), Given(0.049)
    assert ruled(QUESTIONS, [second, first], [third]) == [("yes", "yes", "yes"), ("yes", "yes")]
    # 0.017 * 3 is 0.051: nothing is shown, though all are below 5 %.
    assert ruled(QUESTIONS, [second, Given(0.017)], [third]) == [("cannot tell",) * 3, ("cannot tell",) * 2]
    # The other kind of verdict is corrected by itself; a question whose cases differ is mixed.
    assert ruled(QUESTIONS, [Given(0.016), Given(1.0, 0.016)], [Given(1.0, 0.024)]) == [
        ("mixed", "yes", "no"), ("no", "no"),
    ]  # fmt: skip
    (ruling,) = judge([[Given(0.02), Given(0.01), Given(0.03, 0.9)]], QUESTIONS)
    assert [case.p_yes for case in ruling.cases] == pytest.approx([0.04, 0.03, 0.04])
    assert [case.p_no for case in ruling.cases] == [1.0] * 3


def test_a_statement_stands_with_its_largest_p_value_among_its_document() -> None:
    """A yes needs all cases of a statement, Holm over statements; a no takes one case, Holm over all cases."""
    clear, hardly = [Given(0.02), Given(0.001), Given(0.001)], [Given(0.04), Given(0.0)]
    assert ruled(DOCUMENT, clear, hardly) == [("yes",) * 4, ("yes",) * 3]
    assert ruled(DOCUMENT, [Given(0.03)], hardly) == [("cannot tell", "yes"), ("cannot tell", "yes", "yes")]
    # Three cases: 0.05 / 3 is enough for the first no, 0.05 / 2 for the next.
    assert ruled(DOCUMENT, [Given(0.001), Given(1.0, 0.016)], [Given(1.0, 0.024)]) == [
        ("no", "yes", "no"),
        ("no", "no"),
    ]
    assert ruled(DOCUMENT, [Given(0.001), Given(1.0, 0.017)], [Given(1.0, 0.024)])[0] == (
        "cannot tell", "yes", "cannot tell",
    )  # fmt: skip
    # A case that has to be shown with all others has its own p-value.
    (ruling, _) = judge([[Given(0.03, 0.9)], hardly], DOCUMENT)
    assert (ruling.cases[0].p_yes, ruling.cases[0].p_no) == (0.03, 1.0)


@pytest.mark.parametrize("family", [THRESHOLDS, CONDITIONS])
def test_a_run_passes_where_each_bound_is_kept_and_fails_only_beyond_doubt(family: Family) -> None:
    assert ruled(family, [Given(0.04), Given(0.03)], [Given(0.04)]) == [("yes",) * 3, ("yes",) * 2]
    assert ruled(family, [Given(1.0, 0.024)], [Given(0.04)]) == [("no", "no"), ("yes", "yes")]
    assert ruled(family, [Given(1.0, 0.026)], [Given(0.04)])[0] == ("cannot tell", "cannot tell")


@pytest.mark.parametrize("family", FAMILIES)
def test_what_is_exact_or_untestable_counts_for_nobody(family: Family) -> None:
    exact, untestable, doubtful = Given(0.0, 1.0, is_exact=True), Given(None), Given(0.04)
    assert ruled(family, [doubtful], [exact], [untestable], []) == [
        ("yes", "yes"), ("yes", "yes"), ("cannot tell", "cannot tell"), ("cannot tell",),
    ]  # fmt: skip
    (_, case, none, _) = judge([[doubtful], [exact], [untestable], []], family)
    assert (case.cases[0].p_yes, case.cases[0].p_no) == (None, None)
    assert (none.cases[0].p_yes, none.cases[0].p_no) == (None, None)
    assert ruled(family, [Given(1.0, 0.0, is_exact=True)]) == [("no", "no")]


def test_repetitions_that_would_decide_are_those_of_the_likelier_claim_at_its_level() -> None:
    """Of the claim with the smaller p-value, at 5 % by the number of those that are not shown."""
    shown, nearly, hardly, other = Given(0.001), Given(0.03), Given(0.2, 0.9), Given(0.9, 0.3)

    def needs(family: Family, *statements: Sequence[Given]) -> list[list[int | None]]:
        return [[case.needed for case in ruling.cases] for ruling in judge(statements, family)]

    # Three cases have no yes and four no no.
    assert needs(QUESTIONS, [shown, nearly], [hardly, other]) == [[None, 3], [3, -4]]
    # Two statements are not shown; of cases none contradicts one.
    assert needs(DOCUMENT, [shown], [nearly, hardly], [other]) == [[None], [None, 2], [-4]]
    assert needs(THRESHOLDS, [shown], [nearly, hardly], [other]) == [[None], [None, 1], [-4]]
    # What bears a statement out by itself is not enough among two, and says what would be.
    assert needs(DOCUMENT, [nearly], [nearly]) == [[2], [2]]
    # Of what cannot be tested nobody knows which claim it is: the stricter level.
    assert needs(QUESTIONS, [Given(None)], [hardly], [other]) == [[-2], [2], [-2]]


def test_what_explores_is_corrected_over_what_was_tested() -> None:
    given = [0.01, None, 0.04, 0.03]
    # Of three: by Holm's method times 3, 2 and 1, never falling; by Benjamini and Hochberg's times 3/1, 3/2 and 3/3.
    assert adjust_exploratory(given, CHANGES) == pytest.approx([0.03, None, 0.06, 0.06])
    assert adjust_exploratory(given, LEVELS) == pytest.approx([0.03, None, 0.04, 0.04])


# How many repetitions would decide.


def test_repetitions_of_a_light_effect_are_those_of_a_t_test_with_power() -> None:
    """A mean of 1 and a spread of 2, against 0: with n pairs the noncentral t beyond its critical value in 80 %, on
    average over what the spread of ten pairs may be."""
    noise = stats.norm.ppf((np.arange(10) + 0.5) / 10)
    values = 1 + 2 * (noise - noise.mean()) / noise.std(ddof=1)
    larger = np.sqrt(9 / stats.chi2.isf((np.arange(500) + 0.5) / 500, 9))

    def needed(wanted: Range, *, alpha: float) -> int | None:
        return apart(side(np.zeros(10)), side(values), wanted).needed(yes=True, alpha=alpha)

    def power(pairs: int, distance: float, tail: float) -> float:
        away = distance / 2 * pairs**0.5 / larger
        return float(stats.nct.sf(stats.t.isf(tail, pairs - 1), pairs - 1, away).mean())

    for alpha, wanted, distance in (
        (0.05, Range(0.0, None, is_open=True), 1.0),
        (0.01, Range(-0.5, 0.5, inside=False), 0.5),
    ):
        found = needed(wanted, alpha=alpha)
        assert found is not None
        assert power(found, distance, alpha / 2) == pytest.approx(0.8, abs=0.015)


@pytest.mark.parametrize(("tests", "needed"), [(1, 6), (2, 7), (3, 7), (4, 8), (6, 8), (7, 9)])
def test_repetitions_of_what_never_varies_are_those_of_a_sign_test(tests: int, needed: int) -> None:
    values = 10 + np.arange(3) / 8
    alike = apart(side(values), side(values), SAME)
    assert alike.needed(yes=True, alpha=0.05 / tests) == needed
    assert 2 * 0.5**needed * tests < 0.05 < 2 * 0.5 ** (needed - 1) * tests


def test_pairs_on_the_side_of_no_effect_do_not_say_how_many_show_one() -> None:
    """Few of 30 pairs are far slower: signs never show that, and the mean does once chance has touched enough pairs."""
    design = Design(Tail.SKEWED, 0.05, seen=150)
    few = Side(Repetitions.of(np.full(30, 10.0)), design, event=lambda *_: Chance(3, 5.0, 0.0))
    slower = replace(few, units=Repetitions.of(np.where(np.arange(30) < 3, 40.0, 10.0)))
    number = apart(few, slower, Range(None, 1.0))
    assert number.effect is not None
    assert agreeing_at(number.effect, 1.0) == agreeing_at(number.effect, 0.0) == 3
    assert agreeing_at(number.effect, -1.0) == 0
    shown = number.effect.repetitions_to_show(1.0, above=True, alpha=0.025)
    assert shown is not None
    assert number.needed(yes=False, alpha=0.05) == max(150, shown)


def test_an_interval_narrows_with_the_root_of_its_repetitions() -> None:
    """From 1 ± 0.4 to 1.2: where half of the width is left of 0.2, of four times as many, and 80 % of power more."""
    found = OfInterval(lambda level: interval(0.6, 1.4), Range(None, 1.2)).needed(yes=None, alpha=0.05)
    assert found == 66  # 8 * 4 * 1.4294^2 = 65.4
    for value, low, wanted in ((1.2, 0.6, Range(None, 1.2)), (1.0, None, Range(0.5, None))):
        made = OfInterval(lambda level, value=value, low=low: interval(low, 1.4, value), wanted)  # type: ignore[misc]
        assert made.needed(yes=None, alpha=0.05) is None


def test_the_documentation_has_every_family() -> None:
    page = (ROOT / "docs/statistics.md").read_text(encoding="utf-8")
    for family in FAMILIES:
        assert f"\n| {family.what} | {family.over} | {family.yes.value} | {family.no.value} | two-sided, 5 % |" in page
    for tests in EXPLORATIONS:
        assert f"\n| {tests.what} | {tests.over} | {tests.correction.value}" in page


_PLACES: list[tuple[str, float | None, bool, Range]] = [
    ("less", None, False, Range(None, 0.0, is_open=True)),
    ("less", 0.25, True, Range(None, 0.8, is_open=True)),
    ("more", 5.0, False, Range(5.0, None, is_open=True)),
    ("rises", None, True, Range(1.0, None, is_open=True)),
    ("falls", None, False, Range(None, 0.0, is_open=True)),
    ("same", 0.25, True, Range(0.8, 1.25)),
    ("different", 5.0, False, Range(-5.0, 5.0, inside=False)),
    ("different", None, True, Range(1.0, 1.0, inside=False)),
]


@pytest.mark.parametrize(("yes", "margin", "is_ratio", "expected"), _PLACES)
def test_words_have_their_ranges(yes: str, margin: float | None, is_ratio: bool, expected: Range) -> None:
    assert range_of(yes, margin, is_ratio=is_ratio) == expected


def test_a_place_is_on_the_scale_of_the_effect() -> None:
    """An exponent of 0.5 from 1 to 16 is four times as much."""
    place: Callable[[float], float] = lambda bound: bound * log(16)  # noqa: E731
    values = 10 + np.arange(8) / 8
    number = OfEffect(ratio(side(values), side(4 * values)), Range(0.4, 0.6), place)
    assert p_of(number) == (2 / 256, 1.0)
    assert exp(place(0.5)) == pytest.approx(4)
