"""Runs as programs and notebooks have them: what `crosswind.run`, `resume` and `load` return.

    run = crosswind.load("crosswind-runs/quickstart-20260101T000000Z")
    run.samples()      # every sample, a row each
    run.estimates()    # every statistic of every metric of every cell, with its interval
    run.compare()      # levels of each factor beside its first one
    run.plot("rtt")    # a chart of the report

Tables are Polars frames, charts are Altair's. Analysis and drawing are imported when they are first asked for.
"""

from collections.abc import Callable
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Literal, ParamSpec

from crosswind import running
from crosswind.store import run as stored
from crosswind.store.directory import Store

if TYPE_CHECKING:
    import altair as alt
    import polars as pl

    from crosswind.analysis.result import Result
    from crosswind.record import RunRecord

Asked = ParamSpec("Asked")
Kind = Literal["intervals", "distribution", "comparisons", "shift"]


class Run(stored.Run):
    """A run and what it says. Made by `crosswind.run`, `crosswind.resume` and `crosswind.load`."""

    def samples(self) -> "pl.DataFrame":
        """Every sample of every repetition.

        Returns: a column for each factor (its key, the level as text), `cell`, `repetition`, `block`, `clock`, the
            columns of the samples table (docs/cell-protocol.md: `connection`, `outcome`, times in ns, ...), and one for
            each metric that a sample has a value of by itself, in the metric's unit (docs/result.md), null in samples
            that did not go well.
        Raises: StoreError when a table cannot be read.
        """
        from crosswind.report import samples_frame

        return samples_frame(self._record, metrics=True)

    def estimates(self) -> "pl.DataFrame":
        """Every estimate: a row for each cell, metric and statistic, with its interval, n, method and unit.

        Raises: StoreError when a table cannot be read.
        """
        from crosswind.report import estimates_frame

        return estimates_frame(self._result)

    def compare(self) -> "pl.DataFrame":
        """Every comparison of a level with the first level of its factor, in cells that are otherwise equal.

        Returns: a row for each factor, metric and pair of levels: `difference` and `ratio` of means with their limits,
            `p` and `p_adjusted` (Benjamini and Hochberg, over all of them), `verdict`.
        Raises: StoreError when a table cannot be read.
        """
        from crosswind.report import comparisons_frame

        return comparisons_frame(self._result)

    def claims(self) -> "pl.DataFrame":
        """The verdict on every statement that the study checks: `verdict`, `says`, `source`, and the `sentence` on it.

        Raises: StoreError when a table cannot be read.
        """
        from crosswind.report import claims_frame

        return claims_frame(self._result)

    def plot(self, metric: str, kind: Kind = "intervals") -> "alt.VConcatChart":
        """A chart of one metric as the report has it, which a notebook draws and which can be changed and saved.

        Args:   metric: its name, as `rtt`. kind: `intervals`: mean, median and their intervals of each cell;
                `distribution`: the share of samples at or below each value; `comparisons`: ratios of levels with their
                intervals; `shift`: the difference of two levels at each quantile.
        Raises: UsageError where the run has nothing of the kind; StoreError when a table cannot be read.
        """
        from crosswind.report.notebook import chart_of

        return chart_of(metric, kind, self._record, self._result)

    @cached_property
    def _record(self) -> "RunRecord":
        return self.record()

    @cached_property
    def _result(self) -> "Result":
        from crosswind.analysis import analyse

        return analyse(self._record)


def load(directory: Path | str) -> Run:
    """The run in a directory, whether or not a session is at work on it. Raises: StoreError when it is no run."""
    return Run(Store.read(Path(directory)))


def _returning_run(make: Callable[Asked, stored.Run]) -> Callable[Asked, Run]:
    """A function that makes a run, returning it as programs have it."""

    @wraps(make)
    def made(*args: Asked.args, **kwargs: Asked.kwargs) -> Run:
        return load(make(*args, **kwargs).directory)

    return made


run = _returning_run(running.run)
resume = _returning_run(running.resume)
