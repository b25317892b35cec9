"""The peers node and deno in virtual time: their round trips are those of the path, and come out the same each time."""

import pytest

from javascript_peers import ends
from linux.lab import Object, ms
from virtual.lab import VirtualCells

DELAY: Object = {"forward": {"delay_ns": ms(25)}, "reverse": {"delay_ns": ms(25)}}


@pytest.mark.parametrize(("client", "server"), [("native", "node"), ("node", "native"), ("node", "node")])
def test_round_trips_of_node_are_those_of_the_path(cells: VirtualCells, client: str, server: str) -> None:
    workload = {"kind": "echo", "transport": "socketio-websocket", "messages": 20, "payload": "text"}
    ran, again = (cells.run({**workload, **ends(client, server)}, **DELAY) for _ in range(2))
    times_ns = (ran.samples()["received_ns"] - ran.samples()["sent_ns"]).to_list()
    assert len(times_ns) == 20
    # A call of libuv that finds nothing takes 1 us, as any; there are fewer than a hundred in a round trip.
    assert ms(50) <= min(times_ns) <= max(times_ns) <= ms(50.1)
    assert ran.finished.peers is not None
    # A session has an id drawn at random: the packets are the same but for what is in them.
    assert times_ns == (again.samples()["received_ns"] - again.samples()["sent_ns"]).to_list()


@pytest.mark.parametrize("transport", ["webtransport", "socketio-webtransport"])
def test_round_trips_of_deno_are_those_of_the_path(cells: VirtualCells, transport: str) -> None:
    workload = {"kind": "echo", "transport": transport, "messages": 20}
    ran = cells.run({**workload, **ends("deno", "deno")}, **DELAY)
    times_ns = (ran.samples()["received_ns"] - ran.samples()["sent_ns"]).to_list()
    assert len(times_ns) == 20
    assert ms(50) <= min(times_ns) <= max(times_ns) <= ms(50.1)
