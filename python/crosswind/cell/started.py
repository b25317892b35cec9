"""A started crosswind-cell: a process on this machine, or a guest with its own kernel and clock.

Both have the same methods, so a cell's follower need not distinguish them.
"""

import contextlib
import errno
import math
import os
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from crosswind.catalog.endpoints import commands_of, starting_ns
from crosswind.catalog.warning import ResultWarning, WarningKind
from crosswind.cell.binary import BINARY, REINSTALL
from crosswind.cell.guests import GuestRequest, GuestState, Template, read_ended
from crosswind.errors import EngineError

STUCK_S = 30.0
"""Maximum standstill for virtual time while a guest computes, without its waits for a processor. A browser's start
takes less.
"""

LEAST_STUCK_S = 1.0
"""A program may compute for as long as its timeout, and at least so long: an interpreter takes some tenths to start."""

LEAST_ADVANCE_NS = 100_000
"""Virtual time stands still below this advance: readings of the clock take 1 ns each."""

COMPUTING_S = 1.0
"""Maximum processor time for one thread without a system call while others could run. It may wait for one of them."""

_LOOK_S = 0.1
"""How often a guest is asked whether its virtual time moves."""

_CALL_NS = 1_100
"""Maximum virtual time for a non-waiting system call: its price (LEAST_PRICE_NS in kernel/files/arch/um/kernel/price.c)
and some readings of the clock.
"""

_EMULATOR = "emulator"
"""The thread forwarding packets (crates/host/src/emulator)."""

_POLLS = {
    7: "poll",
    23: "select",
    232: "epoll_wait",
    270: "pselect6",
    271: "ppoll",
    281: "epoll_pwait",
    441: "epoll_pwait2",
}
"""System calls for waiting on descriptors, by number on x86-64."""

_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "VIRTUAL_ENV", "PYTHONPATH", "NODE_PATH", "GOPATH", "XDG_CACHE_HOME")
"""This process's environment visible to programs in a guest."""

# Without it Python looks for compiled modules beside their sources on the machine. Whether they are there depends on
# what was imported before, and a program that does not find them makes more calls that fail, which may take time.
_OF_GUESTS = {
    "PYTHONPYCACHEPREFIX": "/run/tmp/crosswind-pycache",
    # BoringSSL, which Chromium has, and OpenSSL take randomness from the processor itself where it is an Intel one,
    # past the guest's kernel and its seed. Bit 62 is RDRAND.
    "OPENSSL_ia32cap": "~0x4000000000000000",
}
"""Further variables for them: the guest's own directory, empty at the program's start, and a processor without
randomness.
"""

_DUMP_BEGINS = b"kmsg_dump:"
_PANIC = b"Kernel panic"
"""User-Mode Linux writes all its messages to standard output when it panics."""

_NO_SUCH_PROCESS = f"errno = {errno.ESRCH}"
"""The end of messages about a lost traced process (crates/host/src/guest.rs)."""

_OWN_PLACES = ("/proc", "/sys", "/run", "/dev")
"""A guest's own directories (crates/host/src/guest.rs)."""


class Program(ABC):
    """A started cell. Attributes: output, errors: its streams. pid: its process group."""

    pid: int
    output: IO[bytes]
    errors: IO[bytes]
    look_s = math.inf
    """The interval for asking about a `problem`."""

    @abstractmethod
    def interrupt(self) -> None:
        """Asks it to end."""

    @abstractmethod
    def kill(self) -> None:
        """Ends it and its children now."""

    @abstractmethod
    def wait(self) -> int | None:
        """Its exit status, negative for a signal; None after an earlier end of its kernel.

        To be called once its streams have ended. It is killed if it goes on.
        """

    def takes(self, line: bytes) -> bool:  # noqa: ARG002
        """Whether an output line is its guest's, not the cell's."""
        return False

    def output_tail(self) -> str:
        """Why its kernel failed, if it did. The machine's own never does."""
        return ""

    def interference(self) -> str | None:
        """Outside interference voiding its result, if seen."""
        return None

    def problem(self, now: float) -> str | None:  # noqa: ARG002
        """Why it will never end, if seen."""
        return None

    def warning(self) -> ResultWarning | None:
        """What its reader should know about its result."""
        return None

    def allowed_s(self, deadline_s: float) -> float:
        """Its wall time for a cell's deadline."""
        return deadline_s


class Process(Program):
    """A process on this machine.

    Args: passed: descriptors to keep. directory: its own; None for this process's.
    Raises: EngineError when none starts.
    """

    def __init__(self, binary: Path, text: bytes, passed: Sequence[int] = (), directory: Path | None = None) -> None:
        pipe = subprocess.PIPE
        try:
            self._process = subprocess.Popen(
                [binary.absolute()],
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                process_group=0,
                pass_fds=passed,
                cwd=directory,
            )
        except OSError as error:
            raise EngineError(f"cannot start {binary}: {error.strerror}", hint=REINSTALL) from error
        self.pid = self._process.pid
        self.output, self.errors = _stream(self._process.stdout), _stream(self._process.stderr)
        # A cell is a few kilobytes, a pipe holds 64: this does not block even when nobody reads.
        stdin = _stream(self._process.stdin)
        with contextlib.suppress(BrokenPipeError):  # It died before it had read everything; its end says why.
            stdin.write(text)
            stdin.close()

    def interrupt(self) -> None:
        """Asks it to end."""
        self._signal(signal.SIGINT)

    def kill(self) -> None:
        """Ends its whole group."""
        self._signal(signal.SIGKILL)

    def wait(self) -> int | None:
        """Its exit status."""
        try:
            return self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            self.kill()
            return self._process.wait()

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)


def _seed_of(cell: Mapping[str, Any]) -> int:
    """The hosts' own, or the repetition's."""
    own = (cell.get("host") or {}).get("random_seed")
    return int(cell.get("seed", 1) if own is None else own)


class InGuest(Program):
    """A cell in a guest, on one processor.

    Args: programs_directory: where its programs run; None for this process's. Raises: EngineError when the kernel does
    not run.
    """

    look_s = _LOOK_S

    def __init__(
        self,
        template: Template,
        cell: Mapping[str, Any],
        text: bytes,
        cpu: int | None,
        programs_directory: Path | None = None,
    ) -> None:
        directory = (cell.get("output") or {}).get("directory")
        request = GuestRequest(
            seed=_seed_of(cell),
            input=text.decode(),
            writable=Path(directory) if directory else None,
            layered=bool(commands_of(cell)),
            directory=_working_directory(programs_directory),
            environment={**{name: os.environ[name] for name in _INHERITED if name in os.environ}, **_OF_GUESTS},
        )
        self._guest = template.start(request, cpu=cpu)
        self.pid, self.output, self.errors = self._guest.pid, self._guest.output, self._guest.errors
        self._status: int | None = None
        starting_s = starting_ns(cell) / 1e9
        self._timeout_s = max(_timeout_s(cell), starting_s)
        self._stuck_s = max(STUCK_S, starting_s)
        self._last = self._moved_to = self._waited_to = GuestState(0, 0, "", 0)
        self._moved = self._waited = self._looked = time.monotonic()
        self._processor_s: float | None = None
        self._called = self._moved
        self._computing: tuple[int, float] | None = None
        self._dumped = False
        self._output_tail = ""
        self._interference: str | None = None

    def interrupt(self) -> None:
        """Ends it: there is nothing to clean up."""
        self._guest.kill()

    def kill(self) -> None:
        """Ends it."""
        self._guest.kill()

    def wait(self) -> int | None:
        """The cell's exit status."""
        self._guest.kill()
        return self._status

    def takes(self, line: bytes) -> bool:
        """A guest's last line, and its kernel's panic messages."""
        if self._dumped or line.endswith(_DUMP_BEGINS):
            self._dumped = True
            if _PANIC in line:
                self._output_tail = line[line.index(_PANIC) :].decode(errors="replace").strip()
                if self._output_tail.endswith(_NO_SUCH_PROCESS):
                    self._interference = _lost_process(self._output_tail)
            return True
        ended = read_ended(line)
        if ended is None:
            return False
        status = ended["status"]
        # As a shell, it says 128 and the number of a signal.
        self._status = 128 - status if status > 128 else status
        self._output_tail = ended["error"] or ""
        if lost := ended.get("lost_process"):
            self._interference = _lost_process(lost)
        # It has nothing left to do. The kernel's own end takes a while, and nobody needs it.
        self._guest.kill()
        return True

    def output_tail(self) -> str:
        """Why its kernel panicked or could not begin, or its guest could not start it."""
        return self._output_tail or ("" if self._status is not None else self._guest.complaint())

    def interference(self) -> str | None:
        """A kill under one of the guest's processes, if any."""
        return self._interference

    def problem(self, now: float) -> str | None:
        """A standstill: virtual time stops, or only non-waiting calls move it."""
        state, last = self._guest.state(), self._last
        self._last = state
        calls = state.calls - last.calls
        # The cell itself is at work: at its end it may take a while to write files.
        cell_works = calls > 0 and state.process == BINARY
        if cell_works or state.virtual_ns - self._moved_to.virtual_ns >= LEAST_ADVANCE_NS:
            self._moved, self._moved_to = now, state
        # While packets are forwarded, the clock is right, however little it moves.
        forwards = calls > 0 and state.process == _EMULATOR
        if cell_works or forwards or state.virtual_ns - last.virtual_ns > _CALL_NS * calls:
            self._waited, self._waited_to = now, state
        if state.can_interrupt:
            self._interrupt_computing(now, calls)
        self._leave_out_starvation(now)
        stood_s, worked_s = now - self._moved, now - self._waited
        if stood_s < min(self._stuck_s, self._timeout_s) and worked_s < self._timeout_s:
            return None
        moved_ns, made = state.virtual_ns - self._waited_to.virtual_ns, state.calls - self._waited_to.calls
        moved = "stood still for" if moved_ns < 1_000_000 else f"moved by {moved_ns / 1e9:.3f} s in"
        return f"{_in_words(state, calls, made)}: virtual time {moved} {max(stood_s, worked_s):.0f} s"

    def warning(self) -> ResultWarning | None:
        """That the machine decided when some threads ran, if it did."""
        state = self._guest.state()
        if not state.interruptions:
            return None
        return WarningKind.INTERRUPTED.warning(process=state.interrupted, count=state.interruptions)

    def _interrupt_computing(self, now: float, calls: int) -> None:
        """Interrupts a thread that computes for long without a system call: its kernel cannot, since no time passes."""
        if calls:
            self._called, self._computing = now, None
        if now - self._called < COMPUTING_S / 4:
            return
        computing = self._guest.computing()
        if computing is None or self._computing is None or computing[0] != self._computing[0]:
            self._computing = computing
        elif computing[1] - self._computing[1] >= COMPUTING_S:
            self._computing = computing
            self._guest.interrupt(computing[0])

    def _leave_out_starvation(self, now: float) -> None:
        """Leaves out the guest's waits for a processor since the last look."""
        before_s, looked = self._processor_s, self._looked
        # Looking at all processes of the machine is left to the rare case.
        slow = now - min(self._moved, self._waited) >= LEAST_STUCK_S / 4
        self._processor_s, self._looked = self._guest.processor_s() if slow else None, now
        if before_s is not None and self._processor_s is not None:
            starved_s = max(0.0, now - looked - (self._processor_s - before_s))
            self._moved += starved_s
            self._waited += starved_s

    def allowed_s(self, deadline_s: float) -> float:
        """Much longer: a busy second in virtual time takes several real ones."""
        return 60.0 + 20.0 * deadline_s


def _timeout_s(cell: Mapping[str, Any]) -> float:
    """For how long a client may take no virtual time; infinite where it is no program with a timeout."""
    workload = cell.get("workload") or {}
    if workload.get("kind") != "program" or "timeout_ns" not in workload:
        return math.inf
    timeout_s: float = workload["timeout_ns"] / 1e9
    return max(LEAST_STUCK_S, timeout_s)


def _in_words(state: GuestState, calls: int, made: int) -> str:
    """A program's activity while virtual time stands still.

    Args: calls: made since the last look. made: since its last wait.
    """
    process = state.process or BINARY
    if not calls:
        return f"{process} computes without a system call (its last one was number {state.call})"
    if (poll := _POLLS.get(state.call)) is not None:
        return f"{process} polls a descriptor that is always ready ({poll})"
    # It may be a loop, or a program still starting.
    return f"{process} made the last of {made} system calls that did not wait (number {state.call})"


def _lost_process(message: str) -> str:
    """The explanation for the guest kernel's message."""
    what = "a process of this machine was killed on which the guest ran one of its own"
    return f"{what} (its kernel says: {message})"


def _working_directory(wanted: Path | None) -> Path | None:
    """Where a program's relative paths lead, as for a process of this machine; None where a guest cannot follow."""
    try:
        here = wanted or Path.cwd()
    except OSError:
        return None
    return None if any(here.is_relative_to(place) for place in _OWN_PLACES) else here


def _stream(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None  # Each was asked for as a pipe.
    return stream
