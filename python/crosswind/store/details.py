"""What only the results of a run say: which finished cells are valid, which failed, and how exchanges ended."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosswind.cell.result import OutcomeCount
from crosswind.store.manifest import UnreadableFileError
from crosswind.store.result import RESULT, CellResult, read_result


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


def details_of(cells: Path, keys: Iterable[str]) -> Details:
    """Reads the results of the given keys in the folder `cells`."""
    results: list[CellResult] = []
    problem = None
    for key in keys:
        try:
            results.append(read_result(cells / key / RESULT))
        except UnreadableFileError as error:
            problem = problem or f"cells/{key}/{RESULT}: {error.reason}"
    failed = sum(not result.succeeded for result in results)
    valid = sum(result.valid and result.succeeded for result in results)
    clocks = tuple(sorted({"virtual" if result.planned.is_virtual else "real" for result in results}))
    return Details(valid, len(results) - valid - failed, failed, clocks, outcomes_of(results), problem)


def outcomes_of(results: Sequence[CellResult]) -> tuple[OutcomeCount, ...]:
    """How the exchanges of some cells ended that did not end well: by outcome, the most frequent first."""
    counts: dict[str, int] = {}
    first_errors: dict[str, str | None] = {}
    for outcome in (outcome for result in results if result.finished for outcome in result.finished.samples.outcomes):
        counts[outcome.outcome] = counts.get(outcome.outcome, 0) + outcome.count
        first_errors[outcome.outcome] = first_errors.get(outcome.outcome) or outcome.first_error
    return _by_count(counts, first_errors)


def _by_count(counts: Mapping[str, int], first_errors: Mapping[str, str | None]) -> tuple[OutcomeCount, ...]:
    ordered = sorted(counts, key=lambda outcome: -counts[outcome])
    return tuple(
        OutcomeCount(outcome=outcome, count=counts[outcome], first_error=first_errors[outcome]) for outcome in ordered
    )
