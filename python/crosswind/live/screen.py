"""A watch on a terminal: numbers for the window and the whole time, bars, a histogram, events, and keys."""

import os
import sys
import termios
import time
import tty
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import click
import numpy as np
from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.text import Text

from crosswind.live.events import LiveEvent
from crosswind.live.expectations import Expectation
from crosswind.live.lines import estimate_text, goodput_line, goodput_text, news_line, share_text, silent_lines
from crosswind.live.probes import Slice
from crosswind.live.session import LiveSession
from crosswind.live.summary import Summary
from crosswind.live.thresholds import JudgedThreshold
from crosswind.live.views import Lines, Subject, expectations
from crosswind.live.watch import News, Watch, WindowReport
from crosswind.report.text.format import NOTHING, count, number, quantity, scale_of
from crosswind.stats.arrays import Array
from crosswind.stats.estimate import Interval
from crosswind.text.terminal_table import TextColumn, table_lines

_S = 10**9
_WINDOWS_S = (1, 5, 10, 30, 60, 300)
_ZOOMS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
_EVENTS = 5
_HISTORY_PROBES = 1_000_000
_PROBES_A_SECOND = 20_000
"""Probes summarised per second: a day's numbers are not computed every second."""
_KEYS = "p pause   w window   + - zoom   q quit"

_OF_SOME = ("loss there", "loss back", "refused")
"""Only some probes have them."""

_BARS = "▁▂▃▄▅▆▇█"
LOST_MARK, REFUSED_MARK = "×", "!"
_BINS = 8
_BAR_WIDTH = 30


class Screen:
    """The display."""

    def __init__(self, watch: Watch, subject: Subject, console: Console) -> None:
        self._watch, self._subject = watch, subject
        self._after = Lines(watch, subject)
        self._live = Live(self, console=console, screen=True, auto_refresh=False)
        self._events: deque[str] = deque(maxlen=_EVENTS)
        self._last_window: Summary | None = None
        self._zoom = 0
        self._now_ns = watch.start_ns
        self._total: Summary | None = None
        self._expectations: list[Expectation] = []
        self._computed_ns = watch.start_ns

    def run(self, session: LiveSession) -> int:
        """Puts the display up while a session runs, and takes it down."""
        session.inform(self.handle_news)
        with single_keys() as terminal:

            def press() -> None:
                assert terminal is not None
                now_ns = time.monotonic_ns()
                if not all(self.handle_key(key, now_ns) for key in read_keys(terminal)):
                    session.stop()

            self._live.start()
            try:
                return session.run(refresh=self.refresh, inputs={} if terminal is None else {terminal: press})
            finally:
                self._live.stop()

    def handle_news(self, news: News) -> None:
        """Keeps news for the next refresh."""
        if isinstance(news, WindowReport):
            self._last_window = news.summary
        elif isinstance(news, LiveEvent):
            self._events.append(news_line(news, self._watch.start_ns) or "")

    def refresh(self, now_ns: int) -> None:
        """Draws anew."""
        self._now_ns = now_ns
        wait_s = max(1.0, self._watch.probes.sent / _PROBES_A_SECOND)
        if self._total is None or now_ns - self._computed_ns >= wait_s * _S:
            self._total = self._watch.total()
            self._expectations = expectations(self._watch, self._subject)
            self._computed_ns = now_ns
        self._live.refresh()

    def handle_key(self, key: str, now_ns: int) -> bool:
        """Handles a key; unknown keys do nothing. Returns: whether to go on."""
        if key == "q":
            return False
        if key == "p":
            self._pause_or_resume(now_ns)
        elif key == "w":
            longer = [length * _S for length in _WINDOWS_S if length * _S > self._watch.windows.length_ns]
            for news in self._watch.change_window(longer[0] if longer else _WINDOWS_S[0] * _S, now_ns):
                self.handle_news(news)
        elif key == "+":
            self._zoom = max(0, self._zoom - 1)
        elif key == "-":
            self._zoom = min(len(_ZOOMS) - 1, self._zoom + 1)
        return True

    def end(self, ended_ns: int, judged: list[JudgedThreshold]) -> None:
        """The summary; it stays on the terminal."""
        click.echo(self._after.head)
        for event in self._events:
            click.echo(event)
        self._after.end(ended_ns, judged)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The display now."""
        yield self._head()
        yield self._numbers()
        yield from self._bars(options.max_width)
        yield from self._histogram()
        yield from (_cut(goodput_line(goodput)) for goodput in self._subject.measured)
        for expectation in filter(lambda expectation: expectation.says_something, self._expectations):
            note = f" ({expectation.note})" if expectation.note else ""
            yield _cut(f"TCP by {expectation.title}: {goodput_text(expectation.goodput, expectation.unit)}{note}")
        yield from (_cut(text) for text in silent_lines(self._expectations))
        yield from (_cut(event, style="yellow") for event in self._events)
        yield _cut(_KEYS, style="dim")

    def _pause_or_resume(self, now_ns: int) -> None:
        if self._watch.probes.is_sending:
            self._watch.probes.pause()
        else:
            self._watch.probes.resume(now_ns)

    def _head(self) -> Text:
        elapsed_s = (self._now_ns - self._watch.start_ns) / _S
        head = _cut(f"{self._after.head}, {elapsed_s:.0f} s", style="bold")
        if self._watch.is_out:
            head.append("  OUTAGE", style="bold red")
        if not self._watch.probes.is_sending:
            head.append("  paused", style="bold yellow")
        return head

    def _numbers(self) -> Group:
        window = f"{self._watch.windows.length_ns / _S:g} s"
        shown = {f"this window ({window})": self._watch.current(), "the one before": self._last_window}
        shown["since the start"] = self._total
        rows = []
        for name, text in _ROWS.items():
            texts = [NOTHING if summary is None else text(summary) for summary in shown.values()]
            if name not in _OF_SOME or any(said != NOTHING for said in texts):
                rows.append([name, *texts])
        lines = list(table_lines([TextColumn(name) for name in ("", *shown)], rows))
        for line in lines:
            line.no_wrap, line.overflow = True, "ellipsis"
        return Group(*lines)

    def _bars(self, width: int) -> Iterator[Text]:
        """The last round trips, as many as fit."""
        each = _ZOOMS[self._zoom]
        # A column begins at a multiple of its probes, so additions do not change it.
        last = self._watch.probes.decided
        first = max(0, -(-last // each) - (width - 1)) * each
        part = self._watch.probes.between(first, last)
        yield Text(sparkline(part, probes_a_column=each), no_wrap=True, style="cyan")
        signs = f"{LOST_MARK} is a lost one" + (f", {REFUSED_MARK} a refused one" if self._watch.can_be_refused else "")
        yield _cut(f"round trips, {count(each)} probe{'s' if each > 1 else ''} a column; {signs}", style="dim")

    def _histogram(self) -> Iterator[Text]:
        """The round trips since the start, or the last million."""
        last = self._watch.probes.decided
        answered = self._watch.probes.between(max(0, last - _HISTORY_PROBES), last).answered
        if answered.size:
            rows = histogram(answered)
            wide = max(len(edge) for edge, _, _ in rows)
            for edge, bar, number_of in rows:
                yield _cut(f"from {edge:>{wide}} {bar} {count(number_of)}")


def _share(share: Interval | None) -> str:
    return NOTHING if share is None else share_text(share)


def _count(number_of: int | None) -> str:
    return NOTHING if number_of is None else count(number_of)


def _quantile(summary: Summary, quantile: Interval | None) -> str:
    """In the median's unit."""
    if summary.median is None or quantile is None:
        return NOTHING
    divisor, unit = scale_of([summary.median.value], "ns")
    return f"{estimate_text(quantile, divisor)} {unit}"


_ROWS: Mapping[str, Callable[[Summary], str]] = {
    "sent": lambda of: count(of.sent),
    "lost": lambda of: count(of.lost),
    "loss": lambda of: _share(of.loss),
    "loss there": lambda of: _share(of.loss_there),
    "loss back": lambda of: _share(of.loss_back),
    "refused": lambda of: NOTHING if of.refusal is None else f"{count(of.refused or 0)}: {share_text(of.refusal)}",
    "minimum": lambda of: quantity(of.smallest_ns, "ns"),
    "median": lambda of: _quantile(of, of.median),
    "p95": lambda of: _quantile(of, of.p95),
    "maximum": lambda of: quantity(of.largest_ns, "ns"),
    "jitter": lambda of: quantity(of.jitter_ns, "ns"),
    "variation": lambda of: quantity(None if of.variation_p95 is None else of.variation_p95.value, "ns"),
    "reordered": lambda of: _count(of.reordered),
    "duplicates": lambda of: _count(of.duplicates),
}
"""A summary's numbers, by row."""


def _cut(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")


@contextmanager
def single_keys() -> Iterator[int | None]:
    """Has the terminal hand over each key at once, and not show it. Its settings are restored at the end.

    Yields: the descriptor to read keys from; None where standard input is no terminal.
    """
    if not sys.stdin.isatty():
        yield None
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    tty.setcbreak(terminal, termios.TCSANOW)
    try:
        yield terminal
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


def read_keys(terminal: int) -> str:
    """The pressed keys; "q" without a terminal."""
    try:
        pressed = os.read(terminal, 64)
    except OSError:
        pressed = b""
    return pressed.decode("ascii", errors="ignore") if pressed else "q"


def sparkline(part: Slice, *, probes_a_column: int) -> str:
    """A bar for every so many probes, as high as their longest round trip; a sign where one was lost or refused.

    The scale goes from the shortest to the longest round trip of the part.
    """
    answered = part.answered
    low, high = (float(answered.min()), float(answered.max())) if answered.size else (0.0, 0.0)
    columns = [slice(at, at + probes_a_column) for at in range(0, part.rtt_ns.size, probes_a_column)]
    return "".join(
        LOST_MARK if part.is_lost[column].any()
        else REFUSED_MARK if part.is_refused[column].any()
        else _bar(float(part.rtt_ns[column].max()), low, high)
        for column in columns
    )  # fmt: skip


def histogram(answered: Array) -> list[tuple[str, str, int]]:
    """A histogram's rows: (from, bar, count). The last row has everything above the 99 % quantile.

    Args: answered: round-trip times, ns, at least one.
    """
    top = float(np.quantile(answered, 0.99))
    low = float(answered.min())
    edges = np.linspace(low, max(top, low * 1.001, low + 1), _BINS)
    counts, _ = np.histogram(np.minimum(answered, edges[-1]), bins=[*edges, np.inf])
    divisor, unit = scale_of([float(np.median(answered))], "ns")
    most = int(counts.max())
    return [
        (f"{number(float(edge), divisor)} {unit}", "█" * round(_BAR_WIDTH * int(count) / most), int(count))
        for edge, count in zip(edges, counts, strict=True)
    ]


def _bar(value: float, low: float, high: float) -> str:
    share = (value - low) / (high - low) if high > low else 0.0
    return _BARS[min(len(_BARS) - 1, int(share * len(_BARS)))]
