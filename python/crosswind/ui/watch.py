"""A run in progress, read once for all watchers, and only after changes.

Everything has the version of its last change; watchers get newer parts only.
"""

import json
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from crosswind.analysis.overview import Reading
from crosswind.catalog.metrics import METRICS
from crosswind.catalog.tables import SAMPLES
from crosswind.cell.record import OF_REPETITION, RunPart
from crosswind.cli.progress_text import outcome_text
from crosswind.cli.text import levels_text, repetition_text, seconds_text
from crosswind.errors import StoreError
from crosswind.report.text.format import quantity
from crosswind.store.checksums import DamagedFileError
from crosswind.store.directory import Store
from crosswind.store.listing import ListedRun, examine_directory
from crosswind.store.lock import in_use
from crosswind.store.manifest import MANIFEST
from crosswind.store.partition_index import PARTITIONS, names_in
from crosswind.store.partitions import Partition
from crosswind.store.plan import PLAN
from crosswind.store.record import kinds_of, part_of
from crosswind.store.result import RESULT, RepetitionResult, read_result
from crosswind.store.run_file import RunFile
from crosswind.ui.commands import log_of, log_text
from crosswind.ui.runs import summary

_ROWS = 50
"""Of the last ended repetitions."""
_AT_ONCE = 200
"""Repetitions per look, or a partition's: watchers see a large run fill in."""
_TICK_NS = 1_000_000_000
"""A more recently changed file may change again under the same time."""
_END = pl.Struct({"ended": pl.String, "finished": pl.Struct({"valid": pl.Boolean})})

Stamp = tuple[int, int]


@dataclass
class _Cell:
    changed: int
    done: int = 0
    bad: int = 0
    values: dict[str, tuple[int, float]] = field(default_factory=dict)
    """How many exchanges, and their sum, by metric."""

    def as_json(self, cell: int) -> list[Any]:
        """The page's row for a cell: its counts, and its first metric's mean."""
        name = next(filter(self.values.__contains__, METRICS), None)
        if name is None:
            return [cell, self.done, self.bad, None, ""]
        number, total = self.values[name]
        mean = total / number
        return [cell, self.done, self.bad, mean, quantity(mean, METRICS[name].unit.name)]


class Watch:
    """One run. Attributes: behind: whether there is more to read at once."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.behind = True
        self._lock = threading.Lock()
        self._stamps: Mapping[str, Stamp] = {}
        self._version = 0
        self._store: Store | None = None
        self._forget()

    def _forget(self) -> None:
        """Nothing has been read."""
        self._cells: dict[int, _Cell] = {}
        self._seen: set[str] = set()
        self._ended: deque[tuple[int, Mapping[str, Any]]] = deque(maxlen=_ROWS)
        self._ends: list[tuple[str, int]] = []
        self._plan: dict[str, Any] = {}
        self._state: dict[str, Any] = {}
        self._log = ""
        self._planned = self._state_version = self._log_version = 0

    def news(self, since: int) -> tuple[int, dict[str, Any]]:
        """The news since a version, 0 for everything, and its version.

        Raises: StoreError for a missing or unreadable run.
        """
        with self._lock:
            self._look()
            return self._version, self._news(since)

    def _news(self, since: int) -> dict[str, Any]:
        news: dict[str, Any] = {}
        if self._planned > since:
            news["plan"] = self._plan
        if self._state_version > since:
            news["state"] = self._state
        if cells := [cell.as_json(number) for number, cell in self._cells.items() if cell.changed > since]:
            news["cells"] = cells
        if ended := [row for version, row in self._ended if version > since]:
            news["ended"] = ended
        if self._log_version > since:
            news["log"] = self._log
        return news

    # Reading

    def _look(self) -> None:
        stamps = self._stamps_now()
        if stamps == self._stamps and not self.behind:
            return
        run = examine_directory(self.directory)
        if not isinstance(run, ListedRun):
            raise StoreError(f"{self.directory.name}: {run.problem}", hint="it may have been removed")
        self._version += 1
        newest_ns = max(stamp[0] for stamp in stamps.values())
        self.behind = time.time_ns() - newest_ns < _TICK_NS
        if self._store is None or any(stamps[name] != self._stamps[name] for name in (MANIFEST, PLAN)):
            self._open()
        self._stamps = stamps
        self._read()
        left_s = self._left_s() if run.status == "running" else None
        state = {**summary(run), "left": None if left_s is None else seconds_text(left_s)}
        if state != self._state:
            self._state, self._state_version = state, self._version
        if (log := log_text(self.directory)) != self._log:
            self._log, self._log_version = log, self._version

    def _stamps_now(self) -> dict[str, Stamp]:
        places = {name: self.directory / name for name in (MANIFEST, PLAN, "cells", PARTITIONS)}
        stamps = {name: _stamp(place) for name, place in {**places, "log": log_of(self.directory)}.items()}
        return stamps | {"in use": (0, int(in_use(self.directory)))}

    def _open(self) -> None:
        """Reads manifest and plan. Raises: StoreError."""
        before, self._store = self._store, Store.read(self.directory)
        plan = self._store.plan
        if before is not None and before.manifest.id != self._store.manifest.id:
            self._forget()
        elif before is not None and before.plan.keys == plan.keys:
            return
        self._reading = Reading(kinds_of(self._store))
        self._cells = {kind.cell: self._cells.get(kind.cell) or _Cell(self._version) for kind in plan.kinds}
        kinds = sorted(plan.kinds, key=lambda kind: kind.cell)
        planned = Counter(plan.cells)
        factors: dict[str, list[str]] = {}
        for kind in kinds:
            for key, level in kind.levels.items():
                levels = factors.setdefault(key, [])
                if level not in levels:
                    levels.append(level)
        cells = [
            {
                "cell": kind.cell,
                "levels": list(kind.levels.values()),
                "text": levels_text(kind.levels),
                "planned": planned[kind.cell],
            }
            for kind in kinds
        ]
        self._plan, self._planned = {"factors": factors, "cells": cells}, self._version
        for cell in self._cells.values():
            cell.changed = self._version

    def _read(self) -> None:
        """Reads some repetitions ended since the last look: a partition, or several directories."""
        assert self._store is not None
        for partition in self._store.partitions():
            if not self._seen.issuperset(partition.keys):
                self._read_partition(partition)
                self.behind = True
                return
        results = []
        left = [key for key in names_in(self.directory / "cells") - self._seen if "." not in key]
        for key in left[:_AT_ONCE]:
            try:
                file = RunFile(self.directory, f"cells/{key}/{RESULT}")
                results.append(read_result(file, key=key, run=self._store.manifest.id))
            except (OSError, ValueError, StoreError):
                continue  # Being packed, or damaged: the report says so.
        self.behind |= len(left) > _AT_ONCE
        for result in results:
            self._count(result.key, result.planned.cell, result.ended, is_valid=result.valid)
        self._show(results)
        if results:
            self._add(part_of(self._store, results, []))

    def _read_partition(self, partition: Partition) -> None:
        assert self._store is not None
        new = [key not in self._seen for key in partition.keys]
        try:
            rows = partition.texts().filter(pl.Series(new))
            samples = partition.every_row(SAMPLES)
        except DamagedFileError:
            self._seen |= set(partition.keys)  # The report says so.
            return
        keys = [key for key, is_new in zip(partition.keys, new, strict=True) if is_new]
        ends = rows.select("cell", pl.col("result").str.json_decode(_END)).unnest("result").unnest("finished")
        for key, (cell, ended, valid) in zip(keys, ends.iter_rows(), strict=True):
            self._count(key, cell, ended, is_valid=bool(valid))
        last = sorted(zip(ends["ended"], keys, rows["result"], strict=True))[-_ROWS:]
        plan = self._store.plan
        self._show(
            [RepetitionResult.packed(plan.with_key(key), json.loads(text), partition.name) for _, key, text in last]
        )
        self._add(RunPart(frozenset(), len(keys), None, samples.join(rows, on=list(OF_REPETITION), how="semi")))

    def _count(self, key: str, number: int, ended: str, *, is_valid: bool) -> None:
        self._seen.add(key)
        assert self._store is not None
        plan = self._store.plan
        self._ends.append((ended, plan[plan.places[key]].expected_ns if key in plan.places else 0))
        if (cell := self._cells.get(number)) is not None:
            cell.done += 1
            cell.bad += not is_valid
            cell.changed = self._version

    def _show(self, results: Sequence[RepetitionResult]) -> None:
        for result in sorted(results, key=lambda result: result.ended)[-_ROWS:]:
            self._ended.append((self._version, _row(result)))

    def _add(self, part: RunPart) -> None:
        """Adds repetitions' values."""
        sums = pl.col("n").sum(), (pl.col("n") * pl.col("value")).sum().alias("total")
        for table in self._reading.add(part):
            means = table.filter(statistic="mean").group_by("metric", "cell").agg(*sums)
            for metric, number, n, total in means.iter_rows():
                values = self._cells[number].values
                before = values.get(metric, (0, 0.0))
                values[metric] = (before[0] + n, before[1] + total)

    def _left_s(self) -> float | None:
        """Wall time left: the forecast for the rest, scaled by this session's error."""
        assert self._store is not None
        sessions = self._store.manifest.sessions
        if not sessions:
            return None
        plan, began = self._store.plan, datetime.fromisoformat(sessions[-1].started)
        left_ns = sum(plan[at].expected_ns for key, at in plan.places.items() if key not in self._seen)
        forecast_ns = sum(expected for ended, expected in self._ends if datetime.fromisoformat(ended) >= began)
        return left_ns / forecast_ns * (time.time() - began.timestamp()) if forecast_ns else None


def _stamp(place: Path) -> Stamp:
    try:
        found = place.stat()
    except OSError:
        return (0, 0)
    return (found.st_mtime_ns, found.st_size)


def _row(result: RepetitionResult) -> Mapping[str, Any]:
    failure, finished = result.failure, result.finished
    return {
        "text": repetition_text(result.planned),
        "state": "failed" if failure else "valid" if result.valid else "invalid",
        "why": failure.message if failure else "; ".join(finished.reasons) if finished else "",
        "outcome": outcome_text(finished, None) if finished else "",
        "at": datetime.fromisoformat(result.ended).astimezone(UTC).strftime("%H:%M:%S"),
    }
