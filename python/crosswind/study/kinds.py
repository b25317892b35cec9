"""How the value of a key is read and what it looks like in the JSON Schema; both follow from the catalogue.

A `Kind` stands in `Annotated[Values, Kind(...)]` of a pydantic model. Durations, sizes, rates and so on are read by
`units.py`; here they are held to the range of their key.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from crosswind import units
from crosswind.catalog import Key, KeyType, Unit, catalog
from crosswind.study.levels import Level, Value, Values, did_you_mean, text_of
from crosswind.study.peers import PEER_EXAMPLE, peer_schema, read_peer
from crosswind.units import UnitError, shown

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

MAX_LEVELS = 10_000


@dataclass(frozen=True)
class Kind:
    """How one value of a key is read.

    Args: parse: raw TOML value to its meaning, raises UnitError. schema: JSON Schema of one value.
          example: a value as it is written in a file. is_list: one value is itself a list (of arguments), so that a
          factor is a list of lists. can_vary: False where a list is refused. is_peer: a value may name a peer.
          read: raw TOML to all values, where that takes more than `parse` of each.
    """

    parse: Callable[[object], Value]
    schema: dict[str, Any] = field(hash=False)
    example: str
    is_list: bool = False
    can_vary: bool = True
    is_peer: bool = False
    read: Callable[[object], Values] | None = None

    def level(self, raw: object) -> Level:
        """One value, read. Raises: UnitError."""
        return Level(text_of(raw), self.parse(raw), raw)

    def values(self, raw: object) -> Values:
        """One value or a list of them, read; a list must have different levels. Raises: UnitError."""
        if self.read is not None:
            return self.read(raw)
        is_factor = isinstance(raw, list) and not (self.is_list and not any(isinstance(item, list) for item in raw))
        if not is_factor:
            return Values((self.level(raw),), raw=raw)
        assert isinstance(raw, list)
        if not self.can_vary:
            raise UnitError(f"{shown(raw)} is a list", hint="this key takes one value; use one [[part]] for each")
        if not raw:
            raise UnitError("the list is empty", hint="a list is a factor and needs at least one level")
        if len(raw) > MAX_LEVELS:
            raise UnitError(f"the list has {len(raw)} levels", hint=f"at most {MAX_LEVELS}")
        levels = tuple(self.level(item) for item in raw)
        seen: dict[Value, Level] = {}
        for level in levels:
            if level.value in seen:
                first = seen[level.value].text
                same = "twice" if first == level.text else f'and "{first}", which is the same'
                raise UnitError(f'the list has "{level.text}" {same}', hint="the levels of a factor must differ")
            seen[level.value] = level
        return Values(levels, is_factor=True, raw=raw)

    def __get_pydantic_core_schema__(self, source: Any, handler: "GetCoreSchemaHandler") -> "CoreSchema":
        from pydantic_core import core_schema

        return core_schema.no_info_plain_validator_function(self.values)

    def __get_pydantic_json_schema__(self, schema: "CoreSchema", handler: "GetJsonSchemaHandler") -> "JsonSchemaValue":
        if not self.can_vary:
            return dict(self.schema)
        return {"anyOf": [self.schema, {"type": "array", "items": self.schema, "minItems": 1, "uniqueItems": True}]}


def kind_of(keys: Sequence[Key]) -> Kind:
    """The kind of a study's key that means these keys of cells: one, or one of each workload that has it.

    It takes what any of them does. Raises: ValueError when they are not of one type.
    """
    first = keys[0]
    types = {key.type for key in keys}
    if types == {KeyType.PEER, KeyType.ARGUMENTS}:
        return peer_or_program(first.study)
    if any((key.type, key.unit) != (first.type, first.unit) for key in keys):
        raise ValueError(f"the key {first.study} of the catalogue has several types")
    lows, highs = [key.minimum for key in keys], [key.maximum for key in keys]
    widest = replace(
        first,
        minimum=None if None in lows else min(low for low in lows if low is not None),
        maximum=None if None in highs else max(high for high in highs if high is not None),
        choices=tuple(dict.fromkeys(name for key in keys for name in key.choices)),
    )
    make = _BY_UNIT.get(widest.unit) or _BY_TYPE[widest.type]
    return replace(make(widest), can_vary=all(key.varies for key in keys))


def choice(names: Iterable[str], *, can_vary: bool = True, what: str = "", listed: str = "") -> Kind:
    """One of some words. Args: what, listed: of words too many for a message, what each is, and what lists them."""
    names = tuple(names)
    if what:
        return _named(names, what, listed, can_vary=can_vary)

    def parse(raw: object) -> str:
        if isinstance(raw, str) and raw in names:
            return raw
        if isinstance(raw, str):
            raise UnitError(f"{shown(raw)} is not one of {', '.join(names)}", hint=did_you_mean(raw, names))
        raise UnitError(f"{shown(raw)} is not a word", hint="one of " + ", ".join(names))

    return Kind(parse, {"enum": list(names)}, f'"{names[0]}"', can_vary=can_vary)


def _named(names: tuple[str, ...], what: str, listed: str, *, can_vary: bool) -> Kind:
    def parse(raw: object) -> str:
        if isinstance(raw, str) and raw in names:
            return raw
        close = did_you_mean(raw, names) if isinstance(raw, str) else ""
        hint = f"{close} ({listed})" if close.startswith("did you mean") else listed
        raise UnitError(f"{shown(raw)} is no {what}", hint=hint)

    return Kind(parse, {"enum": list(names)}, f'"{names[0]}"', can_vary=can_vary)


def _duration(key: Key) -> Kind:
    schema = {"anyOf": [_text(r"[0-9.]+ ?(ns|us|µs|μs|ms|s|m|min|h)?"), {"const": 0}]}
    return _quantity(key, units.parse_duration, units.format_duration, schema, '"10ms"')


def _size(key: Key) -> Kind:
    schema = {"anyOf": [_bounded(key), _text(r"[0-9.]+ ?(B|kB|MB|GB|TB|KiB|MiB|GiB)?")]}
    return _quantity(key, units.parse_size, _size_text, schema, '"64kB"')


def _size_text(size_bytes: int) -> str:
    text = units.format_size(size_bytes)
    return f"{size_bytes}B" if "." in text else text


def _rate(key: Key) -> Kind:
    schema = _text(r"[0-9.]+ ?[KkMmGgTt]?i?[Bb][Ii][Tt](/s)?|[Uu][Nn][Ll][Ii][Mm][Ii][Tt][Ee][Dd]")
    return _quantity(key, units.parse_rate, units.format_rate, schema, '"100mbit"')


def _probability(_key: Key) -> Kind:
    schema = {"anyOf": [_text(r"[0-9.]+ ?%?"), {"type": "number", "minimum": 0, "maximum": 1}]}
    return Kind(units.parse_probability, schema, '"1%"')


def _quantity(
    key: Key,
    parse: Callable[[object], int | None],
    show: Callable[[int], str],
    schema: dict[str, Any],
    example: str,
) -> Kind:
    """A number with a unit; None stands for no limit, and is always in range."""

    def read(raw: object) -> int | None:
        number = parse(raw)
        if number is not None:
            _refuse_outside(number, key, raw, show)
        return number

    return Kind(read, schema, example)


def _number(key: Key) -> Kind:
    """A count, or a number a second: the same as a string of digits, which is what a command line gives."""
    suffix = "/s" if key.unit is Unit.PER_SECOND else ""
    is_whole = key.type is KeyType.INTEGER
    what = "a whole number" if is_whole else "a number"
    hint = f"{what}{_range_text(key)}"

    def parse(raw: object) -> int | float:
        number = raw
        if isinstance(raw, str):
            text = raw.strip().removesuffix(suffix).strip()
            if re.fullmatch(r"-?[0-9]{1,18}", text):
                number = int(text)
            elif not is_whole and re.fullmatch(r"-?[0-9]{1,18}\.[0-9]{1,18}", text):
                number = float(text)
        if isinstance(number, float) and not is_whole and number.is_integer():
            number = int(number)
        if isinstance(number, bool) or not isinstance(number, int if is_whole else int | float):
            raise UnitError(f"{shown(raw)} is not {what}", hint=hint)
        if not _in_range(number, key):
            less = key.minimum is not None and number < key.minimum
            raise UnitError(f"{shown(raw)} is {'less' if less else 'more'} than it can be", hint=hint)
        return number

    digits = "-?[0-9]+" if is_whole else r"-?[0-9]+(\.[0-9]+)?"
    text = _text(f"{digits} ?({suffix})?") if suffix else {"type": "string", "pattern": f"^{digits}$"}
    return Kind(parse, {"anyOf": [_bounded(key), text]}, str(max(1, round(key.minimum or 1))))


def _boolean(_key: Key) -> Kind:
    def parse(raw: object) -> bool:
        if isinstance(raw, bool):
            return raw
        if raw in ("true", "false"):
            return raw == "true"
        raise UnitError(f"{shown(raw)} is neither true nor false", hint="write true or false")

    return Kind(parse, {"anyOf": [{"type": "boolean"}, {"enum": ["true", "false"]}]}, "true")


def _word(_key: Key) -> Kind:
    pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"

    def parse(raw: object) -> str:
        if isinstance(raw, str) and re.fullmatch(pattern, raw) and raw.isascii():
            return raw
        raise UnitError(f"{shown(raw)} is not a name", hint="a name is letters, digits, -, _ and dots")

    return Kind(parse, {"type": "string", "pattern": pattern}, '"name"')


def _arguments(_key: Key) -> Kind:
    return _arguments_of_program()


def _arguments_of_program() -> Kind:
    """An argument list, a program and what it is given; a list of such lists is a factor."""
    example = '["ping", "-c", "3", "{server}"]'

    def parse(raw: object) -> tuple[str, ...]:
        hint = f"write a list of strings, as {example}"
        if not isinstance(raw, list) or not raw:
            raise UnitError(f"{shown(raw)} is not an argument list", hint=hint)
        for item in raw:
            if not isinstance(item, str) or "\0" in item:
                raise UnitError(f"{shown(item)} is not an argument", hint=hint)
        return tuple(raw)

    return Kind(parse, {"type": "array", "items": {"type": "string"}, "minItems": 1}, example, is_list=True)


def _queue(_key: Key) -> Kind:
    return Kind(units.parse_queue, _text(r"[0-9.]+ ?(p|packets|B|kB|MB|GB|KiB|MiB|GiB)"), '"100p"')


def peer(end: str) -> Kind:
    """Who the client or the server of a workload is: Crosswind's own, a peer by its name, or a program."""
    return Kind(lambda raw: read_peer(end, raw), peer_schema(end), PEER_EXAMPLE, is_peer=True)


def peer_or_program(end: str) -> Kind:
    """The same key of several kinds of workload: of `program` an argument list, of the others a peer.

    Which of the two a list of texts is, only the kind of workload says: a command, or levels of a factor.
    """
    of_peer, of_program = peer(end), _arguments_of_program()

    def parse(raw: object) -> Value:
        return of_program.parse(raw) if isinstance(raw, list) else of_peer.parse(raw)

    def values(raw: object) -> Values:
        try:
            return of_peer.values(raw)
        except UnitError:
            if not isinstance(raw, list):
                raise
            return of_program.values(raw)

    schema = {"anyOf": [of_peer.schema, of_program.schema]}
    return Kind(parse, schema, PEER_EXAMPLE, is_peer=True, read=values)


def _text(pattern: str) -> dict[str, Any]:
    return {"type": "string", "pattern": rf"^\s*({pattern})\s*$"}


def _bounded(key: Key) -> dict[str, Any]:
    bounds = {"minimum": key.minimum, "maximum": key.maximum}
    return {"type": str(key.type), **{name: bound for name, bound in bounds.items() if bound is not None}}


def _in_range(number: float, key: Key) -> bool:
    return (key.minimum is None or number >= key.minimum) and (key.maximum is None or number <= key.maximum)


def _refuse_outside(number: int, key: Key, raw: object, show: Callable[[int], str]) -> None:
    if key.minimum is not None and number < key.minimum:
        raise UnitError(f"{shown(raw)} is too little", hint=f"at least {show(int(key.minimum))}")
    if key.maximum is not None and number > key.maximum:
        raise UnitError(f"{shown(raw)} is too much", hint=f"at most {show(int(key.maximum))}")


def _range_text(key: Key) -> str:
    if key.minimum is not None and key.maximum is not None:
        return f" from {key.minimum} to {key.maximum}"
    if key.minimum is not None:
        return f" of at least {key.minimum}"
    return "" if key.maximum is None else f" of at most {key.maximum}"


_BY_UNIT: Mapping[Unit | None, Callable[[Key], Kind]] = {
    Unit.NANOSECONDS: _duration,
    Unit.BYTES: _size,
    Unit.BITS_PER_SECOND: _rate,
    Unit.PROBABILITY: _probability,
}
_BY_TYPE: Mapping[KeyType, Callable[[Key], Kind]] = {
    KeyType.INTEGER: _number,
    KeyType.NUMBER: _number,
    KeyType.BOOLEAN: _boolean,
    KeyType.STRING: _word,
    KeyType.CHOICE: lambda key: choice(key.choices),
    KeyType.TRANSPORT: lambda _key: choice(catalog().transports),
    KeyType.QUEUE: _queue,
    KeyType.ARGUMENTS: _arguments,
    KeyType.PEER: lambda key: peer(key.study),
}
