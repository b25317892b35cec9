"""A server and a client over QUIC of the package aioquic, as programs that log their keys and write a qlog.

The server answers a request, which is a number, with so many bytes. Arguments: serve PORT CERTIFICATE KEY QLOG, or
fetch PORT SIZES QLOG SETTINGS: sizes with commas, each a request of its own; settings of the client as JSON, with
`changes`: whether it changes its keys and its connection ID before each request.
"""

import asyncio
import json
import os
import signal
import ssl
import sys
from pathlib import Path
from typing import Any

from aioquic.asyncio import QuicConnectionProtocol, connect, serve
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent, StreamDataReceived
from aioquic.quic.logger import QuicLogger


def configuration(log: QuicLogger, *, is_client: bool, **more: Any) -> QuicConfiguration:
    """Of one end. The package leaves the variable to programs."""
    path = os.environ.get("SSLKEYLOGFILE")
    keys = Path(path).open("a", encoding="ascii") if path else None  # noqa: SIM115 -- for as long as the program runs
    return QuicConfiguration(
        is_client=is_client, alpn_protocols=["test"], secrets_log_file=keys, quic_logger=log, **more
    )


class Server(QuicConnectionProtocol):
    """Answers each stream."""

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived) and event.end_stream:
            self._quic.send_stream_data(event.stream_id, bytes(int(event.data)), end_stream=True)
            self.transmit()


class Client(QuicConnectionProtocol):
    """Notes when an answer is there."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.answered = asyncio.Event()

    def quic_event_received(self, event: QuicEvent) -> None:
        if isinstance(event, StreamDataReceived) and event.end_stream:
            self.answered.set()


async def run_server(log: QuicLogger, port: str, certificate: str, key: str) -> None:
    made = configuration(log, is_client=False)
    made.load_cert_chain(certificate, key)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    await serve("0.0.0.0", int(port), configuration=made, create_protocol=Server)
    await ended.wait()


async def fetch(log: QuicLogger, address: str, port: str, sizes: str, settings: dict[str, Any]) -> None:
    changes = settings.pop("changes", False)
    made = configuration(log, is_client=True, verify_mode=ssl.CERT_NONE, **settings)
    async with connect(address, int(port), configuration=made, create_protocol=Client) as client:
        assert isinstance(client, Client)
        for size in sizes.split(","):
            client.answered.clear()
            if changes:
                client._quic.request_key_update()
                client._quic.change_connection_id()
            stream = client._quic.get_next_available_stream_id()
            client._quic.send_stream_data(stream, size.encode(), end_stream=True)
            client.transmit()
            await client.answered.wait()


async def main() -> None:
    log = QuicLogger()
    if sys.argv[1] == "serve":
        _, _, port, certificate, key, written = sys.argv
        await run_server(log, port, certificate, key)
    else:
        _, _, address, port, sizes, written, settings = sys.argv
        await fetch(log, address, port, sizes, json.loads(settings))
    Path(written).write_text(json.dumps(log.to_dict()), encoding="utf-8")


asyncio.run(main())
