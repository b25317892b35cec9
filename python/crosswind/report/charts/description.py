"""A chart in words: its axes, its series and its main numbers, for readers unable to see it.

It is made from the specification, and so from the drawn rows.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crosswind.report.charts.style import Specification
from crosswind.report.text.format import count, number

MOST_NUMBERS = 12
"""Maximum marks with numbers named one by one; with more, only each series' smallest and largest."""
_MOST_SERIES = 8
_LOG_SCALE = "log scale"
_IN_WORDS = ("estimate", "effect", "text")
"""Fields with a row's number in words."""
_SHARES = "share of "
"""The beginning of an axis title for a distribution function."""
_PARTS = ((50, "half at most"), (90, "90 % at most"), (100, "all at most"))

_Row = Mapping[str, Any]


@dataclass(frozen=True)
class _Axis:
    """One side's axis: the rows' field, its name and its unit; nominal fields have no unit."""

    field: str
    name: str
    unit: str
    is_log: bool
    is_number: bool

    @classmethod
    def of(cls, views: Sequence[Mapping[str, Any]], channel: str) -> "_Axis | None":
        """The first titled axis among the views, or else the first."""
        encodings = [
            view["encoding"][channel] for view in views if "field" in view.get("encoding", {}).get(channel, {})
        ]
        if not encodings:
            return None
        shown = next((encoding for encoding in encodings if encoding.get("title")), encodings[0])
        name, *units = (shown.get("title") or "").split(", ")
        unit = next((part for part in units if part != _LOG_SCALE), "")
        return cls(shown["field"], name, unit, _LOG_SCALE in units, shown.get("type") == "quantitative")

    @property
    def title(self) -> str:
        """Its name with its unit."""
        parts = (self.name, f"in {self.unit}" if self.unit else "", f"on a {_LOG_SCALE}" if self.is_log else "")
        return " ".join(filter(None, parts))

    def text(self, row: _Row) -> str:
        """Where a row stands along it."""
        place = row[self.field]
        if not self.is_number:
            return _in_a_line(place)
        return " ".join(filter(None, (self.name, f"{place:.4g}", self.unit)))


def description(specification: Specification, caption: str) -> str:
    """A chart in a few sentences. Args: caption: as above the chart."""
    begun = caption if caption.endswith(("?", "!", ".")) else f"{caption}."
    views = [specification, *specification.get("layer", ())]
    x, y = _Axis.of(views, "x"), _Axis.of(views, "y")
    if x is None or y is None:
        return begun
    colour = _Axis.of(views, "color")
    if colour is not None and colour.is_number and not (x.is_number or y.is_number):
        return " ".join([begun, *_map_sentences(_rows(specification), colour, x, y)])
    is_distribution = y.name.startswith(_SHARES) and x.is_number
    if is_distribution:
        value, place = x, y
    else:
        value, place = (y, x) if y.is_number else (x, y)
    # For bars with any beginning, their ends count.
    end = specification.get("encoding", {}).get("x2", {}).get("field")
    value = replace(value, field=end) if value is x and end else value
    series = [field for field in _series_fields(views) if field != place.field]
    names = [_in_a_line(name) for name in _domain(views, series[0])] if series else []
    shown = f"{value.title}, by {place.name}" if place.name else value.title
    by = f", for {', '.join(names)}" if 1 < len(names) <= _MOST_SERIES else ""
    rows = [row for row in _rows(specification) if value.field in row and place.field in row]
    numbers = _distributions if is_distribution else _numbers
    said = (f"{text}." for text in numbers(rows, value, place, series))
    return " ".join([begun, f"{shown[:1].upper()}{shown[1:]}{by}.", *said])


def _map_sentences(rows: Sequence[_Row], value: _Axis, x: _Axis, y: _Axis) -> Iterator[str]:
    """A map's smallest and largest number."""
    known = [row for row in rows if row.get(value.field) is not None]
    names = " and ".join(axis.name for axis in (x, y) if axis.name)
    yield f"{value.title}{f', by {names}' if names else ''}."
    if known:
        low, high = (pick(known, key=lambda row: row[value.field]) for pick in (min, max))
        ends = (f"{_value(row, value)} ({_on_map(row, x, y)})" for row in (low, high))
        yield f"Smallest of {count(len(known))}: {next(ends)}; largest: {next(ends)}."


def _on_map(row: _Row, x: _Axis, y: _Axis) -> str:
    places = (f"{axis.name} {row[axis.field]}" for axis in (x, y) if axis.name)
    return str(row["level"]) if "level" in row else ", ".join(places)


def _rows(specification: Specification) -> list[_Row]:
    """The drawn rows; for cells with estimates, without single samples."""
    rows = [row for data in specification.get("datasets", {}).values() for row in data]
    named = [row for row in rows if any(isinstance(value, str) for value in row.values())]
    return [row for row in named if row.get("kind") != "sample"] or named


def _numbers(rows: Sequence[_Row], value: _Axis, place: _Axis, series: Sequence[str]) -> Iterator[str]:
    """Every number where they are few, else the smallest and the largest of each series."""
    fields = [field for field in (*series, "kind", "statistic") if len({row.get(field) for row in rows}) > 1]

    def said(row: _Row) -> str:
        at = _place(row, place)
        where = [_in_a_line(row[field]) for field in fields if row.get(field) not in (None, "estimate")]
        return f"{', '.join([*(part for part in where if part not in at.split(' · ')), at])}: {_value(row, value)}"

    if len(rows) <= MOST_NUMBERS:
        yield from map(said, rows)
        return
    groups = _groups(rows, series)
    for group in groups if len(groups) <= _MOST_SERIES else [rows]:
        low, high = (pick(group, key=lambda row: row[value.field]) for pick in (min, max))
        yield f"Smallest of {count(len(group))}: {said(low)}; largest: {said(high)}"


def _distributions(rows: Sequence[_Row], value: _Axis, share: _Axis, series: Sequence[str]) -> Iterator[str]:
    """The upper limit of half, 90 % and all of each series."""
    for group in _groups(rows, series)[:_MOST_SERIES]:
        ordered = sorted(group, key=lambda row: row[share.field])
        ends = [
            f"{words} {number(row[value.field])} {value.unit}".rstrip()
            for percent, words in _PARTS
            if (row := next((row for row in ordered if row[share.field] >= percent), None)) is not None
        ]
        name = " · ".join(_in_a_line(group[0][field]) for field in series if group[0].get(field) not in (None, "all"))
        yield f"{name}: {', '.join(ends)}" if name else ", ".join(ends).capitalize()


def _groups(rows: Iterable[_Row], series: Sequence[str]) -> list[list[_Row]]:
    groups: dict[tuple[object, ...], list[_Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(field) for field in series), []).append(row)
    return list(groups.values())


def _series_fields(views: Iterable[Mapping[str, Any]]) -> list[str]:
    """Fields shown by colours, dashes and shapes."""
    encodings = [view.get("encoding", {}) for view in views]
    channels = [
        encoding[name] for encoding in encodings for name in ("color", "strokeDash", "shape") if name in encoding
    ]
    return list(dict.fromkeys(channel["field"] for channel in channels if "field" in channel))


def _domain(views: Iterable[Mapping[str, Any]], field: str) -> list[str]:
    channels = [channel for view in views for channel in view.get("encoding", {}).values() if isinstance(channel, dict)]
    return next(
        (channel["scale"]["domain"] for channel in channels if channel.get("field") == field and "scale" in channel), []
    )


def _place(row: _Row, place: _Axis) -> str:
    return str(row.get("at") if isinstance(row.get("at"), str) else row.get("from_to") or place.text(row))


def _value(row: _Row, value: _Axis) -> str:
    words = next((row[field] for field in _IN_WORDS if row.get(field)), None)
    text = str(words) if words else number(row[value.field])
    return text if not value.unit or value.unit in text else f"{text} {value.unit}"


def _in_a_line(text: object) -> str:
    return str(text).replace("\n", " · ")
