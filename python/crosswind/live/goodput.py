"""TCP's throughput to a server: the amount requested, and the result."""

from dataclasses import dataclass
from typing import Any

from crosswind.live.summary import estimate_as_dict
from crosswind.stats.estimate import Interval


@dataclass(frozen=True)
class TransferAmount:
    """How much is transferred in each direction: for so long, or so many bytes. One of the two is None."""

    duration_ns: int | None
    size_bytes: int | None

    @property
    def setting(self) -> dict[str, int]:
        """As a cell has it."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclass(frozen=True)
class Goodput:
    """TCP's throughput in one direction.

    Attributes:
        goodput: bit/s at the application. congestion_control, segments, retransmitted: the sender's; None if unknown.
    """

    direction: str
    goodput: Interval
    received_bytes: int
    time_ns: int
    congestion_control: str | None
    segments: int | None
    retransmitted: int | None

    def as_dict(self) -> dict[str, Any]:
        """As plain data."""
        plain = {key: value for key, value in vars(self).items() if key != "goodput"}
        return {**plain, "unit": "bit/s", **(estimate_as_dict(self.goodput) or {})}
