"""Probes by messages to a `crosswind serve`, over one connection of a transport: each is numbered, and answered.

`crosswind-cell --watch` holds the connection. It reads a number for each message, and prints one line for each answer.
An answer's two times are its own: handing the message to the transport, and receiving the answer.

An ended connection is reopened by a new process: at once, and then every two seconds until it succeeds. Until then
every probe is lost.
"""

import json
import os
import select
import subprocess
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from crosswind.cell.binary import REINSTALL, mode_event
from crosswind.errors import CrosswindError, EngineError
from crosswind.live.one_way import Arrivals
from crosswind.live.probe import Reply
from crosswind.report.text.format import count_of, quantity

SIZE_BYTES = 64
_START_S = 60.0
"""How long the first connection may take: a server serves one client at a time, and lets others wait for 30 s."""
_END_S = 3.0
_AGAIN_NS = 2 * 10**9
_READ_BYTES = 1 << 16
_REMEMBERED = 10_000
"""Messages remembered for late answers."""


@dataclass(frozen=True)
class IntendedMessage:
    """A message to be sent: its time, and its place in its connection, from 1."""

    at_ns: int
    connection: int
    place: int


class MessageProbe:
    """Sends messages to a server.

    Args:   server: HOST:PORT of control connections. family: "ipv4" or "ipv6". keeps_order: whether the transport may
            lose and reorder messages. clock: CLOCK_MONOTONIC, ns.
    Raises: CrosswindError when the first connection cannot be opened.
    """

    tells_ways = True
    can_be_refused = False

    def __init__(
        self, server: str, transport: str, *, family: str, keeps_order: bool, binary: Path, clock: Callable[[], int]
    ) -> None:
        self.name, self.keeps_order = transport, keeps_order
        self.description = (
            f"messages of {SIZE_BYTES} bytes over {transport} to crosswind serve at {server}, which answers each; both "
            "times are this program's"
        )
        self.obstacle: str | None = None
        self.network: dict[str, Any] | None = None
        self._error: tuple[str, str | None] | None = None
        self._words = {"server": server, "family": family, "transport": transport, "size_bytes": SIZE_BYTES}
        self._binary, self._clock = binary, clock
        self._asked: OrderedDict[int, IntendedMessage] = OrderedDict()
        self._poll = select.epoll()
        self._connection, self._reopened = -1, 0
        self._begin()
        self._wait_until_connected()

    def send(self, sequence: int) -> int | None:
        """Has a message sent. Returns: when; None where there is no connection."""
        if self._process is None and self._clock() >= self._begun_ns + _AGAIN_NS:
            self._begin()
        if self._process is None or not self._is_connected:
            return None
        assert self._process.stdin is not None
        sent_ns = self._clock()
        try:
            self._process.stdin.write(f"{sequence}\n".encode())
        except OSError:  # It has ended; its last words are still to be read.
            return None
        self._place += 1
        self._asked[sequence] = IntendedMessage(sent_ns, self._connection, self._place)
        if len(self._asked) > _REMEMBERED:
            self._asked.popitem(last=False)
        return sent_ns

    def replies(self) -> Iterator[Reply]:
        """The new answers."""
        for event in self._events():
            reply = self._reply(event)
            if reply is not None:
                yield reply

    def forget(self, now_ns: int, timeout_ns: int) -> None:
        """There is nothing to give up: late answers are told from others by their number."""

    def file(self) -> int:
        """The descriptor to watch for answers."""
        return self._poll.fileno()

    def facts(self) -> Iterator[tuple[str, str]]:
        """The server's description, and the number of reconnections."""
        if self._reopened:
            yield "Connection", f"opened anew {count_of(self._reopened, 'time')} after it had ended"
        if self.network is not None:
            known = self.network
            yield "Server", f"Crosswind {known['crosswind_cell']}, Linux {known['kernel']}, at {known['server']}"
            shortest = quantity(known["round_trip_ns"], "ns")
            yield "Control connection", f"shortest round trip {shortest}, by TLS over TCP"

    def close(self) -> None:
        """Ends the connection, and reads the final network facts."""
        if self._process is not None:
            assert self._process.stdin is not None
            with suppress(OSError):
                self._process.stdin.close()
            self._follow(_END_S, lambda: False)
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            _output(self._process).close()
        self._poll.close()

    def _begin(self) -> None:
        """Starts a process; it reports being connected. Raises: EngineError."""
        self._connection += 1
        self._place, self._buffer, self._is_connected = 0, b"", False
        self._begun_ns = self._clock()
        try:
            # In its own process group: Ctrl-C on the terminal reaches it only through us.
            process = subprocess.Popen(
                [self._binary, "--watch", json.dumps(self._words)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                bufsize=0,
                process_group=0,
            )
        except OSError as error:
            raise EngineError(f"cannot start {self._binary}: {error.strerror}", hint=REINSTALL) from error
        output = _output(process)
        os.set_blocking(output.fileno(), False)
        self._poll.register(output.fileno(), select.EPOLLIN)
        self._process: subprocess.Popen[bytes] | None = process

    def _wait_until_connected(self) -> None:
        """Raises: CrosswindError with the process's message."""
        self._follow(_START_S, lambda: self._is_connected)
        if not self._is_connected:
            message, hint = self._error or (
                f"the server at {self._words['server']} does not answer",
                "is it reachable?",
            )
            self.close()
            raise CrosswindError(message, hint=hint)

    def _follow(self, longest_s: float, is_enough: Callable[[], bool]) -> None:
        """Reads the process's events until one is enough, it has ended, or the time is over."""
        until_ns = self._clock() + int(longest_s * 1e9)
        while self._process is not None and not is_enough() and self._clock() < until_ns:
            self._poll.poll(max(0.0, (until_ns - self._clock()) / 1e9))
            for event in self._events():
                self._reply(event)

    def _events(self) -> Iterator[dict[str, Any]]:
        """The process's events; its end schedules another process."""
        while self._process is not None:
            output = _output(self._process)
            try:
                data = os.read(output.fileno(), _READ_BYTES)
            except BlockingIOError:
                return
            if not data:
                self._poll.unregister(output.fileno())
                self._process.wait()
                output.close()
                self._process = None
                return
            *lines, self._buffer = (self._buffer + data).split(b"\n")
            yield from (mode_event(line, "--watch") for line in lines)

    def _reply(self, event: dict[str, Any]) -> Reply | None:
        kind = event.get("event")
        if kind == "connected":
            self._is_connected, self.obstacle = True, None
            self._reopened += self._connection > 0
        elif kind == "error":
            self._is_connected, self.obstacle = False, str(event.get("message"))
            self._error = str(event.get("message")), event.get("hint")
        elif kind == "ended":
            self.network = event.get("network")
        elif kind == "unsent":
            self.obstacle = str(event.get("reason"))
        if kind != "received":
            return None
        asked = self._asked.get(event["number"])
        if asked is None or asked.connection != self._connection:
            return Reply(event["number"], event["received_ns"])
        # From when the message left, though it was asked for a little earlier.
        received_ns = asked.at_ns + event["received_ns"] - event["sent_ns"]
        return Reply(event["number"], received_ns, None, Arrivals(asked.connection, asked.place - event["counted"]))


def _output(process: subprocess.Popen[bytes]) -> IO[bytes]:
    assert process.stdout is not None
    return process.stdout
