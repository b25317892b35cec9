"""What is measured: one entry a metric, with its unit, its meaning and how it is read from a samples table."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from crosswind.analysis import costs, peers
from crosswind.analysis.costs import OfRun
from crosswind.analysis.head_of_line import with_recovery
from crosswind.record import CellRun
from crosswind.stats.estimate import Array

_SIZED: tuple[tuple[str, str | None], ...] = (("duration_ns", None),)  # a transfer by duration takes that long
_RTT = pl.col("received_ns") - pl.col("sent_ns")


@dataclass(frozen=True)
class Metric:
    """A metric: a value for each exchange, or one for each repetition.

    Attributes:
        name: key in the result. title: heading. unit: "ns", "bit/s", "bytes", "packets" or "1". help: what it covers,
            one sentence. kinds: workloads that have it. expression: its value per row of a samples table, null where
            there is none; of a repetition, an aggregate of its rows. of_run: a repetition's value that no sample holds.
        per_repetition: whether there is one for each repetition. compared: whether levels are compared by it.
        needs: settings without which a workload of the kinds in `choosy` is left out.
        share: whether its values are 0 and 1, and what counts is the share of ones.
        waits: whether it holds the waits of retransmission. table: of several metrics that share one, else "".
    """

    name: str
    title: str
    unit: str
    help: str
    kinds: tuple[str, ...]
    expression: pl.Expr | None
    compared: bool = False
    needs: tuple[tuple[str, str | None], ...] = ()
    choosy: tuple[str, ...] = ("echo", "transfer")
    per_repetition: bool = False
    of_run: OfRun | None = None
    share: bool = False
    waits: bool = True
    table: str = ""

    def applies(self, workload: Mapping[str, Any]) -> bool:
        """Whether a workload has this metric."""
        kind = workload.get("kind")
        asked = self.needs if kind in self.choosy else ()
        return kind in self.kinds and all(workload.get(key) == value for key, value in asked)


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


_LATE = 0.9
"""Of the shortest round trip: to send a packet again takes a whole one more at least; QUIC's pacing took up to 0.75."""

_LATE_NS = 2e6
"""What punctual cells stay below: the default budget lets a packet leave the path 1 ms late; a round trip has two."""

_SHORTEST = pl.col("shortest_ns")
_DELAYED = (_RTT > _SHORTEST * (1 + _LATE)) & (_RTT > _SHORTEST + _LATE_NS)

_CONNECTING = ("echo", "transfer", "connect", "multiplex", "page")
_OK = pl.col("outcome") == "ok"


def _cost(name: str, title: str, unit: str, help_text: str, of_run: OfRun) -> Metric:
    """A metric of what messages cost, a value for each repetition."""
    table = "cpu" if name.startswith("cpu_") else "overhead"
    return Metric(name, title, unit, help_text, _CONNECTING, None, per_repetition=True, of_run=of_run, waits=False,
                  table=table)  # fmt: skip


_ALL = (
    Metric("rtt", "Round-trip time", "ns", "From sending a message to its whole reply.",
           ("echo", "multiplex"), _RTT, compared=True),
    Metric("total", "Time with connection set-up", "ns", "Connection set-up and round trip of the first message.",
           ("echo",), pl.col("connect_ns") + _RTT, compared=True, needs=(("connection", "new"),)),
    Metric("response", "Response time", "ns",
           "From the moment a message was due to its whole reply: waiting behind slower ones counts.",
           ("echo", "multiplex"), pl.col("received_ns") - pl.col("intended_ns"), compared=True,
           needs=(("mode", "open"),)),
    Metric("delayed_share", "Share of exchanges delayed", "1",
           "Of exchanges that were answered: those longer than the shortest by nine tenths of it and by 2 ms. That is "
           "the shortest of all cells that differ in loss alone.",
           ("echo",), _DELAYED, needs=(("mode", "closed"),), share=True, waits=False),
    Metric("completion", "Completion time", "ns",
           "From sending the first message to having the last reply, where none is lost; one value a repetition.",
           ("multiplex",), pl.when(_OK.all()).then(pl.col("received_ns").max() - pl.col("sent_ns").min()),
           compared=True, per_repetition=True),
    Metric("head_of_line", "Head-of-line blocking", "ns",
           "Round trip beyond the usual one, of messages that lost no packet while another stream of their connection "
           "recovered a loss.", ("multiplex",), pl.col("extra_ns"), compared=True),
    Metric("blocked_share", "Share of messages blocked", "1",
           "Of messages that lost no packet: those that met another stream's recovery and were slower than the usual "
           "of those that met none (Tukey's fence); one value a repetition.",
           ("multiplex",), pl.col("blocked").mean(), per_repetition=True, waits=False),
    Metric("page_load", "Page load time", "ns", "From asking for the first connection to having the last object.",
           ("page",), _RTT, compared=True),
    Metric("connect", "Connection set-up", "ns", "From asking for a connection to having it.",
           _CONNECTING, pl.col("connect_ns")),
    Metric("handshake_transport", "TCP handshake", "ns", "From the first SYN to an open TCP connection.",
           _CONNECTING, pl.col("transport_ns")),
    Metric("handshake_security", "TLS or QUIC handshake", "ns", "From the first byte of it to agreed keys.",
           _CONNECTING, pl.col("security_ns")),
    Metric("handshake_upgrade", "Upgrade", "ns",
           "To WebSocket, WebTransport or Socket.IO, with the polling that may go before.",
           _CONNECTING, pl.col("upgrade_ns")),
    Metric("request", "Request, one way", "ns", "From the client to the server, by one clock.",
           ("echo", "multiplex"), pl.col("request_ns")),
    Metric("reply", "Reply, one way", "ns", "From the server to the client, by one clock.",
           ("echo", "multiplex"), pl.col("reply_ns")),
    Metric("goodput", "Goodput", "bit/s", "Bits received by the application over the time it took.",
           ("transfer",), 8e9 * pl.col("received_bytes").cast(pl.Float64) / _RTT.cast(pl.Float64), compared=True),
    Metric("transfer_time", "Transfer time on the wire", "ns", "From the first to the last packet with payload.",
           ("transfer",), pl.col("wire_ns"), compared=True, needs=_SIZED),
    Metric("transfer_time_app", "Transfer time of the application", "ns", "From asking for it to having its last byte.",
           ("transfer",), _RTT, needs=_SIZED),
    _cost("wire_bytes_forward", "On the wire to the server, a message", "bytes",
          "IP bytes that the client sent, by message.", costs.on_wire("forward", "bytes")),
    _cost("wire_bytes_reverse", "On the wire to the client, a message", "bytes",
          "IP bytes that the server sent, by message.", costs.on_wire("reverse", "bytes")),
    _cost("wire_packets_forward", "Packets to the server, a message", "packets",
          "Packets that the client sent, by message.", costs.on_wire("forward", "packets")),
    _cost("wire_packets_reverse", "Packets to the client, a message", "packets",
          "Packets that the server sent, by message.", costs.on_wire("reverse", "packets")),
    _cost("overhead_forward", "Overhead to the server, a message", "bytes",
          "IP bytes that the client sent beyond the payload, by message.", costs.overhead("forward")),
    _cost("overhead_reverse", "Overhead to the client, a message", "bytes",
          "IP bytes that the server sent beyond the payload, by message.", costs.overhead("reverse")),
    _cost("cpu_client", "Client's processor time, a message", "ns",
          "What the client's threads ran, by message.", costs.processor_time("client")),
    _cost("cpu_server", "Server's processor time, a message", "ns",
          "What the server's threads ran, by message.", costs.processor_time("server")),
    Metric("send_time", "Sending time of a message", "ns",
           "How long the client program says that sending took, by message.", ("program",), None,
           per_repetition=True, of_run=peers.time_of_message, waits=False, table="peers"),
)  # fmt: skip

METRICS: dict[str, Metric] = {metric.name: metric for metric in _ALL}
"""Every metric by name, in the order of reports."""


def metrics_of(workload: Mapping[str, Any]) -> list[Metric]:
    """The metrics that a workload has."""
    return [metric for metric in METRICS.values() if metric.applies(workload)]


def is_compared(metric: Metric, workload: Mapping[str, Any]) -> bool:
    """Whether levels are compared by this metric: set-up time only where nothing else is asked for."""
    return metric.compared or (metric.name == "connect" and workload.get("kind") == "connect")


def read(metrics: Iterable[Metric], runs: list[CellRun], *, shortest_ns: float | None = None) -> dict[str, Samples]:
    """Values of some metrics over the repetitions of a cell; of exchanges, only those that went well have one.

    Metrics without a single value are left out.

    Args: shortest_ns: round trip that nothing delayed, else the shortest of these.
    """
    told = [run for run in runs if not run.samples.is_empty() or run.client_out]
    used = sorted(told, key=lambda one: one.repetition)
    wanted = list(metrics)
    if not used or not wanted:
        return {}
    shortest = shortest_of(used) if shortest_ns is None else shortest_ns
    rows = _rows(used).with_columns(shortest_ns=pl.lit(shortest, dtype=pl.Float64))
    single = {one.name: one.expression for one in wanted if one.expression is not None and not one.per_repetition}
    found = _of_exchanges(single, used, rows) | _of_repetitions(
        [one for one in wanted if one.per_repetition], used, rows
    )
    return {one.name: found[one.name] for one in wanted if one.name in found}


def shortest_of(runs: Iterable[CellRun]) -> float | None:
    """The shortest round trip of some repetitions, ns; None without one."""
    found = (run.samples.filter(_OK).select(_RTT.min()).item() for run in runs)
    return min((float(value) for value in found if value is not None), default=None)


def _rows(used: list[CellRun]) -> pl.DataFrame:
    """The samples of all repetitions, numbered by `run`; those of multiplex with what they tell together."""
    heights = [run.samples.height for run in used]
    rows = pl.concat([run.samples for run in used], rechunk=False).with_columns(
        pl.Series("run", np.repeat(np.arange(len(used)), heights))
    )
    workload = used[0].parameters.get("workload") or {}
    if workload.get("kind") != "multiplex":
        return rows
    return with_recovery(rows, int(workload.get("timeout_ns") or 0))


def _of_exchanges(wanted: Mapping[str, pl.Expr], used: list[CellRun], rows: pl.DataFrame) -> dict[str, Samples]:
    values_of = {name: expression.cast(pl.Float64) for name, expression in wanted.items()}
    rows = (
        rows.filter(_OK)
        .sort("run", "intended_ns", "exchange", nulls_last=True)
        .select("run", pl.col("connection").cast(pl.Int64), **values_of)
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


def _of_repetitions(wanted: list[Metric], used: list[CellRun], rows: pl.DataFrame) -> dict[str, Samples]:
    """Each repetition's value, each independent of the others."""
    summed = {one.name: one.expression.cast(pl.Float64) for one in wanted if one.expression is not None}
    table = rows.group_by("run", maintain_order=True).agg(**summed) if summed else None
    found = {}
    for one in wanted:
        each = [one.of_run(run) for run in used] if one.of_run else [] if table is None else table[one.name].to_list()
        known = [(value, run.repetition) for value, run in zip(each, used, strict=True) if value is not None]
        if known:
            values, repetitions = (np.array(part) for part in zip(*known, strict=True))
            found[one.name] = Samples(values.astype(np.float64), np.arange(values.size), repetitions)
    return found


def _each_alone(workload: Mapping[str, Any]) -> bool:
    """Whether every exchange has a connection of its own, whatever number it bears."""
    return workload.get("kind") in ("transfer", "connect", "page") or workload.get("connection") == "new"
