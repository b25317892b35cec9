"""Measures how fast a round trip in Chromium is at best, and how long the browser takes to start, on this machine.

    python packaging/chromium_floor.py [docs/peers-chromium.md] [--repetitions 6] [--messages 1000]

Each repetition starts a browser, which sends messages of one byte over loopback to Crosswind's own server, one in
flight. The table is printed, or written into the page between `<!-- table: floor -->` and `<!-- end -->`.
"""

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from crosswind.catalog import catalog
from crosswind.cell.binary import find_binary
from crosswind.errors import CrosswindError
from crosswind.files.safe_path import python_command
from crosswind.peers.chromium.job import TRANSPORTS
from crosswind.text.sections import fill_sections

_TIMEOUT_NS = 5_000_000_000


@dataclass
class Floor:
    """What was measured of one transport: a value for each repetition."""

    median_us: list[float] = field(default_factory=list)
    p99_us: list[float] = field(default_factory=list)
    start_s: list[float] = field(default_factory=list)
    whole_s: list[float] = field(default_factory=list)

    def extend(self, other: "Floor") -> None:
        """Adds the repetitions of another."""
        for name, values in vars(other).items():
            getattr(self, name).extend(values)


def measure_repetition(transport: str, messages: int) -> tuple[str, Floor]:
    """One repetition. Returns the browser's name too. Raises: CrosswindError when an exchange did not succeed."""
    settings = json.dumps({"transport": transport, "address": "127.0.0.1:0"})
    server = subprocess.Popen([find_binary(), "--serve", settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert server.stdin is not None
    try:
        listening = json.loads(server.stdout.readline())
        began = time.monotonic()
        lines, ready_s = _run(_job(transport, messages, listening))
        whole_s = time.monotonic() - began
    finally:
        server.stdin.close()
        server.wait()
    samples = [line for line in lines if line["event"] == "sample"]
    failed = [sample for sample in samples if sample["outcome"] != "ok"]
    if lines[-1]["event"] != "finished" or failed or len(samples) != messages:
        raise CrosswindError(f"{transport} does not work in Chromium: {(failed or lines)[-1]}")
    times_us = [(sample["received_ns"] - sample["sent_ns"]) / 1e3 for sample in samples]
    floor = Floor([median(times_us)], [quantiles(times_us, n=100)[-1]], [ready_s], [whole_s])
    return str(lines[0]["implementation"]), floor


def _job(transport: str, messages: int, listening: Mapping[str, Any]) -> Mapping[str, object]:
    echo = catalog().workloads["echo"]
    workload = {"transport": transport, "size_bytes": 1, "messages": messages, "timeout_ns": _TIMEOUT_NS}
    address, _, port = listening["address"].rpartition(":")
    return {
        "schema": "crosswind.peer/1",
        "role": "client",
        "address": address,
        "port": int(port),
        "workload": {"kind": echo.kind, **echo.defaults, **workload},
        "certificate_pem": listening["certificate_pem"],
        "certificate_sha256": listening["certificate_sha256"],
    }


def _run(job: Mapping[str, object]) -> tuple[Sequence[Mapping[str, Any]], float]:
    """The events of the peer, and after how many seconds the first one came."""
    began = time.monotonic()
    command = python_command("-m", "crosswind.peers.chromium")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as peer:
        assert peer.stdin is not None
        assert peer.stdout is not None
        peer.stdin.write(json.dumps(job))
        peer.stdin.close()
        first = peer.stdout.readline()
        ready_s = time.monotonic() - began
        return [json.loads(line) for line in (first, *peer.stdout)], ready_s


def table(floors: Mapping[str, Floor], name: str, messages: int, load: float) -> Iterator[str]:
    """The lines of the table. Args: load: of the machine, before."""
    repetitions = len(next(iter(floors.values())).median_us)
    # Smallest and largest of n values enclose the median of what they are from with probability 1 - 2 / 2^n.
    confidence = 100 * (1 - 2 ** (1 - repetitions))
    date = datetime.datetime.now(datetime.UTC).date().isoformat()
    machine = f"{platform.system()} {platform.release()}, {os.cpu_count()} processors, load {load:.1f} before"
    yield f"{name}, {machine}, {date}."
    yield f"{repetitions} repetitions of {messages} messages; of each number the median over repetitions, and its"
    yield f"interval from the smallest to the largest, which encloses the true median with {confidence:.1f} %."
    yield ""
    yield "| transport | round trip, us | p99, us | start, s | all of it, s |"
    yield "| --- | --- | --- | --- | --- |"
    for transport, floor in floors.items():
        times = [_interval(floor.median_us, 0), _interval(floor.p99_us, 0)]
        seconds = [_interval(floor.start_s, 2), _interval(floor.whole_s, 2)]
        yield f"| {transport} | {' | '.join([*times, *seconds])} |"


def _interval(values: Sequence[float], digits: int) -> str:
    return f"{median(values):.{digits}f} [{min(values):.{digits}f}, {max(values):.{digits}f}]"


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("page", type=Path, nargs="?")
    parser.add_argument("--repetitions", type=int, default=6)
    parser.add_argument("--messages", type=int, default=1000)
    asked = parser.parse_args()
    floors: dict[str, Floor] = {transport: Floor() for transport in TRANSPORTS}
    load, name = os.getloadavg()[0], ""
    try:
        for repetition in range(asked.repetitions):
            # Another order each time, so that drift is no difference.
            order = TRANSPORTS[repetition:] + TRANSPORTS[:repetition]
            for transport in order:
                name, floor = measure_repetition(transport, asked.messages)
                floors[transport].extend(floor)
            print(f"{repetition + 1} of {asked.repetitions}", file=sys.stderr)
    except CrosswindError as error:
        sys.exit(f"error: {error.message}")
    lines = "\n".join(table(floors, name, asked.messages, load))
    if asked.page is None:
        print(lines)
        return
    page = asked.page.read_text(encoding="utf-8")
    asked.page.write_text(fill_sections(page, "table", {"floor": lambda: f"{lines}\n"}), encoding="utf-8")


if __name__ == "__main__":
    main()
