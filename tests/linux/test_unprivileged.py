"""Without root: a clear error where /dev/net/tun is closed, and a cell in a user namespace where it is open."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import requires
from linux.lab import DIRECTIONS, Ended, Lab, Object, cell_of

NOBODY = 65534
ECHO: Object = {"kind": "echo", "transport": "udp", "messages": 50}
OWN_TUN = """
set -e
mount -t tmpfs tmpfs "$0"
mknod "$0/tun" c 10 200
chmod "$1" "$0/tun"
mount --bind "$0/tun" /dev/net/tun
shift
exec "$@"
"""


@pytest.fixture
def ordinary(lab: Lab) -> Iterator[Path]:
    """A place that an ordinary user can reach, with the binary in it and a directory to write to."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o755)
        lab.binary = Path(shutil.copy(lab.binary, place))
        (place / "tun").mkdir()
        (place / "output").mkdir()
        (place / "output").chmod(0o777)
        yield place


@pytest.fixture
def as_nobody() -> list[str]:
    """The start of a command line that runs as an ordinary user."""
    return [requires("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]


def with_tun(ordinary: Path, mode: str) -> list[str]:
    """The start of a command line with a device node of its own at /dev/net/tun, which no other process sees."""
    private = [requires("unshare"), "--mount", "--propagation", "private"]
    return [*private, "sh", "-c", OWN_TUN, str(ordinary / "tun"), mode]


@pytest.fixture
def with_closed_tun(ordinary: Path, as_nobody: list[str]) -> list[str]:
    """The start of a command line that runs as an ordinary user, to whom the device is closed."""
    return [*with_tun(ordinary, "600"), *as_nobody]


@pytest.fixture
def with_open_tun(ordinary: Path, as_nobody: list[str]) -> list[str]:
    """The start of a command line that runs as an ordinary user, to whom the device is open."""
    if int(Path("/proc/sys/user/max_user_namespaces").read_text("ascii")) == 0:
        pytest.skip("user.max_user_namespaces is 0")
    command = [*with_tun(ordinary, "666"), *as_nobody]
    tried = subprocess.run([*command, "unshare", "--user", "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        pytest.skip(f"this machine allows no user namespaces: {tried.stderr.strip()}")
    return command


def test_a_closed_tun_device_is_a_privilege_error(lab: Lab, with_closed_tun: list[str]) -> None:
    ended = lab.end(lab.start(cell_of(ECHO), command=with_closed_tun))
    assert (ended.status, ended.error["kind"]) == (1, "privilege")
    assert "/dev/net/tun" in ended.error["message"]
    assert "ermission denied" in ended.error["message"]
    assert "sudo" in ended.error["hint"]


def run(lab: Lab, command: list[str], place: Path, workload: Object) -> Ended:
    output = {"directory": str(place / "output"), "packets": True}
    return lab.end(lab.start(cell_of(workload, output=output), command=command), place / "output")


@pytest.mark.parametrize("transport", ["tcp", "udp"])
def test_a_cell_runs_without_root_where_the_device_is_open(
    lab: Lab, ordinary: Path, with_open_tun: list[str], transport: str
) -> None:
    ended = run(lab, with_open_tun, ordinary, {**ECHO, "transport": transport})
    assert set(ended.samples()["outcome"]) == {"ok"}
    assert ended.book("forward")["delivered"] >= 50
    assert len(ended.packets()) > 0
    # What an ordinary user is not allowed is said, not hidden.
    assert ended.result["fidelity"]["realtime"] is False
    assert ended.result["fidelity"]["memory_locked"] is False
    # The files are the user's own.
    assert {path.stat().st_uid for path in (ordinary / "output").iterdir()} == {NOBODY}


def test_a_program_runs_without_root_where_the_device_is_open(
    lab: Lab, ordinary: Path, with_open_tun: list[str]
) -> None:
    # With -w it waits for five replies, however late they are on a busy machine.
    client = [requires("ping"), "-n", "-c", "5", "-w", "30", "-i", "0.2", "{server}"]
    ended = run(lab, with_open_tun, ordinary, {"kind": "program", "client": client})
    assert " 5 received" in ended.text("client.out"), ended.text("client.err")
    for direction in DIRECTIONS:
        assert ended.book(direction)["delivered"] >= 5


def test_programs_find_the_hosts_by_name_without_root(lab: Lab, ordinary: Path, with_open_tun: list[str]) -> None:
    before = Path("/etc/hosts").read_bytes()
    client = ["sh", "-c", f"{requires('getent')} hosts server client && head -n 2 /etc/hosts"]
    ended = run(lab, with_open_tun, ordinary, {"kind": "program", "client": client})
    assert ended.text("client.out").split() == ["198.18.0.2", "server", "198.18.0.1", "client"] * 2
    assert ended.result["warnings"] == []
    assert Path("/etc/hosts").read_bytes() == before


def test_probe_says_what_an_ordinary_user_lacks(lab: Lab, with_closed_tun: list[str]) -> None:
    done = subprocess.run(
        [*with_closed_tun, str(lab.binary), "--probe"], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert '"ok": false' in done.stdout
    assert "cannot open /dev/net/tun" in done.stdout
