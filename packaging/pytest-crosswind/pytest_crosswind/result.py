"""What `net.run` returns: how the client ended, what it printed, what the path did, and estimates of its times."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosswind.errors import UsageError
from pytest_crosswind.estimate import Estimate

if TYPE_CHECKING:
    from crosswind.analysis.cells import CellData
    from crosswind.api.programs import ProgramRoundTrips
    from crosswind.catalog.explained import Connection
    from crosswind.store.run import StoredRun

_REPORTED, _WHOLE = "client_time", "program_time"
"""Metrics: of the times that a client printed, and of its own from start to end."""


@dataclass(frozen=True)
class Direction:
    """What went one way. Attributes: bytes: of IP packets. delivered, delivered_bytes: of them. drops: by cause."""

    packets: int
    bytes: int
    delivered: int
    delivered_bytes: int
    drops: Mapping[str, int]

    @property
    def dropped(self) -> int:
        """How many packets were dropped, for whatever cause."""
        return sum(self.drops.values())

    @classmethod
    def of(cls, parts: Iterable[Mapping[str, Any]]) -> "Direction":
        """The sum over some repetitions, as `crosswind exec --json` has them."""
        parts = list(parts)
        drops: Counter[str] = Counter()
        for part in parts:
            drops.update(part["dropped"])
        sums = {
            name: sum(part[name] for part in parts) for name in ("packets", "bytes", "delivered", "delivered_bytes")
        }
        return cls(**sums, drops=dict(drops))


@dataclass(frozen=True)
class Repetition:
    """One run of client and server.

    Attributes:
        status: the client's exit status, 128 and the number of a signal that ended it, or 124 at its timeout.
        time: from starting the client to its end, s; None where it did not end by itself.
        retransmissions: TCP segments that both hosts retransmitted; None where they were not counted.
        connections: of both programs, the longest first, with what their time was spent on (docs/explain.md).
        flows: what the path did with the packets of the client, and of each flow beside it (docs/programs.md).
    """

    status: int
    timed_out: bool
    time: float | None
    forward: Direction
    reverse: Direction
    retransmissions: int | None
    directory: Path
    connections: Sequence["Connection"] = ()
    flows: Sequence[Mapping[str, Any]] = ()
    _has_value: bool = field(default=False, repr=False)

    @property
    def value(self) -> Any:
        """What the client's function returned; None of one that failed, and of a command.

        Raises: UsageError where that is more than is kept of what a client prints.
        """
        line = self._printed[1]
        try:
            return json.loads(line)
        except ValueError:
            message = f"the result of the client has at least {len(line)} characters, and not all were kept"
            raise UsageError(message, hint="return less than 16 MiB of JSON, or write it to a file") from None

    @property
    def output(self) -> str:
        """What the client printed on its standard output."""
        return self._printed[0]

    @property
    def errors(self) -> str:
        """What the client printed on its standard error."""
        return self._text("client.err")

    @property
    def server_output(self) -> str:
        """What the server printed on its standard output."""
        return self._text("server.out")

    @property
    def server_errors(self) -> str:
        """What the server printed on its standard error."""
        return self._text("server.err")

    @cached_property
    def _printed(self) -> tuple[str, str]:
        """Standard output but for the line that call.py adds, and that line: JSON."""
        text = self._text("client.out")
        if not self._has_value or self.status != 0:
            return text, "null"
        before, _, last = text.removesuffix("\n").rpartition("\n")
        return before + "\n" if before else "", last

    def _text(self, name: str) -> str:
        try:
            return (self.directory / name).read_text("utf-8", errors="replace")
        except FileNotFoundError:
            return ""


@dataclass(frozen=True)
class RoundTrips:
    """How many round trips a client takes.

    Attributes: trips: how many. besides: what it takes besides, s. deviation: how far its times are from a line at
        most, s. delays: over which it ran, each way.
    """

    trips: float
    besides: float
    deviation: float
    delays: tuple[str, ...]


class Result:
    """A run of client and server on a path, once or in several repetitions with other random decisions each.

    Counts are sums over the repetitions. `time`, `output`, `errors` and `value` are those of the only repetition; of
    several, `repetitions` has them. `median`, `mean`, `p95` and `p99` are estimates: of the times that the client
    printed or returned as `times_s` (docs/programs.md), else of its time from start to end.
    """

    def __init__(
        self, run: "StoredRun", *, has_value: bool, round_trips: Callable[[], "ProgramRoundTrips | None"]
    ) -> None:
        """Args: run: whose repetitions have all finished. has_value: whether the client is a function. round_trips:
        counts them."""
        from crosswind.api.programs_summary import summary_of

        summary = summary_of(run)
        self._run = run
        self._count_round_trips = round_trips
        self._parts = summary["repetitions"]
        self.directory = run.directory
        self.status: int = summary["exit_status"]
        self.clock: str = summary["clock"]
        self.seed: int = summary["seed"]
        self.valid: bool = all(part["valid"] for part in self._parts)
        self.warnings: list[str] = [
            text
            for part in self._parts
            for text in (*([] if part["valid"] else part["reasons"]), *(each["text"] for each in part["warnings"]))
        ]
        self.repetitions: list[Repetition] = [self._repetition(part, has_value) for part in self._parts]

    def __repr__(self) -> str:
        times = f"{len(self.repetitions)} repetitions" if len(self.repetitions) > 1 else f"time={self.times}"
        return (
            f"Result(status={self.status}, {times}, packets={self.packets}, drops={self.drops}, clock={self.clock!r})"
        )

    @property
    def time(self) -> float | None:
        """From starting the client to its end, s; None where it did not end by itself."""
        return self._only("time").time

    @property
    def output(self) -> str:
        """What the client printed on its standard output."""
        return self._only("output").output

    @property
    def errors(self) -> str:
        """What the client printed on its standard error."""
        return self._only("errors").errors

    @property
    def value(self) -> Any:
        """What the client's function returned."""
        return self._only("value").value

    @property
    def connections(self) -> Sequence["Connection"]:
        """Connections of both programs, the longest first, with what their time was spent on (docs/explain.md)."""
        return self._only("connections").connections

    @property
    def flows(self) -> Sequence[Mapping[str, Any]]:
        """What the path did with the packets of the client, and of each flow beside it (docs/programs.md)."""
        return self._only("flows").flows

    @property
    def times(self) -> list[float]:
        """From starting the client to its end, s, of each repetition in which it ended by itself."""
        return [repetition.time for repetition in self.repetitions if repetition.time is not None]

    @property
    def forward(self) -> Direction:
        """What went from the client to the server."""
        return Direction.of(part["forward"] for part in self._parts)

    @property
    def reverse(self) -> Direction:
        """What went from the server to the client."""
        return Direction.of(part["reverse"] for part in self._parts)

    @property
    def packets(self) -> int:
        """Packets that both hosts sent."""
        return self.forward.packets + self.reverse.packets

    @property
    def bytes(self) -> int:
        """Bytes of IP packets that both hosts sent."""
        return self.forward.bytes + self.reverse.bytes

    @property
    def drops(self) -> dict[str, int]:
        """Packets that the path dropped in both directions, by cause: {"loss": 3, "queue": 1}."""
        return dict(Counter(self.forward.drops) + Counter(self.reverse.drops))

    @property
    def retransmissions(self) -> int | None:
        """TCP segments that both hosts retransmitted, as their kernels count them; None where they were not counted."""
        counts = [
            repetition.retransmissions for repetition in self.repetitions if repetition.retransmissions is not None
        ]
        return sum(counts) if len(counts) == len(self.repetitions) else None

    @cached_property
    def round_trips(self) -> RoundTrips:
        """How many round trips in a row the client takes: it is run again over three further delays.

        Raises: UsageError where it does not end well over each of them.
        """
        counted = self._count_round_trips()
        if counted is None:
            raise UsageError(
                "the round trips of the client are not known: it did not end well over every delay",
                hint="look at what it prints over a longer delay: net.run(..., delay=..., check=False)",
            )
        return RoundTrips(counted.trips, counted.offset_ns / 1e9, counted.deviation_ns / 1e9, tuple(counted.delays))

    @property
    def median(self) -> Estimate:
        """Half of the times are below it."""
        return self.estimate("median")

    @property
    def mean(self) -> Estimate:
        """The arithmetic mean of the times."""
        return self.estimate("mean")

    @property
    def p95(self) -> Estimate:
        """95 % of the times are below it."""
        return self.estimate("p95")

    @property
    def p99(self) -> Estimate:
        """99 % of the times are below it."""
        return self.estimate("p99")

    def estimate(self, statistic: str, metric: str | None = None) -> Estimate:
        """A statistic of a metric of times, with its interval.

        Args:   statistic: median, mean, trimmed_mean, p95, p99. metric: client_time, program_time or send_time
                (docs/programs.md); None: client_time where the client says its times, else program_time.
        Raises: UsageError for a name of neither.
        """
        from crosswind.catalog.metrics import METRICS, STATISTICS
        from crosswind.text.quantities import TIME

        if statistic not in STATISTICS:
            raise UsageError(f"there is no statistic {statistic!r}", hint=f"one of {', '.join(STATISTICS)}")
        names = [
            metric.name for metric in METRICS.values() if metric.unit is TIME and metric.applies({"kind": "program"})
        ]
        if metric is not None and metric not in names:
            raise UsageError(f"{metric!r} is no metric of times of a program", hint=f"one of {', '.join(names)}")
        return Estimate(self._data, metric or (_REPORTED if _REPORTED in self._data.samples else _WHOLE), statistic)

    @cached_property
    def _data(self) -> "CellData":
        from crosswind.analysis.cells import collect

        (data,) = collect(self._run.record())
        return data

    def _only(self, name: str) -> Repetition:
        if len(self.repetitions) > 1:
            message = f"there are {len(self.repetitions)} repetitions, each with its own {name}"
            raise UsageError(f"{message}: result.repetitions[0].{name}, ...")
        return self.repetitions[0]

    def _repetition(self, part: Mapping[str, Any], has_value: bool) -> Repetition:
        again = part["tcp_retransmits"]
        return Repetition(
            status=part["exit_status"],
            timed_out=part["timed_out"],
            time=None if part["time_ns"] is None else part["time_ns"] / 1e9,
            forward=Direction.of([part["forward"]]),
            reverse=Direction.of([part["reverse"]]),
            retransmissions=None if again is None else again["client"] + again["server"],
            directory=self.directory / "cells" / part["key"],
            connections=part["connections"],
            flows=part["flows"],
            _has_value=has_value,
        )
