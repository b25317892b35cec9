"""Each metric's values in a cell, by its formula (crosswind.catalog.metrics)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from crosswind.analysis.client_reports import report_of
from crosswind.analysis.counters import counters_of
from crosswind.analysis.settings import CellSettings
from crosswind.catalog.metrics import METRICS, Metric, Per
from crosswind.cell.record import CellRun
from crosswind.stats.arrays import Array
from crosswind.stats.repetitions import RepetitionKey, Repetitions

_OK = pl.col("outcome") == "ok"

MIN_UNDISTURBED = 6
"""The fewest messages for a reference: the median's minimum for an interval."""

FENCE = 1.5
"""Interquartile ranges above the third quartile: Tukey's outside (Exploratory Data Analysis, 1977).

A quantile further out would be moved by the few undisturbed messages late for another reason.
"""

_Flags = npt.NDArray[np.bool_]


def read_samples(
    runs: Iterable[CellRun],
    *,
    undisturbed_ns: float | None,
    metrics: Sequence[Metric] | None = None,
    disturbed: Sequence[CellRun] = (),
) -> dict[str, Repetitions]:
    """Values for every metric in a cell's repetitions, by the metric's name.

    Args: undisturbed_ns: an undelayed round trip, under this name in formulas; None: unknown. metrics: these alone,
        told by samples alone; None: all. disturbed: the cell's repetitions with a disturbed packet.
    """
    used = sorted((run for run in runs if not run.samples.is_empty() or run.client_out), key=lambda run: run.repetition)
    if not used:
        return {}
    settings = CellSettings.of(used[0].parameters, used[0].effect)
    wanted = [
        metric for metric in (METRICS.values() if metrics is None else metrics) if metric.applies(settings.workload)
    ]
    setup = pl.lit(0) if settings.workload.get("transport") == "udp" else pl.col("connect_ns")
    rows, counted = _numbered([run.samples for run in used]).with_columns(setup_ns=setup), pl.DataFrame()
    if metrics is None:
        rows, counted = _with_spent(rows, used, settings, undisturbed_ns), counters_of(used, disturbed)
    units: dict[str, Repetitions] = {}
    for of_failed in (False, True):
        exchanges = [metric for metric in wanted if metric.per is Per.EXCHANGE and metric.of_failed is of_failed]
        units |= _of_exchanges(exchanges, used, rows, settings, of_failed=of_failed)
    for metric in wanted:
        if metric.per is Per.REPETITION:
            units[metric.name] = _of_repetitions(_summed(metric, rows, len(used)), used)
        elif metric.per in (Per.MESSAGE, Per.COUNTED):
            units[metric.name] = _of_repetitions(counted.select(_value(metric)).to_series().to_list(), used)
        elif metric.per is Per.REPORTED:
            units[metric.name] = _of_reports(metric, used)
    return {metric.name: units[metric.name] for metric in wanted if units[metric.name].values.size}


def _with_spent(
    rows: pl.DataFrame, used: Sequence[CellRun], settings: CellSettings, undisturbed_ns: float | None
) -> pl.DataFrame:
    """Samples with their time breakdown, null if unknown; for multiplex also `extra_ns` and `blocked`."""
    spent = _numbered([run.spent for run in used])
    rows = rows.join(spent, on=["run", "exchange"], how="left", maintain_order="left")
    rows = rows.with_columns(undisturbed_ns=pl.lit(undisturbed_ns, dtype=pl.Float64))
    return with_recovery(rows, settings.number("timeout_ns") or 0.0) if settings.kind == "multiplex" else rows


def _numbered(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The rows in all tables, numbered by `run`."""
    numbers = np.repeat(np.arange(len(tables)), [table.height for table in tables])
    return pl.concat(tables, rechunk=False).with_columns(pl.Series("run", numbers))


def _value(metric: Metric) -> pl.Expr:
    return pl.sql_expr(metric.formula).cast(pl.Float64).alias(metric.name)


def _of_exchanges(
    wanted: Sequence[Metric], used: Sequence[CellRun], rows: pl.DataFrame, settings: CellSettings, *, of_failed: bool
) -> dict[str, Repetitions]:
    """Values for successful exchanges, or for failed ones; for whole exchanges, also the number of timeouts."""
    timed_out = np.bincount(rows.filter(pl.col("outcome") == "timeout")["run"].to_numpy(), minlength=len(used))
    rows = (
        rows.filter(~_OK if of_failed else _OK)
        .sort("run", "intended_ns", "exchange", nulls_last=True)
        .select("run", pl.col("connection").cast(pl.Int64), *(_value(metric) for metric in wanted))
    )
    run_of, connection = rows["run"].to_numpy(), rows["connection"].fill_null(-1).to_numpy()
    lines = np.arange(rows.height) if settings.opens_for_each else connection
    connections = run_of * (int(lines.max(initial=0)) + 2) + lines
    repetitions = np.array([run.repetition for run in used])[run_of]
    keys = [repetition_key(run) for run in used]
    units: dict[str, Repetitions] = {}
    every: Repetitions | None = None
    for metric in wanted:
        values = rows[metric.name].to_numpy()
        known = np.isfinite(values)
        # Nearly always all are: copies of so many would take longer than what is computed with them.
        here = slice(None) if known.all() else known
        held = timed_out if metric.is_whole else np.zeros_like(timed_out)
        used_here = np.bincount(run_of[here], minlength=len(used)) + held > 0
        own_keys = tuple(key for key, is_used in zip(keys, used_here, strict=True) if is_used)
        if every is not None and known.all() and every.keys == own_keys:
            # The repetition and the connection of every exchange take memory once, not once for each metric.
            units[metric.name] = replace(every, values=values, censored=held[used_here])
            continue
        units[metric.name] = Repetitions.of(
            values[here],
            repetitions[here],
            connections=connections[here],
            keys=own_keys,
            censored=held[used_here].tolist(),
            limit=settings.timeout_ns,
        )
        every = units[metric.name] if known.all() else every
    return units


def repetition_key(run: CellRun) -> RepetitionKey:
    """A repetition and its seed: the same losses in two cells have it in common."""
    seed = run.parameters.get("seed")
    return run.repetition, seed if isinstance(seed, int) else None


def _summed(metric: Metric, rows: pl.DataFrame, count: int) -> list[float | None]:
    """The metric's value in each repetition; None without samples."""
    values: dict[int, float | None] = dict(rows.group_by("run").agg(_value(metric)).iter_rows())
    return [values.get(run) for run in range(count)]


def _of_reports(metric: Metric, used: Sequence[CellRun]) -> Repetitions:
    """Values for the times printed by some repetitions' clients, each a list."""
    times = [report.times_s if (report := report_of(run)) else () for run in used]
    with_times = [run for run, run_times in zip(used, times, strict=True) if run_times]
    values = pl.DataFrame(
        {"time_s": [time_s for run_times in times for time_s in run_times]}, schema={"time_s": pl.Float64}
    )
    return Repetitions.of(
        values.select(_value(metric)).to_series().to_numpy(),
        np.repeat([run.repetition for run in used], [len(run_times) for run_times in times]),
        keys=[repetition_key(run) for run in with_times],
    )


def _of_repetitions(values: Sequence[float | None], used: Sequence[CellRun]) -> Repetitions:
    """One value for each repetition."""
    known = [(value, run) for value, run in zip(values, used, strict=True) if value is not None and np.isfinite(value)]
    return Repetitions.of(
        [value for value, _ in known],
        [run.repetition for _, run in known],
        keys=[repetition_key(run) for _, run in known],
    )


def with_recovery(rows: pl.DataFrame, timeout_ns: float) -> pl.DataFrame:
    """A cell's samples with two further columns; both null throughout without a reference.

    `extra_ns`: round trip during a recovery, beyond the median without one; else null. `blocked`: 1 if it was also
    slower than the usual ones (FENCE), else 0; null for messages with lost packets.

    Args: rows: multiplex samples from all repetitions, numbered in the column `run`. timeout_ns: a message's.
    """
    nothing = rows.with_columns(extra_ns=pl.lit(None, dtype=pl.Float64), blocked=pl.lit(None, dtype=pl.Float64))
    if rows["own_drops"].null_count() == rows.height:
        return nothing
    round_trip = _floats(rows, "received_ns") - _floats(rows, "sent_ns")
    lost_nothing = (rows["outcome"] == "ok").fill_null(value=False).to_numpy() & (_floats(rows, "own_drops") == 0)
    lost_nothing &= np.isfinite(round_trip)
    meets, undisturbed = _recoveries(rows, timeout_ns)
    reference = round_trip[lost_nothing & undisturbed]
    if reference.size < MIN_UNDISTURBED:
        return nothing
    extra = np.where(lost_nothing & meets, round_trip - np.median(reference), np.nan)
    lower, upper = np.quantile(reference, [0.25, 0.75])
    is_slow = round_trip > upper + FENCE * (upper - lower)
    blocked = np.where(lost_nothing, (meets & is_slow).astype(np.float64), np.nan)
    return rows.with_columns(extra_ns=pl.Series(extra, nan_to_null=True), blocked=pl.Series(blocked, nan_to_null=True))


def _recoveries(rows: pl.DataFrame, timeout_ns: float) -> tuple[_Flags, _Flags]:
    """Messages in flight during another stream's recovery, and those during none, each shape (rows,)."""
    sent, received = _floats(rows, "sent_ns"), _floats(rows, "received_ns")
    until = np.where(np.isfinite(received), received, sent + timeout_ns)
    stream, lost_packets = _floats(rows, "stream"), _floats(rows, "own_drops") > 0
    meets, undisturbed = np.zeros(rows.height, dtype=np.bool_), np.ones(rows.height, dtype=np.bool_)
    connections = rows.with_row_index("row").group_by("run", "connection", maintain_order=True).agg("row")["row"]
    for members in connections:
        inside = members.to_numpy()
        of_others, of_own = _of_connection(sent[inside], until[inside], stream[inside], lost_packets[inside])
        meets[inside], undisturbed[inside] = of_others, ~(of_others | of_own)
    return meets, undisturbed


def _of_connection(sent: Array, until: Array, stream: Array, lost_packets: _Flags) -> tuple[_Flags, _Flags]:
    """One connection's messages in flight during a recovery: another stream's, and their own.

    Args: the connection's messages, each shape (n,).
    """
    of_others, of_own = np.zeros(sent.size, dtype=np.bool_), np.zeros(sent.size, dtype=np.bool_)
    for lossy in np.flatnonzero(lost_packets & np.isfinite(sent)):
        together = (sent < until[lossy]) & (until > sent[lossy])
        of_others |= together & (stream != stream[lossy])
        of_own |= together & (stream == stream[lossy])
    return of_others, of_own


def _floats(rows: pl.DataFrame, column: str) -> Array:
    """A column as numbers, NaN where it is null."""
    return rows[column].cast(pl.Float64).fill_null(np.nan).to_numpy()
