"""Single keys of a terminal, without Enter."""

import os
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager


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
    """The keys that were pressed; "q" where the terminal is gone."""
    try:
        pressed = os.read(terminal, 64)
    except OSError:
        pressed = b""
    return pressed.decode("ascii", errors="ignore") if pressed else "q"
