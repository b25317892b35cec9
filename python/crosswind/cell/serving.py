"""`crosswind-cell --listen`: the server for other machines' cells, as a process, and its events.

It ends with its parent: when nobody reads its standard output any more, and on request.
"""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from crosswind.cell.binary import REINSTALL, mode_event
from crosswind.cell.token import VARIABLE
from crosswind.errors import EngineError

END_S = 5.0
"""How long it may take to end when it is asked to."""


@dataclass(frozen=True)
class Limits:
    """One cell's limits: seconds, bytes in both directions together, and connections."""

    seconds: int
    bytes: int
    connections: int

    def as_json(self) -> dict[str, int]:
        """As crosswind-cell reads them."""
        return {"seconds": self.seconds, "bytes": self.bytes, "connections": self.connections}


class Serving:
    """A running server.

    Args:   address: for control connections, as "0.0.0.0:9470". data_port: for measurements.
    Raises: EngineError when it cannot be started.
    """

    def __init__(self, binary: Path, *, address: str, data_port: int, limits: Limits, token: str) -> None:
        asked = {"address": address, "data_port": data_port, "limits": limits.as_json()}
        try:
            # Its own group: Ctrl-C on the terminal reaches it through us alone.
            self._process = subprocess.Popen(
                [binary, "--listen", json.dumps(asked)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                env={**os.environ, VARIABLE: token},
                process_group=0,
            )
        except OSError as error:
            raise EngineError(f"cannot start {binary}: {error.strerror}", hint=REINSTALL) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def events(self) -> Iterator[dict[str, Any]]:
        """Its events until its end.

        Raises: EngineError for an error event, or its own end.
        """
        output = self._process.stdout
        assert output is not None
        for line in output:
            event = mode_event(line, "--listen")
            if event.get("event") == "error":
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(timeout=END_S)
                raise EngineError(str(event.get("message")), hint=event.get("hint"))
            yield event
        status = self._process.wait()
        raise EngineError(f"the server ended with status {status}", hint="`crosswind serve` starts another one")

    def end(self) -> None:
        """Ends it and its children."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGINT)
        try:
            self._process.wait(timeout=END_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
