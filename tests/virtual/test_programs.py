"""Other people's programs in virtual time: they run as they are, and come out the same each time."""

import compileall
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import missing, requires
from linux.lab import Object, ms
from virtual.lab import VirtualCells, VirtualRun

DELAY: Object = {"forward": {"delay_ns": ms(25)}, "reverse": {"delay_ns": ms(25)}}
PYTHON = [sys.executable, "-I", "-S", "-c"]

PYTHON_SERVER = """
import asyncio
async def echo(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
async def serve():
    async with await asyncio.start_server(echo, "", 80) as server:
        await server.serve_forever()
asyncio.run(serve())
"""
PYTHON_CLIENT = """
import socket, sys, time
with socket.create_connection((sys.argv[1], 80)) as connection:
    for _ in range(50):
        begun = time.monotonic_ns()
        connection.sendall(b"x" * 100)
        assert len(connection.recv(100)) == 100
        print(time.monotonic_ns() - begun)
begun = time.monotonic_ns()
time.sleep(30)
print(time.monotonic_ns() - begun)
"""

NODE_SERVER = "require('net').createServer(c => c.pipe(c)).listen(80)"
NODE_CLIENT = """
const client = require('net').connect(80, process.argv[1]);
let left = 50, begun;
const send = () => { begun = process.hrtime.bigint(); client.write('x'.repeat(100)); };
client.on('connect', send);
client.on('data', () => {
    console.log(String(process.hrtime.bigint() - begun));
    if (--left) setTimeout(send, Math.floor(Math.random() * 100)); else client.end();
});
"""

GO_PROGRAM = """
package main
import ("fmt"; "io"; "math/rand"; "net"; "os"; "time")
func main() {
    if os.Args[1] == "server" {
        listener, _ := net.Listen("tcp", ":80")
        for { connection, err := listener.Accept(); if err != nil { return }; go io.Copy(connection, connection) }
    }
    connection, err := net.Dial("tcp", os.Args[2] + ":80")
    if err != nil { panic(err) }
    message := make([]byte, 100)
    for i := 0; i < 50; i++ {
        begun := time.Now()
        connection.Write(message)
        io.ReadFull(connection, message)
        fmt.Println(time.Since(begun).Nanoseconds())
        time.Sleep(time.Duration(rand.Intn(100)) * time.Millisecond)
    }
}
"""


def twice(cells: VirtualCells, client: list[str], server: list[str] | None = None, **path: object) -> list[VirtualRun]:
    """Runs two programs twice. Their output has to be the same, and every packet."""
    workload = {"kind": "program", "client": client, **({"server": server} if server else {})}
    runs = [cells.run(workload, **(path or DELAY)) for _ in range(2)]
    for ran in runs:
        assert ran.finished.program is not None
        assert ran.finished.program.ok, ran.text("client.err")
    assert runs[0].digests() == runs[1].digests()
    return runs


def echoes_ns(ran: VirtualRun) -> list[int]:
    return [int(line) for line in ran.text("client.out").split()]


def test_python_programs(cells: VirtualCells) -> None:
    ran, _ = twice(cells, [*PYTHON, PYTHON_CLIENT, "{server}"], [*PYTHON, PYTHON_SERVER])
    *echoes, slept_ns = echoes_ns(ran)
    assert len(echoes) == 50
    assert ms(50) <= min(echoes) <= max(echoes) <= ms(50.1)
    assert ms(30_000) <= slept_ns <= ms(30_000.1)


def test_a_python_web_server_and_curl_on_a_lossy_path(cells: VirtualCells, tmp_path: Path) -> None:
    (tmp_path / "page").write_bytes(bytes(300_000))
    path = {"delay_ns": ms(25), "loss": 0.02, "rate_bps": 10_000_000}
    server = [sys.executable, "-m", "http.server", "80", "--directory", str(tmp_path)]
    said = "%{http_code} %{size_download} %{time_connect} %{time_total}\\n"
    client = [requires("curl"), "-sS", "-o", "/dev/null", "-w", said, "http://{server}/page"]
    ran, _ = twice(cells, client, server, forward=path, reverse=path)
    code, size, connect_s, total_s = ran.text("client.out").split()
    assert (code, size) == ("200", "300000")
    assert float(connect_s) >= 0.05
    # 300 kB at 10 Mbit/s take 240 ms, and the handshake and the request a round trip each.
    assert float(total_s) >= 0.34


def test_compiled_modules_on_the_machine_change_nothing(cells: VirtualCells, tmp_path: Path) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    # More than calls may fail before they take time: each module that is not compiled makes some.
    names = [f"module_{number}" for number in range(100)]
    for name in names:
        (modules / f"{name}.py").write_text("", encoding="utf-8")
    script = (
        f"import sys; sys.path.insert(0, {str(modules)!r})\nimport time, {', '.join(names)}\nprint(time.monotonic_ns())"
    )
    first = cells.run({"kind": "program", "client": [sys.executable, "-c", script]})
    assert first.finished.program is not None
    assert first.finished.program.ok, first.text("client.err")
    assert compileall.compile_dir(modules, quiet=1)
    again = cells.run({"kind": "program", "client": [sys.executable, "-c", script]})
    assert first.text("client.out") == again.text("client.out")
    assert first.digests() == again.digests()


def test_node_programs(cells: VirtualCells) -> None:
    node = requires("node")
    ran, _ = twice(cells, [node, "-e", NODE_CLIENT, "{server}"], [node, "-e", NODE_SERVER])
    assert len(echoes_ns(ran)) == 50
    assert ms(50) <= min(echoes_ns(ran)) <= max(echoes_ns(ran)) <= ms(50.1)


def test_go_programs(cells: VirtualCells, tmp_path: Path) -> None:
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        missing("go is not installed")
    source = tmp_path / "echo.go"
    source.write_text(GO_PROGRAM, encoding="utf-8")
    program = str(tmp_path / "echo")
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GO111MODULE": "off"}
    # With what the compiler's cache has from the peers in Go: `make test-packages`.
    build = [str(go), "build", "-trimpath", "-o", program, str(source)]
    subprocess.run(build, check=True, env=environment, cwd=tmp_path)
    ran, _ = twice(cells, [program, "client", "{server}"], [program, "server"])
    assert len(echoes_ns(ran)) == 50
    assert ms(50) <= min(echoes_ns(ran)) <= max(echoes_ns(ran)) <= ms(50.1)


def test_shell_pipelines_with_background_jobs(cells: VirtualCells) -> None:
    script = "for i in 1 2 3; do (sleep $i; date +%s.%N) & done; wait; date -u +%FT%TZ"
    ran, _ = twice(cells, ["sh", "-c", script])
    assert ran.text("client.out").splitlines()[-1].startswith("2026-01-01T00:00:0")


@pytest.mark.parametrize("command", [["sleep", "60"], [*PYTHON, "import time; time.sleep(60)"]])
def test_waiting_takes_exactly_as_long_as_it_should(cells: VirtualCells, command: list[str]) -> None:
    ran = cells.run({"kind": "program", "client": command}, deadline_ns=ms(100_000), **DELAY)
    # To start a program takes system calls that find nothing, 1 us each.
    assert ms(60_000) <= ran.finished.elapsed_ns <= ms(60_000.2)


def test_a_run_of_a_client_is_a_sample_of_its_time(cells: VirtualCells) -> None:
    ran = cells.run({"kind": "program", "client": ["sleep", "60"]}, deadline_ns=ms(100_000), **DELAY)
    (sample,) = ran.samples().to_dicts()
    assert sample["outcome"] == "ok"
    assert ms(60_000) <= sample["received_ns"] - sample["sent_ns"] <= ms(60_000.2)


def test_a_client_is_ended_at_its_timeout_and_the_last_words_of_both_are_kept(cells: VirtualCells) -> None:
    workload = {
        "kind": "program",
        "client": ["sh", "-c", "echo waiting; exec sleep 1000"],
        "server": ["sh", "-c", "echo listening; exec sleep 1000"],
        "timeout_ns": ms(2000),
    }
    ran = cells.run(workload, **DELAY)
    (failed,) = ran.finished.samples.outcomes
    said = "the client program did not end within 2 s: waiting; the server program was still running: listening"
    assert (failed.outcome, failed.count, failed.first_error) == ("timeout", 1, said)
    # The server has a head start of 200 ms. Each program that waits hears of its signal at the next tick, of 1 ms.
    assert ms(2200) <= ran.finished.elapsed_ns <= ms(2202.2)
