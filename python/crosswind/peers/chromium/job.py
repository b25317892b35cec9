"""The job on a peer's standard input (docs/peers.md), within a browser's abilities."""

import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from crosswind.errors import CrosswindError

SCHEMA = "crosswind.peer/1"

TRANSPORTS = (
    "websocket",
    "wss",
    "webtransport",
    "webtransport-datagram",
    "socketio-websocket",
    "socketio-webtransport",
    "http1",
    "https1",
    "http2",
    "http3",
)
SECURE = frozenset(TRANSPORTS) - {"websocket", "socketio-websocket", "http1"}
HTTP_VERSIONS = {"http1": "http/1.1", "https1": "http/1.1", "http2": "h2", "http3": "h3"}
"""HTTP transports, and their protocol's name (RFC 7301), as browsers report it."""
ONE_CONNECTION = frozenset({"http2", "http3"})
"""Browsers open one connection to a server over these."""
CONNECTIONS_PER_SERVER = 6
"""Connections opened by browsers to a server over HTTP/1.1 (net/socket/client_socket_pool_manager.cc)."""

_ABSENT = {
    "h2c": "browsers speak HTTP/2 in TLS only",
    "tcp": "pages cannot open TCP connections",
    "tls": "pages cannot open TLS connections",
    "udp": "pages cannot send UDP datagrams",
    "quic": "pages have QUIC as webtransport only",
    "quic-datagram": "pages have QUIC as webtransport-datagram only",
}
_KINDS = ("echo", "connect", "multiplex", "page")


@dataclass(frozen=True)
class Job:
    """A measurement to do.

    Attributes: workload: as in the cell, times in ns. certificate_sha256: in hexadecimal, over the DER form. directory:
        for the peer's files.
    """

    address: str
    port: int
    workload: Mapping[str, Any]
    certificate_pem: str | None = None
    certificate_sha256: str | None = None
    virtual_time: bool = False
    directory: Path | None = None

    @property
    def transport(self) -> str:
        """Its name."""
        return str(self.workload["transport"])

    @property
    def kind(self) -> str:
        """The workload's kind."""
        return str(self.workload["kind"])

    @property
    def authority(self) -> str:
        """Host and port as a URL has them."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """The server's and the page's origin: so no request goes to another one."""
        return f"{'https' if self.transport in SECURE else 'http'}://{self.authority}"


RESUMING = frozenset({"wss", "https1", "http2", "http3"})
"""Transports resuming TLS sessions in later connections, if the server issues tickets. WebTransport keeps none."""
_RESUMED = (
    "Chromium resumes TLS sessions: where the server issues tickets, connections after the first show no certificate"
)


def warnings(job: Job) -> Sequence[str]:
    """Warnings for the result's readers."""
    workload = job.workload
    several = job.kind in ("connect", "page") or workload.get("connection") == "new"
    several = several or workload.get("connections", 1) > 1
    return [_RESUMED] if job.transport in RESUMING and several else []


def read_text(source: TextIO) -> str:
    """Return the JSON object at the start of `source`, or all of it without one. It need not end."""
    text = ""
    for line in source:
        text += line
        with contextlib.suppress(ValueError):
            json.loads(text)
            break
    return text


def read_job(text: str) -> Job:
    """Return the job in `text`. Raises: ChromiumError when it is none, or not one for a browser."""
    try:
        given = json.loads(text)
        if given["schema"] != SCHEMA:
            raise ChromiumError(f"the job is of schema {given['schema']!r}", hint=f"this peer reads {SCHEMA}")
        job = Job(
            address=given["address"],
            port=given["port"],
            workload=given["workload"],
            certificate_pem=given.get("certificate_pem"),
            certificate_sha256=given.get("certificate_sha256"),
            virtual_time=bool(given.get("virtual_time")),
            directory=Path(given["directory"]) if given.get("directory") else None,
        )
        role, _, _ = given.get("role", "client"), job.transport, job.kind
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"standard input is no job: {type(error).__name__}: {error}"
        raise ChromiumError(message, hint="one JSON object, as docs/peers.md has it") from error
    check_workload(role, job.workload)
    if job.transport in SECURE and not (job.certificate_pem and job.certificate_sha256):
        raise ChromiumError(f"the job has no certificate, and {job.transport} is secure", hint="docs/peers.md, The job")
    return job


def check_workload(role: str, workload: Mapping[str, Any]) -> None:
    """Raises: ChromiumError for a workload, with every default filled in, impossible in a browser."""
    transport, kind = workload["transport"], workload["kind"]
    if role != "client":
        raise ChromiumError(f"Chromium cannot be the {role}", hint="a browser is a client; choose another server")
    if transport not in TRANSPORTS:
        raise ChromiumError(
            f"Chromium has no {transport}: {_ABSENT.get(transport, 'this peer does not know it')}",
            hint=f"transports of a browser: {', '.join(sorted(TRANSPORTS))}",
        )
    if kind not in _KINDS:
        raise ChromiumError(f"Chromium cannot run the workload {kind}", hint=f"it can run {', '.join(_KINDS)}")
    _check_settings(workload, transport, kind)


def _check_settings(workload: Mapping[str, Any], transport: str, kind: str) -> None:
    if workload.get("resumption", "none") != "none":
        raise ChromiumError(
            f"Chromium cannot be set to use resumption = {workload['resumption']}",
            hint="pages have no say in TLS sessions; leave resumption out",
        )
    if kind == "page" and transport not in HTTP_VERSIONS:
        raise ChromiumError(f"a page is not loaded over {transport}", hint=f"choose of {', '.join(HTTP_VERSIONS)}")
    connections = workload.get("connections") or 1
    most = 1 if transport in ONE_CONNECTION else CONNECTIONS_PER_SERVER
    if transport in HTTP_VERSIONS and connections > most:
        raise ChromiumError(
            f"Chromium opens no more than {most} connection{'s' * (most > 1)} to a server over {transport},"
            f" and {connections} are wanted",
            hint=f"set connections to {most} or less",
        )
    if transport in HTTP_VERSIONS and connections > 1 and (kind == "connect" or workload.get("connection") == "new"):
        raise ChromiumError(
            f"Chromium opens new connections over {transport} one after another only, and {connections} are wanted",
            hint="set connections to 1",
        )


class ChromiumError(CrosswindError):
    """The browser cannot do the job, or has ended."""
