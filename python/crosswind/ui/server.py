"""The loopback socket of `crosswind ui`."""

import asyncio
import secrets
import socket
from collections.abc import Callable
from pathlib import Path

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from crosswind.errors import UsageError
from crosswind.ui.app import application

_HOST = "127.0.0.1"
_PATIENCE_S = 5.0
"""How long a request may take to arrive; at most twice as long."""


class _Connection(H11Protocol):
    """A connection with a time limit on waiting for a request, or its rest: enough idle ones fill the server."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begins to look."""
        super().connection_made(transport)
        self._look()

    def _look(self, before: object = None) -> None:
        """Ends it if it still waits for the same request as at the last look."""
        if self.transport.is_closing():
            return
        awaited = (self.cycle,) if self.conn.their_state in (h11.IDLE, h11.SEND_BODY) else None
        if awaited is not None and awaited == before:
            self.transport.close()
        else:
            self.loop.call_later(_PATIENCE_S, self._look, awaited)


def serve(root: Path, *, port: int, opened: Callable[[str], None]) -> None:
    """Serves until it is interrupted.

    Args: root: of the runs. port: 0 for a free one. opened: is told the address, with its token.
    Raises: UsageError where the port cannot be had.
    """
    with _listening(port) as listening:
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe(32)
        opened(f"http://{_HOST}:{port}/?token={token}")
        server_of(root, token=token, port=port).run(sockets=[listening])


def server_of(root: Path, *, token: str, port: int) -> uvicorn.Server:
    """The server, to be run with a socket listening on the port. Args: root: the runs'."""
    # Addresses hold the token: no request is logged.
    config = uvicorn.Config(
        application(root, token=token, port=port),
        http=_Connection,
        access_log=False,
        log_level="error",
        lifespan="off",
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def _listening(port: int) -> socket.socket:
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((_HOST, port))
        listening.listen(64)
    except OSError as error:
        listening.close()
        reason = error.strerror or error
        raise UsageError(f"cannot listen on {_HOST}:{port}: {reason}", hint="--port 0 takes a free port") from None
    return listening
