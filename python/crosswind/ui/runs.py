"""Runs as the page has them: the list, and one run as it goes by. All of it is what is on the disk."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from crosswind.cli.progress_text import outcome_text
from crosswind.cli.text import levels_text, repetition_text, seconds_text, size_text, time_text
from crosswind.errors import StoreError
from crosswind.store.directory import Store
from crosswind.store.listing import Listed, ListedRun, examine_directory, is_run, list_runs, packed_keys
from crosswind.store.partition_index import names_in
from crosswind.store.result import RESULT, RepetitionResult, read_result
from crosswind.ui.commands import log_text


def run_named(name: str, root: Path) -> Path:
    """The run of a name in a list. Raises: StoreError where there is none: a name is never a way to another place."""
    if "/" not in name and not name.startswith(".") and is_run(root / name):
        return root / name
    raise StoreError(f"there is no run {name[:80]!r}", hint="the list of runs has those that there are")


def listed(root: Path) -> list[dict[str, Any]]:
    """Every run, the latest first. Raises: StoreError."""
    return [summary(run) for run in (list_runs(root) if root.exists() else [])]


def summary(run: Listed) -> dict[str, Any]:
    """A run as the list has it."""
    if not isinstance(run, ListedRun):
        return {"name": run.directory.name, "problem": run.problem}
    return {
        "name": run.directory.name,
        "study": run.study,
        "title": run.title,
        "status": run.status.value,
        "started": time_text(run.started),
        "done": run.done,
        "planned": run.planned,
        "size": size_text(run.size_bytes),
    }


@dataclass
class Watched:
    """A run as a browser watches it: what has ended since it was last looked at."""

    directory: Path
    _seen: dict[str, RepetitionResult | None] = field(default_factory=dict)
    _log: str = ""
    _last: dict[str, Any] = field(default_factory=dict)

    def plan(self) -> dict[str, Any]:
        """What is to be run: factors with their levels, and the cells. Raises: StoreError."""
        kinds = Store.read(self.directory).plan.kinds
        factors: dict[str, list[str]] = {}
        for kind in kinds:
            for key, level in kind.levels.items():
                levels = factors.setdefault(key, [])
                if level not in levels:
                    levels.append(level)
        cells = [
            {"cell": kind.cell, "levels": list(kind.levels.values()), "text": levels_text(kind.levels)}
            for kind in sorted(kinds, key=lambda kind: kind.cell)
        ]
        return {"factors": factors, "cells": cells}

    def news(self) -> dict[str, Any]:
        """What is new; empty where nothing is. Raises: StoreError where the run is gone or cannot be read."""
        run = examine_directory(self.directory)
        if not isinstance(run, ListedRun):
            raise StoreError(f"{self.directory.name}: {run.problem}", hint="it may have been removed")
        store = Store.read(self.directory)
        ended = self._ended(store)
        left_s = self._left_s(store) if run.status == "running" else None
        state = {**summary(run), "left": None if left_s is None else seconds_text(left_s)}
        news: dict[str, Any] = {}
        if state != self._last:
            self._last = state
            news["state"] = state
        if ended:
            news["ended"] = [_ended(result) for result in ended]
        if (log := log_text(self.directory)) != self._log:
            self._log = log
            news["log"] = log
        return news

    def _ended(self, store: Store) -> list[RepetitionResult]:
        """Repetitions that have ended since the last look, in the order of their ends."""
        new: dict[str, RepetitionResult] = {}
        packed = packed_keys(self.directory, store.manifest.id)
        if packed - self._seen.keys():
            new = {result.key: result for result in store.iter_results() if result.key not in self._seen}
        for key in names_in(self.directory / "cells") - self._seen.keys() - new.keys():
            if "." not in key:
                try:
                    new[key] = read_result(self.directory / "cells" / key / RESULT, key=key, run=store.manifest.id)
                except (OSError, ValueError, StoreError):
                    continue  # Being packed, or damaged, which the report says.
        self._seen |= new
        return sorted(new.values(), key=lambda result: result.ended)

    def _left_s(self, store: Store) -> float | None:
        """Wall time left: the forecast of what is missing, stretched as what this session did took longer."""
        began = datetime.fromisoformat(store.manifest.sessions[-1].started) if store.manifest.sessions else None
        plan = store.plan
        left_ns = sum(plan[at].expected_ns for key, at in plan.places.items() if key not in self._seen)
        if began is None:
            return None
        done = [result for result in self._seen.values() if result is not None]
        now = [result for result in done if datetime.fromisoformat(result.ended) >= began]
        forecast_ns = sum(result.planned.expected_ns for result in now)
        return left_ns / forecast_ns * (time.time() - began.timestamp()) if forecast_ns else None


def _ended(result: RepetitionResult) -> Mapping[str, Any]:
    failure, finished = result.failure, result.finished
    return {
        "cell": result.planned.cell,
        "text": repetition_text(result.planned),
        "state": "failed" if failure else "valid" if result.valid else "invalid",
        "why": failure.message if failure else "; ".join(finished.reasons) if finished else "",
        "outcome": outcome_text(finished, None) if finished else "",
        "at": datetime.fromisoformat(result.ended).astimezone(UTC).strftime("%H:%M:%S"),
    }
