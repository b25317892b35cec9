"""What TCP got to a server: how much was asked for, and what came of it."""

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
    """What TCP got one way.

    Attributes:
        goodput: bit/s of the application. congestion_control: the sender's; None where nobody said. segments,
            retransmitted: of the sender; None likewise.
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
