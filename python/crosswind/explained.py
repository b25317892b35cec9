"""Single exchanges of a run, each with the pieces of its time: what `crosswind explain` shows (docs/explain.md)."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

SCHEMA = "crosswind.explain/1"


@dataclass(frozen=True)
class Piece:
    """A piece of an exchange's time, ns since its cell was ready. The fields are the columns of docs/result.md."""

    from_ns: int
    to_ns: int
    part: str
    place: str
    direction: str | None
    index: int | None
    count: int

    @property
    def length_ns(self) -> int:
        """How long it lasted."""
        return self.to_ns - self.from_ns


@dataclass(frozen=True)
class Explained:
    """An exchange.

    Attributes:
        key: its repetition. cell, repetition, levels: which that is. exchange: its number.
        whole_ns: its time. usual_ns: the median of the exchanges of its repetition. parts: ns by part, none that is 0.
        pieces: the same in the order of time.
    """

    key: str
    cell: int
    repetition: int
    levels: Mapping[str, str]
    exchange: int
    whole_ns: int
    usual_ns: float
    parts: Mapping[str, int]
    pieces: Sequence[Piece]

    def to_json(self) -> dict[str, Any]:
        """As `--json` prints it."""
        return asdict(self)
