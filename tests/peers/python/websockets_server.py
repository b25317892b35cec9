"""An echo server from the package websockets."""

import asyncio
import ssl
import struct
from socket import SO_LINGER, SOL_SOCKET

import peer
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

GIVEN = peer.options(
    transport="websocket",
    certificate_path=None,
    key_path=None,
    deflate=False,
    # Pings with this before each echo, which waits for the pong.
    ping=None,
    # After so many messages, when one more comes: "close" with `code`, "reset" in the middle of a message, "kill".
    end=None,
    after=0,
    code=1000,
)


async def echo(connection: ServerConnection) -> None:
    count = 0
    try:
        async for message in connection:
            if GIVEN["end"] is not None and count == GIVEN["after"]:
                await end(connection)
                break
            if GIVEN["ping"] is not None:
                async with asyncio.timeout(peer.DEADLINE_S):
                    # The package completes the wait only for a pong with this payload.
                    await (await connection.ping(GIVEN["ping"]))
                peer.say(event="pong", payload=GIVEN["ping"])
            await connection.send(message)
            count += 1
    except ConnectionClosed:
        pass
    peer.say(event="closed", code=connection.close_code, reason=connection.close_reason)


async def end(connection: ServerConnection) -> None:
    """Ends a connection in the way that was asked for."""
    if GIVEN["end"] == "kill":
        peer.kill_self()
    if GIVEN["end"] == "reset":
        # A frame that promises 100 bytes and brings 4, then RST instead of FIN.
        connection.transport.write(b"\x82\x64half")
        connection.transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
        connection.transport.abort()
    else:
        await connection.close(GIVEN["code"], "done")


async def main() -> None:
    context = None
    if GIVEN["transport"] == "wss":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(GIVEN["certificate_path"], GIVEN["key_path"])
    compression = "deflate" if GIVEN["deflate"] else None
    async with serve(
        echo, "127.0.0.1", 0, ssl=context, compression=compression, max_size=2**24, close_timeout=peer.DEADLINE_S
    ) as server:
        host, port = next(iter(server.sockets)).getsockname()
        peer.say(address=f"{host}:{port}")
        await peer.standard_input_closes()


asyncio.run(main())
