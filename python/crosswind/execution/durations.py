"""Durations of cells on this machine, for better forecasts in `crosswind plan`: a file in the user's cache.

It is optional: a run never fails for it. Where it is missing or damaged, forecasts are computed, and the next run
starts it anew.
"""

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from crosswind.cell.forecast import virtual_wall_ns
from crosswind.cell.process import CellEnd
from crosswind.execution.observer import Observer
from crosswind.files.cache import cache_directory, read_cached, replace_file, say_damaged
from crosswind.files.damage import NOT_WHAT_WAS_WRITTEN
from crosswind.store.plan import PlannedCell

VARIABLE, OFF, SCHEMA = "CROSSWIND_DURATIONS", "off", "crosswind.durations/5"
MOST_CELLS, REMEMBERED = 10_000, 3
MOST = 10**12
"""No count and no time in seconds comes to as much."""
_THEN = "the next run makes it anew"
T = TypeVar("T")


@dataclass
class Durations:
    """Learned durations.

    Attributes: runs: sessions in all. cells: by key, one pair for each recent session: a repetition's seconds, and its
        share of the session's time.
    """

    runs: int = 0
    cells: dict[str, list[tuple[float, float]]] = field(default_factory=dict)

    def of(self, parameters: Mapping[str, Any]) -> tuple[float, float] | None:
        """A repetition's seconds and its share; None for a cell new to this machine.

        Other work on the machine makes everything longer: the shortest recent session counts.
        """
        taken = self.cells.get(cell_key(parameters))
        return min(taken, key=lambda pair: pair[1]) if taken else None


def cell_key(parameters: Mapping[str, Any]) -> str:
    """Identifies a cell, whatever its study, repetition and seed."""
    of_one_run = ("schema", "id", "seed", "output", "deadline_ns")
    kept = {name: value for name, value in parameters.items() if name not in of_one_run}
    return hashlib.sha256(json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()).hexdigest()[:16]


def expected_s(planned: PlannedCell, durations: Durations) -> float:
    """A planned repetition's duration: learned, or computed."""
    taken = durations.of(planned.parameters)
    if taken is not None:
        return taken[0]
    if planned.is_virtual:
        return virtual_wall_ns(planned.parameters, planned.expected_packets) / 1e9
    return planned.expected_ns / 1e9


def durations_file() -> Path | None:
    """The file for durations; None if learning is off.

    A file named by the user is replaced only if it holds durations: it may be a device, or hold something else.
    """
    named = os.environ.get(VARIABLE)
    if named == OFF:
        return None
    if not named:
        return cache_directory() / "durations.json"
    file = Path(os.path.realpath(named))
    if file.name and _may_hold_durations(file):
        return file
    say_damaged(file, f"{VARIABLE} names it, and it holds no durations", "nothing is learned")
    return None


def _may_hold_durations(file: Path) -> bool:
    try:
        content = read_cached(file)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return not content or f'"schema": "{SCHEMA.partition("/")[0]}/'.encode() in content[:100]


def read_durations() -> Durations:
    """This machine's durations; empty for a missing or damaged file."""
    file = durations_file()
    return (None if file is None else read_learned(file, _durations)) or Durations()


def read_learned(file: Path, made: Callable[[Any], T | None]) -> T | None:
    """Reads a JSON file in the cache; None where missing, or damaged, with a warning.

    Args: made: parses the object; None for another version. Raises: whatever odd contents raise.
    """
    try:
        return made(json.loads(read_cached(file)))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        say_damaged(file, error.strerror or str(error), _THEN)
    except NOT_WHAT_WAS_WRITTEN:
        say_damaged(file, "it is damaged", _THEN)
    return None


def _durations(data: Any) -> Durations | None:
    if data.get("schema") != SCHEMA:
        return None
    cells = {
        str(key): [(_seconds(first), _seconds(second)) for first, second in pairs]
        for key, pairs in data["cells"].items()
    }
    return Durations(counted(data["runs"]), cells)


def counted(value: Any) -> int:
    """A number of something, as it was written. Raises: ValueError, TypeError, OverflowError."""
    number = int(value)
    if not 0 <= number < MOST or number != value:
        raise ValueError(f"{number} is no count")
    return number


def _seconds(value: Any) -> float:
    seconds = float(value)
    if not 0 <= seconds < MOST:
        raise ValueError(f"{seconds} is no time")
    return seconds


@dataclass
class Taken(Observer):
    """Sums up a session's durations, without superseded attempts.

    Attributes: all_s: all seconds. cells: by key, seconds and number of repetitions with a result.
    """

    all_s: float = 0.0
    cells: dict[str, tuple[float, int]] = field(default_factory=dict)

    def cell_ended(self, planned: PlannedCell, end: CellEnd) -> None:
        """Another one."""
        seconds = end.elapsed_ns / 1e9
        self.all_s += seconds
        if end.finished is not None:
            key = cell_key(planned.parameters)
            sum_s, number = self.cells.get(key, (0.0, 0))
            self.cells[key] = sum_s + seconds, number + 1


def learn(taken: Taken, wall_s: float) -> None:
    """Keeps a session's durations for later forecasts; an unwritable file keeps none.

    The repetitions share the session's time in proportion to their own: a share includes concurrency, retries, waits.
    Args: wall_s: the session's.
    """
    file = durations_file()
    if file is None or not taken.cells or not taken.all_s:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(
            file.with_name(f"{file.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666
        )
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            known = read_durations()
            for key, (sum_s, number) in taken.cells.items():
                pair = (round(sum_s / number, 4), round(sum_s / number * wall_s / taken.all_s, 4))
                known.cells[key] = [*known.cells.pop(key, []), pair][-REMEMBERED:]
            kept = dict(list(known.cells.items())[-MOST_CELLS:])
            replace_file(file, json.dumps({"schema": SCHEMA, "runs": known.runs + 1, "cells": kept}).encode())
        finally:
            os.close(lock)
    except OSError:
        return
