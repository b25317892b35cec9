"""Details from a run's results: finished cells valid or failed, and the exchanges' outcomes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosswind.cell.result import FailureCount, added_up
from crosswind.errors import StoreError
from crosswind.files.damage import damage_texts
from crosswind.store.checksums import DamagedFileError
from crosswind.store.directory import Store
from crosswind.store.manifest import UnreadableFileError
from crosswind.store.partition_index import partition_names
from crosswind.store.result import RESULT, RepetitionResult, read_result
from crosswind.store.run_file import RunFile


@dataclass(frozen=True)
class Details:
    """A run's results, counted.

    Attributes:
        valid, invalid, failed: repetitions; one without a successful exchange has failed.
        clocks: `real`, `virtual` or both.
        outcomes: unsuccessful exchanges, by cause.
        problem: an unreadable result, and why; None without one.
    """

    valid: int
    invalid: int
    failed: int
    clocks: tuple[str, ...] = ()
    outcomes: tuple[FailureCount, ...] = ()
    problem: str | None = None

    def as_json(self) -> dict[str, Any]:
        """The object as `crosswind runs --json` shows it."""
        return {
            "valid": self.valid,
            "invalid": self.invalid,
            "failed": self.failed,
            "clocks": list(self.clocks),
            "outcomes": [outcome.model_dump() for outcome in self.outcomes],
            "problem": self.problem,
        }


def details_of(directory: Path, keys: Iterable[str], run: str) -> Details:
    """Reads a run's results. Args: keys: repetitions in directories. run: the run's id."""
    valid = failed = number = 0
    clocks: set[str] = set()
    outcomes: list[FailureCount] = []
    problems: list[str] = []
    for result in _results(directory, keys, run, problems):
        number += 1
        failed += not result.succeeded
        valid += result.valid and result.succeeded
        clocks.add("virtual" if result.planned.is_virtual else "real")
        if result.outcomes:
            outcomes = added_up([*outcomes, *result.outcomes])
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    problem = problems[0] + more if problems else None
    return Details(valid, number - valid - failed, failed, tuple(sorted(clocks)), tuple(outcomes), problem)


def _results(directory: Path, keys: Iterable[str], run: str, problems: list[str]) -> Iterator[RepetitionResult]:
    """The readable results; adds errors in the others to `problems`."""
    for key in keys:
        try:
            yield read_result(RunFile(directory, f"cells/{key}/{RESULT}"), key=key, run=run)
        except DamagedFileError as error:
            problems.append(f"cells/{key}/{RESULT} {error.reason}")
        except UnreadableFileError as error:
            problems.append(f"cells/{key}/{RESULT}: {error.reason}")
    if not partition_names(directory):
        return
    try:
        store = Store.read(directory)
        problems += damage_texts(store.damaged_partitions())
        for partition in store.partitions():
            try:
                yield from partition.results(store.plan)
            except DamagedFileError as error:
                problems.append(f"{error.file.name} {error.reason}")
    except StoreError as error:
        problems.append(error.message)
