"""Whatever ends crosswind-cell, nothing is left: no process, no namespace, no device, no file that looks whole."""

import os
import random
import re
import signal
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from conftest import requires
from linux.lab import DIRECTIONS, Lab, Object, cell_of, ms, next_event, processes_with, wait_until

# Namespaces are known by numbers that the kernel gives away again at once, so that nobody else may make any meanwhile.
pytestmark = pytest.mark.alone

DELAYS: Object = {"forward": {"delay_ns": ms(5)}, "reverse": {"delay_ns": ms(5)}}
# None of them ends by itself within the minute that the lab waits.
ECHO: Object = {"kind": "echo", "transport": "udp", "messages": 100_000, "size_bytes": 900}
TRANSFER: Object = {"kind": "transfer", "transport": "tcp", "duration_ns": ms(600_000)}
GRANDCHILDREN: Object = {
    "kind": "program",
    "client": ["sh", "-c", "sleep 100 & sleep 100"],
    "server": ["sh", "-c", "setsid sleep 100 & sleep 100"],
}
FILES = {"samples.arrow", "packets.arrow", "client.pcapng", "server.pcapng"}


def namespaces_of(process: int) -> set[int]:
    """The inodes of the network namespaces that a process is in, or holds by a descriptor."""
    found: set[int] = set()
    try:
        links = [*Path(f"/proc/{process}/task").glob("*/ns/net"), *Path(f"/proc/{process}/fd").iterdir()]
    except OSError:
        return found
    for link in links:
        try:
            target = str(link.readlink())
        except OSError:
            continue
        if target.startswith("net:["):
            found.add(int(target[5:-1]))
    return found


def everybodys_namespaces() -> set[int]:
    processes = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    return set().union(*(namespaces_of(process) for process in processes))


def mounted_namespaces() -> set[int]:
    """The inodes of network namespaces that outlive their processes: `ip netns` mounts them, and so might others."""
    mounts = Path("/proc/self/mountinfo").read_text("utf-8")
    return {int(inode) for inode in re.findall(r"net:\[(\d+)\]", mounts)}


def words_of(process: int) -> list[str]:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().decode().split("\0")[:-1]
    except OSError:
        return []


@dataclass
class Watched:
    """A running cell, with all that could be left of it."""

    lab: Lab
    workload: Object
    marker: str = field(default_factory=lambda: f"CROSSWIND_TEST={uuid.uuid4()}")
    own: set[int] = field(default_factory=lambda: namespaces_of(os.getpid()))

    def __post_init__(self) -> None:
        self.directory = self.lab.directory()
        output = {"directory": str(self.directory), "packets": True, "capture": True}
        environment = {**os.environ, **dict([self.marker.split("=")])}
        self.process = self.lab.start(cell_of(self.workload, output=output, **DELAYS), env=environment)

    def processes(self) -> list[int]:
        return list(processes_with(self.marker))

    def namespaces(self) -> set[int]:
        """Those that are the cell's own, as long as it lives."""
        return set().union(*(namespaces_of(process) for process in self.processes())) - self.own

    def running(self, *words: str) -> list[int]:
        """The cell's descendants with this argument list."""
        return [process for process in self.processes() if words_of(process) == list(words)]

    def assert_nothing_left(self, namespaces: set[int]) -> None:
        wait_until(lambda: not self.processes())
        wait_until(lambda: not namespaces & everybodys_namespaces())
        assert not namespaces & mounted_namespaces()
        assert not Path("/sys/class/net/path0").exists()
        assert not {path.name for path in self.directory.iterdir()} & FILES


# --- killed -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("workload", [ECHO, TRANSFER, GRANDCHILDREN], ids=["echo", "transfer", "grandchildren"])
@pytest.mark.parametrize("seed", range(4))
def test_a_kill_at_any_moment_leaves_nothing(lab: Lab, workload: Object, seed: int) -> None:
    # From before the namespaces exist to well into the work. What it hits is chance; that nothing is left is not.
    moment = random.Random(f"{workload['kind']} {seed}").uniform(0, 0.1 if seed % 2 else 0.4)
    cell = Watched(lab, workload)
    time.sleep(moment)
    namespaces = cell.namespaces()
    cell.process.kill()
    assert lab.end(cell.process).status == -signal.SIGKILL
    cell.assert_nothing_left(namespaces)


@pytest.mark.parametrize("event", ["started", "ready", "progress"])
def test_a_kill_at_an_event_leaves_nothing(lab: Lab, event: str) -> None:
    cell = Watched(lab, ECHO)
    next_event(cell.process, event)
    namespaces = cell.namespaces()
    assert event == "started" or len(namespaces) == 2
    cell.process.kill()
    lab.end(cell.process)
    cell.assert_nothing_left(namespaces)


def test_a_kill_takes_grandchildren_along_even_those_of_a_session_of_their_own(lab: Lab) -> None:
    cell = Watched(lab, GRANDCHILDREN)
    wait_until(lambda: len(cell.running("sleep", "100")) == 4)
    assert len(cell.namespaces()) == 2
    namespaces = cell.namespaces()
    cell.process.kill()
    lab.end(cell.process)
    cell.assert_nothing_left(namespaces)


@pytest.fixture
def cramped() -> Iterator[Callable[[], list[str]]]:
    """The start of a command line that runs in a user namespace with room for six network namespaces."""
    requires("nsenter")
    script = "echo 6 > /proc/sys/user/max_net_namespaces && echo ready && cat"
    holder = subprocess.Popen(
        [requires("unshare"), "--user", "--map-root-user", "sh", "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    if holder.stdout.readline() != "ready\n":
        pytest.skip(f"no user namespace with a limit of its own: {holder.communicate()[1].strip()}")
    yield lambda: ["nsenter", "--user", f"--target={holder.pid}", "--preserve-credentials"]
    holder.communicate()


def test_the_kernel_itself_counts_no_namespace_of_a_killed_cell(lab: Lab, cramped: Callable[[], list[str]]) -> None:
    # Six are all there may be, and a cell has two: if killed ones left any, the tenth could not start.
    def start() -> subprocess.Popen[str]:
        return lab.start(cell_of(ECHO, **DELAYS), command=cramped())

    def starts() -> bool:
        process = start()
        assert process.stdout is not None
        ready = any('"ready"' in line for line in process.stdout)
        process.kill()
        lab.end(process)
        return ready

    for _ in range(10):
        # The kernel takes namespaces apart in its own time, after the last process that held them. Also those of a
        # cell that found room for one of its two.
        wait_until(starts)
    # And the limit is one: three cells at a time, not four.
    running: list[subprocess.Popen[str]] = []

    def three_run() -> bool:
        process = start()
        assert process.stdout is not None
        if any('"ready"' in line for line in process.stdout):
            running.append(process)
        return len(running) == 3

    wait_until(three_run)
    fourth = lab.end(start())
    assert (fourth.status, fourth.error["kind"]) == (1, "host")
    assert "cannot make a network namespace" in fourth.error["message"]


# --- interrupted ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("workload", [ECHO, TRANSFER, GRANDCHILDREN], ids=["echo", "transfer", "grandchildren"])
def test_an_interrupted_cell_says_so_and_leaves_nothing(lab: Lab, workload: Object, number: signal.Signals) -> None:
    cell = Watched(lab, workload)
    next_event(cell.process, "progress")
    namespaces = cell.namespaces()
    assert len(namespaces) == 2
    cell.process.send_signal(number)
    # None of them would end by itself in the time that this waits.
    ended = lab.end(cell.process)
    assert ended.status == 130
    assert ended.error["kind"] == "interrupted"
    assert number.name in ended.error["message"]
    cell.assert_nothing_left(namespaces)


# --- children ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("victim", ["client", "server", "init"])
def test_a_killed_program_does_not_keep_the_cell_from_its_result(lab: Lab, victim: str) -> None:
    # The server sleeps for longer than the client: only the client's end is the cell's.
    client = ["sleep", "2"] if victim == "server" else ["sleep", "100"]
    cell = Watched(lab, {"kind": "program", "client": client, "server": ["sleep", "101"]})
    next_event(cell.process, "ready")
    words = {"client": client, "server": ["sleep", "101"], "init": ["/proc/self/exe", "--init"]}[victim]
    wait_until(lambda: cell.running(*client) and cell.running(*words))
    namespaces = cell.namespaces()
    os.kill(cell.running(*words)[0], signal.SIGKILL)
    ended = lab.end(cell.process, cell.directory)
    assert (ended.status, ended.names[-1]) == (0, "finished")
    result = ended.events[-1]
    assert result["ledger"]["closed"]
    assert [result["ledger"][direction]["in"] for direction in DIRECTIONS] == [0, 0]
    killed = {"exit_code": None, "signal": int(signal.SIGKILL)}
    assert result["program"] == ({"exit_code": 0, "signal": None} if victim == "server" else killed)
    said = "the server program had ended before the client, with signal 9 (SIGKILL)"
    assert [warning["text"] for warning in result["warnings"]] == ([said] if victim == "server" else [])
    assert ended.files() == FILES | {"client.out", "client.err", "server.out", "server.err"}
    wait_until(lambda: not cell.processes())
    wait_until(lambda: not namespaces & everybodys_namespaces())


def test_what_a_program_leaves_running_ends_with_the_cell(lab: Lab) -> None:
    cell = Watched(lab, {"kind": "program", "client": ["sh", "-c", "setsid sleep 100 & sleep 0.3"]})
    wait_until(lambda: cell.running("sleep", "100"))
    ended = lab.end(cell.process, cell.directory)
    assert ended.result["warnings"] == []
    wait_until(lambda: not cell.processes())
