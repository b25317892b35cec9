"""An echo server from the package aioquic: QUIC streams and datagrams, or HTTP/3 and WebTransport over it."""

import asyncio
from typing import Any

import peer
from aioquic.asyncio import QuicConnectionProtocol, serve
from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DatagramReceived, DataReceived, H3Event, HeadersReceived, WebTransportStreamDataReceived
from aioquic.quic.events import ConnectionTerminated, DatagramFrameReceived, QuicEvent, StreamDataReceived
from aioquic_peer import configuration

GIVEN = peer.options(
    transport="quic",
    certificate_path=None,
    key_path=None,
    # Ends itself with SIGKILL when so many pieces of messages have come.
    kill_after=0,
)
arrived = 0


def count() -> None:
    """Counts what arrived, and ends the process if it is to end in the middle."""
    global arrived  # noqa: PLW0603 -- one count for all connections
    arrived += 1
    if arrived == GIVEN["kill_after"]:
        peer.kill_self()


class Echo(QuicConnectionProtocol):
    """Sends QUIC streams and datagrams back."""

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived):
            # Streams that the client opens in both directions have ids divisible by 4 (RFC 9000, section 2.1).
            if event.stream_id % 4 == 0:
                count()
                self._quic.send_stream_data(event.stream_id, event.data, event.end_stream)
        elif isinstance(event, DatagramFrameReceived):
            count()
            self._quic.send_datagram_frame(event.data)
        elif isinstance(event, ConnectionTerminated):
            peer.say(event="closed", code=event.error_code)
        self.transmit()


class Http(QuicConnectionProtocol):
    """Answers requests, and echoes the streams and datagrams of WebTransport sessions."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._http = H3Connection(self._quic, enable_webtransport=True)
        self._requests: dict[int, dict[bytes, bytes]] = {}
        self._bodies: dict[int, bytearray] = {}

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, ConnectionTerminated):
            peer.say(event="closed", code=event.error_code)
        for http_event in self._http.handle_event(event):
            self.handle(http_event)
        self.transmit()

    def handle(self, event: H3Event) -> None:
        """Takes one event of HTTP/3."""
        if isinstance(event, HeadersReceived):
            headers = dict(event.headers)
            self._requests.setdefault(event.stream_id, headers)
            if headers.get(b":method") == b"CONNECT":
                webtransport = headers.get(b":protocol", b"").startswith(b"webtransport")
                status = b"200" if webtransport else b"400"
                peer.say(event="session", path=headers.get(b":path", b"").decode())
                draft = (b"sec-webtransport-http3-draft", b"draft02")
                self._http.send_headers(event.stream_id, [(b":status", status), draft], end_stream=not webtransport)
            elif event.stream_ended:
                self.answer(event.stream_id)
        elif isinstance(event, DataReceived):
            if self._requests[event.stream_id].get(b":method") != b"CONNECT":
                self._bodies.setdefault(event.stream_id, bytearray()).extend(event.data)
                if event.stream_ended:
                    self.answer(event.stream_id)
            elif event.stream_ended:
                peer.say(event="session closed")
                self._http.send_data(event.stream_id, b"", end_stream=True)
        elif isinstance(event, DatagramReceived):
            count()
            self._http.send_datagram(event.stream_id, event.data)
        elif isinstance(event, WebTransportStreamDataReceived) and event.stream_id % 4 == 0:
            count()
            self._quic.send_stream_data(event.stream_id, event.data, event.stream_ended)

    def answer(self, stream_id: int) -> None:
        """Answers a whole request."""
        count()
        headers = self._requests[stream_id]
        body = bytes(self._bodies.pop(stream_id, b""))
        if headers[b":method"] == b"GET":
            body = peer.message(int(headers[b":path"].rpartition(b"/")[2]), "binary")
        fields = [(b":status", b"200"), (b"content-length", str(len(body)).encode())]
        self._http.send_headers(stream_id, fields)
        self._http.send_data(stream_id, body, end_stream=True)


async def main() -> None:
    protocol = Echo if GIVEN["transport"].startswith("quic") else Http
    server = await serve("127.0.0.1", 0, configuration=configuration(GIVEN, is_client=False), create_protocol=protocol)
    # The package has no reader for the address.
    host, port = server._transport.get_extra_info("sockname")
    peer.say(address=f"{host}:{port}")
    await peer.standard_input_closes()
    server.close()


asyncio.run(main())
