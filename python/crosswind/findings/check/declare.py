"""Statements that a document's own numbers decide, by arithmetic: no run is needed, and none changes them.

given -> what the document prints, or rows of [[published]]
value -> a formula over it (crosswind.study.arithmetic), a number or one for each row
at_least, at_most -> where every number has to lie for the statement to hold
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from crosswind.errors import did_you_mean
from crosswind.findings.check.arithmetic import FUNCTIONS, MOST_ROWS, FormulaError, Number, value_of
from crosswind.findings.declared import FindingError
from crosswind.findings.published.declare import Published, declare_published
from crosswind.study.cells import Cell, where_of
from crosswind.study.declared import Declaration, Reading, of_its_network
from crosswind.study.parts import Part
from crosswind.study.tables import TomlTable, TomlValue, WhereTable
from crosswind.study.toml_text import Location
from crosswind.units import shown

FIELDS = ("mean", "sd", "ci", "n")
"""What a row of [[published]] has that a formula can be about."""

_MOST_NAMED = 6
"""Numbers that a sentence names."""
_ROUNDING = 1e-9
"""By which share a number may miss a bound, since decimal fractions are rounded."""


class CheckTable(TomlTable):
    """One statement that a document's own numbers decide, by arithmetic and without a run."""

    says: str = Field(description="the statement, as one sentence")
    source: str = Field(description="the document and the place of the statement and its numbers")
    given: dict[str, int | float | list[int | float] | WhereTable] = Field(
        description="the numbers by name: a number, a list, or the levels of published numbers, whose `source` and "
        "`field` (mean, sd, ci, n) may be named too"
    )
    value: str = Field(description="a formula over the names: + - * / ** and the functions of docs/study.md")
    what: str = Field(description="what it gives, in words that begin a sentence on it: the gap")
    of: list[str] = Field(default_factory=list, description="of what each number is; without it, by its levels")
    unit: str = Field(default="", description="unit of the value and of its bounds, as text")
    at_least: int | float | None = Field(default=None, description="the least that every number may be")
    at_most: int | float | None = Field(default=None, description="the most that every number may be")
    note: str = ""


@dataclass(frozen=True)
class Check:
    """One statement with the numbers that are given for it.

    Attributes: names: of what each number is that the formula gives.
    """

    given: Mapping[str, Number]
    names: Sequence[str]
    table: CheckTable = field(repr=False)

    @cached_property
    def numbers(self) -> tuple[tuple[str, float], ...]:
        """What the arithmetic comes to, each number with what it is of, which is empty for the only one."""
        value = value_of(self.table.value, self.given)
        return tuple(zip(self.names, value if isinstance(value, list) else [value], strict=True))

    @property
    def verdict(self) -> Literal["holds", "does not hold"]:
        """By the rule: every number lies in the range."""
        return "holds" if all(self._is_within(number) for _, number in self.numbers) else "does not hold"

    @property
    def source(self) -> str:
        """The document and the place."""
        return self.table.source

    @property
    def sentence(self) -> str:
        """The verdict, the statement, what the numbers come to, and what they had to be."""
        table = self.table
        return (
            f"{self.verdict.capitalize()}: “{table.says.rstrip('.')}”: {table.what} {self._in_words()}; the statement "
            f"needs {self._needed()}."
        )

    @property
    def summary(self) -> str:
        """What `crosswind show` says of it."""
        return f"{self.sentence} ({self.source})"

    def as_dict(self, cells: Sequence[Cell] = ()) -> dict[str, Any]:
        """As plain data."""
        del cells
        numbers = [{"of": of, "value": number} for of, number in self.numbers]
        plain = self.table.model_dump(exclude_none=True, exclude={"given", "of"})
        return {**plain, "numbers": numbers, "verdict": self.verdict, "sentence": self.sentence}

    def _is_within(self, number: float) -> bool:
        slack = _ROUNDING * abs(number)
        low, high = self.table.at_least, self.table.at_most
        return (low is None or number >= low - slack) and (high is None or number <= high + slack)

    def _in_words(self) -> str:
        if not self.numbers:
            return "has no number"
        if len(self.numbers) <= _MOST_NAMED:
            named = [f"{_text(number)}{f' ({of})' if of else ''}" for of, number in self.numbers]
            return f"is {_listed(named)}{self._unit}"
        values = [number for _, number in self.numbers]
        return f"is {_text(min(values))} to {_text(max(values))}{self._unit} in {len(values)} rows"

    def _needed(self) -> str:
        low, high = self.table.at_least, self.table.at_most
        if low is None:
            return f"at most {_text(high or 0.0)}{self._unit}"
        if high is None:
            return f"at least {_text(low)}{self._unit}"
        return f"{_text(low)}{f' to {_text(high)}' if high != low else ''}{self._unit}"

    @property
    def _unit(self) -> str:
        return f" {self.table.unit}" if self.table.unit else ""


def declare_checks(reading: Reading) -> tuple[Check, ...]:
    """The checks of a study. Raises: FindingError, CellError."""
    published = declare_published(reading)
    return tuple(_check(table, place, published, reading.parts) for place, table in reading.of(CheckTable, "check"))


def _check(table: CheckTable, place: Location, published: Sequence[Published], parts: Sequence[Part]) -> Check:
    if table.at_least is None and table.at_most is None:
        raise FindingError((*place, "at_least"), "a check needs at_least, at_most or both", None)
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
    return Check(given, of if isinstance(value, list) else [""], table)


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
    """The published numbers with these levels, each with the levels that it has. Raises: FindingError, CellError."""
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
    """Each row by the levels in which the rows differ."""
    varied = [key for key in (rows[0] if rows else ()) if len({row.get(key) for row in rows}) > 1]
    return [
        ", ".join(f"{key.rsplit('.', 1)[-1].replace('_', ' ')} {row[key]}" for key in varied if key in row)
        for row in rows
    ]


def _text(number: float) -> str:
    return f"{number:.4g}".replace("-", "−")


def _listed(texts: Sequence[str]) -> str:
    *others, last = texts
    return f"{', '.join(others)} and {last}" if others else last


DECLARATION = Declaration(
    "check",
    CheckTable,
    ("check of a document", "checks of documents"),
    declare_checks,
    is_about_cells=False,
    over_network=of_its_network,
)
