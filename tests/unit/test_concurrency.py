"""The limit on cells at a time: how it grows, shrinks and waits, window by window; and windows made of reports."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.execution.concurrency import (
    FIRST_PER_PROCESSOR,
    HALF_LIFE_WINDOWS,
    MAX_LIMIT,
    SHRINK_FACTOR,
    ConcurrencyControl,
    Counters,
    FidelityWindow,
    Limit,
    Meter,
    WaitingBudget,
)

STEP = 4

GOOD = FidelityWindow(released=1000, reports=2000)
"""A window in which every cell reported, and no packet was late."""


def limit_of(budget: WaitingBudget | None = None, *, first: int = 16, largest: int = MAX_LIMIT) -> Limit:
    """A limit that grows by STEP after the first trouble."""
    return Limit(budget, first=first, step=STEP, largest=largest)


def late(packets: int) -> FidelityWindow:
    """A window of 1000 packets, so many of them late: of the budget, a tenth for each."""
    return FidelityWindow(released=1000, late=packets, reports=2000)


STRAINED = late(5)
"""Half of the budget: the least that shrinks the limit."""


def values(limit: Limit, *windows: FidelityWindow) -> list[int]:
    """The limit after each window, with as many cells running as may."""
    seen = []
    for window in windows:
        limit.handle_window(window, running=limit.value)
        seen.append(limit.value)
    return seen


def cut_to(value: int) -> Limit:
    """A limit that was cut to `value` and has rested since."""
    limit = limit_of(first=math.ceil(value / SHRINK_FACTOR))
    limit.handle_window(STRAINED, running=limit.value)
    for _ in range(2):
        limit.handle_window(GOOD, running=0)
    assert limit.value == value
    return limit


# The limit


def test_it_begins_with_a_few_for_each_processor_and_grows_by_one_for_each() -> None:
    control = ConcurrencyControl(WaitingBudget(), processors=3, cells=100, jobs=None)
    assert control.limit == 3 * FIRST_PER_PROCESSOR == 6
    control.handle_budget_missed()
    control.handle_budget_missed()
    control.end_window(running=6)
    assert control.limit == 4  # 70 % of 6
    for window in range(1, 4):
        for cell in range(4):
            control.handle(str(cell), Counters(window * 500_000_000, released=1000 * window))
        control.end_window(running=4)
    assert control.limit == 4 + 3


def test_a_limit_does_not_grow_before_half_of_the_cells_have_reported() -> None:
    for reports, value in ((0, 16), (7, 16), (8, 32)):
        limit = limit_of(first=16)
        limit.handle_window(FidelityWindow(released=1000, reports=reports), running=16)
        assert limit.value == value


def test_it_doubles_every_other_window_up_to_the_largest() -> None:
    assert values(limit_of(first=16, largest=100), *[GOOD] * 8) == [32, 32, 64, 64, 100, 100, 100, 100]
    limit = limit_of()
    values(limit, *[GOOD] * 20)
    assert limit.value == MAX_LIMIT


def test_the_first_strain_ends_doubling_for_good() -> None:
    limit = limit_of(first=100)
    # 70 % of 100, two windows of rest, and from then on steps with a window of rest after each.
    assert values(limit, STRAINED) == [70]
    assert values(limit, *[GOOD] * 6) == [
        70,
        70,
        70 + STEP,
        70 + STEP,
        70 + 2 * STEP,
        70 + 2 * STEP,
    ]


def test_it_shrinks_to_a_share_of_what_runs_and_not_of_what_may() -> None:
    limit = limit_of(first=100)
    limit.handle_window(STRAINED, running=40)
    assert limit.value == 28  # 70 % of 40
    limit = limit_of(first=100)
    limit.handle_window(STRAINED, running=1000)
    assert limit.value == 70  # Others than these cells are none of its.


def test_strain_right_after_a_cut_waits_until_the_cut_shows() -> None:
    assert values(limit_of(first=100), *[STRAINED] * 4) == [70, 70, 70, 49]


def test_strain_right_after_growth_waits_one_window() -> None:
    # The second window is remembered: 20 late of 1841 are over a percent. The third decides.
    assert values(limit_of(first=100), GOOD, late(20), GOOD) == [200, 200, 140]


def test_a_limit_that_is_not_reached_does_not_grow() -> None:
    limit = limit_of(first=16)
    for _ in range(10):
        limit.handle_window(GOOD, running=15)
    assert limit.value == 16
    limit.handle_window(GOOD, running=16)
    assert limit.value == 32


def test_between_calm_and_strain_nothing_changes() -> None:
    # From a quarter of the budget the limit no longer grows, and below half it does not shrink yet.
    assert FidelityWindow(released=1000, late=4).pressure(WaitingBudget()) == pytest.approx(0.4, rel=1e-15)
    assert values(limit_of(), *[late(4)] * 10) == [16] * 10
    assert values(limit_of(), *[late(3)] * 10) == [16] * 10
    assert values(limit_of(), late(2)) == [32]
    assert values(limit_of(), late(5)) == [11]


def test_the_largest_share_is_the_pressure() -> None:
    budget = WaitingBudget(starvation=0.05, probe_starvation=0.2)
    assert FidelityWindow(1000, 10, 0.0, 0.0).pressure(budget) == 1.0
    assert FidelityWindow(1000, 0, 0.025, 0.0).pressure(budget) == 0.5
    assert FidelityWindow(1000, 0, 0.0, 0.05).pressure(budget) == 0.25
    assert FidelityWindow(1000, 10, 0.025, 0.4).pressure(budget) == 2.0
    assert FidelityWindow(1000, 10, 0.025, 0.4, exchange_delay=3.0).pressure(budget) == 3.0


def test_a_budget_of_nothing_is_kept_by_nothing_only() -> None:
    budget = WaitingBudget(starvation=0.0, probe_starvation=0.0)
    assert FidelityWindow(1000, 0, 0.0, 0.0).pressure(budget) == 0.0
    assert FidelityWindow(1000, 0, 1e-9, 0.0).pressure(budget) == math.inf


def test_few_packets_say_little() -> None:
    # One late of ten is 10 % and counts as one of a hundred; of a hundred and more it counts as what it is.
    assert FidelityWindow(released=10, late=1).pressure(WaitingBudget()) == 1.0
    assert FidelityWindow(released=100, late=1).pressure(WaitingBudget()) == 1.0
    assert FidelityWindow(released=200, late=1).pressure(WaitingBudget()) == 0.5
    assert FidelityWindow(released=10, late=1).late_share == 0.1
    assert FidelityWindow().late_share == FidelityWindow().pressure(WaitingBudget()) == 0.0


def test_one_bad_moment_among_good_windows_does_not_shrink() -> None:
    # With f = 2^(-1/4), 12 windows of 1000 weigh 1000 (1 - f^12) / (1 - f) = 5499.48 packets: 27 late ones are 0.491 of
    # the budget, 28 are 0.509. Alone, a window with 5 late ones is strained already.
    for packets, shrinks in ((27, False), (28, True)):
        limit = limit_of()
        for _ in range(11):
            limit.handle_window(GOOD, running=0)
        limit.handle_window(late(packets), running=16)
        assert (limit.value < 16) is shrinks
        weight = (1 - 0.5 ** (12 / HALF_LIFE_WINDOWS)) / (1 - 0.5 ** (1 / HALF_LIFE_WINDOWS))
        assert limit.pressure == pytest.approx(packets / (10 * weight), rel=1e-12)  # float64, a dozen steps


def test_a_moment_without_a_processor_is_averaged_too() -> None:
    fade = 0.5 ** (1 / HALF_LIFE_WINDOWS)
    weight = (1 - fade**12) / (1 - fade)
    limit = limit_of(budget=WaitingBudget(starvation=0.05))
    for _ in range(11):
        limit.handle_window(GOOD, running=0)
    limit.handle_window(FidelityWindow(released=1000, starvation=0.1), running=16)
    assert limit.pressure == pytest.approx(0.1 / weight / 0.05, rel=1e-12)  # float64, a dozen steps
    assert limit.pressure < 0.5
    assert limit.value == 16


def test_after_its_memory_a_window_counts_half() -> None:
    limit = limit_of(budget=WaitingBudget(starvation=0.05))
    for starvation in (0.02, *[0.0] * HALF_LIFE_WINDOWS):
        limit.handle_window(FidelityWindow(starvation=starvation), running=0)
    weight = sum(0.5 ** (age / HALF_LIFE_WINDOWS) for age in range(HALF_LIFE_WINDOWS + 1))
    assert limit.pressure == pytest.approx(0.02 * 0.5 / weight / 0.05, rel=1e-12)  # float64, five steps


def test_late_packets_are_forgotten_as_fast_as_those_in_time() -> None:
    limit = limit_of()
    limit.handle_window(late(3), running=0)
    assert limit.pressure == pytest.approx(0.3, rel=1e-15)
    for _ in range(10 * HALF_LIFE_WINDOWS):
        limit.handle_window(FidelityWindow(released=10), running=0)
    # Of three late packets, a thousandth is left, among fewer than count as a rate.
    assert limit.pressure == pytest.approx(3 * 0.5**10 / 100 / 0.01, rel=1e-12)


def test_a_cut_forgets_what_led_to_it() -> None:
    limit = limit_of(first=100)
    limit.handle_window(late(1000), running=100)
    assert (limit.value, limit.pressure) == (70, 100.0)
    limit.handle_window(GOOD, running=70)
    assert limit.pressure == 0.0


@pytest.mark.parametrize(
    ("running", "missed", "shrinks"), [(16, 1, False), (16, 2, True), (80, 4, False), (80, 5, True)]
)
def test_cells_that_missed_their_budget_shrink_it_when_they_are_several(
    running: int, missed: int, shrinks: bool
) -> None:
    limit = limit_of(first=80)
    limit.handle_window(GOOD, running=running, missed=missed)
    # One of a few, or one of twenty, may be bad luck.
    assert limit.value == (math.floor(running * SHRINK_FACTOR) if shrinks else 160 if running == 80 else 80)


def test_after_a_cut_it_grows_by_steps_from_there() -> None:
    limit = cut_to(28)
    assert values(limit, GOOD, GOOD, GOOD) == [32, 32, 36]


@given(
    windows=st.lists(
        st.tuples(st.integers(0, 5000), st.integers(0, 5000), st.floats(0, 1), st.integers(0, 2000), st.integers(0, 50))
    ),
    largest=st.integers(1, 1000),
)
def test_whatever_happens_it_stays_between_one_and_the_largest(
    windows: list[tuple[int, int, float, int, int]], largest: int
) -> None:
    limit = limit_of(largest=largest)
    for released, late_packets, starvation, running, missed in windows:
        before = limit.value
        window = FidelityWindow(released, min(late_packets, released), starvation, starvation, reports=running)
        limit.handle_window(window, running=running, missed=missed)
        assert 1 <= limit.value <= largest
        assert limit.value <= 2 * before
        assert running >= before or limit.value <= before


# The meter


def test_windows_are_differences_of_what_cells_told() -> None:
    meter = Meter()
    meter.handle("a", Counters(1_000_000_000, released=100, late=2, wait_ns=10_000_000, probe_wait_ns=50_000_000))
    assert meter.take() == FidelityWindow(released=100, late=2, starvation=0.01, probe_starvation=0.05, reports=1)
    meter.handle("a", Counters(1_500_000_000, released=180, late=2, wait_ns=15_000_000, probe_wait_ns=50_000_000))
    assert meter.take() == FidelityWindow(released=80, late=0, starvation=0.01, probe_starvation=0.0, reports=1)


def test_cells_are_added_up_and_weighed_by_their_time() -> None:
    meter = Meter()
    meter.handle("a", Counters(1_000_000_000, released=100, late=1, wait_ns=100_000_000))
    meter.handle("b", Counters(3_000_000_000, released=50, late=0, wait_ns=100_000_000))
    assert meter.take() == FidelityWindow(released=150, late=1, starvation=0.05, reports=2)


def test_how_much_longer_exchanges_are_is_the_mean_over_cells_that_reported() -> None:
    meter = Meter()
    meter.handle("a", Counters(1_000_000_000, exchange_delay=0.2))
    meter.handle("b", Counters(1_000_000_000, exchange_delay=0.6))
    assert meter.take().exchange_delay == pytest.approx(0.4, rel=1e-15)
    meter.handle("b", Counters(2_000_000_000, exchange_delay=0.5))
    assert meter.take().exchange_delay == 0.5
    assert meter.take().exchange_delay == 0.0


def test_what_is_told_twice_in_a_window_counts_once() -> None:
    meter = Meter()
    meter.handle("a", Counters(500_000_000, released=40))
    meter.handle("a", Counters(1_000_000_000, released=90))
    assert meter.take().released == 90


def test_a_cell_that_told_nothing_new_is_no_part_of_a_window() -> None:
    meter = Meter()
    meter.handle("a", Counters(1_000_000_000, released=100, late=9, wait_ns=500_000_000))
    meter.take()
    assert meter.take() == FidelityWindow()
    meter.handle("b", Counters(1_000_000_000, released=10, wait_ns=20_000_000))
    assert meter.take() == FidelityWindow(released=10, starvation=0.02, reports=1)


def test_short_steps_wait_for_the_next_window() -> None:
    meter = Meter()
    meter.handle("a", Counters(1_000_000_000, released=100))
    meter.take()
    meter.handle("a", Counters(1_099_999_999, released=105, late=5, wait_ns=99_999_999))
    assert meter.take() == FidelityWindow()
    meter.handle("a", Counters(1_200_000_000, released=120, late=5, wait_ns=100_000_000))
    assert meter.take() == FidelityWindow(released=20, late=5, starvation=0.5, reports=1)


def test_a_step_of_a_tenth_of_a_second_is_long_enough() -> None:
    meter = Meter()
    meter.handle("a", Counters(100_000_000, released=7))
    assert meter.take().released == 7


def test_a_cell_that_ended_is_forgotten() -> None:
    meter = Meter()
    meter.handle("a", Counters(1_000_000_000, released=100))
    meter.take()
    meter.handle("a", Counters(2_000_000_000, released=200))
    meter.forget("a")
    assert meter.take() == FidelityWindow()
    # Run again, it counts from nothing.
    meter.handle("a", Counters(500_000_000, released=30))
    assert meter.take().released == 30


def test_a_cell_that_never_told_anything_can_be_forgotten() -> None:
    meter = Meter()
    meter.forget("a")
    assert meter.take() == FidelityWindow()


def test_the_strictest_budget_of_the_cells_is_that_of_all() -> None:
    budgets = [{}, {"starvation": 0.01}, {"starvation": 0.5, "probe_starvation": 0.1}]
    assert WaitingBudget.strictest(budgets) == WaitingBudget(starvation=0.01, probe_starvation=0.1)
    assert WaitingBudget.strictest([]) == WaitingBudget()
