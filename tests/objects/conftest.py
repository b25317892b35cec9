"""An S3 server that nobody here wrote: versitygw, over a directory of the test. Its program is built once."""

import shutil
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import requires
from linux.lab import wait_until
from peers.implementations import build_go, built

SECRET = "a-secret-that-nobody-may-see"
KEY = "the-key"
SERVER = Path(__file__).parent / "server"


@dataclass
class S3:
    """The server. Attributes: root: has a directory for each bucket. endpoint: its address."""

    program: Path
    root: Path
    port: int
    process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        environment = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}
        command = [self.program, self.root, f"127.0.0.1:{self.port}"]
        self.process = subprocess.Popen(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.root
        )
        wait_until(self._answers)

    def _answers(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self.port)) == 0

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def files(self, prefix: str) -> set[str]:
        """The names of the objects below a prefix of the bucket `runs`."""
        place = self.root / "runs" / prefix
        return {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}


@pytest.fixture(scope="session")
def server_program() -> Iterator[Path]:
    requires("go")
    with built("objects", [path for path in SERVER.iterdir() if path.is_file()], build_go) as directory:
        yield directory / "peers"


@pytest.fixture
def machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> "Machines":
    return Machines(tmp_path, monkeypatch)


@dataclass
class Machines:
    """Machines that share nothing but the server: each has copies of its own."""

    directory: Path
    patch: pytest.MonkeyPatch

    def go_to(self, name: str) -> Path:
        """What follows happens on that machine. Returns: its cache."""
        cache = self.directory / name
        self.patch.setenv("XDG_CACHE_HOME", str(cache))
        self.patch.setenv("HOME", str(cache))
        return cache

    def lose(self, name: str) -> None:
        """Its disk is gone."""
        shutil.rmtree(self.directory / name)


@pytest.fixture
def s3(server_program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, machines: Machines) -> Iterator[S3]:
    """The server with a bucket `runs`, on whose machine `a` the test begins."""
    machines.go_to("a")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "s3" / "runs").mkdir(parents=True)
    server = S3(server_program, tmp_path / "s3", port)
    for name, value in {
        "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL": server.endpoint,
        "AWS_EC2_METADATA_DISABLED": "true", "CROSSWIND_OBJECTS_WAIT": "60",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    server.start()
    yield server
    server.kill()
