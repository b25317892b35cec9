"""A study's fitted curves, with their coefficients."""

from crosswind.decisions.model import ResultModel
from crosswind.stats.estimate import Interval


class PublishedFit(ResultModel):
    """Published coefficients beside ours. ratio: ours / theirs; inside: whether theirs lies in our interval."""

    source: str
    a: float | None
    b: float | None
    c: float | None
    b_ratio: float | None
    c_ratio: float | None
    b_inside: bool | None
    c_inside: bool | None
    note: str | None


class FitCurve(ResultModel):
    """One fitted curve, or the average of several.

    Attributes:
        level: of the factor distinguishing the curves, null without one.
        a, b: in the fit's unit. c: per unit of loss.
        r_squared: share of the differences between the cells' means explained by the curve.
        aicc_straight: AICc of the best straight line minus the curve's: above 0 favours the curve.
        shape: "exponential", "straight line" or "undecided", with less than 2 between them; null without a fit.
    """

    level: str | None
    a: Interval
    b: Interval
    c: Interval
    r_squared: float | None
    aicc_straight: float | None
    shape: str | None


class FitRow(FitCurve):
    """The average over the levels of `over`; `series` are the curves averaged."""

    published: list[PublishedFit]
    series: list[FitCurve]


class Fit(ResultModel):
    """A curve fitted to cells: over `x`, once for each level of `over`, a row for each level of `by` (keys all)."""

    title: str
    model: str
    formula: str
    metric: str
    unit: str
    x: str
    by: str
    over: str
    method: str
    published_method: str
    note: str | None
    rows: list[FitRow]
