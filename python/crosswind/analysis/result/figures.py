"""Figures that a study asks for: what is drawn of each cell, of models and of published numbers."""

from typing import Literal

from crosswind.analysis.result.estimates import Interval, ResultModel


class PublishedPoint(ResultModel):
    """A published number in a figure, in the figure's unit. ci: half width."""

    source: str
    value: float
    ci: float | None


class FigurePoint(ResultModel):
    """One cell in a figure. `x` is its place (Figure), `x_text` the level as the study has it.

    `estimate` is the statistic that the figure asks for. Where it asks for none, it is the mean, the median where no
    mean can be estimated, or the refused mean. `statistic` says which.
    """

    cell: int
    series: str | None
    x: float
    x_text: str
    statistic: str
    estimate: Interval
    observed: tuple[float, float]
    published: list[PublishedPoint]


class FigureCurve(ResultModel):
    """What a model predicts for the cells of one series, at their own places."""

    series: str | None
    model: str
    label: str
    xs: list[float]
    ys: list[float]


class Figure(ResultModel):
    """A metric over the levels of a factor, as a study asks for it. Values in `unit`.

    `x` and `series` are keys. Places along x are numbers of `x_unit`: loss in %, the round trip of `path.delay` in ms,
    rates in Mbit/s, sizes in bytes; where `x_unit` is null they only count the levels. `x_is_ordered`: whether one
    level is more than another. `scale` is that of the metric. `absent` are cells without a sample, which have no point.
    """

    title: str
    metric: str
    unit: str
    x: str
    x_title: str
    x_unit: str | None
    x_is_ordered: bool
    series: str | None
    scale: Literal["linear", "log"]
    note: str | None
    points: list[FigurePoint]
    curves: list[FigureCurve]
    absent: list[int]
