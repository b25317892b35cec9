"""This process's streams for a client program: it reads, writes and answers the keyboard at the user's place.

A terminal belongs to one process group at a time. A running client has the terminal, so the keys for signals are its
own; afterwards `restore` takes the terminal back, in its former state.
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
    """A client's descriptors (docs/cell-protocol.md, `output`).

    Attributes: input, output, errors: their numbers, from 3 on. terminal: the one to hand to the client, held by this
        process; None without one. state: the terminal's.
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
        """Takes the terminal back from an ended client, and restores its state."""
        if self.terminal is None:
            return
        # A background process doing this is stopped, unless it ignores the signal.
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
    """This process's standard streams for clients, one after another.

    Args: has_jobs: whether clients are shells. Any other program, stopped by a key, could not be continued: it starts
        ignoring that signal.
    """
    # From 3 on: a new process gets its own in the first three.
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
    """Whether it is a terminal with this process in its foreground, not started with `&`."""
    try:
        return os.isatty(number) and os.tcgetpgrp(number) == os.getpgrp()
    except OSError:
        return False
