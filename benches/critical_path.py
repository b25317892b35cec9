#!/usr/bin/env python3
"""Whether attribution names the packets that exchanges wait for (`make bench BENCH=critical_path`).

In virtual time each packet of a random cell is held back by a moment in turn. A packet in flight in an exchange's time
breakdown has to delay the exchange by as much. One that is not in it, and has none behind it that is, by nothing,
unless it is in flight while the exchange waits for something else, as a window or a recovery. Prints how many packets
contradict that, and lists them. No link has a rate: a queue takes up delays, and passes them on to others.
`benches/critical_path.py many` takes 200 cells in place of 10.
"""

import random
import sys
from dataclasses import dataclass
from pathlib import Path

import polars as pl
from common import Json, main

import crosswind
from crosswind.store.directory import Store
from crosswind.store.record import record_of
from crosswind.study.design import Study

FEW, MANY = 10, 200
HOLD_NS = 100_000
SAME = 0.02
"""Tolerance, relative to the hold."""
NOTHING_NS = 2_000
_NO_WAIT = "^(propagation|serialisation|client_host|server_host|late|request|reply)"
"""Parts without a wait for a window or a recovery."""
TRANSPORTS = ("tcp", "tls", "http1", "https1", "http2", "websocket", "quic", "http3", "webtransport")


@dataclass(frozen=True)
class Contradiction:
    """A packet whose delay is not what the time breakdown says. Times in ns."""

    cell: int
    what: str
    packet: tuple[str, int]
    expected_ns: int
    delayed_ns: int


def cell_of(number: int) -> Json:
    """A cell at random, by its number."""
    draw = random.Random(number)
    path: Json = {"delay": f"{draw.choice([1, 5, 10, 25, 60])}ms"}
    transport = draw.choice(TRANSPORTS)
    workload: Json = {
        "kind": "echo",
        "transport": transport,
        "messages": 3,
        "size": draw.choice([20, 200, 2000, 20000]),
    }
    workload["direction"] = draw.choice(["echo", "upload", "download"])
    if draw.random() < 0.3:
        path |= {"forward": {"loss": "3%"}}
    return {"path": path, "workload": workload, "host": {"clock": "virtual", "random_seed": 1}}


def contradictions(number: int, directory: Path) -> tuple[int, list[Contradiction]]:
    """How many packets of a cell its breakdown says something about, and those that contradict it."""
    document = {
        "title": "held",
        **cell_of(number),
        "study": {"repetitions": 1},
        "each_packet": [{"hold": f"{HOLD_NS}ns"}],
    }
    crosswind.run(Study.from_document(document, name="held"), output=directory)
    record = record_of(Store.read(directory))
    clean = next(run for run in record.cells if run.disturbed is None)
    pieces = clean.pieces()
    in_flight = pieces.filter(pl.col("part").str.starts_with("propagation")).select("direction", "index").rows()
    waits = pieces.filter(~pl.col("part").str.contains(_NO_WAIT)).select("from_ns", "to_ns").rows()
    samples = clean.samples.sort("exchange")
    packets = clean.packets.filter(pl.col("copy") == 0).select("direction", "index", "in_ns", "due_ns")
    sent = {(direction, index): in_ns for direction, index, in_ns, _ in packets.iter_rows()}
    due = {(direction, index): due_ns for direction, index, _, due_ns in packets.iter_rows()}
    held = [run for run in record.cells if run.disturbed is not None]
    found, checked = [], 0
    for run in held:
        assert run.disturbed is not None
        (packet,) = run.disturbed.packets
        if packet not in sent or sent[packet] < (samples["sent_ns"].min() or 0):
            continue
        expected = max((_moved(due, packet, critical) for critical in in_flight), default=0)
        if not expected and any(sent[packet] < end and due[packet] > start for start, end in waits):
            continue
        checked += 1
        delayed = _delayed(samples, run.samples.sort("exchange"))
        if abs(delayed - expected) > max(SAME * HOLD_NS, NOTHING_NS):
            workload = clean.parameters["workload"]
            what = f"{workload['transport']}, {workload['size_bytes']} bytes"
            found.append(Contradiction(number, what, packet, expected, delayed))
    return checked, found


def _moved(due: dict[tuple[str, int], int], held: tuple[str, int], critical: tuple[str, int]) -> int:
    """By how much a held packet moves one behind it: those in between wait."""
    if critical not in due or critical[0] != held[0] or critical[1] < held[1]:
        return 0
    return max(HOLD_NS - (due[critical] - due[held]), 0)


def _delayed(before: pl.DataFrame, after: pl.DataFrame) -> int:
    """By how much the first exchange that is delayed takes longer."""
    if before.height != after.height:
        return -1
    took = [(table["received_ns"] - table["sent_ns"]).to_list() for table in (before, after)]
    grown = [new - old for old, new in zip(*took, strict=True) if old is not None and new is not None]
    return next((more for more in grown if abs(more) > NOTHING_NS), 0)


def of_cells(cells: int, directory: Path) -> None:
    """Prints the contradictions of some cells."""
    held = 0
    found: list[Contradiction] = []
    for number in range(cells):
        count, own = contradictions(number, directory / str(number))
        held, found = held + count, found + own
    print(f"{cells} cells, {held} packets held: {len(found)} contradict the breakdown")
    for one in found:
        print(f"  cell {one.cell}, {one.what}: {one.packet[0]} {one.packet[1]}: {one.expected_ns} {one.delayed_ns} ns")


def few(directory: Path) -> None:
    """A first look."""
    of_cells(FEW, directory)


def many(directory: Path) -> None:
    """Some 15 minutes."""
    of_cells(MANY, directory)


if __name__ == "__main__":
    main({"few": few, "many": many} if "many" in sys.argv else {"few": few})
