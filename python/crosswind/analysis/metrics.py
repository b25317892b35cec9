"""What is measured: one entry a metric, with its unit, its meaning and how it is read from a samples table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from crosswind.record import CellRun
from crosswind.stats.estimate import Array

_SIZED: tuple[tuple[str, str | None], ...] = (("duration_ns", None),)  # a transfer by duration takes that long
_RTT = pl.col("received_ns") - pl.col("sent_ns")


@dataclass(frozen=True)
class Metric:
    """A metric.

    Attributes:
        name: key in the result. title: heading. unit: "ns" or "bit/s". help: what it covers, one sentence.
        kinds: workloads that have it. expression: its value per row of a samples table, null where there is none.
        compared: whether levels are compared by it. needs: workload settings without which it is left out.
    """

    name: str
    title: str
    unit: str
    help: str
    kinds: tuple[str, ...]
    expression: pl.Expr
    compared: bool = False
    needs: tuple[tuple[str, str | None], ...] = ()

    def applies(self, workload: Mapping[str, Any]) -> bool:
        """Whether a workload has this metric."""
        return workload.get("kind") in self.kinds and all(workload.get(key) == value for key, value in self.needs)


@dataclass(frozen=True)
class Samples:
    """Values of one metric in one cell, all repetitions, in time order within each.

    Attributes:
        values: float64, shape (n,), in the metric's unit. clusters: int64, shape (n,), equal for exchanges that are not
        independent: those of one kept connection in one repetition; otherwise meaningless. repetitions: int64, (n,).
    """

    values: Array
    clusters: npt.NDArray[np.int64]
    repetitions: npt.NDArray[np.int64]


_ALL = (
    Metric("rtt", "Round-trip time", "ns", "From sending a message to its whole reply.",
           ("echo",), _RTT, compared=True),
    Metric("total", "Time with connection set-up", "ns", "Connection set-up and round trip of the first message.",
           ("echo",), pl.col("connect_ns") + _RTT, compared=True, needs=(("connection", "new"),)),
    Metric("response", "Response time", "ns",
           "From the moment a message was due to its whole reply: waiting behind slower ones counts.",
           ("echo",), pl.col("received_ns") - pl.col("intended_ns"), compared=True, needs=(("mode", "open"),)),
    Metric("connect", "Connection set-up", "ns", "From asking for a connection to having it.",
           ("echo", "transfer", "connect"), pl.col("connect_ns")),
    Metric("request", "Request, one way", "ns", "From the client to the server, by one clock.",
           ("echo",), pl.col("request_ns")),
    Metric("reply", "Reply, one way", "ns", "From the server to the client, by one clock.",
           ("echo",), pl.col("reply_ns")),
    Metric("goodput", "Goodput", "bit/s", "Bits received by the application over the time it took.",
           ("transfer",), 8e9 * pl.col("received_bytes").cast(pl.Float64) / _RTT.cast(pl.Float64), compared=True),
    Metric("transfer_time", "Transfer time on the wire", "ns", "From the first to the last packet with payload.",
           ("transfer",), pl.col("wire_ns"), compared=True, needs=_SIZED),
    Metric("transfer_time_app", "Transfer time of the application", "ns", "From asking for it to having its last byte.",
           ("transfer",), _RTT, needs=_SIZED),
)  # fmt: skip

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
"""Every metric by name, in the order of reports."""


def metrics_of(workload: Mapping[str, Any]) -> list[Metric]:
    """The metrics that a workload has."""
    return [metric for metric in METRICS.values() if metric.applies(workload)]


def is_compared(metric: Metric, workload: Mapping[str, Any]) -> bool:
    """Whether levels are compared by this metric: set-up time only where nothing else is asked for."""
    return metric.compared or (metric.name == "connect" and workload.get("kind") == "connect")


def read(metrics: Iterable[Metric], runs: list[CellRun]) -> dict[str, Samples]:
    """Values of some metrics over the repetitions of a cell, all read at once; only exchanges that went well have one.

    Metrics without a single value are left out.
    """
    used = [run for run in sorted(runs, key=lambda one: one.repetition) if not run.samples.is_empty()]
    wanted = {metric.name: metric.expression.cast(pl.Float64) for metric in metrics}
    if not used or not wanted:
        return {}
    heights = [run.samples.height for run in used]
    rows = (
        pl.concat([run.samples for run in used], rechunk=False)
        .with_columns(pl.Series("run", np.repeat(np.arange(len(used)), heights)))
        .filter(pl.col("outcome") == "ok")
        .sort("run", "intended_ns", "exchange", nulls_last=True)
        .select("run", pl.col("connection").cast(pl.Int64), **wanted)
    )
    run_of, connection = rows["run"].to_numpy(), rows["connection"].fill_null(-1).to_numpy()
    alone = np.array([_each_alone(run.parameters.get("workload") or {}) for run in used])
    kept = np.where(alone[run_of], np.arange(rows.height), connection)
    clusters = run_of * (int(kept.max(initial=0)) + 2) + kept
    repetitions = np.array([run.repetition for run in used])[run_of]
    found = {}
    for name in wanted:
        values = rows[name].to_numpy()
        known = np.isfinite(values)
        if known.any():
            found[name] = Samples(values[known], clusters[known], repetitions[known])
    return found


def _each_alone(workload: Mapping[str, Any]) -> bool:
    """Whether every exchange has a connection of its own, whatever number it bears."""
    return workload.get("kind") in ("transfer", "connect") or workload.get("connection") == "new"
