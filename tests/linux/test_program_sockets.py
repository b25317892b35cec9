"""Programs' TCP connections with their kernels' counts: which limit held them back, whatever it took."""

import sys

import polars as pl
import pytest

from deaf import GIVES_UP, NEVER_ACCEPTS
from linux.lab import Ended, Lab, Object, cell_of, ms

SERVER = """
import socket, sys
port, size, buffer = map(int, sys.argv[1:])
with socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True) as listener:
    while True:
        connection, _ = listener.accept()
        with connection:
            if buffer:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
            connection.sendall(bytes(size))
"""
CLIENT = """
import socket, sys
address, port, buffer = sys.argv[1], *map(int, sys.argv[2:])
with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as connection:
    if buffer:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.connect((address, port))
    while connection.recv(65536):
        pass
"""
PORT = 8000
LIMITS = ["congestion_window", "receive_window", "zero_window", "send_buffer"]


def download(lab: Lab, size: int, *, send: int = 0, receive: int = 0, spent: bool = True, **path: object) -> Ended:
    """A server's program sends to a client's, each with a buffer of its own."""
    return run(
        lab, [CLIENT, "{address}", "{port}", str(receive)], [SERVER, "{port}", str(size), str(send)], spent, **path
    )


def run(lab: Lab, client: list[str], server: list[str], spent: bool = True, **path: object) -> Ended:
    """Runs two programs in Python, over 25 ms."""
    python = [sys.executable, "-I", "-S", "-c"]
    workload: Object = {"kind": "program", "client": [*python, *client], "server": [*python, *server], "port": PORT}
    delays: Object = {"forward": {"delay_ns": ms(25)}, "reverse": {"delay_ns": ms(25)}}
    directory = lab.directory()
    output = {"directory": str(directory), "spent": spent}
    cell = cell_of(workload, output=output, host={"congestion_control": "cubic"}, **delays, **path)
    return lab.end(lab.start(cell), directory)


def spent_ns(ended: Ended, data: str = "reverse") -> dict[str, int]:
    """What the server's data waited for, or the client's."""
    assert ended.events[-1]["event"] == "finished"
    parts = pl.read_ipc((ended.directory / "connection_parts.arrow").read_bytes())
    return dict(parts.filter(data=data).select("part", "time_ns").iter_rows())


def sockets(ended: Ended) -> pl.DataFrame:
    """What the kernels told about the sockets."""
    return pl.read_ipc((ended.directory / "tcp.arrow").read_bytes())


def longest(spent: dict[str, int]) -> str:
    return max(LIMITS, key=lambda part: spent.get(part, 0))


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_a_small_send_buffer_is_told_by_its_size(lab: Lab, family: str) -> None:
    ended = download(lab, 8_000_000, send=65_536, family=family)
    assert longest(spent_ns(ended)) == "send_buffer"
    # The kernel doubles what is asked for.
    last = sockets(ended).filter(last=1).sort("host")
    assert last["host"].to_list() == ["client", "server"]
    assert last["server_port"].to_list() == [PORT, PORT]
    assert last["client_port"].n_unique() == 1
    assert (last["congestion_control"][1], last["send_buffer_bytes"][1]) == ("cubic", 131_072)
    assert last["sent_bytes"].to_list() == [0, 8_000_000]


def test_a_small_receive_window_is_told_where_the_kernel_counted_it(lab: Lab) -> None:
    ended = download(lab, 500_000, receive=16_384)
    spent = spent_ns(ended)
    assert longest(spent) == "receive_window"
    server = sockets(ended).filter(last=1, host="server")
    assert server["receive_window_limited_ns"].item() > spent.get("congestion_window", 0)


def test_windows_that_limit_nothing_are_not_told(lab: Lab) -> None:
    ended = download(lab, 300_000, receive=4_000_000)
    spent = spent_ns(ended)
    assert longest(spent) == "congestion_window"
    server = sockets(ended).filter(last=1, host="server")
    assert server["receive_window_limited_ns"].item() == 0
    assert not {"receive_window", "zero_window"} & spent.keys()


def test_where_nobody_asks_for_causes_no_kernel_is_asked(lab: Lab) -> None:
    ended = download(lab, 1000, spent=False)
    assert ended.result["valid"]
    assert not {name for name in ended.files() if name.endswith(".arrow")} - {"samples.arrow"}


def test_a_server_that_never_accepts_is_what_a_client_waits_for(lab: Lab) -> None:
    spent = spent_ns(run(lab, [GIVES_UP, "{address}", "{port}", "1"], [NEVER_ACCEPTS, "{port}"]), "forward")
    assert max(spent, key=lambda part: spent[part]) == "server_host"
