"""What does the keepalive of the library websockets do at 5 % loss?

Its client sends a ping every 20 s, closes the connection where no pong comes within 20 s, and connects again. A lost
packet is not a lost connection: TCP sends it again, here after some 300 ms. Whoever sets a shorter timeout than that to
notice failures sooner closes connections that work.
"""

import asyncio

from websockets.asyncio.client import connect
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

PATH = {"delay": "50ms", "loss": "5%", "seed": 1}


async def echo(connection):
    async for message in connection:
        await connection.send(message)


async def server(address, port):
    async with serve(echo, address, port, compression=None) as running:
        await running.serve_forever()


async def minute_of_messages(address, port, **keepalive):
    """Sends a message a second and returns how many connections it took."""
    left, connections = 60, 0
    async for connection in connect(f"ws://{address}:{port}", compression=None, proxy=None, **keepalive):
        connections += 1
        try:
            while left:
                await connection.send("hello")
                await connection.recv()
                left -= 1
                await asyncio.sleep(1)
            break
        except ConnectionClosed:
            continue
    return connections


async def patient(address, port):
    return await minute_of_messages(address, port)


async def impatient(address, port):
    return await minute_of_messages(address, port, ping_interval=1, ping_timeout=0.25)


def test_the_defaults_keep_one_connection(net):
    result = net.run(client=patient, server=server, **PATH)
    assert result.drops["loss"] > 0
    assert result.value == 1


def test_a_short_ping_timeout_closes_connections_that_work(net):
    result = net.run(client=impatient, server=server, **PATH)
    assert result.value > 1
