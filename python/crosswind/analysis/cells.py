"""One cell: its repetitions put together, its estimates, and whether to trust it."""

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from crosswind.analysis.metrics import METRICS, Samples, metrics_of, read, shortest_of
from crosswind.analysis.peers import with_last_words
from crosswind.analysis.profiles import profile_of
from crosswind.analysis.result import Cell, DelayError, Direction, Dropped, Fidelity, Interval, Ledger, Metric
from crosswind.catalog import is_datagram
from crosswind.record import CellRun, RunRecord
from crosswind.stats import (
    Estimate,
    Resampled,
    Share,
    TooFewSamples,
    clopper_pearson,
    quantile_interval,
    refused,
    resample,
    share_interval,
    share_of,
)
from crosswind.stats.mean import check_finite_variance, interval_of
from crosswind.stats.quantile import METHOD as QUANTILE_METHOD


@dataclass(frozen=True)
class CellData:
    """One cell of a record with the samples of each of its metrics."""

    cell: int
    levels: dict[str, str]
    runs: list[CellRun]
    samples: dict[str, Samples]

    @cached_property
    def resampled(self) -> dict[str, Resampled | TooFewSamples]:
        """The mean of each metric resampled, or why it cannot be; done when first asked for, since plots never ask."""
        means = {name: one for name, one in self.samples.items() if not METRICS[name].share}
        return {name: _resample(name, self.cell, one, self.parameters) for name, one in means.items()}

    @cached_property
    def shares(self) -> dict[str, Share]:
        """Each metric that is a share of the exchanges."""
        counted = {name: one for name, one in self.samples.items() if METRICS[name].share}
        return {name: share_of(one.values, one.clusters) for name, one in counted.items()}

    @cached_property
    def outcomes(self) -> dict[str, int]:
        """How many exchanges ended in each way."""
        said = pl.concat([run.samples["outcome"] for run in self.runs], rechunk=False)
        return dict(said.drop_nulls().value_counts().iter_rows())

    @cached_property
    def smallest_round_trip_ns(self) -> float | None:
        """Smallest connection set-up or echo: the nearest thing to a round trip without loss and queue."""
        columns = ("outcome", "connect_ns", "received_ns", "sent_ns")
        table = pl.concat([run.samples.select(columns) for run in self.runs], rechunk=False)
        ok = table.filter(pl.col("outcome") == "ok")
        found = ok.select(pl.col("connect_ns").min(), (pl.col("received_ns") - pl.col("sent_ns")).min().alias("echo"))
        return min((float(value) for value in found.row(0) if value is not None), default=None)

    @property
    def parameters(self) -> dict[str, Any]:
        """The cell as it was sent, of its first repetition."""
        return self.runs[0].parameters

    @property
    def workload(self) -> dict[str, Any]:
        """Its workload."""
        return dict(self.parameters.get("workload") or {})


def repetitions_of(record: RunRecord) -> dict[int, list[CellRun]]:
    """The repetitions of each cell, both in order."""
    cells: dict[int, list[CellRun]] = {}
    for run in sorted(record.cells, key=lambda one: (one.cell, one.repetition)):
        cells.setdefault(run.cell, []).append(run)
    return cells


def collect(record: RunRecord) -> list[CellData]:
    """The samples of every metric of every cell."""
    repetitions = repetitions_of(record)
    shortest = _shortest(repetitions)
    collected = []
    for cell, runs in repetitions.items():
        workload = runs[0].parameters.get("workload") or {}
        samples = read(metrics_of(workload), runs, shortest_ns=shortest[cell])
        collected.append(CellData(cell, runs[0].levels, runs, samples))
    return collected


def _shortest(repetitions: Mapping[int, list[CellRun]]) -> dict[int, float | None]:
    """For each cell the shortest round trip of all that differ in loss alone: under loss, its own may have waited."""
    groups = {cell: _but_for_loss(runs[0].parameters) for cell, runs in repetitions.items()}
    known: dict[str, float] = {}
    for cell, runs in repetitions.items():
        own = shortest_of(runs)
        if own is not None:
            known[groups[cell]] = min(own, known.get(groups[cell], own))
    return {cell: known.get(group) for cell, group in groups.items()}


def _but_for_loss(parameters: Mapping[str, Any]) -> str:
    path = dict(parameters.get("path") or {})
    for way in ("forward", "reverse"):
        path[way] = {key: value for key, value in (path.get(way) or {}).items() if key != "loss"}
    kept = {key: parameters.get(key) for key in ("host", "workload")}
    return json.dumps({**kept, "path": path}, sort_keys=True, default=str)


def summarise(data: CellData, *, level: float) -> Cell:
    """The cell's part of the result."""
    finished = [run.finished for run in data.runs if run.finished is not None]
    outcomes = data.outcomes
    n = sum(outcomes.values())
    lost = n - outcomes.get("ok", 0)
    reasons = _reasons(data.runs)
    return Cell(
        cell=data.cell,
        levels=data.levels,
        valid=not reasons,
        reason="; ".join(reasons) or None,
        warnings=_warnings(data.runs),
        repetitions=len(data.runs),
        attempts=sum(run.attempts for run in data.runs),
        n=n,
        lost=lost,
        loss=Interval.of(clopper_pearson(lost, n, level=level)) if n else None,
        outcomes=dict(sorted(outcomes.items())),
        estimates={name: _metric(data, name, level) for name in data.samples},
        ledger=_ledger(finished),
        fidelity=_fidelity(finished),
        models=[],
        profile=profile_of(finished),
    )


def attempt(make: Callable[[], Estimate], *, n: int, level: float, method: str, unit: str) -> Estimate:
    """An estimate, or in its place the reason why there is none."""
    try:
        return make()
    except TooFewSamples as error:
        return refused(error.message, n=n, level=level, method=method, unit=unit)


def mean_of(drawn: Resampled | TooFewSamples) -> Resampled:
    """The resampled mean. Raises: TooFewSamples when it was refused."""
    if isinstance(drawn, TooFewSamples):
        raise drawn
    return drawn


def _resample(name: str, cell: int, samples: Samples, parameters: dict[str, Any]) -> Resampled | TooFewSamples:
    try:
        if METRICS[name].unit == "ns" and METRICS[name].waits:
            check_finite_variance(_retransmitted_loss(parameters))
        return resample(samples.values, samples.clusters, seed=zlib.crc32(f"{cell} {name}".encode()))
    except TooFewSamples as error:
        return error


def _retransmitted_loss(parameters: dict[str, Any]) -> float:
    if is_datagram((parameters.get("workload") or {}).get("transport")):
        return 0.0
    path = parameters.get("path") or {}
    return max(float((path.get(way) or {}).get("loss") or 0.0) for way in ("forward", "reverse"))


def _metric(data: CellData, name: str, level: float) -> Metric:
    unit, values, clusters = METRICS[name].unit, data.samples[name].values, data.samples[name].clusters
    if METRICS[name].share:
        return _share(data.shares[name], unit, level)

    def quantile(q: float) -> Interval:
        made = attempt(
            lambda: quantile_interval(values, q, clusters, unit=unit, level=level),
            n=values.size, level=level, method=QUANTILE_METHOD, unit=unit,
        )  # fmt: skip
        return Interval.of(made)

    mean = attempt(
        lambda: interval_of(mean_of(data.resampled[name]), unit=unit, level=level),
        n=values.size, level=level, method="studentised bootstrap", unit=unit,
    )  # fmt: skip
    if unit == "1" and mean.low is not None and mean.high is not None:
        mean = replace(mean, low=max(0.0, mean.low), high=min(1.0, mean.high))  # Student's t knows nothing of the ends.
    return Metric(
        unit=unit,
        smallest=float(values.min()),
        largest=float(values.max()),
        median=quantile(0.5),
        mean=Interval.of(mean),
        p95=quantile(0.95),
        p99=quantile(0.99),
    )


def _share(share: Share, unit: str, level: float) -> Metric:
    """What is 0 or 1 has a mean, which is the share, and no quantiles."""
    none = Interval.of(refused("a share has no quantiles", n=share.n, level=level, method="none", unit=unit))
    mean = Interval.of(share_interval(share, level=level))
    smallest, largest = float(share.value == 1), float(share.value > 0)
    return Metric(unit=unit, smallest=smallest, largest=largest, median=none, mean=mean, p95=none, p99=none)


def _reasons(runs: list[CellRun]) -> list[str]:
    reasons = []
    for run in runs:
        if run.finished is None:
            failure = run.failure or {}
            hint = f" ({failure['hint']})" if failure.get("hint") else ""
            reasons.append(f"repetition {run.repetition + 1} failed: {failure.get('message') or 'no result'}{hint}")
        elif not run.finished.get("valid", False):
            said = ", ".join(run.finished.get("reasons") or []) or "marked invalid"
            reasons.append(f"repetition {run.repetition + 1}: {said}")
    return reasons


def _warnings(runs: list[CellRun]) -> list[str]:
    said = [(str(text), run) for run in runs for text in (run.finished or {}).get("warnings") or []]
    return list(dict.fromkeys(with_last_words(text, run) for text, run in said))


def _ledger(finished: list[dict[str, Any]]) -> Ledger | None:
    ledgers = [one["ledger"] for one in finished if one.get("ledger")]
    if not ledgers:
        return None
    forward, reverse = (_direction([one[way] for one in ledgers]) for way in ("forward", "reverse"))
    return Ledger(forward=forward, reverse=reverse, closed=all(one.get("closed", False) for one in ledgers))


def _direction(parts: list[dict[str, Any]]) -> Direction:
    def total(key: str) -> int:
        return sum(int(part.get(key) or 0) for part in parts)

    causes = {
        cause: sum(int((part.get("dropped") or {}).get(cause) or 0) for part in parts) for cause in Dropped.model_fields
    }
    totals = {key: total(key) for key in ("in", "delivered", "queued", "in_bytes", "delivered_bytes")}
    return Direction.model_validate({**totals, "dropped": Dropped(**causes)})


def _fidelity(finished: list[dict[str, Any]]) -> Fidelity | None:
    parts = [one["fidelity"] for one in finished if one.get("fidelity")]
    if not parts:
        return None
    errors = [part.get("delay_error_ns") or {} for part in parts]
    worst = {key: max(float(one.get(key) or 0.0) for one in errors) for key in DelayError.model_fields}
    starvation = [float((part.get("starvation") or {}).get("fraction") or 0.0) for part in parts]
    probes = [
        float(probe["fraction"])
        for part in parts
        for probe in (part.get("probe_starvation") or {}).values()
        if isinstance(probe, dict) and probe.get("fraction") is not None
    ]
    drops = [int(part["kernel_drops"]) for part in parts if part.get("kernel_drops") is not None]
    return Fidelity(
        delay_error=DelayError(**worst),
        starvation=max(starvation),
        realtime=all(bool(part.get("realtime")) for part in parts),
        within_budget=all(bool(part.get("within_budget")) for part in parts),
        probe_starvation=max(probes, default=None),
        kernel_drops=sum(drops) if drops else None,
    )
