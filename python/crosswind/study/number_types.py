"""Types for numbers: reading and writing. crosswind-cell checks ranges."""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

from crosswind.catalog import CellUnit, Key, KeyType
from crosswind.study.value_type import ValueType, pattern_schema
from crosswind.text import units
from crosswind.text.units import NUMBER, UnitError, shown

DURATION = ValueType(
    units.parse_duration,
    {"anyOf": [pattern_schema(rf"{NUMBER} ?(ns|us|µs|μs|ms|s|m|min|h)?"), {"const": 0}]},
    '"10ms"',
)
RATE = ValueType(
    partial(units.parse_rate, may_be_zero=True),
    pattern_schema(rf"{NUMBER} ?[KkMmGgTt]?i?[Bb][Ii][Tt](/s)?|[Uu][Nn][Ll][Ii][Mm][Ii][Tt][Ee][Dd]"),
    '"100mbit"',
)
PROBABILITY = ValueType(
    units.parse_probability,
    {"anyOf": [pattern_schema(rf"{NUMBER} ?%?"), {"type": "number", "minimum": 0, "maximum": 1}]},
    '"1%"',
)


def size(key: Key) -> ValueType:
    """A number of bytes."""
    schema = {"anyOf": [_bounded(key), pattern_schema(rf"{NUMBER} ?(B|kB|MB|GB|TB|KiB|MiB|GiB)?")]}
    return ValueType(units.parse_size, schema, '"64kB"')


def number_of(key: Key) -> ValueType:
    """A count, or a rate per second; strings of digits too, from a command line."""
    suffix = "/s" if key.unit is CellUnit.PER_SECOND else ""
    is_whole = key.type is KeyType.INTEGER
    what = "a whole number" if is_whole else "a number"
    hint = f"{what} {range_of(key, key.minimum, key.maximum)}".strip()

    def parse(raw: object) -> int | float:
        number = raw
        if isinstance(raw, str):
            text = raw.strip().removesuffix(suffix).strip()
            if re.fullmatch(r"-?[0-9]{1,18}", text):
                number = int(text)
            elif not is_whole and re.fullmatch(f"-?{NUMBER}", text):
                number = float(text)
        if isinstance(number, float) and not is_whole and number.is_integer():
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int if is_whole else int | float):
            raise UnitError(f"{shown(raw)} is not {what}", hint=hint)
        if not math.isfinite(number):
            raise UnitError(f"{shown(raw)} is not {what}", hint=hint)
        return number

    digits = "-?[0-9]+" if is_whole else f"-?{NUMBER}"
    text = pattern_schema(f"{digits} ?({suffix})?") if suffix else {"type": "string", "pattern": f"^{digits}$"}
    return ValueType(parse, {"anyOf": [_bounded(key), text]}, str(max(1, round(key.minimum or 1))))


def _bounded(key: Key) -> dict[str, Any]:
    bounds = {"minimum": key.minimum, "maximum": key.maximum}
    return {"type": str(key.type), **{name: bound for name, bound in bounds.items() if bound is not None}}


_WRITTEN: dict[CellUnit | None, Callable[[float], str]] = {
    CellUnit.NANOSECONDS: lambda number: units.format_duration(int(number)) if number else "0",
    CellUnit.BYTES: lambda number: _size_text(int(number)),
    CellUnit.BITS_PER_SECOND: lambda number: units.format_rate(int(number)),
    CellUnit.PROBABILITY: lambda number: units.format_probability(Decimal(repr(number))),
}


def _size_text(size_bytes: int) -> str:
    text = units.format_size(size_bytes)
    return f"{size_bytes}B" if "." in text else text


def number_text(key: Key, number: float) -> str:
    """A number of a key in a cell as a study has it."""
    plain = str(int(number)) if float(number).is_integer() else str(number)
    return _WRITTEN[key.unit](number) if key.unit in _WRITTEN else plain


def range_of(key: Key, minimum: float | None, maximum: float | None) -> str:
    """A number's range: `from 1B to 64kB`, `at least 1`; empty without limits."""
    low, high = (None if bound is None else number_text(key, bound) for bound in (minimum, maximum))
    if low is not None and high is not None:
        return f"from {low} to {high}"
    return f"at least {low}" if low is not None else "" if high is None else f"at most {high}"
