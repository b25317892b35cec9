"""What people see of a run: time left from what cells took, and lines that say how each ended."""

import io
from typing import Any

from rich.console import Console

from crosswind.engine import Failure, Outcome
from crosswind.progress import LiveProgress, PlainProgress, TimeLeft, duration_text, progress_for, seconds_text
from runs import FINISHED, entry


def planned(cell: int, expected_s: float = 1.0) -> dict[str, Any]:
    return {**entry(cell), "expected_ns": int(expected_s * 1e9)}


def test_before_anything_ended_the_plan_is_believed() -> None:
    assert TimeLeft().seconds([planned(0, 2.0), planned(1, 3.0)], []) == 5.0


def test_predictions_are_corrected_by_how_wrong_they_were() -> None:
    left = TimeLeft()
    left.add(planned(0, 2.0), 6.0)
    assert left.seconds([planned(1, 1.0)], []) == 3.0


def test_a_repetition_takes_as_long_as_its_cell_did() -> None:
    left = TimeLeft()
    left.add(planned(0, 1.0), 4.0)
    left.add(planned(0, 1.0), 6.0)
    left.add(planned(1, 1.0), 100.0)
    assert left.seconds([planned(0, 1.0)], []) == 5.0


def test_a_running_cell_is_judged_by_its_own_progress() -> None:
    left = TimeLeft()
    assert left.seconds([], [(planned(0, 9.0), 2.0, 0.25)]) == 6.0
    assert left.seconds([], [(planned(0, 9.0), 2.0, None)]) == 7.0
    assert left.seconds([], [(planned(0, 1.0), 2.0, None)]) == 0.0


def test_several_at_a_time_share_the_work() -> None:
    assert TimeLeft().seconds([planned(0, 4.0), planned(1, 4.0)], [], jobs=2) == 4.0


def test_plain_lines_say_how_each_cell_ended() -> None:
    out = io.StringIO()
    display = PlainProgress(Console(file=out, width=200), "mine")
    plan = [planned(0), planned(1), planned(2), planned(3)]
    display.run_started(plan, ["c001-r00", "c002-r00", "c003-r00"])
    ends = (
        Outcome(FINISHED, None, 1_500_000_000),
        Outcome(None, Failure("killed", "the cell was ended by signal SIGKILL"), 1),
        Outcome({**FINISHED, "valid": False, "reasons": ["late"]}, None, 500_000_000),
    )
    for item, outcome in zip(plan[1:], ends, strict=True):
        display.cell_started(item)
        display.cell_event(item, {"event": "progress", "done": 60, "total": 60, "median_ns": 20_000_000})
        display.cell_ended(item, outcome)
    display.run_ended()
    assert out.getvalue().splitlines() == [
        "mine: 3 of 4 cells to run, 1 are done already",
        "[2/4] loss=1% #1: 60 of 60 ok, median 20 ms, 1.5 s, about 3 s left",
        "failed: loss=2% #1: the cell was ended by signal SIGKILL",
        "[4/4] loss=3% #1: 60 of 60 ok, median 20 ms, 0.5 s",
        "invalid: loss=3% #1: late",
    ]


def test_the_live_display_shows_what_runs_and_leaves_bad_news_only() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    display = progress_for(console, "mine")
    assert isinstance(display, LiveProgress)
    plan = [planned(0), planned(1)]
    display.run_started(plan, ["c000-r00", "c001-r00"])
    display.cell_started(plan[0])
    with console.capture() as capture:
        console.print(display)
    assert "0/2" in capture.get()
    assert "loss=0% #1  starting" in capture.get()
    display.cell_event(plan[0], {"event": "progress", "done": 1, "total": 4, "lost": 1, "median_ns": 20_110_000})
    with console.capture() as capture:
        console.print(display)
    assert "1/4  median 20.1 ms  lost 1" in capture.get()
    display.cell_ended(plan[0], Outcome(None, Failure("host", "no"), 1))
    with console.capture() as capture:
        console.print(display)
    assert "1/2, 1 failed" in capture.get()
    display.run_ended()


def test_a_terminal_that_cannot_move_its_cursor_gets_lines(monkeypatch: Any) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(progress_for(Console(file=io.StringIO(), force_terminal=True), "mine"), PlainProgress)
    assert isinstance(progress_for(Console(file=io.StringIO()), "mine"), PlainProgress)


def test_times_for_people() -> None:
    assert [seconds_text(seconds) for seconds in (0.2, 59, 320, 7500)] == ["0 s", "59 s", "5 min 20 s", "2 h 5 min"]
    assert [duration_text(ns) for ns in (12, 1500, 20_110_000, 2.5e9)] == ["12 ns", "1.5 µs", "20.1 ms", "2.5 s"]
