"""The type for each key's values: its look in a study and in the JSON Schema, from the catalogue."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from crosswind.catalog import CellUnit, Key, KeyType, catalog
from crosswind.errors import did_you_mean
from crosswind.study.levels import SeriesFile, Value, Values
from crosswind.study.number_types import DURATION, PROBABILITY, RATE, number_of, size
from crosswind.study.peers import PEER_EXAMPLE, peer_schema, read_peer
from crosswind.study.value_type import ValueType, pattern_schema
from crosswind.text import units
from crosswind.text.units import UnitError, shown

_BY_UNIT: Mapping[CellUnit | None, Callable[[Key], ValueType]] = {
    CellUnit.NANOSECONDS: lambda _key: DURATION,
    CellUnit.BYTES: size,
    CellUnit.BITS_PER_SECOND: lambda _key: RATE,
    CellUnit.PROBABILITY: lambda _key: PROBABILITY,
}


def type_of(keys: Sequence[Key]) -> ValueType:
    """The type for a study's key over these cell keys: one, or one per workload.

    Its schema is their union. Raises: ValueError for different types.
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
    kind = _series(widest) if widest.type is KeyType.SERIES else _number_or_word(widest)
    return replace(kind, can_vary=all(key.varies for key in keys))


def _number_or_word(key: Key) -> ValueType:
    """One value of a key."""
    return (_BY_UNIT.get(key.unit) or _BY_TYPE[key.type])(key)


def choice(names: Iterable[str], *, can_vary: bool = True, what: str = "", listed: str = "") -> ValueType:
    """One of some words; findings may name words without a running cell.

    Args: what, listed: for too many words: their noun, and the listing command.
    """
    names = tuple(names)
    problem = f"is no {what}" if what else f"is not one of {', '.join(names)}"

    def parse(raw: object) -> str:
        if isinstance(raw, str) and raw in names:
            return raw
        close = did_you_mean(raw if isinstance(raw, str) else "", names)
        hint = close if not listed else f"{close} ({listed})" if close.startswith("did you mean") else listed
        raise UnitError(f"{shown(raw)} {problem}", hint=hint)

    return ValueType(parse, {"enum": list(names)}, f'"{names[0]}"', can_vary=can_vary)


def _text(example: str) -> ValueType:
    """Any text."""

    def parse(raw: object) -> str:
        if isinstance(raw, str):
            return raw
        raise UnitError(f"{shown(raw)} is not a text", hint=f"as {example}")

    return ValueType(parse, {"type": "string"}, example)


def _file(_key: Key) -> ValueType:
    def parse(raw: object) -> str:
        if isinstance(raw, str) and raw.strip():
            return raw.strip()
        raise UnitError(f"{shown(raw)} is not the path of a file", hint='write it in quotes, as "traces/4g.csv"')

    return ValueType(parse, {"type": "string", "minLength": 1}, '"traces/4g.csv"')


def _boolean(_key: Key) -> ValueType:
    def parse(raw: object) -> bool:
        if isinstance(raw, bool):
            return raw
        if raw in ("true", "false"):
            return raw == "true"
        raise UnitError(f"{shown(raw)} is neither true nor false", hint="write true or false")

    return ValueType(parse, {"anyOf": [{"type": "boolean"}, {"enum": ["true", "false"]}]}, "true")


def _word(key: Key) -> ValueType:
    if key.study in _TEXTS:
        return _text(_TEXTS[key.study])
    pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$"

    def parse(raw: object) -> str:
        if isinstance(raw, str) and re.fullmatch(pattern, raw) and raw.isascii():
            return raw
        raise UnitError(f"{shown(raw)} is not a name", hint="a name is letters, digits, -, _ and dots")

    return ValueType(parse, {"type": "string", "pattern": pattern}, '"name"')


def _arguments_of_program() -> ValueType:
    """An argument list, a program and its arguments; a list of such lists is a factor."""
    example = '["ping", "-c", "3", "{server}"]'

    def parse(raw: object) -> tuple[str, ...]:
        hint = f"write a list of strings, as {example}"
        if not isinstance(raw, list) or not raw:
            raise UnitError(f"{shown(raw)} is not an argument list", hint=hint)
        for item in raw:
            if not isinstance(item, str):
                raise UnitError(f"{shown(item)} is not an argument", hint=hint)
        return tuple(raw)

    return ValueType(parse, {"type": "array", "items": {"type": "string"}, "minItems": 1}, example, is_list=True)


def _series(key: Key) -> ValueType:
    """Several numbers: a list, a text with spaces, or `@` and a text file.

    A list is a factor if an item is a whole series: a list, a text with spaces, or a file.
    """
    item = _number_or_word(replace(key, type=KeyType.NUMBER))
    example = f"[{item.example}, {item.example}]"

    def parse(raw: object) -> Value:
        items = raw.split() if isinstance(raw, str) else raw
        if not isinstance(items, list) or not items:
            raise UnitError(f"{shown(raw)} is no series", hint=f"write a list, as {example}, or @FILE")
        if isinstance(raw, str) and raw.startswith("@"):
            return SeriesFile(raw.removeprefix("@").strip())
        return tuple(item.parse(number) for number in items)

    def is_series(raw: object) -> bool:
        return isinstance(raw, list) or (isinstance(raw, str) and (" " in raw.strip() or raw.startswith("@")))

    def values(raw: object) -> Values:
        if isinstance(raw, list) and any(map(is_series, raw)):
            return level.values(raw)
        return Values((level.level(raw),), raw=raw)

    schema = {"anyOf": [{"type": "array", "items": item.schema, "minItems": 1}, {"type": "string"}]}
    level = ValueType(parse, schema, example)
    return replace(level, read=values, is_series=True)


def _queue(_key: Key) -> ValueType:
    return ValueType(
        units.parse_queue,
        pattern_schema(rf"{units.NUMBER} ?(p|packets|B|kB|MB|GB|KiB|MiB|GiB|ns|us|µs|ms|s|m)"),
        '"100p"',
    )


def peer(end: str) -> ValueType:
    """A workload's client or server: Crosswind's own, a peer by name, or a program."""
    return ValueType(lambda raw: read_peer(end, raw), peer_schema(end), PEER_EXAMPLE, is_peer=True)


def peer_or_program(end: str) -> ValueType:
    """The same key over several workload kinds: an argument list for `program`, a peer for others.

    Only the kind tells a list's meaning: a command, or a factor's levels.
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
    return ValueType(parse, schema, PEER_EXAMPLE, is_peer=True, read=values)


_BY_TYPE: Mapping[KeyType, Callable[[Key], ValueType]] = {
    KeyType.INTEGER: number_of,
    KeyType.NUMBER: number_of,
    KeyType.BOOLEAN: _boolean,
    KeyType.STRING: _word,
    KeyType.FILE: _file,
    KeyType.CHOICE: lambda key: choice(key.choices),
    KeyType.TRANSPORT: lambda _key: choice(catalog().transports),
    KeyType.QUEUE: _queue,
    KeyType.ARGUMENTS: lambda _key: _arguments_of_program(),
    KeyType.PEER: lambda key: peer(key.study),
}


_TEXTS = {
    "tcp_rmem": '"4096 131072 6291456"',
    "tcp_wmem": '"4096 131072 6291456"',
    "ready": '"tcp:{port}"',
    "resolver": '"{address}"',
    "user": '"postgres"',
    "client_user": '"nobody"',
    "server_user": '"postgres"',
}
"""Keys with texts beyond a name, each with an example."""
