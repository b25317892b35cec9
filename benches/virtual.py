#!/usr/bin/env python3
"""How fast cells are in virtual time, and how large they may be (`make bench BENCH=virtual`).

Both ways in one run, in turns: the emulator in the guest's kernel with receivers that wait for blocks, and the emulator
in a process with receivers that wake up for every packet. Rates are of one guest on one processor. The two studies in
full take up to ten minutes each and run only when they are asked for: `benches/virtual.py message-size transfer-time`.
Needs the kernel (`make kernel`), and root for the reference of `echoes`.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from common import CELL, CROSSWIND, MILLISECOND, Json, main, run_cell, show, spread, symmetric

from crosswind.cell.guests import GuestRequest, Template
from crosswind.cell.kernels import find_kernel
from crosswind.execution.workers.virtual import HEARTBEAT_NS

ROUNDS = 3
KERNEL: Json = {"emulator": "kernel"}
PROCESS: Json = {"emulator": "process"}
EVERY_PACKET: Json = {"block_bytes": 1}
GBIT = 1_000_000_000
CPU = max(os.sched_getaffinity(0))


@dataclass(frozen=True)
class Ran:
    """A cell that ran in virtual time. `memory_bytes` is the most that all its processes and its kernel had."""

    finished: Json
    wall_s: float
    calls: int
    memory_bytes: int

    @property
    def packets(self) -> int:
        """That entered the path."""
        return sum(self.finished["ledger"][direction]["in"] for direction in ("forward", "reverse"))

    @property
    def rate(self) -> float:
        """Packets a second of the machine's time."""
        return self.packets / self.wall_s

    @property
    def virtual_s(self) -> float:
        """By its own clock."""
        return float(self.finished["elapsed_ns"]) / 1e9


class FailedCellError(Exception):
    """A cell that did not finish, and why."""


def in_guest(
    template: Template,
    workload: Json,
    path: Json,
    host: Json,
    flows: list[Json] | None = None,
    *,
    output: Json | None = None,
    writable: Path | None = None,
) -> Ran:
    """Runs one cell in virtual time. Args: writable: for its output. Raises: FailedCellError."""
    cell: Json = {
        "schema": "crosswind.cell/1",
        "workload": workload,
        "path": path,
        "host": {**host, "clock": "virtual"},
    }
    if output is not None:
        cell["output"] = output
    cell |= {"flows": flows or [], "deadline_ns": 7200 * 1000 * MILLISECOND, "heartbeat_ns": HEARTBEAT_NS}
    started = time.perf_counter()
    environment = {"PATH": os.environ.get("PATH", os.defpath)}
    request = GuestRequest(seed=1, input=json.dumps(cell), writable=writable, environment=environment)
    guest = template.start(request, cpu=CPU)
    memory = Memory(guest.pid)
    with guest.output as events, guest.errors:
        lines = [json.loads(line) for line in events if line.startswith(b"{")]
    wall = time.perf_counter() - started
    finished = next((line for line in lines if line["event"] == "finished"), None)
    if finished is None:
        memory.most()
        failed: Json = next((line for line in lines if line["event"] == "error"), {})
        raise FailedCellError(failed.get("message") or guest.complaint() or "the guest ended")
    return Ran(finished, wall, guest.state().calls, memory.most())


class Memory:
    """The most memory of a guest: of its kernel, whose process has all pages of the guest that it ever touched."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self._most = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.05):
            with suppress(OSError, StopIteration):
                lines = self._status.read_text().splitlines()
                high = next(line for line in lines if line.startswith("VmHWM:"))
                self._most = max(self._most, int(high.split()[1]) * 1024)

    def most(self) -> int:
        """Ends the watch."""
        self._over.set()
        self._thread.join()
        return self._most


def template() -> Template:
    """A booted kernel."""
    return Template(find_kernel(), Path(CELL))


def download(transport: str, **settings: object) -> Json:
    """A workload: a download."""
    return {"kind": "transfer", "transport": transport, "direction": "download", **settings}


LONG = symmetric(delay_ns=25 * MILLISECOND // 2, loss=0.001, rate_bps=100_000_000)
SERVER = (
    "import socket\nsocket.setdefaulttimeout(60)\nlistener = socket.create_server(('', {port}))\n"
    "connection = listener.accept()[0]\nconnection.sendall(bytes(60_000_000))\nconnection.close()\n"
)
CLIENT = (
    "import socket\nconnection = socket.create_connection(('{server}', {port}))\nreceived = 0\n"
    "while data := connection.recv(65536):\n    received += len(data)\nassert received == 60_000_000, received\n"
)
PROGRAMS: Json = {
    "kind": "program",
    "server": [sys.executable, "-S", "-c", SERVER],
    "client": [sys.executable, "-S", "-c", CLIENT],
    "port": 8000,
}


@dataclass(frozen=True)
class Kind:
    """A cell of which packets are counted. `as_before` is what else is set for the way before."""

    name: str
    workload: Json
    path: Json
    target: str
    as_before: Json


KINDS = (
    Kind("100 MB over tcp", download("tcp", size_bytes=100_000_000), LONG, "at least 100,000 packets/s", EVERY_PACKET),
    Kind("60 MB over tcp, programs that read every packet (Python)", PROGRAMS, LONG, "at least 20,000 packets/s", {}),
    Kind("40 MB over tls", download("tls", size_bytes=40_000_000), LONG, "none", EVERY_PACKET),
    Kind("20 MB over quic", download("quic", size_bytes=20_000_000), LONG, "none", {}),
)


def packets(_directory: Path) -> None:
    """Packets a second of transfers, both ways in turns."""
    for kind in KINDS:
        guests = template()
        now: list[Ran] = []
        before: list[Ran] = []
        for _ in range(ROUNDS):
            now.append(in_guest(guests, kind.workload, kind.path, KERNEL))
            before.append(in_guest(guests, kind.workload | kind.as_before, kind.path, PROCESS))
        guests.close()
        rates = [[ran.rate for ran in runs] for runs in (now, before)]
        calls = [median(ran.calls / ran.packets for ran in runs) for runs in (now, before)]
        show(
            f"{kind.name}, 25 ms, 100 Mbit/s, 0.1 % loss: packets a second of the machine's time, one processor",
            f"{spread(rates[0], 1000, 'thousand/s')}, {calls[0]:.2f} system calls a packet",
            f"{spread(rates[1], 1000, 'thousand/s')}, {calls[1]:.2f}: the emulator in a process, a receiver that"
            " wakes up for every packet",
            f"{median(rates[0]) / median(rates[1]):.1f} times as many",
            kind.target,
        )


def echoes(_directory: Path) -> None:
    """300 echoes over 20 ms, from the request to the result."""
    guests = template()
    path = symmetric(delay_ns=10 * MILLISECOND)
    workload = {"kind": "echo", "transport": "tcp", "messages": 300}
    in_guest(guests, workload, path, KERNEL)
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(3 * ROUNDS):
        for walls, host in zip(times, (KERNEL, PROCESS), strict=True):
            walls.append(in_guest(guests, workload, path, host).wall_s)
    guests.close()
    started = time.perf_counter()
    run_cell(workload, path=path)
    real = time.perf_counter() - started
    now, before = map(median, times)
    show(
        "300 echoes over 20 ms, the whole cell",
        spread(times[0], 1, "s"),
        f"{spread(times[1], 1, 's')} with the emulator in a process; {real:.2f} s on the machine's clock",
        f"{before / now:.1f} times as fast, {real / now:.0f} times as fast as the machine's clock",
        "at most 0.12 s",
    )


CALLS = """
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>
int main(int count, char **arguments)
{
    struct timespec now;
    for (long left = atol(arguments[2]); left; left--)
        switch (*arguments[1]) {
        case 'c': syscall(SYS_getppid); break;
        case 't': clock_gettime(CLOCK_MONOTONIC, &now); break;
        default: __rdtsc();
        }
}
"""


def calls(directory: Path) -> None:
    """What a program's system calls and readings of the processor's counter and the clock take."""
    program = str(directory / "calls")
    subprocess.run(["gcc", "-O1", "-x", "c", "-", "-o", program], input=CALLS, text=True, check=True)
    guests = template()

    def wall_s(kind: str, count: int) -> float:
        started = time.perf_counter()
        guest = guests.start(GuestRequest(seed=1, input="", program=[program, kind, str(count)]), cpu=CPU)
        with guest.output as output, guest.errors:
            output.read()
        return time.perf_counter() - started

    def each_s(kind: str, count: int) -> list[float]:
        return [(wall_s(kind, count + 1_000) - wall_s(kind, 1_000)) / count for _ in range(ROUNDS)]

    call, read = each_s("call", 20_000), each_s("read", 20_000)
    # The clock is read in the page that all processes share.
    now = each_s("time", 2_000_000)
    guests.close()
    show(
        "a program's reading of the processor's counter (rdtsc)",
        spread(read, 1e-6, "us"),
        f"{spread(call, 1e-6, 'us')} for a system call that does nothing",
        f"{median(read) / median(call):.1f} times as long",
        "at most 2 times as long",
    )
    show(
        "a program's reading of the clock, in the page that all processes share",
        spread(now, 1e-6, "us"),
        f"{spread(call, 1e-6, 'us')} for a system call that does nothing",
        f"{median(now) / median(call):.3f} times as long",
        "at most 0.1 times as long",
    )


def breakdown(directory: Path) -> None:
    """100 MB over tcp with the breakdown of their time and without, in turns."""
    guests = template()
    workload = download("tcp", size_bytes=100_000_000)
    runs: dict[bool, list[float]] = {False: [], True: []}
    for asked in (False, True) * ROUNDS:
        place = directory / f"cell{len(runs[asked])}"
        place.mkdir(exist_ok=True)
        output: Json | None = {"directory": str(place), "spent": True} if asked else None
        runs[asked].append(in_guest(guests, workload, LONG, KERNEL, output=output, writable=place).wall_s)
    guests.close()
    show(
        "100 MB over tcp, 25 ms, 100 Mbit/s, 0.1 % loss, with the breakdown of their time",
        spread(runs[True], 1, "s"),
        f"{spread(runs[False], 1, 's')} without",
        f"{median(runs[True]) / median(runs[False]):.2f} times as long",
        "none",
    )


def study(name: str, limit_s: float, directory: Path, *options: str, as_before: bool = False) -> None:
    """A whole built-in study in virtual time, and before that the way before if asked for."""

    def timed(way: str, *more: str) -> tuple[float, float, int]:
        run = directory / f"{name}-{way}"
        started = time.perf_counter()
        command = [*CROSSWIND, "run", name, *options, *more, "--clock", "virtual", "--no-report", "--output", str(run)]
        status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
        wall = time.perf_counter() - started
        if status != 0:
            sys.exit(f"error: {' '.join(command)} failed with status {status}\nhint: run it without --no-report")
        results = [json.loads(path.read_text()) for path in run.glob("cells/*/result.json")]
        virtual = sum(result["finished"]["elapsed_ns"] for result in results if result["finished"]) / 1e9
        return wall, virtual, len(results)

    before = timed("before", "--set", "host.emulator=process", "--set", "workload.block=1B")[0] if as_before else None
    wall, virtual, count = timed("now", "--set", "host.emulator=kernel")
    ratio = f"{virtual / wall:.0f} s of cells a second, on {len(os.sched_getaffinity(0))} processors"
    show(
        f"{name} {'in full' if not options else ' '.join(options)}, {count} repetitions in virtual time",
        f"{wall:.1f} s",
        f"{virtual:.0f} s of cells by their own clocks" if before is None else f"{before:.1f} s the way before",
        ratio if before is None else f"{before / wall:.1f} times as fast; {ratio}",
        f"at most {limit_s:.0f} s",
    )


def quick(directory: Path) -> None:
    """The quick variant of transfer-time, both ways."""
    study("transfer-time", 20, directory, "--quick", as_before=True)


def minute(_directory: Path) -> None:
    """A minute of 1 Gbit/s, and three seconds of it the way before."""
    guests = template()
    path = symmetric(delay_ns=5 * MILLISECOND, rate_bps=GBIT)

    def run(seconds: int, host: Json, **settings: object) -> Ran:
        workload = download("tcp", duration_ns=seconds * 1000 * MILLISECOND, **settings)
        return in_guest(guests, workload, path, host)

    before, now = run(3, PROCESS, **EVERY_PACKET), run(60, KERNEL)
    guests.close()
    per_second = [ran.wall_s / ran.virtual_s for ran in (now, before)]
    show(
        "a minute of 1 Gbit/s over 10 ms, tcp",
        f"{now.wall_s:.1f} s: {now.packets:,} packets, {now.rate:,.0f} packets/s",
        f"{60 * per_second[1]:.0f} s the way before, from {before.virtual_s:.0f} s of it: {before.rate:,.0f} packets/s",
        f"{per_second[1] / per_second[0]:.1f} times as fast",
        "less than 60 s",
    )


def hour(directory: Path) -> Json:
    """A link that changes its rate every second for an hour, between 2 and 6 Mbit/s."""
    lines = [f"{second} {2 + second * 7919 % 41 / 10:.1f}" for second in range(3600)]
    file = directory / "hour.txt"
    file.write_text("\n".join(lines) + "\n")
    return {"trace": str(file), "columns": ["rate"], "of": "both"}


def scale(directory: Path) -> None:
    """How large a cell may be: memory and packets a second of large ones, and packets a second of many flows."""
    guests = template()
    shared = symmetric(delay_ns=10 * MILLISECOND, rate_bps=GBIT)
    large: Json = {"send_buffer_bytes": 64 << 20, "receive_buffer_bytes": 64 << 20}

    def of(seconds: float, count: int = 1) -> Callable[[], Ran]:
        workload = download("tcp", duration_ns=int(seconds * 1000) * MILLISECOND)
        flows = [{"name": "others", "count": count - 1, "workload": download("tcp")}] if count > 1 else []
        return lambda: in_guest(guests, workload, shared, KERNEL, flows)

    def far() -> Ran:
        path = symmetric(delay_ns=50 * MILLISECOND, rate_bps=GBIT, queue={"packets": 10_000})
        return in_guest(guests, download("tcp", duration_ns=5000 * MILLISECOND), path, KERNEL | large)

    def queue(packets: int) -> Ran:
        path = symmetric(delay_ns=MILLISECOND, rate_bps=100_000_000, queue={"packets": packets})
        workload = {"kind": "echo", "transport": "udp", "mode": "open", "size_bytes": 1200}
        workload |= {"messages": 3 * packets // 2, "rate_per_s": 50_000, "timeout_ns": 60_000 * MILLISECOND}
        return in_guest(guests, workload, path, KERNEL)

    def traced() -> Ran:
        path = {
            **symmetric(delay_ns=10 * MILLISECOND, rate_bps=4_000_000, queue={"packets": 100}),
            "changes": [hour(directory)],
        }
        return in_guest(guests, download("tcp", duration_ns=3_600_000 * MILLISECOND), path, KERNEL)

    cells: dict[str, Callable[[], Ran]] = {
        "1 flow, 1 Gbit/s, 20 ms": of(3),
        "8 flows, 1 Gbit/s, 20 ms": of(3, 8),
        "64 flows, 1 Gbit/s, 20 ms": of(3, 64),
        "1 Gbit/s x 100 ms": far,
        "a queue of 100,000 packets, filled by datagrams": lambda: queue(100_000),
        "a queue of 50,000 packets, filled by datagrams": lambda: queue(50_000),
        "an hour of a link whose rate changes every second": traced,
    }
    one = None
    for name, run in cells.items():
        try:
            ran = run()
        except FailedCellError as failed:
            show(name, f"failed: {failed}", "none", "none", "none")
            continue
        one = one or ran.rate
        show(
            f"{name}: {ran.packets:,} packets in {ran.virtual_s:.0f} s by the cell's clock",
            f"{ran.rate:,.0f} packets/s, {ran.memory_bytes / 2**20:.0f} MiB",
            f"{one:,.0f} packets/s with one flow",
            f"{1e6 / ran.rate:.1f} us a packet, {ran.rate / one:.2f} times as many packets/s",
            "none",
        )
    guests.close()


def message_size(directory: Path) -> None:
    """The whole study message-size."""
    study("message-size", 90, directory)


def transfer_time(directory: Path) -> None:
    """The whole study transfer-time."""
    study("transfer-time", 480, directory)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.argv += ["packets", "echoes", "calls", "breakdown", "quick", "minute", "scale"]
    main({
        "packets": packets,
        "echoes": echoes,
        "calls": calls,
        "breakdown": breakdown,
        "quick": quick,
        "minute": minute,
        "scale": scale,
        "message-size": message_size,
        "transfer-time": transfer_time,
    })  # fmt: skip
