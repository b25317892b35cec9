"""Programs that speak JSON lines: the peers, and Crosswind's own endpoints. Every wait has a deadline."""

import json
import os
import queue
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DEADLINE_S = 30.0
"""Longer than the deadline that each peer has for itself (20 s), so that it is the peer that says what is missing."""

Object = dict[str, Any]


class Program:
    """A running program whose standard output is JSON lines and whose standard input says when to end."""

    def __init__(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> None:
        self.command = list(command)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 -- closed when the program has ended
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            # A page of memory: who writes more has to wait until it has been read.
            pipesize=4096,
            env={**os.environ, **(environment or {})},
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(None)

    @property
    def errors(self) -> str:
        """What it has written to its standard error."""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def tell(self, line: str) -> None:
        """Writes a line to its standard input. One that has ended without reading says why in its own lines."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(f"{line}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            with suppress(BrokenPipeError):
                self.process.stdin.close()

    def line(self, within_s: float = DEADLINE_S) -> Object | None:
        """The next line, or None when it has closed its standard output."""
        try:
            line = self._lines.get(timeout=within_s)
        except queue.Empty:
            raise AssertionError(f"silent for {within_s} s: {self.command}\n{self.errors}") from None
        if line is None:
            self._lines.put(None)
            return None
        try:
            return dict(json.loads(line))
        except ValueError:
            raise AssertionError(f"not a JSON line: {line!r}, of {self.command}") from None

    def lines(self) -> list[Object]:
        """Every line until it closes its standard output."""
        found = []
        limit = time.monotonic() + DEADLINE_S
        while (line := self.line(max(0.0, limit - time.monotonic()))) is not None:
            found.append(line)
        return found

    def until(self, event: str) -> Object:
        """Reads lines until the event with this name."""
        while (line := self.line()) is not None:
            if line.get("event") == event:
                return line
        raise AssertionError(f"ended without {event}: {self.command}\n{self.errors}")

    def end(self) -> int:
        """Closes its standard input, and returns its exit status; a program that lives on is killed and at fault."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"lives on after its standard input closed: {self.command}") from None
        return self.process.returncode

    def kill(self) -> None:
        """Ends it in the way that no program can tidy up after."""
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()

    def wait(self) -> tuple[int, int]:
        """Waits for it to end by itself. Returns its exit status and the most memory it held, in bytes."""
        limit = time.monotonic() + DEADLINE_S
        peak = 0
        while True:
            # Not what wait4 says: that counts the memory of the test's own process, which this one was forked from.
            peak = max(peak, self.high_water_mark())
            pid, status = os.waitpid(self.process.pid, os.WNOHANG)
            if pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                return self.process.returncode, peak
            if time.monotonic() > limit:
                self.kill()
                raise AssertionError(f"lives on: {self.command}")
            time.sleep(0.002)

    def high_water_mark(self) -> int:
        """The most memory that it has held so far, in bytes; 0 once it has ended."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        except OSError:
            return 0
        found = re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)
        return int(found[1]) * 1024 if found else 0

    def forget(self) -> None:
        """Frees what it holds, once it has ended."""
        self.kill()
        self._reader.join(DEADLINE_S)
        for stream in (self.process.stdin, self.process.stdout, self._errors):
            if stream is not None:
                stream.close()


@dataclass(frozen=True)
class Server:
    """A server that listens."""

    program: Program | None
    address: str
    trust_path: Path | None = None
    certificate_sha256: str | None = None

    @property
    def port(self) -> int:
        """The port of its address."""
        return int(self.address.rpartition(":")[2])

    def until(self, event: str) -> Object:
        """The next line of the server with this event."""
        assert self.program is not None, "says nothing"
        return self.program.until(event)


@dataclass(frozen=True)
class Called:
    """What a client said until it ended."""

    lines: list[Object]
    status: int
    peak_bytes: int
    errors: str = field(repr=True)

    @property
    def messages(self) -> list[tuple[int, str, int]]:
        """Size, outcome and received bytes of each message."""
        return [(line["size"], line["outcome"], line["received"]) for line in self.lines if "size" in line]

    @property
    def closed(self) -> Object:
        """How it ended; empty for one that was killed."""
        return next((line for line in self.lines if line.get("event") == "closed"), {})

    @property
    def pongs(self) -> list[str]:
        """Payloads of the pongs that it got."""
        return [line["payload"] for line in self.lines if line.get("event") == "pong"]

    @property
    def outcome(self) -> str:
        """What became of the first thing that went wrong, or "ok"."""
        outcomes = [line["outcome"] for line in self.lines if "outcome" in line]
        return next((outcome for outcome in outcomes if outcome != "ok"), "ok")

    def assert_ok(self, sizes: Sequence[int]) -> None:
        """Every message came back whole, and the end was orderly."""
        assert self.messages == [(size, "ok", size) for size in sizes], (self.lines, self.errors)
        assert (self.closed.get("outcome"), self.status) == ("ok", 0), (self.lines, self.errors)


@dataclass
class Programs:
    """Starts programs and ends them."""

    running: list[Program] = field(default_factory=list)

    def start(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> Program:
        """Starts a program and does not wait."""
        program = Program(command, environment=environment)
        self.running.append(program)
        return program

    def listen(self, command: Sequence[str], *, environment: Mapping[str, str] | None = None) -> tuple[Program, Object]:
        """Starts a server and waits for its first line, which says where it listens."""
        program = self.start(command, environment=environment)
        line = program.line()
        assert line is not None, f"ended before it listened: {command}\n{program.errors}"
        return program, line

    def call(self, command: Sequence[str]) -> Called:
        """Runs a client to its end."""
        program = self.start(command)
        lines = program.lines()
        status, peak_bytes = program.wait()
        return Called(lines, status, peak_bytes, program.errors)

    def stop(self) -> None:
        """Ends whatever still runs; a server that cannot end when it is asked to is a failure."""
        faults = []
        for program in self.running:
            if program.process.returncode is None:
                try:
                    program.end()
                except AssertionError as fault:
                    faults.append(str(fault))
            program.forget()
        assert not faults, faults
