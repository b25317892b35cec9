"""The same cell gives the same bits: whatever ran before it, whatever the machine does, in every transport."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pytest

from chance import guest_draws
from conftest import requires, requires_binary
from crosswind.catalog import catalog
from crosswind.cell.guests import Template
from crosswind.execution.workers.worker import followed
from linux.lab import Object, ms
from virtual.conftest import requires_kernel
from virtual.lab import VirtualCells, run, usable_cpus

LOSSY: Object = {
    "forward": {"delay_ns": ms(10), "loss": 0.05, "rate_bps": 10_000_000},
    "reverse": {"delay_ns": ms(10), "loss": 0.05, "rate_bps": 10_000_000},
}
TCP: Object = {"kind": "echo", "transport": "tcp", "messages": 30, "size_bytes": 2000}
FILES = {"samples.arrow", "packets.arrow", "client.pcapng", "server.pcapng", "events"}


def echo(transport: str) -> Object:
    return {"kind": "echo", "transport": transport, "messages": 30}


@contextmanager
def busy(cpu: int) -> Iterator[None]:
    """A process that keeps a processor busy."""
    spinning = [requires("taskset"), "-c", str(cpu), sys.executable, "-c", "while True: pass"]
    process = subprocess.Popen(spinning)
    try:
        yield
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("transport", catalog().transports)
def test_a_cell_repeats_bit_for_bit_and_another_seed_does_not(cells: VirtualCells, transport: str) -> None:
    first, again, other = (cells.run(echo(transport), seed=seed, **LOSSY) for seed in (1, 1, 2))
    assert set(first.digests()) >= FILES
    assert again.digests() == first.digests()
    assert len(first.packets()) > 50
    for name in ("packets.arrow", "samples.arrow"):
        assert other.digests()[name] != first.digests()[name]


@pytest.mark.parametrize(
    "workload",
    [
        {"kind": "transfer", "transport": "tcp", "size_bytes": 300_000},
        {"kind": "transfer", "transport": "quic", "size_bytes": 300_000},
        {"kind": "connect", "transport": "https1", "count": 10},
        {"kind": "multiplex", "transport": "quic", "streams": 4, "messages": 40},
        {"kind": "page", "transport": "http2"},
    ],
    ids=lambda workload: f"{workload['kind']} {workload['transport']}",
)
def test_other_workloads_repeat_bit_for_bit(cells: VirtualCells, workload: Object) -> None:
    assert cells.run(workload, **LOSSY).digests() == cells.run(workload, **LOSSY).digests()


@pytest.mark.parametrize("control", ["cubic", "bbr", "reno", "vegas"])
def test_congestion_controls_repeat_bit_for_bit(cells: VirtualCells, control: str) -> None:
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 300_000}
    host = {"congestion_control": control}
    assert cells.run(workload, host=host, **LOSSY).digests() == cells.run(workload, host=host, **LOSSY).digests()


def test_what_ran_before_changes_nothing(tmp_path: Path) -> None:
    kernel, binary = requires_kernel(), requires_binary()
    digests = []
    for before in ((), ("http3", "udp")):
        template = Template(kernel, binary)
        home = tmp_path / f"after {len(before)}"
        home.mkdir()
        cells = VirtualCells(template, binary, home)
        for transport in before:
            cells.run(echo(transport), **LOSSY)
        digests.append(cells.run(TCP, **LOSSY).digests())
        template.close()
    assert digests[0] == digests[1]


@pytest.mark.parametrize("transport", ["tcp", "webtransport"])
def test_a_busy_processor_changes_nothing(cells: VirtualCells, transport: str) -> None:
    idle = cells.run(echo(transport), **LOSSY)
    cells.cpu = usable_cpus()[0]
    with busy(cells.cpu):
        loaded = cells.run(echo(transport), **LOSSY)
    assert loaded.digests() == idle.digests()


def test_guests_at_the_same_time_do_not_disturb_each_other(cells: VirtualCells) -> None:
    alone = cells.run(TCP, **LOSSY)
    started = [(cells.directory(), seed) for seed in (1, 2, 1)]
    processes = [cells.start(TCP, directory, seed=seed, **LOSSY) for directory, seed in started]
    assert all(followed(process).finished for process in processes)
    packets = [(directory / "packets.arrow").read_bytes() for directory, _ in started]
    assert packets[0] == packets[2] == (alone.directory / "packets.arrow").read_bytes()
    assert packets[1] != packets[0]


def test_the_callers_surroundings_change_nothing(
    cells: VirtualCells, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = cells.run(TCP, **LOSSY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("RUST_LOG", "trace")
    assert cells.run(TCP, **LOSSY).digests() == before.digests()


CHANCE = """
import os, random, socket, threading, time, uuid
print(os.urandom(8).hex(), uuid.uuid4(), uuid.uuid1(), random.random(), hash("text"), id(object()), os.getpid())
print(time.time_ns(), time.monotonic_ns(), os.cpu_count(), os.uname())
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname())
def wait(number):
    time.sleep(random.random())
    print(number, time.monotonic_ns())
for number in range(8):
    threading.Thread(target=wait, args=[number]).start()
"""


def test_what_a_program_takes_for_chance_follows_from_the_seed(template: Template) -> None:
    first, again, other = (run(template, sys.executable, "-IS", "-c", CHANCE, seed=seed) for seed in (7, 7, 8))
    assert first.status == 0, first.errors
    assert again == first
    assert other.output != first.output


DRAWS = """
import os, time
print(os.urandom(32).hex())
time.sleep(100)
print(os.urandom(32).hex())
"""


def test_what_the_kernel_draws_follows_from_the_seed_alone(template: Template) -> None:
    # The kernel's image, its version, addresses and times have no part in it.
    ran = run(template, sys.executable, "-IS", "-c", DRAWS, seed=9)
    for minute, draw in zip((0, 1), ran.output.split(), strict=True):
        # The kernel draws too, for every program that it starts.
        assert bytes.fromhex(draw) in islice(guest_draws(9, minute=minute), 1000)
