"""Cells of a large run of which the samples of some metrics are held, and nothing else.

    rows of each part, as an overview reads them -> values of some metrics, one below the other -> cells

A question about every cell takes eight bytes for each value then, and no table for each repetition.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from crosswind.analysis.cells import CellData
from crosswind.analysis.result import CellResult
from crosswind.catalog.metrics import Metric, Per
from crosswind.cell.record import OF_REPETITION, SAMPLE_SCHEMA, LargeRun
from crosswind.stats import Repetitions, Share, TooFewSamples
from crosswind.stats.repetitions import RepetitionKey

_OWN = list(OF_REPETITION)
_ORDER = [*_OWN, "intended_ns", "exchange"]
_Numbers = npt.NDArray[np.int64]


def can_be_held(metric: Metric) -> bool:
    """Whether samples alone tell a metric, each by itself."""
    if metric.per not in (Per.EXCHANGE, Per.REPETITION) or metric.of_failed:
        return False
    return {*SAMPLE_SCHEMA, "setup_ns"}.issuperset(pl.sql_expr(metric.formula).meta.root_names())


@dataclass(frozen=True)
class HeldCell(CellData):
    """A cell without the tables of its repetitions.

    Attributes: ended: how many exchanges ended in each way. why_invalid: why it is not valid; None where it is.
        counts: of each repetition with exchanges how many these are, have ended, and went well.
    """

    ended: Mapping[str, int] = field(default_factory=dict)
    why_invalid: str | None = None
    counts: "_Counts | None" = None

    @cached_property
    def reason(self) -> str | None:
        """Why it is not valid; None where it is."""
        return self.why_invalid

    @cached_property
    def outcomes(self) -> dict[str, int]:
        """How many exchanges ended in each way."""
        return dict(self.ended)

    @cached_property
    def lost(self) -> Share | None:
        """The share of its exchanges that did not succeed; None without exchanges."""
        if self.counts is None or not self.counts.ended.sum():
            return None
        return Share.of(self.counts.ended - self.counts.ok, self.counts.ended, exact=self.is_exact)

    @property
    def failed(self) -> Repetitions:
        """As of `CellData`; the order within a repetition is not known."""
        if self.counts is None:
            raise TooFewSamples("no repetition has a value")
        of = self.counts
        flags = np.repeat(np.tile([1.0, 0.0], of.rows.size), np.column_stack([of.rows - of.ok, of.ok]).ravel())
        return Repetitions.of(flags, np.repeat(of.repetitions, of.rows), keys=of.keys)


class _Counts(NamedTuple):
    """Of a cell's repetitions with exchanges, in their order: their numbers and keys, and counts of their exchanges."""

    repetitions: _Numbers
    keys: Sequence[RepetitionKey]
    rows: _Numbers
    ended: _Numbers
    ok: _Numbers
    timed_out: _Numbers


class HeldSamples:
    """The values of some metrics, of every repetition that is read. Args: metrics: of which `can_be_held`."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self._metrics = list(metrics)
        self._values: list[pl.DataFrame] = []
        self._summed: list[pl.DataFrame] = []
        self._counts: list[pl.DataFrame] = []

    def add(self, rows: pl.DataFrame) -> None:
        """Samples of some repetitions more, with `setup_ns`, without those of flows beside the workload."""
        outcome = pl.col("outcome")
        self._counts.append(rows.group_by(_OWN).agg(
            rows=pl.len().cast(pl.Int64),
            ended=outcome.count().cast(pl.Int64),
            ok=(outcome == "ok").sum().cast(pl.Int64),
            timed_out=(outcome == "timeout").sum().cast(pl.Int64),
        ))  # fmt: skip
        whole = rows.filter(outcome == "ok").sort(_ORDER, nulls_last=True)
        connection = pl.col("connection").cast(pl.Int64).fill_null(-1)
        self._values.append(whole.select(*_OWN, connection, *self._of(Per.EXCHANGE)))
        self._summed.append(rows.group_by(_OWN).agg(*self._of(Per.REPETITION)))

    def _of(self, per: Per) -> Iterator[pl.Expr]:
        metrics = (metric for metric in self._metrics if metric.per is per)
        return (pl.sql_expr(metric.formula).cast(pl.Float64).alias(metric.name) for metric in metrics)

    def cells(self, run: LargeRun, results: Sequence[CellResult], wanted: frozenset[int]) -> Iterator[CellData]:
        """The cells of `wanted` that have results, in the order of their indices. Args: results: of all cells."""
        seeds = _Rows(_in_order(self._counts).join(run.seeds, on=_OWN, how="left", maintain_order="left"))
        tables = {Per.EXCHANGE: _Rows(_in_order(self._values)), Per.REPETITION: _Rows(_in_order(self._summed))}
        by_cell = {result.cell: result for result in results}
        limits = sorted(((limit["at_most"], limit["cells"]) for limit in run.record.limits), reverse=True)
        at_most = {cell: most for most, of in limits for cell in of}
        for kind in run.cells:
            result = by_cell.get(kind.cell)
            if result is None or kind.cell not in wanted:
                continue
            counts = _counts_of(seeds.of(kind.cell))
            held = HeldCell(
                cell=kind.cell,
                levels=kind.levels,
                runs=[replace(kind, exact=result.exact)],
                samples={},
                cells=len(by_cell),
                at_most=at_most.get(kind.cell),
                keeps_parts=run.record.keeps_parts,
                ended=result.outcomes,
                why_invalid=result.reason,
                counts=counts,
            )
            if counts is not None:
                held.samples.update(self._samples(held, counts, tables))
            yield held

    def _samples(
        self, cell: HeldCell, counts: _Counts, tables: Mapping[Per, "_Rows"]
    ) -> Iterator[tuple[str, Repetitions]]:
        for metric in self._metrics:
            if not metric.applies(cell.settings.workload):
                continue
            rows = tables[metric.per].of(cell.cell)
            values = rows[metric.name]
            known = np.isfinite(values)
            if not known.any():
                continue
            member = np.searchsorted(counts.repetitions, rows["repetition"])
            if metric.per is Per.REPETITION:
                keys = [counts.keys[at] for at in member[known]]
                yield metric.name, Repetitions.of(values[known], rows["repetition"][known], keys=keys)
                continue
            connection = rows["connection"].astype(np.int64)
            lines = np.arange(values.size) if cell.settings.opens_for_each else connection
            censored = counts.timed_out if metric.is_whole else np.zeros_like(counts.timed_out)
            has_any = np.bincount(member[known], minlength=len(counts.keys)) + censored > 0
            yield (
                metric.name,
                Repetitions.of(
                    values[known],
                    rows["repetition"][known],
                    connections=(member * (int(lines.max(initial=0)) + 2) + lines)[known],
                    keys=[key for key, has in zip(counts.keys, has_any, strict=True) if has],
                    censored=censored[has_any].tolist(),
                    limit=cell.settings.timeout_ns,
                ),
            )


class _Rows:
    """Rows in the order of their cells."""

    def __init__(self, rows: pl.DataFrame) -> None:
        self._columns = {name: column.to_numpy() for name, column in zip(rows.columns, rows, strict=True)}
        # Of the type that is searched for: else all of it would be converted for every cell.
        self._cells = self._columns["cell"].astype(np.int64)

    def of(self, cell: int) -> dict[str, npt.NDArray[np.generic]]:
        """The columns of a cell's rows."""
        start, end = np.searchsorted(self._cells, [cell, cell + 1])
        return {name: column[start:end] for name, column in self._columns.items()}


def _in_order(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(parts).sort(_OWN, maintain_order=True)


def _counts_of(own: Mapping[str, npt.NDArray[np.generic]]) -> _Counts | None:
    repetitions = own["repetition"].astype(np.int64)
    if not repetitions.size:
        return None
    keys = [
        (int(repetition), None if np.isnan(seed) else int(seed))
        for repetition, seed in zip(repetitions, own["seed"], strict=True)
    ]
    return _Counts(repetitions, keys, *(own[name].astype(np.int64) for name in ("rows", "ended", "ok", "timed_out")))
