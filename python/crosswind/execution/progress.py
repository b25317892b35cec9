"""A run as it goes by, on standard error: a live display on a terminal, plain lines elsewhere. Results are not its job.

Colours follow rich, which obeys NO_COLOR; a terminal that cannot move its cursor gets plain lines.
"""

import math
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from crosswind.cell.process import Event, Outcome
from crosswind.execution.admission import Entry
from crosswind.execution.scheduler import Concurrency, Watcher

_SHOWN_AT_ONCE = 8
_QUIET_S = 2.0
"""Between two plain lines about concurrency."""


@dataclass
class TimeLeft:
    """How long a run still takes: what its plan predicts, corrected by how long its cells really took."""

    _of_cell: dict[int, list[float]] = field(default_factory=dict)
    _measured_s: float = 0.0
    _predicted_s: float = 0.0

    def add(self, entry: Entry, elapsed_s: float) -> None:
        """A repetition took so long."""
        self._of_cell.setdefault(entry["cell"], []).append(elapsed_s)
        self._measured_s += elapsed_s
        self._predicted_s += entry["expected_ns"] / 1e9

    def expected_s(self, entry: Entry) -> float:
        """How long a repetition will take: the mean of its cell's, else the prediction times how wrong those were."""
        known = self._of_cell.get(entry["cell"])
        if known:
            return fmean(known)
        wrong = self._measured_s / self._predicted_s if self._predicted_s else 1.0
        return float(entry["expected_ns"] / 1e9 * wrong)

    def seconds(
        self, waiting: Collection[Entry], running: Collection[tuple[Entry, float, float | None]], jobs: float = 1
    ) -> float:
        """Wall time left: all work shared out to `jobs` at a time, but never less than the longest that is left.

        Args: waiting: repetitions to come. running: (entry, seconds so far, fraction done or None) of those under way.
        """
        left = [self.expected_s(entry) for entry in waiting]
        left += [
            so_far_s * (1 - fraction) / fraction if fraction else max(0.0, self.expected_s(entry) - so_far_s)
            for entry, so_far_s, fraction in running
        ]
        return max(sum(left) / max(1.0, jobs), max(left, default=0.0))


@dataclass
class _Cell:
    entry: Entry
    started: float
    event: Event = field(default_factory=dict)


class Tally:
    """What both displays count: done, failed, invalid, repeated, lost, running, concurrency, time left."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.total = self.done = self.failed = self.invalid = self.lost = self.repeated = 0
        self.waiting: dict[str, Entry] = {}
        self.running: dict[str, _Cell] = {}
        self.concurrency: Concurrency | None = None
        self.time_left = TimeLeft()
        self._clock = clock
        self._left = (-math.inf, 0.0)

    def start(self, plan: list[dict[str, Any]], missing: list[str]) -> None:
        """A session begins: of `plan`, `missing` is to be run."""
        wanted = set(missing)
        self.total = len(plan)
        self.done = len(plan) - len(missing)
        self.waiting = {entry["key"]: entry for entry in plan if entry["key"] in wanted}

    def cell_started(self, entry: Entry) -> None:
        """One began."""
        del self.waiting[entry["key"]]
        self.running[entry["key"]] = _Cell(entry, self._clock())

    def cell_event(self, entry: Entry, event: Event) -> None:
        """One said something; only progress is kept."""
        if event["event"] == "progress":
            self.running[entry["key"]].event = event

    def cell_ended(self, entry: Entry, outcome: Outcome) -> None:
        """One ended."""
        self.running.pop(entry["key"])
        self.done += 1
        self.time_left.add(entry, outcome.elapsed_ns / 1e9)
        if outcome.finished is None:
            self.failed += 1
            return
        self.invalid += not outcome.finished["valid"]
        self.lost += outcome.finished["samples"]["lost"]

    def cell_repeated(self, entry: Entry, outcome: Outcome) -> None:
        """One missed its budget and goes to the end of the queue."""
        self.running.pop(entry["key"])
        self.repeated += 1
        self.waiting[entry["key"]] = entry
        self.time_left.add(entry, outcome.elapsed_ns / 1e9)

    def seconds_left(self) -> float:
        """Wall time left, looked at anew once a second: with thousands of cells it takes a while to add up."""
        now = self._clock()
        if now - self._left[0] >= 1.0:
            running = [(cell.entry, now - cell.started, _fraction(cell.event)) for cell in list(self.running.values())]
            left = self.time_left.seconds(list(self.waiting.values()), running, self._at_a_time())
            self._left = (now, left)
        return self._left[1]

    def _at_a_time(self) -> float:
        """Cells that will run side by side: as many as may, but no more than there are."""
        if self.concurrency is None:
            return max(1, len(self.running))
        allowed = self.concurrency.limit or self.concurrency.running
        # A limit that other bounds keep from being reached says less than what really runs.
        return max(1.0, (allowed + self.concurrency.running) / 2 if self.waiting else self.concurrency.running)


class LiveProgress:
    """The display on a terminal: a bar with time left, and a line for every running cell. Leaves nothing behind."""

    def __init__(self, console: Console, title: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._title = title
        self._tally = Tally(clock)
        self._live = Live(self, console=console, transient=True, refresh_per_second=8)

    def run_started(self, plan: list[dict[str, Any]], missing: list[str]) -> None:
        """Puts the display up."""
        self._tally.start(plan, missing)
        self._live.start()

    def cell_started(self, entry: Entry) -> None:
        """Adds a line."""
        self._tally.cell_started(entry)

    def cell_event(self, entry: Entry, event: Event) -> None:
        """Updates its line."""
        self._tally.cell_event(entry, event)

    def cell_ended(self, entry: Entry, outcome: Outcome) -> None:
        """Takes its line away; bad news stays above the display."""
        self._tally.cell_ended(entry, outcome)
        for line in _bad_news(entry, outcome):
            self._console.print(Text(line, style="red"))

    def cell_repeated(self, entry: Entry, outcome: Outcome) -> None:
        """Takes its line away; why stays above the display."""
        self._tally.cell_repeated(entry, outcome)
        self._console.print(Text(_repeated(entry, outcome), style="yellow"))

    def concurrency(self, now: Concurrency) -> None:
        """Updates the line about all of them."""
        self._tally.concurrency = now

    def remark(self, text: str) -> None:
        """Stays above the display."""
        self._console.print(Text(f"note: {text}", style="yellow"))

    def run_ended(self) -> None:
        """Takes the display down."""
        self._live.stop()

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The display now."""
        tally = self._tally
        head = Table.grid(padding=(0, 1))
        counts = f"{tally.done}/{tally.total}" + _troubles(tally)
        bar = ProgressBar(total=max(1, tally.total), completed=tally.done + _fractions(tally), width=30)
        head.add_row(Text(self._title, style="bold"), bar, counts, Text(_left(tally.seconds_left()), style="dim"))
        yield head
        if tally.concurrency is not None and len(tally.running) > 1:
            yield Text(f"  {concurrency_text(tally.concurrency)}", style="dim")
        cells = list(tally.running.values())
        for cell in cells[:_SHOWN_AT_ONCE]:
            yield _line(cell, options.max_width)
        if len(cells) > _SHOWN_AT_ONCE:
            yield Text(f"  and {len(cells) - _SHOWN_AT_ONCE} more", style="dim")


class PlainProgress:
    """One line when a run starts and one when a cell ends, for logs and pipes."""

    def __init__(self, console: Console, title: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._title = title
        self._clock = clock
        self._tally = Tally(clock)
        self._said = (1, -math.inf)

    def run_started(self, plan: list[dict[str, Any]], missing: list[str]) -> None:
        """Says what will run."""
        self._tally.start(plan, missing)
        kept = f", {self._tally.done} are done already" if self._tally.done else ""
        self._say(f"{self._title}: {len(missing)} of {len(plan)} cells to run{kept}")

    def cell_started(self, entry: Entry) -> None:
        """Says nothing yet."""
        self._tally.cell_started(entry)

    def cell_event(self, entry: Entry, event: Event) -> None:
        """Says nothing: the end of the cell says more."""
        self._tally.cell_event(entry, event)

    def cell_ended(self, entry: Entry, outcome: Outcome) -> None:
        """Says how it ended."""
        last = self._tally.running[entry["key"]].event
        self._tally.cell_ended(entry, outcome)
        head = f"[{self._tally.done}/{self._tally.total}] {levels_text(entry)}"
        if outcome.finished is not None:
            left = _left(self._tally.seconds_left()) if self._tally.waiting else ""
            parts = [_summary(outcome.finished, last), f"{outcome.elapsed_ns / 1e9:.1f} s", left]
            self._say(f"{head}: {', '.join(part for part in parts if part)}")
        for line in _bad_news(entry, outcome):
            self._say(line)

    def cell_repeated(self, entry: Entry, outcome: Outcome) -> None:
        """Says why."""
        self._tally.cell_repeated(entry, outcome)
        self._say(_repeated(entry, outcome))

    def concurrency(self, now: Concurrency) -> None:
        """Says so when it has changed a lot, and not often."""
        self._tally.concurrency = now
        said, at = self._said
        time_s = self._clock()
        if now.running > 1 and time_s - at >= _QUIET_S and abs(now.running - said) > said // 4:
            self._said = (now.running, time_s)
            self._say(concurrency_text(now))

    def remark(self, text: str) -> None:
        """A line of its own."""
        self._say(f"note: {text}")

    def run_ended(self) -> None:
        """Says nothing: the report follows."""

    def _say(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)


def progress_for(console: Console, title: str) -> Watcher:
    """The display that suits where standard error goes."""
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveProgress(console, title)
    return PlainProgress(console, title)


def concurrency_text(now: Concurrency) -> str:
    """How many run and how faithful they are: "37 at a time (limit 64), 0.2 % of packets late, CPU wait 0.4 %"."""
    limit = "fixed" if now.limit is None else f"limit {now.limit}"
    window = now.window
    waits = max(window.starvation, window.probe_starvation)
    return (
        f"{now.running} at a time ({limit}), {100 * window.late_share:.2g} % of packets late, "
        f"CPU wait {100 * waits:.2g} %, {100 * now.pressure:.0f} % of the fidelity budget"
    )


def levels_text(entry: Mapping[str, Any]) -> str:
    """What sets a repetition apart: its levels by the last word of their keys, and its number."""
    levels = " ".join(f"{key.rpartition('.')[2]}={level}" for key, level in entry["levels"].items())
    return f"{levels} #{entry['repetition'] + 1}".strip()


def duration_text(ns: float) -> str:
    """Nanoseconds for people, three digits: "20.1 ms"."""
    for size, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"


def _fraction(event: Event) -> float | None:
    done, total = event.get("done"), event.get("total")
    return min(1.0, done / total) if done and total else None


def _fractions(tally: Tally) -> float:
    return sum(_fraction(cell.event) or 0.0 for cell in list(tally.running.values()))


def _line(cell: _Cell, width: int) -> Text:
    """One line about a running cell; where there is no room for both, levels give way to progress."""
    now = Text(f"  {_now(cell.event)}", style="cyan")
    levels = Text(f"  {levels_text(cell.entry)}")
    levels.truncate(max(1, width - now.cell_len), overflow="ellipsis")
    line = levels + now
    line.truncate(width, overflow="ellipsis")
    return line


def _now(event: Event) -> str:
    if not event:
        return "starting"
    parts = [f"{event.get('done')}/{event.get('total')}"]
    if event.get("median_ns") is not None:
        parts.append(f"median {duration_text(event['median_ns'])}")
    if event.get("lost"):
        parts.append(f"lost {event['lost']}")
    return "  ".join(parts)


def _summary(finished: Event, last: Event) -> str:
    samples = finished["samples"]
    median = last.get("median_ns")
    parts = [f"{samples['ok']} of {samples['rows']} ok"]
    if median is not None:
        parts.append(f"median {duration_text(median)}")
    return ", ".join(parts)


def _bad_news(entry: Entry, outcome: Outcome) -> list[str]:
    name = levels_text(entry)
    if outcome.failure is not None:
        return [f"failed: {name}: {outcome.failure.message}"]
    if outcome.finished is not None and not outcome.finished["valid"]:
        return [f"invalid: {name}: {'; '.join(outcome.finished['reasons'])}"]
    return []


def _repeated(entry: Entry, outcome: Outcome) -> str:
    reasons = outcome.finished["reasons"] if outcome.finished else []
    return f"again later: {levels_text(entry)}: {'; '.join(reasons)}"


def _troubles(tally: Tally) -> str:
    counts = ((tally.failed, "failed"), (tally.invalid, "invalid"), (tally.repeated, "repeated"), (tally.lost, "lost"))
    return "".join(f", {count} {name}" for count, name in counts if count)


def _left(seconds: float) -> str:
    return f"about {seconds_text(seconds)} left"


def seconds_text(seconds: float) -> str:
    """A wall time for people: "34 s", "5 min 20 s", "2 h 5 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
