"""Cells for the real crosswind-cell, and their results."""

import json
import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl

# A busy machine makes cells invalid, rightly. These tests check other things and accept any fidelity.
ANY_FIDELITY = {
    "delay_error_p99_ns": 3_600_000_000_000,
    "starvation": 1.0,
    "probe_starvation": 1.0,
    "exchange_delay_ns": 3_600_000_000_000,
}
# With no loss on the path, a host that is held up must not send anything twice: then packets can be counted.
NEVER_TWICE = {"tail_loss_probe": False, "min_rto_ns": 60_000_000_000}
# Bounds a cell that hangs; no cell here takes a tenth of it.
DEADLINE_NS = 50_000_000_000
DIRECTIONS = ("forward", "reverse")
KEPT_BYTES = 16 << 20
"""Of the beginning, and of the end, of what a program writes."""

Object = dict[str, Any]


def ms(value: float) -> int:
    """Milliseconds as nanoseconds."""
    return round(value * 1_000_000)


OF_PATH = ("backend", "family", "mtu_bytes", "forward", "reverse", "hops", "changes")


def cell_of(workload: Object, **sections: Any) -> Object:
    """A cell: what `OF_PATH` lists goes into its path, the rest beside it."""
    path = {key: sections.pop(key) for key in OF_PATH if key in sections}
    return {
        "schema": "crosswind.cell/1",
        "path": path,
        "workload": workload,
        "budget": ANY_FIDELITY,
        "deadline_ns": DEADLINE_NS,
        **sections,
    }


class CellOutput(ABC):
    """What a cell left: its ledger, and the files in its output directory, which have to agree with it."""

    directory: Path

    @property
    @abstractmethod
    def result(self) -> Object:
        """The `finished` event of a cell whose result is valid."""

    def book(self, direction: str) -> Object:
        """The ledger of one direction."""
        return dict(self.result["ledger"][direction])

    def packets(self, direction: str | None = None) -> pl.DataFrame:
        """packets.arrow, in the order of the index, once it agrees with the ledger."""
        table = pl.read_ipc((self.directory / "packets.arrow").read_bytes()).sort("direction", "index", "copy")
        for each in DIRECTIONS:
            assert_agree(table.filter(pl.col("direction") == each), self.book(each))
        return table if direction is None else table.filter(pl.col("direction") == direction)

    def samples(self) -> pl.DataFrame:
        """samples.arrow, once it agrees with the result's counts."""
        table = pl.read_ipc((self.directory / "samples.arrow").read_bytes())
        own = table.filter(pl.col("flow") == 0)
        ok = int((own["outcome"] == "ok").sum())
        counts = self.result["samples"]
        assert (counts["rows"], counts["ok"], counts["lost"]) == (len(own), ok, len(own) - ok)
        failed = table.filter(pl.col("outcome") != "ok").group_by("outcome").len()
        assert {cause["outcome"]: cause["count"] for cause in counts["outcomes"]} == dict(failed.iter_rows())
        return table

    def dropped(self, direction: str) -> list[int]:
        """The indices of the packets that did not arrive."""
        return self.packets(direction).filter(pl.col("verdict") == "dropped")["index"].to_list()

    def text(self, name: str) -> str:
        """A file of the output directory."""
        return (self.directory / name).read_text("utf-8")

    def files(self) -> set[str]:
        """The names in the output directory."""
        return {path.name for path in self.directory.iterdir()}


@dataclass(frozen=True)
class Ended(CellOutput):
    """A crosswind-cell that has ended."""

    status: int
    out: str
    err: str
    directory: Path

    @property
    def events(self) -> list[Object]:
        """Every line of its standard output."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def names(self) -> list[str]:
        """The names of the events but for progress, in order."""
        return [event["event"] for event in self.events if event["event"] != "progress"]

    @property
    def result(self) -> Object:
        """The `finished` event of a cell that ran and whose ledger is closed."""
        assert (self.status, self.err) == (0, ""), self.out + self.err
        assert self.names == ["started", "ready", "finished"]
        result = self.events[-1]
        assert (result["valid"], result["reasons"]) == (True, []), result["reasons"]
        assert_closed(result["ledger"])
        return result

    @property
    def error(self) -> Object:
        """The `error` event of a cell that could not: the only and last one, with nothing on standard error."""
        assert self.err == ""
        assert [name for name in self.names if name in ("error", "finished")] == ["error"], self.out
        assert self.events[-1]["event"] == "error"
        return self.events[-1]


def assert_closed(ledger: Object) -> None:
    """Every packet is accounted for."""
    assert ledger["closed"]
    for direction in DIRECTIONS:
        book = ledger[direction]
        assert book["in"] + book["duplicated"] == book["delivered"] + sum(book["dropped"].values()) + book["queued"]


def left_out_warning(end: str, kind: str, *, left_out: int) -> dict[str, str | None]:
    """What a result says of a program of which not everything was kept."""
    kept = "the first 16 MiB and the last 16 MiB"
    text = f"{end}.{kind} has {kept} of what the {end} wrote: {left_out} bytes between them are left out"
    return {"name": "output_shortened", "text": text, "hint": None}


def assert_shortened(file: Path, *, left_out: int) -> None:
    """A file has the beginning and the end of "first", zeros and "last", each in a line of its own."""
    mark = f"\n[{left_out} bytes are left out here]\n".encode()
    text = file.read_bytes()
    assert len(text) == 2 * KEPT_BYTES + len(mark)
    first, found, last = text[:KEPT_BYTES], text[KEPT_BYTES:-KEPT_BYTES], text[-KEPT_BYTES:]
    assert first == b"first\n" + bytes(KEPT_BYTES - 6)
    assert found == mark
    assert last == bytes(KEPT_BYTES - 5) + b"last\n"


def assert_agree(packets: pl.DataFrame, book: Object) -> None:
    """One direction's packet records and its ledger say the same."""
    originals = packets.filter(pl.col("copy") == 0)
    assert originals["index"].to_list() == list(range(book["in"]))
    assert len(packets) - len(originals) == book["duplicated"]
    verdicts = packets["verdict"]
    causes = packets["cause"].drop_nulls().to_list()
    assert int((verdicts == "delivered").sum()) == book["delivered"]
    assert int((verdicts == "queued").sum()) == book["queued"]
    assert {cause: causes.count(cause) for cause in book["dropped"]} == book["dropped"]
    assert packets["cause"].is_not_null().to_list() == (verdicts == "dropped").to_list()
    assert packets["out_ns"].is_not_null().to_list() == (verdicts == "delivered").to_list()
    assert originals["size_bytes"].sum() == book["in_bytes"]
    assert len(packets.filter((verdicts == "delivered") & packets["flipped_bit"].is_not_null())) == book["corrupted"]
    assert packets.filter(verdicts == "delivered")["size_bytes"].sum() == book["delivered_bytes"]


@dataclass
class Lab:
    """Runs cells, each with an output directory of its own."""

    binary: Path
    home: Path
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def directory(self) -> Path:
        """A new, empty directory."""
        path = self.home / f"cell-{sum(1 for _ in self.home.glob('cell-*'))}"
        path.mkdir()
        return path

    def start(self, cell: Object | str | bytes, *, command: Sequence[str] = (), **more: Any) -> subprocess.Popen[str]:
        """Starts a cell and hands it its standard input; `command` comes before the name of the binary."""
        given = json.dumps(cell) if isinstance(cell, dict) else cell
        read_end, write_end = os.pipe()
        with os.fdopen(write_end, "wb") as writer:
            # Fits the pipe: nothing waits for a reader.
            writer.write(given.encode() if isinstance(given, str) else given)
        process = subprocess.Popen(
            [*command, str(self.binary)],
            **{"stdin": read_end, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **more},
        )
        os.close(read_end)
        self.processes.append(process)
        return process

    def end(self, process: subprocess.Popen[str], directory: Path | None = None) -> Ended:
        """Waits for a cell to end."""
        out, err = process.communicate(timeout=60)
        return Ended(process.returncode, out or "", err or "", directory or self.home)

    def run(self, workload: Object, *, packets: bool = True, capture: bool = False, **sections: Any) -> Ended:
        """Runs a cell of `workload` to its end."""
        directory = self.directory()
        output = {"directory": str(directory), "packets": packets, "capture": capture}
        return self.end(self.start(cell_of(workload, output=output, **sections)), directory)

    def stop(self) -> None:
        """Ends whatever still runs."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.communicate()


def next_event(process: subprocess.Popen[str], name: str) -> Object:
    """Reads events until the one called `name`."""
    assert process.stdout is not None
    for line in process.stdout:
        event: Object = json.loads(line)
        if event["event"] == name:
            return event
    raise AssertionError(f"the cell ended without the event {name}")


def wait_until(condition: Callable[[], object], *, within_s: float = 20) -> None:
    """For what the kernel or another process does in its own time.

    The pauses grow: a condition that itself gives the kernel work, as a cell that finds no room does, must not be
    asked again while that work still goes on, for ever.
    """
    deadline = time.monotonic() + within_s
    pause_s = 0.005
    while not condition():
        assert time.monotonic() < deadline, f"not within {within_s} s"
        time.sleep(pause_s)
        pause_s = min(2 * pause_s, 1)


def processes_with(marker: str) -> Iterator[int]:
    """Every process whose environment holds `marker`; children inherit it, whatever becomes of their parents."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                environment = (entry / "environ").read_bytes()
            except OSError:
                continue
            if marker.encode() in environment:
                yield int(entry.name)
