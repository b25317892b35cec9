"""Why a cell has no result: what it says itself, or what whoever runs it finds."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self


class ErrorKind(StrEnum):
    """Why a cell has no result. The first nine are printed by the cell, the others are found by whoever runs it."""

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
    """Why a cell has no result, and what to do about it."""

    kind: ErrorKind
    message: str
    hint: str | None = None

    def as_json(self) -> dict[str, str | None]:
        """The object as it is stored: an `error` event without its name."""
        return {"kind": self.kind, "message": self.message, "hint": self.hint}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The failure that was stored. Raises: KeyError, ValueError when it is none."""
        return cls(ErrorKind(data["kind"]), data["message"], data.get("hint"))
