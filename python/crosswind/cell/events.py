"""A running cell's events, as types (docs/cell-protocol.md).

`read_event` parses a line. A missing field, or one with another type, breaks the protocol; unknown fields are kept.
"""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from crosswind.cell.failure import Failure
from crosswind.cell.protocol_object import ProtocolObject
from crosswind.cell.result import Finished

_SHOWN_CHARACTERS = 80


class ProtocolError(ValueError):
    """A line outside the cell protocol; its text says why."""


class Started(ProtocolObject):
    """The cell was read."""

    event: Literal["started"] = "started"
    schema_: Literal["crosswind.event/1"] = Field(default="crosswind.event/1", alias="schema")
    id: str


class Ready(ProtocolObject):
    """The path is up."""

    event: Literal["ready"] = "ready"
    setup_ns: int


class ProgressFidelity(ProtocolObject):
    """Counted from the cell's start: packets released, late ones, and waits for a processor.

    `exchange_delay`: used share of its budget; null before the first successful exchange.
    """

    released: int
    late: int
    wait_ns: int
    probe_wait_ns: int
    exchange_delay: float | None


class Progress(ProtocolObject):
    """A cell's progress. `median_ns`: over the exchanges so far; `fidelity` is null without an emulator."""

    event: Literal["progress"] = "progress"
    done: int
    total: int
    lost: int
    elapsed_ns: int
    median_ns: int | None
    fidelity: ProgressFidelity | None

    @property
    def fraction(self) -> float | None:
        """The finished share; None at the start, and for an unknown total."""
        return min(1.0, self.done / self.total) if self.done and self.total else None


class Measured(ProtocolObject):
    """All is written except the time breakdown, computed next."""

    event: Literal["measured"] = "measured"


CellEvent = Annotated[Started | Ready | Progress | Measured | Finished | Failure, Field(discriminator="event")]
"""A line on a cell's standard output."""

_EVENTS: TypeAdapter[CellEvent] = TypeAdapter(CellEvent, config=ConfigDict(defer_build=True))


def read_event(line: bytes) -> CellEvent | None:
    """A line's event; None for an unknown kind.

    Raises: ProtocolError for a malformed one.
    """
    try:
        return _EVENTS.validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        if first["type"] == "union_tag_invalid" and isinstance(first["input"]["event"], str):
            return None
        raise ProtocolError(_explained(first, line)) from None


def _explained(error: ErrorDetails, line: bytes) -> str:
    """A line's problem, in words."""
    shown = line[:_SHOWN_CHARACTERS].decode(errors="replace")
    event, *keys = (str(part) for part in error["loc"]) if error["loc"] else ("",)
    match error["type"]:
        case "json_invalid":
            return f"not JSON: {shown!r}"
        case "literal_error" if keys == ["schema"]:
            return f"an event {event!r} of schema {error['input']!r}, not {error['ctx']['expected']}"
        case "missing" if keys:
            return f"its event {event!r} lacks {'.'.join(keys)}"
        case _ if keys:
            return f"its event {event!r} has {'.'.join(keys)} = {error['input']!r}: {error['msg']}"
        case _:
            return f"not an event: {shown}"
