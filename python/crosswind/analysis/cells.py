"""The cells of a run, each with its repetitions and the samples of all its metrics."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from crosswind.analysis.samples import Samples, read_samples, shortest_round_trip
from crosswind.analysis.settings import CellSettings, without_loss
from crosswind.metrics import METRICS
from crosswind.record import CellRun, RunRecord
from crosswind.stats import Resampled, Share, TooFewSamples, constant, resample, share_of
from crosswind.stats.mean import check_finite_variance


@dataclass(frozen=True)
class CellData:
    """One cell of a record with the samples of each of its metrics."""

    cell: int
    levels: dict[str, str]
    runs: list[CellRun]
    samples: dict[str, Samples]

    @cached_property
    def settings(self) -> CellSettings:
        """What the cell was asked to be."""
        return CellSettings.of(self.parameters)

    @property
    def parameters(self) -> dict[str, Any]:
        """The cell as it was sent, of its first repetition."""
        return self.runs[0].parameters

    @property
    def is_exact(self) -> bool:
        """Whether nothing in it was left to chance, so that its numbers have no interval."""
        return all(run.exact for run in self.runs)

    @cached_property
    def resampled(self) -> dict[str, Resampled | TooFewSamples]:
        """The mean of each metric resampled, or why it cannot be; done when first asked for, since plots never ask."""
        means = {name: samples for name, samples in self.samples.items() if not METRICS[name].is_share}
        return {name: self._resample(name, samples) for name, samples in means.items()}

    @cached_property
    def shares(self) -> dict[str, Share]:
        """Each metric that is a share of the exchanges."""
        flags = {name: samples for name, samples in self.samples.items() if METRICS[name].is_share}
        shares = {name: share_of(samples.values, samples.clusters) for name, samples in flags.items()}
        return {name: replace(share, exact=self.is_exact) for name, share in shares.items()}

    @cached_property
    def outcomes(self) -> dict[str, int]:
        """How many exchanges ended in each way."""
        outcomes = pl.concat([run.samples["outcome"] for run in self.runs], rechunk=False)
        return dict(outcomes.drop_nulls().value_counts().iter_rows())

    @cached_property
    def smallest_round_trip_ns(self) -> float | None:
        """Smallest connection set-up or echo: the nearest thing to a round trip without loss and queue."""
        columns = ("outcome", "connect_ns", "received_ns", "sent_ns")
        table = pl.concat([run.samples.select(columns) for run in self.runs], rechunk=False)
        ok = table.filter(pl.col("outcome") == "ok")
        found = ok.select(pl.col("connect_ns").min(), (pl.col("received_ns") - pl.col("sent_ns")).min().alias("echo"))
        return min((float(value) for value in found.row(0) if value is not None), default=None)

    def _resample(self, name: str, samples: Samples) -> Resampled | TooFewSamples:
        if self.is_exact:
            return constant(float(samples.values.mean()), n=samples.values.size)
        try:
            if METRICS[name].is_wait:
                check_finite_variance(self.settings.retransmitted_loss)
            return resample(samples.values, samples.clusters, seed=zlib.crc32(f"{self.cell} {name}".encode()))
        except TooFewSamples as error:
            return error


def collect(record: RunRecord) -> list[CellData]:
    """The samples of every metric of every cell."""
    cells: dict[int, list[CellRun]] = {}
    for run in sorted(record.cells, key=lambda run: (run.cell, run.repetition)):
        cells.setdefault(run.cell, []).append(run)
    shortest = _shortest(cells)
    return [
        CellData(cell, runs[0].levels, runs, read_samples(runs, shortest_ns=shortest[cell]))
        for cell, runs in cells.items()
    ]


def _shortest(cells: Mapping[int, list[CellRun]]) -> dict[int, float | None]:
    """For each cell the shortest round trip of all that differ in loss alone: under loss, its own may have waited."""
    groups = {
        cell: json.dumps(without_loss(runs[0].parameters), sort_keys=True, default=str) for cell, runs in cells.items()
    }
    known: dict[str, float] = {}
    for cell, runs in cells.items():
        own = shortest_round_trip(runs)
        if own is not None:
            known[groups[cell]] = min(own, known.get(groups[cell], own))
    return {cell: known.get(group) for cell, group in groups.items()}
