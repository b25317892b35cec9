"""A user's own network: `network = { file = "my-network.toml" }`, in the format of the named ones.

A study keeps the file's content, `{ name, what, path, source }`, instead of its name, so a run needs no file.
"""

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from crosswind.catalog import catalog
from crosswind.errors import StudyError, did_you_mean
from crosswind.files.regular_files import read_regular
from crosswind.study.errors import DesignError, decoded, read_toml
from crosswind.study.levels import NetworkFiles, OwnNetwork
from crosswind.study.network_files import FILES_SCHEMA, TRACES, assignments, network_files
from crosswind.study.networks import NETWORKS, Network, Source, tables_of
from crosswind.study.toml_text import Location, key_lines, line_number
from crosswind.study.value_type import ValueType
from crosswind.text.units import UnitError, shown
from crosswind.text.visible import hidden_in

_EXAMPLE = 'network = { file = "my-network.toml" }'
_FORMAT = '[network.office], with what = "..." and path.delay = "5ms" in it'
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")
_TABLE_KEYS = ("what", "path", "source")
_SOURCE_KEYS = ("of", "text", "note")
_MAX_BYTES = 1_000_000
_TEXT = {"type": "string", "minLength": 1}
_FILE_SCHEMA = {
    "type": "object",
    "properties": {"file": _TEXT, "name": _TEXT},
    "required": ["file"],
    "additionalProperties": False,
}
_OWN_SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "pattern": f"^{_NAME.pattern}$"},
        "what": {"type": "string"},
        "path": {"type": "object", "minProperties": 1},
        "source": {"type": "array", "items": {"type": "object", "required": ["of", "text"]}},
    },
    "required": ["name", "path"],
    "additionalProperties": False,
}


def network_type(names: ValueType) -> ValueType:
    """The type for `path.network`: a name, recordings, or the user's own network. Args: names: the type for names."""

    def parse(raw: object) -> str | NetworkFiles | OwnNetwork:
        raw = expanded(raw, Path())
        if isinstance(raw, Mapping):
            return own_network(raw) if "path" in raw else network_files(raw)
        if isinstance(raw, str) and "=" in raw:
            return network_files(assignments(raw))
        return str(names.parse(raw))

    return ValueType(parse, {"anyOf": [names.schema, *FILES_SCHEMA, _FILE_SCHEMA, _OWN_SCHEMA]}, names.example)


def names_file(raw: object) -> bool:
    """Whether a `network` value names the user's file: `{ file = "a.toml" }`, or "file=a.toml"."""
    if isinstance(raw, str):
        return any(word.startswith("file=") for word in raw.split())
    return isinstance(raw, Mapping) and "file" in raw


def expanded(raw: object, folder: Path) -> object:
    """A `network` value with files' contents for their names.

    Args: folder: the base for relative paths. Raises: UnitError.
    """
    if isinstance(raw, list):
        return [expanded(item, folder) for item in raw]
    return _table_of_file(raw, folder) if names_file(raw) else raw


def with_networks_read(document: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """A document with network files' contents for their names.

    Args: folder: the base for relative paths. Raises: DesignError.
    """
    naming = [name for name in ("path", "part", "quick") if name in document]
    return {**document, **{name: _read_in(document[name], (name,), folder) for name in naming}}


def _read_in(value: object, at: Location, folder: Path) -> object:
    """As `with_networks_read`, for a value at a place."""
    if str(at[-1]).rpartition(".")[2] == "network":
        try:
            return expanded(value, folder)
        except UnitError as error:
            raise DesignError(at, error.message, error.hint) from None
    if isinstance(value, Mapping):
        return {key: _read_in(inner, (*at, key), folder) for key, inner in value.items()}
    if isinstance(value, list):
        return [_read_in(inner, (*at, number), folder) for number, inner in enumerate(value)]
    return value


def hop_names_of(raw: object) -> tuple[str, ...]:
    """A network value's hop names; none for other values."""
    if isinstance(raw, str):
        return NETWORKS[raw].hop_names if raw in NETWORKS else ()
    path = raw.get("path") if isinstance(raw, Mapping) else None
    hops = path.get("hop") if isinstance(path, Mapping) else None
    return tuple(str(hop.get("name")) for hop in (hops if isinstance(hops, list) else ()) if isinstance(hop, Mapping))


def own_network(table: Mapping[str, Any]) -> OwnNetwork:
    """The value of `{ name, what, path, source }`. Raises: UnitError."""
    name = table.get("name")
    try:
        _check_network(table, str(name), ())
    except DesignError as mistake:
        key = ".".join(str(word) for word in mistake.location)
        raise UnitError(f"{key}: {mistake.message}" if key else mistake.message, hint=mistake.hint) from None
    return OwnNetwork(str(name), json.dumps(table, ensure_ascii=False))


@lru_cache(maxsize=256)
def network_of_own(own: OwnNetwork) -> Network:
    """Its network."""
    table = json.loads(own.table)
    sources = tuple(Source(**source) for source in table.get("source", ()))
    return Network(own.name, table.get("what", "a network of one's own"), table["path"], sources)


def _table_of_file(raw: Any, folder: Path) -> dict[str, Any]:
    """Raises: UnitError."""
    words = dict(raw) if isinstance(raw, Mapping) else assignments(raw)
    for key in words:
        if key not in {"file", "name"}:
            hint = f"{_EXAMPLE}; keys of a path stand in the file, or beside network"
            raise UnitError(f"{shown(key)} does not go with the file of a network", hint=hint)
    file = words["file"]
    if not isinstance(file, str) or not file.strip():
        raise UnitError(f"{shown(file)} is not the path of a file", hint=_EXAMPLE)
    file = file.strip()
    text = _text_of(file, folder)
    try:
        document = read_toml(text, file)
    except StudyError as error:
        raise UnitError(error.message, hint=error.hint) from None
    try:
        name, table = _chosen(document, words.get("name"))
        location: Location = ("network", name)
        full = {"name": name, **table, **_all_sources(document, table, location)}
        _check_network(full, name, location)
    except DesignError as mistake:
        line = _line(key_lines(text), mistake.location)
        raise UnitError(f"{file}{f':{line}' if line else ''}: {mistake.message}", hint=mistake.hint) from None
    return {**full, "path": _with_places(full["path"], (folder / file).parent)}


def _line(lines: Mapping[Location, int], location: Location) -> int | None:
    """A location's line; for a table without a header, its first key's."""
    within = [line for place, line in lines.items() if place[: len(location)] == location]
    return min(within) if location and within else line_number(lines, location)


def _text_of(file: str, folder: Path) -> str:
    path = folder / file
    hint = f"a file with {_FORMAT}; its path is relative to {'the study' if folder != Path() else 'this directory'}"
    try:
        if path.is_dir():
            raise UnitError(f"{file}: is a directory", hint=hint)
        data = read_regular(path, _MAX_BYTES)
    except OSError as error:
        raise UnitError(f"{file}: cannot be read: {error.strerror}", hint=hint) from None
    try:
        text = decoded(data, file)
    except StudyError as error:
        raise UnitError(error.message, hint=error.hint) from None
    if not text.strip():
        raise UnitError(f"{file}: is empty", hint=f"write {_FORMAT}")
    return text


def _chosen(document: Mapping[str, Any], asked: object) -> tuple[str, dict[str, Any]]:
    """The chosen network in a file, with its name."""
    for key in document:
        if key not in {"network", "source"}:
            raise DesignError((key,), f"{shown(key)} is no table of a file of networks", f"write {_FORMAT}")
    networks = document.get("network")
    if not isinstance(networks, Mapping) or not networks:
        raise DesignError(("network",), "there is no network in it", f"write {_FORMAT}")
    names = list(networks)
    if asked is None and len(names) > 1:
        hint = f'name one, as {{ file = "...", name = "{names[0]}" }}'
        raise DesignError((), f"it has several networks: {', '.join(names)}", hint)
    name = names[0] if asked is None else asked
    if not isinstance(name, str) or name not in networks:
        raise DesignError((), f"there is no network {shown(name)} in it", did_you_mean(str(name), names))
    table = networks[name]
    if not isinstance(table, Mapping):
        raise DesignError(("network", name), f"{shown(table)} is not a table", f"write {_FORMAT}")
    return name, dict(table)


def _all_sources(document: Mapping[str, Any], table: Mapping[str, Any], at: Location) -> dict[str, Any]:
    """A network's sources: its own, then the file's for other keys."""
    own, of_file = (
        tables_of(each.get("source", []), place) for each, place in ((table, (*at, "source")), (document, ("source",)))
    )
    said = {key for source in own for key in str(source.get("of", "")).split(", ")}
    sources = [*own, *(source for source in of_file if not said >= set(str(source.get("of", "")).split(", ")))]
    return {"source": sources} if sources else {}


def _check_network(table: Mapping[str, Any], name: str, at: Location) -> None:
    """Raises: DesignError for a malformed network."""
    if not _NAME.fullmatch(name):
        raise DesignError(
            at, f"{shown(name)} cannot be the name of a network", "letters, digits, - and . are its parts"
        )
    if name in NETWORKS:
        raise DesignError(at, f"{name} is a network of Crosswind's own", f"give yours another name, as my-{name}")
    for key, raw in table.items():
        if key not in (*_TABLE_KEYS, "name"):
            known = dict.fromkeys([*_TABLE_KEYS, *catalog().direction.by_study])
            hint = f"write path.{key}" if key in catalog().direction.by_study else did_you_mean(key, known)
            raise DesignError((*at, key), f"{shown(key)} is no key of a network", hint)
        if key == "what" and (not isinstance(raw, str) or hidden_in(raw)):
            raise DesignError((*at, key), f"{shown(raw)} is no text that can be shown", 'what = "the office"')
    for number, source in enumerate(tables_of(table.get("source", []), (*at, "source"))):
        place = (*at, "source", number)
        for key in ("of", "text", *source):
            if key not in _SOURCE_KEYS or not isinstance(source.get(key), str) or hidden_in(source[key]):
                hint = 'a source has of = "delay, rate" and text = "where these are from"'
                raise DesignError((*place, key), f"{key} of a source is not as it should be", hint)
    path = table.get("path")
    if not isinstance(path, Mapping) or not path:
        raise DesignError((*at, "path"), "the network sets no key of a path", 'write path.delay = "5ms"')
    read = Network(name, "", path, (), at=(*at, "path"))
    _ = (read.hops, read.changes)


def _with_places(value: Any, folder: Path, key: str = "") -> Any:
    """File contents with absolute paths: relative ones count from the file."""
    if isinstance(value, Mapping):
        return {name: _with_places(inner, folder, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [_with_places(inner, folder) for inner in value]
    if not isinstance(value, str):
        return value
    if key == "trace":
        is_builtin = (TRACES / f"{value}.csv").exists() and not (folder / value).exists()
        return value if is_builtin else str((folder / value).absolute())
    if value.startswith("@"):
        return f"@{(folder / value[1:].strip()).absolute()}"
    return value
