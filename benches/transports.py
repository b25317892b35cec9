#!/usr/bin/env python3
"""What the transports add to the libraries they are made of (`make bench BENCH=transports`).

The reference comes from the same run: minimal programs that drive the same libraries plainly
(crates/transport/examples/minimal), with the same settings and on the same processors, because a cell pins a program
as it pins its own threads. The two alternate. Takes about three minutes and needs root. Nothing passes or fails.
"""

import json
import os
import statistics
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl
from common import HERE, Bench, Json, alternate, main, run_cell, samples, show, spread, stolen

MINIMAL = os.environ.get("CROSSWIND_MINIMAL", str(HERE.parent / "target" / "release" / "examples" / "minimal"))
DIRECT = {"backend": "direct"}
ADDRESS = "{server}:9000"
MESSAGES = 10_000
WARM_UP = 200
"""Round trips at the start that are not counted, here as in the minimal programs."""
BULK_BYTES = 200_000_000
LARGE_BYTES = 10_000_000
LARGE_MESSAGES = 40
TARGET = "at most 1.10"
"""Where Crosswind takes over a tenth more than the minimal program, it should be improved."""

TRANSPORTS: dict[str, Json] = {
    "tcp": {},
    "udp": {},
    "tls": {},
    "http1": {},
    "https1": {},
    "h2c": {},
    "http2": {},
    "http3": {},
    "websocket": {},
    "wss": {},
    "quic": {},
    "quic-datagram": {},
    "webtransport": {},
    "webtransport-datagram": {},
    "socketio-websocket": {"payload": "text"},
    "socketio-webtransport": {"payload": "text"},
}
"""Each transport with the settings for messages of one character."""


def run_minimal(directory: Path, transport: str, *arguments: str) -> tuple[Json, Json | None]:
    """Runs the minimal server and client, and returns the last JSON line of the client and of the server."""
    if not (directory / "key.der").exists():
        subprocess.run([MINIMAL, "certificate", directory], check=True)
    run_cell(
        {
            "kind": "program",
            "server": [MINIMAL, "server", transport, ADDRESS, str(directory)],
            "client": [MINIMAL, "client", transport, ADDRESS, str(directory), *arguments],
        },
        path=DIRECT,
        output=directory,
    )
    printed = [(directory / name).read_text().splitlines() for name in ("client.out", "server.out")]
    if not printed[0]:
        raise SystemExit(f"error: the minimal client of {transport} failed\n{(directory / 'client.err').read_text()}")
    return json.loads(printed[0][-1]), json.loads(printed[1][-1]) if printed[1] else None


def round_trip_ns(table: pl.DataFrame) -> float:
    """The median after the warm-up."""
    times = table.sort("exchange").slice(WARM_UP).select(pl.col("received_ns") - pl.col("sent_ns"))
    return float(times.to_series().median())  # type: ignore[arg-type]


def ratio_of(ours: list[float], theirs: list[float]) -> str:
    """Ratio of the medians, and the smallest and largest ratio of a round."""
    rounds = [a / b for a, b in zip(ours, theirs, strict=True)]
    middle = statistics.median(ours) / statistics.median(theirs)
    return f"{middle:.3f} of the reference [{min(rounds):.3f}, {max(rounds):.3f}]"


def compare(
    name: str,
    ours: Callable[[], float],
    theirs: Callable[[], float],
    *,
    scale: float,
    unit: str,
    reference: str,
    target: str,
) -> None:
    """Alternates the two, and shows their ratio."""
    before = stolen()
    a, b = alternate(ours, theirs)
    show(
        name,
        spread(a, scale, unit),
        f"{spread(b, scale, unit)}, {reference}",
        f"{ratio_of(a, b)}, {len(a)} rounds; taken by the hypervisor meanwhile: {stolen() - before:.2f} s",
        target,
    )


def echo(transport: str, directory: Path) -> None:
    """A character there and back."""
    workload = {"kind": "echo", "transport": transport, "messages": MESSAGES, **TRANSPORTS[transport]}

    def ours() -> float:
        run_cell(workload, path=DIRECT, output=directory)
        return round_trip_ns(samples(directory))

    compare(
        f"Echo of one character over {transport}, direct path, median of {MESSAGES - WARM_UP} round trips",
        ours,
        lambda: float(run_minimal(directory, transport, "echo", str(MESSAGES))[0]["p50_ns"]),
        scale=1e3,
        unit="us",
        reference="minimal program on the same library",
        target=TARGET,
    )


def large(directory: Path) -> None:
    """Ten megabytes in one message over WebSocket, beside the same over HTTP/1.1."""

    def median_ns(transport: str) -> float:
        run_cell(
            {
                "kind": "echo", "transport": transport, "direction": "upload",
                "size_bytes": LARGE_BYTES, "messages": LARGE_MESSAGES,
            },
            path=DIRECT, output=directory,
        )  # fmt: skip
        table = samples(directory)
        return float((table["received_ns"] - table["sent_ns"]).median())  # type: ignore[arg-type]

    compare(
        f"10 MB from the client to the server over websocket, direct path, median of {LARGE_MESSAGES}",
        partial(median_ns, "websocket"),
        partial(median_ns, "http1"),
        scale=1e6,
        unit="ms",
        reference="http1",
        target="none: what a user of the two libraries gets",
    )


def bulk(transport: str, direction: str, directory: Path) -> None:
    """Many bytes one way: their rate, and the processor time of both ends for each byte."""
    costs: dict[str, list[float]] = {"ours": [], "theirs": []}

    def ours() -> float:
        result = run_cell(
            {"kind": "transfer", "transport": transport, "direction": direction, "size_bytes": BULK_BYTES},
            path=DIRECT, output=directory,
        )  # fmt: skip
        row = samples(directory).row(0, named=True)
        costs["ours"].append((result["cpu"]["client_ns"] + result["cpu"]["server_ns"]) / row["received_bytes"])
        return float(8e9 * row["received_bytes"] / (row["received_ns"] - row["sent_ns"]))

    def theirs() -> float:
        client, server = run_minimal(directory, f"{transport}-bulk", direction, str(BULK_BYTES))
        costs["theirs"].append((client["cpu_ns"] + (server or {})["cpu_ns"]) / client["bytes"])
        return float(8e9 * client["bytes"] / client["elapsed_ns"])

    name = f"{BULK_BYTES // 1_000_000} MB {direction} over {transport}, direct path"
    reference = "minimal program on the same library, without copies"
    compare(name, ours, theirs, scale=1e9, unit="Gbit/s", reference=reference, target="at least 0.9")
    show(
        f"{name}: processor time for each byte, both ends",
        spread(costs["ours"], 1, "ns"),
        spread(costs["theirs"], 1, "ns"),
        ratio_of(costs["ours"], costs["theirs"]),
        "none: what the rate is made of",
    )


if __name__ == "__main__":
    every: dict[str, Bench] = {f"echo-{transport}": partial(echo, transport) for transport in TRANSPORTS}
    every["large"] = large
    for carrier in ("quic", "http3"):
        for way in ("download", "upload"):
            every[f"bulk-{carrier}-{way}"] = partial(bulk, carrier, way)
    main(every)
