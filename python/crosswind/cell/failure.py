"""Why a cell has no result."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field


class ErrorKind(StrEnum):
    """Causes. The cell prints the first nine; its parent finds the others."""

    BAD_CELL = "bad_cell"
    PRIVILEGE = "privilege"
    UNSUPPORTED = "unsupported"
    DISK = "disk"
    DEADLINE = "deadline"
    INTERRUPTED = "interrupted"
    HOST = "host"
    INTERNAL = "internal"
    NETWORK = "network"
    KILLED = "killed"
    PROTOCOL = "protocol"


@dataclass(frozen=True)
class Failure:
    """Why a cell has no result, and the remedy: the cell's `error` event, or its parent's finding."""

    kind: ErrorKind
    message: Annotated[str, Field(strict=True)]
    hint: Annotated[str | None, Field(strict=True)]
    event: Literal["error"] = "error"

    def as_json(self) -> dict[str, str | None]:
        """The stored object: the event without its name."""
        return {"kind": self.kind, "message": self.message, "hint": self.hint}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Reads the stored form. Raises: KeyError, ValueError."""
        return cls(ErrorKind(data["kind"]), data["message"], data.get("hint"))
