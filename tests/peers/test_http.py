"""HTTP/1.1, HTTP/2 and HTTP/3 against curl, nginx, Node, quic-go and aioquic."""

import socket
import struct
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import requires
from peers.certificates import Certificates
from peers.implementations import SECURE, SIZES, Ours, Peers
from peers.nginx import Nginx
from peers.programs import DEADLINE_S, Server
from peers.python.bad_servers import H2_HEADERS, H2_PREFACE, H2_SETTINGS, h2_frame

OVER_TCP = ["http1", "h2c", "https1", "http2"]
ALL = [*OVER_TCP, "http3"]
HTTP3_PEERS = ["go", "aioquic"]
CURL_OPTIONS = {
    "http1": ["--http1.1"],
    "https1": ["--http1.1"],
    "h2c": ["--http2-prior-knowledge"],
    "http2": ["--http2"],
    "http3": ["--http3-only"],
}
CURL_VERSIONS = {"http1": "1.1", "https1": "1.1", "h2c": "2", "http2": "2", "http3": "3"}


class Curl:
    """curl, with a server's name and what it trusts."""

    def __init__(self, transport: str, server: Server, home: Path) -> None:
        self.program = requires("curl")
        if transport == "http3":
            about = subprocess.run([self.program, "--version"], capture_output=True, text=True, check=True, timeout=30)
            if "HTTP3" not in about.stdout:
                # A packager's choice: nothing that could be installed beside it changes that.
                pytest.skip("curl built without HTTP/3")
        self.transport = transport
        self.server = server
        self.home = home
        self.url = f"{'https' if transport in SECURE else 'http'}://localhost:{server.port}"

    def __call__(self, path: str, *options: str, write: str) -> list[str]:
        """One transfer, or more if `path` is a pattern. Returns a line as `write` says for each."""
        command = [
            self.program,
            *("--disable", "--silent", "--show-error", "--fail", "--no-progress-meter", "--noproxy", "*"),
            *("--max-time", "20", "--connect-to", f"localhost:{self.server.port}:{self.server.address}"),
            *CURL_OPTIONS[self.transport],
            *(("--cacert", str(self.server.trust_path)) if self.transport in SECURE else ()),
            *("--write-out", write + "\\n", *options, self.url + path),
        ]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
        assert (ended.returncode, ended.stderr) == (0, ""), command
        return ended.stdout.splitlines()

    def post(self, path: str, body: bytes, *options: str) -> tuple[str, bytes]:
        """Sends a body. Returns the version of HTTP and the body that came."""
        sent, received = self.home / "sent", self.home / "received"
        sent.write_bytes(body)
        upload = ("--data-binary", f"@{sent}", "--header", "Content-Type: application/octet-stream")
        (version,) = self(path, *upload, *options, "--output", str(received), write="%{http_version}")
        return version, received.read_bytes()


@pytest.fixture
def nginx(request: pytest.FixtureRequest, tmp_path: Path, certificates: Certificates) -> Iterator[Server]:
    """nginx with files of exact sizes below /bytes/."""
    nginx = Nginx(tmp_path, request.param, certificates)
    yield nginx.server
    nginx.stop()


def pattern(size: int) -> bytes:
    return bytes(place * 7 & 0xFF for place in range(size))


@pytest.mark.parametrize("transport", ALL)
def test_curl_gets_back_what_it_posts(ours: Ours, tmp_path: Path, transport: str) -> None:
    curl = Curl(transport, ours.serve(transport), tmp_path)
    for size in SIZES:
        assert curl.post("/echo", pattern(size)) == (CURL_VERSIONS[transport], pattern(size))


@pytest.mark.parametrize("transport", ALL)
def test_curl_gets_as_many_bytes_as_it_asks_for(ours: Ours, tmp_path: Path, transport: str) -> None:
    curl = Curl(transport, ours.serve(transport), tmp_path)
    for size in SIZES:
        got = tmp_path / "got"
        (line,) = curl(f"/bytes/{size}", "--output", str(got), write="%{http_code} %{size_download}")
        assert (line, got.stat().st_size) == (f"200 {size}", size)


@pytest.mark.parametrize("transport", ["http1", "https1"])
def test_curl_posts_in_chunks(ours: Ours, tmp_path: Path, transport: str) -> None:
    # RFC 9112, section 7.1: a server of HTTP/1.1 must be able to read chunks.
    curl = Curl(transport, ours.serve(transport), tmp_path)
    assert curl.post("/echo", pattern(65536), "--header", "Transfer-Encoding: chunked") == ("1.1", pattern(65536))


@pytest.mark.parametrize("transport", ["http1", "https1"])
def test_curl_waits_for_100_continue(ours: Ours, tmp_path: Path, transport: str) -> None:
    # RFC 9110, section 10.1.1. curl would send its body after 30 s of silence: later than it may take in all.
    curl = Curl(transport, ours.serve(transport), tmp_path)
    patient = ("--header", "Expect: 100-continue", "--expect100-timeout", "30")
    assert curl.post("/echo", pattern(126), *patient) == ("1.1", pattern(126))


@pytest.mark.parametrize("transport", ["http1", "https1"])
def test_curl_keeps_its_connection(ours: Ours, tmp_path: Path, transport: str) -> None:
    curl = Curl(transport, ours.serve(transport), tmp_path)
    lines = curl("/bytes/[1000-1019]", "--output", str(tmp_path / "#1"), write="%{num_connects} %{size_download}")
    assert lines == [f"{1 if size == 1000 else 0} {size}" for size in range(1000, 1020)]


@pytest.mark.parametrize("transport", ["http2", "http3"])
def test_curl_has_many_requests_on_one_connection(ours: Ours, tmp_path: Path, transport: str) -> None:
    curl = Curl(transport, ours.serve(transport), tmp_path)
    # --parallel: a first transfer finds out that the connection can carry more, and all others wait for it.
    lines = curl(
        "/bytes/[1000-1039]",
        *("--parallel", "--parallel-max", "40", "--output", str(tmp_path / "#1")),
        write="%{num_connects} %{size_download}",
    )
    connects, sizes = zip(*(map(int, line.split()) for line in lines), strict=True)
    assert (sum(connects), sorted(sizes)) == (1, list(range(1000, 1040)))


@pytest.mark.parametrize("transport", ["h2c", "http2"])
def test_nodes_client_has_many_requests_on_one_connection(ours: Ours, peers: Peers, transport: str) -> None:
    # curl 7.88 fails at this without TLS, whoever the server is.
    sizes = (*SIZES, *range(1000, 1040))
    peers.call("http", transport, ours.serve(transport), sizes, path="/echo").assert_ok(sizes)


@pytest.mark.parametrize("method", ["POST", "GET"])
@pytest.mark.parametrize("peer", HTTP3_PEERS)
def test_http3_client_of_another(ours: Ours, peers: Peers, peer: str, method: str) -> None:
    peers.call(peer, "http3", ours.serve("http3"), SIZES, method=method, path="/echo").assert_ok(SIZES)


def assert_gets_every_size(ours: Ours, transport: str, server: Server) -> None:
    for size in SIZES:
        ours.call(transport, server, (size,), method="GET", path=f"/bytes/{size}").assert_ok((size,))


@pytest.mark.parametrize("nginx", ALL, indirect=True)
def test_our_client_gets_files_from_nginx(ours: Ours, nginx: Server, request: pytest.FixtureRequest) -> None:
    assert_gets_every_size(ours, request.node.callspec.params["nginx"], nginx)


@pytest.mark.parametrize("transport", OVER_TCP)
def test_our_client_gets_back_what_it_posts_to_node(ours: Ours, peers: Peers, transport: str) -> None:
    ours.call(transport, peers.serve("http", transport), SIZES, path="/echo").assert_ok(SIZES)


@pytest.mark.parametrize("transport", OVER_TCP)
def test_our_client_gets_bytes_from_node(ours: Ours, peers: Peers, transport: str) -> None:
    assert_gets_every_size(ours, transport, peers.serve("http", transport))


@pytest.mark.parametrize("peer", HTTP3_PEERS)
def test_our_client_gets_back_what_it_posts_by_http3(ours: Ours, peers: Peers, peer: str) -> None:
    ours.call("http3", peers.serve(peer, "http3"), SIZES, path="/echo").assert_ok(SIZES)


@pytest.mark.parametrize("peer", HTTP3_PEERS)
def test_our_client_gets_bytes_by_http3(ours: Ours, peers: Peers, peer: str) -> None:
    assert_gets_every_size(ours, "http3", peers.serve(peer, "http3"))


@pytest.mark.parametrize("end", ["reset", "kill"])
@pytest.mark.parametrize("transport", OVER_TCP)
def test_our_client_loses_its_server(ours: Ours, peers: Peers, transport: str, end: str) -> None:
    called = ours.call(transport, peers.serve("http", transport, end=end, after=2), (1, 126, 65535, 1), path="/echo")
    assert called.messages[:2] == [(1, "ok", 1), (126, "ok", 126)]
    assert called.outcome in ("reset", "closed"), called.lines
    assert called.status == 1


@pytest.mark.parametrize("peer", HTTP3_PEERS)
def test_our_http3_client_loses_its_server(ours: Ours, peers: Peers, peer: str) -> None:
    server = peers.serve(peer, "http3", kill_after=2)
    called = ours.call("http3", server, (1, 126), path="/echo", timeout_ns=2_000_000_000)
    assert called.messages[0] == (1, "ok", 1)
    # Nobody says that the other end is gone but ICMP, which QUIC does not trust (RFC 9000, section 21.1).
    assert called.outcome == "timeout", called.lines


@pytest.mark.parametrize("transport", OVER_TCP)
def test_our_server_outlives_a_client_that_leaves(ours: Ours, tmp_path: Path, transport: str) -> None:
    server = ours.serve(transport)
    beginnings = [
        b"",
        b"POST /echo HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf",
        H2_PREFACE + h2_frame(H2_SETTINGS, 0, 0, b"") + h2_frame(H2_HEADERS, 0, 1, b"", claims=100),
        b"\x16\x03\x01\x02\x00\x01",
    ]
    for beginning in beginnings:
        with socket.create_connection(("127.0.0.1", server.port), DEADLINE_S) as leaver:
            leaver.sendall(beginning)
            leaver.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert Curl(transport, server, tmp_path).post("/echo", b"still here") == (CURL_VERSIONS[transport], b"still here")


@pytest.mark.parametrize("peer", HTTP3_PEERS)
def test_our_http3_server_outlives_a_client_that_is_killed(ours: Ours, peers: Peers, peer: str) -> None:
    server = ours.serve("http3")
    killed = peers.call(peer, "http3", server, (1,), path="/echo", end="killed")
    assert (killed.messages, killed.status) == ([(1, "ok", 1)], -9)
    peers.call(peer, "http3", server, (126,), path="/echo").assert_ok((126,))


@pytest.mark.parametrize("bad", ["expired", "other name", "untrusted"])
@pytest.mark.parametrize(("transport", "peer"), [("https1", "http"), ("http2", "http"), ("http3", "go")])
def test_our_client_refuses_a_certificate(ours: Ours, peers: Peers, transport: str, peer: str, bad: str) -> None:
    server = peers.serve(peer, transport, certificate=peers.certificates.bad[bad])
    called = ours.call(transport, server, (1,), path="/echo")
    assert (called.outcome, called.status) == ("certificate", 1), called.lines


@pytest.mark.parametrize("transport", ["https1", "http2", "http3"])
def test_our_client_takes_any_certificate_when_told_to(ours: Ours, peers: Peers, transport: str) -> None:
    server = peers.serve("go" if transport == "http3" else "http", transport, certificate=peers.certificates.expired)
    ours.call(transport, server, (126,), path="/echo", insecure=True).assert_ok((126,))


@pytest.mark.parametrize(("asks", "has"), [("http2", "https1"), ("https1", "http2")])
def test_our_client_says_that_a_server_does_not_speak_its_protocol(
    ours: Ours, peers: Peers, asks: str, has: str
) -> None:
    # RFC 7301, section 3.2: a server that has none of the protocols ends with the alert no_application_protocol.
    called = ours.call(asks, peers.serve("http", has), (1,), path="/echo")
    assert (called.outcome, called.status) == ("protocol", 1), called.lines


def test_curl_is_told_that_our_server_has_other_protocols(ours: Ours) -> None:
    server = ours.serve("http2")
    command = [requires("curl"), "--disable", "--silent", "--http1.1", "--max-time", "20", "--noproxy", "*"]
    trust = ["--cacert", str(server.trust_path), "--connect-to", f"localhost:{server.port}:{server.address}"]
    ended = subprocess.run(
        [*command, *trust, f"https://localhost:{server.port}/bytes/1"], capture_output=True, timeout=30, check=False
    )
    assert ended.returncode == 35, "curl: SSL connect error"
