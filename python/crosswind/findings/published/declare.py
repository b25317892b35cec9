"""`[[published]]`: documents' numbers, beside their cells, and statements decided by these numbers.

A table is one number, or has `columns` and `rows` as in the document; every number becomes one in a plan. A statement
(`says`) needs no run: `value`, a formula over `given` numbers, has to lie from `at_least` to `at_most`.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from crosswind.errors import did_you_mean
from crosswind.findings.declared import FindingError, indices_of, measured_metric
from crosswind.findings.published.arithmetic import FUNCTIONS, MOST_ROWS, FormulaError, Number, value_of
from crosswind.findings.published.rows import printed_in
from crosswind.findings.published.statement import PublishedStatement
from crosswind.study.cells import Cell, Where, meaning_of, where_of
from crosswind.study.declared import Declaration, Reading
from crosswind.study.levels import text_of
from crosswind.study.parts import Part
from crosswind.study.tables import TomlTable, TomlValue, WhereTable
from crosswind.study.toml_text import Location
from crosswind.text.units import shown

FIELDS = ("mean", "sd", "ci", "n")
"""A number's fields available to a formula."""
_KEPT = ("source", "metric", "unit", "levels", "mean", "sd", "ci", "n", "functions", "inferred", "note")
"""A number's fields in a plan, beside its cells."""
_OF_STATEMENTS = ("says", "given", "value", "what", "of", "at_least", "at_most")
_OF_BOTH = ("source", "unit", "note")
_NEEDED = {True: ("given", "value", "what"), False: ("metric", "unit")}
"""A table's required keys, by whether it is a statement."""


class _OfNumber(TomlTable):
    """What a document may print of a number, or the study say of it."""

    mean: float | None = None
    sd: float | None = None
    ci: float | None = Field(default=None, description="half width of the published interval")
    n: int | None = Field(
        default=None, description="the sample size; beside rows that of every number, as inferred and note"
    )
    inferred: bool | None = Field(default=None, description="not printed as a number in the source")
    functions: dict[str, float] | None = Field(
        default=None, description="parts of the mean by function, as a profile in the source has them; in its unit"
    )
    note: str | None = None


class NumberTable(_OfNumber):
    """A number in a row, with what the document or the study says of it alone."""

    mean: float


InRow = Annotated[
    Annotated[TomlValue, Tag("value")] | Annotated[NumberTable, Tag("table")],
    Discriminator(lambda value: "table" if isinstance(value, dict | NumberTable) else "value"),
]
"""A row's item: a level, a number, a number with more, or "" where the document has none."""


class PublishedTable(_OfNumber):
    """What a document prints: numbers, each shown beside the measured one, or a statement that its own numbers decide.

    Numbers are one with its mean, or many in rows. A statement has says.
    """

    source: str = Field(description="the document and its table, or the place of the statement and its numbers")
    metric: str = Field(
        default="", description="rtt, total, response, connect, request, reply, transfer_time, goodput, ..."
    )
    unit: str = Field(
        default="",
        description="unit of mean, sd and ci: ns, us, ms, s, bit/s, kbit/s, Mbit/s, Gbit/s; of a statement that of its "
        "value and bounds, as text",
    )
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
    runs: Literal[1] | None = Field(
        default=None,
        description="1 where each number is of a single run: what one more run of ours gives stands beside it",
    )
    says: str | None = Field(
        default=None, description="a statement that the document's numbers decide, as one sentence"
    )
    given: dict[str, int | float | list[int | float] | WhereTable] = Field(
        default_factory=dict,
        description="the numbers by name: a number, a list, or the levels of published numbers, whose `source` and "
        "`field` (mean, sd, ci, n) may be named too",
    )
    value: str = Field(
        default="", description="a formula over the names: + - * / ** and the functions of docs/study.md"
    )
    what: str = Field(default="", description="what it gives, in words that begin a sentence on it: the gap")
    of: list[str] = Field(default_factory=list, description="of what each number is; without it, by its levels")
    at_least: int | float | None = Field(default=None, description="the least that every number may be")
    at_most: int | float | None = Field(default=None, description="the most that every number may be")


@dataclass(frozen=True)
class Published:
    """A document's number. `mean`, `sd` and `ci` (half width) are in `unit`.

    `inferred`: not printed as a number in the source. `n`: the sample size, if the source gives it. `place`: its
    table's in the study.
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
        """Dotted keys (or `part`) to its cells' values as text."""
        return self.where.texts

    @property
    def summary(self) -> str:
        """Its line in `crosswind show`."""
        return ""

    def as_dict(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """As `PublishedStatement`, with its cells' indices among `cells`."""
        kept = {name: getattr(self, name) for name in _KEPT}
        of_one_run = {} if self.table.runs is None else {"runs": self.table.runs}
        return {name: each for name, each in kept.items() if each is not None} | {
            **of_one_run,
            "cells": indices_of(cells, self.where),
        }


@dataclass(frozen=True)
class OwnStatement:
    """A statement decided by a document's own numbers.

    Attributes: given: the numbers by name. names: for each of the formula's numbers.
    """

    given: Mapping[str, Number]
    names: Sequence[str]
    place: Location = field(repr=False)
    table: PublishedTable = field(repr=False)

    @cached_property
    def numbers(self) -> tuple[tuple[str, float], ...]:
        """The formula's numbers, each with its name, empty for the only one."""
        value = value_of(self.table.value, self.given)
        return tuple(zip(self.names, value if isinstance(value, list) else [value], strict=True))

    @property
    def summary(self) -> str:
        """Its line in `crosswind show`."""
        return f"{PublishedStatement.model_validate(self.as_dict()).sentence} ({self.table.source})"

    def as_dict(self, cells: Sequence[Cell] = ()) -> dict[str, Any]:
        """As `PublishedStatement`."""
        del cells
        return {
            "asks": self.table.says,
            "low": self.table.at_least,
            "high": self.table.at_most,
            **self.table.model_dump(include={"source", "unit", "value", "what", "note"}),
            "numbers": [{"of": of, "value": number} for of, number in self.numbers],
        }


def declare_published(reading: Reading) -> tuple[Published | OwnStatement, ...]:
    """Documents' numbers in a study, then their statements. Raises: FindingError, CellError."""
    tables = reading.of(PublishedTable, "published")
    for place, table in tables:
        _check_keys(table, place)
    numbers = [number for place, table in tables if table.says is None for number in _published(table, place, reading)]
    statements = [_statement(table, place, numbers, reading.parts) for place, table in tables if table.says is not None]
    return (*numbers, *statements)


def _check_keys(table: PublishedTable, place: Location) -> None:
    """Raises: FindingError for a number's key in a statement, or the other way round."""
    is_statement = table.says is not None
    for key in _NEEDED[is_statement]:
        if key not in table.model_fields_set:
            raise FindingError((*place, key), "is missing", f"write {key} = ...")
    for key in PublishedTable.model_fields:
        if key in table.model_fields_set and key not in _OF_BOTH and (key in _OF_STATEMENTS) != is_statement:
            message = f"a statement has no {key}" if is_statement else f"{key} is of a statement, which has says"
            raise FindingError((*place, key), message, "write a table of its own for each")


def _published(table: PublishedTable, place: Location, reading: Reading) -> Iterator[Published]:
    units = measured_metric(table.metric, place).unit.scales
    if table.unit not in units:
        message = f"{shown(table.unit)} is not a unit of {table.metric}"
        raise FindingError((*place, "unit"), message, "one of " + ", ".join(units))
    of_table = table.model_dump(include=set(NumberTable.model_fields))
    of_table |= {"inferred": bool(table.inferred), "note": table.note or ""}
    for number in printed_in(table.model_dump(exclude_unset=True), place):
        values = {key: meaning_of(key, raw, number.places[key], reading.parts) for key, raw in number.levels.items()}
        yield Published(
            source=table.source,
            metric=table.metric,
            unit=table.unit,
            where=Where({key: text_of(raw) for key, raw in number.levels.items()}, values),
            place=place,
            table=table,
            **{**of_table, **number.said},
        )


def _statement(
    table: PublishedTable, place: Location, published: Sequence[Published], parts: Sequence[Part]
) -> OwnStatement:
    if table.at_least is None and table.at_most is None:
        raise FindingError((*place, "at_least"), "a statement needs at_least, at_most or both", None)
    if table.at_least is not None and table.at_most is not None and table.at_least > table.at_most:
        raise FindingError((*place, "at_most"), f"at_least {table.at_least} is more than at_most", "exchange them")
    given: dict[str, Number] = {}
    names: list[list[str]] = []
    for name, raw in table.given.items():
        where: Location = (*place, "given", name)
        if isinstance(raw, dict):
            rows = list(_chosen(raw, where, published, parts))
            given[name] = [number for _, number in rows]
            names.append(_named([levels for levels, _ in rows]))
        else:
            given[name] = [float(number) for number in raw] if isinstance(raw, list) else float(raw)
        _check_given(name, given[name], table.value, where)
    try:
        value = value_of(table.value, given, draft=True)
    except FormulaError as error:
        hint = "names of `given`, numbers, + - * / ** and the functions of docs/study.md"
        raise FindingError((*place, "value"), f"{shown(table.value)}: {error}", hint) from None
    numbers = value if isinstance(value, list) else [value]
    if not numbers or not all(map(math.isfinite, numbers)):
        raise FindingError((*place, "value"), f"{shown(table.value)} has no value", None)
    if table.of and len(table.of) != len(numbers):
        message = f"`of` names {len(table.of)} numbers, but the formula gives {len(numbers)}"
        raise FindingError((*place, "of"), message, "name each number, or leave it out")
    of = next((labels for labels in (table.of, *names) if len(labels) == len(numbers)), [""] * len(numbers))
    return OwnStatement(given, of if isinstance(value, list) else [""], place, table)


def _check_given(name: str, number: Number, formula: str, place: Location) -> None:
    """Raises: FindingError."""
    if name in FUNCTIONS:
        raise FindingError(place, f"{name} is a function of formulas", "give it another name")
    if isinstance(number, list) and len(number) > MOST_ROWS:
        raise FindingError(place, f"it has {len(number)} numbers", f"at most {MOST_ROWS}")
    if name not in re.findall(r"\w+", formula):
        raise FindingError(place, f"{shown(name)} is not in the formula", "leave it out")


def _chosen(
    raw: Mapping[str, TomlValue], place: Location, published: Sequence[Published], parts: Sequence[Part]
) -> Iterator[tuple[Mapping[str, str], float]]:
    """The published numbers with these levels, each with its own levels. Raises: FindingError, CellError."""
    field_name = str(raw.get("field", "mean"))
    if field_name not in FIELDS:
        raise FindingError((*place, "field"), f"{shown(field_name)} is not a field", did_you_mean(field_name, FIELDS))
    source = raw.get("source")
    if source is not None and all(row.source != source for row in published):
        hint = did_you_mean(str(source), [row.source for row in published])
        raise FindingError((*place, "source"), f"no published number is from {shown(source)}", hint)
    levels = {key: value for key, value in raw.items() if key not in ("field", "source")}
    where = where_of(levels, place, parts)
    for row in published:
        if where.includes(row.where) and (source is None or row.source == source):
            number = getattr(row, field_name)
            if number is not None:
                yield row.levels, float(number)


def _named(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Each row by its distinguishing levels."""
    varied = [key for key in (rows[0] if rows else ()) if len({row.get(key) for row in rows}) > 1]
    return [
        ", ".join(f"{key.rsplit('.', 1)[-1].replace('_', ' ')} {row[key]}" for key in varied if key in row)
        for row in rows
    ]


DECLARATION = Declaration(
    "published",
    PublishedTable,
    ("table of a document's numbers", "tables of documents' numbers"),
    declare_published,
)
