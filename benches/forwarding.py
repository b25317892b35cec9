#!/usr/bin/env python3
"""The emulator: how fast packets go through it, and how punctual they are (`make bench BENCH=forwarding`).

Every comparison is interleaved (A B A B ...): the machine's speed drifts, and interleaving keeps that
out of the ratio of the medians. Needs root.
"""

import statistics
from pathlib import Path

from common import MILLISECOND, ROUNDS, Json, alternate, main, run_cell, samples, show, spread, stolen, symmetric


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
        "at least 0.55, 0 lost",
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
            "p50 at most 1 us, p99 at most 25 us, alone",
        )


if __name__ == "__main__":
    main({"throughput": throughput, "delay-error": delay_error})
