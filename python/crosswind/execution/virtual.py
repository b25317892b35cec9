"""One cell in virtual time, from Python: for tests of other people's programs, and for a quick question.

    cell = crosswind.virtual({"delay": "10ms", "loss": "5%"}, workload={"kind": "echo", "transport": "tcp"})
    cell.samples["received_ns"] - cell.samples["sent_ns"]

    server = ["python3", "-m", "http.server"]
    cell = crosswind.virtual({"delay": "10ms"}, ["curl", "-s", "http://{server}:8000/"], server)
    cell.output["client"]

The first call boots the kernel, and every call copies it in milliseconds; it ends with this process. Keys and errors
are the study's.
"""

import atexit
import contextlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from crosswind.catalog.endpoints import EMULATOR
from crosswind.cell.binary import find_binary
from crosswind.cell.guests import MEMORY_MB, Template
from crosswind.cell.kernels import Kernel, find_kernel
from crosswind.cell.process import CellEnd, CellProcess
from crosswind.cell.result import Finished
from crosswind.errors import EngineError, StudyError
from crosswind.execution.planning import planned_cells
from crosswind.execution.stops import StopRequests
from crosswind.execution.workers.virtual import HEARTBEAT_NS, memory_mb
from crosswind.execution.workers.worker import followed, sent
from crosswind.files.temporary import temporary_directory
from crosswind.store.manifest import Options
from crosswind.store.plan import PlannedCell
from crosswind.study.design import Study
from crosswind.study.edits import Appended

_ENDS = ("client", "server")


@dataclass(frozen=True)
class VirtualCell:
    """A virtual-time cell's results.

    Attributes: result: its `finished` event. samples: a row for each exchange, none with programs. packets: a row for
        each packet. spent: each exchange's time breakdown. pieces: its intervals for the slowest and the first, by
        time. limits: each exchange's time without one of its limits, by a model, where it knows. tcp: the kernels'
        view of TCP sockets, at the end of each connection and at the interval `host.sample_tcp`. output, errors: the
        programs' output, by `client` and `server`. The columns are in docs/result.md.
    """

    result: Finished
    samples: pl.DataFrame = field(repr=False)
    packets: pl.DataFrame = field(repr=False)
    spent: pl.DataFrame = field(repr=False)
    pieces: pl.DataFrame = field(repr=False)
    limits: pl.DataFrame = field(repr=False)
    tcp: pl.DataFrame = field(repr=False)
    output: Mapping[str, str] = field(repr=False)
    errors: Mapping[str, str] = field(repr=False)


def virtual(
    path: Mapping[str, object],
    client: Sequence[str] | None = None,
    server: Sequence[str] | None = None,
    *,
    workload: Mapping[str, object] | None = None,
    host: Mapping[str, object] | None = None,
    hops: Sequence[Mapping[str, object]] = (),
    changes: Sequence[Mapping[str, object]] = (),
    seed: int = 1,
) -> VirtualCell:
    """Runs one cell in virtual time: two programs on a path, or a built-in workload.

    Args:
        path: as a study's `[path]`: {"delay": "10ms", "forward": {"loss": "5%"}}.
        client, server: argument lists of programs; {server} and {client} stand for the hosts' addresses.
        workload: instead of programs, as a study's `[workload]`: {"kind": "echo", "transport": "tcp", "messages": 100}.
        host: as a study's `[host]`: {"congestion_control": "bbr"}.
        hops: as a study's `[[path.hop]]`, the client's first: [{"name": "wifi", "delay": "2ms"}, ...].
        changes: as a study's `[[path.at]]`: [{"start": "1s", "for": "500ms", "loss": "100%"}].
        seed: for every random decision, as a study's; the same seed gives the same cell.
    Raises: StudyError for a wrong key or value, or an impossible cell. EngineError without a virtual-time kernel, or
        for a failed cell. `result.program` has the programs' ends.
    """
    binary = find_binary()
    tables = {"path": path, "host": host or {}, "workload": _workload(client, server, workload)}
    keeps_packets = path.get("backend", EMULATOR) == EMULATOR
    (planned,) = planned_cells(
        _study(tables, {"hop": hops, "at": changes}, seed), Options(packets=keeps_packets), binary=binary
    )
    with temporary_directory() as place:
        directory = place / "cell"
        directory.mkdir()
        end = run_in_virtual_time(planned, directory, binary)
        if end.finished is None:
            assert end.failure is not None  # A cell ends in one way or the other.
            raise EngineError(end.failure.message + _written(directory, "err"), hint=end.failure.hint)
        return VirtualCell(
            result=end.finished,
            samples=_table(directory / "samples.arrow"),
            packets=_table(directory / "packets.arrow"),
            spent=_table(directory / "spent.arrow"),
            pieces=_table(directory / "pieces.arrow"),
            limits=_table(directory / "limits.arrow"),
            tcp=_table(directory / "tcp.arrow"),
            output=_texts(directory, "out"),
            errors=_texts(directory, "err"),
        )


def _workload(
    client: Sequence[str] | None, server: Sequence[str] | None, workload: Mapping[str, object] | None
) -> dict[str, object]:
    """The study's `[workload]`. Raises: StudyError when it is none, or two."""
    if (client is None) == (workload is None) or (server is not None and client is None):
        raise StudyError(
            "a cell takes either a client program or a workload",
            hint='client=["curl", ...], server=[...]; or workload={"kind": "echo", "transport": "tcp"}',
        )
    if workload is not None:
        return dict(workload)
    programs = {"client": client, "server": server}
    return {"kind": "program"} | {end: list(words) for end, words in programs.items() if words is not None}


def _study(
    tables: Mapping[str, Mapping[str, object]], lists: Mapping[str, Sequence[Mapping[str, object]]], seed: int
) -> Study:
    """The study of the one cell. Raises: StudyError, also when it is several cells."""
    kind = tables["workload"].get("kind")
    if not isinstance(kind, str):
        raise StudyError("workload has no kind", hint='workload={"kind": "echo", "transport": "tcp"}')
    settings = {key: value for key, value in _dotted(tables).items() if key != "workload.kind"}
    study = Study.adhoc(kind, settings | {"host.clock": "virtual", "study.seed": seed})
    if given := [Appended(("path", key), list(tables)) for key, tables in lists.items() if tables]:
        study = study.edited(*given)
    if len(study) > 1:
        factors = ", ".join(f"{key} = {', '.join(texts)}" for key, texts in study.factors.items())
        raise StudyError(f"this is {len(study)} cells, not one: {factors}", hint="crosswind.run runs several")
    return study


def _dotted(table: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Nested tables as dotted keys: {"path.forward.loss": "5%"}."""
    dotted: dict[str, object] = {}
    for key, value in table.items():
        name = f"{prefix}{key}"
        dotted |= _dotted(value, f"{name}.") if isinstance(value, Mapping) else {name: value}
    return dotted


def run_in_virtual_time(
    planned: PlannedCell,
    directory: Path,
    binary: Path,
    *,
    output: Mapping[str, object] | None = None,
    cpu: int | None = None,
    stops: StopRequests | None = None,
) -> CellEnd:
    """Runs a cell in virtual time to its end, on a kernel kept booted by this process.

    Args: output: for the cell's `output`. cpu: its processor; None to choose one. stops: interrupt it.
    Raises: EngineError when the kernel does not run.
    """
    kernel = find_kernel()
    cell = sent(planned, directory, output, heartbeat_ns=HEARTBEAT_NS)
    if cpu is None:
        # One processor for all of a guest's processes: handing over to another costs more than the work. Concurrent
        # processes should not all take the same.
        usable = sorted(os.sched_getaffinity(0))
        cpu = usable[os.getpid() % len(usable)]

    def start(template: Template) -> CellProcess:
        return CellProcess(cell, binary=binary, template=template, cpu=cpu)

    process = _TEMPLATES.start(kernel, binary, start, memory_mb=memory_mb(planned))
    try:
        return followed(process, stops)
    finally:
        process.kill()


def _table(path: Path) -> pl.DataFrame:
    """A table from a file about to be removed; empty for a path without packet records."""
    return pl.read_ipc(path.read_bytes()) if path.exists() else pl.DataFrame()


def _texts(directory: Path, suffix: str) -> dict[str, str]:
    places = {end: directory / f"{end}.{suffix}" for end in _ENDS}
    return {end: place.read_text("utf-8", errors="replace") for end, place in places.items() if place.exists()}


def _written(directory: Path, suffix: str) -> str:
    """The last line of each program's errors, for a message: its files are gone when the message is read."""
    lines = {end: text.strip().splitlines() for end, text in _texts(directory, suffix).items()}
    return "".join(f"; the {end} wrote: {line[-1]}" for end, line in lines.items() if line)


class _Templates:
    """This process's booted kernels, one for each kernel, binary and memory size."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._booted: dict[tuple[Path, Path, int], Template] = {}
        atexit.register(self.close)
        os.register_at_fork(after_in_child=self._forget)

    def start(
        self,
        kernel: Kernel,
        binary: Path,
        start: Callable[[Template], CellProcess],
        *,
        memory_mb: int = MEMORY_MB,
    ) -> CellProcess:
        """Calls `start` with the kernel's template. Raises: EngineError when it does not run."""
        key = (kernel.program, binary.absolute(), memory_mb)
        # A template answers one request at a time.
        with self._lock:
            template = self._booted.pop(key, None)
            if template is not None:
                with contextlib.suppress(EngineError):  # Somebody ended it since it was last used.
                    return self._started(key, template, start)
            return self._started(key, Template(kernel, binary, memory_mb=memory_mb), start)

    def _started(
        self, key: tuple[Path, Path, int], template: Template, start: Callable[[Template], CellProcess]
    ) -> CellProcess:
        """Keeps the template for the next cell where it started this one, and else ends it."""
        try:
            process = start(template)
        except BaseException:
            template.close()
            raise
        self._booted[key] = template
        return process

    def close(self) -> None:
        """Ends them."""
        with self._lock:
            for template in self._booted.values():
                template.close()
            self._booted.clear()

    def _forget(self) -> None:
        """In a forked copy: the parent keeps the kernels."""
        self._lock = threading.Lock()
        self._booted = {}


_TEMPLATES = _Templates()
