"""A client from the package websockets."""

import asyncio
import ssl
import struct
from socket import SO_LINGER, SOL_SOCKET

import peer
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

GIVEN = peer.options(
    transport="websocket",
    address=None,
    server_name="localhost",
    trust_path=None,
    path="/",
    sizes=[],
    payload="binary",
    deflate=False,
    # Each is sent as a ping after the messages, and its pong waited for.
    pings=[],
    # After that: "orderly" with `code`, or in the middle of a message "reset" or "killed".
    end="orderly",
    code=1000,
    # Splits each message into this many frames.
    fragments=1,
)


async def call(connection: ClientConnection) -> None:
    for size in GIVEN["sizes"]:
        sent = peer.message(size, GIVEN["payload"])
        pieces = [sent.decode() if GIVEN["payload"] == "text" else sent]
        if GIVEN["fragments"] > 1:
            whole = pieces[0]
            step = max(1, -(-len(whole) // GIVEN["fragments"]))
            pieces = [whole[start : start + step] for start in range(0, max(1, len(whole)), step)]
        await connection.send(pieces[0] if len(pieces) == 1 else pieces)
        received = await connection.recv()
        kept = isinstance(received, str) == (GIVEN["payload"] == "text")
        back = received.encode() if isinstance(received, str) else received
        peer.say(size=size, outcome="ok" if kept and back == sent else "different", received=len(back))
    for ping in GIVEN["pings"]:
        await (await connection.ping(ping))
        peer.say(event="pong", payload=ping)
    if GIVEN["end"] == "orderly":
        await connection.close(GIVEN["code"], "done")
        return
    # A masked frame that promises 100 bytes and brings 4.
    connection.transport.write(b"\x82\xe4\0\0\0\0half")
    if GIVEN["end"] == "killed":
        peer.kill_self()
    connection.transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    connection.transport.abort()


async def main() -> None:
    host, _, port = GIVEN["address"].rpartition(":")
    secure = GIVEN["transport"] == "wss"
    context = ssl.create_default_context(cafile=GIVEN["trust_path"]) if secure else None
    scheme = "wss" if secure else "ws"
    connection = None
    try:
        async with asyncio.timeout(peer.DEADLINE_S):
            connection = await connect(
                f"{scheme}://{GIVEN['server_name']}:{port}{GIVEN['path']}",
                host=host,
                port=int(port),
                ssl=context,
                compression="deflate" if GIVEN["deflate"] else None,
                max_size=2**24,
                proxy=None,
            )
            await call(connection)
            await connection.wait_closed()
        peer.say(event="closed", outcome="ok", code=connection.close_code)
    except ConnectionClosed:
        peer.say(event="closed", outcome="closed", code=connection.close_code if connection else None)
    except TimeoutError:
        peer.say(event="closed", outcome="timeout")
    except ssl.SSLCertVerificationError:
        peer.say(event="closed", outcome="certificate")


asyncio.run(main())
