"""Estimates: of each metric of a cell, its statistics with their intervals."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ConfigDict

from crosswind.metrics import STATISTICS, Unit

if TYPE_CHECKING:
    from crosswind.stats import Estimate


class ResultModel(BaseModel):
    """An object of a result: never changed, and without fields that are not described."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)


class Interval(ResultModel):
    """One estimate. value, low and high are null together, and `reason` then says why and what would be needed.

    low and high alone are null where `method` is `exact`: nothing is left to chance, so that the value would come out
    the same every time.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    level: float
    method: str
    reason: str | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the value would come out the same every time."""
        return self.value is not None and self.low is None

    @property
    def limits(self) -> tuple[float, float] | None:
        """low and high, of an exact value that value twice; None where there is no number."""
        if self.value is None:
            return None
        return (self.value if self.low is None else self.low), (self.value if self.high is None else self.high)

    @classmethod
    def of(cls, estimate: "Estimate") -> "Interval":
        """The same estimate without its unit, which its surroundings give."""
        e = estimate
        return cls(value=e.value, low=e.low, high=e.high, n=e.n, level=e.level, method=e.method, reason=e.reason)


def _require_statistics(schema: dict[str, Any]) -> None:
    """Describes every statistic of `crosswind.metrics` as a field, which it is in JSON."""
    interval = schema["additionalProperties"]
    schema["properties"] |= {name: interval for name in STATISTICS if name not in schema["properties"]}
    schema["required"] += [name for name in STATISTICS if name not in schema["required"]]
    schema["additionalProperties"] = False


class MetricEstimates(ResultModel):
    """One metric of one cell: a field for each statistic of `crosswind.metrics`, in `unit`.

    smallest and largest are single samples, which estimate nothing.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra=_require_statistics)
    __pydantic_extra__: dict[str, Interval]

    unit: str
    smallest: float
    largest: float
    median: Interval
    mean: Interval

    @classmethod
    def of(cls, unit: Unit, smallest: float, largest: float, statistics: Mapping[str, Interval]) -> "MetricEstimates":
        """The estimates of every statistic, by its name."""
        return cls.model_validate({"unit": unit.name, "smallest": smallest, "largest": largest, **statistics})

    def statistic(self, name: str) -> Interval:
        """The estimate of one statistic."""
        found: Interval = getattr(self, name)
        return found
