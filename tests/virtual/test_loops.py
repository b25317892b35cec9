"""Programs that ask in a loop for what only time can bring: they get it when it comes, and nobody else is late."""

import sys

import pytest

from linux.lab import Object, ms
from virtual.lab import VirtualCells

PATH: Object = {"forward": {"delay_ns": ms(20)}, "reverse": {"delay_ns": ms(20)}}
SERVER = """
import socket
connection, _ = socket.create_server(("", 80)).accept()
while data := connection.recv(100): connection.sendall(data)
"""
CLIENT = """
import os, select, signal, socket, sys, time
connection = socket.create_connection((sys.argv[1], 80))
connection.setblocking(False)
begun = time.monotonic_ns()
connection.sendall(b"x")
null = os.open("/dev/null", os.O_WRONLY)
{loop}
print(time.monotonic_ns() - begun)
"""
WAIT = "select.select([connection], [], [])"
LOOPS = {
    "polls what is always ready": """
poll = select.epoll()
poll.register(connection, select.EPOLLIN | select.EPOLLOUT)
while not poll.poll(0.25)[0][1] & select.EPOLLIN: pass
""",
    "ignores a signal on each turn": """
for _ in range(10_000):
    if select.select([connection], [connection], [])[0]: break
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
else: sys.exit("it has not paid")
""",
    "polls twice on each turn": """
ask = [connection], [connection], [], 1
while not (select.select(*ask) and select.select(*ask)[0]): pass
""",
    "polls without waiting": "while not select.select([connection], [], [], 0)[0]: pass",
    "tries to receive": """
while True:
    try: connection.recv(100); break
    except BlockingIOError: pass
""",
    "asks what is not acknowledged": """
while connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 100)[24]: pass
connection.setblocking(True)
connection.recv(100)
""",
    "writes on each turn": "while not select.select([connection], [connection], [])[0]: os.write(null, b'turn')",
}


def echo_ns(cells: VirtualCells, loop: str) -> int:
    """How long a client takes that sends a byte and waits by this loop for what comes of it."""
    python = [sys.executable, "-IS", "-c"]
    client = [*python, CLIENT.format(loop=loop), "{server}"]
    ran = cells.run({"kind": "program", "client": client, "server": [*python, SERVER]}, **PATH)
    assert ran.finished.program is not None and ran.finished.program.ok, ran.text("client.err")
    packets = ran.packets()
    assert (packets["out_ns"] - packets["due_ns"]).max() <= 1000
    return int(ran.text("client.out"))


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS.keys())
def test_a_loop_ends_when_what_it_asks_for_is_there(cells: VirtualCells, loop: str) -> None:
    waited_ns = echo_ns(cells, WAIT)
    assert waited_ns // 1000 == 40_000
    # A call reads the clock a few times, which takes 1 ns; a loop that also does something pays 1 us a call.
    assert 0 <= echo_ns(cells, loop) - waited_ns <= (2_000 if "write" in loop else 10)


def test_a_program_that_polls_and_receives_finds_its_clock_a_microsecond_later(cells: VirtualCells) -> None:
    begin, receive = f"{WAIT}\nbegun = time.monotonic_ns()", "connection.recv(1)"
    # Timers are up to 0.5 us late.
    assert 1000 <= echo_ns(cells, f"{begin}\n{WAIT}\n{receive}") <= 1510
    assert echo_ns(cells, f"{begin}\n{receive}") <= 10
