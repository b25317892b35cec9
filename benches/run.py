#!/usr/bin/env python3
"""Speed and fidelity of one cell, each figure beside a reference from the same run (`make bench`).

Nothing here passes or fails.

Every comparison is interleaved (A B A B ...): the machine's speed drifts, the ratio of medians does not.
Needs root and a C compiler.
"""

import statistics
import subprocess
from pathlib import Path

import polars as pl
from common import (
    HERE,
    MILLISECOND,
    ROUNDS,
    Json,
    alternate,
    main,
    run_cell,
    samples,
    show,
    spread,
    stolen,
    symmetric,
)


def throughput(directory: Path) -> None:
    """Bulk TCP through the emulator, one packet at a time, against a veth pair without offloads."""
    bulk = {"kind": "transfer", "transport": "tcp", "duration_ns": 3000 * MILLISECOND}
    lost = {True: 0, False: 0}

    def rate(path: Json) -> float:
        result = run_cell(bulk, path=path, output=directory)
        ledger = result["ledger"]
        lost["backend" in path] += sum(sum(ledger[side]["dropped"].values()) for side in ("forward", "reverse"))
        return float(8 * samples(directory)["received_bytes"].item() / 3)

    emulated, direct = alternate(lambda: rate(symmetric(delay_ns=MILLISECOND)), lambda: rate({"backend": "direct"}))
    ratio = statistics.median(emulated) / statistics.median(direct)
    show(
        "TCP throughput, 1 ms each way, MTU 1500",
        spread(emulated, 1e9, "Gbit/s"),
        spread(direct, 1e9, "Gbit/s") + ", direct path",
        f"{ratio:.2f} of the direct path; packets lost: {lost[False]} here, {lost[True]} on the direct path",
        "at least 0.30, 0 lost",
    )


def delay_error(directory: Path) -> None:
    """Actual minus due release time, and how much later than the delay a message is at the server's program."""
    for rate in (1_000, 10_000):
        workload = {
            "kind": "echo", "transport": "udp", "mode": "open", "rate_per_s": rate,
            "messages": 5 * rate, "size_bytes": 100,
        }  # fmt: skip
        p50, p99, largest, late, busy = [], [], [], [], []
        before = stolen()
        for _ in range(ROUNDS):
            result = run_cell(workload, path=symmetric(delay_ns=5 * MILLISECOND), output=directory)
            error = result["fidelity"]["delay_error_ns"]
            p50.append(error["p50"])
            p99.append(error["p99"])
            largest.append(error["max"])
            late.append(float((samples(directory)["request_ns"] - 5 * MILLISECOND).median()))  # type: ignore[arg-type]
            busy.append(result["cpu"]["emulator_ns"] / result["elapsed_ns"])
        show(
            f"Delay error at {rate} packets/s each way, {ROUNDS} runs of {10 * rate} packets",
            f"p50 {spread(p50, 1e3, 'us')}, p99 {spread(p99, 1e3, 'us')}, max {max(largest) / 1e6:.1f} ms",
            f"program to program, beyond the delay: p50 {spread(late, 1e3, 'us')} (both hosts' kernels included)",
            f"emulator's thread: {statistics.median(busy):.0%} of a processor; taken by the hypervisor meanwhile: "
            f"{stolen() - before:.2f} s",
            "p50 at most 25 us, p99 at most 250 us",
        )


def echo(directory: Path) -> None:
    """Echo of one byte on the direct path, against the smallest blocking program."""
    reference = directory / "ping_pong"
    subprocess.run(["cc", "-O2", "-o", reference, HERE / "ping_pong.c"], check=True)
    count = 20_000
    for transport in ("tcp", "udp"):

        def ours(transport: str = transport) -> float:
            run_cell(
                {"kind": "echo", "transport": transport, "messages": count},
                path={"backend": "direct"}, output=directory,
            )  # fmt: skip
            table = samples(directory)
            return float((table["received_ns"] - table["sent_ns"]).median())  # type: ignore[arg-type]

        def theirs(transport: str = transport) -> float:
            run_cell(
                {
                    "kind": "program",
                    "server": [str(reference), transport, "server"],
                    "client": [str(reference), transport, "{server}", str(count)],
                },
                path={"backend": "direct"},
                output=directory,
            )
            return float((directory / "client.out").read_text())

        a, b = alternate(ours, theirs)
        ratio = statistics.median(a) / statistics.median(b)
        show(
            f"Echo of one byte over {transport}, direct path, median round trip",
            spread(a, 1e3, "us"),
            spread(b, 1e3, "us") + ", blocking C program, same processors",
            f"{ratio:.3f} of the reference",
            "at most 1.10",
        )


def memory(directory: Path) -> None:
    """Peak memory of a cell that records a million packets."""
    bulk = {"kind": "transfer", "transport": "tcp", "duration_ns": 6000 * MILLISECOND}
    idle = run_cell({"kind": "echo", "transport": "tcp", "messages": 1}, path=symmetric(delay_ns=MILLISECOND))
    result = run_cell(bulk, path=symmetric(delay_ns=MILLISECOND), output=directory, packets=True)
    rows = pl.scan_ipc(directory / "packets.arrow").select(pl.len()).collect().item()
    ledger = result["ledger"]
    entered = ledger["forward"]["in"] + ledger["reverse"]["in"]
    show(
        "Peak memory with packet records",
        f"{result['peak_memory_bytes'] / 1e6:.0f} MB with {rows} records on disk ({entered} packets in the ledger)",
        f"{idle['peak_memory_bytes'] / 1e6:.0f} MB for one message",
        f"{(result['peak_memory_bytes'] - idle['peak_memory_bytes']) / max(rows, 1):.0f} bytes a record",
        "under 300 MB at a million records",
    )


if __name__ == "__main__":
    main({"throughput": throughput, "delay-error": delay_error, "echo": echo, "memory": memory})
