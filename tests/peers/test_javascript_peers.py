"""The peers node and deno: each transport as a server for Crosswind's client, and as a client of Crosswind's server."""

import signal
import socket
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from peers.certificates import Certificates
from peers.implementations import SECURE, Ours, Peers
from peers.jobs import Jobs, free_port, requires_runtime
from peers.programs import Programs, Server
from peers.python.bad_servers import bad_server

STREAMS_OF_TCP = ["tcp", "tls"]
HTTP = ["http1", "https1", "h2c", "http2"]
MESSAGES = ["websocket", "wss", "socketio-websocket"]
EVERYWHERE = [*STREAMS_OF_TCP, *HTTP, *MESSAGES]
WEBTRANSPORT = ["webtransport", "webtransport-datagram", "socketio-webtransport"]
CARRIED = [("node", name) for name in EVERYWHERE] + [("deno", name) for name in [*EVERYWHERE, *WEBTRANSPORT]]
SOCKETIO = [("node", "socketio-websocket"), ("deno", "socketio-websocket"), ("deno", "socketio-webtransport")]
RUNTIMES = pytest.mark.parametrize("runtime", ["node", "deno"])
EACH = pytest.mark.parametrize(("runtime", "transport"), CARRIED)

LARGEST = {"webtransport-datagram": 1000}


def sizes_of(transport: str) -> list[int]:
    return [size for size in (1, 16_000, 1_000_000) if size <= LARGEST.get(transport, size)] or [1]


@pytest.fixture
def jobs(programs: Programs) -> Jobs:
    return Jobs(programs, {})


Serve = Callable[..., Server]


@pytest.fixture
def serve(jobs: Jobs, certificates: Certificates) -> Serve:
    """Starts one of the peers as a server."""

    def serve(runtime: str, transport: str, **workload: Any) -> Server:
        requires_runtime(runtime)
        good, trusted = certificates.good, certificates.trusted.trust_path
        return jobs.serve(runtime, good, trusted, transport=transport, **workload)

    return serve


@EACH
def test_our_client(ours: Ours, serve: Serve, runtime: str, transport: str) -> None:
    for size in sizes_of(transport):
        server = serve(runtime, transport, size_bytes=size)
        ours.call(transport, server, (size, size)).assert_ok((size, size))


@pytest.mark.parametrize(("runtime", "transport"), [*SOCKETIO, ("node", "wss"), ("deno", "wss")])
def test_our_client_sends_text(ours: Ours, serve: Serve, runtime: str, transport: str) -> None:
    server = serve(runtime, transport, payload="text", size_bytes=16_000)
    ours.call(transport, server, (1, 126, 16_000), payload="text").assert_ok((1, 126, 16_000))


@RUNTIMES
def test_our_client_is_upgraded(ours: Ours, serve: Serve, runtime: str) -> None:
    server = serve(runtime, "socketio-websocket", polling=True, size_bytes=16_000)
    ours.call("socketio-websocket", server, (1, 126, 16_000), polling=True).assert_ok((1, 126, 16_000))


@pytest.mark.parametrize(("runtime", "transport"), [(runtime, name) for runtime, name in CARRIED if name in HTTP])
def test_our_client_asks_for_bytes(ours: Ours, serve: Serve, runtime: str, transport: str) -> None:
    server = serve(runtime, transport, kind="page")
    called = ours.call(transport, server, (1, 1_000_000), method="GET", path="")
    called.assert_ok((1, 1_000_000))


@EACH
def test_our_server_echoes(ours: Ours, jobs: Jobs, runtime: str, transport: str) -> None:
    requires_runtime(runtime)
    server = ours.serve(transport)
    for size in sizes_of(transport):
        report = jobs.call(runtime, server, transport=transport, size_bytes=size, messages=5)
        report.assert_ok(transport, 5)
        assert {(sample["sent_bytes"], sample["received_bytes"]) for sample in report.samples} == {(size, size)}
        assert [line["connection"] for line in report.of("connected")] == [0]


@RUNTIMES
def test_more_samples_than_a_pipe_holds(ours: Ours, jobs: Jobs, runtime: str) -> None:
    requires_runtime(runtime)
    jobs.call(runtime, ours.serve("tcp"), transport="tcp", size_bytes=1, messages=2000).assert_ok("tcp", 2000)


@EACH
def test_our_server_is_connected_to(ours: Ours, jobs: Jobs, runtime: str, transport: str) -> None:
    requires_runtime(runtime)
    report = jobs.call(runtime, ours.serve(transport), transport=transport, kind="connect", count=6, connections=2)
    report.assert_ok(transport, 6)
    assert len(report.of("connected")) == 6
    for line in report.of("connected"):
        parts = [line[key] or 0 for key in ("transport_ns", "security_ns", "upgrade_ns")]
        assert line["setup_ns"] > 0
        assert sum(parts) <= line["setup_ns"]
        # WebTransport and Socket.IO do not say how long TCP or QUIC took.
        assert (line["transport_ns"] is not None) == (transport in [*STREAMS_OF_TCP, *HTTP, "websocket", "wss"])
        assert (line["security_ns"] is not None) == (transport in {"tls", "https1", "http2", "wss"})


@EACH
def test_our_server_multiplexes(ours: Ours, jobs: Jobs, runtime: str, transport: str) -> None:
    requires_runtime(runtime)
    workload = {"kind": "multiplex", "messages": 12, "rate_per_s": 100, "size_bytes": 200}
    report = jobs.call(runtime, ours.serve(transport), transport=transport, **workload)
    report.assert_ok(transport, 12)
    assert [sample["stream"] for sample in report.samples] == [0, 1, 2, 3] * 3
    assert len(report.of("connected")) == (4 if transport in {"tcp", "http1", "https1"} else 1)
    starts = [sample["intended_ns"] for sample in report.samples]
    # 100 messages a second on each of 4 streams: one every 2.5 ms.
    assert [start - starts[0] for start in starts] == [number * 2_500_000 for number in range(12)]
    assert all(sample["sent_ns"] >= sample["intended_ns"] for sample in report.samples)


@RUNTIMES
def test_our_server_is_called_at_a_rate(ours: Ours, jobs: Jobs, runtime: str) -> None:
    requires_runtime(runtime)
    workload = {"mode": "open", "rate_per_s": 200, "messages": 10, "connections": 2}
    report = jobs.call(runtime, ours.serve("websocket"), transport="websocket", **workload)
    report.assert_ok("websocket", 10)
    assert [sample["connection"] for sample in report.samples] == [0, 1] * 5


@pytest.mark.parametrize(("runtime", "transport"), [*SOCKETIO, ("node", "tcp"), ("node", "https1"), ("deno", "wss")])
def test_each_message_may_have_a_connection(ours: Ours, jobs: Jobs, runtime: str, transport: str) -> None:
    requires_runtime(runtime)
    report = jobs.call(runtime, ours.serve(transport), transport=transport, connection="new", messages=4)
    report.assert_ok(transport, 4)
    assert [sample["connection"] for sample in report.samples] == [0, 1, 2, 3]


def test_each_message_may_have_a_stream(ours: Ours, jobs: Jobs) -> None:
    requires_runtime("deno")
    report = jobs.call("deno", ours.serve("webtransport"), transport="webtransport", stream="new")
    report.assert_ok("webtransport", 20)
    assert len(report.of("connected")) == 1


@pytest.mark.parametrize(("runtime", "kind"), [("node", "echo"), ("node", "connect"), ("deno", "echo")])
def test_their_client_is_upgraded(ours: Ours, jobs: Jobs, runtime: str, kind: str) -> None:
    requires_runtime(runtime)
    server = ours.serve("socketio-websocket")
    report = jobs.call(runtime, server, transport="socketio-websocket", kind=kind, count=20, polling=True)
    report.assert_ok("socketio-websocket", 20)
    assert all(0 < line["upgrade_ns"] < line["setup_ns"] for line in report.of("connected"))


@pytest.mark.parametrize(
    ("runtime", "transport"), [*SOCKETIO, ("node", "tcp"), ("node", "h2c"), ("deno", "webtransport")]
)
@pytest.mark.parametrize("direction", ["upload", "download"])
def test_peers_with_each_other(serve: Serve, jobs: Jobs, runtime: str, transport: str, direction: str) -> None:
    workload = {"transport": transport, "direction": direction, "size_bytes": 5000, "messages": 5}
    # A client of Deno trusts the hash of the certificate; the others here need none.
    report = jobs.call(runtime, serve(runtime, **workload), **workload)
    report.assert_ok(transport, 5)
    sizes = {(sample["sent_bytes"], sample["received_bytes"]) for sample in report.samples}
    assert sizes == {(5000, 1) if direction == "upload" else (1, 5000)}


@RUNTIMES
def test_messages_are_what_crosswind_sends(serve: Serve, runtime: str) -> None:
    server = serve(runtime, "tcp", direction="download", size_bytes=300)
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as connection:
        connection.sendall(b"\x2c")
        # crates/workload/src/message.rs: what was asked with, then the pattern.
        assert connection.recv(300, socket.MSG_WAITALL) == b"\x2c" + bytes(i % 251 for i in range(1, 300))


@RUNTIMES
def test_their_messages_carry_their_number(jobs: Jobs, runtime: str) -> None:
    requires_runtime(runtime)
    received: list[bytes] = []

    def echo(connection: socket.socket) -> None:
        for _ in range(2):
            received.append(connection.recv(20, socket.MSG_WAITALL))
            connection.sendall(received[-1])

    with bad_server(echo) as address:
        report = jobs.call(runtime, int(address.rpartition(":")[2]), transport="tcp", size_bytes=20, messages=2)
    report.assert_ok("tcp", 2)
    assert received == [struct.pack("<Q", number) + bytes(range(8, 20)) for number in range(2)]


@pytest.mark.parametrize(("runtime", "transport"), [("node", "websocket"), ("deno", "webtransport")])
@pytest.mark.parametrize("how", ["terminate", "end of input"])
def test_a_server_ends_when_it_is_told_to(serve: Serve, runtime: str, transport: str, how: str) -> None:
    program = serve(runtime, transport).program
    assert program is not None
    if how == "terminate":
        program.process.send_signal(signal.SIGTERM)
        assert program.process.wait(20) == 0
    else:
        assert program.end() == 0
    assert program.errors == ""


@pytest.mark.parametrize("transport", ["webtransport", "socketio-webtransport"])
def test_a_server_outlives_its_clients(ours: Ours, peers: Peers, serve: Serve, transport: str) -> None:
    server = serve("deno", transport, size_bytes=126)
    if transport == "socketio-webtransport":
        killed = peers.call("deno-socketio", transport, server, (126,), end="killed")
        assert (killed.messages, killed.status) == ([(126, "ok", 126)], -9)
    ours.call(transport, server, (126,)).assert_ok((126,))
    ours.call(transport, server, (126,)).assert_ok((126,))


def test_a_port_that_is_taken(jobs: Jobs) -> None:
    requires_runtime("node")
    with closing(socket.create_server(("127.0.0.1", 0))) as taken:
        program = jobs.start("node", "server", taken.getsockname()[1], {"transport": "websocket"})
        line = program.line()
    assert line is not None
    assert line["event"] == "error"
    assert "address already in use 127.0.0.1:" in line["message"]
    assert program.wait()[0] == 1


@pytest.mark.parametrize(
    ("role", "workload", "message", "hint"),
    [
        (
            "server",
            {"transport": "tcp", "kind": "transfer"},
            "a node server has no workload transfer",
            'use server = "native"',
        ),
        ("server", {"transport": "webtransport"}, "a node server does not carry webtransport", 'use server = "deno"'),
        ("client", {"transport": "http3"}, "a node client does not carry http3", 'use client = "native"'),
        (
            "client",
            {"transport": "http1", "kind": "page"},
            "a node client has no workload page",
            'use client = "native"',
        ),
        (
            "client",
            {"transport": "wss", "resumption": "session"},
            "a node client resumes no sessions",
            'use resumption = "none"',
        ),
    ],
)
def test_what_cannot_be_is_refused(jobs: Jobs, role: str, workload: dict[str, str], message: str, hint: str) -> None:
    requires_runtime("node")
    program = jobs.start("node", role, free_port(), workload)
    line = program.line()
    assert line is not None
    assert (line["event"], line["message"]) == ("error", message)
    assert hint in line["hint"]
    assert program.wait()[0] == 1


@pytest.mark.parametrize("given", ["", "[1", '{"role": "server"'])
def test_a_job_that_is_none(jobs: Jobs, given: str) -> None:
    requires_runtime("node")
    program = jobs.start_with("node", given)
    assert program.process.stdin is not None
    program.process.stdin.close()
    line = program.line()
    assert line is not None
    assert (line["event"], line["message"]) == ("error", "the job on standard input is not a JSON object")
    assert program.wait()[0] == 1


def test_what_goes_wrong_inside_is_an_error_with_its_place(jobs: Jobs) -> None:
    requires_runtime("node")
    job = {"certificate_pem": "no certificate", "private_key_pem": "no key"}
    program = jobs.start("node", "server", free_port(), {"transport": "wss"}, **job)
    line = program.line()
    assert line is not None
    assert line["event"] == "error"
    assert program.wait()[0] == 1
    assert "at " in program.errors and "websocket.mjs" in program.errors


@RUNTIMES
def test_packages_that_are_missing(programs: Programs, tmp_path: Path, runtime: str) -> None:
    program = Jobs(programs, {"XDG_CACHE_HOME": str(tmp_path)}).start(
        runtime, "server", free_port(), {"transport": "websocket"}
    )
    assert program.line() == {
        "event": "error",
        "message": "the npm packages of the peers node and deno are not installed",
        "hint": "`crosswind browser install` installs it",
    }
    assert program.wait()[0] == 1


def test_node_that_is_missing(programs: Programs, tmp_path: Path) -> None:
    requires_runtime("node")
    program = Jobs(programs, {"PATH": str(tmp_path)}).start("node", "server", free_port(), {"transport": "tcp"})
    line = program.line()
    assert line is not None
    assert (line["event"], line["message"]) == ("error", "Node is not installed")
    assert program.wait()[0] == 1


@EACH
def test_a_client_is_refused(jobs: Jobs, certificates: Certificates, runtime: str, transport: str) -> None:
    requires_runtime(runtime)
    good = certificates.good
    server = Server(None, f"127.0.0.1:{free_port()}", certificates.trusted.trust_path, good.sha256)
    # Nobody answers a datagram's sender: QUIC waits.
    timeout_ns = 300_000_000 if transport in WEBTRANSPORT else 15_000_000_000
    report = jobs.call(runtime, server, transport=transport, messages=3, timeout_ns=timeout_ns)
    assert report.lines[-1] == {"event": "finished"}
    assert report.outcomes == ["timeout" if transport in WEBTRANSPORT else "refused"] * 3
    assert [sample["connection"] for sample in report.samples] == [0, 1, 2]
    assert report.of("connected") == []


@RUNTIMES
def test_a_client_loses_its_server_and_connects_again(jobs: Jobs, runtime: str) -> None:
    requires_runtime(runtime)

    def answer_one(connection: socket.socket) -> None:
        connection.sendall(connection.recv(1, socket.MSG_WAITALL))
        connection.recv(1, socket.MSG_WAITALL)

    with bad_server(answer_one) as address:
        port = int(address.rpartition(":")[2])
        report = jobs.call(runtime, port, transport="tcp", size_bytes=1, messages=4)
    report.assert_finished()
    assert report.outcomes == ["ok", "closed", "ok", "closed"]
    assert [sample["connection"] for sample in report.samples] == [0, 0, 1, 1]


@pytest.mark.parametrize(
    ("runtime", "transport"), [("node", "tcp"), ("deno", "websocket"), ("node", "socketio-websocket")]
)
def test_a_client_waits_no_longer_than_its_timeout(jobs: Jobs, runtime: str, transport: str) -> None:
    requires_runtime(runtime)

    def be_silent(connection: socket.socket) -> None:
        while connection.recv(65536):
            pass

    with bad_server(be_silent) as address:
        port = int(address.rpartition(":")[2])
        report = jobs.call(runtime, port, transport=transport, messages=2, timeout_ns=50_000_000)
    assert report.outcomes == ["timeout", "timeout"]
    assert report.lines[-1] == {"event": "finished"}
    assert all(sample["received_ns"] is None for sample in report.samples)


@pytest.mark.parametrize(("runtime", "transport"), [(runtime, name) for runtime, name in CARRIED if name in SECURE])
def test_a_client_trusts_no_other_certificate(
    ours: Ours, jobs: Jobs, certificates: Certificates, runtime: str, transport: str
) -> None:
    requires_runtime(runtime)
    server = ours.serve(transport)
    other = Server(None, server.address, certificates.trusted.trust_path, certificates.good.sha256)
    report = jobs.call(runtime, other, transport=transport, messages=1)
    assert report.outcomes == ["certificate"], report.samples


def test_deno_connects_to_no_ipv6_address(jobs: Jobs) -> None:
    requires_runtime("deno")
    program = jobs.start("deno", "client", free_port(), {"transport": "webtransport"}, address="::1")
    line = program.line()
    assert line is not None
    assert (line["event"], line["message"]) == ("error", "Deno's WebTransport does not connect to an IPv6 address")
    assert program.wait()[0] == 1
