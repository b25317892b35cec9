"""A client from the package aioquic: QUIC streams and datagrams, HTTP/3, WebTransport over HTTP/3."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import peer
from aioquic.asyncio import QuicConnectionProtocol, connect
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DatagramReceived, DataReceived, H3Event, HeadersReceived, WebTransportStreamDataReceived
from aioquic.quic.events import ConnectionTerminated, DatagramFrameReceived, QuicEvent, StreamDataReceived
from aioquic_peer import configuration

GIVEN = peer.options(
    transport="quic",
    address=None,
    server_name="localhost",
    trust_path=None,
    path="/",
    method="POST",
    sizes=[],
    payload="binary",
    # All messages on one stream, instead of a stream for each.
    kept=False,
    # After the messages: "orderly" or "killed", in the middle of one more.
    end="orderly",
)

Exchange = Callable[[bytes], Awaitable[bytes]]


class Client(QuicConnectionProtocol):
    """Collects what comes by stream; datagrams by arrival."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.streams: dict[int, tuple[bytearray, asyncio.Event]] = {}
        self.finished: set[int] = set()
        self.datagrams: asyncio.Queue[bytes] = asyncio.Queue()
        self.ended = asyncio.Event()
        self.close_code: int | None = None
        self.reason = ""
        self.status: dict[int, bytes] = {}
        self.answered = asyncio.Event()
        # The package looks for a frame's header in what comes back on these streams, and there is none.
        self.webtransport_streams: set[int] = set()
        self.http = H3Connection(self._quic, enable_webtransport=True) if not raw() else None

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ConnectionTerminated):
            self.close_code = event.error_code
            self.reason = event.reason_phrase
            self.ended.set()
        ours = isinstance(event, StreamDataReceived) and event.stream_id in self.webtransport_streams
        if self.http is not None and not ours:
            for http_event in self.http.handle_event(event):
                self.handle(http_event)
        elif isinstance(event, StreamDataReceived):
            self.take(event.stream_id, event.data, ended=event.end_stream)
        elif isinstance(event, DatagramFrameReceived):
            self.datagrams.put_nowait(event.data)

    def handle(self, event: H3Event) -> None:
        """Takes one event of HTTP/3."""
        if isinstance(event, HeadersReceived):
            self.status[event.stream_id] = dict(event.headers)[b":status"]
            self.answered.set()
            self.take(event.stream_id, b"", ended=event.stream_ended)
        elif isinstance(event, DataReceived | WebTransportStreamDataReceived):
            self.take(event.stream_id, event.data, ended=event.stream_ended)
        elif isinstance(event, DatagramReceived):
            self.datagrams.put_nowait(event.data)

    def take(self, stream_id: int, data: bytes, *, ended: bool) -> None:
        """Adds to what a stream brought."""
        so_far, changed = self.of(stream_id)
        so_far.extend(data)
        if ended:
            self.finished.add(stream_id)
        changed.set()

    def of(self, stream_id: int) -> tuple[bytearray, asyncio.Event]:
        """What a stream has brought, and how to wait for more."""
        return self.streams.setdefault(stream_id, (bytearray(), asyncio.Event()))

    async def until(self, stream_id: int, size: int | None) -> bytes:
        """The next `size` bytes of a stream, or all of it."""
        so_far, changed = self.of(stream_id)
        while stream_id not in self.finished if size is None else len(so_far) < size:
            if self.ended.is_set():
                raise ConnectionError(f"closed with {self.close_code} {self.reason}")
            changed.clear()
            waits = [asyncio.ensure_future(changed.wait()), asyncio.ensure_future(self.ended.wait())]
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        size = len(so_far) if size is None else size
        received = bytes(so_far[:size])
        del so_far[:size]
        return received


def raw() -> bool:
    """Whether streams are those of QUIC itself."""
    return str(GIVEN["transport"]).startswith("quic")


async def exchange_of(client: Client) -> tuple[Exchange, Callable[[], None]]:
    """How to exchange one message, and how to send half of one."""
    quic, http = client._quic, client.http
    authority = f"{GIVEN['server_name']}:{GIVEN['address'].rpartition(':')[2]}".encode()
    session = None
    if GIVEN["transport"].startswith("webtransport"):
        session = quic.get_next_available_stream_id()
        fields = [(b":method", b"CONNECT"), (b":protocol", b"webtransport"), (b":path", GIVEN["path"].encode())]
        http.send_headers(session, [*fields[:1], (b":scheme", b"https"), (b":authority", authority), *fields[1:]])
        client.transmit()
        await client.answered.wait()
        if client.status[session] != b"200":
            raise ConnectionError(f"status {client.status[session].decode()}")

    def open_stream() -> int:
        if session is not None:
            stream = int(http.create_webtransport_stream(session))
            client.webtransport_streams.add(stream)
            return stream
        return int(quic.get_next_available_stream_id())

    kept: int | None = None

    async def on_stream(sent: bytes) -> bytes:
        nonlocal kept
        stream = kept if kept is not None else open_stream()
        kept = stream if GIVEN["kept"] else None
        quic.send_stream_data(stream, sent, end_stream=not GIVEN["kept"])
        client.transmit()
        return await client.until(stream, len(sent) if GIVEN["kept"] else None)

    async def in_datagram(sent: bytes) -> bytes:
        if session is None:
            quic.send_datagram_frame(sent)
        else:
            http.send_datagram(session, sent)
        client.transmit()
        return await client.datagrams.get()

    def request(method: str, path: str, *, end_stream: bool) -> int:
        stream = int(quic.get_next_available_stream_id())
        fields = [(":method", method), (":scheme", "https"), (":authority", authority.decode()), (":path", path)]
        http.send_headers(stream, [(name.encode(), value.encode()) for name, value in fields], end_stream)
        return stream

    async def by_http(sent: bytes) -> bytes:
        get = GIVEN["method"] == "GET"
        stream = request(GIVEN["method"], f"/bytes/{len(sent)}" if get else GIVEN["path"], end_stream=get)
        if not get:
            http.send_data(stream, sent, end_stream=True)
        client.transmit()
        received = await client.until(stream, None)
        if client.status[stream] != b"200":
            raise ConnectionError(f"status {client.status[stream].decode()}")
        # What the bytes are is the server's to choose.
        return sent if get and len(received) == len(sent) else received

    def half() -> None:
        if GIVEN["transport"] == "http3":
            http.send_data(request("POST", GIVEN["path"], end_stream=False), b"half", end_stream=False)
        else:
            quic.send_stream_data(open_stream(), b"half")
        client.transmit()

    if GIVEN["transport"].endswith("-datagram"):
        return in_datagram, half
    return (by_http if GIVEN["transport"] == "http3" else on_stream), half


async def call() -> None:
    host, _, port = GIVEN["address"].rpartition(":")
    settings = configuration(GIVEN, is_client=True)
    async with connect(host, int(port), configuration=settings, create_protocol=Client) as client:
        assert isinstance(client, Client)
        exchange, half = await exchange_of(client)
        for size in GIVEN["sizes"]:
            sent = peer.message(size, GIVEN["payload"])
            received = await exchange(sent)
            peer.say(size=size, outcome="ok" if received == sent else "different", received=len(received))
        if GIVEN["end"] == "killed":
            half()
            peer.kill_self()


async def main() -> None:
    try:
        async with asyncio.timeout(peer.DEADLINE_S):
            await call()
        peer.say(event="closed", outcome="ok")
    except TimeoutError:
        peer.say(event="closed", outcome="timeout")
    except ConnectionError as error:
        peer.say(event="closed", outcome="closed", how=str(error))


asyncio.run(main())
