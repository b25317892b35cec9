"""The peer chromium: a real browser against Crosswind's own servers, and what it says when something is wrong."""

import dataclasses
import itertools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import crosswind
from conftest import missing
from crosswind.errors import CrosswindError
from crosswind.peers.chromium.browser import find_chromium
from crosswind.peers.node.install import installed_packages
from peers.certificates import Certificates
from peers.implementations import Ours
from peers.jobs import Jobs, requires_runtime, whole_workload
from peers.programs import Programs, Server

CLEARTEXT = ("websocket", "socketio-websocket", "http1")
SECURE = ("wss", "webtransport", "webtransport-datagram", "socketio-webtransport", "https1", "http2", "http3")
TRANSPORTS = (*CLEARTEXT, *SECURE)
HTTP = ("http1", "https1", "http2", "http3")

SHORT = {"size_bytes": 20, "messages": 30, "count": 5, "streams": 3, "timeout_ns": 20_000_000_000}

Object = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Report:
    """What the peer said."""

    status: int
    lines: Sequence[Object]
    errors: str

    def of(self, event: str) -> list[Object]:
        return [line for line in self.lines if line["event"] == event]

    @property
    def outcomes(self) -> list[str]:
        return [sample["outcome"] for sample in self.of("sample")]

    @property
    def failure(self) -> tuple[str, str | None]:
        assert self.status == 1
        assert self.lines, self.errors
        assert self.lines[-1]["event"] == "error", self.lines[-1]
        return self.lines[-1]["message"], self.lines[-1]["hint"]

    def assert_finished(self) -> None:
        assert (self.lines[-1:], self.status) == ([{"event": "finished"}], 0), (self.lines[-1:], self.errors)
        assert self.lines[0]["event"] == "ready"

    def assert_ok(self, transport: str, exchanges: int, connections: int) -> None:
        """Every exchange succeeded over the transport that was asked for, at times between those of `started`."""
        self.assert_finished()
        samples = self.of("sample")
        assert [sample["exchange"] for sample in samples] == list(range(exchanges))
        assert self.outcomes == ["ok"] * exchanges, next(s for s in samples if s["outcome"] != "ok")
        connected = {line["connection"]: line for line in self.of("connected")}
        assert len(connected) == connections
        assert {line["transport"] for line in connected.values()} == {transport}
        assert {sample["connection"] for sample in samples} == set(connected)
        for line in connected.values():
            parts = [line[part] for part in ("transport_ns", "security_ns", "upgrade_ns") if line[part] is not None]
            assert all(0 <= part <= line["setup_ns"] for part in parts)


class Chromium:
    """Starts the peer."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.kept: Path | None = None
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(Path(crosswind.__file__).parent.parent),
            # Profiles and nothing else are made here.
            "TMPDIR": str(directory),
        }

    def start(self, transport: str, server: Server | int, **workload: Any) -> subprocess.Popen[str]:
        port = server if isinstance(server, int) else server.port
        job: Object = {
            "schema": "crosswind.peer/1",
            "role": "client",
            "address": "127.0.0.1",
            "port": port,
            "workload": whole_workload({**SHORT, "transport": transport, **workload}),
            "certificate_pem": None,
            "certificate_sha256": None,
            "directory": str(self.kept) if self.kept else None,
        }
        if isinstance(server, Server) and server.trust_path is not None:
            job |= {
                "certificate_pem": server.trust_path.read_text("ascii"),
                "certificate_sha256": server.certificate_sha256,
            }
        process = subprocess.Popen(
            [sys.executable, "-m", "crosswind.peers.chromium"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        return process

    def run(self, transport: str, server: Server | int, **workload: Any) -> Report:
        return self.follow(self.start(transport, server, **workload))

    def follow(self, process: subprocess.Popen[str], said: Sequence[str] = ()) -> Report:
        out, errors = process.communicate(timeout=120)
        report = Report(process.returncode, [json.loads(line) for line in (*said, *out.splitlines())], errors)
        assert not list(self.directory.iterdir()), "a profile is left behind"
        return report


@pytest.fixture
def chromium() -> Iterator[Chromium]:
    try:
        find_chromium()
        installed_packages()
    except CrosswindError as error:
        missing(f"{error.message}: {error.hint}")
    # The path of a socket is short.
    with tempfile.TemporaryDirectory() as directory:
        yield Chromium(Path(directory))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_echo(ours: Ours, chromium: Chromium, transport: str) -> None:
    before_ns = time.monotonic_ns()
    report = chromium.run(transport, ours.serve(transport))
    after_ns = time.monotonic_ns()
    report.assert_ok(transport, exchanges=30, connections=1)
    samples = report.of("sample")
    assert {(sample["sent_bytes"], sample["received_bytes"], sample["stream"]) for sample in samples} == {(20, 20, 0)}
    # Its clock is the machine's, from the origin that it names, and one message is in flight at a time.
    clock = report.lines[0]["clock"]
    assert (clock["name"], clock["resolution_ns"]) == ("performance.now", 5000)
    times = [sample[key] + clock["monotonic_ns"] for sample in samples for key in ("sent_ns", "received_ns")]
    assert times == sorted(times)
    assert before_ns < times[0]
    assert times[-1] < after_ns + clock["resolution_ns"]


@pytest.mark.parametrize("transport", ["wss", "webtransport-datagram", "http2", "socketio-websocket"])
def test_open_loop_keeps_its_times(ours: Ours, chromium: Chromium, transport: str) -> None:
    report = chromium.run(transport, ours.serve(transport), mode="open", rate_per_s=400.0)
    report.assert_ok(transport, exchanges=30, connections=1)
    intended = [sample["intended_ns"] for sample in report.of("sample")]
    # 2.5 ms apart, rounded to nanoseconds each.
    assert {round((later - first) / 1e3) for first, later in itertools.pairwise(intended)} == {2500}
    # Over HTTP the first request opens the connection, and is sent after that.
    assert all(sample["intended_ns"] <= sample["sent_ns"] for sample in report.of("sample"))


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_connect(ours: Ours, chromium: Chromium, transport: str) -> None:
    chromium.run(transport, ours.serve(transport), kind="connect").assert_ok(transport, exchanges=5, connections=5)


@pytest.mark.parametrize("transport", ["websocket", "webtransport", "http1", "http3"])
def test_a_new_connection_for_each_message(ours: Ours, chromium: Chromium, transport: str) -> None:
    report = chromium.run(transport, ours.serve(transport), connection="new", messages=5)
    report.assert_ok(transport, exchanges=5, connections=5)


@pytest.mark.parametrize("transport", ["websocket", "webtransport", "http3"])
def test_multiplex(ours: Ours, chromium: Chromium, transport: str) -> None:
    report = chromium.run(transport, ours.serve(transport), kind="multiplex", size_bytes=200, rate_per_s=100.0)
    report.assert_ok(transport, exchanges=30, connections=1)
    assert [sample["stream"] for sample in report.of("sample")] == [number % 3 for number in range(30)]


def test_new_streams(ours: Ours, chromium: Chromium) -> None:
    report = chromium.run("webtransport", ours.serve("webtransport"), stream="new", size_bytes=20_000)
    report.assert_ok("webtransport", exchanges=30, connections=1)


def test_requests_that_overlap_have_connections_of_their_own(ours: Ours, chromium: Chromium) -> None:
    # All messages are due at once; a connection of HTTP/1.1 carries one at a time, and browsers open at most six.
    report = chromium.run("http1", ours.serve("http1"), mode="open", rate_per_s=1e6)
    report.assert_finished()
    assert report.outcomes == ["ok"] * 30
    connected = [line["connection"] for line in report.of("connected")]
    assert 1 < len(connected) == len(set(connected)) <= 6
    assert {sample["connection"] for sample in report.of("sample")} <= set(connected)


def test_connections_side_by_side(ours: Ours, chromium: Chromium) -> None:
    report = chromium.run("wss", ours.serve("wss"), connections=4)
    report.assert_ok("wss", exchanges=30, connections=4)


def test_requests_side_by_side_have_connections_of_chromiums_choice(ours: Ours, chromium: Chromium) -> None:
    report = chromium.run("https1", ours.serve("https1"), connections=4)
    # Where none of its connections is free yet, it opens another one, up to six.
    connections = len(report.of("connected"))
    assert 4 <= connections <= 6
    report.assert_ok("https1", exchanges=30, connections=connections)


@pytest.mark.parametrize("transport", ["websocket", "socketio-websocket", "socketio-webtransport"])
def test_text(ours: Ours, chromium: Chromium, transport: str) -> None:
    report = chromium.run(transport, ours.serve(transport), payload="text", size_bytes=1000)
    report.assert_ok(transport, exchanges=30, connections=1)


def test_the_upgrade_from_polling_is_timed(ours: Ours, chromium: Chromium) -> None:
    report = chromium.run("socketio-websocket", ours.serve("socketio-websocket"), polling=True)
    report.assert_ok("socketio-websocket", exchanges=30, connections=1)
    (connected,) = report.of("connected")
    assert 0 < connected["upgrade_ns"] < connected["setup_ns"]


@pytest.mark.parametrize(
    ("runtime", "transport"),
    [("node", name) for name in ("websocket", "wss", "socketio-websocket", "http1", "https1", "http2")]
    + [("deno", name) for name in ("webtransport", "webtransport-datagram", "socketio-webtransport")],
)
def test_servers_of_other_peoples(
    chromium: Chromium, programs: Programs, certificates: Certificates, runtime: str, transport: str
) -> None:
    requires_runtime(runtime)
    good, polling = certificates.good, transport == "socketio-websocket"
    server = Jobs(programs, {}).serve(runtime, good, good.certificate_path, transport=transport, size_bytes=20)
    chromium.run(transport, server, polling=polling).assert_ok(transport, exchanges=30, connections=1)


@pytest.mark.parametrize("transport", HTTP)
def test_pages(ours: Ours, chromium: Chromium, tmp_path: Path, transport: str) -> None:
    sizes = {"html_bytes": 3000, "scripts": 2, "scripts_bytes": 5001, "images": 3, "images_bytes": 9000}
    chromium.kept = tmp_path
    report = chromium.run(transport, ours.serve(transport), kind="page", count=2, connections=1, **sizes)
    report.assert_finished()
    assert report.outcomes == ["ok", "ok"], report.of("sample")
    assert [sample["received_bytes"] for sample in report.of("sample")] == [3000 + 5001 + 9000] * 2
    wanted = {"html": 3000, "script 1": 2501, "script 2": 2500, "image 1": 3000, "image 2": 3000, "image 3": 3000}
    for page in range(2):
        objects = [line for line in report.of("object") if line["page"] == page]
        assert {line["object"]: line["bytes"] for line in objects} == wanted
        for line in objects:
            times = [line[key] for key in ("queued_ns", "sent_ns", "first_ns", "received_ns")]
            assert times == sorted(times)
        # Whatever the document names is asked for after it.
        document = next(line for line in objects if line["object"] == "html")
        assert all(line["queued_ns"] >= document["first_ns"] for line in objects if line is not document)
    connected = report.of("connected")
    assert {line["transport"] for line in connected} == {transport}
    most = 12 if transport in ("http1", "https1") else 2
    assert 2 <= len({line["connection"] for line in connected}) <= most
    metrics = [json.loads(line) for line in (tmp_path / "load-metrics.jsonl").read_text("ascii").splitlines()]
    assert [set(line) for line in metrics] == [
        {"page", "dom_content_loaded_ms", "load_event_ms", "first_contentful_paint_ms"}
    ] * 2
    assert all(0 < line["dom_content_loaded_ms"] <= line["load_event_ms"] for line in metrics)


def test_node_has_the_same_pages(
    ours: Ours, chromium: Chromium, programs: Programs, certificates: Certificates
) -> None:
    requires_runtime("node")
    good = certificates.good
    servers = [ours.serve("http1"), Jobs(programs, {}).serve("node", good, good.certificate_path, transport="http1")]
    found = []
    for server in servers:
        with urllib.request.urlopen(f"http://{server.address}/page/900/2/5001/3/9000", timeout=30) as answer:
            found.append((answer.headers["content-type"], answer.read()))
        for size in (57, 58, 245, 246, 3000):
            with urllib.request.urlopen(f"http://{server.address}/image/{size}?image=1", timeout=30) as answer:
                found.append((answer.headers["content-type"], answer.read()))
    assert found[:6] == found[6:]
    assert [len(body) for _, body in found[:6]] == [900, 57, 58, 245, 246, 3000]
    secure = Jobs(programs, {}).serve("node", good, good.certificate_path, transport="http2")
    sizes = {"html_bytes": 900, "scripts": 2, "scripts_bytes": 5001, "images": 3, "images_bytes": 9000}
    report = chromium.run("http2", secure, kind="page", count=1, connections=1, **sizes)
    assert report.outcomes == ["ok"], report.lines
    assert [sample["received_bytes"] for sample in report.of("sample")] == [900 + 5001 + 9000]


def test_a_page_of_a_server_that_is_not_there(ours: Ours, chromium: Chromium) -> None:
    server = ours.serve("http2")
    assert server.program is not None
    server.program.end()
    sizes = {"html_bytes": 3000, "scripts": 0, "scripts_bytes": 1, "images": 0, "images_bytes": 1}
    report = chromium.run("http2", server, kind="page", count=1, connections=1, **sizes)
    (sample,) = report.of("sample")
    assert (sample["outcome"], sample["error"]) == ("refused", "cannot load html: net::ERR_CONNECTION_REFUSED")


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_server_that_is_not_there(ours: Ours, chromium: Chromium, transport: str) -> None:
    server = ours.serve(transport)
    assert server.program is not None
    server.program.end()
    report = chromium.run(transport, server, messages=2)
    report.assert_finished()
    # Of a QUIC handshake for a request Chromium says only that it failed.
    assert set(report.outcomes) == {"error" if transport == "http3" else "refused"}
    assert all(sample["error"].startswith("cannot ") for sample in report.of("sample"))


@pytest.mark.parametrize("transport", SECURE)
def test_a_certificate_of_another_server(ours: Ours, chromium: Chromium, transport: str) -> None:
    other = ours.serve(transport)
    server = dataclasses.replace(
        ours.serve(transport), trust_path=other.trust_path, certificate_sha256=other.certificate_sha256
    )
    report = chromium.run(transport, server, messages=2)
    report.assert_finished()
    assert report.outcomes == ["certificate"] * 2


@pytest.mark.parametrize("transport", ["webtransport", "socketio-webtransport", "http3"])
def test_datagrams_that_nobody_answers(ours: Ours, chromium: Chromium, transport: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        server = dataclasses.replace(ours.serve(transport), address=f"127.0.0.1:{silent.getsockname()[1]}")
        report = chromium.run(transport, server, messages=2, timeout_ns=500_000_000)
    report.assert_finished()
    assert report.outcomes == ["timeout"] * 2
    assert all(sample["error"].endswith("timed out after 0.5 s") for sample in report.of("sample"))


def test_quic_is_disabled(ours: Ours, chromium: Chromium) -> None:
    chromium.environment["CROSSWIND_CHROMIUM_FLAGS"] = "--disable-quic"
    report = chromium.run("http3", ours.serve("http3"), messages=1)
    (sample,) = report.of("sample")
    assert sample["error"].endswith("(Chromium tried TCP: QUIC is disabled, by a policy or a flag)")


def test_a_server_that_does_not_answer(chromium: Chromium) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        report = chromium.run("websocket", silent.getsockname()[1], messages=2, timeout_ns=500_000_000)
    report.assert_finished()
    assert report.outcomes == ["timeout"] * 2


@pytest.mark.parametrize("victim", ["browser", "page"])
def test_a_crash_is_an_error(ours: Ours, chromium: Chromium, victim: str) -> None:
    process = chromium.start("websocket", ours.serve("websocket"), mode="open", rate_per_s=1.0)
    assert process.stdout is not None
    ready = process.stdout.readline()
    assert json.loads(ready)["event"] == "ready"
    _kill(process.pid, victim)
    message, _ = chromium.follow(process, [ready]).failure
    assert message.startswith({"browser": "Chromium has ended", "page": "the page in Chromium has crashed"}[victim])


def _kill(peer: int, victim: str) -> None:
    """Kills the browser of a peer, or the process of its page."""
    browser = _browser(peer)
    processes = [browser] if victim == "browser" else _renderers(browser)
    for process in processes:
        os.kill(process, signal.SIGKILL)


def _browser(peer: int) -> int:
    (child,) = Path(f"/proc/{peer}/task/{peer}/children").read_text("ascii").split()
    return int(child)


def _renderers(browser: int) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            is_renderer = b"--type=renderer" in path.read_bytes()
            pid = int(path.parent.name)
            if is_renderer and os.getpgid(pid) == browser:
                found.append(pid)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_peer_that_is_told_to_end_leaves_nothing(ours: Ours, chromium: Chromium, number: signal.Signals) -> None:
    process = chromium.start("websocket", ours.serve("websocket"), mode="open", rate_per_s=1.0)
    assert process.stdout is not None
    ready = process.stdout.readline()
    browser = _browser(process.pid)
    process.send_signal(number)
    report = chromium.follow(process, [ready])
    assert (report.status, report.errors, len(report.lines)) == (128 + number, "", 1)
    assert not Path(f"/proc/{browser}").exists()


def test_what_a_killed_peer_left_is_removed_later(ours: Ours, chromium: Chromium) -> None:
    server = ours.serve("websocket")
    process = chromium.start("websocket", server, mode="open", rate_per_s=1.0)
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["event"] == "ready"
    browser = os.pidfd_open(_browser(process.pid))
    process.kill()
    process.communicate(timeout=60)
    # Without its pipe the browser ends by itself.
    assert select.select([browser], [], [], 60)[0]
    os.close(browser)
    (left,) = chromium.directory.iterdir()
    # Those of the last minute may be about to be used.
    os.utime(left, (0, 0))
    # Nothing is left after this one, says `follow`.
    chromium.run("websocket", server).assert_ok("websocket", exchanges=30, connections=1)


@pytest.mark.parametrize(
    ("transport", "workload", "message"),
    [
        ("h2c", {}, "Chromium has no h2c: browsers speak HTTP/2 in TLS only"),
        ("tcp", {}, "Chromium has no tcp: pages cannot open TCP connections"),
        ("wss", {"resumption": "0-rtt"}, "Chromium cannot be set to use resumption = 0-rtt"),
        ("wss", {"kind": "transfer"}, "Chromium cannot run the workload transfer"),
        (
            "http2",
            {"connections": 2},
            "Chromium opens no more than 1 connection to a server over http2, and 2 are wanted",
        ),
    ],
)
def test_what_a_browser_cannot_do(tmp_path: Path, transport: str, workload: Object, message: str) -> None:
    report = Chromium(tmp_path).run(transport, 9, **workload)
    assert report.failure[0] == message


def test_chromium_is_missing(tmp_path: Path) -> None:
    chromium = Chromium(tmp_path)
    chromium.environment["CROSSWIND_CHROMIUM"] = "/nowhere/chromium"
    assert (
        chromium.run("websocket", 9).failure[0] == "CROSSWIND_CHROMIUM names /nowhere/chromium, which is not a program"
    )


def test_chromium_is_too_old(tmp_path: Path) -> None:
    profiles = tmp_path / "profiles"
    profiles.mkdir()
    program = tmp_path / "chromium"
    answer = json.dumps({"id": 1, "result": {"product": "Chrome/98.0.4758.102"}})
    program.write_text(
        f"#!/bin/sh\nread -r request <&3 & printf '{answer}\\0' >&4\nwait\nsleep 100\n", encoding="ascii"
    )
    program.chmod(0o755)
    chromium = Chromium(profiles)
    chromium.environment["CROSSWIND_CHROMIUM"] = str(program)
    message, hint = chromium.run("websocket", 9).failure
    assert message == "Chromium 98.0.4758.102 is too old"
    assert hint == "install version 132 or later, or set CROSSWIND_CHROMIUM to one"
