"""Edits: changes to a study's design beside its file, applied to its document in order.

An edit puts values in their places without reading any: `crosswind.study.design.expand` reads the outcome.
"""

import copy
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosswind.catalog import catalog
from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.errors import StudyError, did_you_mean
from crosswind.study.declared import Declared
from crosswind.study.format import BudgetTable, StudyTable
from crosswind.study.keys import FLOW, HOP, SETTINGS, WORKLOAD_KINDS, flow_settings, table_of_key
from crosswind.study.levels import text_of
from crosswind.study.own_networks import expanded, hop_names_of
from crosswind.study.toml_text import Location
from crosswind.text.units import UnitError, shown

_PLAIN_KEYS = tuple(f"study.{key}" for key in StudyTable.model_fields) + tuple(
    f"budget.{key}" for key in BudgetTable.model_fields
)
_LISTS = ("study.parts", "study.optional_peers")
"""Lists even with one entry."""


class Edit:
    """A change to a document. Errors name the changed place and its label."""

    def applied(self, document: dict[str, Any]) -> dict[Location, str]:
        """Changes the document. Returns: labels for errors, by place. Raises: StudyError."""
        raise NotImplementedError

    def drops(self, finding: Declared) -> bool:
        """Whether a finding is empty after this edit."""
        del finding
        return False


def edited(document: Mapping[str, Any], edits: Sequence[Edit]) -> tuple[Mapping[str, Any], dict[Location, str]]:
    """A copy with all edits, and the labels by changed place. Raises: StudyError."""
    if not edits:
        return document, {}
    changed: dict[str, Any] = copied(document)
    labels: dict[Location, str] = {}
    for edit in edits:
        labels |= edit.applied(changed)
    return changed, labels


@dataclass(frozen=True)
class Appended(Edit):
    """Further entries in a list, as tables. Attributes: place: the list's. labels: for each entry, or none."""

    place: tuple[str, ...]
    entries: Sequence[object]
    labels: Sequence[str] = ()

    def applied(self, document: dict[str, Any]) -> dict[Location, str]:
        """See `Edit`."""
        entries = _table_at(document, self.place[:-1]).setdefault(self.place[-1], [])
        labels: dict[Location, str] = {}
        for at, (entry, label) in enumerate(zip(self.entries, self.labels, strict=False)):
            # An option for one key names it.
            key = tuple(entry) if isinstance(entry, Mapping) and len(entry) == 1 else ()
            labels[(*self.place, len(entries) + at, *key)] = label
        entries.extend(copied(list(self.entries)))
        return labels


@dataclass(frozen=True)
class Replaced(Edit):
    """A new value at a place. `label`: None for errors naming the file."""

    place: tuple[str, ...]
    value: object
    label: str | None = None

    def applied(self, document: dict[str, Any]) -> dict[Location, str]:
        """See `Edit`."""
        _table_at(document, self.place[:-1])[self.place[-1]] = copied(self.value)
        return {} if self.label is None else {self.place: self.label}


@dataclass(frozen=True)
class Assigned(Edit):
    """Dotted keys set anew: `--set`, and options for ad-hoc studies. `labels`: for errors, by key."""

    values: Mapping[str, object]
    labels: Mapping[str, str]

    def applied(self, document: dict[str, Any]) -> dict[Location, str]:
        """See `Edit`. Raises: StudyError for an unknown key, or unsplittable text."""
        places: dict[Location, str] = {}
        # The general key first: `path.loss` clears both directions, and `path.forward.loss` then sets one.
        for key in sorted(self.values, key=lambda key: key.count(".")):
            label = self.labels[key]
            for location in _targets(document, key, label):
                raw = _raw(key, self.values[key], label, _workload_at(document, location))
                table: Any = document
                for step in location[:-1]:
                    table = table[step] if isinstance(step, int) else table.setdefault(step, {})
                table[str(location[-1])] = raw
                _clear_directions(table, location)
                places[location] = label
        return places


def assigned(overrides: Mapping[str, object], flags: Mapping[str, str]) -> Assigned:
    """Keys set anew as by `--set`. Args: flags: options by key, where a key has its own."""
    return Assigned(
        overrides,
        {
            key: f"{flags[key]} {text_of(value)}" if key in flags else f"--set {key}={text_of(value)}"
            for key, value in overrides.items()
        },
    )


def precision_of(target: str) -> Replaced:
    """One precision for all cells, as by `--precision`."""
    return Replaced(("precision",), [{"target": target}], f"--precision {target}")


QUICK_REPETITIONS = 2
"""In the quick variant without `[quick]`: the fewest to show a spread."""


@dataclass(frozen=True)
class Quick(Edit):
    """The variant for a first look: `[quick]`; without one, few repetitions. `labels`: for its keys."""

    labels: Mapping[str, str] = field(default_factory=dict)

    def applied(self, document: dict[str, Any]) -> dict[Location, str]:
        """See `Edit`."""
        if values := document.pop("quick", None):
            return Assigned(values, self.labels).applied(document)
        study = document.setdefault("study", {})
        repetitions = study.get("repetitions", 1)
        text = few_repetitions_text(repetitions, has_precision=bool(document.pop("precision", None)))
        study.pop("repetitions_max", None)
        study["repetitions"] = min(repetitions, QUICK_REPETITIONS)
        return Appended(("report", "notes"), [f"Quick variant: {text}."]).applied(document)


def few_repetitions_text(repetitions: int, *, has_precision: bool) -> str:
    """The effect of `--quick` without `[quick]`, in one sentence."""
    if repetitions <= QUICK_REPETITIONS and not has_precision:
        few = "one repetition" if repetitions == 1 else f"{repetitions} repetitions"
        return f"the study has no [quick] table and {few} of each cell, so --quick changes nothing"
    times = f"each cell runs {'once' if repetitions == 1 else 'twice'}"
    asked = ", whatever [[precision]] asks for" if has_precision else ""
    return f"the study has no [quick] table, so {times}{asked}"


@dataclass(frozen=True)
class FurtherTables(Edit):
    """Additions by `--hop`, `--at` and `--beside`.

    Attributes:
        hops, changes: as "outage start=5s for=1s loss=100%": a name, and keys with their values.
        flows: as "transfer --transport tcp --start 2s": a workload's kind, and a flow's options.
    """

    hops: Sequence[str] = ()
    changes: Sequence[str] = ()
    flows: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.hops or self.changes or self.flows)

    def applied(self, document: dict[str, Any]) -> dict[Location, str]:
        """See `Edit`. Raises: StudyError for a malformed text."""
        places: dict[Location, str] = {}
        for word, texts in {"hop": self.hops, "at": self.changes}.items():
            for text in texts:
                label = f"--{word} {text!r}"
                places |= Appended(("path", word), [_path_table(word, text, label)], [label]).applied(document)
        for text in self.flows:
            label = f"--beside {text!r}"
            table = _flow_table(text, label)
            alike = sum(str(other.get("name", "")).startswith(str(table["kind"])) for other in document.get(FLOW, ()))
            named = {"name": f"{table['kind']}-{alike + 1}" if alike else table["kind"], **table}
            places |= Appended((FLOW,), [named], [label]).applied(document)
        return places


NOTHING_FURTHER = FurtherTables()


def copied(value: Any) -> Any:
    """A deep copy. Raises: StudyError."""
    try:
        return copy.deepcopy(dict(value)) if isinstance(value, Mapping) else copy.deepcopy(value)
    except RecursionError:
        raise StudyError("values are nested too deeply") from None


def _table_at(document: dict[str, Any], place: Sequence[str]) -> dict[str, Any]:
    for step in place:
        document = document.setdefault(step, {})
    return document


def _flow_table(text: str, label: str) -> dict[str, Any]:
    """A flow from an option's text: a workload's kind, and options."""
    kind, *words = _words(text, label)
    if kind and kind not in WORKLOAD_KINDS:
        message = f"{label}: {shown(kind)} is no kind of workload"
        hint = (
            f"it is one of {', '.join(WORKLOAD_KINDS)}; programs are a flow as in "
            """--beside 'program --server "iperf3 -s -p {port}" -- iperf3 -c {server} -p {port}'"""
        )
        raise StudyError(message, hint=hint)
    table: dict[str, Any] = {"kind": kind}
    at = 0
    while at < len(words):
        if words[at] == "--" and kind == "program":
            table["client"] = words[at + 1 :]
            break
        option, equals, value = words[at].partition("=")
        if not option.startswith("--") or (not equals and at + 1 == len(words)):
            hint = 'as in --beside "transfer --transport tcp --start 2s"'
            raise StudyError(f"{label}: {shown(words[at])} is no option with a value", hint=hint)
        if not equals:
            at += 1
            value = words[at]
        name = {"message-rate": "rate"}.get(option[2:], option[2:].replace("-", "_"))
        key = f"{FLOW}.1.{name}"
        if name in table:
            raise _twice(label, option, str(table[name]), value)
        if name != "name" and key not in SETTINGS:
            known = [setting.name.replace("_", "-") for setting in flow_settings()]
            raise StudyError(f"{label}: a flow has no --{option[2:]}", hint=did_you_mean(option[2:], known))
        table[name] = value if name == "name" else _raw(key, value, label, kind)
        at += 1
    return table


def _twice(label: str, key: str, first: str, second: str) -> StudyError:
    """The error for a repeated key or option."""
    return StudyError(
        f"{label}: {key} is set twice, to {shown(first)} and {shown(second)}", hint="give only one of them"
    )


def _words(text: str, label: str) -> list[str]:
    try:
        return shlex.split(text) or [""]
    except ValueError as error:
        raise StudyError(f"{label} cannot be split: {error}", hint="quote it as for a shell") from None


def _path_table(word: str, text: str, label: str) -> dict[str, Any]:
    first, *words = _words(text, label)
    table: dict[str, Any] = {} if "=" in first else {"name": first}
    for assignment in words if table else [first, *words]:
        key, equals, value = assignment.partition("=")
        if not equals or not key or not value:
            example = "wifi rate=50mbit delay=2ms" if word == "hop" else "outage start=5s for=1s loss=100%"
            raise StudyError(f"{label}: {shown(assignment)} is not key=value", hint=f'as in --{word} "{example}"')
        *inner, last = key.split(".")
        place = table
        for step in inner:
            place = place.setdefault(step, {})
            if not isinstance(place, dict):
                raise _twice(label, key, str(place), value)
        if last in place:
            raise _twice(label, key, str(place[last]), value)
        place[last] = _raw(f"path.{word}.{table.get('name') or 1}.{key}", value, label, None)
    return table


def _targets(document: dict[str, Any], key: str, label: str) -> list[Location]:
    """Every place in the document for a key; a part gets the name of an overridden hop or change."""
    parts = document.get("part") or []
    words = key.split(".")
    if words[0] == "part" and len(words) > 2:
        names = [part["name"] for part in parts]
        if words[1] not in names:
            hint = did_you_mean(words[1], names) if names else "this study has no parts"
            raise StudyError(f"{label}: there is no part {shown(words[1])}", hint=hint)
        short_key = ".".join(words[2:])
        _check(short_key, SETTINGS, label)
        number = names.index(words[1])
        inner = _place_in(parts[number], short_key)
        if inner is None:
            if _place_in(document, short_key) is None and not _network_has(short_key, (parts[number], document)):
                _new_place(short_key, label)
            inner = _added_to(parts[number], short_key)
        return [("part", number, *inner)]
    if key not in _PLAIN_KEYS:
        _check(key, SETTINGS, label)
    in_parts: list[Location] = [
        ("part", number, *place)
        for number, part in enumerate(parts)
        if (place := _place_in(part, key)) is not None and _has(part, place)
    ]
    if parts and len(in_parts) == len(parts):
        return in_parts
    own_place = _place_in(document, key)
    if own_place is None and in_parts:
        return in_parts
    if own_place is None and _network_has(key, (document,)):
        own_place = _added_to(document, key)
    return [own_place or _new_place(key, label), *in_parts]


def _place_in(table: Mapping[str, Any], key: str) -> Location | None:
    """Where a key stands in a study's or a part's tables, or would; None for a hop, change or flow not there."""
    owner = table_of_key(key)
    if owner is None:
        return tuple(key.split("."))
    section, _, name = owner.rpartition(".")
    word = section.rpartition(".")[2]
    path = table if section == FLOW else table.get("path")
    named = path.get(word) if isinstance(path, Mapping) else None
    for number, each in enumerate(named if isinstance(named, list) else []):
        if isinstance(each, Mapping) and str(each.get("name") or number + 1) == name:
            return (*section.split("."), number, *key.removeprefix(f"{owner}.").split("."))
    return None


def _network_has(key: str, tables: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a key belongs to a hop in the tables' first network."""
    named: Any = next((path["network"] for table in tables if "network" in (path := table.get("path") or {})), [])
    levels = named if isinstance(named, list) else [named]
    hops = {hop for level in levels for hop in hop_names_of(level)}
    return table_of_key(key) in {f"{HOP}.{hop}" for hop in hops}


def _added_to(part: dict[str, Any], key: str) -> Location:
    """A key's place in tables overriding a hop or change; it is named there first."""
    table, _, name = str(table_of_key(key)).rpartition(".")
    tables = part if table == FLOW else part.setdefault("path", {})
    tables.setdefault(table.rpartition(".")[2], []).append({"name": name})
    place = _place_in(part, key)
    assert place is not None
    return place


def _new_place(key: str, label: str) -> Location:
    """Raises: StudyError for an unknown hop or change."""
    owner = table_of_key(key)
    if owner is None:
        return tuple(key.split("."))
    raise StudyError(f"{label}: the study has no {owner}", hint=f"write [[{owner.rpartition('.')[0]}]] in the study")


def _check(key: str, known: Any, label: str) -> None:
    if key not in known:
        known = (*known, *_PLAIN_KEYS)
        raise StudyError(f"{label}: there is no key {shown(key)}", hint=did_you_mean(key, known))


def _has(table: Any, place: Location) -> bool:
    for step in place:
        if not isinstance(step, int) and (not isinstance(table, Mapping) or step not in table):
            return False
        table = table[step]
    return True


def _clear_directions(table: dict[str, Any], location: Location) -> None:
    if location[-1] in catalog().direction.by_study and location[-2] not in DIRECTIONS:
        for direction in DIRECTIONS:
            table.get(direction, {}).pop(location[-1], None)


def _workload_at(document: Mapping[str, Any], location: Location) -> object:
    """The workload's kind at a place in the document; None before it is set."""
    if FLOW in location:
        flow: Any = document
        for step in location[:-1]:
            flow = flow[step]
        return flow.get("kind")
    of_study = document.get("workload", {}).get("kind")
    if len(location) > 2 and location[0] == "part" and isinstance(location[1], int):
        return document["part"][location[1]].get("workload", {}).get("kind", of_study)
    return of_study


def _raw(key: str, value: object, label: str, workload: object) -> object:
    """A value as in a file: lists from commas, numbers and truth values as such.

    Args: workload: its kind.
    """
    # What a program prints, and a command, may have commas.
    if not isinstance(value, str) or key.endswith(".ready"):
        return copied(value)
    setting = SETTINGS.get(".".join(key.split(".")[2:]) if key.startswith("part.") else key)
    kind = None if setting is None else setting.type
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
    if kind is not None and kind.is_series:
        if value.lstrip().startswith("["):
            return _toml(value, label)
        if isinstance(_scalar(value.strip()), int):
            return [_scalar(value.strip())]
    pieces: list[object] = [_scalar(piece.strip()) for piece in value.split(",")]
    if "" in pieces:
        raise StudyError(
            f"{label}: {key}: a level is empty", hint="write the levels with one comma between, as 0%,2%,5%"
        )
    if key.endswith(".network"):
        try:
            pieces = [expanded(piece, Path()) for piece in pieces]
        except UnitError as error:
            raise StudyError(f"{label}: {error.message}", hint=error.hint) from None
    return pieces[0] if len(pieces) == 1 and key not in _LISTS else pieces


def _toml(text: str, label: str) -> object:
    """A value in the words of a study file. Raises: StudyError."""
    try:
        read = tomllib.loads(f"value = {text}")
        if len(read) > 1:
            raise StudyError(f"{label}: {shown(text)} is more than one value of TOML", hint="leave out what follows it")
        return read["value"]
    except tomllib.TOMLDecodeError as error:
        raise StudyError(
            f"{label}: {shown(text)} is not a value of TOML",
            hint=f'as in {{ command = ["python3", "client.py"] }}, or [0, 1] ({error})',
        ) from None
    except (ValueError, RecursionError):
        raise StudyError(
            f"{label}: {shown(text)} cannot be read", hint="it is nested too deeply, or has a number of too many digits"
        ) from None


def _scalar(text: str) -> object:
    if text in {"true", "false"}:
        return text == "true"
    is_whole = text.isascii() and text.removeprefix("-").isdigit() and len(text) <= 18
    return int(text) if is_whole else text
