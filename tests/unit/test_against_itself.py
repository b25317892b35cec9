"""A against A: cells that are the same alarm as often as they should, and cells that are not are found."""

import numpy as np

from crosswind.analysis.against_itself import ALLOWED, Alarms, count_alarms
from crosswind.stats.differences import Side
from crosswind.stats.repetitions import Repetitions

REPETITIONS, MESSAGES = 80, 20


def cells(*shifts: float, common: bool) -> list[Side]:
    """Cells whose messages are `shift` later, with ten times as much between repetitions as between messages."""
    rng = np.random.default_rng(1)
    of_block = rng.normal(0, 10, REPETITIONS)
    made = []
    for shift in shifts:
        own = of_block if common else rng.normal(0, 10, REPETITIONS)
        values = 100 + shift + own[:, None] + rng.normal(0, 1, (REPETITIONS, MESSAGES))
        keys = [(number, number) for number in range(REPETITIONS)]
        made.append(Side(Repetitions.of(values.ravel(), np.repeat(np.arange(REPETITIONS), MESSAGES), keys=keys)))
    return made


def alarms(given: list[Side], repetitions: int, *, paired: bool) -> Alarms:
    counted = count_alarms(given, "mean", repetitions=repetitions, paired=paired, families=400, seed=2)
    assert counted is not None
    return counted


def test_identical_cells_alarm_seldom() -> None:
    for repetitions in (5, 8, 20):
        assert alarms(cells(0, 0, 0, 0, common=False), repetitions, paired=False).share <= ALLOWED + 0.02
    assert alarms(cells(0, 0, 0, 0, common=True), 5, paired=True).share <= ALLOWED + 0.02


def test_a_cell_that_differs_is_found() -> None:
    counted = alarms(cells(0, 0, 2, 0, common=True), 20, paired=True)
    assert counted.share > 0.95
    assert counted.is_finding
    apart = alarms(cells(0, 0, 0, 30, common=False), 8, paired=False)
    assert apart.share > 0.95
    assert apart.is_finding


def test_two_repetitions_show_nothing() -> None:
    assert alarms(cells(0, 0, 0, 1000, common=True), 2, paired=True).alarms == 0


def test_without_enough_repetitions_there_is_no_family() -> None:
    given = cells(0, 0, 0, 0, common=True)
    assert count_alarms(given, "mean", repetitions=21, paired=False, families=10, seed=1) is None
    assert count_alarms(given, "mean", repetitions=81, paired=True, families=10, seed=1) is None


def test_what_is_allowed_takes_into_account_what_chance_adds() -> None:
    few, many = Alarms(5, True, 500, 0, independent=4), Alarms(5, False, 500, 0, independent=500)
    assert round(few.allowed, 3) == 0.28
    assert round(many.allowed, 3) == 0.089
    assert not Alarms(5, True, 500, 139, independent=4).is_finding
    assert Alarms(5, False, 500, 45, independent=500).is_finding
