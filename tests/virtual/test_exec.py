"""`crosswind exec --clock virtual`: a user's command in virtual time, and without root."""

import json
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import Popen
from typing import Any

import pytest

from conftest import requires
from e2e_cli import Cli, Ended, hosts_file, wait_until
from linux.lab import KEPT_BYTES
from processes import descendants_of, is_running
from virtual.conftest import requires_kernel
from virtual.everyone import NOBODY, Everyone

Exec = Callable[..., Ended]


@pytest.fixture
def execute(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Exec:
    """Runs `crosswind exec --clock virtual` in this process."""
    requires_kernel()
    crosswind = Cli(tmp_path, capfd)
    return lambda *arguments: crosswind("exec", "--clock", "virtual", *arguments)


Running = Callable[..., tuple[Popen[str], list[int]]]


@pytest.fixture
def running(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[Running]:
    """Starts `crosswind exec --clock virtual`, and returns it and its kernel's processes once the program runs."""
    requires_kernel()
    crosswind = Cli(tmp_path, capfd)

    def start(*arguments: str) -> tuple[Popen[str], list[int]]:
        process = crosswind.start("exec", "--clock", "virtual", *arguments)
        # The template, the guest, and on the machine one for each process inside: the first one, the cell, the
        # first one of the programs' PID namespace, and the program.
        wait_until(lambda: len(descendants_of(process.pid)) >= 6 or process.poll() is not None)
        return process, descendants_of(process.pid)

    yield start
    crosswind.stop()


def only(ended: Ended) -> dict[str, Any]:
    """The one repetition of a summary that is the last line of standard error."""
    (found,) = json.loads(ended.err.splitlines()[-1])["repetitions"]
    return dict(found)


def test_a_command_in_virtual_time_is_exact(execute: Exec) -> None:
    ping = [requires("ping"), "-n", "-c", "20", "-i", "0.1", "-W", "1", "server"]
    ended = execute("--delay", "10ms", "--forward-loss", "10%", "--json", "--", *ping)
    times = [line.rpartition("time=")[2] for line in ended.out.splitlines() if "time=" in line]
    found = only(ended)
    lost = found["forward"]["dropped"].get("loss", 0)
    assert times == ["20.0 ms"] * (20 - lost)
    assert found["forward"]["packets"] == 20
    assert found["reverse"] == {**found["reverse"], "packets": 20 - lost, "delivered": 20 - lost, "dropped": {}}
    assert execute("--delay", "10ms", "--forward-loss", "10%", "--json", "--", *ping).out == ended.out


def test_the_summary_says_what_the_path_did(execute: Exec) -> None:
    ping = [requires("ping"), "-n", "-q", "-c", "5", "-i", "0.2", "-W", "1", "{address}"]
    ended = execute("--delay", "10ms", "--reverse-loss", "100%", "--", *ping)
    head, *lines = ended.err.splitlines()
    assert re.fullmatch(r"crosswind: exit status 1 after [\d.]+ s, virtual time", head)
    # 20 bytes of IP, 8 of ICMP and 56 of data.
    assert lines[:3] == [
        "  client to server: 5 packets, 420 B (none dropped)",
        "  server to client: 5 packets, 420 B (5 dropped by loss)",
        "  TCP retransmissions: client 0, server 0",
    ]


def test_the_retransmissions_that_iperf3_counts_are_those_of_the_summary(execute: Exec) -> None:
    # In virtual time the queue of this network overflows in the third second, however busy the machine is.
    server = f"{requires('iperf3')} -s -1 -p {{port}}"
    ended = execute("--network", "4g", "--server", server, "--", "iperf3", "-c", "{address}", "-p", "{port}", "-t", "3")
    (counted,) = re.findall(r"(\d+) +sender\n", ended.out)
    (summed,) = re.findall(r"TCP retransmissions: client (\d+), server 0\n", ended.err)
    # iperf3 reads its count before the connection is closed; what is retransmitted after that, it does not see.
    assert 0 < int(counted) <= int(summed)


def test_a_client_that_tries_again_and_again_makes_no_packet_late(execute: Exec) -> None:
    # iperf3 writes to a full buffer that is said to have room.
    path = ["--rate", "2mbit", "--delay", "10ms", "--loss", "50%", "--json"]
    client = ["iperf3", "-c", "{address}", "-p", "{port}", "-t", "20"]
    ended = execute(*path, "--server", f"{requires('iperf3')} -s -1 -p {{port}}", "--", *client)
    assert only(ended)["fidelity"]["late_max_ns"] <= 1_000


COMPUTES = "import signal\nfor n in (2, 15): signal.signal(n, signal.SIG_IGN)\nwhile True: pass"
POLLS = "import os, select\nread, write = os.pipe()\nwhile True: select.select([], [write], [])"
CALLS = "import os\nwhile True: os.getppid()"


NEVER_WAITS = {
    "computes": (COMPUTES, None, r"error: python[\d.]* computes without a system call .* stood still for 2 s\nhint: "),
    "makes calls": (
        CALLS,
        None,
        # Each call moves it a little; how many there are in 2 s depends on the machine.
        r"error: python[\d.]* made the last of \d+ system calls that did not wait .*"
        r"(stood still for|moved by 0\.\d+ s in) 2 s\n",
    ),
    # Polls that find what is always there take time.
    "polls": (POLLS, None, "crosswind: the command was ended at its timeout, virtual time\n"),
    "computes, SIGTERM": (COMPUTES, signal.SIGTERM, "interrupted\n$"),
    "polls, SIGINT": (POLLS, signal.SIGINT, "interrupted\n$"),
}


@pytest.mark.parametrize("case", NEVER_WAITS)
def test_timeouts_and_signals_end_a_program_that_never_waits(running: Running, case: str) -> None:
    """The 2 s are of a processor, of which a loaded machine gives a guest a part: this deadline is against hangs."""
    script, number, said = NEVER_WAITS[case]
    timeout = "20h" if number else "2s"
    process, inside = running("--timeout", timeout, "--", sys.executable, "-IS", "-c", script)
    if number is not None:
        process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == (130 if number else 124)
    assert re.match(said, errors), errors
    wait_until(lambda: not any(map(is_running, inside)))


def test_the_round_trips_of_a_client_are_counted(execute: Exec) -> None:
    server = f"{sys.executable} -m http.server {{port}}"
    # A SYN and its answer, a request and its answer.
    client = [requires("curl"), "-sS", "-o", "/dev/null", "http://server:{port}/"]
    ended = execute("--round-trips", "--delay", "5ms", "--json", "--server", server, "--", *client)
    found = json.loads(ended.err.splitlines()[-1])["round_trips"]
    assert found["trips"] == pytest.approx(2, abs=1e-4)
    assert found["delays"] == ["15ms", "35ms", "105ms"]
    assert max(found["offset_ns"], found["deviation_ns"]) < 100_000
    refused = execute("--round-trips", "--network", "4g", "--", "true")
    assert refused.status == 2
    assert refused.err.startswith("error: --round-trips varies --delay, and --network sets another\nhint: ")


SEND = "import socket, sys; socket.create_connection((sys.argv[1], 8000)).sendall(bytes(2_500_000))"
SINK = "import socket; end, _ = socket.create_server(('', 8000)).accept()\nwhile end.recv(65536): pass"


def test_a_flow_beside_a_command_takes_half_of_a_fair_link(execute: Exec) -> None:
    """Two seconds of a link of 10 Mbit/s take four beside an upload; and every packet is somebody's."""
    python = [sys.executable, "-IS", "-c"]
    path = ["--rate", "10mbit", "--delay", "5ms", "--forward-discipline", "fq_codel", "--json", "--port", "8000"]
    server = ["--server", shlex.join([*python, SINK])]
    beside = ["--beside", "transfer --transport tcp", "--beside", "echo --transport udp --start 60s"]
    alone = only(execute(*path, *server, "--", *python, SEND, "{address}"))
    found = only(execute(*path, *server, *beside[:2], "--", *python, SEND, "{address}"))
    command, transfer = found["flows"]
    assert alone["flows"] == []
    # What is sent at the end waits in the command's socket, and passes after it has ended.
    assert command["together"]["share"] == pytest.approx(0.5, abs=0.03)
    assert command["together"]["rate_bps"] + transfer["together"]["rate_bps"] == pytest.approx(10e6, rel=0.02)
    assert found["time_ns"] / alone["time_ns"] == pytest.approx(2, rel=0.1)
    for way in ("forward", "reverse"):
        for key in ("delivered", "delivered_bytes", "marked", "queued"):
            assert sum(flow[way][key] for flow in found["flows"]) == found[way][key]
        assert sum(flow[way]["dropped"] for flow in found["flows"]) == sum(found[way]["dropped"].values())
    late = only(execute(*path, *server, *beside, "--", *python, SEND, "{address}"))["flows"][-1]
    assert (late["name"], late["began_ns"], late["together"]) == ("echo", None, None)


@pytest.mark.parametrize(
    ("flow", "said"),
    [
        (
            "program -- iperf3 -c {server} -p {port}",
            r"flow\.program\.server is missing\nhint: both commands of a flow have \{port\} in them",
        ),
        ("iperf3 -c {server}", r"\"iperf3\" is no kind of workload\nhint: .*--beside 'program --server "),
        ("transfer --start 3s --stop 2s", r".*stop \(2s\) is not after start\nhint: a flow stops after it has begun"),
        ("transfer --access-dely 3ms", r"a flow has no --access-dely\nhint: did you mean \"access-delay\""),
        ("transfer --transport sctp", r".*\"sctp\" is not one of tcp, .*\nhint: "),
    ],
)
def test_what_cannot_run_beside_a_command_is_refused(execute: Exec, flow: str, said: str) -> None:
    ended = execute("--beside", flow, "--", "true")
    assert ended.status == 2
    assert re.match(f"error: --beside {re.escape(repr(flow))}: {said}", ended.err), ended.err


def test_a_port_of_a_flow_is_refused(execute: Exec) -> None:
    ended = execute("--port", "7002", "--beside", "transfer --count 2", "--server", "cat", "--", "true")
    assert ended.status == 2
    assert "is that of a flow beside the program" in ended.err.splitlines()[0]


def test_errors_and_status_pass_too(execute: Exec) -> None:
    ended = execute("--", "sh", "-c", "echo out; echo err >&2; exit 5")
    assert (ended.status, ended.out) == (5, "out\n")
    first, head, *_ = ended.err.splitlines()
    assert first == "err"
    assert head.startswith("crosswind: exit status 5 after ")
    assert head.endswith(", virtual time")


def test_a_server_that_never_listens(execute: Exec) -> None:
    ended = execute("--server", "sh -c 'echo loading {port}; exec sleep 1000'", "--", "true")
    assert (ended.status, ended.out) == (125, "")
    said = "the server program does not listen on port 8000: nobody did within 30 s; it wrote: loading 8000"
    assert ended.err.splitlines()[0] == f"error: {said}"
    assert ended.err.splitlines()[1].startswith("hint: {port} in its command is that number: does it listen there, ")
    untold = execute("--port", "8000", "--server", "sleep 1000", "--", "true")
    assert untold.err.splitlines()[1] == "hint: give it the port that it is to listen on, as {port}"


def test_a_program_ends_its_own_process_group_alone(execute: Exec) -> None:
    ended = execute("--", "sh", "-c", 'trap "echo caught" TERM; kill 0; echo on')
    assert (ended.status, ended.out) == (0, "caught\non\n"), ended.err


def test_a_server_says_when_it_is_ready(execute: Exec) -> None:
    script = "import time; time.sleep(50); print('it is now', flush=True); time.sleep(1); print('ready', flush=True)"
    server = f'{sys.executable} -I -S -c "{script}; time.sleep(1000)"'
    clock = [sys.executable, "-I", "-S", "-c", "import time; print(round(time.monotonic()))"]
    begins = int(execute("--", *clock).out)
    ended = execute("--ready", "log:ready", "--start-timeout", "60s", "--server", server, "--", *clock)
    assert (ended.status, int(ended.out) - begins) == (0, 51), ended.err
    late = execute("--ready", "log:ready", "--start-timeout", "50.5s", "--server", server, "--", *clock)
    assert (late.status, late.out) == (125, "")
    said = 'the server program did not become ready (log:ready): within 50.5 s no line of its output has "ready"'
    assert late.err.splitlines()[0] == f"error: {said}; it wrote: it is now"


def test_each_host_has_a_name_and_files_of_its_own(execute: Exec) -> None:
    ended = execute("--ready", "exit", "--server", hosts_file("mine"), "--", "sh", "-c", hosts_file("mine")[7:-1])
    assert ended.out.splitlines() == ["client", "198.18.0.1      client", "one of one", "found"], ended.err


def test_a_user_of_the_machine_runs_programs_without_root(execute: Exec) -> None:
    ended = execute(
        "--user", "nobody", "--env", "A={port:a}", "--", "sh", "-c", 'id -un; echo "$A"; cat {key} | head -n 1'
    )
    assert (ended.status, ended.out) == (0, "nobody\n8001\n-----BEGIN PRIVATE KEY-----\n"), ended.err


def test_each_program_has_its_own_variables_and_user(execute: Exec) -> None:
    script = 'id -un; echo "$A"; head -n 1 {key}'
    beside = f"program --ready exit --client-user daemon --client-env A=2 -- sh -c '({script}) > /tmp/beside'"
    words = ["--server-user", "nobody", "--env", "A=0", "--server-env", "A=1", "--ready", "exit"]
    server = f"sh -c '({script}) > /tmp/server'"
    command = ["sh", "-c", f"cat /tmp/server /tmp/beside; {script}"]
    ended = execute(*words, "--beside", beside, "--server", server, "--", *command)
    key = "-----BEGIN PRIVATE KEY-----"
    assert ended.out.splitlines() == ["nobody", "1", key, "daemon", "2", key, "root", "0", key], ended.err


def test_a_slow_server_is_waited_for(execute: Exec) -> None:
    script = "import socket, sys, time; time.sleep(20); socket.create_server(('', int(sys.argv[1]))).accept()"
    client = "import socket, sys; socket.create_connection((sys.argv[1], 7000)); print('there')"
    python = f"{sys.executable} -I -S -c"
    ended = execute(
        "--port", "7000", "--server", f'{python} "{script}" {{port}}', "--", *python.split(), client, "server"
    )
    assert (ended.status, ended.out) == (0, "there\n"), ended.err


def test_output_without_end_is_bounded(execute: Exec) -> None:
    # It takes no time at all, so that no timeout would end it. The last byte that a file may have, and one more:
    script = f"ulimit -f; exec dd if=/dev/zero of=/run/tmp/here bs=1 count=2 seek={(1 << 30) - 1} status=none"
    ended = execute("--", "sh", "-c", script)
    assert ended.out == f"{(1 << 30) // 512}\n"
    assert ended.status == 128 + signal.SIGXFSZ


def test_all_that_a_command_prints_passes(execute: Exec) -> None:
    size = 2 * KEPT_BYTES + 1_000_000
    ended = execute("--", "sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x")
    assert (ended.status, len(ended.out), ended.out.count("x")) == (0, size, size)
    assert "left out" not in ended.err


def test_a_reader_that_leaves_does_not_change_the_status(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    requires_kernel()
    crosswind = Cli(tmp_path, capfd)
    script = "head -c 1000000 /dev/zero; exit 3"
    process = crosswind.start("exec", "--clock", "virtual", "--", "sh", "-c", script)
    assert process.stdout is not None
    process.stdout.close()
    assert process.wait() == 3


def test_without_root_and_without_a_clock_it_runs_in_virtual_time(everyone: Everyone) -> None:
    command = ["-m", "crosswind", "exec", "--delay", "10ms", "--", requires("ping"), "-n", "-c", "1", "{address}"]
    done = everyone.run(NOBODY, *command)
    assert "time=20.0 ms" in done.stdout, done.stderr
    assert done.returncode == 0
    assert done.stderr.splitlines()[0].endswith(", virtual time")
