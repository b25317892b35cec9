"""Which implementations there are, and how each is started. What they need is built once, in target/peers."""

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, missing, requires
from crosswind.errors import EngineError
from crosswind.peers.node.install import deno_program, installed_packages
from peers.certificates import Certificate, Certificates
from peers.programs import Called, Programs, Server

HERE = Path(__file__).parent
BUILT = ROOT / "target" / "peers"
BUILD_S = 600
"""A cold build of the Go peers takes about a minute on two idle cores, and many times that beside other tests."""

SIZES = (0, 1, 125, 126, 65535, 65536, 1_000_000)
"""The edges of WebSocket's and Engine.IO's length fields, and something larger than every buffer on the way."""
DATAGRAM_SIZES = (1, 125, 126, 1000)
"""All fit a packet of 1200 bytes, which every path of QUIC carries (RFC 9000, section 14)."""
SECURE = {
    "https1",
    "http2",
    "http3",
    "wss",
    "tls",
    "quic",
    "quic-datagram",
    "webtransport",
    "webtransport-datagram",
    "socketio-webtransport",
}
TIMEOUT_NS = 15_000_000_000


def sizes_of(transport: str, payload: str = "binary") -> tuple[int, ...]:
    """The sizes of messages that a transport is asked to carry."""
    if transport.endswith("-datagram"):
        return DATAGRAM_SIZES
    # Engine.IO over WebTransport refuses a frame of no bytes, which is what an empty binary message would be; a text
    # has its type before it (engine.io-parser, createPacketDecoderStream).
    empty = transport == "socketio-webtransport" and payload == "binary"
    return SIZES[1:] if empty else SIZES


@contextmanager
def built(name: str, sources: list[Path], build: Callable[[Path], None]) -> Iterator[Path]:
    """A directory that `build` has filled from `sources`, kept for as long as these do not change."""
    key = hashlib.sha256()
    for source in sorted(sources):
        key.update(source.name.encode() + b"\0" + source.read_bytes())
    BUILT.mkdir(parents=True, exist_ok=True)
    directory, stamp = BUILT / name, BUILT / f"{name}.built"

    def current() -> bool:
        return stamp.exists() and stamp.read_text("ascii") == key.hexdigest()

    with (BUILT / f"{name}.lock").open("w") as lock:
        # Shared among all who test, so that nobody builds anew meanwhile; exclusive only for who has to build.
        fcntl.flock(lock, fcntl.LOCK_SH)
        while not current():
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not current():
                stamp.unlink(missing_ok=True)
                shutil.rmtree(directory, ignore_errors=True)
                directory.mkdir()
                for source in sources:
                    shutil.copy(source, directory)
                build(directory)
                stamp.write_text(key.hexdigest(), "ascii")
            fcntl.flock(lock, fcntl.LOCK_SH)
        yield directory


def _run(command: list[str], directory: Path, **environment: str) -> None:
    try:
        ended = subprocess.run(
            # The tests that run meanwhile come first.
            ["nice", *command],
            cwd=directory,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            timeout=BUILD_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        missing(f"{' '.join(command)} took more than {BUILD_S} s")
        return
    if ended.returncode != 0:
        missing(f"{' '.join(command)} failed: {ended.stderr.strip()[:500]}")


def build_go(directory: Path) -> None:
    """One static binary."""
    _run(["go", "build", "-trimpath", "-o", "peers", "."], directory, CGO_ENABLED="0", GOFLAGS="-mod=readonly")


def npm_packages() -> Path:
    """Where `make browser` has put the npm packages."""
    try:
        return installed_packages()
    except EngineError as error:
        missing(f"{error.message}: {error.hint}")
        raise


def deno() -> str:
    """Deno, as its npm package brings it."""
    npm_packages()
    try:
        return str(deno_program())
    except EngineError as error:
        pytest.skip(f"{error.message}: {error.hint}")


@dataclass
class Peers:
    """Implementations that nobody here wrote. Each is found or built when a test first asks for it."""

    certificates: Certificates
    keep: Callable[[Any], Path]
    programs: Programs
    directories: dict[str, Path] = field(default_factory=dict)

    def go(self) -> Path:
        """Where the peer in Go has been built."""
        if "go" not in self.directories:
            requires("go")
            sources = [path for path in (HERE / "go").iterdir() if path.is_file() and path.name[0] != "."]
            self.directories["go"] = self.keep(built("go", sources, build_go))
        return self.directories["go"]

    def command(self, peer: str, verb: str) -> list[str]:
        """The command line of a peer, but for its options. `verb`: serve or call."""
        role = {"serve": "server", "call": "client"}[verb]
        if peer == "go":
            return [str(self.go() / "peers"), verb]
        if peer in ("websockets", "aioquic"):
            return [sys.executable, str(HERE / "python" / f"{peer}_{role}.py")]
        # The packages that Crosswind's own peers use, in the same versions.
        program = [str(HERE / "node" / f"{peer}-{role}.mjs"), str(npm_packages())]
        if peer.startswith("deno-"):
            return [deno(), "run", "--allow-all", "--unstable-net", "--no-check", "--quiet", *program]
        return [requires("node"), *program]

    def serve(self, peer: str, transport: str, *, certificate: Certificate | None = None, **options: Any) -> Server:
        """Starts a server of one implementation."""
        sha256 = None
        if transport in SECURE:
            certificate = certificate or self.certificates.good
            options |= certificate.options
            sha256 = certificate.sha256
        given = json.dumps({"transport": transport, **options})
        program, line = self.programs.listen([*self.command(peer, "serve"), given])
        return Server(program, line["address"], self.certificates.trusted.trust_path, sha256)

    def call(self, peer: str, transport: str, server: Server, sizes: tuple[int, ...], **options: Any) -> Called:
        """Runs a client of one implementation to its end."""
        if server.trust_path is not None and transport in SECURE:
            options["trust_path"] = str(server.trust_path)
        if peer.startswith("deno-"):
            options["certificate_sha256"] = server.certificate_sha256
        given = {"transport": transport, "address": server.address, "sizes": sizes, **options}
        return self.programs.call([*self.command(peer, "call"), json.dumps(given)])


@dataclass
class Ours:
    """Crosswind's own endpoints (docs/cell-protocol.md), one process each."""

    binary: Path
    directory: Path
    programs: Programs

    def serve(self, transport: str, **options: Any) -> Server:
        """Starts our server."""
        given = {"transport": transport, "address": "127.0.0.1:0", **options}
        program, line = self.programs.listen([str(self.binary), "--serve", json.dumps(given)])
        assert line["event"] == "listening", line
        trust_path = None
        if line["certificate_pem"] is not None:
            trust_path = self.directory / f"ours-{line['address'].rpartition(':')[2]}.pem"
            trust_path.write_text(line["certificate_pem"], "ascii")
        return Server(program, line["address"], trust_path, line["certificate_sha256"])

    def call(self, transport: str, server: Server | str, sizes: tuple[int, ...], **options: Any) -> Called:
        """Runs our client to its end, as the program that it is."""
        return self.programs.call(self.command(transport, server, sizes, **options))

    def command(self, transport: str, server: Server | str, sizes: tuple[int, ...], **options: Any) -> list[str]:
        """The command line of our client."""
        given = {
            "transport": transport,
            "address": server if isinstance(server, str) else server.address,
            "server_name": "localhost",
            "path": "/",
            "sizes": sizes,
            "timeout_ns": TIMEOUT_NS,
            **options,
        }
        if isinstance(server, Server) and server.trust_path is not None and transport in SECURE:
            given.setdefault("trust_pem", server.trust_path.read_text("ascii"))
        return [str(self.binary), "--call", json.dumps(given)]
