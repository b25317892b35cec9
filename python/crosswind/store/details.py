"""What only the results of a run say: which finished cells are valid, which failed, and how exchanges ended."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosswind.cell.result import OutcomeCount, added_up
from crosswind.store.checksums import DamagedFileError
from crosswind.store.manifest import UnreadableFileError
from crosswind.store.result import RESULT, RepetitionResult, read_result


@dataclass(frozen=True)
class Details:
    """The results of a run, counted.

    Attributes:
        valid, invalid, failed: repetitions; one in which no exchange succeeded has failed.
        clocks: on which they ran, `real`, `virtual` or both.
        outcomes: of all their exchanges, those that did not end well, by cause.
        problem: a result that cannot be read, and why; None without one.
    """

    valid: int
    invalid: int
    failed: int
    clocks: tuple[str, ...] = ()
    outcomes: tuple[OutcomeCount, ...] = ()
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


def details_of(cells: Path, keys: Iterable[str], run: str) -> Details:
    """Reads the results of the given keys in the folder `cells`. Args: run: the id of the run."""
    results: list[RepetitionResult] = []
    problems: list[str] = []
    for key in keys:
        try:
            results.append(read_result(cells / key / RESULT, key=key, run=run))
        except DamagedFileError as error:
            problems.append(f"cells/{key}/{RESULT} {error.reason}")
        except UnreadableFileError as error:
            problems.append(f"cells/{key}/{RESULT}: {error.reason}")
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    problem = problems[0] + more if problems else None
    failed = sum(not result.succeeded for result in results)
    valid = sum(result.valid and result.succeeded for result in results)
    clocks = tuple(sorted({"virtual" if result.planned.is_virtual else "real" for result in results}))
    outcomes = added_up(outcome for result in results for outcome in result.outcomes)
    return Details(valid, len(results) - valid - failed, failed, clocks, tuple(outcomes), problem)
