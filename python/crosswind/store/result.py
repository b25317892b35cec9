"""One repetition's `cells/<key>/result.json`: its settings and end."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pydantic import ValidationError

from crosswind.cell.failure import Failure
from crosswind.cell.result import FailureCount, Finished
from crosswind.files.damage import NOT_WHAT_WAS_WRITTEN
from crosswind.files.inside import plain
from crosswind.store.checksums import CHANGED, MISSING, Checksum, damaged_file
from crosswind.store.manifest import read_sealed
from crosswind.store.plan import PlannedCell
from crosswind.store.run_file import RunFile

RESULT = "result.json"
CELL_SCHEMA = "crosswind.cell-run/2"
_CUT_OFF = "connections_incomplete"
"""The warning for a cell over its packet limit."""


@dataclass(frozen=True)
class RepetitionResult:
    """One attempt at one repetition. Exactly one of `finished` and `failure` is set.

    Attributes:
        planned: the repetition in the plan. placement: its threads' processors.
        beside: maximum number of concurrent other cells, None if unknown. attempt: from 1.
        started, ended: UTC. elapsed_ns: by a monotonic clock.
        files: checksums of the stored files beside the result, by name; for a packed one only sizes, since its
            partition has its own checksums.
        machine: the worker's name; None for this session's machine.
        keeping_ns: time for packets and breakdowns beside the measurement, by kind (crosswind.store.kept).
        partition: its name, if packed; else None.
        same_as: the repetition that was run in its place, since it loses the same packets; None: it was run itself.
    """

    planned: PlannedCell
    placement: Mapping[str, object]
    beside: int | None
    attempt: int
    started: str
    ended: str
    elapsed_ns: int
    finished: Finished | None
    failure: Failure | None
    files: Mapping[str, Checksum] = field(default_factory=dict)
    machine: str | None = None
    keeping_ns: Mapping[str, int] = field(default_factory=dict)
    partition: str | None = None
    same_as: str | None = None

    @property
    def key(self) -> str:
        """The repetition's name."""
        return self.planned.key

    @property
    def size_bytes(self) -> int:
        """Total size, without the result itself."""
        return sum(checksum.size_bytes for checksum in self.files.values())

    @property
    def valid(self) -> bool:
        """Whether it finished and can be trusted."""
        return self.finished is not None and self.finished.valid

    @property
    def succeeded(self) -> bool:
        """Whether it finished, with a successful exchange if it has any."""
        return self.finished is not None and self.finished.samples.succeeded

    @property
    def is_cut_off(self) -> bool:
        """Whether it exceeded the packet limit for programs, so later connections have no breakdown."""
        return self.finished is not None and any(warning.name == _CUT_OFF for warning in self.finished.warnings)

    @property
    def outcomes(self) -> Sequence[FailureCount]:
        """Unsuccessful outcomes."""
        return self.finished.samples.outcomes if self.finished is not None else ()

    def for_same(self, planned: PlannedCell) -> Self:
        """The result of another repetition, which loses the same packets."""
        finished = None if self.finished is None else self.finished.model_copy(update={"id": planned.key})
        return replace(self, planned=planned, finished=finished, partition=None, same_as=self.key)

    def as_json(self) -> dict[str, Any]:
        """The object as it is stored."""
        return {
            "schema": CELL_SCHEMA,
            **self.planned.as_json(),
            **self._own_json(),
            "files": {name: checksum.as_json() for name, checksum in self.files.items()},
        }

    def packed_json(self) -> dict[str, Any]:
        """The object in a partition: without the plan's fields, and files by size."""
        return {**self._own_json(), "files": {name: checksum.size_bytes for name, checksum in self.files.items()}}

    def _own_json(self) -> dict[str, Any]:
        return {
            "placement": dict(self.placement),
            "beside": self.beside,
            "attempt": self.attempt,
            "finished": self.finished.as_json() if self.finished else None,
            "failure": self.failure.as_json() if self.failure else None,
            "started": self.started,
            "ended": self.ended,
            "elapsed_ns": self.elapsed_ns,
            "machine": self.machine,
            "keeping_ns": dict(self.keeping_ns),
            **({} if self.same_as is None else {"same_as": self.same_as}),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Reads the stored form. Raises: KeyError, TypeError, ValueError, AttributeError when malformed."""
        files = {plain(name): Checksum.from_json(checksum) for name, checksum in data["files"].items()}
        return cls._of(PlannedCell.from_json(data), data, files)

    @classmethod
    def packed(cls, planned: PlannedCell, data: Mapping[str, Any], partition: str) -> Self:
        """Reads a partition's form. Raises: as `from_json`."""
        files = {plain(name): Checksum(int(size_bytes), "") for name, size_bytes in data["files"].items()}
        return cls._of(planned, data, files, partition)

    @classmethod
    def _of(
        cls,
        planned: PlannedCell,
        data: Mapping[str, Any],
        files: Mapping[str, Checksum],
        partition: str | None = None,
    ) -> Self:
        finished, failure = data["finished"], data["failure"]
        return cls(
            planned=planned,
            placement=data["placement"],
            beside=data["beside"],
            attempt=data["attempt"],
            started=data["started"],
            ended=data["ended"],
            elapsed_ns=data["elapsed_ns"],
            finished=None if finished is None else Finished.from_stored(finished),
            failure=None if failure is None else Failure.from_json(failure),
            files=files,
            machine=data["machine"],
            keeping_ns=data["keeping_ns"],
            partition=partition,
            same_as=data.get("same_as"),
        )


def read_result(file: RunFile, *, key: str, run: str) -> RepetitionResult:
    """Reads a result.json.

    Args: key: the expected repetition. run: the run's id.
    Raises: DamagedFileError when missing, changed, or misplaced. UnreadableFileError for another schema.
    """
    with refusals(file):
        data = read_sealed(file, known=CELL_SCHEMA)
        if (data["key"], data["run"]) != (key, run):
            raise damaged_file(file, "is the result of another repetition")
        return RepetitionResult.from_json(data)


@contextmanager
def refusals(file: RunFile) -> Iterator[None]:
    """Turns read errors into a DamagedFileError naming the file."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError):
        raise damaged_file(file, MISSING) from None
    except OSError as error:
        raise damaged_file(file, f"cannot be read: {error.strerror or error}") from None
    except KeyError as error:
        raise damaged_file(file, f"lacks {error}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise damaged_file(file, f"cannot be read: finished.{place}: {first['msg']}") from None
    except NOT_WHAT_WAS_WRITTEN as error:
        raise damaged_file(file, CHANGED if str(error) == CHANGED else f"cannot be read: {error}") from None
