"""A run's `manifest.json`: study, options, provenance, sessions, status. The plan has its own file."""

import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

from crosswind.errors import StoreError
from crosswind.files.damage import NOT_WHAT_WAS_WRITTEN
from crosswind.store.addresses import shown
from crosswind.store.checksums import Checksum, unsealed, unsealed_schema
from crosswind.store.files import write_sealed
from crosswind.store.run_file import RunFile

MANIFEST = "manifest.json"
MARKER = "manifest.json.removed"
"""The manifest's name while its run is being removed."""
RUN_SCHEMA = "crosswind.run/5"
FAMILY = "crosswind.run/"
_TABLES = {"study": "title", "presentation": "title", "provenance": "started"}
"""Tables in a manifest, each with a required text."""
NOT_A_RUN_HINT = "runs are the directories that `crosswind run` makes, in crosswind-runs/ without --output"


class Status(StrEnum):
    """How far a run is."""

    RUNNING = "running"
    INTERRUPTED = "interrupted"
    STOPPED = "stopped"
    """By an error."""
    DONE = "done"
    DIED = "died"
    """Its manifest says `running`, and nobody holds its lock. Never stored."""


@dataclass(frozen=True)
class Options:
    """Requests for every cell beside the study: files to keep, and a profile of processor time.

    `spent`: record time breakdowns, where a cell's packets allow it. `keys`: using programs' connection secrets; no
    file keeps these.
    """

    packets: bool = False
    spent: bool = True
    keys: bool = True
    capture: bool = False
    qlog: bool = False
    profile: bool = False


@dataclass(frozen=True)
class ClockJump:
    """The machine's clock was set, or the machine slept: when (UTC), and by how many seconds."""

    at: str
    by_s: float


@dataclass(frozen=True)
class Session:
    """One session of a run. Times are UTC; `ended` is None until the end.

    `jobs`: requested concurrency; None where the fidelity budget decides.
    """

    started: str
    command: tuple[str, ...] = ()
    ended: str | None = None
    clock_jumps: tuple[ClockJump, ...] = ()
    jobs: int | None = None

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Reads the stored form."""
        jumps = tuple(ClockJump(jump["at"], jump["by_s"]) for jump in data["clock_jumps"])
        return cls(data["started"], tuple(data["command"]), data["ended"], jumps, data["jobs"])


@dataclass(frozen=True)
class Manifest:
    """A run's intent and progress.

    Attributes:
        name: the study's. study: its canonical form. study_digest: over all measured settings.
        presentation: contents of a report beside the measurement.
        precision: target for intervals, and the repetitions between looks at a cell (docs/store.md); None for a fixed
            number of repetitions.
        planned: repetitions in the plan. provenance: versions, machine, kernel settings, `started`.
        id: unique; the results have it too. plan: the plan's checksum, None until written.
    """

    name: str
    study: Mapping[str, Any]
    study_digest: str
    presentation: Mapping[str, Any]
    options: Options
    planned: int
    provenance: Mapping[str, Any]
    sessions: tuple[Session, ...] = ()
    status: Status = Status.RUNNING
    precision: Mapping[str, Any] | None = None
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    plan: Checksum | None = None

    @property
    def title(self) -> str:
        """The study's heading."""
        return str(self.presentation["title"])

    @property
    def started(self) -> str:
        """When its first session began, UTC."""
        return str(self.provenance["started"])

    def as_json(self) -> dict[str, Any]:
        """The object as it is stored."""
        return {
            "schema": RUN_SCHEMA,
            "id": self.id,
            "name": self.name,
            "study": self.study,
            "study_digest": self.study_digest,
            "presentation": self.presentation,
            "options": asdict(self.options),
            **({} if self.precision is None else {"precision": self.precision}),
            "planned": self.planned,
            "plan": self.plan.as_json() if self.plan else None,
            "provenance": self.provenance,
            "sessions": [asdict(session) for session in self.sessions],
            "status": self.status,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Reads the stored form. Raises: KeyError, TypeError, ValueError, AttributeError when malformed."""
        options = {name: bool(data["options"][name]) for name in Options.__dataclass_fields__}
        for name, key in _TABLES.items():
            if not isinstance(data[name], dict) or not isinstance(data[name].get(key, ""), str):
                raise TypeError(f"its {name} is none")
        made = cls(
            name=data["name"],
            study=data["study"],
            study_digest=data["study_digest"],
            presentation=data["presentation"],
            options=Options(**options),
            planned=int(data["planned"]),
            provenance=data["provenance"],
            sessions=tuple(map(Session.from_json, data["sessions"])),
            status=Status(data["status"]),
            precision=data.get("precision"),
            id=data["id"],
            plan=Checksum.from_json(data["plan"]),
        )
        for time in (made.started, *(session.started for session in made.sessions)):
            datetime.fromisoformat(time)
        return made


class UnreadableFileError(StoreError):
    """An unreadable file in a run. `reason` says why without naming it, for a listing."""

    def __init__(self, message: str, reason: str, *, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason


def write_manifest(directory: Path, manifest: Manifest) -> None:
    """Replaces a run's manifest. Raises: OSError."""
    write_sealed(directory / MANIFEST, manifest.as_json())


def read_manifest(directory: Path) -> Manifest:
    """A run's manifest. Raises: UnreadableFileError when missing or from an unknown version."""
    file = RunFile(directory, MANIFEST)
    try:
        data = read_sealed(file, known=RUN_SCHEMA)
    except (FileNotFoundError, NotADirectoryError):
        reason = f"it has no {MANIFEST}"
        raise UnreadableFileError(f"{shown(directory)} is not a run: {reason}", reason, hint=NOT_A_RUN_HINT) from None
    except OSError as error:
        raise _damaged(file, error.strerror or str(error)) from None
    except ValueError as error:
        raise _damaged(file, f"it {error}") from None
    try:
        return Manifest.from_json(data)
    except KeyError as error:
        raise _damaged(file, f"it lacks {error}") from None
    except NOT_WHAT_WAS_WRITTEN as error:
        raise _damaged(file, f"it is no manifest of a run: {error}") from None


def read_sealed(file: RunFile, *, known: str) -> Any:
    """The object in a JSON file with its own checksum.

    Args: known: the required schema.
    Raises: UnreadableFileError for another schema. OSError. ValueError when changed.
    """
    content = file.read()
    try:
        data = unsealed(content)
    except ValueError:
        # A file under another schema may have no checksum.
        if unsealed_schema(content) not in (None, known):
            raise _of_another_schema(file, unsealed_schema(content), known) from None
        raise
    if data.get("schema") != known:
        raise _of_another_schema(file, data.get("schema"), known)
    return data


def _of_another_schema(file: RunFile, schema: object, known: str) -> UnreadableFileError:
    family, _, version = str(schema).partition("/")
    known_family, _, known_version = known.partition("/")
    if family == known_family and version.isdecimal() and int(version) > int(known_version):
        reason = f"its schema is {schema}, newer than {known}, the one this version reads"
        hint = "update crosswind, or read the Parquet files directly"
    else:
        reason = f"its schema is {schema!r}, not {known!r}"
        hint = "this version cannot read it: run the study anew, or read the Parquet files directly"
    return UnreadableFileError(f"cannot read {file}: {reason}", reason, hint=hint)


def _damaged(file: RunFile, reason: str) -> UnreadableFileError:
    return UnreadableFileError(
        f"cannot read {file}: {reason}", reason, hint="restore the file from a copy, or run the study anew"
    )
