"""The DevTools protocol over a pipe: JSON messages, each followed by a zero byte."""

import json
import os
import select
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from crosswind.peers.chromium.job import ChromiumError

Message = dict[str, Any]

CALL_TIMEOUT_S = 20.0
_CHUNK = 1 << 16

LOAD_TIMEOUT_S = 20.0


class BrowserGoneError(ChromiumError):
    """The browser has closed its end of the pipe."""


class NoAnswerError(ChromiumError):
    """An awaited event did not come in time."""


class DevTools:
    """A connection to a browser. Args: reader, writer: descriptors for our ends; `close` closes them."""

    def __init__(self, reader: int, writer: int) -> None:
        self._reader, self._writer = reader, writer
        self._poll = select.poll()
        self._poll.register(reader, select.POLLIN)
        self._parts: list[bytes] = []
        # A handler may itself wait for an answer, and handles further messages meanwhile.
        self._unread: deque[bytes] = deque()
        self._number = 0
        self._replies: dict[int, Message] = {}
        self._handlers: dict[str, Callable[[Message], None]] = {}

    def on(self, event: str, handler: Callable[[Message], None]) -> None:
        """Has `handler` called with the parameters of each such event, while something is waited for."""
        self._handlers[event] = handler

    def send(self, method: str, *, session: str | None = None, **parameters: object) -> int:
        """Sends a command and does not wait. Returns its number."""
        self._number += 1
        message: Message = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        unsent = memoryview(json.dumps(message).encode() + b"\0")
        try:
            while unsent:
                unsent = unsent[os.write(self._writer, unsent) :]
        except BrokenPipeError:
            raise BrowserGoneError("Chromium has ended") from None
        return self._number

    def call(
        self,
        method: str,
        *,
        session: str | None = None,
        timeout_s: float | None = CALL_TIMEOUT_S,
        **parameters: object,
    ) -> Message:
        """Sends a command. Returns its result. Raises: ChromiumError when it fails; NoAnswerError."""
        number = self.send(method, session=session, **parameters)
        self.wait(lambda: number in self._replies, what=method, timeout_s=timeout_s)
        reply = self._replies.pop(number)
        if "error" in reply:
            raise ChromiumError(f"Chromium refuses {method}: {reply['error'].get('message')}")
        return dict(reply["result"])

    def wait(self, done: Callable[[], bool], *, what: str, timeout_s: float | None) -> None:
        """Handles events until `done`. Raises: NoAnswerError after `timeout_s` if given; BrowserGoneError."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not done():
            if self._unread:
                self._dispatch(json.loads(self._unread.popleft()))
                continue
            left_ms = None if deadline is None else max(0.0, deadline - time.monotonic()) * 1000
            if not self._poll.poll(left_ms):
                raise NoAnswerError(f"Chromium gave no answer to {what} within {timeout_s:g} s")
            self._read()

    def _read(self) -> None:
        part = os.read(self._reader, _CHUNK)
        if not part:
            raise BrowserGoneError("Chromium has ended")
        head, *starts = part.split(b"\0")
        self._parts.append(head)
        for start in starts:
            self._unread.append(b"".join(self._parts))
            self._parts = [start]

    def _dispatch(self, message: Message) -> None:
        if "id" in message:
            self._replies[message["id"]] = message
            # Answers to messages sent without waiting are dropped; others are kept.
        elif handler := self._handlers.get(message["method"]):
            handler(message["params"])

    def close(self) -> None:
        """Closes the pipe; the browser then ends."""
        for descriptor in (self._reader, self._writer):
            os.close(descriptor)


def evaluate(devtools: DevTools, session: str, expression: str, *, timeout_s: float | None = LOAD_TIMEOUT_S) -> Any:
    """The value of an expression in a page, awaited. Raises: ChromiumError with its exception."""
    answer = devtools.call(
        "Runtime.evaluate",
        session=session,
        timeout_s=timeout_s,
        expression=expression,
        awaitPromise=True,
        returnByValue=True,
    )
    if thrown := answer.get("exceptionDetails"):
        raise ChromiumError(f"the page failed: {thrown.get('exception', {}).get('description', thrown['text'])}")
    return answer["result"].get("value")
