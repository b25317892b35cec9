"""What people see of a run: time left from what cells took, and lines that say how each ended."""

import io
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from rich.console import Console

from cell_events import finished, progress
from crosswind.catalog.precision import CellPrecision, Ended
from crosswind.cell.failure import ErrorKind, Failure
from crosswind.cell.process import CellEnd
from crosswind.cli.progress import LiveProgress, PlainProgress, progress_for
from crosswind.cli.progress_text import concurrency_text
from crosswind.cli.text import seconds_text
from crosswind.execution.concurrency import Concurrency, FidelityWindow
from crosswind.execution.durations import learn
from crosswind.execution.observer import Observer
from crosswind.execution.tally import Tally
from crosswind.report.text.format import quantity
from crosswind.store.plan import PlannedCell
from runs import planned_cell, taken


def planned(cell: int, expected_s: float = 1.0, **changes: Any) -> PlannedCell:
    return planned_cell(cell, expected_ns=int(expected_s * 1e9), **changes)


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now_s = 1000.0

    def __call__(self) -> float:
        return self.now_s


def ended(seconds: float = 1.0, **changes: Any) -> CellEnd:
    return CellEnd(finished(**changes), None, int(seconds * 1e9))


def failed(seconds: float = 1.0) -> CellEnd:
    failure = Failure(ErrorKind.KILLED, "the cell was ended by signal SIGKILL", None)
    return CellEnd(None, failure, int(seconds * 1e9))


def late(seconds: float = 1.0) -> CellEnd:
    return ended(seconds, valid=False, reasons=["late"])


def drawn(display: LiveProgress, width: int = 80) -> list[str]:
    """The lines of the display as a terminal of this width would show them now."""
    lines = Console(file=io.StringIO(), width=width).render_lines(display, pad=False)
    return ["".join(segment.text for segment in line).rstrip() for line in lines]


def test_the_display_shows_intervals_shrink_against_their_targets() -> None:
    def state(cell: int, half_ms: float, ended: Ended | None = None) -> CellPrecision:
        ends = {"value": 20e6, "low": 20e6 - half_ms * 1e6, "high": 20e6 + half_ms * 1e6, "wanted": 1e6, "reason": None}
        return CellPrecision(cell, "rtt", "mean", "ns", 5, target="5%", ended=ended, likely=12, **ends)

    display = LiveProgress(Console(file=io.StringIO()), Clock())
    cells = [planned(number) for number in range(3)]
    display.run_started("study", cells, cells)
    try:
        assert not any("precision" in line for line in drawn(display))
        display.precision([state(0, 1.5), state(1, 4), state(2, 0.5, Ended.PRECISION)])
        display.plan_grew([planned(0, key="c000-r05")])
        lines = drawn(display, width=100)
    finally:
        display.run_ended()
    assert "0/4" in lines[0]
    assert lines[1:] == [
        "  precision: 1 of 3 intervals have ended",
        "  loss=1%  mean(rtt) 20 ms ± 20 % (asked: ± 5 %), 5 repetitions, probably 12 in all",
        "  loss=0%  mean(rtt) 20 ms ± 7.5 % (asked: ± 5 %), 5 repetitions, probably 12 in all",
    ]


def test_plain_lines_say_what_became_of_an_interval_once() -> None:
    console = Console(file=io.StringIO(), width=200)
    plain = PlainProgress(console, Clock())
    one = CellPrecision(0, "rtt", "mean", "ns", 5, 20e6, 19e6, 21e6, "1ms", 1e6, Ended.PRECISION, None)
    plain.run_started("study", [planned(0)], [planned(0)])
    plain.precision([one])
    plain.precision([one])
    plain.plan_grew([planned(0, key="c000-r05")])
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines()[1:] == [
        "loss=0%: mean(rtt) 20 ms ± 1 ms (asked: ± 1 ms), 5 repetitions, precision reached",
        "1 more repetition of 1 cell for their precision",
    ]


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps live displays from drawing themselves beside what a test draws of them."""
    monkeypatch.setattr("rich.live.Live.start", lambda _live: None)


# The tally


def tally_of(clock: Clock, cells: int, seconds: float = 6.0) -> tuple[Tally, list[PlannedCell]]:
    tally = Tally(clock)
    plan = [planned(cell, seconds) for cell in range(cells)]
    tally.run_started("mine", plan, plan)
    return tally, plan


def test_a_cell_that_was_run_here_before_takes_as_long_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CROSSWIND_DURATIONS", str(tmp_path / "durations.json"))
    known = planned(0, 6.0)
    learn(taken((known, ended(1.5))), 1.5)
    tally, _ = tally_of(Clock(), 1)
    assert tally.seconds_left() == 1.5


def test_what_an_earlier_session_did_is_done() -> None:
    tally = Tally()
    plan = [planned(cell) for cell in range(5)]
    tally.run_started("mine", plan, [plan[1], plan[3]])
    assert (tally.total, tally.done, list(tally.waiting)) == (5, 3, ["c001-r00", "c003-r00"])


def test_every_end_counts_as_what_it_is() -> None:
    tally, plan = tally_of(Clock(), 5)
    for item in plan:
        tally.cell_started(item)
    tally.cell_ended(plan[0], ended(samples={"rows": 60, "ok": 53, "lost": 7, "outcomes": []}))
    tally.cell_ended(plan[1], failed())
    tally.cell_ended(plan[2], late())
    tally.cell_repeated(plan[3], late())
    assert (tally.done, tally.failed, tally.invalid, tally.repeated, tally.lost) == (3, 1, 1, 1, 7)
    assert (list(tally.running), list(tally.waiting)) == (["c004-r00"], ["c003-r00"])


def test_what_is_repeated_waits_after_all_others() -> None:
    tally, plan = tally_of(Clock(), 3)
    tally.cell_started(plan[0])
    tally.cell_repeated(plan[0], late())
    assert list(tally.waiting) == ["c001-r00", "c002-r00", "c000-r00"]
    tally.cell_started(plan[0])
    assert tally.running["c000-r00"].progress is None


def test_time_left_is_the_forecast_until_something_is_done() -> None:
    tally, plan = tally_of(Clock(), 4)
    assert tally.seconds_left() == 4 * 6.0
    tally.cell_started(plan[0])
    tally.cell_started(plan[1])
    assert tally.seconds_left() == 2 * 6.0


def test_the_forecast_is_stretched_by_what_is_done() -> None:
    clock = Clock()
    tally, plan = tally_of(clock, 4)
    tally.cell_started(plan[0])
    clock.now_s += 9.0
    tally.cell_ended(plan[0], ended(9.0))
    assert tally.seconds_left() == 3 * 9.0
    tally.cell_started(plan[1])
    tally.cell_started(plan[2])
    tally.cell_event(plan[1], progress(done=1, total=4))
    tally.cell_event(plan[2], progress(done=3, total=4))
    clock.now_s += 1.0
    # Two of four took 10 s.
    assert tally.seconds_left() == 10.0
    tally.cell_repeated(plan[1], late())
    assert tally.seconds_left() == pytest.approx(2.25 / 1.75 * 10.0)


def test_a_running_cell_that_says_nothing_goes_by_its_forecast() -> None:
    clock = Clock()
    tally, plan = tally_of(clock, 1)
    tally.cell_started(plan[0])
    clock.now_s += 1.5
    assert tally.seconds_left() == pytest.approx(4.5)
    clock.now_s += 100
    assert tally.seconds_left() == 0.0


# Many cells


def crowd(observer: Observer, clock: Clock, cells: int = 500, at_once: int = 40) -> Iterator[int]:
    """A session of many cells side by side: starts, progress, good and bad ends, repetitions. The number that runs,
    after each of these.
    """
    random = Random(1)
    plan = [planned(cell, 2.0) for cell in range(cells)]
    waiting = list(plan)
    running: list[PlannedCell] = []
    observer.run_started("mine", plan, plan)
    while waiting or running:
        clock.now_s += random.choice([0.0, 0.125, 0.5])
        if waiting and (not running or (len(running) < at_once and random.random() < 0.6)):
            running.append(waiting.pop(0))
            observer.cell_started(running[-1])
        elif random.random() < 0.5:
            done = random.randrange(61)
            event = progress(done=done, total=60, lost=1, median_ns=20_110_000)
            observer.cell_event(random.choice(running), event)
        else:
            item = running.pop(random.randrange(len(running)))
            how = random.randrange(10)
            if how == 0:
                waiting.append(item)
                observer.cell_repeated(item, late())
            else:
                observer.cell_ended(item, failed(0.001) if how == 1 else late() if how == 2 else ended(1.5))
        yield len(running)


def test_counts_always_add_up_to_the_total() -> None:
    clock = Clock()
    tally = Tally(clock)
    most = 0
    for running in crowd(tally, clock):
        assert tally.total == 500
        assert tally.done + len(tally.running) + len(tally.waiting) == 500
        assert len(tally.running) == running
        assert tally.failed + tally.invalid <= tally.done
        assert tally.seconds_left() >= 0.0
        most = max(most, running)
    assert most == 40
    assert (tally.done, tally.failed > 0, tally.invalid > 0, tally.repeated > 0) == (500, True, True, True)
    clock.now_s += 1.0
    assert tally.seconds_left() == 0.0


def test_many_cells_draw_a_few_lines(still: None) -> None:
    clock = Clock()
    display = LiveProgress(Console(file=io.StringIO(), width=80), clock)
    for step, running in enumerate(crowd(display, clock)):
        display.concurrency(Concurrency(running, 40, FidelityWindow(1000, 3, 0.004, 0.0123), 0.246))
        if step % 20:
            continue
        lines = drawn(display)
        cells = [line for line in lines if line.startswith("  loss=")]
        more = [line for line in lines if line.startswith("  and ")]
        assert len(cells) == min(8, running)
        assert more == ([f"  and {running - 8} more"] if running > 8 else [])
        # Counts of up to four kinds may need four lines, and what there is to say of all cells two.
        assert len(lines) <= 4 + 2 + 8 + 1
        assert max(map(len, lines)) <= 80
    clock.now_s += 1.0
    (head, *rest) = drawn(display)
    assert "500/500" in head
    assert "about 0 s left" in head
    assert not any(line.startswith("  ") and "at a time" in line for line in rest)


@pytest.mark.parametrize(
    ("width", "name"),
    [
        (92, "network=chrome-slow-4g transport=webtransport-datagram loss=5% #1"),
        (80, "chrome-slow-4g webtransport-datagram 5% #1"),
        (40, "chrome…m 5% #1"),
    ],
)
def test_where_not_all_fits_levels_lose_their_names_and_then_their_middle(still: None, width: int, name: str) -> None:
    display = LiveProgress(Console(file=io.StringIO()), Clock())
    levels = {"path.network": "chrome-slow-4g", "workload.transport": "webtransport-datagram", "path.loss": "5%"}
    plan = [planned(0, levels=levels)]
    display.run_started("mine", plan, plan)
    display.cell_started(plan[0])
    display.cell_event(plan[0], progress(done=10, total=500, median_ns=20_110_000))
    assert drawn(display, width)[-1] == f"  {name}  10/500  median 20.1 ms"


def test_one_line_describes_all_running_cells() -> None:
    window = FidelityWindow(released=1000, late=2, starvation=0.004, probe_starvation=0.001)
    assert (
        concurrency_text(Concurrency(37, 64, window, 0.12))
        == "37 at a time (limit 64), 0.2 % of packets late, CPU wait 0.4 %, 12 % of the fidelity budget"
    )
    assert concurrency_text(Concurrency(2, None, FidelityWindow(), 0.0), only_virtual=True) == "2 at a time"
    assert concurrency_text(Concurrency(2, None, FidelityWindow(probe_starvation=0.25), 1.25)) == (
        "2 at a time (fixed), 0 % of packets late, CPU wait 25 %, 125 % of the fidelity budget"
    )


def test_a_single_running_cell_needs_no_line_about_all(still: None) -> None:
    clock = Clock()
    display = LiveProgress(Console(file=io.StringIO()), clock)
    plan = [planned(0), planned(1)]
    display.run_started("mine", plan, plan)
    display.cell_started(plan[0])
    display.concurrency(Concurrency(1, 2, FidelityWindow(), 0.0))
    assert not any("at a time" in line for line in drawn(display))
    display.cell_started(plan[1])
    display.concurrency(Concurrency(2, 2, FidelityWindow(), 0.0))
    assert any(line.startswith("  2 at a time (limit 2)") for line in drawn(display))


# The displays


def test_plain_lines_say_how_each_cell_ended() -> None:
    out = io.StringIO()
    clock = Clock()
    display = PlainProgress(Console(file=out, width=200), clock)
    plan = [planned(0), planned(1), planned(2), planned(3)]
    display.run_started("mine", plan, plan[1:])
    ends = (
        ended(1.5),
        failed(),
        late(0.5),
    )
    for item, end in zip(plan[1:], ends, strict=True):
        display.cell_started(item)
        display.cell_event(item, progress(done=60, total=60, median_ns=20_000_000))
        clock.now_s += end.elapsed_ns / 1e9
        display.cell_ended(item, end)
    display.run_ended()
    assert out.getvalue().splitlines() == [
        "mine: 3 of 4 repetitions to run, 1 are done already",
        "[2/4] loss=1% #1: 60 of 60 ok, median 20 ms, 1.5 s, about 3 s left",
        "failed: loss=2% #1: the cell was ended by signal SIGKILL",
        "[4/4] loss=3% #1: 60 of 60 ok, median 20 ms, 0.5 s",
        "invalid: loss=3% #1: late",
    ]


def test_lost_exchanges_are_printed_by_cause_with_the_first_error() -> None:
    out = io.StringIO()
    clock = Clock()
    display = PlainProgress(Console(file=out, width=200), clock)
    plan = [planned(0), planned(1), planned(2)]
    display.run_started("mine", plan, plan)
    expired = {"outcome": "certificate", "count": 300, "first_error": "cannot connect: it has expired"}
    ends = (
        ended(samples={"rows": 60, "ok": 57, "lost": 3, "outcomes": [lost(3, "timeout")]}),
        ended(samples={"rows": 300, "ok": 0, "lost": 300, "outcomes": [expired]}),
        ended(samples={"rows": 1, "ok": 1, "lost": 0, "outcomes": []}, program={"exit_code": 0, "signal": None}),
    )
    for item, end in zip(plan, ends, strict=True):
        display.cell_started(item)
        clock.now_s += 1.0
        display.cell_ended(item, end)
    assert out.getvalue().splitlines()[1:] == [
        "[1/3] loss=0% #1: 57 of 60 ok, 3 x timeout, 1.0 s, about 2 s left",
        "[2/3] loss=1% #1: 0 of 300 ok, 300 x certificate (cannot connect: it has expired), 1.0 s, about 1 s left",
        "failed: loss=1% #1: no exchange succeeded",
        "[3/3] loss=2% #1: done, 1.0 s",
    ]


def lost(count: int, outcome: str) -> dict[str, object]:
    return {"outcome": outcome, "count": count, "first_error": "cannot receive: timed out"}


@pytest.mark.parametrize(
    ("exit_code", "signal", "outcome", "how"),
    [(3, None, "error", "exit status 3"), (None, 9, "error", "signal 9"), (None, 15, "timeout", "timeout")],
)
def test_a_client_program_that_failed_is_bad_news(
    still: None, exit_code: int | None, signal: int | None, outcome: str, how: str
) -> None:
    said = {"outcome": outcome, "count": 1, "first_error": "the client program ended badly: no route to host"}
    samples = {"rows": 1, "ok": 0, "lost": 1, "outcomes": [said]}
    for display_type in (PlainProgress, LiveProgress):
        out = io.StringIO()
        display = display_type(Console(file=out, width=200))
        display.run_started("mine", [planned(0)], [planned(0)])
        display.cell_started(planned(0))
        end = ended(program={"exit_code": exit_code, "signal": signal}, samples=samples)
        display.cell_ended(planned(0), end)
        bad_news = [line for line in out.getvalue().splitlines() if line.startswith("failed")]
        assert bad_news == [
            "failed: loss=0% #1: the client program ended badly: no route to host (cells/c000-r00/client.err)"
        ]
        assert (f"loss=0% #1: {how}, 1.0 s" in out.getvalue()) == (display_type is PlainProgress)


def test_plain_lines_of_many_cells_count_up_to_all_and_come_now_and_then() -> None:
    out, clock = io.StringIO(), Clock()
    display = PlainProgress(Console(file=out, width=80), clock)
    begun_s = clock.now_s
    for _ in crowd(display, clock):
        pass
    lines = out.getvalue().splitlines()
    assert lines[0] == "mine: 500 of 500 repetitions to run"
    counted = [int(line[1:].partition("/")[0]) for line in lines if line.startswith("[")]
    assert counted == sorted(set(counted))
    assert counted[-1] == 500
    # One in five seconds, and the last.
    assert 2 < len(counted) <= (clock.now_s - begun_s) / 5 + 2
    starts = ("mine: ", "[", "failed: ", "invalid: ", "retried ")
    assert all(line.startswith(starts) for line in lines)


def test_a_plain_line_about_concurrency_comes_when_it_changed_a_lot_and_not_often() -> None:
    out, clock = io.StringIO(), Clock()
    display = PlainProgress(Console(file=out, width=200), clock)

    def prints(running: int, after_s: float) -> bool:
        clock.now_s += after_s
        before = len(out.getvalue().splitlines())
        display.concurrency(Concurrency(running, 64, FidelityWindow(), 0.0))
        return len(out.getvalue().splitlines()) > before

    assert not prints(1, 0.0)
    assert prints(16, 0.0)
    assert not prints(32, 1.5)
    assert prints(32, 0.5)
    assert not prints(40, 9.0)  # A quarter more is no news; from 41 on it is.
    assert prints(41, 0.0)
    assert not prints(1, 9.0)
    assert out.getvalue().splitlines()[0].startswith("16 at a time (limit 64), ")


def test_a_remark_is_a_line_in_both_displays() -> None:
    for display_type in (PlainProgress, LiveProgress):
        out = io.StringIO()
        display_type(Console(file=out, width=80)).remark("the clock was set")
        assert out.getvalue() == "note: the clock was set\n"


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (0, []),
        (1, ["retried once: timing was too inaccurate (p99 of 1 ms; waits of 9 %)"]),
        (10, ["retried 10 times: timing was too inaccurate (first p99 of 1 ms; waits of 9 %)"]),
    ],
)
def test_cells_that_are_repeated_are_counted_and_said_once_at_the_end(still: None, times: int, said: list[str]) -> None:
    for display_type in (PlainProgress, LiveProgress):
        out = io.StringIO()
        display = display_type(Console(file=out, width=120))
        display.run_started("mine", [planned(0)], [planned(0)])
        for attempt in range(times):
            display.cell_started(planned(0))
            display.cell_repeated(planned(0), ended(valid=False, reasons=[f"p99 of {attempt + 1} ms", "waits of 9 %"]))
        before = out.getvalue()
        assert "again" not in before
        display.run_ended()
        assert out.getvalue().removeprefix(before).splitlines() == said


def test_the_live_display_shows_what_runs_and_leaves_bad_news_only() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    display = progress_for(console)
    assert isinstance(display, LiveProgress)
    plan = [planned(0), planned(1)]
    display.run_started("mine", plan, plan)
    display.cell_started(plan[0])
    with console.capture() as capture:
        console.print(display)
    assert "0/2" in capture.get()
    assert "loss=0% #1  starting" in capture.get()
    display.cell_event(plan[0], progress(done=1, total=4, lost=1, median_ns=20_110_000))
    with console.capture() as capture:
        console.print(display)
    assert "1/4  median 20.1 ms  1 lost" in capture.get()
    display.cell_ended(plan[0], CellEnd(None, Failure(ErrorKind.HOST, "no", None), 1))
    with console.capture() as capture:
        console.print(display)
    assert "1/2, 1 failed" in capture.get()
    display.run_ended()


VIRTUAL = {"parameters": {"host": {"clock": "virtual"}}}


def test_a_terminal_shows_virtual_and_wall_time() -> None:
    console = Console(file=io.StringIO(), width=100, force_terminal=True, color_system=None)
    clock = Clock()
    display = LiveProgress(console, clock)
    plan = [planned(number, **VIRTUAL) for number in range(3)]
    display.run_started("mine", plan, plan)
    display.cell_started(plan[0])
    display.cell_event(plan[0], progress(elapsed_ns=12_000_000_000))
    clock.now_s += 1.0
    display.cell_ended(plan[0], ended(1.0, virtual_time=True, elapsed_ns=192_000_000_000))
    for cell in plan[1:]:
        display.cell_started(cell)
        display.cell_event(cell, progress(done=1, total=4, lost=0, median_ns=None, elapsed_ns=20_000_000_000))
    display.concurrency(Concurrency(2, 64, FidelityWindow(probe_starvation=0.25), 1.25))
    clock.now_s += 0.5
    with console.capture() as capture:
        console.print(display)
    lines = [line.rstrip() for line in capture.get().splitlines()]
    assert lines[1] == "  2 at a time, virtual 3 min 52 s in 1.5 s"
    assert lines[2] == "  loss=1% #1  1/4  virtual 20 s in 0.5 s"
    display.run_ended()


def test_a_line_says_how_long_a_virtual_cell_took_on_both_clocks() -> None:
    out = io.StringIO()
    display = PlainProgress(Console(file=out, width=200))
    plan = [planned(0, **VIRTUAL)]
    display.run_started("mine", plan, plan)
    display.cell_started(plan[0])
    display.cell_ended(plan[0], ended(4.1, virtual_time=True, elapsed_ns=192_000_000_000))
    assert out.getvalue().splitlines()[1] == "[1/1] loss=0% #1: 60 of 60 ok, virtual 3 min 12 s in 4.1 s"


def test_a_terminal_that_cannot_move_its_cursor_gets_lines(monkeypatch: Any) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(progress_for(Console(file=io.StringIO(), force_terminal=True)), PlainProgress)
    assert isinstance(progress_for(Console(file=io.StringIO())), PlainProgress)


def test_times_for_people() -> None:
    assert [seconds_text(seconds) for seconds in (0.2, 59, 320, 7500)] == ["0 s", "59 s", "5 min 20 s", "2 h 5 min"]
    assert [quantity(ns, "ns") for ns in (12, 1500, 20_110_000, 2.5e9)] == ["12 ns", "1.5 µs", "20.1 ms", "2.5 s"]
