"""The values of one key of a study: one value, or a list, which makes the key a factor.

A `Kind` knows how one value of a key is read and what it looks like in the JSON Schema. In a pydantic model it stands
in `Annotated[Values, Kind(...)]`. A level keeps the text its author wrote beside what it means: reports show the text.
"""

import difflib
import re
import shlex
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from crosswind import units
from crosswind.units import UnitError, shown

_MAX_LEVELS = 10_000


@dataclass(frozen=True)
class Level:
    """One value of a key: `text` as it was written, `value` as it is meant (int, Decimal, Queue, str, bool, tuple)."""

    text: str
    value: Any


@dataclass(frozen=True)
class Values:
    """What a key is set to. No levels: the key is absent. `is_factor`: it was written as a list."""

    levels: tuple[Level, ...] = ()
    is_factor: bool = False

    def __bool__(self) -> bool:
        return bool(self.levels)


@dataclass(frozen=True)
class Kind:
    """How one value of a key is read.

    Args: parse: raw TOML value to its meaning, raises UnitError. schema: JSON Schema of one value.
          is_list: one value is itself a list (of arguments), so that a factor is a list of lists.
          can_vary: False where a list is refused.
    """

    parse: Callable[[object], Any]
    schema: dict[str, Any] = field(hash=False)
    is_list: bool = False
    can_vary: bool = True

    def level(self, raw: object) -> Level:
        """One value, read. Raises: UnitError."""
        return Level(text_of(raw), self.parse(raw))

    def values(self, raw: object) -> Values:
        """One value or a list of them, read; a list must have different levels. Raises: UnitError."""
        is_factor = isinstance(raw, list) and not (self.is_list and not any(isinstance(item, list) for item in raw))
        if not is_factor:
            return Values((self.level(raw),))
        assert isinstance(raw, list)
        if not self.can_vary:
            raise UnitError(f"{shown(raw)} is a list", hint="this key takes one value; use one [[part]] for each")
        if not raw:
            raise UnitError("the list is empty", hint="a list is a factor and needs at least one level")
        if len(raw) > _MAX_LEVELS:
            raise UnitError(f"the list has {len(raw)} levels", hint=f"at most {_MAX_LEVELS}")
        levels = tuple(self.level(item) for item in raw)
        seen: dict[Any, Level] = {}
        for level in levels:
            if level.value in seen:
                first = seen[level.value].text
                same = "twice" if first == level.text else f'and "{first}", which is the same'
                raise UnitError(f'the list has "{level.text}" {same}', hint="the levels of a factor must differ")
            seen[level.value] = level
        return Values(levels, is_factor=True)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(self.values)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        if not self.can_vary:
            return dict(self.schema)
        return {"anyOf": [self.schema, {"type": "array", "items": self.schema, "minItems": 1, "uniqueItems": True}]}


def text_of(raw: object) -> str:
    """A raw TOML value as its author would write it on a command line."""
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, list):
        return shlex.join(str(item) for item in raw)
    return str(raw).strip()


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint with the closest known word, else all of them."""
    names = list(known)
    close = difflib.get_close_matches(word.lower()[:60], names, n=1, cutoff=0.6)
    return f'did you mean "{close[0]}"?' if close else "known: " + ", ".join(names)


def choice(*names: str, can_vary: bool = True) -> Kind:
    """One of some words."""

    def parse(raw: object) -> str:
        if isinstance(raw, str) and raw in names:
            return raw
        if isinstance(raw, str):
            raise UnitError(f"{shown(raw)} is not one of {', '.join(names)}", hint=did_you_mean(raw, names))
        raise UnitError(f"{shown(raw)} is not a word", hint="one of " + ", ".join(names))

    return Kind(parse, {"enum": list(names)}, can_vary=can_vary)


def integer(low: int, high: int, what: str) -> Kind:
    """A whole number in [low, high]; the same as a string of digits, which is what a command line gives."""
    hint = f"{what} is a whole number from {low} to {high}"

    def parse(raw: object) -> int:
        number = raw
        if isinstance(raw, str) and re.fullmatch(r"-?[0-9]{1,18}", raw):
            number = int(raw)
        if not isinstance(number, int) or isinstance(number, bool):
            raise UnitError(f"{shown(raw)} is not a whole number", hint=hint)
        if not low <= number <= high:
            raise UnitError(f"{shown(raw)} is {'less' if number < low else 'more'} than it can be", hint=hint)
        return number

    whole = {"type": "integer", "minimum": low, "maximum": high}
    return Kind(parse, {"anyOf": [whole, {"type": "string", "pattern": "^-?[0-9]+$"}]})


def boolean() -> Kind:
    """True or false."""

    def parse(raw: object) -> bool:
        if isinstance(raw, bool):
            return raw
        if raw in ("true", "false"):
            return raw == "true"
        raise UnitError(f"{shown(raw)} is neither true nor false", hint="write true or false")

    return Kind(parse, {"anyOf": [{"type": "boolean"}, {"enum": ["true", "false"]}]})


def word(what: str) -> Kind:
    """A name made of letters, digits, - and _."""
    pattern = "^[A-Za-z0-9][A-Za-z0-9_-]{0,62}$"

    def parse(raw: object) -> str:
        if isinstance(raw, str) and re.fullmatch(pattern, raw) and raw.isascii():
            return raw
        raise UnitError(f"{shown(raw)} is not {what}", hint=f"{what} is letters, digits, - and _")

    return Kind(parse, {"type": "string", "pattern": pattern})


def arguments() -> Kind:
    """An argument list, a program and what it is given; a list of such lists is a factor."""

    def parse(raw: object) -> tuple[str, ...]:
        hint = 'write a list of strings, as ["ping", "-c", "3", "{server}"]'
        if not isinstance(raw, list) or not raw:
            raise UnitError(f"{shown(raw)} is not an argument list", hint=hint)
        for item in raw:
            if not isinstance(item, str) or "\0" in item:
                raise UnitError(f"{shown(item)} is not an argument", hint=hint)
        return tuple(raw)

    one = {"type": "array", "items": {"type": "string"}, "minItems": 1}
    return Kind(parse, one, is_list=True)


def duration(*, low_ns: int = 0, high_ns: int = 24 * 3600 * 10**9) -> Kind:
    """A duration in [low_ns, high_ns], in nanoseconds."""

    def parse(raw: object) -> int:
        return _within(units.parse_duration(raw), low_ns, high_ns, raw, units.format_duration)

    return Kind(parse, {"anyOf": [_text(r"[0-9.]+ ?(ns|us|µs|μs|ms|s|m|min|h)?"), {"const": 0}]})


def size(*, low: int = 1, high: int = 10**12) -> Kind:
    """A size in [low, high] bytes."""

    def parse(raw: object) -> int:
        return _within(units.parse_size(raw), low, high, raw, units.format_size)

    number = {"type": "integer", "minimum": low, "maximum": high}
    return Kind(parse, {"anyOf": [number, _text(r"[0-9.]+ ?(B|kB|MB|GB|TB|KiB|MiB|GiB)?")]})


def rate() -> Kind:
    """A link rate of at most 1 Tbit/s, in bit/s; None for unlimited."""

    def parse(raw: object) -> int | None:
        rate_bps = units.parse_rate(raw)
        return None if rate_bps is None else _within(rate_bps, 1, 10**12, raw, units.format_rate)

    return Kind(parse, _text(r"[0-9.]+ ?[KkMmGgTt]?i?[Bb][Ii][Tt](/s)?|[Uu][Nn][Ll][Ii][Mm][Ii][Tt][Ee][Dd]"))


def probability() -> Kind:
    """A probability, as Decimal in [0, 1]."""
    return Kind(
        units.parse_probability, {"anyOf": [_text(r"[0-9.]+ ?%?"), {"type": "number", "minimum": 0, "maximum": 1}]}
    )


def queue() -> Kind:
    """A queue, in packets or in bytes, of at most 10^9 of either."""

    def parse(raw: object) -> units.Queue:
        parsed = units.parse_queue(raw)
        _within(parsed.packets or parsed.size_bytes or 0, 1, 10**9, raw, str)
        return parsed

    return Kind(parse, _text(r"[0-9.]+ ?(p|packets|B|kB|MB|GB|KiB|MiB|GiB)"))


def messages_per_second() -> Kind:
    """A message rate for an open loop, in messages/s."""
    whole = integer(1, 10**7, "messages a second")

    def parse(raw: object) -> int:
        return int(whole.parse(raw.strip().removesuffix("/s") if isinstance(raw, str) else raw))

    return Kind(parse, {"anyOf": [{"type": "integer", "minimum": 1}, _text("[0-9]+ ?(/s)?")]})


def _text(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": rf"^\s*({pattern})\s*$"}


def _within(number: int, low: int, high: int, raw: object, show: Callable[[int], str]) -> int:
    if number < low:
        raise UnitError(f"{shown(raw)} is too little", hint=f"at least {show(low)}")
    if number > high:
        raise UnitError(f"{shown(raw)} is too much", hint=f"at most {show(high)}")
    return number
