"""A seeded part of the table of docs/statistics-reference.md: intervals hold, and what is refused is refused by design.

Bounds are binomial: a procedure that covers 93 % falls below its bound once in 10,000 runs of this test.
"""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from coverage.claims import EQUAL, HURDLE, STEADY, wrong_claims
from coverage.curves import fitted
from coverage.families import false_alarms
from coverage.formulas import COEFFICIENTS
from coverage.further import COMPARED, SHARES, compared, shares
from coverage.further_table import FORMULAS, all_tasks, further_text
from coverage.looks import looked_at
from coverage.procedures import tallies
from coverage.table import COMPARISONS, ESTIMATES, all_cells, text_of
from coverage.tally import Tally, shown
from coverage.verdicts import Wrong, verdicts_text, wrong_verdicts
from coverage.verdicts import all_cases as all_families
from coverage.worlds import LN1, LN2, MIX, NORMAL, WORLDS, Size, World
from crosswind.decisions.families import FAMILIES, Correction, Family

TRIALS = 200
FEWER = 100
"""Trials of many repetitions, which take longest."""
DISCRETE = {"median, paired"}
"""Of mix, half of the pairs of medians are equal, and all may be: then there is no spread, and no interval."""


@pytest.mark.parametrize(
    ("world", "size", "trials"),
    [
        (NORMAL, Size(3, 100, 0.2), TRIALS),
        (NORMAL, Size(10, 1, 0.0), TRIALS),
        (LN1, Size(5, 100, 0.2), TRIALS),
        (LN1, Size(20, 100, 0.2), FEWER),
        (MIX, Size(30, 100, 0.2), FEWER),
        (LN2, Size(10, 100, 0.2), FEWER),
    ],
)
def test_every_interval_holds(world: World, size: Size, trials: int) -> None:
    found = tallies(world, size, trials=trials, seed=7)
    least = int(stats.binom(trials, 0.93).ppf(1e-4))
    for name in (*ESTIMATES, *COMPARISONS):
        tally = found[name]
        if tally.refused == trials:
            continue
        assert tally.covered >= least - tally.refused, (name, tally)
        if name not in DISCRETE:
            assert tally.refused == 0, (name, "refused after a look at the values")
    alarms = stats.binom(trials, 0.06).ppf(1 - 1e-4)
    for name in ("false alarm", "TOST error"):
        assert found[name].covered <= alarms, (name, found[name])


@pytest.mark.parametrize(
    ("world", "size", "trials"),
    [(NORMAL, Size(5, 100, 0.2), TRIALS), (LN1, Size(30, 100, 0.2), FEWER), (LN2, Size(5, 100, 0.2), FEWER)],
)
def test_intervals_by_other_statistics_and_at_the_end_of_repeated_looks_hold(
    world: World, size: Size, trials: int
) -> None:
    for found in (compared(world, size, trials=trials, seed=7), looked_at(world, size, trials=trials, seed=7)):
        for name, tally in found.items():
            assert tally.refused in (0, trials), (name, "refused after a look at the values")
            assert tally.refused or tally.covered >= stats.binom(trials, 0.93).ppf(1e-4), (name, tally)


@pytest.mark.parametrize("size", [Size(10, 1, 0.0), Size(5, 100, 0.2), Size(30, 100, 0.2)])
def test_differences_of_two_shares_hold(size: Size) -> None:
    for name, tally in shares(size, trials=TRIALS, seed=7).items():
        assert tally.refused == 0, (name, "refused after a look at the values")
        assert tally.covered >= stats.binom(TRIALS, 0.93).ppf(1e-4), (name, tally)


@pytest.mark.parametrize(
    ("world", "size", "supported"),
    [
        (NORMAL, Size(3, 100, 0.2), True),
        (NORMAL, Size(10, 100, 0.2), True),
        (MIX, Size(5, 100, 0.2), False),
        (MIX, Size(10, 100, 0.2), True),
        (MIX, Size(30, 100, 0.2), True),
    ],
)
def test_coefficients_of_curves_hold_where_means_do(world: World, size: Size, supported: bool) -> None:
    trials = FEWER // 2
    found = fitted(world, size, trials=trials, seed=7)["c"]
    assert found.refused == (0 if supported else trials)
    assert not supported or found.covered >= stats.binom(trials, 0.93).ppf(1e-4), found


@pytest.mark.parametrize("world", [NORMAL, MIX])
@pytest.mark.parametrize("repetitions", [2, 5, 20])
def test_identical_cells_seldom_differ(world: World, repetitions: int) -> None:
    found = false_alarms(world, Size(repetitions, 50, 0.15), families=TRIALS, seed=1)
    assert found * TRIALS <= stats.binom(TRIALS, 0.07).ppf(1 - 1e-4)


def test_the_true_numbers_are_those_of_many_draws() -> None:
    score = np.random.default_rng(1).standard_normal(400_000)
    for world in WORLDS:
        values = world.of_score(score)
        # Half the median's and the trimmed mean's own standard error times four is below 1 %.
        assert world.trimmed(0.2) == pytest.approx(stats.trim_mean(values, 0.2), rel=0.01)
        assert world.quantile(0.95) == pytest.approx(np.quantile(values, 0.95), rel=0.03)


def test_a_table_says_what_is_refused_and_what_has_one_end() -> None:
    whole, refused = Tally(covered=95, trials=100), Tally(refused=100, trials=100)
    bound, some = Tally(covered=99, one_sided=100, trials=100), Tally(covered=95, one_sided=5, trials=100)
    assert [shown(tally) for tally in (whole, refused, bound, some)] == [".950", "–", "≥ .990", ".950*"]
    every = dict.fromkeys((*ESTIMATES, *COMPARISONS), whole) | dict.fromkeys(
        ("false alarm", "false alarm, unpaired", "TOST error", "power", "power, unpaired"), Tally(5, trials=100)
    )
    text = text_of(dict.fromkeys(all_cells(), every), 100)
    assert text.count("| normal, 3 |") == 9
    assert "| LN2, 100 | .050 | .050 | .050 | .050 | .050 |" in text


def test_a_further_table_has_every_distribution_and_size() -> None:
    whole = Tally(covered=95, trials=100)
    names = (*COMPARED, "mean", "median", "p95", "a", "b", "c", *COEFFICIENTS)
    every = dict.fromkeys([*names, *SHARES, *(f"{name}, unpaired" for name in SHARES)], whole)
    text = further_text(dict.fromkeys(all_tasks(), every), 1000)
    assert "1000 runs a number, 500 of curves" in text
    assert text.count("| LN2, 100 |") == 6
    # No other statistic is tried with three repetitions.
    assert "| normal, 3 | – | – | – | .950 | .950 | .950 |" in text
    assert f"| pftk-kappa: kappa {'| .950 ' * len(FORMULAS)}|" in text


@pytest.mark.parametrize("beside", [STEADY, EQUAL])
@pytest.mark.parametrize(
    ("world", "size"), [(MIX, Size(6, 240, 0.2)), (LN2, Size(10, 1, 0.0)), (HURDLE, Size(20, 100, 0.2))]
)
def test_what_is_printed_of_cells_with_equal_means_is_seldom_wrong(world: World, beside: str, size: Size) -> None:
    found = wrong_claims(world, beside, size, runs=TRIALS, seed=7)
    most = stats.binom(TRIALS, 0.025).ppf(1 - 1e-4)
    assert max(found.larger, found.smaller) <= most, found
    # Student's t of the pairs is what is not printed: a steady cell seems the larger one.
    assert beside == EQUAL or found.t_smaller > most, found


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.what)
@pytest.mark.parametrize(
    ("world", "size"),
    [
        (NORMAL, Size(3, 50, 0.2)),
        (NORMAL, Size(10, 1, 0.0)),
        (LN1, Size(10, 1, 0.0)),
        (MIX, Size(20, 50, 0.2)),
        (LN2, Size(20, 1, 0.0)),
    ],
)
def test_families_seldom_have_a_wrong_verdict(family: Family, world: World, size: Size) -> None:
    found = wrong_verdicts(family, world, size, runs=TRIALS, seed=7)
    most = stats.binom(TRIALS, 0.05).ppf(1 - 1e-4)
    assert max(found.yes, found.no) <= most, found


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.what)
def test_without_a_correction_families_would_often_have_a_wrong_verdict(family: Family) -> None:
    plain = replace(family, yes=Correction.NONE, no=Correction.NONE)
    found = wrong_verdicts(plain, NORMAL, Size(10, 1, 0.0), runs=TRIALS, seed=7)
    assert max(found.yes, found.no) > stats.binom(TRIALS, 0.05).ppf(1 - 1e-4), found


def test_a_table_of_verdicts_has_every_family() -> None:
    text = verdicts_text(dict.fromkeys(all_families(), Wrong(100, 2, 3)))
    for family in FAMILIES:
        assert f"| {family.what}, normal {'| 2.0 / 3.0 ' * 8}|" in text
        assert f"| {family.what}, mix {'| – ' * 4}{'| 2.0 / 3.0 ' * 4}|" in text
