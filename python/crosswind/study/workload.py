"""The workload of a cell: what a kind takes, its defaults, and what no combination of keys may be.

What depends on the packets of a transport, as how large a QUIC datagram may be, `crosswind-cell --check` judges, to
which every cell is given before a run starts.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosswind.catalog import TRANSPORTS, Transport, fitting, is_datagram, names
from crosswind.study.errors import CellError
from crosswind.study.levels import Level
from crosswind.study.path import PathParameters
from crosswind.study.toml_text import Location

UDP_LIMIT_BYTES = {
    "ipv4": 65_507,  # 65 535 - 20 (IPv4 header) - 8 (UDP header)
    "ipv6": 65_527,  # RFC 8200: the payload length counts the UDP header of 8, not the IPv6 header
}
MAX_ECHO_BYTES = 2**30
MULTIPLEX_BYTES = range(8, 1001)
"""So that a message holds its number, and is one packet: a lost packet is one message."""

HTTP1_CONNECTIONS = 6
"""What browsers open to one host."""

_ANY = frozenset({"transport", "timeout"})
WORKLOAD_KEYS: Mapping[str, frozenset[str]] = {
    "echo": _ANY
    | {"size", "messages", "mode", "rate", "connection", "connections", "direction"}
    | {"stream", "payload", "resumption", "polling"},
    "transfer": _ANY | {"size", "duration", "direction", "count", "connections", "payload", "polling"},
    "connect": _ANY | {"count", "connections", "resumption", "polling"},
    "multiplex": _ANY | {"streams", "size", "messages", "rate", "payload", "polling"},
    "page": _ANY
    | {"connections", "count", "html_size", "scripts_size", "scripts", "images_size", "images", "request_size"},
    "program": frozenset({"client", "server"}),
}


@dataclass(frozen=True)
class Page:
    """What a page is made of; sizes in bytes. `scripts` and `images` are files, of which the sizes are the sums."""

    html_bytes: int
    scripts_bytes: int
    scripts: int
    images_bytes: int
    images: int
    request_bytes: int


@dataclass(frozen=True)
class WorkloadParameters:
    """The workload of a cell, with the cell protocol's defaults filled in; None is what its kind does not take."""

    kind: str
    transport: str | None
    size_bytes: int | None
    messages: int | None
    mode: str | None
    rate_per_s: int | None
    connection: str | None
    duration_ns: int | None
    direction: str | None
    count: int | None
    client: tuple[str, ...] | None
    server: tuple[str, ...] | None
    connections: int
    timeout_ns: int | None
    streams: int | None = None
    stream: str | None = None
    payload: str | None = None
    resumption: str | None = None
    polling: bool = False
    page: Page | None = None


_Here = Mapping[str, Location]


def workload_of(settings: Mapping[str, Level], where: _Here, path: PathParameters) -> WorkloadParameters:
    """The workload that one combination of levels means. Raises: CellError."""

    def get(key: str, default: Any = None) -> Any:
        level = settings.get(f"workload.{key}")
        return default if level is None else level.value

    kind = get("kind")
    echo, transfer, multiplex, program = (kind == name for name in ("echo", "transfer", "multiplex", "program"))
    transport = None if program else TRANSPORTS[get("transport", "tcp")]
    page = _page(get) if kind == "page" else None
    one_by_one = transport is not None and transport.http and not transport.shares
    connections = HTTP1_CONNECTIONS if page and one_by_one else 1
    made = WorkloadParameters(
        kind=kind,
        transport=None if transport is None else transport.name,
        size_bytes=get("size", {"echo": 1, "multiplex": 200}.get(kind)),
        messages=get("messages", 100) if echo or multiplex else None,
        mode=get("mode", "closed") if echo else None,
        rate_per_s=get("rate", 20) if multiplex else get("rate") if get("mode") == "open" else None,
        connection=get("connection", "kept") if echo else None,
        duration_ns=get("duration"),
        direction=get("direction", "echo" if echo else "upload") if echo or transfer else None,
        count=get("count", {"transfer": 1, "connect": 100, "page": 10}[kind]) if kind in _COUNTED else None,
        client=get("client"),
        server=get("server"),
        connections=get("connections", connections),
        timeout_ns=None if transport is None else get("timeout", _default_timeout_ns(transport.name, path)),
        streams=get("streams", 4) if multiplex else None,
        stream=get("stream", "kept") if echo else None,
        payload=get("payload", "binary") if "payload" in WORKLOAD_KEYS[kind] else None,
        resumption=get("resumption", "none") if "resumption" in WORKLOAD_KEYS[kind] else None,
        polling=get("polling", False),
        page=page,
    )
    if program and made.client is None:
        raise CellError(
            where["workload.kind"], "workload program: no client is set", 'client = ["ping", "-c", "3", "{server}"]'
        )
    if transport is not None:
        _refuse_transport(made, transport, where)
        _refuse_sizes(made, where, path)
        _refuse_directions(made, where)
    return made


_COUNTED = ("transfer", "connect", "page")


def _page(get: Any) -> Page:
    """784 kB is the average page of S1; of its three kinds the rest is not named."""
    return Page(
        html_bytes=get("html_size", 36_000),
        scripts_bytes=get("scripts_size", 150_000),
        scripts=get("scripts", 5),
        images_bytes=get("images_size", 450_000),
        images=get("images", 15),
        request_bytes=get("request_size", 400),
    )


def _refuse_transport(work: WorkloadParameters, transport: Transport, where: _Here) -> None:
    """What this transport cannot do, or has no choice of."""
    able = fitting(work.kind)
    if transport not in able:
        place = where.get("workload.transport", where["workload.kind"])
        needs = {"transfer": "a stream transport", "connect": "connections", "page": "HTTP"}
        message = f"workload {work.kind} needs {needs[work.kind]}, not {transport.name}"
        raise CellError(place, message, f"one of {names(able)}")
    asked = (
        ("resumption", work.resumption not in (None, "none"), "secure", "there is no TLS session to resume"),
        ("payload", work.payload == "text", "typed", "its messages have no type"),
        ("polling", work.polling, "socketio", "only Socket.IO begins with polling"),
        ("stream", work.stream == "new", "opens_streams", "a message has no stream of its own to ask for"),
    )
    for key, is_asked, feature, why in asked:
        if is_asked and not getattr(transport, feature):
            some = names(one for one in able if getattr(one, feature))
            raise CellError(
                where[f"workload.{key}"], f"{transport.name} takes no workload.{key}: {why}", f"use one of {some}"
            )


def _refuse_sizes(work: WorkloadParameters, where: _Here, path: PathParameters) -> None:
    size_bytes, limit = work.size_bytes, UDP_LIMIT_BYTES[path.family]
    if work.kind == "transfer" and (size_bytes is None) == (work.duration_ns is None):
        wrong = "neither size nor duration is set" if size_bytes is None else "both size and duration are set"
        raise CellError(
            where["workload.kind"],
            f"workload transfer: {wrong}",
            'set one of them, as size = "1MB" or duration = "10s"',
        )
    if size_bytes is None:
        return
    if work.kind == "multiplex" and size_bytes not in MULTIPLEX_BYTES:
        low, high = MULTIPLEX_BYTES[0], MULTIPLEX_BYTES[-1]
        raise CellError(
            where["workload.size"],
            f"{size_bytes} bytes are too {'few' if size_bytes < low else 'many'} for workload multiplex",
            f"from {low} to {high}, so that a message is one packet",
        )
    if work.transport == "udp" and size_bytes > limit:
        raise CellError(
            where["workload.size"],
            f"{size_bytes} bytes do not fit into a UDP datagram",
            f"at most {limit} over {path.family}, or use tcp",
        )
    if work.kind == "echo" and size_bytes > MAX_ECHO_BYTES:
        raise CellError(where["workload.size"], f"an echo of {size_bytes} bytes is too large", "at most 1GiB")


def _refuse_directions(work: WorkloadParameters, where: _Here) -> None:
    if work.kind == "transfer" and work.direction == "echo":
        raise CellError(
            where["workload.direction"], "a transfer goes one way", 'use "upload" or "download", or kind = "echo"'
        )
    if work.mode != "open":
        return
    if work.connection == "new":
        raise CellError(where["workload.connection"], "an open loop keeps its connections", 'use mode = "closed"')
    if work.direction != "echo":
        raise CellError(
            where["workload.direction"], "an open loop sends each message back", 'use mode = "closed", or "echo"'
        )
    if work.rate_per_s is None:
        raise CellError(where["workload.mode"], "an open loop needs workload.rate", "messages a second, as rate = 100")


def _default_timeout_ns(transport: str, path: PathParameters) -> int:
    """docs/cell-protocol.md: 1 s + 4 round trips where nothing is sent again, else 60 s."""
    return 10**9 + 4 * path.rtt_ns if is_datagram(transport) else 60 * 10**9
