"""Dotted keys set anew over a study's document: `--set`, `[quick]` and the options of ad-hoc studies.

The result is a document like any other and is checked like any other; this file only puts values in their places.
"""

import copy
import shlex
import tomllib
from collections.abc import Mapping
from typing import Any

from crosswind.effect import DIRECTIONS
from crosswind.errors import StudyError, did_you_mean
from crosswind.study.format import BudgetTable, StudyTable
from crosswind.study.keys import KINDS, renamed
from crosswind.study.toml_text import Location
from crosswind.units import shown

_PLAIN_KEYS = tuple(f"study.{key}" for key in StudyTable.model_fields) + tuple(
    f"budget.{key}" for key in BudgetTable.model_fields
)
_LISTS = ("study.parts", "study.optional_peers")
"""Those that are lists also with one entry."""


def override(
    document: Mapping[str, Any], overrides: Mapping[str, object], labels: Mapping[str, str]
) -> tuple[dict[str, Any], dict[Location, str]]:
    """A copy of the document with the keys set, and what to name in errors at each place that changed.

    Raises: StudyError for a key that does not exist, or text that cannot be split.
    """
    changed = _copied(document)
    places: dict[Location, str] = {}
    # The general key first: `path.loss` clears both directions, and `path.forward.loss` then sets one.
    for key in sorted(overrides, key=lambda key: key.count(".")):
        for location in _targets(changed, key, labels[key]):
            raw = _raw(key, overrides[key], labels[key], _workload_at(changed, location))
            table: Any = changed
            for step in location[:-1]:
                table = table[step] if isinstance(step, int) else table.setdefault(step, {})
            table[str(location[-1])] = raw
            _clear_directions(table, location)
            places[location] = labels[key]
    return changed, places


def _targets(document: Mapping[str, Any], key: str, label: str) -> list[Location]:
    """Every place of the document that a key sets."""
    parts = document.get("part") or []
    words = key.split(".")
    if words[0] == "part" and len(words) > 2:
        names = [part["name"] for part in parts]
        if words[1] not in names:
            hint = did_you_mean(words[1], names) if names else "this study has no parts"
            raise StudyError(f"{label}: there is no part {shown(words[1])}", hint=hint)
        _check(".".join(words[2:]), KINDS, label)
        return [("part", names.index(words[1]), *words[2:])]
    _check(key, (*KINDS, *_PLAIN_KEYS), label)
    in_parts: list[Location] = [
        ("part", number, *words) for number, part in enumerate(parts) if key in KINDS and _has(part, words)
    ]
    everywhere = bool(parts) and len(in_parts) == len(parts)
    return in_parts if everywhere else [tuple(words), *in_parts]


def _check(key: str, known: Any, label: str) -> None:
    if key not in known:
        raise StudyError(f"{label}: there is no key {shown(key)}", hint=renamed(key) or did_you_mean(key, known))


def _has(table: Any, words: list[str]) -> bool:
    for word in words:
        if not isinstance(table, Mapping) or word not in table:
            return False
        table = table[word]
    return True


def _clear_directions(table: dict[str, Any], location: Location) -> None:
    if len(location) >= 2 and location[-2] == "path":
        for direction in DIRECTIONS:
            table.get(direction, {}).pop(location[-1], None)


def _workload_at(document: Mapping[str, Any], location: Location) -> object:
    """The kind of workload that a place of the document belongs to; None where none is set yet."""
    of_study = document.get("workload", {}).get("kind")
    if len(location) > 2 and location[0] == "part" and isinstance(location[1], int):
        return document["part"][location[1]].get("workload", {}).get("kind", of_study)
    return of_study


def _raw(key: str, value: object, label: str, workload: object) -> object:
    """What would stand in the file: a list where a string has commas, numbers and truth values as such.

    Args: workload: the kind for which it is set.
    """
    if not isinstance(value, str):
        return _copied(value)
    kind = next((kind for dotted, kind in KINDS.items() if key.endswith(dotted)), None)
    if kind is not None and kind.is_peer and workload != "program":
        if value.lstrip().startswith(("{", "[")):
            return _toml(value, label)
    elif kind is not None and (kind.is_list or kind.is_peer):
        try:
            return shlex.split(value)
        except ValueError as error:
            raise StudyError(
                f"{label}: {shown(value)} is not a command: {error}", hint="quote it as for a shell"
            ) from None
    pieces = [_scalar(piece.strip()) for piece in value.split(",")]
    if "" in pieces:
        raise StudyError(
            f"{label}: {key}: a level is empty", hint="write the levels with one comma between, as 0%,2%,5%"
        )
    return pieces[0] if len(pieces) == 1 and key not in _LISTS else pieces


def _toml(text: str, label: str) -> object:
    """A value in the words of a study file. Raises: StudyError."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError as error:
        raise StudyError(
            f"{label}: {shown(text)} is not a value of TOML",
            hint=f'as in {{ command = ["python3", "client.py"] }} ({error})',
        ) from None


def _scalar(text: str) -> object:
    if text in {"true", "false"}:
        return text == "true"
    is_whole = text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 18
    return int(text) if is_whole else text


def _copied(value: Any) -> Any:
    try:
        return copy.deepcopy(dict(value)) if isinstance(value, Mapping) else copy.deepcopy(value)
    except RecursionError:
        raise StudyError("values are nested too deeply") from None
