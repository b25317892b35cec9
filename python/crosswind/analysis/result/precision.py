"""Precisions that a study asked for: how narrow each interval became, and what ended its cell."""

from crosswind.analysis.result.estimates import ResultModel
from crosswind.precision import CellPrecision, Ended


class PrecisionReached(ResultModel):
    """A precision in one cell.

    value, low, high: the mean over repetitions of the statistic of each, in `unit`, and its interval of 95 %, which
    holds although it was looked at again and again; null where there is none (`reason`) or where the cell is exact.
    target: as asked for; wanted: the half-width that it means. ended: precision, cap, exact or no value; null where the
    cell was to go on.
    """

    cell: int
    metric: str
    statistic: str
    unit: str
    units: int
    value: float | None
    low: float | None
    high: float | None
    target: str
    wanted: float | None
    ended: Ended | None
    reason: str | None

    @classmethod
    def of(cls, state: CellPrecision) -> "PrecisionReached":
        """The same as plain data."""
        return cls.model_validate({name: getattr(state, name) for name in cls.model_fields})

    def state(self) -> CellPrecision:
        """The same as it is shown."""
        return CellPrecision(**self.model_dump())
