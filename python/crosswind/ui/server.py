"""The socket of `crosswind ui`, on loopback."""

import secrets
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from crosswind.errors import UsageError
from crosswind.ui.app import application

_HOST = "127.0.0.1"


def serve(root: Path, *, port: int, opened: Callable[[str], None]) -> None:
    """Serves until it is interrupted.

    Args: root: of the runs. port: 0 for a free one. opened: is told the address, with its token.
    Raises: UsageError where the port cannot be had.
    """
    with _listening(port) as listening:
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe(32)
        # Addresses hold the token, so that no request is logged.
        config = uvicorn.Config(
            application(root, token=token, port=port),
            access_log=False,
            log_level="error",
            lifespan="off",
            timeout_graceful_shutdown=1,
        )
        opened(f"http://{_HOST}:{port}/?token={token}")
        uvicorn.Server(config).run(sockets=[listening])


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
