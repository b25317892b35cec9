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

from common import CELL, CROSSWIND, MILLISECOND, ROUNDS, Json, main, run_cell, show, spread, symmetric

from crosswind.cell.guests import GuestRequest, Template
from crosswind.cell.kernels import find_kernel


def in_guest(template: Template, workload: Json, path: Json) -> tuple[Json, float, int]:
    """Runs one cell in virtual time. Returns its result, the machine's time that it took, and its system calls."""
    cell = {"schema": "crosswind.cell/1", "workload": workload, "path": path, "host": {"clock": "virtual"}}
    started = time.perf_counter()
    request = GuestRequest(seed=1, input=json.dumps(cell), environment={"PATH": os.defpath})
    guest = template.start(request, cpu=max(os.sched_getaffinity(0)))
    with guest.output as output, guest.errors:
        lines = [json.loads(line) for line in output]
    wall = time.perf_counter() - started
    return next(line for line in lines if line["event"] == "finished"), wall, guest.state().calls


def packets(_directory: Path) -> None:
    """Packets a second of a lossy transfer."""
    template = Template(find_kernel(), Path(CELL))
    path = symmetric(delay_ns=50 * MILLISECOND, loss=0.02, rate_bps=15_000_000)
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 20_000_000, "direction": "download"}
    in_guest(template, workload, path)
    rates, virtual_s, calls_each = [], 0.0, 0.0
    for _ in range(ROUNDS):
        result, wall, calls = in_guest(template, workload, path)
        count = sum(direction["in"] for direction in (result["ledger"]["forward"], result["ledger"]["reverse"]))
        rates.append(count / wall)
        virtual_s, calls_each = result["elapsed_ns"] / 1e9, calls / count
    template.close()
    show(
        "20 MB over tcp, 2 % loss each way, 15 Mbit/s: packets a second of the machine's time, one processor",
        spread(rates, 1, "packets/s"),
        f"{virtual_s:.0f} s on the machine's clock, by the cell's own",
        f"{calls_each:.1f} system calls a packet, all processes of the guest",
        "at least 10,000 packets/s, at most 8 system calls",
    )


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
