"""Cells with the peers node and deno, over an emulated path."""

import pytest

from javascript_peers import ends
from linux.lab import Lab, Object, ms

DELAY: Object = {"forward": {"delay_ns": ms(2)}, "reverse": {"delay_ns": ms(3)}}
PAIRS = [("native", "node"), ("node", "native"), ("node", "node")]
DENO_PAIRS = [("native", "deno"), ("deno", "native"), ("deno", "deno")]


@pytest.mark.parametrize(
    ("transport", "client", "server"),
    [
        *(("socketio-websocket", *pair) for pair in PAIRS),
        *(("socketio-webtransport", *pair) for pair in DENO_PAIRS),
        ("wss", "node", "node"),
        ("websocket", "deno", "deno"),
        ("http2", "node", "node"),
        ("webtransport-datagram", "deno", "deno"),
    ],
)
def test_echo(lab: Lab, transport: str, client: str, server: str) -> None:
    workload = {"kind": "echo", "transport": transport, "messages": 5, "size_bytes": 1000}
    ran = lab.run({**workload, **ends(client, server)}, **DELAY)
    samples = ran.samples()
    assert samples["outcome"].to_list() == ["ok"] * 5
    # There and back, and once more to set up the connection.
    assert (samples["received_ns"] - samples["sent_ns"]).min() >= ms(5)
    assert samples["connect_ns"][0] >= ms(5)
    peers = ran.result["peers"]
    assert peers["verified_transport"] == transport
    for end, name in (("client", client), ("server", server)):
        known = {"native": "Crosswind ", "node": "Node ", "deno": "Deno "}[name]
        assert peers[end]["implementation"].startswith(known)


@pytest.mark.parametrize(
    ("transport", "client", "server", "connections"),
    [("tcp", "node", "node", 4), ("h2c", "node", "native", 1), ("webtransport", "deno", "deno", 1)],
)
def test_multiplex(lab: Lab, transport: str, client: str, server: str, connections: int) -> None:
    workload = {"kind": "multiplex", "transport": transport, "messages": 8, "rate_per_s": 50}
    ran = lab.run({**workload, **ends(client, server)}, **DELAY)
    samples = ran.samples().sort("exchange")
    assert samples["outcome"].to_list() == ["ok"] * 8
    assert samples["stream"].to_list() == [0, 1, 2, 3] * 2
    assert samples["connection"].n_unique() == connections


@pytest.mark.parametrize(
    ("transport", "server", "polling"),
    [("socketio-websocket", "node", True), ("https1", "node", False), ("webtransport", "deno", False)],
)
def test_connect(lab: Lab, transport: str, server: str, polling: bool) -> None:
    workload = {"kind": "connect", "transport": transport, "count": 4, "connections": 2, "polling": polling}
    ran = lab.run({**workload, **ends(server, server)}, **DELAY)
    assert ran.samples()["outcome"].to_list() == ["ok"] * 4
    assert ran.samples()["connect_ns"].min() >= ms(10)
    assert (ran.samples()["upgrade_ns"].null_count() == 0) == polling


@pytest.mark.parametrize("transport", ["http1", "http2"])
def test_page(lab: Lab, transport: str) -> None:
    ran = lab.run({"kind": "page", "transport": transport, "count": 2, **ends("native", "node")}, **DELAY)
    assert ran.samples()["outcome"].to_list() == ["ok", "ok"]
    assert ran.samples()["received_bytes"].to_list() == [636_000] * 2


def test_a_transport_that_the_peer_has_not_got(lab: Lab) -> None:
    workload = {"kind": "echo", "transport": "socketio-webtransport", **ends("native", "node")}
    error = lab.run(workload).error
    assert error["message"] == "the server node cannot go on: a node server does not carry socketio-webtransport"
    assert 'use server = "deno"' in error["hint"]
