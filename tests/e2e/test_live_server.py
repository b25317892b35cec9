"""`crosswind live --transport` and `--probe`: a real `crosswind serve` on a loopback address."""

import itertools
import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from conftest import requires_binary
from e2e_cli import Cli
from terminals import Terminals

TOKEN = "0123456789abcdef0123456789abcdef"


def free_ports() -> tuple[int, int]:
    """Two ports free for TCP and UDP: below those of outgoing connections, and apart for each worker of the suite."""
    first, second = itertools.islice(filter(_is_free, _PORTS), 2)
    return first, second


_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_PORTS = itertools.cycle(range(20_000 + 500 * _WORKER, 20_500 + 500 * _WORKER))


def _is_free(port: int) -> bool:
    with socket.socket() as stream, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        try:
            stream.bind(("127.0.0.1", port))
            datagrams.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Server:
    """`crosswind serve`, which can be killed and started again at the same place."""

    def __init__(self, cli: Cli, token: Path) -> None:
        requires_binary()
        self.cli = cli
        self.port, self.data_port = free_ports()
        self.token = token
        self.running: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        ports = ("--port", str(self.port), "--data-port", str(self.data_port), "--address", "127.0.0.1")
        self.running = self.cli.start("serve", "--json", "--token-file", str(self.token), *ports)
        assert self.running.stdout is not None
        assert json.loads(self.running.stdout.readline())["event"] == "listening"

    def end(self) -> None:
        """Ends it; nobody listens any more when this returns."""
        assert self.running is not None
        self.running.send_signal(signal.SIGTERM)
        self.running.communicate()

    @property
    def words(self) -> tuple[str, ...]:
        """Arguments of `live`."""
        return (f"127.0.0.1:{self.port}", "--token-file", str(self.token))


@pytest.fixture
def token(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n", encoding="ascii")
    file.chmod(0o600)
    return file


@pytest.fixture
def server(live: Cli, token: Path) -> Server:
    return Server(live, token)


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("transport", ["udp", "tcp", "quic", "quic-datagram", "wss"])
def test_messages_are_answered(live: Cli, server: Server, tmp_path: Path, transport: str) -> None:
    page = tmp_path / "live.html"
    ended = live(
        "live", *server.words, "--transport", transport, "--duration", "500ms", "--interval", "20ms", "--json",
        "--html", str(page),
    )  # fmt: skip
    assert ended.status == 0, ended.err
    start, *_, end = lines_of(ended.out)
    assert (start["probe"], start["address"], start["measured"]) == (transport, "127.0.0.1", [])
    assert end["answered"] == end["sent"] > 0
    assert (end["loss_there"]["value"], end["loss_back"]["value"]) == (0, 0)
    assert end["loss_there"]["n"] == end["loss_back"]["n"] == end["answered"]
    assert (end["reordered"] is None) == (transport not in {"udp", "quic-datagram"})
    text = page.read_text(encoding="utf-8")
    assert f"messages of 64 bytes over {transport} to crosswind serve at 127.0.0.1:{server.port}" in text
    assert "loss on the way there" in text
    assert f"at 127.0.0.1:{server.port}</dd><dt>Control connection</dt><dd>shortest round trip " in text


def test_what_tcp_gets_is_measured_first(live: Cli, server: Server, tmp_path: Path) -> None:
    page = tmp_path / "live.html"
    watching = ("--tcp", str(server.port), "--duration", "300ms", "--interval", "20ms")
    ended = live("live", *server.words, "--probe", "1MB", *watching, "--html", str(page))
    assert ended.status == 0, ended.err
    head, download, upload = ended.out.splitlines()[:3]
    assert head.startswith("127.0.0.1: tcp:")
    for line, direction in ((download, "download"), (upload, "upload")):
        assert line.startswith("TCP reached ")
        assert f"one {direction}, 1.000 MB in " in line
        assert ended.out.splitlines().count(line) == 2  # At the end again, beside the models.
    assert "Measured TCP throughput" in page.read_text(encoding="utf-8")


def test_a_server_that_comes_back_is_probed_again(live: Cli, server: Server) -> None:
    watching = live.start("live", *server.words, "--transport", "udp", "--interval", "50ms", "--window", "1s", "--json")
    assert watching.stdout is not None
    seen: list[dict[str, Any]] = []

    def wait_for(event: str) -> None:
        while not (seen and seen[-1].get("event") == event):
            seen.append(json.loads(watching.stdout.readline()))  # type: ignore[union-attr]

    while not (seen and seen[-1]["type"] == "window"):
        seen.append(json.loads(watching.stdout.readline()))
    server.end()
    wait_for("outage begins")
    server.start()
    wait_for("outage ends")
    watching.send_signal(signal.SIGINT)
    ended = live.end(watching)
    assert (ended.status, ended.err) == (0, "")
    end = lines_of(ended.out)[-1]
    assert end["lost"] >= 3
    # What was lost while there was no connection was lost nobody knows where.
    assert end["loss_there"]["n"] < end["sent"]


def test_the_display_shows_both_ways_and_what_tcp_got(live: Cli, server: Server) -> None:
    words = ("live", *server.words, "--transport", "udp", "--probe", "100kB", "--interval", "20ms")
    terminals = Terminals(live)
    terminal = terminals(*words, TERM="xterm", COLUMNS="110", LINES="50")
    try:
        terminal.see("loss there")
        terminal.see("TCP reached .* one download, 0.1000 MB in ")
        terminal.see("TCP reached .* one upload, 0.1000 MB in ")
        terminal.type("q")
        terminal.see(r"\x1b\[\?1049l")
        status, rest = terminal.end()
    finally:
        terminals.close()
    assert status == 0
    assert "(there 0 %" in rest


def test_without_a_server_it_says_so(live: Cli, server: Server, token: Path) -> None:
    other, _ = free_ports()
    nobody = live("live", f"127.0.0.1:{other}", "--transport", "udp", "--token-file", str(token))
    assert nobody.status == 1
    assert nobody.err.splitlines()[0] == f"error: cannot reach 127.0.0.1:{other}: Connection refused"
    token.write_text(f"{TOKEN[::-1]}\n", encoding="ascii")
    for words in (("--transport", "udp"), ("--probe", "1kB")):
        wrong = live("live", f"127.0.0.1:{server.port}", *words, "--token-file", str(token))
        assert wrong.status == 1
        assert f"error: 127.0.0.1:{server.port}: the token is wrong" in wrong.err
        assert wrong.err.splitlines()[-1].startswith("hint: ")
