"""The values of each metric in a cell, computed by the metric's formula (crosswind.metrics)."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from crosswind.analysis.client_reports import report_of
from crosswind.analysis.counters import counters_of
from crosswind.analysis.head_of_line import with_recovery
from crosswind.analysis.settings import CellSettings
from crosswind.metrics import METRICS, Metric, Per
from crosswind.record import CellRun
from crosswind.stats import Units
from crosswind.stats.units import Key

_OK = pl.col("outcome") == "ok"


def read_samples(runs: Iterable[CellRun], *, undisturbed_ns: float | None) -> dict[str, Units]:
    """Values of every metric that the repetitions of a cell have, by the metric's name.

    Args: undisturbed_ns: of a round trip that nothing delays, which formulas know by this name; None: not known.
    """
    used = sorted((run for run in runs if not run.samples.is_empty() or run.client_out), key=lambda run: run.repetition)
    if not used:
        return {}
    settings = CellSettings.of(used[0].parameters, used[0].effect)
    wanted = [metric for metric in METRICS.values() if metric.applies(settings.workload)]
    rows = _rows(used, settings).with_columns(undisturbed_ns=pl.lit(undisturbed_ns, dtype=pl.Float64))
    counted = counters_of(used)
    exchanges = [metric for metric in wanted if metric.per is Per.EXCHANGE]
    found = _of_exchanges(exchanges, used, rows, settings)
    for metric in wanted:
        if metric.per is Per.REPETITION:
            found[metric.name] = _of_repetitions(_summed(metric, rows, len(used)), used)
        elif metric.per is Per.MESSAGE:
            found[metric.name] = _of_repetitions(counted.select(_value(metric)).to_series().to_list(), used)
        elif metric.per is Per.REPORTED:
            found[metric.name] = _of_reports(metric, used)
    return {metric.name: found[metric.name] for metric in wanted if found[metric.name].values.size}


def _rows(used: Sequence[CellRun], settings: CellSettings) -> pl.DataFrame:
    """The samples of all repetitions, numbered by `run`, with `setup_ns`, which is `connect_ns` and 0 over UDP.

    Those of multiplex have `extra_ns` and `blocked` besides.
    """
    heights = [run.samples.height for run in used]
    setup = pl.lit(0) if settings.workload.get("transport") == "udp" else pl.col("connect_ns")
    rows = pl.concat([run.samples for run in used], rechunk=False).with_columns(
        pl.Series("run", np.repeat(np.arange(len(used)), heights)), setup_ns=setup
    )
    return with_recovery(rows, settings.number("timeout_ns") or 0.0) if settings.kind == "multiplex" else rows


def _value(metric: Metric) -> pl.Expr:
    return pl.sql_expr(metric.formula).cast(pl.Float64).alias(metric.name)


def _of_exchanges(
    wanted: Sequence[Metric], used: Sequence[CellRun], rows: pl.DataFrame, settings: CellSettings
) -> dict[str, Units]:
    """Values of the exchanges that went well, and of metrics that last to their end how many timed out."""
    timed_out = np.bincount(rows.filter(pl.col("outcome") == "timeout")["run"].to_numpy(), minlength=len(used))
    rows = (
        rows.filter(_OK)
        .sort("run", "intended_ns", "exchange", nulls_last=True)
        .select("run", pl.col("connection").cast(pl.Int64), *(_value(metric) for metric in wanted))
    )
    run_of, connection = rows["run"].to_numpy(), rows["connection"].fill_null(-1).to_numpy()
    own = np.arange(rows.height) if settings.opens_for_each else connection
    connections = run_of * (int(own.max(initial=0)) + 2) + own
    repetitions = np.array([run.repetition for run in used])[run_of]
    keys = [key_of(run) for run in used]
    found: dict[str, Units] = {}
    every: Units | None = None
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
            found[metric.name] = replace(every, values=values, censored=held[used_here])
            continue
        found[metric.name] = Units.of(
            values[here],
            repetitions[here],
            connections=connections[here],
            keys=own_keys,
            censored=held[used_here].tolist(),
            limit=settings.timeout_ns,
        )
        every = found[metric.name] if known.all() else every
    return found


def key_of(run: CellRun) -> Key:
    """A repetition and its seed: what the repetitions of two cells have in common that met the same losses."""
    seed = run.parameters.get("seed")
    return run.repetition, seed if isinstance(seed, int) else None


def _summed(metric: Metric, rows: pl.DataFrame, count: int) -> list[float | None]:
    """The metric's value in each of `count` repetitions; None for those without samples."""
    values: dict[int, float | None] = dict(rows.group_by("run").agg(_value(metric)).iter_rows())
    return [values.get(run) for run in range(count)]


def _of_reports(metric: Metric, used: Sequence[CellRun]) -> Units:
    """The values of the times that the clients of some repetitions printed, each a list."""
    times = [report.times_s if (report := report_of(run)) else () for run in used]
    with_times = [run for run, own in zip(used, times, strict=True) if own]
    values = pl.DataFrame({"time_s": [time_s for own in times for time_s in own]}, schema={"time_s": pl.Float64})
    return Units.of(
        values.select(_value(metric)).to_series().to_numpy(),
        np.repeat([run.repetition for run in used], [len(own) for own in times]),
        keys=[key_of(run) for run in with_times],
    )


def _of_repetitions(values: Sequence[float | None], used: Sequence[CellRun]) -> Units:
    """One value for each repetition."""
    known = [(value, run) for value, run in zip(values, used, strict=True) if value is not None and np.isfinite(value)]
    return Units.of(
        [value for value, _ in known], [run.repetition for _, run in known], keys=[key_of(run) for _, run in known]
    )
