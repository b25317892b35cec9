#!/usr/bin/env python3
"""How fast cells are in virtual time, beside the machine's clock (`make bench BENCH=virtual`).

Rates are of one guest on one processor. The two studies that are named `in full` take ten minutes together and run only
when they are asked for: `benches/virtual.py message-size transfer-time`. Needs the kernel (`make kernel`), and root for
the reference.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

from common import CELL, CROSSWIND, MILLISECOND, ROUNDS, Json, main, run_cell, show, spread, symmetric

from crosswind.cell.guests import GuestRequest, Template
from crosswind.cell.kernels import find_kernel


def in_guest(template: Template, workload: Json, path: Json, **host: str) -> tuple[Json, float, int]:
    """Runs one cell in virtual time. Returns its result, the machine's time that it took, and its system calls."""
    host = {**host, "clock": "virtual"}
    cell = {"schema": "crosswind.cell/1", "workload": workload, "path": path, "host": host}
    started = time.perf_counter()
    request = GuestRequest(seed=1, input=json.dumps(cell), environment={"PATH": os.defpath})
    guest = template.start(request, cpu=max(os.sched_getaffinity(0)))
    with guest.output as output, guest.errors:
        lines = [json.loads(line) for line in output]
    wall = time.perf_counter() - started
    return next(line for line in lines if line["event"] == "finished"), wall, guest.state().calls


TRANSFERS: dict[str, tuple[str, int, Json]] = {
    "20 MB over tcp, 100 ms, 2 % loss each way, 15 Mbit/s": (
        "tcp",
        20_000_000,
        symmetric(delay_ns=50 * MILLISECOND, loss=0.02, rate_bps=15_000_000),
    ),
    "100 MB over tcp, 25 ms, 0.1 % loss each way, 100 Mbit/s": (
        "tcp",
        100_000_000,
        symmetric(delay_ns=25 * MILLISECOND // 2, loss=0.001, rate_bps=100_000_000),
    ),
    "20 MB over quic, 25 ms, 100 Mbit/s": (
        "quic",
        20_000_000,
        symmetric(delay_ns=25 * MILLISECOND // 2, rate_bps=100_000_000),
    ),
}
EMULATORS = ("kernel", "process")


def packets(_directory: Path) -> None:
    """Packets a second of transfers: the emulator in the kernel, beside the one in a process, in turns."""
    template = Template(find_kernel(), Path(CELL))
    for name, (transport, size_bytes, path) in TRANSFERS.items():
        workload = {"kind": "transfer", "transport": transport, "size_bytes": size_bytes, "direction": "download"}
        in_guest(template, workload, path)
        rates: dict[str, list[float]] = {emulator: [] for emulator in EMULATORS}
        calls_each, virtual_s = {}, 0.0
        for emulator in EMULATORS * ROUNDS:
            result, wall, calls = in_guest(template, workload, path, emulator=emulator)
            count = sum(direction["in"] for direction in (result["ledger"]["forward"], result["ledger"]["reverse"]))
            rates[emulator].append(count / wall)
            calls_each[emulator], virtual_s = calls / count, result["elapsed_ns"] / 1e9
        kernel, process = (rates[emulator] for emulator in EMULATORS)
        show(
            f"{name}: packets a second of the machine's time, one processor ({virtual_s:.0f} s by the cell's clock)",
            f"{spread(kernel, 1, 'packets/s')}, {calls_each['kernel']:.2f} system calls a packet",
            f"{spread(process, 1, 'packets/s')}, {calls_each['process']:.2f}: the emulator in a process",
            f"{median(kernel) / median(process):.1f} times as many",
            "at least 20,000 packets/s over tcp",
        )
    template.close()


def echoes(_directory: Path) -> None:
    """300 echoes over 20 ms, from the request to the result."""
    template = Template(find_kernel(), Path(CELL))
    path = symmetric(delay_ns=10 * MILLISECOND)
    workload = {"kind": "echo", "transport": "tcp", "messages": 300}
    in_guest(template, workload, path)
    times = [in_guest(template, workload, path)[1] for _ in range(ROUNDS)]
    template.close()
    started = time.perf_counter()
    run_cell(workload, path=path)
    real = time.perf_counter() - started
    show(
        "300 echoes over 20 ms, the whole cell",
        spread(times, 1, "s"),
        f"{real:.2f} s on the machine's clock",
        f"{real / min(times):.0f} times faster",
        "under 0.3 s",
    )


def study(name: str, limit_s: float, directory: Path, *options: str) -> None:
    """A whole built-in study in virtual time."""
    run = directory / f"{name}-virtual"
    started = time.perf_counter()
    command = [*CROSSWIND, "run", name, *options, "--clock", "virtual", "--no-report", "--output", str(run)]
    status = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
    wall = time.perf_counter() - started
    results = [json.loads(path.read_text()) for path in run.glob("cells/*/result.json")]
    virtual = sum(result["finished"]["elapsed_ns"] for result in results if result["finished"]) / 1e9
    show(
        f"{name} {'in full' if not options else ' '.join(options)}, {len(results)} repetitions in virtual time",
        f"{wall:.0f} s (exit status {status})",
        f"{virtual:.0f} s of cells by their own clocks",
        f"{virtual / wall:.0f} s of cells a second, on {len(os.sched_getaffinity(0))} processors",
        f"at most {limit_s:.0f} s",
    )


def quick(directory: Path) -> None:
    """The quick variant of transfer-time."""
    study("transfer-time", 60, directory, "--quick")


def message_size(directory: Path) -> None:
    """The whole study message-size."""
    study("message-size", 300, directory)


def transfer_time(directory: Path) -> None:
    """The whole study transfer-time."""
    study("transfer-time", 600, directory)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        sys.argv += ["packets", "echoes", "quick"]
    main({
        "packets": packets,
        "echoes": echoes,
        "quick": quick,
        "message-size": message_size,
        "transfer-time": transfer_time,
    })  # fmt: skip
