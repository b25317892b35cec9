"""Runs for programs and notebooks, as returned by `crosswind.run`, `resume` and `load`.

    run = crosswind.load("crosswind-runs/quickstart-20260101T000000Z")
    run.answers()      # the answers to the study's questions
    run.samples()      # every sample, a row each
    run.estimates()    # every statistic for every metric in every cell, with its interval
    run.compare()      # each factor's levels beside its first one
    run.plot("rtt")    # one of the report's charts

Tables are Polars frames, charts are Altair's. A repetition with a damaged file is left out, with a warning. Analysis
and drawing are imported at their first use.
"""

import warnings
from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Literal, ParamSpec

from crosswind.api import running
from crosswind.errors import UsageError
from crosswind.files.damage import damage_sentences
from crosswind.store.addresses import place_of
from crosswind.store.directory import Store
from crosswind.store.run import StoredRun

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from crosswind.analysis.cells import CellData
    from crosswind.analysis.result import Result
    from crosswind.cell.record import RunRecord

Asked = ParamSpec("Asked")
ChartKind = Literal["intervals", "distribution", "comparisons", "shift"]


class Run(StoredRun):
    """A run and its results. Made by `crosswind.run`, `crosswind.resume` and `crosswind.load`."""

    def samples(self) -> "pl.DataFrame":
        """Every sample of every repetition.

        Returns: a column for each factor (its key, the level as text), `cell`, `repetition`, `block`, `clock`, the
            samples table's columns (docs/cell-protocol.md: `connection`, `outcome`, times in ns, ...), and one for each
            metric with a value per sample, in the metric's unit (docs/result.md), null in unsuccessful samples.
        Raises: StoreError for an unreadable table.
        """
        from crosswind.report.export import samples_frame

        return samples_frame(self._record, metrics=True)

    def estimates(self) -> "pl.DataFrame":
        """Every estimate: a row for each cell, metric and statistic, with its interval, n, method and unit.

        Raises: StoreError when a table cannot be read.
        """
        from crosswind.report.export import estimates_frame

        return estimates_frame(self._result)

    def compare(self, *statistics: str) -> "pl.DataFrame":
        """Every comparison of a level with its factor's first level, in otherwise equal cells.

        Args:    statistics: `mean`, `median`, `trimmed_mean`, `p95`, `p99`; none: the report's (`report.compare_by`).
        Returns: a row for each factor, metric, pair of levels and statistic: `difference` and `ratio` with their
            limits, `p` and `p_adjusted` (Benjamini and Hochberg, over these and the means), `verdict`.
        Raises: UsageError for an unknown statistic; StoreError for an unreadable table.
        """
        import polars as pl

        from crosswind.report.export import comparisons_frame

        if not statistics:
            return comparisons_frame(self._result.comparisons)
        compared = comparisons_frame(self._compared_by(statistics).comparisons)
        return compared.filter(pl.col("statistic").is_in(statistics))

    def answers(self) -> "pl.DataFrame":
        """The answers to the study's questions, a row for each case.

        Returns: `asks`, the answering `sentence` and its `answer` (yes, no, mixed, cannot tell); for each case its
            `verdict`, both levels with their values, the `effect` with its limits, `repetitions`, and the number
            `needed` to decide it.
        Raises: StoreError for an unreadable table.
        """
        from crosswind.findings.question.export import answers_frame

        return answers_frame(self._result)

    def conclusion(self) -> list[str]:
        """A report's last lines: for each compared pair of levels who is better, and in what.

        Raises: StoreError for an unreadable table.
        """
        from crosswind.report.showing import conclusion_of

        return conclusion_of(self._result)

    def statements(self) -> "pl.DataFrame":
        """The verdict on every statement of the study's document.

        Returns: `verdict`, `says`, `source`, and the `sentence` on it.

        Raises: StoreError for an unreadable table.
        """
        from crosswind.findings.question.export import statements_frame

        return statements_frame(self._result)

    def plot(
        self, metric: str | None = None, kind: ChartKind = "intervals", *, statistics: Sequence[str] = ()
    ) -> "alt.VConcatChart":
        """A chart of one metric as in the report, for a notebook to draw, change and save.

        Args:   metric: its name, as `rtt`; without it the first compared one. kind: `intervals`: each cell's mean and
                median with their intervals; `distribution`: the share of samples at or below each value; `comparisons`:
                ratios between levels with intervals; `shift`: the difference between two levels at each quantile.
                statistics: for `comparisons`, as in `compare`, the mean besides; none: the report's.
        Raises: UsageError without data of the kind; StoreError for an unreadable table.
        """
        from crosswind.report.notebook import chart_of

        return chart_of(metric, kind, self._compared_by(statistics) if statistics else self._result, self._data)

    def _compared_by(self, statistics: Sequence[str]) -> "Result":
        """The result with comparisons by some statistics beside the mean. Raises: UsageError."""
        from crosswind.analysis.comparisons import compare_levels
        from crosswind.catalog.metrics import STATISTICS

        for name in statistics:
            if name not in STATISTICS:
                raise UsageError(f"there is no statistic {name!r}", hint=f"one of {', '.join(STATISTICS)}")
        compared = compare_levels(self._data, level=0.95, statistics=statistics)
        return self._result.model_copy(update={"comparisons": compared})

    @cached_property
    def _record(self) -> "RunRecord":
        record = self.measured()
        for text in damage_sentences(record.damaged):
            warnings.warn(text, stacklevel=5)
        return record

    @cached_property
    def _data(self) -> "list[CellData]":
        from crosswind.analysis.cells import collect

        return collect(self._record)

    @cached_property
    def _result(self) -> "Result":
        from crosswind.findings.pipeline import analyse

        return analyse(self._record, data=self._data)


def load(directory: Path | str) -> Run:
    """The run in a directory or at an address as `s3://bucket/prefix`, whether or not a session is at work on it.

    Raises: StoreError when it is no run.
    """
    return Run(Store.read(place_of(directory)))


def _returning_run(make: Callable[Asked, StoredRun]) -> Callable[Asked, Run]:
    """Makes a function return its run as a `Run`."""

    @wraps(make)
    def made(*args: Asked.args, **kwargs: Asked.kwargs) -> Run:
        return load(make(*args, **kwargs).directory)

    return made


run = _returning_run(running.run)
resume = _returning_run(running.resume)
