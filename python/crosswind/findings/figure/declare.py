"""`[[figure]]`: a metric over the levels of a factor, drawn as a study wants it."""

from typing import Literal

from pydantic import Field

from crosswind.findings.declared import DeclaredTable, FindingError, check_factors, check_statistic, measured_metric
from crosswind.study.cells import where_of
from crosswind.study.declared import Declaration, Reading
from crosswind.study.tables import StatisticName, TomlTable, WhereTable
from crosswind.study.titles import check_title
from crosswind.study.toml_text import Location


class FigureTable(TomlTable):
    """One figure of the report: a metric over the levels of a factor."""

    title: str = Field(description="shown above the figure; {workload.size} stands for the sizes of its cells")
    metric: str = Field(description="what is drawn, as of a published number")
    statistic: StatisticName | None = Field(
        default=None, description="what is drawn of it; without it the mean, and where there is none the median"
    )
    x: str = Field(description="dotted key of the factor along the axis")
    series: str | None = Field(default=None, description="dotted key of the factor that has a line for each level")
    where: WhereTable = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells that are drawn"
    )
    models: list[str] = Field(default_factory=list, description="models to draw beside the measurement")
    scale: Literal["auto", "linear", "log"] = Field(
        default="auto", description="of the metric's axis: linear, log, or auto: log where values are 100 times apart"
    )
    note: str = ""


def declare_figures(reading: Reading) -> tuple[DeclaredTable[FigureTable], ...]:
    """A study's figures, including those with constant factors. Raises: FindingError, CellError."""
    return tuple(_figure(table, place, reading) for place, table in reading.of(FigureTable, "figure"))


def _figure(table: FigureTable, place: Location, reading: Reading) -> DeclaredTable[FigureTable]:
    metric = measured_metric(table.metric, place)
    check_title(table.title, (*place, "title"))
    if table.statistic is not None:
        check_statistic(table.statistic, metric, place)
    if table.models and table.statistic not in (None, "mean"):
        raise FindingError(
            (*place, "statistic"),
            f"models predict means, and this figure draws the {table.statistic}",
            "draw the mean, or leave the models out",
        )
    keys = {"x": table.x} | ({"series": table.series} if table.series is not None else {})
    check_factors(keys, place, reading.parts, metric=metric)
    return DeclaredTable(where_of(table.where, (*place, "where"), reading.parts), place, table)


DECLARATION = Declaration("figure", FigureTable, ("figure", "figures"), declare_figures, may_be_left_out=True)
