"""Peers in virtual time: the same protocol, exact times, and deadlines that nobody has to wait for."""

import sys

import pytest

from conftest import ROOT, requires
from linux.lab import Object, ms
from peer_scripts import ECHO, client, example, good_server, server, silent_server
from virtual.lab import ADDED_NS, VirtualCells, round_trips_ms

DELAY: Object = {"forward": {"delay_ns": ms(20)}, "reverse": {"delay_ns": ms(30)}}


@pytest.mark.parametrize(
    "ends",
    [
        {"client": client()},
        {"server": good_server()},
        {"client": client(), "server": good_server()},
        {"client": client(), "server": silent_server("tcp:{port}")},
        {"client": client(), "server": silent_server("log:serving", "now serving")},
    ],
)
def test_exchanges_take_what_the_path_takes_whoever_the_ends_are(cells: VirtualCells, ends: Object) -> None:
    ran = cells.run({**ECHO, **ends}, **DELAY)
    assert round_trips_ms(ran) == [50, 50, 50]
    connect_ns = ran.samples()["connect_ns"][0]
    assert 0 <= connect_ns - ms(50) <= ADDED_NS
    waits = [ran.result["peers"][end]["processor_wait_ns"] for end in ("client", "server")]
    assert waits == [None, None], "computing takes no time"


def test_a_peer_comes_out_the_same_every_time(cells: VirtualCells) -> None:
    path = {"delay_ns": ms(20), "loss": 0.05}
    workload = {**ECHO, "messages": 50, "client": client(), "server": good_server()}
    first, second = (cells.run(workload, forward=path, reverse=path, seed=7) for _ in range(2))
    assert first.digests() == second.digests()
    assert first.book("forward")["dropped"]["loss"] + first.book("reverse")["dropped"]["loss"] > 0


@pytest.mark.parametrize("name", ["echo_client.py", "echo_client.mjs"])
def test_the_examples_of_the_documentation(cells: VirtualCells, name: str) -> None:
    if name.endswith(".mjs"):
        requires("node")
    ran = cells.run({**ECHO, "client": example(name)}, **DELAY)
    assert round_trips_ms(ran) == [50, 50, 50]


def test_a_peer_that_never_gets_ready_is_ended_after_half_a_minute(cells: VirtualCells) -> None:
    idle = "import time; time.sleep(3600)"
    for end in ("client", "server"):
        peer = {"name": "idle", "command": [sys.executable, "-I", "-S", "-c", idle]}
        failure = cells.run({**ECHO, end: peer}, **DELAY).end.failure
        assert failure is not None
        event = "ready" if end == "client" else "listening"
        assert failure.message == f'the {end} idle did not print "{event}" within 30 s'


@pytest.mark.parametrize(
    ("ready", "what"),
    [
        ("tcp:{port}", "(tcp:4433): nobody listens on TCP port 4433"),
        ("log:here", '(log:here): no line of its output has "here"'),
        ("run:test {port} = 1", "(run:test 4433 = 1): `test 4433 = 1` has not ended with exit status 0"),
    ],
)
def test_a_server_that_never_gets_ready_is_ended_too(cells: VirtualCells, ready: str, what: str) -> None:
    idle = {**server("threading.Event().wait()", "idle", ready=ready), "start_timeout_ns": 45 * 10**9}
    failure = cells.run({**ECHO, "server": idle}).end.failure
    assert failure is not None
    assert failure.message == f"the server idle was not ready within 45 s {what}"


def test_a_client_that_hangs_is_ended_when_all_exchanges_could_have_timed_out(cells: VirtualCells) -> None:
    workload = {**ECHO, "timeout_ns": 10**9, "client": client("ready(); connect(); time.sleep(3600)", "stuck")}
    failure = cells.run(workload, **DELAY).end.failure
    assert failure is not None
    # Four timeouts of a second, and half a minute to report.
    assert failure.message == "the client stuck did not finish within 34 s"


def test_a_cells_deadline_leaves_a_client_its_last_words(cells: VirtualCells) -> None:
    body = "ready(); connect(); print('still here', file=sys.stderr, flush=True); time.sleep(3600)"
    workload = {**ECHO, "client": client(body, "stuck")}
    failure = cells.run(workload, **DELAY, deadline_ns=10 * 10**9).end.failure
    assert failure is not None
    assert "the client stuck did not finish within " in failure.message
    assert failure.message.endswith("still here")


def test_iperf3_measures_what_the_link_carries(cells: VirtualCells, monkeypatch: pytest.MonkeyPatch) -> None:
    requires("iperf3")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    peer = {"name": "iperf3", "command": [sys.executable, "-m", "crosswind.peers.iperf3"]}
    link = {"delay_ns": ms(5), "rate_bps": 20_000_000, "queue": {"packets": 100}}
    for direction in ("upload", "download"):
        workload = {
            "kind": "transfer",
            "transport": "tcp",
            "duration_ns": 2 * 10**9,
            "direction": direction,
            "count": 2,
        }
        ran = cells.run({**workload, "client": peer, "server": peer}, forward=link, reverse=link)
        samples = ran.samples()
        assert samples["outcome"].to_list() == ["ok", "ok"]
        took_s = (samples["received_ns"] - samples["sent_ns"]) / 1e9
        rates = (8 * samples["received_bytes"] / took_s).to_list()
        # Of each packet of 1500 bytes 1448 are payload. Slow start leaves the link idle for a while.
        assert all(0.8 * 20e6 < rate < 20e6 * 1448 / 1500 for rate in rates), rates
        assert ran.result["peers"]["client"]["implementation"].startswith("iperf 3.")
        assert set(ran.result["peers"]["client"]["facts"]) == {"retransmits"}
