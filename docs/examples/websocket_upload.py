"""A message over WebSocket, of the package websockets as it is set by default. `serve PORT` takes it; `HOST PORT BYTES` sends it."""

import asyncio
import sys

from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve


async def take(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(f"{len(message)} bytes")


async def serve_for_ever(port: int) -> None:
    async with serve(take, "", port, max_size=None) as server:
        await server.serve_forever()


async def send(host: str, port: int, size: int) -> None:
    async with connect(f"ws://{host}:{port}/", compression=None, proxy=None) as connection:
        await connection.send(bytes(size))
        print(await connection.recv())


if sys.argv[1] == "serve":
    asyncio.run(serve_for_ever(int(sys.argv[2])))
else:
    asyncio.run(send(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
