"""Probes by messages to a server: what `crosswind-cell --watch` is told, what it says, and that it is started anew."""

import json
import select
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from crosswind.errors import CrosswindError
from crosswind.live.messages import MessageProbe
from crosswind.live.one_way import Arrivals
from crosswind.live.probe import Reply

# A process that says what it was started with, and answers every second message after 3 ms of its own time.
WATCH = """
import json, sys
say = lambda **event: print(json.dumps(event), flush=True)
if FAILS:
    say(event="error", kind="network", message="the token is wrong", hint="give the right one")
    sys.exit(1)
wanted = json.loads(sys.argv[2])
assert sys.argv[1] == "--watch", sys.argv
open(LOG, "a").write(json.dumps(wanted) + "\\n")
say(event="connected", server="192.0.2.1:9471", client="192.0.2.2", setup_ns=5)
count = 0
for line in sys.stdin:
    number = int(line)
    count += number % 2 == 0
    if number == 9:
        say(event="error", kind="network", message="the server is gone", hint=None)
        sys.exit(1)
    if number % 2 == 0:
        say(event="received", number=number, sent_ns=1000, received_ns=3_001_000, counted=count)
server = {"server": "192.0.2.1:9470", "crosswind_cell": "0.1.0", "kernel": "6.1", "round_trip_ns": 20_000_000}
say(event="ended", network=server)
"""


class Clock:
    """A clock that the test sets, ns."""

    def __init__(self) -> None:
        self.now_ns = 10**9

    def __call__(self) -> int:
        return self.now_ns


Make = Callable[..., MessageProbe]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(tmp_path: Path, clock: Clock) -> Iterator[Make]:
    """Makes a probe of that process."""
    made: list[MessageProbe] = []

    def make(*, fails: bool = False) -> MessageProbe:
        binary = tmp_path / "crosswind-cell"
        body = f"#!{sys.executable}\nFAILS, LOG = {fails}, {str(tmp_path / 'log')!r}\n{WATCH}"
        binary.write_text(body, encoding="utf-8")
        binary.chmod(0o755)
        probe = MessageProbe(
            "192.0.2.1:9470", "udp", family="ipv4", keeps_order=True, binary=binary, clock=clock
        )  # fmt: skip
        made.append(probe)
        return probe

    yield make
    for probe in made:
        probe.close()


def replies(probe: MessageProbe, number_of: int) -> list[Reply]:
    """Waits for so many answers."""
    found: list[Reply] = []
    while len(found) < number_of:
        select.select([probe.file()], [], [])
        found += probe.replies()
    return found


def started_with(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "log").read_text(encoding="utf-8").splitlines()]


def open_files() -> set[str]:
    return {file.name for file in Path("/proc/self/fd").iterdir()}


def test_an_answer_has_its_time_and_what_was_missing_at_the_server(make: Make, clock: Clock, tmp_path: Path) -> None:
    probe = make()
    assert started_with(tmp_path) == [
        {"server": "192.0.2.1:9470", "family": "ipv4", "transport": "udp", "size_bytes": 64}
    ]
    for number in range(5):
        clock.now_ns += 10**7
        assert probe.send(number) == clock.now_ns
    start_ns = 10**9 + 10**7
    assert replies(probe, 3) == [
        Reply(0, start_ns + 3 * 10**6, None, Arrivals(0, 0)),
        Reply(2, start_ns + 2 * 10**7 + 3 * 10**6, None, Arrivals(0, 1)),
        Reply(4, start_ns + 4 * 10**7 + 3 * 10**6, None, Arrivals(0, 2)),
    ]
    probe.close()
    assert list(probe.facts()) == [
        ("Server", "Crosswind 0.1.0, Linux 6.1, at 192.0.2.1:9470"),
        ("Control connection", "shortest round trip 20 ms, by TLS over TCP"),
    ]


def test_a_connection_that_ends_is_opened_anew_at_most_every_two_seconds(
    make: Make, clock: Clock, tmp_path: Path
) -> None:
    probe = make()
    probe.send(0)
    assert replies(probe, 1)[0].sequence == 0
    probe.send(9)
    while probe.obstacle is None:
        select.select([probe.file()], [], [])
        assert list(probe.replies()) == []
    assert probe.obstacle == "the server is gone"
    # What it said was its last word; its end is read, too.
    deadline = time.monotonic() + 60
    while probe.send(10) is not None or probe._process is not None:
        assert time.monotonic() < deadline
        assert list(probe.replies()) == []
    clock.now_ns += 10**9
    assert probe.send(11) is None
    assert len(started_with(tmp_path)) == 1
    clock.now_ns += 10**9
    assert probe.send(12) is None  # It is being opened.
    while not probe._is_connected:
        select.select([probe.file()], [], [])
        assert list(probe.replies()) == []
    assert probe.obstacle is None
    assert probe.send(14) == clock.now_ns
    assert replies(probe, 1)[0].arrivals == Arrivals(1, 0)
    assert len(started_with(tmp_path)) == 2
    assert list(probe.facts()) == [("Connection", "opened anew 1 time after it had ended")]


def test_what_keeps_the_first_connection_from_being_opened_is_an_error(make: Make) -> None:
    with pytest.raises(CrosswindError, match="the token is wrong") as raised:
        make(fails=True)
    assert raised.value.hint == "give the right one"


def test_nothing_is_left_of_it(make: Make) -> None:
    before = open_files()
    probe = make()
    process = probe._process
    assert process is not None
    probe.send(0)
    probe.close()
    assert process.poll() == 0
    assert open_files() == before
