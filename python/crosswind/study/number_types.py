"""The kinds of keys that are numbers: read by `units.py`, and held to the range of their key."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

from crosswind.catalog import CellUnit, Key, KeyType
from crosswind.study.value_type import ValueType, pattern_schema
from crosswind.text import units
from crosswind.text.units import NUMBER, UnitError, shown


def duration(key: Key) -> ValueType:
    """A duration in the range of its key."""
    schema = {"anyOf": [pattern_schema(rf"{NUMBER} ?(ns|us|µs|μs|ms|s|m|min|h)?"), {"const": 0}]}
    return _quantity(key, units.parse_duration, units.format_duration, schema, '"10ms"')


def size(key: Key) -> ValueType:
    """A number of bytes in the range of its key."""
    schema = {"anyOf": [_bounded(key), pattern_schema(rf"{NUMBER} ?(B|kB|MB|GB|TB|KiB|MiB|GiB)?")]}
    return _quantity(key, units.parse_size, _size_text, schema, '"64kB"')


def _size_text(size_bytes: int) -> str:
    text = units.format_size(size_bytes)
    return f"{size_bytes}B" if "." in text else text


def rate(key: Key) -> ValueType:
    """A number of bits a second in the range of its key, or no limit."""
    schema = pattern_schema(rf"{NUMBER} ?[KkMmGgTt]?i?[Bb][Ii][Tt](/s)?|[Uu][Nn][Ll][Ii][Mm][Ii][Tt][Ee][Dd]")
    parse = partial(units.parse_rate, may_be_zero=key.minimum == 0)
    return _quantity(key, parse, units.format_rate, schema, '"100mbit"')


def probability(_key: Key) -> ValueType:
    """A share, from 0 to 1."""
    schema = {"anyOf": [pattern_schema(rf"{NUMBER} ?%?"), {"type": "number", "minimum": 0, "maximum": 1}]}
    return ValueType(units.parse_probability, schema, '"1%"')


def _quantity(
    key: Key,
    parse: Callable[[object], int | None],
    show: Callable[[int], str],
    schema: dict[str, Any],
    example: str,
) -> ValueType:
    """A number with a unit; None stands for no limit, and is always in range."""

    def read(raw: object) -> int | None:
        number = parse(raw)
        if number is not None:
            _refuse_outside(number, key, raw, show)
        return number

    return ValueType(read, schema, example)


def number_of(key: Key) -> ValueType:
    """A count, or a number a second: the same as a string of digits, which is what a command line gives."""
    suffix = "/s" if key.unit is CellUnit.PER_SECOND else ""
    is_whole = key.type is KeyType.INTEGER
    what = "a whole number" if is_whole else "a number"
    hint = f"{what}{_range_text(key)}"

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
        if not _in_range(number, key):
            less = key.minimum is not None and number < key.minimum
            raise UnitError(f"{shown(raw)} is too {'small' if less else 'large'}", hint=hint)
        return number

    digits = "-?[0-9]+" if is_whole else f"-?{NUMBER}"
    text = pattern_schema(f"{digits} ?({suffix})?") if suffix else {"type": "string", "pattern": f"^{digits}$"}
    return ValueType(parse, {"anyOf": [_bounded(key), text]}, str(max(1, round(key.minimum or 1))))


def _bounded(key: Key) -> dict[str, Any]:
    bounds = {"minimum": key.minimum, "maximum": key.maximum}
    return {"type": str(key.type), **{name: bound for name, bound in bounds.items() if bound is not None}}


def _in_range(number: float, key: Key) -> bool:
    return (key.minimum is None or number >= key.minimum) and (key.maximum is None or number <= key.maximum)


def _refuse_outside(number: int, key: Key, raw: object, show: Callable[[int], str]) -> None:
    if key.minimum is not None and number < key.minimum:
        raise UnitError(f"{shown(raw)} is too small", hint=f"at least {show(int(key.minimum))}")
    if key.maximum is not None and number > key.maximum:
        raise UnitError(f"{shown(raw)} is too large", hint=f"at most {show(int(key.maximum))}")


def _range_text(key: Key) -> str:
    if key.minimum is not None and key.maximum is not None:
        return f" from {key.minimum} to {key.maximum}"
    if key.minimum is not None:
        return f" of at least {key.minimum}"
    return "" if key.maximum is None else f" of at most {key.maximum}"
