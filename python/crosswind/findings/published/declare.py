"""`[[published]]`: numbers of documents, each beside the cells that it belongs to.

A table is one number, or has `columns` and `rows` as the document has them. Every number of it becomes one of a plan.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from crosswind.errors import did_you_mean
from crosswind.findings.declared import FindingError, indices_of, measured_metric
from crosswind.metrics import METRICS
from crosswind.study.cells import Cell, Where, meaning_of
from crosswind.study.declared import Declaration, Reading, of_its_network
from crosswind.study.keys import VALUE_TYPES
from crosswind.study.levels import text_of
from crosswind.study.tables import TomlTable, TomlValue, WhereTable
from crosswind.study.toml_text import Location
from crosswind.units import shown

_NUMBER = (int, float)
_OF_NUMBERS: Mapping[str, tuple[tuple[type, ...], str]] = {
    "mean": (_NUMBER, "a number"),
    "sd": (_NUMBER, "a number"),
    "ci": (_NUMBER, "a number"),
    "n": ((int,), "a whole number"),
    "inferred": ((bool,), "true or false"),
    "note": ((str,), "text"),
}
"""What a column may have of its row's number, beside a level."""
_OF_ONE = ("sd", "ci")
"""What belongs to one number, and not to several of a row."""
_NOTHING = ""
"""Stands in a row where the document has no value."""


class NumberTable(TomlTable):
    """A number in a row, with what the document or the study says of it alone."""

    mean: float
    sd: float | None = None
    ci: float | None = Field(default=None, description="half width of the published interval")
    n: int | None = None
    inferred: bool | None = Field(default=None, description="not printed as a number in the source")
    functions: dict[str, float] | None = Field(
        default=None, description="parts of the mean by function, as a profile in the source has them; in its unit"
    )
    note: str | None = None


InRow = Annotated[
    Annotated[TomlValue, Tag("value")] | Annotated[NumberTable, Tag("table")],
    Discriminator(lambda value: "table" if isinstance(value, dict | NumberTable) else "value"),
]
"""What stands in a row: a level, a number, a number with more, or "" where the document has none."""


class PublishedTable(TomlTable):
    """Published numbers, each shown beside the measured one: one with its mean, or many in rows."""

    source: str = Field(description="the document and its table")
    metric: str = Field(description="rtt, total, response, connect, request, reply, transfer_time, goodput, ...")
    unit: str = Field(description="unit of mean, sd and ci: ns, us, ms, s, bit/s, kbit/s, Mbit/s, Gbit/s")
    levels: WhereTable = Field(
        default_factory=dict,
        description="dotted keys (or part) and the value each has in the cells that all numbers belong to",
    )
    columns: list[str | dict[str, list[TomlValue]]] = Field(
        default_factory=list,
        description="what stands in each row: dotted keys (or part), whose levels it names, and mean, sd, ci, n, "
        'inferred, note; { "workload.size" = [1, 100] } in place of mean: a column of means for each of these levels',
    )
    rows: list[list[InRow]] = Field(
        default_factory=list,
        description='a list of values for each row, in the order of the columns; "" where the document has none; in '
        'place of a mean { mean = 0.9, note = "..." }, with what is said of this number alone',
    )
    mean: float | None = None
    sd: float | None = None
    ci: float | None = Field(default=None, description="half width of the published interval")
    n: int | None = Field(
        default=None, description="the sample size; with rows that of every number, as inferred, note"
    )
    inferred: bool = Field(default=False, description="not printed as a number in the source")
    functions: dict[str, float] | None = Field(
        default=None, description="parts of the mean by function, as a profile in the source has them; in its unit"
    )
    note: str = ""


@dataclass(frozen=True)
class Published:
    """One published number. `mean`, `sd` and `ci` (half width) are in `unit`; times `scale`, in the metric's own.

    `inferred`: not printed as a number in the source. `n`: the sample size, where the source gives it. `place`: of its
    table in the study.
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
    functions: Mapping[str, float] | None
    note: str
    place: Location
    table: PublishedTable = field(repr=False)

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

    @property
    def summary(self) -> str:
        """What `crosswind show` says of it."""
        return ""

    def as_dict(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """As plain data, with the indices of its cells among `cells`."""
        known = {"sd": self.sd, "ci": self.ci, "n": self.n, "functions": self.functions}
        return {
            "source": self.source,
            "metric": self.metric,
            "unit": self.unit,
            "levels": dict(self.levels),
            "mean": self.mean,
            **{name: value for name, value in known.items() if value is not None},
            "inferred": self.inferred,
            "note": self.note,
            "cells": indices_of(cells, self.where),
        }


def declare_published(reading: Reading) -> tuple[Published, ...]:
    """The published numbers of a study. Raises: FindingError, CellError."""
    tables = reading.of(PublishedTable, "published")
    return tuple(number for place, table in tables for number in _published(table, place, reading))


def _one_by_one(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A table of a study that was checked as tables with one number each."""
    kept = {key: value for key, value in table.items() if key not in ("columns", "rows")}
    return [{**kept, **number.said, "levels": dict(number.levels)} for number in _numbers_of(table, ("published",))]


def _published(table: PublishedTable, place: Location, reading: Reading) -> Iterator[Published]:
    units = measured_metric(table.metric, place).unit.scales
    if table.unit not in units:
        message = f"{shown(table.unit)} is not a unit of {table.metric}"
        raise FindingError((*place, "unit"), message, "one of " + ", ".join(units))
    parts = [part.name for part in reading.parts if part.name]
    for number in _numbers_of(table.model_dump(exclude_unset=True), place):
        said = {**table.model_dump(include=set(NumberTable.model_fields)), **number.said}
        values = {key: meaning_of(key, raw, number.places[key], parts) for key, raw in number.levels.items()}
        yield Published(
            source=table.source,
            metric=table.metric,
            unit=table.unit,
            where=Where({key: text_of(raw) for key, raw in number.levels.items()}, values),
            place=place,
            table=table,
            **said,
        )


@dataclass(frozen=True)
class _Number:
    """A number as it stands there: its levels, where each of them stands, and what is said of it."""

    levels: Mapping[str, TomlValue]
    places: Mapping[str, Location]
    said: Mapping[str, Any]


@dataclass(frozen=True)
class _Column:
    """A column. Attributes: level: of the key in its head, of a column that has means at that level."""

    name: str
    place: Location
    level: TomlValue | None = None

    @property
    def has_means(self) -> bool:
        """Whether a number of the document stands in it."""
        return self.name == "mean" or self.level is not None


def _numbers_of(table: Mapping[str, Any], place: Location) -> Iterator[_Number]:
    """Every number of a table as written. Raises: FindingError."""
    levels: Mapping[str, TomlValue] = table.get("levels", {})
    places: dict[str, Location] = {key: (*place, "levels", key) for key in levels}
    rows, columns = table.get("rows", ()), list(_columns(table, place))
    if not rows and not columns:
        if "mean" not in table:
            raise FindingError((*place, "mean"), "is missing", "write mean = ..., or columns = [...] and rows = [...]")
        yield _Number(levels, places, {})
        return
    _check_columns(table, columns, place)
    for number, row in enumerate(rows):
        at: Location = (*place, "rows", number)
        if len(row) != len(columns):
            message = f"it has {len(row)} value{'' if len(row) == 1 else 's'} for {len(columns)} columns"
            raise FindingError(at, message, f'one value for each column; "{_NOTHING}" where the document has none')
        of_row, of_places = dict(levels), dict(places)
        said: dict[str, Any] = {}
        means: list[tuple[_Column, Mapping[str, Any]]] = []
        for index, (column, value) in enumerate(zip(columns, row, strict=True)):
            cell: Location = (*at, index)
            if column.has_means:
                means += [(column, _mean(value, cell))] if value != _NOTHING else []
            elif column.name in _OF_NUMBERS:
                said |= {column.name: _checked(column.name, value, cell)} if value != _NOTHING else {}
            else:
                of_row[column.name], of_places[column.name] = value, cell
        for column, mean in means:
            column_levels = {} if column.level is None else {column.name: column.level}
            own_places = dict.fromkeys(column_levels, column.place)
            yield _Number({**of_row, **column_levels}, {**of_places, **own_places}, {**said, **mean})


def _columns(table: Mapping[str, Any], place: Location) -> Iterator[_Column]:
    for number, head in enumerate(table.get("columns", ())):
        at: Location = (*place, "columns", number)
        if isinstance(head, str):
            yield _Column(head, at)
            continue
        if len(head) != 1 or not all(head.values()):
            message = f"{shown(head)} is not a key with its levels"
            raise FindingError(at, message, 'as { "workload.size" = [1, 100] }, for a column of means each')
        for key, levels in head.items():
            yield from (_Column(key, (*at, key, index), level) for index, level in enumerate(levels))


def _check_columns(table: Mapping[str, Any], columns: Sequence[_Column], place: Location) -> None:
    """Raises: FindingError."""
    for missing in ("columns", "rows"):
        if not table.get(missing):
            raise FindingError((*place, missing), "is missing", "columns and rows go together")
    for key in ("mean", *_OF_ONE, "functions"):
        if key in table:
            message = f"{key} is of one number, and this table has rows"
            raise FindingError((*place, key), message, "name a column, or write { mean = ..., ... } in a row")
    seen: dict[tuple[str, str | None], Location] = {}
    for column in columns:
        name = column.name
        of_level = column.level is not None
        if name not in VALUE_TYPES and name != "part" and (of_level or name not in _OF_NUMBERS):
            known = [*([] if of_level else _OF_NUMBERS), "part", *VALUE_TYPES]
            hint = did_you_mean(name, known)
            raise FindingError(column.place, f"{shown(name)} is not a column", hint)
        if name in table.get("levels", {}):
            raise FindingError(column.place, f"{name} is among the levels of the whole table", "leave it out there")
        level = None if column.level is None else text_of(column.level)
        if (name, level) in seen or (name, None) in seen or (level is None and name in [key for key, _ in seen]):
            message = f"{name}{'' if level is None else f' = {level}'} is a column already"
            raise FindingError(column.place, message, "name each column once")
        seen[name, level] = column.place
    heads = {column.name: column for column in columns if column.has_means}
    if not heads:
        hint = 'write "mean", or { "workload.size" = [1, 100] } for a column of means each'
        raise FindingError((*place, "columns"), "no column has means", hint)
    if len(heads) > 1:
        _, second, *_ = heads.values()
        message = f"{' and '.join(map(shown, heads))} both have means"
        raise FindingError(second.place, message, "name one of them, and the other among the levels")
    for column in columns:
        if column.name in _OF_ONE and "mean" not in heads:
            hint = f"write {{ mean = ..., {column.name} = ... }} in place of a number"
            raise FindingError(column.place, f"{column.name} is of one number, and a row has several", hint)


def _mean(value: object, place: Location) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {"mean": _checked("mean", value, place)}


def _checked(name: str, value: object, place: Location) -> object:
    """A value of a column. Raises: FindingError."""
    types, what = _OF_NUMBERS[name]
    if not isinstance(value, types) or isinstance(value, bool) != (types == (bool,)):
        message = f"{shown(value)} is not {what}"
        raise FindingError(place, message, f'{name} is {what}, or "{_NOTHING}" where the document has none')
    return float(value) if isinstance(value, _NUMBER) and types == _NUMBER else value


DECLARATION = Declaration(
    "published",
    PublishedTable,
    ("table of published numbers", "tables of published numbers"),
    declare_published,
    over_network=of_its_network,
    split=_one_by_one,
)
