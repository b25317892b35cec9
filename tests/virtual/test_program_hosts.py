"""Programs on their hosts in virtual time: files to write, names, sockets as asked, background servers."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import requires
from e2e_cli import Cli, Ended
from linux.lab import Object
from virtual.conftest import requires_kernel
from virtual.lab import VirtualCells, VirtualRun

Exec = Callable[..., Ended]
PYTHON = [sys.executable, "-I", "-S", "-c"]


@pytest.fixture
def execute(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Exec:
    """Runs `crosswind exec --clock virtual` in a directory of its own."""
    requires_kernel()
    (tmp_path / "here").mkdir()
    crosswind = Cli(tmp_path / "here", capfd)
    return lambda *arguments: crosswind("exec", "--clock", "virtual", *arguments)


def shell(cells: VirtualCells, script: str, **sections: object) -> VirtualRun:
    return cells.run({"kind": "program", "client": ["sh", "-c", script]}, **sections)


def test_programs_may_write_anywhere_and_the_machine_keeps_its_files(execute: Exec, tmp_path: Path) -> None:
    here = tmp_path / "here"
    (here / "folder").mkdir()
    (here / "file").write_text("as it was", encoding="utf-8")
    before = {path: path.stat() for path in (here, *here.iterdir())}
    script = """
        set -e
        echo changed > file; echo new > new; mv folder other; ln -s file link; cat file; ls
        echo temporary > /tmp/crosswind-was-here; cat /tmp/crosswind-was-here
        echo 1.2.3.4 elsewhere >> /etc/services; tail -1 /etc/services
        place=/var/lib/crosswind-was-here; mkdir $place; chown 33:33 $place; stat -c %u $place
    """
    ended = execute("--", "sh", "-c", script)
    said = "changed file link new other temporary 1.2.3.4 elsewhere 33"
    assert (ended.status, ended.out.split()) == (0, said.split()), ended.err
    assert {path: path.stat() for path in (here, *here.iterdir())} == before
    assert not Path("/tmp/crosswind-was-here").exists()
    assert not Path("/var/lib/crosswind-was-here").exists()
    assert "elsewhere" not in Path("/etc/services").read_text(encoding="utf-8")


def test_files_of_output_come_back_and_nothing_else(execute: Exec, tmp_path: Path) -> None:
    script = """
        set -e
        cd "$1"; mkdir -p inner/empty; echo kept > inner/file; chmod 4111 inner/file; chown 33 inner/file
        ln -s /etc/passwd link; mkfifo fifo; mknod device c 1 3; touch -- '-rf' "$(printf 'a\\nb')"
    """
    ended = execute("--output", "kept", "--", "sh", "-c", script, "sh", "{output}")
    (place,) = (tmp_path / "here/kept/cells").glob("*/output")
    assert f"  files: {place.relative_to(tmp_path / 'here')}" in ended.err.splitlines()
    assert sorted(str(path.relative_to(place)) for path in place.rglob("*")) == [
        *("-rf", "a\nb", "inner", "inner/empty", "inner/file"),
    ]
    assert (place / "inner/file").read_text(encoding="utf-8") == "kept\n"
    assert (place / "inner/file").stat().st_mode & 0o7777 == 0o644
    left = "device (a device), fifo (a FIFO), link (a link)"
    assert f"warning: of {{output}} only files and directories come back, which these are not: {left}" in ended.err


def test_output_has_a_limit_of_its_own(cells: VirtualCells) -> None:
    # A guest has the machine's memory.
    ran = shell(cells, 'for place in {output} /; do df -B1 --output=size "$place" | tail -1; done')
    assert ran.text("client.out").split() == [str(1 << 30)] * 2


def test_without_a_run_that_is_kept_there_is_no_output(execute: Exec) -> None:
    ended = execute("--", "touch", "{output}/file")
    assert ended.status == 2
    assert ended.err == "error: {output} is a directory of the run, which is not kept\nhint: give --output DIR\n"


def test_a_program_cannot_lose_what_it_has_said(cells: VirtualCells) -> None:
    # The files are its standard streams: their names lead nowhere, and those that it would replace are not there.
    script = 'echo said; path=$(readlink /proc/self/fd/1); rm "$path"; echo other > "$path"; ls -A "$(dirname "$path")"'
    ran = shell(
        cells, f"{script} > /dev/null; for name in $(cut -d' ' -f2 /proc/mounts); do rm -f $name/client.out; done"
    )
    assert ran.text("client.out") == "said\n"


RESOLVER = """
import socket
resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
resolver.bind(("", 53))
while True:
    asked, client = resolver.recvfrom(512)
    question = asked[12 : asked.index(bytes(1), 12) + 5]
    # RFC 1035: the question comes back; one for an address (type A) with one answer, 192.0.2.7.
    answer = bytes.fromhex("c00c000100010000003c0004c0000207") if question[-3] == 1 else b""
    counts = bytes([0, 1, 0, len(answer) // 16, 0, 0, 0, 0])
    resolver.sendto(asked[:2] + bytes([0x81, 0x80]) + counts + question + answer, client)
"""
LOOKUP = """
import socket, time
begun = time.monotonic()
print(socket.gethostbyname("www.example.org"), time.monotonic() - begun)
"""


def test_names_are_asked_of_a_resolver_on_the_path(execute: Exec, tmp_path: Path) -> None:
    (tmp_path / "here/resolver.py").write_text(RESOLVER, encoding="utf-8")
    server = ["--delay", "50ms", "--port", "53", "--server", f"{sys.executable} -I -S resolver.py"]
    ended = execute(*server, "--resolver", "{address}", "--", *PYTHON, LOOKUP)
    address, took_s = ended.out.split()
    assert (address, round(float(took_s), 3)) == ("192.0.2.7", 0.1), ended.err
    dig = [requires("dig"), "+short", "-p", "{port}", "@server", "a.example"]
    assert execute(*server, "--", *dig).out == "192.0.2.7\n"
    without = execute(*server, "--json", "--", *PYTHON, LOOKUP)
    assert without.status == 1
    assert "gaierror" in without.err
    assert json.loads(without.err.splitlines()[-1])["repetitions"][0]["forward"]["packets"] == 0


@pytest.mark.parametrize("word", ["here", "server", "1.2.3"])
def test_a_resolver_is_an_address(execute: Exec, word: str) -> None:
    ended = execute("--resolver", word, "--", "true")
    assert ended.status == 2
    assert f'"{word}" is not an address' in ended.err


SIZES = """
import socket
tcp = socket.socket()
print(*(tcp.getsockopt(socket.SOL_SOCKET, option) for option in (socket.SO_RCVBUF, socket.SO_SNDBUF)))
"""


@pytest.mark.parametrize(
    ("options", "sizes"),
    [
        ([], "131072 16384"),
        (["--receive-buffer", "64KiB", "--send-buffer", "10kB"], "131072 20000"),
        (["--receive-buffer", "1GiB"], "2147483646 16384"),
        (["--tcp-rmem", "4096 10000 20000", "--tcp-wmem", "4096 5000 5000"], "10000 5000"),
    ],
)
def test_buffers_of_programs_are_as_asked(execute: Exec, options: list[str], sizes: str) -> None:
    ended = execute(*options, "--", *PYTHON, SIZES)
    assert ended.out.strip() == sizes, ended.err


def test_what_cannot_act_on_programs_is_refused(execute: Exec) -> None:
    ended = execute("--nodelay", "true", "--", "true")
    assert ended.status == 2
    assert "a program sets TCP_NODELAY on its sockets itself" in ended.err
    both = execute("--receive-buffer", "64KiB", "--tcp-rmem", "4096 10000 20000", "--", "true")
    assert both.status == 2
    assert "leave one of the two out" in both.err
    no_sizes = execute("--tcp-rmem", "10000 4096 20000", "--", "true")
    assert no_sizes.status == 2
    assert "is not three sizes" in no_sizes.err


@pytest.mark.parametrize("qdisc", ["fq", "fq_codel", "cake", "pie", "codel", "pfifo", "bfifo", "pfifo_fast"])
def test_a_queueing_discipline_is_the_devices(cells: VirtualCells, qdisc: str) -> None:
    ran = shell(cells, "true", host={"default_qdisc": qdisc})
    readback = ran.finished.readback
    assert (readback.client.device["qdisc"], readback.server.device["qdisc"]) == (qdisc, qdisc)


@pytest.mark.parametrize("size", [212_993, 1 << 23, 1 << 30])
def test_sockets_of_our_own_have_buffers_of_any_size(cells: VirtualCells, size: int) -> None:
    host: Object = {"receive_buffer_bytes": size, "send_buffer_bytes": size}
    ran = cells.run({"kind": "echo", "transport": "tcp", "messages": 1}, host=host)
    socket = ran.finished.readback.client.socket
    assert socket is not None
    expected = 2 * min(size, (1 << 30) - 1)
    assert (socket["receive_buffer_bytes"], socket["send_buffer_bytes"]) == (expected, expected)


DAEMON = """
import os, socket, time
if os.fork():
    os._exit(0)
os.setsid()
time.sleep(3)
connection, _ = socket.create_server(("", 8000)).accept()
connection.sendall(b"there")
"""
CLIENT = [*PYTHON, "import socket; print(socket.create_connection(('server', 8000)).recv(9).decode())"]


def test_a_server_that_goes_into_the_background_is_followed(execute: Exec, tmp_path: Path) -> None:
    (tmp_path / "here/daemon.py").write_text(DAEMON, encoding="utf-8")
    ended = execute("--port", "8000", "--server", f"{sys.executable} -I -S daemon.py", "--", *CLIENT)
    assert (ended.status, ended.out) == (0, "there\n"), ended.err


def test_a_server_that_ends_before_anybody_listens_is_named(execute: Exec) -> None:
    ended = execute("--server", "sh -c 'echo serving {port}'", "--", *CLIENT)
    assert (ended.status, ended.out) == (125, "")
    problem, hint, *_ = ended.err.splitlines()
    assert problem == (
        "error: the server program ended before anybody listened: exit status 0, nobody listens on port 8000; "
        "it wrote: serving 8000"
    )
    assert hint.startswith("hint: run it in the foreground")
