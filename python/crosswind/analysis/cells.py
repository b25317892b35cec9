"""A run's cells, each with its repetitions and all its metrics' samples."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np
import polars as pl

from crosswind.analysis.baseline import ABSENT, baseline_times
from crosswind.analysis.chance import chance_of, least_of_bursts, touched_of
from crosswind.analysis.designs import design_of
from crosswind.analysis.result import CellResult
from crosswind.analysis.samples import read_samples, repetition_key
from crosswind.analysis.settings import CellSettings
from crosswind.analysis.trust import reason_of
from crosswind.catalog.metrics import LOST, METRICS, Metric, MetricPlace
from crosswind.catalog.path_effect import PathEffect
from crosswind.cell.record import CellRun, RunRecord
from crosswind.cell.result import Finished
from crosswind.stats.chance import Chance
from crosswind.stats.design import Design
from crosswind.stats.differences import INSTANT_NS, Side
from crosswind.stats.estimate import TooFewSamples
from crosswind.stats.repetitions import Repetitions
from crosswind.stats.share import Share


@dataclass(frozen=True)
class CellData:
    """One cell with its metrics' samples; `cells`: the record's number of cells.

    `undisturbed_ns`: for an undelayed exchange; None if unknown. `at_most`: the study's limit on its repetitions; None
    without one. `keeps_parts`: whether the run was to keep the time breakdown. `result`: a large run's known result for
    a cell with samples alone.
    """

    cell: int
    levels: dict[str, str]
    runs: list[CellRun]
    samples: dict[str, Repetitions]
    cells: int = 1
    undisturbed_ns: float | None = None
    at_most: int | None = None
    keeps_parts: bool = True
    result: CellResult | None = None

    @cached_property
    def settings(self) -> CellSettings:
        """The cell as requested."""
        return CellSettings.of(self.parameters, self.effect)

    @property
    def parameters(self) -> dict[str, Any]:
        """The cell as sent, from its first repetition."""
        return self.runs[0].parameters

    @property
    def finished(self) -> list[Finished]:
        """Its repetitions' results."""
        return [run.finished for run in self.runs if run.finished is not None]

    @property
    def effect(self) -> PathEffect:
        """Its path's effect."""
        return self.runs[0].effect

    @property
    def is_exact(self) -> bool:
        """Whether nothing in it was left to chance: its numbers have no interval."""
        return all(run.exact for run in self.runs)

    def side(self, name: str) -> Side:
        """One metric, for comparisons. Raises: TooFewSamples without it."""
        if name == LOST.name:
            return Side(self.failed, self.design(LOST), self.is_exact, is_share=True)
        if name not in self.samples:
            raise TooFewSamples(self.why_absent(name))
        metric = METRICS[name]
        units = self.samples[name]
        event = partial(chance_of, metric, self.settings, self.runs)
        is_instant = metric.is_wait and metric.is_whole and bool(np.max(units.means, initial=0.0) < INSTANT_NS)
        return Side(units, self.design(metric), self.is_exact, metric.is_share, event, is_instant)

    def design(self, metric: Metric) -> Design:
        """A metric's design, with this cell's minimum repetitions."""
        made, touched = design_of(metric, self.settings), self.touched
        made = replace(made, least=max(made.least, self.least_of(metric)))
        return made if touched is None else replace(made, seen=Chance(touched).seen_from(len(self.runs)))

    def least_of(self, metric: Metric) -> int:
        """A metric's minimum repetitions under bursty loss: loss does not delay arriving datagrams."""
        is_touched = metric.is_share or metric.is_counted_of_packets or self.settings.retransmitted_loss > 0
        return self.least_of_bursts if is_touched else 0

    @cached_property
    def least_of_bursts(self) -> int:
        """Repetitions with enough expected loss bursts; 0 for independent losses."""
        return least_of_bursts(self.settings, self.runs)

    @cached_property
    def touched(self) -> int | None:
        """Repetitions with a retransmitted loss; None for cells without such losses."""
        return touched_of(self.runs) if self.settings.retransmitted_loss else None

    def why_absent(self, name: str) -> str:
        """Why it has no samples for a metric."""
        if not self.outcomes.get("ok"):
            return "no exchange succeeded"
        metric = METRICS[name]
        if metric.place is MetricPlace.SPENT and not self.keeps_parts:
            return "the run was started with --no-parts"
        return ABSENT if metric.needs_undisturbed and self.undisturbed_ns is None else metric.absence

    @cached_property
    def reason(self) -> str | None:
        """Why it is not valid; None where it is."""
        return reason_of(self.runs) if self.result is None else self.result.reason

    @cached_property
    def lost(self) -> Share | None:
        """The share of failed exchanges; None without exchanges."""
        rows = [run.samples["outcome"] for run in self.runs if run.samples.height]
        ended = [outcome.len() - outcome.null_count() for outcome in rows]
        if not sum(ended):
            return None
        failed = [int((outcome != "ok").sum()) for outcome in rows]
        return Share.of(failed, ended, exact=self.is_exact, least=self.least_of(LOST))

    @property
    def failed(self) -> Repetitions:
        """Whether each exchange failed, 1 or 0. Raises: TooFewSamples without one."""
        runs = [run for run in self.runs if run.samples.height]
        if not runs:
            raise TooFewSamples("no repetition has a value")
        flags = [(run.samples["outcome"] != "ok").fill_null(value=True).to_numpy() for run in runs]
        repetitions = np.repeat([run.repetition for run in runs], [flags_of_run.size for flags_of_run in flags])
        return Repetitions.of(np.concatenate(flags), repetitions, keys=[repetition_key(run) for run in runs])

    @cached_property
    def outcomes(self) -> dict[str, int]:
        """Exchanges by outcome."""
        outcomes = pl.concat([run.samples["outcome"] for run in self.runs], rechunk=False)
        return dict(outcomes.drop_nulls().value_counts().iter_rows())

    @cached_property
    def smallest_round_trip_ns(self) -> float | None:
        """Smallest connection set-up or echo: the nearest thing to a round trip without loss and queue."""
        table = pl.concat([run.samples for run in self.runs], rechunk=False)
        ok = table.filter(pl.col("outcome") == "ok")
        shortest = ok.select(
            pl.col("connect_ns").min(), (pl.col("received_ns") - pl.col("sent_ns")).min().alias("echo")
        )
        return min((float(value) for value in shortest.row(0) if value is not None), default=None)


def collect(record: RunRecord) -> list[CellData]:
    """Every cell's samples for every metric, without repetitions that disturb a packet by design."""
    cells: dict[int, list[CellRun]] = {}
    disturbed: dict[int, list[CellRun]] = {}
    for run in sorted(record.cells, key=lambda run: (run.cell, run.repetition)):
        (cells if run.disturbed is None else disturbed).setdefault(run.cell, []).append(run)
    undisturbed = baseline_times(cells)
    at_most = most_of_cells(record)
    return [
        CellData(
            cell,
            runs[0].levels,
            runs,
            read_samples(runs, undisturbed_ns=undisturbed[cell], disturbed=disturbed.get(cell, ())),
            len(cells),
            undisturbed[cell],
            at_most.get(cell),
            record.keeps_parts,
        )
        for cell, runs in cells.items()
    ]


def most_of_cells(record: RunRecord) -> dict[int, int]:
    """The study's limits on repetitions, by cell."""
    limits = sorted(((limit["at_most"], limit["cells"]) for limit in record.limits), reverse=True)
    return {cell: most for most, of in limits for cell in of}
