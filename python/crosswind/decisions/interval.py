"""An estimate with its interval, as results have it."""

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from crosswind.stats import Estimate


class ResultModel(BaseModel):
    """An object of a result: never changed, and without fields that are not described."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, serialize_by_alias=True)


class Interval(ResultModel):
    """One estimate.

    low and high are both null where there is no interval; `reason` then says why, and how many repetitions it would
    take. One of them alone is a bound: the number is at least `low`, or at most `high`. value alone is null where the
    number is that of an exchange that timed out: it is over `low`. Of an exact number (`method` is `exact`) nothing is
    left to chance: it would come out the same every time and has no interval. `units`: repetitions behind it.
    `spread`: smallest and largest of the repetitions' own values, where there is no interval, or one without a width.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    level: float
    method: str
    reason: str | None = None
    units: int = 0
    spread: tuple[float, float] | None = None

    @property
    def is_exact(self) -> bool:
        """Whether the value would come out the same every time."""
        return self.method == "exact"

    @property
    def is_of_most(self) -> bool:
        """Whether it is the median of the repetitions, and says nothing of the statistic of all."""
        # Imported here: the types of a result need neither numpy nor scipy.
        from crosswind.stats.majority import MOST

        return self.method == MOST

    @property
    def is_whole(self) -> bool:
        """Whether it has an interval with both ends."""
        return self.low is not None and self.high is not None

    @property
    def limits(self) -> tuple[float, float] | None:
        """low and high, the value in the place of one that is not known; None where there is no value."""
        if self.value is None:
            return None
        return (self.value if self.low is None else self.low), (self.value if self.high is None else self.high)

    def negated(self) -> "Interval":
        """The same difference the other way round."""

        def turned(end: float | None) -> float | None:
            return None if end is None else -end

        spread = None if self.spread is None else (-self.spread[1], -self.spread[0])
        ends = {"value": turned(self.value), "low": turned(self.high), "high": turned(self.low), "spread": spread}
        return self.model_copy(update=ends)

    @classmethod
    def of(cls, estimate: "Estimate") -> "Interval":
        """The same estimate without its unit, which its surroundings give."""
        e = estimate
        return cls(
            value=e.value, low=e.low, high=e.high, n=e.n, level=e.level, method=e.method, reason=e.reason,
            units=e.units, spread=e.spread,
        )  # fmt: skip
