"""A page's source: the ended session, and its conditions."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from crosswind.live.expectations import Expectation
from crosswind.live.probes import Slice
from crosswind.live.report.history import History, Outage, WindowPeriod, outages_of, periods_of
from crosswind.live.summary import Summary
from crosswind.live.thresholds import JudgedThreshold
from crosswind.live.views import Subject, expectations
from crosswind.live.watch import Watch


@dataclass(frozen=True)
class Account:
    """An ended session.

    Attributes:
        time_ns: its duration. origin: its provenance, as in `surroundings`. facts: about the other end, as in
            `Probe.facts`.
    """

    watch: Watch
    subject: Subject
    history: History
    judged: list[JudgedThreshold]
    time_ns: int
    origin: Mapping[str, Any]
    facts: Sequence[tuple[str, str]] = ()

    @cached_property
    def total(self) -> Summary:
        """All probes."""
        return self.watch.total()

    @cached_property
    def part(self) -> Slice:
        """All probes' outcomes."""
        return self.watch.probes.between(0, self.watch.probes.sent)

    @cached_property
    def expectations(self) -> list[Expectation]:
        """TCP's expected throughput."""
        return expectations(self.watch, self.subject)

    @property
    def periods(self) -> list[WindowPeriod]:
        """Its windows, or several together."""
        return self._periods[0]

    @property
    def windows_together(self) -> int:
        """How many windows a period is."""
        return self._periods[1]

    @cached_property
    def outages(self) -> list[Outage]:
        """Its outages."""
        return outages_of(self.history, self.watch)

    @cached_property
    def _periods(self) -> tuple[list[WindowPeriod], int]:
        return periods_of(self.history, self.watch)
