"""Whether the parts of every exchange's time sum to the whole, in random cells of virtual time.

    PYTHONPATH=python:tests python -m coverage.parts --samples 100000 --seed 1

Each cell has a workload, a transport, a path and host settings by chance. A cell fails where a part is negative, where
the parts do not sum to the whole, or where the whole is not what the client measured. It also counts
`unknown`, and says where it is.
"""

import argparse
import random
import time
from collections import Counter
from collections.abc import Iterator

import polars as pl

from crosswind.catalog import catalog
from crosswind.errors import CrosswindError
from crosswind.execution.virtual import VirtualCell, virtual

Settings = dict[str, object]


def main() -> None:
    """Draws cells until they have so many samples, on one processor, and prints what failed and what was counted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    end = time.monotonic() + asked.seconds
    cells = samples = failed = refused = 0
    unknown: Counter[str] = Counter()
    taken: Counter[str] = Counter()
    unknown_ns: Counter[str] = Counter()
    taken_ns: Counter[str] = Counter()
    number = asked.seed * 1_000_000
    while samples < asked.samples and time.monotonic() < end:
        number += 1
        chance = random.Random(number)
        path, workload, host = drawn_path(chance), drawn_workload(chance), drawn_host(chance)
        try:
            cell = virtual(path, workload=workload, host=host, seed=number)
        except CrosswindError as error:
            refused += 1
            print(f"{number}: {workload} {path} {host}: {error.message}", flush=True)
            continue
        cells, samples = cells + 1, samples + cell.spent.height
        for problem in problems(cell, str(workload["kind"])):
            failed += 1
            print(f"FAILED {number}: {workload} {path} {host}: {problem}", flush=True)
        for told in unknown_pieces(cell):
            print(f"unknown {number}: {workload} {path} {host}: {told}", flush=True)
        transport = f"{workload['kind']} over {workload['transport']}"
        unknown[transport] += int((cell.spent["unknown_ns"] > 0).sum())
        taken[transport] += cell.spent.height
        unknown_ns[transport] += cell.spent["unknown_ns"].sum()
        taken_ns[transport] += cell.spent["whole_ns"].sum()
    print(f"{samples} samples of {cells} cells: {failed} failed; {refused} cells refused")
    for transport, count in sorted(taken.items()):
        share = unknown_ns[transport] / max(1, taken_ns[transport])
        print(f"  {transport}: {count} samples, {unknown[transport]} with an unknown part: {share:.1%} of their time")


def problems(cell: VirtualCell, kind: str) -> Iterator[str]:
    """What is wrong with the parts of a cell's exchanges."""
    parts = cell.spent.drop("exchange", "whole_ns")
    if cell.spent.height and min(value for value in parts.min().row(0)) < 0:
        yield "a negative part"
    if parts.sum_horizontal().to_list() != cell.spent["whole_ns"].to_list():
        yield "parts that do not sum to the whole"
    measured = cell.samples.filter(pl.col("outcome") == "ok")
    if cell.spent["exchange"].to_list() != measured["exchange"].to_list():
        yield "other exchanges than those that succeeded"
        return
    took = measured.select((pl.col("received_ns") - pl.col("sent_ns")).fill_null(pl.col("connect_ns"))).to_series()
    whole = cell.spent["whole_ns"]
    # The bytes of a transfer end at the server, where the client may not have seen it yet.
    if not ((whole >= took) if kind == "transfer" else (whole == took)).all():
        yield "another time than the client measured"


def unknown_pieces(cell: VirtualCell) -> Iterator[str]:
    """Where time has no name, the longest first, of the exchanges whose pieces are kept."""
    pieces = cell.pieces.filter(part="unknown").with_columns(ns=pl.col("to_ns") - pl.col("from_ns"))
    for row in pieces.sort("ns", descending=True).head(3).iter_rows(named=True):
        packet = "" if row["index"] is None else f", packet {row['index']} {row['direction']}"
        yield f"{row['ns'] / 1e6:.3f} ms of exchange {row['exchange']} at {row['from_ns'] / 1e6:.3f} ms{packet}"


def drawn_path(chance: random.Random) -> Settings:
    """A path."""
    delay_ms = chance.choice([0, 1, 5, 20, 80])
    path: Settings = {"delay": f"{delay_ms}ms"}
    if chance.random() < 0.7:
        path["loss"] = f"{chance.choice([0.5, 2, 5, 15])}%"
    if chance.random() < 0.5:
        path |= {"rate": chance.choice(["1mbit", "10mbit", "100mbit"]), "queue": chance.choice(["5p", "50p", "100kB"])}
    if delay_ms and chance.random() < 0.3:
        path |= {"jitter": f"{chance.choice([0.2, 1]) * delay_ms}ms", "reorder": chance.random() < 0.5}
    if chance.random() < 0.1:
        path["duplicate"] = "3%"
    return path


def drawn_workload(chance: random.Random) -> Settings:
    """A workload over a transport that can carry it."""
    kind = chance.choice(["echo", "echo", "echo", "connect", "transfer", "multiplex", "page"])
    transport = chance.choice(catalog().workloads[kind].transports)
    small = "datagram" in transport or transport == "udp"
    workload: Settings = {"kind": kind, "transport": transport}
    if kind == "connect":
        return workload | {"count": 20}
    if kind == "page":
        return workload | {"count": 4, "images": chance.choice([0, 15])}
    if kind == "transfer":
        workload["direction"] = chance.choice(["upload", "download"])
        sized = {"size": chance.choice(["1kB", "20kB", "200kB"]), "count": 4}
        return workload | ({"duration": "1s"} if chance.random() < 0.3 else sized)
    workload["size"] = f"{chance.choice([1, 100, 800] if small else [1, 1000, 5000, 40000])}B"
    if kind == "multiplex":
        workload["size"] = f"{chance.choice([20, 200, 800])}B"
        return workload | {"messages": 100, "streams": chance.choice([2, 8]), "rate": chance.choice([50, 400])}
    if chance.random() < 0.4:
        return workload | {"messages": 150, "mode": "open", "rate": chance.choice([20, 200])}
    return workload | {"messages": 100, "connections": chance.choice([1, 1, 4])}


def drawn_host(chance: random.Random) -> Settings:
    """Settings of the hosts."""
    host: Settings = {"congestion_control": chance.choice(["cubic", "bbr", "reno"]), "emulator": "kernel"}
    if chance.random() < 0.3:
        host["nodelay"] = chance.random() < 0.5
    if chance.random() < 0.2:
        host |= {"receive_buffer": "32KiB"}
    if chance.random() < 0.2:
        host |= {"send_buffer": "32KiB"}
    if chance.random() < 0.2:
        host |= {chance.choice(["http2_stream_window", "http2_connection_window"]): "65535B"}
    return host


if __name__ == "__main__":
    main()
