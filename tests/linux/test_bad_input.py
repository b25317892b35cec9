"""What is wrong with a cell, its surroundings or its reader: one clear error event, a hint, the right exit status."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from linux.lab import DEADLINE_NS, Ended, Lab, Object, cell_of, ms, next_event, wait_until
from small_disks import mounted_disk

ECHO: Object = {"kind": "echo", "transport": "tcp", "messages": 5}
FILES = {"samples.arrow", "packets.arrow", "client.pcapng", "server.pcapng"}


def assert_refused(ended: Ended, status: int, kind: str, *words: str) -> None:
    """Exactly one error event, the last; a message with these words; a hint; nothing on standard error."""
    error = ended.error
    assert (ended.status, error["kind"]) == (status, kind), error
    for word in words:
        assert word in error["message"], error
    assert error["hint"], error
    assert set(error) == {"event", "kind", "message", "hint"}


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (cell_of(ECHO, forward={"delay_ns": 1.5}), ("1.5",)),
        (cell_of(ECHO, forward={"rate_bps": 1000, "queue": {"packets": 5, "bytes": 5}}), ()),
        (cell_of(ECHO, host={"congestion": "reno"}), ("host.congestion is not a known key",)),
        (cell_of({**ECHO, "transport": "udp", "size_bytes": 65_528}, family="ipv6"), ("65528", "65527")),
        ("", ()),
        (json.dumps(cell_of(ECHO)) + "x", ()),
        (b'{"schema": "\xff\xfe"}', ("UTF-8",)),
        ("[" * 5000, ()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_bad_cell_is_refused_by_name(lab: Lab, cell: Object | str | bytes, words: tuple[str, ...]) -> None:
    ended = lab.end(lab.start(cell))
    assert_refused(ended, 2, "bad_cell", *words)
    assert ended.names == ["error"]


def test_a_wrong_command_line_is_refused(lab: Lab) -> None:
    done = subprocess.run([str(lab.binary), "--chek"], input="", capture_output=True, text=True, check=False)
    assert_refused(Ended(done.returncode, done.stdout, done.stderr, lab.home), 2, "bad_cell", "--chek")


@pytest.mark.parametrize("name", ["nonesuch", "", "reno cubic"])
def test_an_unknown_congestion_control_is_refused_with_those_there_are(lab: Lab, name: str) -> None:
    ended = lab.run(ECHO, host={"congestion_control": name})
    assert_refused(ended, 1, "unsupported", "congestion control")
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text("ascii").split()
    for congestion_control in available:
        assert congestion_control in ended.error["hint"]
    assert not ended.files() & FILES


def test_a_kernel_without_netem_is_named_with_the_clock_that_has_it(lab: Lab) -> None:
    ended = lab.run(ECHO, packets=False, backend="netem", forward={"delay_ns": 1_000_000})
    if "finished" in ended.names:
        assert [qdisc["kind"] for qdisc in ended.result["netem"]["forward"]] == ["netem"]
        return
    assert_refused(ended, 1, "unsupported", "this kernel has no netem")
    assert "--clock virtual" in ended.error["hint"]
    assert not ended.files() & FILES


def test_a_program_that_is_not_there_is_named(lab: Lab) -> None:
    for client, server in (("no-such-program", None), ("true", "no-such-program"), ("no-such-program", "sleep 100")):
        workload = {"kind": "program", "client": [client], "server": server.split() if server else None}
        ended = lab.run(workload)
        assert_refused(ended, 1, "host", "no-such-program")
        assert not ended.files() & FILES


def test_a_server_program_that_fails_at_once_is_an_error(lab: Lab) -> None:
    ended = lab.run({"kind": "program", "client": ["sleep", "100"], "server": ["sh", "-c", "echo why >&2; exit 3"]})
    assert_refused(ended, 1, "host", "server program", "3")
    assert ended.text("server.err") == "why\n"


@pytest.mark.parametrize(
    "workload",
    [
        {"kind": "echo", "transport": "tcp", "messages": 10_000_000},
        # Never answered: the one exchange waits for a minute.
        {"kind": "connect", "transport": "tcp", "count": 1},
        {"kind": "transfer", "transport": "tcp", "size_bytes": 1 << 40},
        {"kind": "program", "client": ["sleep", "100"]},
    ],
    ids=lambda workload: workload["kind"],
)
def test_a_deadline_ends_a_cell_that_is_not_done(lab: Lab, workload: Object) -> None:
    # Far more than a minute's work, and far less than the time after which the test itself gives up.
    path: Object = {"forward": {"delay_ns": ms(1), "loss": 1.0 if workload["kind"] == "connect" else 0.0}}
    ended = lab.run(workload, deadline_ns=ms(700), **path)
    assert_refused(ended, 1, "deadline", "0.7 s")
    assert not ended.files() & FILES


# --- disk -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB."""
    with mounted_disk(tmp_path / "disk", "64k") as place:
        yield place


@pytest.mark.parametrize("what", ["packets", "capture"])
def test_a_full_disk_is_an_error_and_no_file_looks_whole(lab: Lab, small_disk: Path, what: str) -> None:
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 3_000_000}
    output = {"directory": str(small_disk), what: True}
    ended = lab.end(lab.start(cell_of(workload, output=output)), small_disk)
    assert_refused(ended, 1, "disk", "No space left")
    assert not ended.files() & FILES


def test_a_disk_too_full_for_the_samples_is_an_error(lab: Lab, small_disk: Path) -> None:
    workload = {"kind": "echo", "transport": "udp", "messages": 2000}
    ended = lab.end(lab.start(cell_of(workload, output={"directory": str(small_disk)})), small_disk)
    assert_refused(ended, 1, "disk", "samples.arrow", "No space left")
    assert not ended.files() & FILES


def test_a_read_only_disk_is_an_error(lab: Lab, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for output in ({"packets": True}, {"capture": True}, {}):
        cell = cell_of(ECHO, output={"directory": str(small_disk), **output})
        assert_refused(lab.end(lab.start(cell), small_disk), 1, "disk", "Read-only")
    assert list(small_disk.iterdir()) == []


def test_a_name_that_is_taken_by_a_directory_is_an_error(lab: Lab) -> None:
    directory = lab.directory()
    (directory / "packets.arrow.part").mkdir()
    cell = cell_of(ECHO, output={"directory": str(directory), "packets": True})
    assert_refused(lab.end(lab.start(cell)), 1, "disk", "packets.arrow")


# --- readers ----------------------------------------------------------------------------------------------------------


def test_a_cell_whose_reader_leaves_ends_by_itself(lab: Lab) -> None:
    endless: Object = {"kind": "echo", "transport": "udp", "messages": 10_000_000}
    process = lab.start(cell_of(endless, forward={"delay_ns": ms(5)}))
    next_event(process, "ready")
    assert process.stdout is not None
    process.stdout.close()
    wait_until(lambda: process.poll() is not None, within_s=DEADLINE_NS / 1e9 / 2)
    assert process.stderr is not None
    assert (process.returncode, process.stderr.read()) == (130, "")
    process.stderr.close()


def test_a_cell_without_a_reader_does_not_start(lab: Lab) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    process = lab.start(cell_of(ECHO), stdout=writing)
    os.close(writing)
    ended = lab.end(process)
    assert (ended.status, ended.err) == (130, "")


def test_check_and_version_survive_a_reader_that_leaves(lab: Lab) -> None:
    for argument in ("--check", "--probe", "--version", "--help"):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [str(lab.binary), argument], input=json.dumps(cell_of(ECHO)).encode(), stdout=writing,
            stderr=subprocess.PIPE, check=False,
        )  # fmt: skip
        os.close(writing)
        assert done.stderr == b""
        assert done.returncode in (0, 1, 130)
