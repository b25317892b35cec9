"""The similarity of a cell's repetitions, as results have it: without arrays, so that reading a result is fast."""

from dataclasses import dataclass
from typing import ClassVar

MIN_ORDERED = 8
"""Repetitions for a statement on their order."""


@dataclass(frozen=True)
class Diagnostics:
    """The similarity of a cell's repetitions in one metric.

    Attributes:
        drift: rank correlation of a repetition's mean with its place in the run, in [-1, 1]. drift_p: two-sided, for
        none. lag1: correlation of a repetition's mean with the next one's. lag1_p: two-sided, for none. All four are
            None below MIN_ORDERED repetitions.
        icc: similarity of messages within a repetition: the share of variance between repetitions (Fisher's intraclass
            correlation), at most 1; below 0 if they differ less than by chance. None with one message in every
            repetition.
        effective_n: number of independent messages giving an equally sure mean; None without differences.
    """

    # In the schema of results an object has no fields but these.
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    drift: float | None
    drift_p: float | None
    lag1: float | None
    lag1_p: float | None
    icc: float | None
    effective_n: float | None
