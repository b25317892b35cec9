"""One cell process: starts `crosswind-cell`, feeds it one cell, follows its events, ends it in time.

A `CellProcess` never blocks and never waits: its owner watches `streams()` for input, calls `handle_readable` on input
and `handle_time` at `next_wakeup`, so several can share one loop. Any misbehaviour (death, hang, garbage) ends as a
`Failure`, the cell's data; the run goes on with the next.

The process leads its own process group, so Ctrl-C on the terminal reaches it once, from here.
"""

import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from crosswind.cell.binary import BINARY, with_ports
from crosswind.cell.events import CellEvent, Measured, ProtocolError, Started, read_event
from crosswind.cell.failure import ErrorKind, Failure
from crosswind.cell.guests import MEMORY_MB, PROGRAM_MEMORY_MB, Template
from crosswind.cell.result import Finished
from crosswind.cell.started import InGuest, Process, Program
from crosswind.cell.streams import NAMES

GRACE_S = 10.0
"""Grace after the cell's own deadline. A longer cell hangs."""

INTERRUPT_GRACE_S = 1.5
"""From SIGINT to SIGKILL: a run must have stopped within 2 s of Ctrl-C."""

_PANIC_HINT = (
    f"a guest has one processor and {MEMORY_MB} MB of memory, {PROGRAM_MEMORY_MB} MB where it runs programs; "
    "--clock real runs the cell on the machine itself"
)
_STUCK_HINT = "computing takes no virtual time: give a longer timeout, or run this program with --clock real"
_DEFAULT_DEADLINE_NS = 600_000_000_000
_LONGEST_LINE_BYTES = 1 << 20
_READ_SIZE = 1 << 16
_KEPT_STDERR_BYTES = 1000


@dataclass(frozen=True)
class CellEnd:
    """A cell's end: exactly one of `finished` (its result) and `failure` is set.

    Attributes:
        elapsed_ns: wall time. machine: its machine's name; None for this one.
        parts_ns: wall time for the time breakdown; None if unrequested or unknown.
    """

    finished: Finished | None
    failure: Failure | None
    elapsed_ns: int
    machine: str | None = None
    parts_ns: int | None = None


class CellProcess:
    """One running cell.

    Args: cell: as in docs/cell-protocol.md, or with placeholders (`filled_in`). binary: from `find_binary`. on_event:
        called with every well-formed event. template: its virtual-time kernel; None for the machine itself. cpu: a
        guest's processor. directory: that of its programs; None for this process's.
    Raises: EngineError when the program cannot be started at all.
    """

    def __init__(
        self,
        cell: Mapping[str, Any],
        *,
        binary: Path,
        on_event: Callable[[CellEvent], None] = lambda _event: None,
        grace_s: float = GRACE_S,
        template: Template | None = None,
        cpu: int | None = None,
        directory: Path | None = None,
    ) -> None:
        self._on_event = on_event
        self._lines = bytearray()
        self._stderr = bytearray()
        self._last_event: CellEvent | None = None
        self._failure: Failure | None = None
        self._interrupted = False
        self._next_look = 0.0
        self._started = time.monotonic()
        self._measured: float | None = None
        self._parts_ns: int | None = None
        text = json.dumps(with_ports(cell, binary)).encode()
        if template is None:
            self._process: Program = Process(binary, text, _passed(cell), directory)
        else:
            self._process = InGuest(template, cell, text, cpu, directory)
        allowed_s = self._process.allowed_s(cell.get("deadline_ns", _DEFAULT_DEADLINE_NS) / 1e9)
        self._deadline: float = self._started + allowed_s + grace_s
        self._open = [self._process.output, self._process.errors]
        for stream in self._open:
            os.set_blocking(stream.fileno(), False)

    @property
    def pid(self) -> int:
        """The number, also its group's."""
        return self._process.pid

    @property
    def done(self) -> bool:
        """Whether both streams have ended, so `end` may be called."""
        return not self._open

    def streams(self) -> list[IO[bytes]]:
        """Streams to watch for input. Changes when one ends."""
        return list(self._open)

    def next_wakeup(self) -> float:
        """When (time.monotonic) to call `handle_time`, unless the process has ended by then."""
        return min(self._deadline, self._next_look)

    def handle_readable(self, stream: IO[bytes]) -> None:
        """Reads from one of `streams`."""
        try:
            data = os.read(stream.fileno(), _READ_SIZE)
        except BlockingIOError:
            return
        if not data:
            self._open.remove(stream)
            stream.close()
        elif stream is self._process.output:
            self._take_output(data)
        else:
            self._stderr = (self._stderr + data)[-_KEPT_STDERR_BYTES:]

    def handle_time(self, now: float) -> None:
        """Kills an overdue or stuck process."""
        if now < self._deadline:
            self._next_look = now + self._process.look_s
            if (problem := self._process.problem(now)) is not None:
                self._fail(ErrorKind.DEADLINE, problem, _STUCK_HINT)
                self.kill()
            return
        if not self._interrupted:
            self._fail(
                ErrorKind.DEADLINE,
                f"the cell did not end within its deadline and was killed after {now - self._started:.0f} s",
                "fewer messages or less data per cell; the deadline follows from the expected duration",
            )
        self.kill()

    def interrupt(self) -> None:
        """Asks the process to end. It is killed when it has not in INTERRUPT_GRACE_S, and at once when asked twice."""
        if self._interrupted:
            self.kill()
            return
        self._interrupted = True
        self._deadline = time.monotonic() + INTERRUPT_GRACE_S
        self._process.interrupt()

    def kill(self) -> None:
        """Ends the process and everything in its group, now."""
        self._process.kill()
        # A grandchild outside the group may hold the pipes open for ever; its output is no longer wanted.
        for stream in self._open:
            stream.close()
        self._open.clear()

    def end(self) -> CellEnd:
        """How it ended. To be called once `done`.

        A process with closed streams and without an exit is killed: it has nothing more to say.
        """
        status = self._process.wait()
        elapsed_ns = int((time.monotonic() - self._started) * 1e9)
        ended = self._result_or_failure(status)
        if isinstance(ended, Finished):
            if (warning := self._process.warning()) is not None:
                ended = ended.model_copy(update={"warnings": (*ended.warnings, warning)})
            return CellEnd(finished=ended, failure=None, elapsed_ns=elapsed_ns, parts_ns=self._parts_ns)
        return CellEnd(finished=None, failure=ended, elapsed_ns=elapsed_ns)

    def _take_output(self, data: bytes) -> None:
        self._lines += data
        *lines, rest = self._lines.split(b"\n")
        self._lines = rest
        for line in lines:
            self._take_line(bytes(line))
        if len(rest) > _LONGEST_LINE_BYTES:
            self._break_off(f"a line of more than {_LONGEST_LINE_BYTES} bytes")

    def _take_line(self, line: bytes) -> None:
        if self._failure is not None or self._process.takes(line):
            return
        try:
            event = read_event(line)
            if self._last_event is None and not isinstance(event, Started | Failure):
                raise ProtocolError(f"its first event is {event.event if event else None!r}, not 'started'")
        except ProtocolError as error:
            self._break_off(str(error))
            return
        if isinstance(event, Measured):
            self._measured = time.monotonic()
        elif isinstance(event, Finished) and self._measured is not None:
            self._parts_ns = int((time.monotonic() - self._measured) * 1e9)
        if event is not None:
            self._last_event = event
            self._on_event(event)

    def _break_off(self, what: str) -> None:
        hint = "reinstall: binary and package must match"
        self._fail(ErrorKind.PROTOCOL, f"{BINARY} broke the cell protocol: {what}", hint)
        self.kill()

    def _fail(self, kind: ErrorKind, message: str, hint: str | None) -> None:
        """Notes why the cell has no result. The first reason stays."""
        if self._failure is None:
            self._failure = Failure(kind, message + self._stderr_tail(), hint)

    def _result_or_failure(self, status: int | None) -> Finished | Failure:
        last = self._last_event
        if self._interrupted and not isinstance(last, Finished):
            return Failure(ErrorKind.INTERRUPTED, "interrupted before it ended", None)
        if self._failure is not None:
            return self._failure
        if (interference := self._process.interference()) is not None:
            return Failure(ErrorKind.KILLED, interference, _kill_hint(signal.SIGKILL))
        if isinstance(last, Failure) or (isinstance(last, Finished) and status == 0):
            return last
        return self._abrupt_end(status)

    def _abrupt_end(self, status: int | None) -> Failure:
        """Why there is neither a result nor an error."""
        output_tail = self._process.output_tail()
        if status is None:
            message = "the kernel that it ran on ended before it did"
            if output_tail:
                return Failure(ErrorKind.KILLED, f"{message}: {output_tail}", _PANIC_HINT)
            return Failure(ErrorKind.KILLED, message + self._stderr_tail(), _kill_hint(signal.SIGKILL))
        if status < 0:
            message = f"the cell was ended by signal {_signal_name(-status)}"
            return Failure(ErrorKind.KILLED, message + self._stderr_tail(), _kill_hint(-status))
        if output_tail:
            return Failure(ErrorKind.HOST, f"the guest could not run {BINARY}: {output_tail}", "`crosswind doctor`")
        message = f"{BINARY} ended with status {status} and printed neither a result nor an error"
        return Failure(ErrorKind.PROTOCOL, message + self._stderr_tail(), "`crosswind doctor`")

    def _stderr_tail(self) -> str:
        text = self._stderr.decode(errors="replace").strip()
        return f"; on its standard error: {text}" if text else ""


def _passed(cell: Mapping[str, Any]) -> list[int]:
    """The descriptors named by a cell as its client's streams."""
    output = cell.get("output") or {}
    return [output[name] for name in NAMES if output.get(name) is not None]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _kill_hint(number: int) -> str | None:
    if number == signal.SIGKILL:
        return "something killed it, perhaps the kernel for want of memory (`dmesg`); --resume runs it again"
    return "this is a bug in crosswind-cell; --resume runs the cell again"
