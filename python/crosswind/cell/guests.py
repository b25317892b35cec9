"""Guests: copies from a booted virtual-time kernel, for one program each.

A `Template` is a booted, waiting kernel. `start` has it copy itself: the copy takes milliseconds, starts in the same
state at the same virtual time as every other, and executes its request. A guest ends with the template, and the
template with this process.
"""

import contextlib
import json
import mmap
import os
import signal
import socket
import struct
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from crosswind.cell.kernels import Kernel
from crosswind.cell.requirements import (
    BOOTED_BYTES,
    NEEDS,
    PROGRAM_BOOTED_BYTES,
    check_proc,
    check_readable,
    memory_directory,
    not_running,
)
from crosswind.errors import EngineError

MEMORY_MB = 512
"""A guest's. Unused memory takes no space."""

PROGRAM_MEMORY_MB = 3072
"""For a guest with third-party programs: with 512 MB a page in Chromium crashes.

The kernel's page list takes 43 MB more, and copying it 60 ms.
"""

START_NS = 1_767_225_600_000_000_000
"""Every guest's time at its start: 2026-01-01, 00:00 UTC."""

AGE_S = 1000
"""A guest's kernel age at its start: its timers are exact, and its clock is past its first second. After 300 s Linux's
tick count has passed 32 bits.
"""

_AGE_NS = AGE_S * 1_000_000_000

GUEST_ENDED = b'{"event":"guest_ended"'
"""The beginning of a guest's last line."""

_ANSWER_TIMEOUT_S = 30.0
_STATE = struct.Struct("=QQii16sQ16si")
_STATE_SIZE = 4096
_KEPT_MESSAGES = 2000


@dataclass(frozen=True)
class GuestRequest:
    """A guest's request.

    Attributes: seed: for all randomness inside. input: the program's. program: with its arguments; none for
        crosswind-cell. writable: its directory for writing. layered: whether everything else is writable too, in the
        guest's own layer. directory: the program's; without it `writable`, or the root. environment: the program's.
    """

    seed: int
    input: str
    program: Sequence[str] = ()
    writable: Path | None = None
    layered: bool = False
    directory: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> bytes:
        """As the guest's first process reads it."""
        writable = None if self.writable is None else str(self.writable)
        elsewhere = "/" if self.layered else writable or "/"
        return json.dumps({
            "seed": self.seed,
            "writable": writable,
            "layered": self.layered,
            "directory": str(self.directory) if self.directory else elsewhere,
            "environment": dict(self.environment),
            "program": list(self.program),
            "input": self.input,
        }).encode()  # fmt: skip

    def for_kernel(self, cpu: int | None) -> bytes:
        """As the template reads it."""
        settings = [f"seed={self.seed}", f"cpu={-1 if cpu is None else cpu}"]
        return "\n".join([*settings, f"writable={self.writable}"] if self.writable else settings).encode()


@dataclass(frozen=True)
class GuestState:
    """How far a guest is, `virtual_ns` after its start. `process` made the last system call, number `call`;
    `interrupted` was the last of so many `interruptions`; an older kernel cannot interrupt (`can_interrupt`).
    """

    virtual_ns: int
    calls: int
    process: str
    call: int
    interruptions: int = 0
    interrupted: str = ""
    can_interrupt: bool = False


class Guest:
    """A running guest.

    Attributes: output, errors: they end when it does. complaint: says why it could not begin, if so.
    """

    def __init__(
        self, pid: int, output: IO[bytes], errors: IO[bytes], state: mmap.mmap, *, complaint: Callable[[], str]
    ) -> None:
        self.pid = pid
        self.output = output
        self.errors = errors
        self.complaint = complaint
        self._state = state

    def state(self) -> GuestState:
        """What it is doing now."""
        virtual_ns, calls, _, call, process, interruptions, interrupted, can = _STATE.unpack_from(self._state)
        process, interrupted = (name.rstrip(b"\0").decode(errors="replace") for name in (process, interrupted))
        elapsed_ns = max(0, virtual_ns - _AGE_NS)
        return GuestState(elapsed_ns, calls, process, call, interruptions, interrupted, can_interrupt=bool(can))

    def processor_s(self) -> float | None:
        """Its processes' processor time; None when none could use more."""
        processes = list(self._processes())
        # With ended children.
        ticks = sum(sum(map(int, fields[11:15])) for _, fields in processes)
        return ticks / os.sysconf("SC_CLK_TCK") if any(fields[0] == "R" for _, fields in processes) else None

    def computing(self) -> tuple[int, float] | None:
        """The running process's number on the host, and its processor time; None while its kernel itself works."""
        for pid, fields in self._processes():
            if fields[0] == "R" and pid != self.pid:
                return pid, sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
        return None

    def interrupt(self, pid: int) -> None:
        """Has its kernel look for another thread to run than the one computing in a process, by its host number."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGVTALRM)

    def _processes(self) -> Iterator[tuple[int, list[str]]]:
        """Its processes on the host, each with its fields of /proc/PID/stat from the state on."""
        for process in Path("/proc").iterdir():
            if not process.name.isdecimal():
                continue
            try:
                # The name before them, in parentheses, may hold anything.
                fields = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue  # It has ended meanwhile.
            if int(fields[3]) == self.pid:  # the session
                yield int(process.name), fields

    def kill(self) -> None:
        """Ends it and everything in it, now."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)


class Template:
    """A booted kernel.

    Args:
        binary: crosswind-cell.
        memory_mb: a guest's.
    Raises: EngineError when it does not start.
    """

    def __init__(self, kernel: Kernel, binary: Path, *, memory_mb: int = MEMORY_MB) -> None:
        check_proc()
        check_readable(binary)
        memory = memory_directory(BOOTED_BYTES if memory_mb <= MEMORY_MB else PROGRAM_BOOTED_BYTES)
        self.kernel = kernel
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(_ANSWER_TIMEOUT_S)
        # Boot messages; nobody reads them, so they must not fill a pipe.
        self._messages = os.fdopen(os.memfd_create("messages", os.MFD_CLOEXEC), "w+b")
        arguments = [
            f"mem={memory_mb}M",
            *("root=none", "rootfstype=hostfs", "rootflags=/", "ro", f"init={binary.absolute()}"),
            *("time-travel=inf-cpu", f"time-travel-start={START_NS - _AGE_NS}", f"age={AGE_S}", "norandmaps"),
            *("con=null", "console=stderr0", "quiet", f"template={theirs.fileno()}", "--", "--guest"),
        ]
        try:
            self._process = subprocess.Popen(
                [kernel.program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=self._messages,
                stderr=self._messages,
                pass_fds=[theirs.fileno()],
                env={"PATH": os.environ.get("PATH", os.defpath), "TMPDIR": memory},
            )
        except OSError as error:
            self._socket.close()
            self._messages.close()
            raise EngineError(f"cannot start {kernel.program}: {error.strerror}", hint="`crosswind doctor`") from error
        finally:
            theirs.close()

    def start(self, request: GuestRequest, *, cpu: int | None = None) -> Guest:
        """Starts a guest, on one processor. Raises: EngineError when the template is gone."""
        said = os.fstat(self._messages.fileno()).st_size
        with contextlib.ExitStack() as opened:
            files = [_memory_file("input", opened), *self._pipes(opened), _memory_file("state", opened)]
            given, output, their_output, errors, their_errors, state = files
            os.write(given, request.text())
            os.lseek(given, 0, os.SEEK_SET)
            os.ftruncate(state, _STATE_SIZE)
            mapped = mmap.mmap(state, _STATE_SIZE)
            try:
                passed = [given, their_output, their_errors, state]
                socket.send_fds(self._socket, [request.for_kernel(cpu)], passed)
                answer = self._socket.recv(4)
            except OSError:
                answer = b""
            if len(answer) < 4 or (pid := struct.unpack("=i", answer)[0]) <= 0:
                raise self._gone()
            read_output, read_errors = (os.fdopen(os.dup(end), "rb", 0) for end in (output, errors))
            return Guest(
                pid, read_output, read_errors, mapped, complaint=lambda: self._printed(said).rpartition("\n")[2]
            )

    def _printed(self, since: int = 0) -> str:
        """Its output's end, from a byte on; empty once closed."""
        if self._messages.closed:
            return ""
        size = os.fstat(self._messages.fileno()).st_size
        since = max(since, size - _KEPT_MESSAGES)
        # Its own writes move the file's position.
        return os.pread(self._messages.fileno(), size - since, since).decode(errors="replace").strip()

    def close(self) -> None:
        """Ends it, and with it every guest."""
        self._socket.close()
        self._process.kill()
        self._process.wait()
        self._messages.close()

    @staticmethod
    def _pipes(opened: contextlib.ExitStack) -> list[int]:
        ends = [*os.pipe2(os.O_CLOEXEC), *os.pipe2(os.O_CLOEXEC)]
        for end in ends:
            opened.callback(os.close, end)
        return ends

    def _gone(self) -> EngineError:
        self._process.kill()
        self._process.wait()
        said = self._printed()
        last = said.splitlines()[-1].strip() if said else f"it ended with status {self._process.returncode}"
        return not_running(last)


def try_kernel(kernel: Kernel, binary: Path) -> None:
    """Runs an idle guest. Raises: EngineError, with the kernel's words, on failure."""
    template = Template(kernel, binary)
    try:
        guest = template.start(GuestRequest(seed=1, input="", program=["/proc/self/exe", "--version"]))
        with guest.output as output, guest.errors as errors:
            said = output.read()
            problem = errors.read().decode(errors="replace").strip()
        ended = next(filter(None, map(read_ended, said.splitlines())), None)
        if ended is None or ended["status"] != 0:
            raise EngineError(
                f"a guest does not run: {(ended or {}).get('error') or problem or guest.complaint() or 'it ended'}",
                hint=NEEDS,
            )
    finally:
        template.close()


def read_ended(line: bytes) -> Mapping[str, Any] | None:
    """A guest's last line: `status`, `error` and `lost_process`; None for others.

    The program's own last line precedes it if it lacks a newline.
    """
    at = line.rfind(GUEST_ENDED)
    if at < 0:
        return None
    ended: Mapping[str, Any] = json.loads(line[at:])
    return ended


def _memory_file(name: str, opened: contextlib.ExitStack) -> int:
    file = os.memfd_create(name, os.MFD_CLOEXEC)
    opened.callback(os.close, file)
    return file
