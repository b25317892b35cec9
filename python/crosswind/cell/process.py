"""One cell process: start `crosswind-cell`, feed it one cell, follow its events, end it in time.

A `CellProcess` never blocks and never waits: whoever owns it watches `streams()` for input, calls `handle_readable`
when there is some and `handle_time` when `next_wakeup` has come. Several can so share one loop. Whatever a cell does
(dies, hangs, prints garbage) ends as a `Failure`, which is data of that cell; the run goes on with the next.

The process leads a process group of its own, so that Ctrl-C on the terminal reaches it through us alone, once.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from crosswind.errors import EngineError, StudyError

BINARY = "crosswind-cell"
EVENT_SCHEMA = "crosswind.event/1"
RESULT_SCHEMA = "crosswind.cell-result/1"

GRACE_S = 10.0
"""How long after the cell's own deadline it may still take to say so. A cell that is over that hangs."""

INTERRUPT_GRACE_S = 1.5
"""From SIGINT to SIGKILL: a run must have stopped within 2 s of Ctrl-C."""

_DEFAULT_DEADLINE_NS = 600_000_000_000
_MAX_LINE_BYTES = 1 << 20
_KEPT_STDERR_BYTES = 1000

_REINSTALL = "`make install` builds it for this machine; `crosswind doctor` checks it"

Event = dict[str, Any]


@dataclass(frozen=True)
class Failure:
    """Why a cell has no result: `kind` is one of the cell protocol's, or `killed`, `protocol`, `deadline`, `start`."""

    kind: str
    message: str
    hint: str | None = None


@dataclass(frozen=True)
class Outcome:
    """How a cell ended: exactly one of `finished` (its event) and `failure` is set. `elapsed_ns` is wall time."""

    finished: Event | None
    failure: Failure | None
    elapsed_ns: int

    def failure_dict(self) -> dict[str, Any] | None:
        """The failure in the shape of the protocol's `error` event, or None."""
        return asdict(self.failure) if self.failure else None


def find_binary() -> Path:
    """Where `crosswind-cell` is: $CROSSWIND_CELL, else beside this Python, else on PATH.

    Raises: EngineError, with what to do, when it is nowhere or cannot be executed.
    """
    asked = os.environ.get("CROSSWIND_CELL")
    if asked:
        if os.access(asked, os.X_OK) and Path(asked).is_file():
            return Path(asked)
        raise EngineError(
            f"CROSSWIND_CELL is {asked!r}, which is not a program that can be run",
            hint=f"unset CROSSWIND_CELL, or set it to the path of {BINARY}",
        )
    for directory in (Path(sys.executable).parent, Path(sysconfig.get_path("scripts"))):
        if os.access(directory / BINARY, os.X_OK):
            return directory / BINARY
    found = shutil.which(BINARY)
    if found:
        return Path(found)
    raise EngineError(
        f"cannot find the program {BINARY}",
        hint="`make install` builds it and puts it beside this Python; or set CROSSWIND_CELL to its path",
    )


def stand_ins(binary: Path) -> dict[str, str]:
    """What the placeholders in argument lists of the workload `program` stand for on this machine."""
    return {"{python}": sys.executable or "python3", "{cell}": str(binary.absolute())}


def used_stand_ins(cells: Iterable[Mapping[str, Any]], binary: Path) -> dict[str, str]:
    """Those of `stand_ins` that the programs of some cells name."""
    arguments = [argument for cell in cells for command in _commands(cell).values() for argument in command]
    return {name: of for name, of in stand_ins(binary).items() if any(name in argument for argument in arguments)}


def filled_in(cell: Mapping[str, Any], binary: Path) -> Mapping[str, Any]:
    """The cell with its programs' placeholders filled in; those for addresses are crosswind-cell's own."""
    commands = _commands(cell)
    if not commands:
        return cell
    known = stand_ins(binary)
    filled = {end: [_replaced(argument, known) for argument in command] for end, command in commands.items()}
    return {**cell, "workload": {**cell["workload"], **filled}}


def _commands(cell: Mapping[str, Any]) -> dict[str, list[str]]:
    """The argument lists of a cell, by end; none but for the workload `program`."""
    workload = cell.get("workload") or {}
    if workload.get("kind") != "program":
        return {}
    return {end: list(workload[end]) for end in ("client", "server") if workload.get(end)}


def _replaced(argument: str, known: Mapping[str, str]) -> str:
    # In one pass: what stands in for one placeholder may hold the name of another. Other braces stay, as those of JSON.
    return re.sub("|".join(map(re.escape, known)), lambda found: known[found[0]], argument)


def check_cell(cell: Mapping[str, Any], *, binary: Path) -> None:
    """Has `crosswind-cell --check` judge a cell, without running it.

    Raises: StudyError when the cell is wrong. EngineError when the program cannot say.
    """
    try:
        answer = subprocess.run(
            [binary, "--check"], input=json.dumps(cell).encode(), capture_output=True, timeout=30, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise EngineError(f"cannot run {binary} --check: {error}", hint=_REINSTALL) from error
    if answer.returncode == 0:
        return
    try:
        event = json.loads(answer.stdout.splitlines()[-1])
        message, hint = str(event["message"]), event.get("hint")
    except (ValueError, LookupError, TypeError) as error:
        said = answer.stderr[-_KEPT_STDERR_BYTES:].decode(errors="replace").strip()
        raise EngineError(
            f"{binary} --check ended with status {answer.returncode} and no reason: {said}", hint=_REINSTALL
        ) from error
    raise StudyError(message, hint=hint)


class CellProcess:
    """One running cell.

    Args: cell: as in docs/cell-protocol.md, or with placeholders (`filled_in`). binary: from `find_binary`.
        on_event: called with every well-formed event.
    Raises: EngineError when the program cannot be started at all.
    """

    def __init__(
        self,
        cell: Mapping[str, Any],
        *,
        binary: Path,
        on_event: Callable[[Event], None] = lambda _event: None,
        grace_s: float = GRACE_S,
    ) -> None:
        self._on_event = on_event
        self._started = time.monotonic()
        self._deadline: float = self._started + cell.get("deadline_ns", _DEFAULT_DEADLINE_NS) / 1e9 + grace_s
        self._lines = bytearray()
        self._stderr = bytearray()
        self._last: Event | None = None
        self._failure: Failure | None = None
        self._interrupted = False
        try:
            self._process = subprocess.Popen(
                [binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, process_group=0
            )
        except OSError as error:
            raise EngineError(
                f"cannot start {binary}: {error.strerror}",
                hint=_REINSTALL,
            ) from error
        self._open = [_stream(self._process.stdout), _stream(self._process.stderr)]
        for stream in self._open:
            os.set_blocking(stream.fileno(), False)
        self._send(json.dumps(filled_in(cell, binary)).encode())

    @property
    def pid(self) -> int:
        """The process's number, which is also its group's."""
        return self._process.pid

    @property
    def done(self) -> bool:
        """Whether both of its streams have ended, so that `outcome` may be asked."""
        return not self._open

    def streams(self) -> list[IO[bytes]]:
        """What to watch for input. Changes when one ends."""
        return list(self._open)

    def next_wakeup(self) -> float:
        """When (time.monotonic) to call `handle_time`, unless the process has ended by then."""
        return self._deadline

    def handle_readable(self, stream: IO[bytes]) -> None:
        """Takes what one of `streams` has to give."""
        try:
            data = os.read(stream.fileno(), 1 << 16)
        except BlockingIOError:
            return
        if not data:
            self._open.remove(stream)
            stream.close()
        elif stream is self._process.stdout:
            self._take_output(data)
        else:
            self._stderr = (self._stderr + data)[-_KEPT_STDERR_BYTES:]

    def handle_time(self, now: float) -> None:
        """Kills the process when it is over its deadline, or over what it was given after an interrupt."""
        if now < self._deadline:
            return
        if not self._interrupted:
            self._fail(
                "deadline",
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
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """Ends the process and everything in its group, now."""
        self._signal(signal.SIGKILL)
        # A grandchild that left the group may hold the pipes open for ever; what it says is not wanted any more.
        for stream in self._open:
            stream.close()
        self._open.clear()

    def outcome(self) -> Outcome:
        """How it ended. To be called once `done`.

        A process that closed its streams and then does not exit is killed: it has nothing more to say.
        """
        try:
            status = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            self._signal(signal.SIGKILL)
            status = self._process.wait()
        elapsed_ns = int((time.monotonic() - self._started) * 1e9)
        finished, failure = self._judge(status)
        return Outcome(finished=finished, failure=failure, elapsed_ns=elapsed_ns)

    def _send(self, text: bytes) -> None:
        # A cell is a few kilobytes, a pipe holds 64: this does not block even when nobody reads.
        stdin = _stream(self._process.stdin)
        try:
            stdin.write(text)
            stdin.close()
        except BrokenPipeError:
            pass  # It died before it had read everything; its end says why.

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def _take_output(self, data: bytes) -> None:
        self._lines += data
        *lines, rest = self._lines.split(b"\n")
        self._lines = rest
        for line in lines:
            self._take_line(bytes(line))
        if len(rest) > _MAX_LINE_BYTES:
            self._breach(f"a line of more than {_MAX_LINE_BYTES} bytes")

    def _take_line(self, line: bytes) -> None:
        if self._failure is not None:
            return
        try:
            event = json.loads(line)
        except ValueError:
            self._breach(f"not JSON: {line[:80].decode(errors='replace')!r}")
            return
        reason = _flaw(event, first=self._last is None)
        if reason is not None:
            self._breach(reason)
            return
        self._last = event
        self._on_event(event)

    def _breach(self, what: str) -> None:
        self._fail("protocol", f"{BINARY} broke the cell protocol: {what}", "reinstall: binary and package must match")
        self.kill()

    def _fail(self, kind: str, message: str, hint: str | None) -> None:
        if self._failure is None:
            self._failure = Failure(kind, message + self._stderr_tail(), hint)

    def _judge(self, status: int) -> tuple[Event | None, Failure | None]:
        last = self._last or {}
        if self._interrupted and last.get("event") != "finished":
            return None, Failure("interrupted", "interrupted before it ended")
        if self._failure is None and last.get("event") == "error":
            return None, Failure(str(last.get("kind")), str(last.get("message")), last.get("hint"))
        if self._failure is None and last.get("event") == "finished" and status == 0:
            return last, None
        if status < 0:
            self._fail("killed", f"the cell was ended by signal {_signal_name(-status)}", _kill_hint(-status))
        self._fail("protocol", f"{BINARY} ended with status {status} without a last word", "`crosswind doctor`")
        return None, self._failure

    def _stderr_tail(self) -> str:
        text = self._stderr.decode(errors="replace").strip()
        return f"; it said: {text}" if text else ""


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # Each was asked for as a pipe.
    return stream


def _flaw(event: object, *, first: bool) -> str | None:
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return f"not an event: {json.dumps(event)[:80]}"
    if event["event"] == "started" and event.get("schema") != EVENT_SCHEMA:
        return f"events of schema {event.get('schema')!r}, not {EVENT_SCHEMA!r}"
    if event["event"] == "finished" and event.get("schema") != RESULT_SCHEMA:
        return f"a result of schema {event.get('schema')!r}, not {RESULT_SCHEMA!r}"
    if first and event["event"] not in ("started", "error"):
        return f"its first event is {event['event']!r}, not 'started'"
    return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _kill_hint(number: int) -> str | None:
    if number == signal.SIGKILL:
        return "something killed it, perhaps the kernel for want of memory (`dmesg`); --resume runs it again"
    return "this is a bug in crosswind-cell; --resume runs the cell again"
