"""Estimates: of each metric of a cell, its statistics with their intervals."""

from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict

from crosswind.catalog.metrics import STATISTICS
from crosswind.decisions.interval import Interval, ResultModel
from crosswind.text.quantities import Unit


class Diagnostics(ResultModel):
    """Whether the repetitions of a cell are alike in a metric, which its intervals take for granted.

    `drift`: rank correlation of a repetition's mean with its place in the run; `lag1`: with the next repetition's;
    each with its p-value of none, all null with few repetitions. `icc`: share of the variance between repetitions.
    `effective_n`: how many independent messages would give a mean as sure as this one. Null: it cannot be said.
    """

    drift: float | None
    drift_p: float | None
    lag1: float | None
    lag1_p: float | None
    icc: float | None
    effective_n: float | None


def _require_statistics(schema: dict[str, Any]) -> None:
    """Describes every statistic of `crosswind.catalog.metrics` as a field, which it is in JSON."""
    interval = schema["additionalProperties"]
    schema["properties"] |= {name: interval for name in STATISTICS if name not in schema["properties"]}
    schema["required"] += [name for name in STATISTICS if name not in schema["required"]]
    schema["additionalProperties"] = False


class MetricEstimates(ResultModel):
    """One metric of one cell: a field for each statistic of `crosswind.catalog.metrics`, in `unit`.

    smallest and largest are single samples, which estimate nothing. failed: exchanges that did not succeed. Means are
    of those that did; quantiles of those and of the ones that timed out, which took longer than their timeout.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=_require_statistics)
    __pydantic_extra__: dict[str, Interval]

    unit: str
    smallest: float
    largest: float
    failed: int = 0
    diagnostics: Diagnostics | None = None
    median: Interval
    mean: Interval

    @classmethod
    def of(
        cls,
        unit: Unit,
        extremes: tuple[float, float],
        statistics: Mapping[str, Interval],
        *,
        failed: int = 0,
        diagnostics: Diagnostics | None = None,
    ) -> "MetricEstimates":
        """The estimates of every statistic, by its name. Args: extremes: smallest and largest sample."""
        smallest, largest = extremes
        return cls.model_validate(
            {
                "unit": unit.name,
                "smallest": smallest,
                "largest": largest,
                "failed": failed,
                "diagnostics": diagnostics,
                **statistics,
            }
        )

    def statistic(self, name: str) -> Interval:
        """The estimate of one statistic."""
        interval: Interval = getattr(self, name)
        return interval
