"""Asking a run to stop: from a signal handler, another thread, or an observer."""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


class StopRequests:
    """Counts stop requests; its pipe can be waited on in a loop."""

    def __init__(self) -> None:
        self.count = 0
        self._reading, self._writing = os.pipe()

    def fileno(self) -> int:
        """The pipe's end to watch for input."""
        return self._reading

    def request(self) -> None:
        """Asks for a stop. Callable from a signal handler."""
        with suppress(OSError):  # Too late: the run is over.
            os.write(self._writing, b"x")

    def take(self) -> int:
        """How often a stop was asked for since the last call; to be called when there is input."""
        requests = len(os.read(self._reading, 16))
        self.count += requests
        return requests

    def close(self) -> None:
        """Gives the pipe back."""
        for end in (self._reading, self._writing):
            os.close(end)
        self._reading = self._writing = -1


@contextmanager
def stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Calls `stop` on SIGINT and SIGTERM while inside. In another thread than the main one it leaves signals alone."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, lambda *_: stop()) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(TypeError):  # A handler set outside Python cannot be put back.
                signal.signal(number, handler)
