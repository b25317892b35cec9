"""Concurrent flows' shares of their path: a cell's workload and the flows beside it.

All is about the time with every flow running: from the last beginning to the first end, in whole intervals from the
flow table. Rates count IP packets delivered by the path. A flow's direction is the one with far more of its bytes; for
a balanced flow, the one with more bytes overall.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from crosswind.catalog.endpoints import is_helper
from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.cell.record import CellRun
from crosswind.stats.arrays import Array

WORKLOAD = 0
"""The workload's flow number."""

INTERVAL_NS = 100_000_000
"""crosswind-cell's interval for packet counts by flow."""

FAIR = 0.9
"""Jain's index for fair sharing among bulk flows: one flow then has twice the other's rate."""

TRIMMED_ABOVE = 0.95
"""Times above this quantile do not count in their trimmed mean (draft-ietf-ippm-responsiveness-09, section 5.2)."""

IS_BACKGROUND = pl.col("background") == 1
"""Rows for background traffic, without flow or host."""

_COUNTED = ("bytes", "packets", "dropped", "marked", "queueing_ns")

_ONE_WAY = 2
"""A flow goes one way if it sends more than this many times the bytes in it."""

_LOOK_BACK_NS = 1_000_000_000
"""Over how long rates are averaged where it is asked since when they are fair."""


def jain(rates: Array) -> float:
    """Jain's index of fairness: 1 for equal rates, 1/n where one has all. Args: rates: shape (n,).

    Source: R. Jain, D. Chiu, W. Hawe, "A quantitative measure of fairness", DEC-TR-301, 1984.
    """
    squares = float(np.square(rates).sum())
    return float(rates.sum()) ** 2 / (rates.size * squares) if squares else float("nan")


@dataclass(frozen=True)
class Flows:
    """A repetition's flows, while all ran.

    Attributes: names: each flow's, the workload's first. bulk: bulk transfers' numbers. from_ns, to_ns: that time.
        table: its intervals. background: background traffic's, not a flow.
    """

    names: tuple[str, ...]
    bulk: tuple[int, ...]
    from_ns: int
    to_ns: int
    table: pl.DataFrame
    background: pl.DataFrame

    @classmethod
    def of(cls, run: CellRun) -> "Flows | None":
        """None where no flow ran beside the workload, or not all at one time."""
        finished = run.finished
        if finished is None or not finished.flows or run.intervals.is_empty():
            return None
        beside = run.parameters.get("flows") or ()
        shares = [not is_helper(flow) for flow in beside for _ in range(int(flow.get("count", 1)))]
        sharing = [flow for flow, shared in zip(finished.flows, shares, strict=True) if shared]
        if any(flow.began_ns is None for flow in sharing):
            return None
        begun = max((flow.began_ns or 0 for flow in sharing), default=0)
        ended = min((finished.elapsed_ns, *(flow.ended_ns for flow in sharing)))
        from_ns, to_ns = -(-begun // INTERVAL_NS) * INTERVAL_NS, ended // INTERVAL_NS * INTERVAL_NS
        if to_ns <= from_ns:
            return None
        within = run.intervals.filter(pl.col("from_ns").is_between(from_ns, to_ns - 1))
        kinds = kinds_of_flows(run.parameters)
        bulk = tuple(number for number, kind in enumerate(kinds) if kind == "transfer")
        names = ("workload", *(flow.name for flow in finished.flows))
        return cls(names, bulk, from_ns, to_ns, within.filter(~IS_BACKGROUND), within.filter(IS_BACKGROUND))

    @property
    def length_ns(self) -> int:
        """The time with all running."""
        return self.to_ns - self.from_ns

    @cached_property
    def direction(self) -> str:
        """The direction with more delivered bytes."""
        by_direction = dict(self.table.group_by("direction").agg(pl.col("bytes").sum()).iter_rows())
        return max(DIRECTIONS, key=lambda direction: by_direction.get(direction, 0))

    @cached_property
    def directions(self) -> tuple[str, ...]:
        """Each flow's direction."""
        return tuple(self._direction_of(*counts) for counts in zip(*self._bytes_by_direction, strict=True))

    def _direction_of(self, forward: float, reverse: float) -> str:
        if forward > _ONE_WAY * reverse:
            return DIRECTIONS[0]
        return DIRECTIONS[1] if reverse > _ONE_WAY * forward else self.direction

    @property
    def _bytes_by_direction(self) -> tuple[Array, Array]:
        return self._counted[DIRECTIONS[0]]["bytes"], self._counted[DIRECTIONS[1]]["bytes"]

    @property
    def bytes(self) -> Array:
        """Each flow's delivered bytes in its direction, shape (flows,)."""
        return self._own("bytes")

    @property
    def rates(self) -> Array:
        """Each flow's bit/s, shape (flows,)."""
        return 8e9 * self.bytes / self.length_ns

    def share(self, numbers: Sequence[int]) -> float:
        """Same-named flows' share of all delivered flow bytes in their direction; NaN without any."""
        counted = self._counted[self.directions[numbers[0]]]["bytes"]
        return float(counted[list(numbers)].sum() / counted.sum()) if counted.any() else float("nan")

    @property
    def rivals(self) -> list[int]:
        """Bulk flows in one direction: the workload's, or the path's if the workload is not bulk."""
        way = self.directions[WORKLOAD] if WORKLOAD in self.bulk else self.direction
        return [number for number in self.bulk if self.directions[number] == way]

    def _own(self, column: str) -> Array:
        """Each flow's count in its direction, shape (flows,)."""
        forward, reverse = (self._counted[direction][column] for direction in DIRECTIONS)
        return np.where(np.array(self.directions) == DIRECTIONS[0], forward, reverse)

    @cached_property
    def _counted(self) -> dict[str, dict[str, Array]]:
        """Each flow's counts in each direction, each shape (flows,)."""
        sums = self.table.drop_nulls("flow").group_by("direction", "flow").agg(pl.col(_COUNTED).sum())
        made = {}
        for direction in DIRECTIONS:
            by_flow = sums.filter(direction=direction)
            made[direction] = {column: np.zeros(len(self.names)) for column in _COUNTED}
            for column, totals in made[direction].items():
                totals[by_flow["flow"].to_numpy()] = by_flow[column].to_numpy()
        return made

    @property
    def background_counts(self) -> dict[str, float]:
        """Background traffic's counts in the direction."""
        in_direction = self.background.filter(direction=self.direction)
        return {column: float(in_direction[column].sum()) for column in _COUNTED}

    @property
    def dropped_shares(self) -> Array:
        """Each flow's dropped share, shape (flows,); NaN without packets."""
        dropped, delivered = self._own("dropped"), self._own("packets")
        with np.errstate(invalid="ignore"):
            return dropped / (dropped + delivered)

    @property
    def marked_shares(self) -> Array:
        """Each flow's marked share among delivered packets, shape (flows,); NaN without packets."""
        with np.errstate(invalid="ignore"):
            return self._own("marked") / self._own("packets")

    @property
    def queueing_ns(self) -> Array:
        """Each flow's mean wait in queues, shape (flows,); NaN without packets."""
        with np.errstate(invalid="ignore"):
            return self._own("queueing_ns") / self._own("packets")

    @property
    def fairness(self) -> float | None:
        """The rivals' Jain index; None for fewer than two."""
        return jain(self.bytes[self.rivals]) if len(self.rivals) > 1 else None

    @property
    def fair_after_ns(self) -> int | None:
        """From the last beginning to a Jain index at `FAIR` over a second's rates; None without one."""
        if len(self.rivals) < 2:
            return None
        count = self.length_ns // INTERVAL_NS
        delivered = np.zeros((len(self.rivals), count))
        counted = self.table.filter(pl.col("direction") == self.directions[self.rivals[0]])
        for row, number in enumerate(self.rivals):
            of_flow = counted.filter(pl.col("flow") == number)
            at = (of_flow["from_ns"].to_numpy() - self.from_ns) // INTERVAL_NS
            delivered[row, at] = of_flow["bytes"].to_numpy()
        width = max(1, min(count, _LOOK_BACK_NS // INTERVAL_NS))
        sums = np.cumsum(np.pad(delivered, ((0, 0), (1, 0))), axis=1)
        windows = sums[:, width:] - sums[:, :-width]
        fair = [place for place in range(windows.shape[1]) if jain(windows[:, place]) >= FAIR]
        return None if not fair else int((fair[0] + width) * INTERVAL_NS)


def kinds_of_flows(parameters: dict[str, Any]) -> list[str]:
    """Each flow's workload kind, the workload's first."""
    workload = parameters.get("workload") or {}
    beside = [[str(flow["workload"]["kind"])] * int(flow.get("count", 1)) for flow in parameters.get("flows") or ()]
    return [str(workload.get("kind")), *(kind for kinds in beside for kind in kinds)]


def trimmed_mean(times: Array) -> float:
    """The mean without times above the 95th percentile. Args: times: shape (n,), n > 0."""
    return float(times[times <= np.quantile(times, TRIMMED_ABOVE, method="inverted_cdf")].mean())


def responsiveness(run: CellRun, flows: Flows) -> dict[str, float]:
    """Round trips a minute with all flows running, by draft-ietf-ippm-responsiveness-09.

    Section 5.3.1: `responsiveness_foreign` is 60 s over the mean of TM(tcp_f), TM(tls_f) and TM(http_f), as far as
    measured, for exchanges with their own connections; a TLS 1.3 or QUIC handshake is one round trip.
    `responsiveness_loaded` is 60 s over TM(http_l), for requests on loaded connections. `responsiveness` is the mean of
    both, absent without one half.
    """
    in_time = pl.col("outcome") == "ok", pl.col("sent_ns").is_between(flows.from_ns, flows.to_ns - 1)
    responsiveness = {}
    if (run.parameters.get("workload") or {}).get("connection") == "new":
        probes = run.samples.filter(*in_time)
        parts = (probes["transport_ns"], probes["security_ns"], probes["received_ns"] - probes["sent_ns"])
        means = [trimmed_mean(part.drop_nulls().to_numpy()) for part in parts if part.len() > part.null_count()]
        if means:
            responsiveness["responsiveness_foreign"] = 60e9 / float(np.mean(means))
    requests = run.probes.filter(*in_time, pl.col("flow").is_in(flows.bulk))
    if not requests.is_empty():
        times = (requests["received_ns"] - requests["sent_ns"]).to_numpy()
        responsiveness["responsiveness_loaded"] = 60e9 / trimmed_mean(times)
    if len(responsiveness) == 2:
        responsiveness["responsiveness"] = sum(responsiveness.values()) / 2
    return responsiveness


def flow_counts(run: CellRun) -> dict[str, float | None]:
    """A repetition's counts with flows beside the workload (crosswind.analysis.counters)."""
    flows = Flows.of(run)
    if flows is None:
        return {}
    counted: dict[str, float | None] = {
        "flow_bytes": float(flows.bytes[WORKLOAD]),
        "beside_bytes": float(flows.bytes[WORKLOAD + 1 :].sum()),
        "bulk_bytes": float(flows.bytes[flows.rivals].sum()) if len(flows.rivals) > 1 else None,
        "flows_ns": float(flows.length_ns),
        "fairness": flows.fairness,
        "fair_after_ns": flows.fair_after_ns,
        **responsiveness(run, flows),
    }
    for direction, way in ((DIRECTIONS[0], run.effect.forward), (DIRECTIONS[1], run.effect.reverse)):
        if way.rate_bps:
            delivered = flows.table.filter(pl.col("direction") == direction)["bytes"].sum()
            counted[f"utilisation_{direction}"] = 8e9 * float(delivered) / (way.rate_bps * flows.length_ns)
    return counted
