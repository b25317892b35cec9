"""Processes at a terminal, which is a pty's."""

import os
import pty
import re
import select
import signal
import termios
from dataclasses import dataclass

from e2e_cli import Cli


@dataclass
class Terminal:
    """A process at a terminal of its own, and what it has written there."""

    process: int
    keyboard: int
    screen: str = ""

    def see(self, pattern: str) -> str:
        """Waits until what is on the screen has the pattern, from what was seen last on. Returns what matches."""
        while (found := re.search(pattern, self.screen)) is None:
            assert self._read(), f"ended without {pattern!r}: {self.screen!r}"
        self.screen = self.screen[found.end() :]
        return found[0]

    def type(self, text: str) -> None:
        """Presses keys."""
        os.write(self.keyboard, text.encode())

    @property
    def echoes(self) -> bool:
        """Whether it shows what is typed."""
        local_modes: int = termios.tcgetattr(self.keyboard)[3]
        return bool(local_modes & termios.ECHO)

    def end(self) -> tuple[int, str]:
        """Its exit status once it has ended, and what it has written since it was seen last."""
        while self._read():
            pass
        _, status = os.waitpid(self.process, 0)
        self.process = 0
        return os.waitstatus_to_exitcode(status), self.screen

    def _read(self) -> bool:
        select.select([self.keyboard], [], [])
        try:
            data = os.read(self.keyboard, 4096)
        except OSError:  # The other end is closed.
            return False
        self.screen += data.decode(errors="replace")
        return bool(data)


class Terminals:
    """Starts command lines, each at a terminal."""

    def __init__(self, crosswind: Cli) -> None:
        self._crosswind = crosswind
        self._started: list[Terminal] = []

    def __call__(self, *arguments: str, **environment: str) -> Terminal:
        process, keyboard = pty.fork()
        if process == 0:
            os.chdir(self._crosswind.cwd)
            command = self._crosswind.command(*arguments)
            os.execve(command[0], command, {**self._crosswind.env, "TERM": "dumb", **environment})
        self._started.append(Terminal(process, keyboard))
        return self._started[-1]

    def close(self) -> None:
        """Ends whatever still runs."""
        for terminal in self._started:
            if terminal.process:
                os.kill(terminal.process, signal.SIGKILL)
                os.waitpid(terminal.process, 0)
            os.close(terminal.keyboard)
