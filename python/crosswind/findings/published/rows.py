"""The numbers in a `[[published]]` table, as the document prints them: one, or many in columns and rows."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.errors import did_you_mean
from crosswind.findings.declared import FindingError
from crosswind.study.keys import SETTINGS
from crosswind.study.levels import text_of
from crosswind.study.tables import TomlValue
from crosswind.study.toml_text import Location
from crosswind.text.units import shown

_NUMBER = (int, float)
_COLUMN_TYPES: Mapping[str, tuple[tuple[type, ...], str]] = {
    "mean": (_NUMBER, "a number"),
    "sd": (_NUMBER, "a number"),
    "ci": (_NUMBER, "a number"),
    "n": ((int,), "a whole number"),
    "inferred": ((bool,), "true or false"),
    "note": ((str,), "text"),
}
"""A row number's possible columns, beside levels."""
_SINGLE_COLUMNS = ("sd", "ci")
"""Columns for one number only."""
_NOTHING = ""
"""Stands in a row where the document has no value."""


@dataclass(frozen=True)
class Printed:
    """A number as printed: its levels, their places, and its attributes."""

    levels: Mapping[str, TomlValue]
    places: Mapping[str, Location]
    said: Mapping[str, Any]


@dataclass(frozen=True)
class _Column:
    """A column. Attributes: level: for the key in its head, if it has means at this level."""

    name: str
    place: Location
    level: TomlValue | None = None

    @property
    def has_means(self) -> bool:
        """Whether it holds the document's numbers."""
        return self.name == "mean" or self.level is not None


def printed_in(table: Mapping[str, Any], place: Location) -> Iterator[Printed]:
    """Every number in a table as written. Raises: FindingError."""
    levels: Mapping[str, TomlValue] = table.get("levels", {})
    places: dict[str, Location] = {key: (*place, "levels", key) for key in levels}
    rows, columns = table.get("rows", ()), list(_columns(table, place))
    if not rows and not columns:
        if "mean" not in table:
            raise FindingError((*place, "mean"), "is missing", "write mean = ..., or columns = [...] and rows = [...]")
        yield Printed(levels, places, {})
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
            elif column.name in _COLUMN_TYPES:
                said |= {column.name: _checked(column.name, value, cell)} if value != _NOTHING else {}
            else:
                of_row[column.name], of_places[column.name] = value, cell
        for column, mean in means:
            column_levels = {} if column.level is None else {column.name: column.level}
            own_places = dict.fromkeys(column_levels, column.place)
            yield Printed({**of_row, **column_levels}, {**of_places, **own_places}, {**said, **mean})


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
    for key in ("mean", *_SINGLE_COLUMNS, "functions"):
        if key in table:
            message = f"{key} is of one number, and this table has rows"
            raise FindingError((*place, key), message, "name a column, or write { mean = ..., ... } in a row")
    seen: set[tuple[str, str | None]] = set()
    for column in columns:
        name = column.name
        of_level = column.level is not None
        if name not in SETTINGS and name != "part" and (of_level or name not in _COLUMN_TYPES):
            known = [*([] if of_level else _COLUMN_TYPES), "part", *SETTINGS]
            hint = did_you_mean(name, known)
            raise FindingError(column.place, f"{shown(name)} is not a column", hint)
        if name in table.get("levels", {}):
            raise FindingError(column.place, f"{name} is among the levels of the whole table", "leave it out there")
        level = None if column.level is None else text_of(column.level)
        if (name, level) in seen or (name, None) in seen or (level is None and name in [key for key, _ in seen]):
            message = f"{name}{'' if level is None else f' = {level}'} is a column already"
            raise FindingError(column.place, message, "name each column once")
        seen.add((name, level))
    heads = {column.name: column for column in columns if column.has_means}
    if not heads:
        hint = 'write "mean", or { "workload.size" = [1, 100] } for a column of means each'
        raise FindingError((*place, "columns"), "no column has means", hint)
    if len(heads) > 1:
        _, second, *_ = heads.values()
        message = f"{' and '.join(map(shown, heads))} both have means"
        raise FindingError(second.place, message, "name one of them, and the other among the levels")
    for column in columns:
        if column.name in _SINGLE_COLUMNS and "mean" not in heads:
            hint = f"write {{ mean = ..., {column.name} = ... }} in place of a number"
            raise FindingError(column.place, f"{column.name} is of one number, and a row has several", hint)


def _mean(value: object, place: Location) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {"mean": _checked("mean", value, place)}


def _checked(name: str, value: object, place: Location) -> object:
    """A column's value. Raises: FindingError."""
    types, what = _COLUMN_TYPES[name]
    if not isinstance(value, types) or isinstance(value, bool) != (types == (bool,)):
        message = f"{shown(value)} is not {what}"
        raise FindingError(place, message, f'{name} is {what}, or "{_NOTHING}" where the document has none')
    return float(value) if isinstance(value, _NUMBER) and types == _NUMBER else value
