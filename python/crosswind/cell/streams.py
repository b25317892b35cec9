"""Streams of this process for a client program: it reads, writes and answers the keyboard where the user is.

A terminal belongs to one process group at a time. While a client runs it has the terminal, so that the keys for signals
are its own; afterwards `restore` takes the terminal back, in the state in which it was.
"""

import fcntl
import os
import signal
import termios
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

NAMES = ("client_input", "client_output", "client_errors")
"""Keys of a cell's `output`."""


@dataclass(frozen=True)
class ClientStreams:
    """Descriptors for a client (docs/cell-protocol.md, `output`).

    Attributes: input, output, errors: their numbers, from 3 on. terminal: the one that is a terminal which this process
        holds at the moment, and which the client is to get; None where there is none. state: of the terminal.
    """

    input: int
    output: int
    errors: int
    terminal: int | None = None
    state: list[Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """The keys of a cell's `output`."""
        numbers = dict(zip(NAMES, (self.input, self.output, self.errors), strict=True))
        return {**numbers, "client_foreground": self.terminal is not None}

    def restore(self) -> None:
        """Takes the terminal back from a client that has ended, and puts it into the state that it was in."""
        if self.terminal is None:
            return
        # A process of the background that does this is stopped, unless it ignores the signal.
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        try:
            with suppress(OSError, termios.error):  # The terminal may be gone.
                os.tcsetpgrp(self.terminal, os.getpgrp())
                if self.state is not None:
                    termios.tcsetattr(self.terminal, termios.TCSADRAIN, self.state)
        finally:
            signal.signal(signal.SIGTTOU, before)


@contextmanager
def own_streams(*, has_jobs: bool) -> Iterator[ClientStreams]:
    """The standard streams of this process for clients, one after another.

    Args: has_jobs: whether clients are shells. Of any other program, nobody would notice that a key has stopped it, and
        nobody could have it go on: it is started with that signal ignored.
    """
    # From 3 on: a process that is started gets its own in the first three.
    copies = [fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 3) for number in range(3)]
    terminal = next((copy for copy in copies if _holds_terminal(copy)), None)
    state = None
    if terminal is not None:
        with suppress(termios.error):
            state = termios.tcgetattr(terminal)
    stops = signal.getsignal(signal.SIGTSTP)
    if terminal is not None and not has_jobs:
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    try:
        yield ClientStreams(copies[0], copies[1], copies[2], terminal=terminal, state=state)
    finally:
        signal.signal(signal.SIGTSTP, stops)
        for copy in copies:
            os.close(copy)


def _holds_terminal(number: int) -> bool:
    """Whether it is a terminal, and this process is in its foreground: one that was started with `&` is not."""
    try:
        return os.isatty(number) and os.tcgetpgrp(number) == os.getpgrp()
    except OSError:
        return False
