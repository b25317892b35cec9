"""The loop between a host, a watch and observers: it waits, sends, reads, and passes news on."""

import os
import select
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from crosswind.live.probe import Probe
from crosswind.live.watch import News, Watch

_MILLISECOND_NS = 10**6
_LONGEST_WAIT_MS = 1000
_REFRESH_NS = 250 * _MILLISECOND_NS


class LiveSession:
    """Probes a host until its time is over or `stop` is called.

    Args: clock: monotonic, ns. end_ns: when the last probe may be sent; None: never ends by itself.
    """

    def __init__(self, watch: Watch, probe: Probe, *, clock: Callable[[], int], end_ns: int | None) -> None:
        self.watch = watch
        self._probe, self._clock, self._end_ns = probe, clock, end_ns
        self._observers: list[Callable[[News], None]] = []
        self._refresh: Callable[[int], None] | None = None
        self._next_refresh_ns = watch.start_ns
        self._is_stopped = False

    def inform(self, observer: Callable[[News], None]) -> None:
        """Adds an observer for all news."""
        self._observers.append(observer)

    def stop(self) -> None:
        """Ends it: outstanding probes are not waited for, and have no verdict."""
        self._is_stopped = True

    def run(
        self,
        *,
        refresh: Callable[[int], None] | None = None,
        inputs: Mapping[int, Callable[[], object]] | None = None,
    ) -> int:
        """Probes. Returns: its end, ns on the clock.

        Args:
            refresh: is called four times a second with the time.
            inputs: descriptors, and callbacks for input on them.
        """
        self._refresh = refresh
        with _woken_by_signals(self.stop) as woken:
            on_input = {**(inputs or {}), woken: lambda: os.read(woken, 64), self._probe.file(): self._read}
            waiting = select.poll()
            for file in on_input:
                waiting.register(file, select.POLLIN)
            while not self._is_over():
                self._send()
                for file, _ in waiting.poll(self._wait_ms()):
                    on_input[file]()
                self._advance()
        now_ns = self._clock()
        self._tell(self.watch.close(now_ns))
        return now_ns

    def _is_over(self) -> bool:
        if self._is_stopped:
            return True
        if self._end_ns is None or self._clock() < self._end_ns:
            return False
        self.watch.probes.pause()
        return self.watch.is_settled

    def _send(self) -> None:
        if self._end_ns is not None and self._clock() >= self._end_ns:
            return
        sequence = self.watch.probes.poll_send(self._clock())
        if sequence is None:
            return
        sent_ns = self._probe.send(sequence)
        if sent_ns is None:
            self.watch.probes.handle_failure(sequence)
        else:
            self.watch.probes.handle_sent(sequence, sent_ns)

    def _read(self) -> None:
        for reply in self._probe.replies():
            self.watch.probes.handle_reply(reply)

    def _advance(self) -> None:
        now_ns = self._clock()
        self._read()
        self._tell(self.watch.handle_time(now_ns))
        self._probe.forget(now_ns, self.watch.probes.timeout_ns)
        if self._refresh is not None and now_ns >= self._next_refresh_ns:
            self._refresh(now_ns)
            self._next_refresh_ns = self._clock() + _REFRESH_NS

    def _tell(self, news: Iterable[News]) -> None:
        for message in news:
            for observer in self._observers:
                observer(message)

    def _wait_ms(self) -> float:
        """Time until the next due action, rounded up to save idle turns."""
        due = [self.watch.probes.next_wakeup(), self._end_ns]
        if self._refresh is not None:
            due.append(self._next_refresh_ns)
        now_ns = self._clock()
        known = [time_ns for time_ns in due if time_ns is not None and time_ns > now_ns]
        if due[0] is not None and due[0] <= now_ns:
            return 0
        return -((now_ns - min(known)) // _MILLISECOND_NS) if known else _LONGEST_WAIT_MS


@contextmanager
def _woken_by_signals(stop: Callable[[], None]) -> Iterator[int]:
    """Has SIGINT and SIGTERM call `stop`, and a descriptor become readable then."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signals = (signal.SIGINT, signal.SIGTERM)

    def handle(*_: object) -> None:
        stop()
        os.write(writing, b"\0")

    before = [signal.signal(number, handle) for number in signals]
    try:
        yield reading
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)
        os.close(reading)
        os.close(writing)
