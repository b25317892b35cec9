"""What a report sets beside the measurement or makes of it, each tied to its cells.

Published numbers from documents, figures to draw, curves to fit, and claims of equivalence. Nothing here decides what
is measured.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crosswind.metrics import METRICS
from crosswind.quantities import SHARE, TIME, Unit
from crosswind.study.cells import Cell, Where, meaning_of, where_of
from crosswind.study.errors import DesignError
from crosswind.study.format import StudyDocument
from crosswind.study.keys import KINDS
from crosswind.study.levels import did_you_mean, text_of
from crosswind.study.parts import Part
from crosswind.study.report_tables import EquivalenceTable, FigureTable, FitTable, PublishedTable
from crosswind.study.titles import check_title, filled_in
from crosswind.study.toml_text import Location
from crosswind.units import shown

_QUANTITY = re.compile(r"(?P<number>[0-9]{1,15}(\.[0-9]{1,15})?) ?(?P<unit>\S*)")


class PublishedError(DesignError):
    """A figure, a fit or an equivalence that names what does not exist."""


@dataclass(frozen=True)
class Published:
    """One published number. `mean`, `sd` and `ci` (half width) are in `unit`; times `scale`, in the metric's own.

    `inferred`: not printed as a number in the source. `n`: the sample size, where the source gives it.
    """

    source: str
    metric: str
    unit: str
    where: Where
    mean: float
    sd: float | None
    ci: float | None
    n: int | None
    inferred: bool
    note: str
    _table: PublishedTable = field(repr=False)

    @property
    def levels(self) -> Mapping[str, str]:
        """Dotted keys (or `part`) to the texts of the values that its cells have."""
        return self.where.texts

    @property
    def scale(self) -> float:
        """Factor from `unit` to the unit of `METRICS[metric]`."""
        return METRICS[self.metric].unit.scales[self.unit]

    def matches(self, cell: Cell) -> bool:
        """Whether this number belongs beside a cell: every level it names is the cell's, however each is written."""
        return self.where.matches(cell)

    def as_dict(self, cells: Iterable[Cell]) -> dict[str, Any]:
        """As plain data, with the indices of its cells among `cells`."""
        return {**self._table.model_dump(exclude_none=True), "cells": indices_of(cells, self.where)}


@dataclass(frozen=True)
class Figure:
    """One figure to draw: a metric over the levels of `x`, a line for each level of `series`, in some of the cells."""

    x: str
    series: str | None
    where: Where
    models: tuple[str, ...]
    _table: FigureTable = field(repr=False)

    def as_dict(self, cells: Iterable[Cell]) -> dict[str, Any]:
        """As plain data, with the indices of its cells among `cells`. It is drawn where `x` varies in those."""
        return _about(self._table, self.where, self.where.among(cells))


@dataclass(frozen=True)
class Fit:
    """One curve to fit to some of the cells: over `x`, once for each level of `over`, a result for each level of `by`.

    `levels` are those that published coefficients belong to, in their order.
    """

    x: str
    by: str
    over: str
    where: Where
    levels: tuple[Where, ...]
    _table: FitTable = field(repr=False)

    def as_dict(self, cells: Iterable[Cell]) -> dict[str, Any]:
        """As plain data, with the indices of its cells among `cells`, and of each published level's among those."""
        cells_of_figure = self.where.among(cells)
        plain = _about(self._table, self.where, cells_of_figure)
        published = [
            {**entry, "level": level.texts[self.by], "cells": indices_of(cells_of_figure, level)}
            for entry, level in zip(plain["published"], self.levels, strict=True)
        ]
        return {**plain, "published": published}


@dataclass(frozen=True)
class Equivalence:
    """One claim that the levels of `factor` make no difference in some cells that is larger than a margin.

    `is_ratio`: `margin` is 0.25 for ratios from 1/1.25 to 1.25; otherwise a difference in the metric's unit.
    """

    factor: str
    where: Where
    is_ratio: bool
    margin: float
    _table: EquivalenceTable = field(repr=False)

    @property
    def table(self) -> EquivalenceTable:
        """It as it was written."""
        return self._table

    def as_dict(self, cells: Iterable[Cell]) -> dict[str, Any]:
        """As plain data, with the indices of its cells among `cells`; `margin` is as written, `bound` its number."""
        plain = _about(self._table, self.where, self.where.among(cells))
        return {**plain, "is_ratio": self.is_ratio, "bound": self.margin}


def _about(table: FigureTable | FitTable | EquivalenceTable, where: Where, cells: Sequence[Cell]) -> dict[str, Any]:
    """A table of a study as plain data, its title filled in from its cells."""
    return {
        **table.model_dump(exclude_none=True),
        "title": filled_in(table.title, cells),
        "where": dict(where.texts),
        "cells": [cell.index for cell in cells],
    }


def published_of(document: StudyDocument, parts: Sequence[Part]) -> tuple[Published, ...]:
    """The published numbers of a study. Raises: PublishedError, CellError."""
    return tuple(_published(table, ("published", number), parts) for number, table in enumerate(document.published))


def figures_of(document: StudyDocument, parts: Sequence[Part]) -> tuple[Figure, ...]:
    """The figures to draw of a study, those too whose factors do not vary in it. Raises: PublishedError, CellError."""
    return tuple(_figure(table, ("figure", number), parts) for number, table in enumerate(document.figure))


def fits_of(document: StudyDocument, parts: Sequence[Part]) -> tuple[Fit, ...]:
    """The curves to fit to a study's cells, as `figures_of`. Raises: PublishedError, CellError."""
    return tuple(_fit(table, ("fit", number), parts) for number, table in enumerate(document.fit))


def equivalences_of(document: StudyDocument, parts: Sequence[Part]) -> tuple[Equivalence, ...]:
    """The claims of equivalence of a study, as `figures_of`. Raises: PublishedError, CellError."""
    claims = enumerate(document.equivalence)
    return tuple(_equivalence(table, ("equivalence", number), parts) for number, table in claims)


def _published(table: PublishedTable, place: Location, parts: Sequence[Part]) -> Published:
    check_metric(table.metric, place)
    units = METRICS[table.metric].unit.scales
    if table.unit not in units:
        message = f"{shown(table.unit)} is not a unit of {table.metric}"
        raise PublishedError((*place, "unit"), message, "one of " + ", ".join(units))
    return Published(
        source=table.source,
        metric=table.metric,
        unit=table.unit,
        where=where_of(table.levels, (*place, "levels"), parts),
        mean=table.mean,
        sd=table.sd,
        ci=table.ci,
        n=table.n,
        inferred=table.inferred,
        note=table.note,
        _table=table,
    )


def _figure(table: FigureTable, place: Location, parts: Sequence[Part]) -> Figure:
    check_metric(table.metric, place)
    check_title(table.title, (*place, "title"))
    if table.statistic is not None:
        check_statistic(table.statistic, table.metric, place)
    if table.models and table.statistic not in (None, "mean"):
        raise PublishedError(
            (*place, "statistic"),
            f"models predict means, and this figure draws the {table.statistic}",
            "draw the mean, or leave the models out",
        )
    keys = {"x": table.x} | ({"series": table.series} if table.series is not None else {})
    check_factors(keys, place, parts)
    return Figure(
        x=table.x,
        series=table.series,
        where=where_of(table.where, (*place, "where"), parts),
        models=tuple(table.models),
        _table=table,
    )


def _fit(table: FitTable, place: Location, parts: Sequence[Part]) -> Fit:
    check_metric(table.metric, place)
    check_title(table.title, (*place, "title"))
    if METRICS[table.metric].unit is not TIME:
        raise PublishedError((*place, "metric"), f"{table.metric} is not a time", "caia-exponential fits times only")
    check_factors({"x": table.x, "by": table.by, "over": table.over}, place, parts)
    if not table.x.endswith(".loss"):
        raise PublishedError((*place, "x"), f"{table.x} is not a loss", "caia-exponential is a curve over path.loss")
    names = [part.name for part in parts if part.name]
    levels = []
    for number, entry in enumerate(table.published):
        value = meaning_of(table.by, entry.level, (*place, "published", number, "level"), names)
        levels.append(Where({table.by: text_of(entry.level)}, {table.by: value}))
    where = where_of(table.where, (*place, "where"), parts)
    return Fit(x=table.x, by=table.by, over=table.over, where=where, levels=tuple(levels), _table=table)


def _equivalence(table: EquivalenceTable, place: Location, parts: Sequence[Part]) -> Equivalence:
    check_metric(table.metric, place)
    check_title(table.title, (*place, "title"))
    check_statistic(table.statistic, table.metric, place)
    check_factors({"factor": table.factor}, place, parts)
    where = where_of(table.where, (*place, "where"), parts)
    if table.factor in where.texts:
        message = f"{table.factor} has one value only where {table.factor} = {where.texts[table.factor]}"
        raise PublishedError((*place, "where"), message, "leave it out: the comparison is between its levels")
    is_ratio, margin = margin_of(table.margin, METRICS[table.metric].unit, (*place, "margin"))
    return Equivalence(table.factor, where, is_ratio, margin, table)


def margin_of(text: str, unit: Unit, place: Location) -> tuple[bool, float]:
    """Whether a margin is a ratio's, and its number: of a difference in `unit`, of a ratio what is above 1.

    Raises: PublishedError.
    """
    amount = _QUANTITY.fullmatch(text.strip())
    known = ", ".join(dict.fromkeys([*(name for name in unit.scales if name != "1"), "%"]))
    if amount is None or (amount["unit"] or "1") not in {*unit.scales, "%"}:
        raise PublishedError(place, f"{shown(text)} is not a margin", f"a number and one of {known}")
    is_ratio = amount["unit"] == "%" and unit is not SHARE
    margin = float(amount["number"]) * (0.01 if is_ratio else unit.scales[amount["unit"] or "1"])
    if not 0 < margin < (1 if unit is SHARE else math.inf):
        raise PublishedError(place, f"{shown(text)} is not a margin", "above 0, and of a share below 100%")
    return is_ratio, margin


def check_metric(metric: str, place: Location) -> None:
    """Raises: PublishedError for a name that is no metric's."""
    if metric not in METRICS:
        raise PublishedError((*place, "metric"), f"{shown(metric)} is not a metric", did_you_mean(metric, METRICS))


def check_statistic(statistic: str, metric: str, place: Location) -> None:
    """Raises: PublishedError for a quantile or a trimmed mean of what has one value a repetition, or a share."""
    if statistic != "mean" and not METRICS[metric].has_quantiles:
        message = f"{metric} has no {statistic} in a repetition"
        raise PublishedError((*place, "statistic"), message, "it is compared by its mean")


def check_factors(keys: Mapping[str, str], place: Location, parts: Sequence[Part]) -> None:
    """Refuses what can never be a factor, and two names for one axis. Raises: PublishedError."""
    known = [key for key, kind in KINDS.items() if kind.can_vary] + (["part"] if len(parts) > 1 else [])
    seen: dict[str, str] = {}
    for name, key in keys.items():
        if key not in known:
            raise PublishedError((*place, name), f"{shown(key)} is not a factor's key", did_you_mean(key, known))
        if key in seen:
            raise PublishedError((*place, name), f"{shown(key)} is {seen[key]} already", "name another factor's key")
        seen[key] = name


def indices_of(cells: Iterable[Cell], where: Where) -> list[int]:
    """The indices of some cells among others."""
    return [cell.index for cell in where.among(cells)]
