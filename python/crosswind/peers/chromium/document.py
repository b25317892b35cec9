"""The page in which Chromium measures: one document that brings every module, so that it loads nothing."""

import base64
import json
import re
from collections.abc import Iterator
from importlib.resources import files

from crosswind.peers.chromium.errors import ChromiumError
from crosswind.peers.chromium.job import Job
from crosswind.peers.node.install import socketio_bundle

_PREFIX = "crosswind/"

HEADERS = (
    # An isolated page has a clock of 5 us; others have one of 100 us.
    ("Cross-Origin-Opener-Policy", "same-origin"),
    ("Cross-Origin-Embedder-Policy", "require-corp"),
    ("Content-Type", "text/html; charset=utf-8"),
    ("Cache-Control", "no-store"),
)


def document(job: Job) -> str:
    """Return the HTML. Its import map has the modules of page/ and workloads/ as crosswind/NAME, and Socket.IO.

    Raises: CrosswindError when the job needs Socket.IO's client, and it is not installed.
    """
    imports = {f"{_PREFIX}{name}": _data(module) for name, module in _modules()}
    if job.transport.startswith("socketio-"):
        imports["socket.io-client"] = _data(_socketio_client())
    return "\n".join([
        "<!doctype html>",
        "<title>Crosswind</title>",
        # Without it the browser asks the server for /favicon.ico.
        '<link rel="icon" href="data:,">',
        f'<script type="importmap">{json.dumps({"imports": imports})}</script>',
        f'<script type="module" src="{imports[f"{_PREFIX}main.js"]}"></script>',
    ])  # fmt: skip


def _modules() -> Iterator[tuple[str, bytes]]:
    """The page's own, and those that it has in common with the peers in JavaScript."""
    for file in files("crosswind.peers.chromium").joinpath("page").iterdir():
        yield file.name, file.read_bytes()
    for file in files("crosswind.peers").joinpath("workloads").iterdir():
        # A module that is a data: URL has no directory, in which another would be.
        yield file.name, re.sub(rb'(?<= from ")\./', _PREFIX.encode(), file.read_bytes())


def _data(module: bytes) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(module).decode('ascii')}"


def _socketio_client() -> bytes:
    module = socketio_bundle()
    try:
        return module.read_bytes()
    except OSError as error:
        raise ChromiumError(
            f"cannot read {module}: {error.strerror}", hint="`crosswind browser install` installs it"
        ) from error
