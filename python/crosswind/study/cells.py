"""A study's cells: one combination of levels each.

Every key with a list is a factor. A part's cells are the product of its factors, in the order in `keys.py`.
`resolve.py` combines several keys' values.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from crosswind.catalog import catalog
from crosswind.errors import did_you_mean
from crosswind.study.errors import DesignError
from crosswind.study.format import DesignDocument
from crosswind.study.keys import SETTINGS
from crosswind.study.levels import Level, Value, Values, text_of
from crosswind.study.parts import Part
from crosswind.study.toml_text import Location
from crosswind.text.units import UnitError, shown


@dataclass(frozen=True)
class Cell:
    """One combination of levels.

    `levels` holds only factors, dotted key to text as written (and `part` if there are several). `settings` holds every
    set key. `index` counts from 0 over the whole study. `absent`: why it does not run here, if so.
    """

    index: int
    part: str
    levels: Mapping[str, str]
    settings: Mapping[str, Level] = field(repr=False)
    absent: str = ""

    @property
    def kind(self) -> str:
        """The kind of its workload."""
        return str(self.settings["workload.kind"].value)

    @property
    def workload(self) -> dict[str, Any]:
        """Its workload's settings with defaults, by a study's names."""
        prefix = "workload."
        defaults: dict[str, Any] = {key.study: key.default for key in catalog().workloads[self.kind].keys}
        settings = {key[len(prefix) :]: level.value for key, level in self.settings.items() if key.startswith(prefix)}
        return defaults | settings


@dataclass(frozen=True)
class Where:
    """A choice of cells by values for some keys. `texts`: as written."""

    texts: Mapping[str, str]
    _values: Mapping[str, Value]

    def matches(self, cell: Cell) -> bool:
        """Whether a cell is one of them, however its levels are written: `5000us` is `5ms`."""
        return all(
            cell.part == value if key == "part" else key in cell.settings and cell.settings[key].value == value
            for key, value in self._values.items()
        )

    def value_of(self, key: str) -> Value:
        """Its value for a key. Raises: KeyError."""
        return self._values[key]

    def includes(self, other: "Where") -> bool:
        """Whether another one has all its keys, with the same values."""
        return all(key in other._values and other._values[key] == value for key, value in self._values.items())

    def among(self, cells: Iterable[Cell]) -> list[Cell]:
        """Its cells among some, in their order."""
        return [cell for cell in cells if self.matches(cell)]

    def required(self, cells: Iterable[Cell], place: Location) -> list[Cell]:
        """The same. Raises: DesignError where there are none."""
        matching = self.among(cells)
        if not matching:
            named = ", ".join(f"{key} = {text}" for key, text in self.texts.items())
            raise DesignError(place, f"no cell has {named}", "write levels of this study")
        return matching


@dataclass(frozen=True)
class RepetitionLimit:
    """Some of a study's cells, and how often they are run at most."""

    where: Where
    at_most: int


def where_of(raw: Mapping[str, object], place: Location, parts: Iterable[Part]) -> Where:
    """The cells with given values for dotted keys (or `part`); without any, all cells.

    Raises: DesignError for an unknown key or part, or an impossible value.
    """
    parts = tuple(parts)
    values = {key: meaning_of(key, value, (*place, key), parts) for key, value in raw.items()}
    return Where({key: text_of(value) for key, value in raw.items()}, values)


def meaning_of(key: str, raw: object, place: Location, parts: Sequence[Part]) -> Value:
    """A value's meaning, as in `Level.value`; it may be a level's name. Raises: DesignError."""
    if key == "part":
        names = [part.name for part in parts if part.name]
        if raw not in names:
            hint = did_you_mean(str(raw), names) if names else "this study has no parts"
            raise DesignError(place, f"there is no part {shown(raw)}", hint)
        return str(raw)
    if key not in SETTINGS:
        raise DesignError(place, f"there is no key {shown(key)}", did_you_mean(key, SETTINGS))
    try:
        return SETTINGS[key].type.level(raw).value
    except UnitError as error:
        # A table's name, for a network or peer written as one.
        levels = (level for part in parts for level in part.settings.get(key, Values()).levels)
        named = next((level for level in levels if level.text == text_of(raw)), None)
        if named is None:
            raise DesignError(place, error.message, error.hint) from None
        return named.value


def limits_of(document: DesignDocument, parts: Sequence[Part]) -> tuple[RepetitionLimit, ...]:
    """Cells with fewer repetitions than the others. Raises: DesignError."""
    return tuple(
        RepetitionLimit(where_of(table.where, ("repetitions", number, "where"), parts), table.at_most)
        for number, table in enumerate(document.repetitions)
    )


def repetitions_of(cell: Cell, repetitions: int, limits: Sequence[RepetitionLimit]) -> int:
    """How often a cell is run: so often, or as the least of its limits says."""
    return min([repetitions, *(limit.at_most for limit in limits if limit.where.matches(cell))])


def cells_of(parts: tuple[Part, ...], excluded: Sequence[Where] = ()) -> Iterator[Cell]:
    """Every cell, indexed from 0. Args: excluded: combinations without a cell."""
    kept = (cell for cell in combinations_of(parts) if not any(where.matches(cell) for where in excluded))
    return (replace(cell, index=index) for index, cell in enumerate(kept)) if excluded else kept


def combinations_of(parts: tuple[Part, ...]) -> Iterator[Cell]:
    """Every combination of levels in every part as a cell, indexed from 0."""
    index = 0
    for part in parts:
        for combination in itertools.product(*(values.levels for values in part.settings.values())):
            settings = dict(zip(part.settings, combination, strict=True))
            levels = {"part": part.name} if len(parts) > 1 else {}
            levels |= {key: level.text for key, level in settings.items() if part.settings[key].is_factor}
            yield Cell(index, part.name, levels, settings)
            index += 1
