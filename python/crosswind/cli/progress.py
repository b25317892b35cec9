"""A run's progress on standard error: a live display on a terminal, plain lines elsewhere. Results are not its job.

Colours follow rich and NO_COLOR; a terminal without cursor movement gets plain lines.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from crosswind.catalog import Carrier, catalog
from crosswind.catalog.precision import CellPrecision
from crosswind.cell.process import CellEnd
from crosswind.cli.progress_text import (
    bad_news,
    cell_line,
    concurrency_text,
    left_text,
    levels_of,
    narrowness,
    outcome_text,
    repetitions_text,
    troubles_text,
)
from crosswind.cli.reach import print_reached
from crosswind.cli.text import repetition_text, virtual_text
from crosswind.execution.concurrency import Concurrency
from crosswind.execution.observer import Observer
from crosswind.execution.reach import Reached
from crosswind.execution.tally import Tally
from crosswind.report.text.format import count_of
from crosswind.report.text.precision import precision_text
from crosswind.store.plan import PlannedCell

_SHOWN_CELLS = 8
_MANY = 100
"""Repetitions to run, for a hint on fewer."""
_RARE_LOSS = 0.01
_QUIET_S = 2.0
"""Between two plain lines about concurrency."""
_FEW, _BETWEEN_LINES_S = 20, 5.0
"""Up to so many repetitions each has a plain line; of more there is one in so much time."""


class _Shown(Tally):
    """A tally with a display of its own."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(clock)
        self._console = console
        self._levels: dict[int, str] = {}

    def run_started(self, name: str, plan: Sequence[PlannedCell], missing: Sequence[PlannedCell]) -> None:
        """Knows the cells by their levels."""
        super().run_started(name, plan, missing)
        self._levels = levels_of(plan)

    def reached(self, server: str, tried: Sequence[Reached]) -> None:
        """A line for each transport; above a live display."""
        print_reached(self._console, server, tried)


class LiveProgress(_Shown):
    """The display on a terminal: a bar with time left, and a line for every running cell. Leaves nothing behind."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, clock)
        self._name = ""
        self._live = Live(self, console=console, transient=True, refresh_per_second=8)

    def run_started(self, name: str, plan: Sequence[PlannedCell], missing: Sequence[PlannedCell]) -> None:
        """Puts the display up."""
        self._name = name
        super().run_started(name, plan, missing)
        self._live.start()

    def cell_ended(self, planned: PlannedCell, end: CellEnd) -> None:
        """Takes its line away; bad news stays above the display."""
        super().cell_ended(planned, end)
        for line in bad_news(planned, end):
            self._console.print(Text(line, style="red"))

    def remark(self, text: str) -> None:
        """Stays above the display."""
        self._console.print(Text(f"note: {text}", style="yellow"))

    def run_ended(self) -> None:
        """Removes the display, and prints the retries."""
        self._live.stop()
        for line in repetitions_text(self):
            self._console.print(Text(line, style="dim"))

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The display now."""
        head = Table.grid(padding=(0, 1))
        counts = f"{self.done}/{self.total}" + troubles_text(self)
        bar = ProgressBar(total=max(1, self.total), completed=self.done_with_fractions, width=30)
        head.add_row(Text(self._name, style="bold"), bar, counts, Text(left_text(self.seconds_left()), style="dim"))
        yield head
        cells = list(self.running.values())
        facts = []
        if self.last_concurrency is not None and len(cells) > 1:
            facts.append(concurrency_text(self.last_concurrency, only_virtual=self.only_virtual))
        if virtual_ns := self.virtual_so_far_ns():
            facts.append(virtual_text(virtual_ns, self.wall_s()))
        if facts:
            yield Text(f"  {', '.join(facts)}", style="dim")
        for cell in cells[:_SHOWN_CELLS]:
            yield cell_line(cell, self.wall_s(cell), options.max_width)
        if len(cells) > _SHOWN_CELLS:
            yield Text(f"  and {len(cells) - _SHOWN_CELLS} more", style="dim")
        yield from self._intervals(options.max_width)

    def _intervals(self, width: int) -> Iterator[Text]:
        """A line for each interval still too wide, the widest first, and the count of finished ones."""
        states = self.last_precision
        if not states:
            return
        going_on = sorted((state for state in states if state.ended is None), key=narrowness)
        yield Text(f"  precision: {len(states) - len(going_on)} of {len(states)} intervals have ended", style="dim")
        for state in going_on[:_SHOWN_CELLS]:
            line = Text(f"  {self._levels[state.cell]}  ".rstrip(" ") + "  ")
            line.append(precision_text(state), style="magenta")
            line.truncate(width, overflow="ellipsis")
            yield line
        if len(going_on) > _SHOWN_CELLS:
            yield Text(f"  and {len(going_on) - _SHOWN_CELLS} more", style="dim")


def _would_repeat(planned: PlannedCell) -> bool:
    """Whether only QUIC's random numbers make repetitions differ that lose the same, rare packets."""
    transport = catalog().transports.get(planned.parameters["workload"].get("transport"))
    if transport is None or transport.carrier is not Carrier.QUIC or not planned.is_virtual:
        return False
    is_drawn = "random_seed" not in planned.parameters.get("host", {})
    return is_drawn and 0 < max(planned.effect.forward.loss, planned.effect.reverse.loss) <= _RARE_LOSS


class PlainProgress(_Shown):
    """One line when a run starts, and one when a repetition ends; of many repetitions one now and then, for logs."""

    def __init__(self, console: Console, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, clock)
        self._printed_running = 1
        self._printed_at = self._line_at = -math.inf

    def run_started(self, name: str, plan: Sequence[PlannedCell], missing: Sequence[PlannedCell]) -> None:
        """Prints the number of repetitions to run."""
        super().run_started(name, plan, missing)
        kept = f", {self.done} are done already" if self.done else ""
        repeats = {planned.cell: planned.repeats for planned in plan if planned.repeats is not None}
        later = sum(repeats.values()) - sum(planned.cell in repeats for planned in plan)
        known = f"; of {later} more, one for each set of lost packets" if later else ""
        self._print(f"{name}: {len(missing)} of {count_of(len(plan), 'repetition')} to run{kept}{known}")
        if len(missing) >= _MANY and any(map(_would_repeat, missing)):
            self._print("hint: --random-seed 1 runs QUIC's repetitions that lose the same packets only once")

    def plan_grew(self, added: Sequence[PlannedCell]) -> None:
        """Prints how much more will run."""
        super().plan_grew(added)
        cells = len({planned.cell for planned in added})
        disturbed = dict.fromkeys(planned.disturbed.text for planned in added if planned.disturbed is not None)
        of_losses = all(planned.repeats is not None for planned in added)
        why = f", each with {' or '.join(disturbed)}" if disturbed else " for their precision"
        why = ", each losing other packets" if of_losses and not disturbed else why
        self._print(f"{count_of(len(added), 'more repetition')} of {count_of(cells, 'cell')}{why}")

    def precision(self, state: Sequence[CellPrecision]) -> None:
        """Prints the changed intervals."""
        before = self.last_precision
        super().precision(state)
        for precision in state:
            if precision not in before:
                self._print(f"{self._levels[precision.cell]}: {precision_text(precision)}".removeprefix(": "))

    def cell_ended(self, planned: PlannedCell, end: CellEnd) -> None:
        """Prints how it ended."""
        progress = self.running[planned.key].progress
        super().cell_ended(planned, end)
        head = f"[{self.done}/{self.total}] {repetition_text(planned)}"
        if end.finished is not None and self._has_a_line():
            left = left_text(self.seconds_left()) if self.waiting else ""
            wall_s = end.elapsed_ns / 1e9
            virtual = end.finished.virtual_time
            time_taken = virtual_text(end.finished.elapsed_ns, wall_s) if virtual else f"{wall_s:.1f} s"
            parts = [outcome_text(end.finished, progress), time_taken, left]
            self._print(f"{head}: {', '.join(part for part in parts if part)}")
        for line in bad_news(planned, end):
            self._print(line)

    def _has_a_line(self) -> bool:
        """Whether to print an ended repetition: among many, only the last, and one now and then."""
        now_s = self._clock()
        if _FEW < self.total != self.done and now_s - self._line_at < _BETWEEN_LINES_S:
            return False
        self._line_at = now_s
        return True

    def run_ended(self) -> None:
        """Prints the retries."""
        for line in repetitions_text(self):
            self._print(line)

    def concurrency(self, now: Concurrency) -> None:
        """Prints the concurrency after a large change, at intervals."""
        super().concurrency(now)
        time_s = self._clock()
        changed = abs(now.running - self._printed_running) > self._printed_running // 4
        if now.running > 1 and changed and time_s - self._printed_at >= _QUIET_S:
            self._printed_running, self._printed_at = now.running, time_s
            self._print(concurrency_text(now, only_virtual=self.only_virtual))

    def remark(self, text: str) -> None:
        """Prints a note."""
        self._print(f"note: {text}")

    def _print(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)


def progress_for(console: Console) -> Observer:
    """The display suited to standard error."""
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveProgress(console)
    return PlainProgress(console)
