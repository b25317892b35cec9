"""Times of day over a clock that is set while a session runs."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.store.wallclock import JUMP_S, WallClock, utc_now

START_S = 1_000_000_000.0
"""2001-09-09T01:46:40 UTC."""


class Machine:
    """A machine's two clocks. Halves and quarters of seconds are exact in float64, and so is every answer here."""

    def __init__(self) -> None:
        self.uptime_s = 50.0
        self.set_by_s = 0.0

    def clock(self) -> WallClock:
        return WallClock(lambda: START_S + self.uptime_s - 50.0 + self.set_by_s, lambda: self.uptime_s)


def test_stamps_are_the_time_of_day_in_milliseconds() -> None:
    machine = Machine()
    clock = machine.clock()
    assert clock.stamp() == "2001-09-09T01:46:40.000+00:00"
    machine.uptime_s += 80.25
    assert clock.stamp() == "2001-09-09T01:48:00.250+00:00"


def test_a_clock_that_goes_is_no_jump() -> None:
    machine = Machine()
    clock = machine.clock()
    assert clock.jump() is None
    machine.uptime_s += 86_400.0
    assert clock.jump() is None


@pytest.mark.parametrize("by_s", [3600.0, -3600.0, JUMP_S, -JUMP_S])
def test_a_jump_is_reported_once_and_moves_no_stamp(by_s: float) -> None:
    machine = Machine()
    clock = machine.clock()
    machine.set_by_s = by_s
    machine.uptime_s += 0.5
    assert clock.jump() == by_s
    assert clock.jump() is None
    assert clock.stamp() == "2001-09-09T01:46:40.500+00:00"
    assert machine.clock().stamp() == datetime.fromtimestamp(START_S + 0.5 + by_s, UTC).isoformat(
        timespec="milliseconds"
    )


def test_a_jump_there_and_back_is_two() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.set_by_s = 7200.0
    assert clock.jump() == 7200.0
    machine.set_by_s = 0.0
    assert clock.jump() == -7200.0


def test_small_steps_are_reported_when_they_add_up() -> None:
    machine = Machine()
    clock = machine.clock()
    machine.set_by_s = 0.75
    assert clock.jump() is None
    machine.set_by_s = 1.5
    assert clock.jump() == 1.5
    machine.set_by_s = 1.75
    assert clock.jump() is None


@given(steps=st.lists(st.tuples(st.floats(0, 1e6), st.floats(-1e8, 1e8))))
def test_stamps_never_go_back(steps: list[tuple[float, float]]) -> None:
    machine = Machine()
    clock = machine.clock()
    stamps = [clock.stamp()]
    for elapsed_s, set_by_s in steps:
        machine.uptime_s += elapsed_s
        machine.set_by_s = set_by_s
        clock.jump()
        stamps.append(clock.stamp())
    assert stamps == sorted(stamps)  # All are as long, so their order as text is that in time.


def test_now_is_between_two_looks_at_the_clock() -> None:
    before = datetime.now(UTC)
    now = datetime.fromisoformat(utc_now())
    after = datetime.now(UTC)
    assert before.replace(microsecond=before.microsecond // 1000 * 1000) <= now <= after
    assert now.microsecond % 1000 == 0
