"""The cells of a study: one combination of levels each.

Every key written as a list is a factor; the cells of a part are the product of its factors, in the order in which
`keys.py` lists the keys. What several values come to together is in `resolve.py`.
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

    `levels` holds the factors only, dotted key to the text that was written (and `part`, when there are several);
    `settings` holds every key that the study sets, likewise; `index` counts from 0 over the whole study; `absent` says
    why it is not run here, if so.
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
        """The settings of its workload and the defaults of the others, by their names in a study."""
        prefix = "workload."
        defaults: dict[str, Any] = {key.study: key.default for key in catalog().workloads[self.kind].keys}
        settings = {key[len(prefix) :]: level.value for key, level in self.settings.items() if key.startswith(prefix)}
        return defaults | settings


@dataclass(frozen=True)
class Where:
    """Some of a study's cells: those in which every key named here has this value. `texts` is what was written."""

    texts: Mapping[str, str]
    _values: Mapping[str, Value]

    def matches(self, cell: Cell) -> bool:
        """Whether a cell is one of them, however its levels are written: `5000us` is `5ms`."""
        return all(
            cell.part == value if key == "part" else key in cell.settings and cell.settings[key].value == value
            for key, value in self._values.items()
        )

    def value_of(self, key: str) -> Value:
        """What it says of a key. Raises: KeyError."""
        return self._values[key]

    def includes(self, other: "Where") -> bool:
        """Whether another one names all that this one names, with the same values."""
        return all(key in other._values and other._values[key] == value for key, value in self._values.items())

    def among(self, cells: Iterable[Cell]) -> list[Cell]:
        """Those of them that are among some cells, in their order."""
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
    """The cells in which dotted keys (or `part`) have the given values; without any, all cells.

    Raises: DesignError for a key or part that does not exist, or a value that the key cannot have.
    """
    parts = tuple(parts)
    values = {key: meaning_of(key, value, (*place, key), parts) for key, value in raw.items()}
    return Where({key: text_of(value) for key, value in raw.items()}, values)


def meaning_of(key: str, raw: object, place: Location, parts: Sequence[Part]) -> Value:
    """What a value of a key means, as `Level.value` has it; it may be the name of a level. Raises: DesignError."""
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
        # Of a network or a peer that stands in the study as a table, its name.
        levels = (level for part in parts for level in part.settings.get(key, Values()).levels)
        named = next((level for level in levels if level.text == text_of(raw)), None)
        if named is None:
            raise DesignError(place, error.message, error.hint) from None
        return named.value


def limits_of(document: DesignDocument, parts: Sequence[Part]) -> tuple[RepetitionLimit, ...]:
    """The cells that are run less often than the others. Raises: DesignError."""
    return tuple(
        RepetitionLimit(where_of(table.where, ("repetitions", number, "where"), parts), table.at_most)
        for number, table in enumerate(document.repetitions)
    )


def cells_of(parts: tuple[Part, ...], excluded: Sequence[Where] = ()) -> Iterator[Cell]:
    """Every cell of every part, indexed from 0. Args: excluded: combinations that are no cells."""
    kept = (cell for cell in combinations_of(parts) if not any(where.matches(cell) for where in excluded))
    return (replace(cell, index=index) for index, cell in enumerate(kept)) if excluded else kept


def combinations_of(parts: tuple[Part, ...]) -> Iterator[Cell]:
    """Every combination of the levels of every part as a cell, indexed from 0."""
    index = 0
    for part in parts:
        for combination in itertools.product(*(values.levels for values in part.settings.values())):
            settings = dict(zip(part.settings, combination, strict=True))
            levels = {"part": part.name} if len(parts) > 1 else {}
            levels |= {key: level.text for key, level in settings.items() if part.settings[key].is_factor}
            yield Cell(index, part.name, levels, settings)
            index += 1
