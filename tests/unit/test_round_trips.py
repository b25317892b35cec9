"""How many round trips exchanges take: slopes that are known."""

from dataclasses import replace

import pytest

from crosswind.catalog.path_effect import DirectionEffect, PathEffect
from crosswind.cell.record import CellRun
from crosswind.findings.pipeline import analyse
from records import MS, echoes, record, run
from screens import render

KEPT = {"workload": {"kind": "echo", "transport": "tcp"}}
DELAYS = {"5ms": 5, "20ms": 20, "50ms": 50}


def measured(times_ms: dict[str, list[float]]) -> list[CellRun]:
    """Cells by delay, each with the mean times of its repetitions."""
    return [
        replace(
            run(cell, echoes([int(MS * time)] * 4), {"path.delay": delay}, repetition=repetition, parameters=KEPT),
            effect=PathEffect(*[DirectionEffect(delay_ns=DELAYS[delay] * MS)] * 2),
        )
        for cell, (delay, times) in enumerate(times_ms.items())
        for repetition, time in enumerate(times)
    ]


def test_the_slope_is_the_number_of_round_trips() -> None:
    noise = [0.01, -0.01, 0.02, -0.02, 0.0]
    runs = measured({delay: [3 * 2 * ms + 7 + off for off in noise] for delay, ms in DELAYS.items()})
    (line,) = [line for line in analyse(record(*runs)).round_trips if line.metric == "rtt"]
    assert line.trips.value == pytest.approx(3)
    assert line.offset.value == pytest.approx(7 * MS)
    assert line.offset.low is not None
    # Student's t of the five offsets: 2.776 standard errors of 0.0158 / sqrt(5) ms.
    assert line.offset.value - line.offset.low == pytest.approx(2.776 * 0.01581 / 5**0.5 * MS, rel=1e-3)
    assert line.deviation == pytest.approx(0, abs=1)
    assert "Round trips" in render(analyse(record(*runs)), everything=True)


def test_a_time_that_bends_is_off_its_line() -> None:
    runs = measured({"5ms": [10.0] * 5, "20ms": [100.0] * 5, "50ms": [100.0] * 5})
    (line,) = [line for line in analyse(record(*runs)).round_trips if line.metric == "rtt"]
    # Least squares through (10, 10), (40, 100), (100, 100) ms: 27.14 + 0.857 x; the second is 38.57 ms above.
    assert line.deviation == pytest.approx(38.57 * MS, rel=1e-3)


def test_cells_that_differ_in_more_than_delay_have_no_line() -> None:
    runs = measured({"5ms": [10.0] * 5, "20ms": [40.0] * 5})
    other = PathEffect(DirectionEffect(delay_ns=20 * MS, loss=0.1), DirectionEffect(delay_ns=20 * MS))
    runs = [each if each.cell == 0 else replace(each, effect=other) for each in runs]
    assert analyse(record(*runs)).round_trips == []
