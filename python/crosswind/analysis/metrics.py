"""What is measured: one entry a metric, with its unit, its meaning and how it is read from a samples table."""

from collections.abc import Mapping
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
        independent: those of one kept connection in one repetition. repetitions: int64, shape (n,).
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


def read(metric: Metric, runs: list[CellRun]) -> Samples:
    """Values of one metric over the repetitions of a cell; only exchanges that went well have one."""
    values, clusters, repetitions = [], [], []
    offset = 0
    for run in sorted(runs, key=lambda one: one.repetition):
        if run.samples.is_empty():
            continue
        rows = (
            run.samples.filter(pl.col("outcome") == "ok")
            .sort("intended_ns", "exchange", nulls_last=True)
            .select(metric.expression.alias("value"), pl.col("connection").cast(pl.Int64))
            .drop_nulls()
            .filter(pl.col("value").cast(pl.Float64).is_finite())
        )
        count = rows.height
        if not count:
            continue
        own = _each_alone(run.parameters.get("workload") or {})
        label = np.arange(count) if own else rows["connection"].to_numpy()
        values.append(rows["value"].cast(pl.Float64).to_numpy())
        clusters.append(label + offset)
        repetitions.append(np.full(count, run.repetition))
        offset += int(label.max()) + 1
    if not values:
        return Samples(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
    return Samples(
        np.concatenate(values).astype(np.float64),
        np.concatenate(clusters).astype(np.int64),
        np.concatenate(repetitions).astype(np.int64),
    )


def _each_alone(workload: Mapping[str, Any]) -> bool:
    """Whether every exchange has a connection of its own, whatever number it bears."""
    return workload.get("kind") in ("transfer", "connect") or workload.get("connection") == "new"
