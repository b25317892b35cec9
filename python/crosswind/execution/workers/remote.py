"""The remote side of `DaskWorker`: a machine's identity, one repetition, and a stop for running ones.

A repetition runs as it does locally; its files travel back as bytes. Guests share their machine's processors by file
locks, so unrelated processes do not take the same one.
"""

import fcntl
import hashlib
import os
import platform
import tempfile
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from crosswind.cell.binary import find_binary
from crosswind.cell.clocks import real_time_obstacle
from crosswind.cell.kernels import installed_kernel
from crosswind.cell.process import CellEnd, CellProcess
from crosswind.errors import EngineError
from crosswind.execution.stops import StopRequests
from crosswind.execution.virtual import run_in_virtual_time
from crosswind.execution.workers.worker import followed, sent
from crosswind.files.inside import files_inside, read_inside
from crosswind.files.temporary import open_own_file, temporary_directory
from crosswind.store.plan import PlannedCell
from crosswind.store.tables import to_parquet
from crosswind.text.version import __version__


@dataclass(frozen=True)
class Identity:
    """A machine's name, and its fitness for a repetition.

    Attributes: version: Crosswind's. binary: crosswind-cell's digest. kernel: virtual time's, series and digest.
        real_clock: why it runs nothing on its own clock; None where it does.
    """

    machine: str
    version: str
    binary: str
    kernel: str | None
    processors: int
    real_clock: str | None

    def obstacle(self, planned: PlannedCell, wanted: "Identity") -> str | None:
        """Why it may not take a repetition planned on `wanted`, the session's machine; None where it may."""
        if self.version != wanted.version:
            return f"it has Crosswind {self.version}, not {wanted.version}"
        if self.binary != wanted.binary:
            return f"its crosswind-cell is another build: {self.binary[:12]}, not {wanted.binary[:12]}"
        if not planned.is_virtual:
            return self.real_clock
        if self.kernel != wanted.kernel:
            return f"it lacks the kernel of virtual time {wanted.kernel}"
        return None


@cache
def identity() -> Identity:
    """This machine's. Raises: EngineError without crosswind-cell."""
    obstacle, kernel = real_time_obstacle(), installed_kernel()
    return Identity(
        machine=platform.node(),
        version=__version__,
        binary=hashlib.sha256(find_binary().read_bytes()).hexdigest(),
        kernel=None if kernel is None else kernel.name,
        processors=len(os.sched_getaffinity(0)),
        real_clock=None if obstacle is None else obstacle.message,
    )


@dataclass(frozen=True)
class Outcome:
    """A repetition's outcome. Attributes: files: content by path within its directory."""

    end: CellEnd
    files: Mapping[str, bytes]


class UnfitError(Exception):
    """This machine may not take the repetition."""


def run_repetition(planned: Mapping[str, Any], output: Mapping[str, Any], wanted: Identity, session: str) -> Outcome:
    """Runs a repetition on this machine, to its end.

    Args: planned: `PlannedCell.as_json`. output: for the cell's `output`. wanted: the session's machine. session: its
        name, for `stop`.
    Raises: UnfitError for a repetition unfit for this machine. EngineError when nothing can be started here.
    """
    cell = PlannedCell.from_json(planned)
    obstacle = identity().obstacle(cell, wanted)
    if obstacle is not None:
        raise UnfitError(obstacle)
    with temporary_directory() as place, _stoppable(session) as stops:
        directory = place / "cell"
        directory.mkdir()
        if cell.is_virtual:
            with _machine(exclusive=False), _processor() as cpu:
                end = run_in_virtual_time(cell, directory, find_binary(), output=output, cpu=cpu, stops=stops)
        else:
            with _machine(exclusive=True):
                end = _run_on_clock(cell, directory, output, stops)
        for arrow in sorted(directory.glob("*.arrow")):
            with suppress(EngineError):  # Storing it reports its error.
                to_parquet(arrow)
        files = {name: read_inside(directory, name) for name in files_inside(directory)}
        # Reports from other machines never told the time for breakdowns.
        return Outcome(replace(end, machine=identity().machine, parts_ns=None), files)


async def stop(session: str) -> None:
    """Interrupts a session's cells here, and later ones handed over before.

    A coroutine: Dask starts it without waiting for its end.
    """
    with _LOCK:
        _STOPPED.add(session)
        for stops in _STOPS.get(session, ()):
            stops.request()


def _run_on_clock(planned: PlannedCell, directory: Path, output: Mapping[str, Any], stops: StopRequests) -> CellEnd:
    process = CellProcess(sent(planned, directory, output), binary=find_binary())
    try:
        return followed(process, stops)
    finally:
        process.kill()


_LOCK = threading.Lock()
_STOPS: defaultdict[str, list[StopRequests]] = defaultdict(list)
_STOPPED: set[str] = set()


@contextmanager
def _stoppable(session: str) -> Iterator[StopRequests]:
    stops = StopRequests()
    with _LOCK:
        _STOPS[session].append(stops)
        if session in _STOPPED:
            stops.request()
    try:
        yield stops
    finally:
        with _LOCK:
            _STOPS[session].remove(stops)
            if not _STOPS[session]:
                del _STOPS[session]
        stops.close()


@contextmanager
def _machine(*, exclusive: bool) -> Iterator[None]:
    """Holds this machine, alone or with others. Waits until it may."""
    with _lock_file("machine") as held:
        fcntl.flock(held, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield


@contextmanager
def _processor() -> Iterator[int]:
    """A processor without another guest; a shared one if there are more guests than processors."""
    usable = sorted(os.sched_getaffinity(0))
    for cpu in usable:
        with _lock_file(f"processor-{cpu}") as held:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                continue
            yield cpu
            return
    yield usable[threading.get_native_id() % len(usable)]


@contextmanager
def _lock_file(name: str) -> Iterator[int]:
    held = open_own_file(Path(tempfile.gettempdir()), f"crosswind-{os.geteuid()}-{name}", ".lock")
    try:
        yield held
    finally:
        os.close(held)
