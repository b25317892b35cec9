"""Crosswind's own peers in JavaScript, started with a job as docs/peers.md has it."""

import json
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import crosswind
from conftest import missing
from crosswind.catalog import catalog
from crosswind.errors import EngineError
from crosswind.peers.node.install import deno_program, installed_packages
from peers.certificates import Certificate
from peers.implementations import requires
from peers.programs import Object, Program, Programs, Server

SHORT: Object = {"size_bytes": 100, "messages": 20, "count": 10, "streams": 4, "timeout_ns": 15_000_000_000}
"""What these tests ask for where they say nothing else."""


@dataclass
class Jobs:
    """Starts peers."""

    programs: Programs
    environment: dict[str, str]

    def start(self, runtime: str, role: str, port: int, workload: Object, **job: Any) -> Program:
        """Starts a peer with its job."""
        whole = {"schema": "crosswind.peer/1", "role": role, "address": "127.0.0.1", "port": port, **job}
        return self.start_with(runtime, json.dumps({**whole, "workload": whole_workload(SHORT | workload)}))

    def start_with(self, runtime: str, line: str) -> Program:
        """Starts a peer with a line on its standard input."""
        environment = {"PYTHONPATH": str(Path(crosswind.__file__).parent.parent), **self.environment}
        program = self.programs.start([sys.executable, "-m", f"crosswind.peers.{runtime}"], environment=environment)
        program.tell(line)
        return program

    def serve(self, runtime: str, certificate: Certificate, trust_path: Path, **workload: Any) -> Server:
        """Starts a server and waits until it listens."""
        port = free_port()
        secrets = {
            "certificate_pem": certificate.certificate_path.read_text("ascii"),
            "private_key_pem": certificate.key_path.read_text("ascii"),
            "certificate_sha256": certificate.sha256,
        }
        program = self.start(runtime, "server", port, workload, **secrets)
        line = program.line()
        assert line is not None, program.errors
        assert line["event"] == "listening", line
        return Server(program, f"127.0.0.1:{port}", trust_path, certificate.sha256)

    def call(self, runtime: str, server: Server | int, **workload: Any) -> "Report":
        """Runs a client to its end."""
        secrets: Object = {}
        if isinstance(server, Server) and server.trust_path is not None:
            secrets = {
                "certificate_pem": server.trust_path.read_text("ascii"),
                "certificate_sha256": server.certificate_sha256,
            }
        began_ns = time.monotonic_ns()
        port = server if isinstance(server, int) else server.port
        program = self.start(runtime, "client", port, workload, **secrets)
        lines = program.lines()
        status, _ = program.wait()
        return Report(lines, status, program.errors, began_ns, time.monotonic_ns())


@dataclass(frozen=True)
class Report:
    """What a client said until it ended, and between which times of CLOCK_MONOTONIC it ran."""

    lines: list[Object]
    status: int
    errors: str
    began_ns: int
    ended_ns: int

    def of(self, event: str) -> list[Object]:
        """The events of one name."""
        return [line for line in self.lines if line["event"] == event]

    @property
    def samples(self) -> list[Object]:
        """Its samples in the order of their exchanges."""
        return sorted(self.of("sample"), key=lambda sample: int(sample["exchange"]))

    @property
    def outcomes(self) -> list[str]:
        """How each exchange ended, in order."""
        return [sample["outcome"] for sample in self.samples]

    def assert_finished(self) -> None:
        """It kept to the protocol, and its times are those of this machine's clock."""
        assert (self.lines[-1], self.status) == ({"event": "finished"}, 0), (self.lines[-1], self.errors)
        (ready,) = self.of("ready")
        assert self.lines[0] is ready
        origin_ns = ready["clock"]["monotonic_ns"]
        times_ns = [sample[key] for sample in self.samples for key in ("sent_ns", "received_ns") if sample[key]]
        assert self.began_ns <= origin_ns + min(times_ns)
        assert origin_ns + max(times_ns) <= self.ended_ns
        numbers = [line["connection"] for line in self.of("connected")]
        assert len(numbers) == len(set(numbers))

    def assert_ok(self, transport: str, exchanges: int) -> None:
        """Every exchange succeeded, over the transport that was asked for."""
        self.assert_finished()
        assert [sample["exchange"] for sample in self.samples] == list(range(exchanges))
        assert self.outcomes == ["ok"] * exchanges, self.samples
        assert {line["transport"] for line in self.of("connected")} == {transport}
        connected = {line["connection"] for line in self.of("connected")}
        for sample in self.samples:
            assert sample["connection"] in connected
            assert sample["sent_ns"] <= sample["received_ns"]


def whole_workload(settings: Object) -> Object:
    """A workload with every key, as crosswind-cell fills it in: an echo where `settings` say nothing else."""
    kind = settings.get("kind", "echo")
    return {"kind": kind, **catalog().workloads[kind].defaults, **settings}


def free_port() -> int:
    """A port that nobody listens on, of TCP and of UDP."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
    ):
        tcp.bind(("127.0.0.1", 0))
        port = int(tcp.getsockname()[1])
        udp.bind(("127.0.0.1", port))
        return port


def requires_runtime(runtime: str) -> None:
    """Ends the test where a runtime or its packages are not installed."""
    try:
        installed_packages()
        if runtime == "deno":
            deno_program()
    except EngineError as error:
        missing(f"{error.message}: {error.hint}")
    if runtime == "node":
        requires("node")
