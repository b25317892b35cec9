"""A study as plain data that is kept and read again, the digest of what it measures, and the names of repetitions."""

import copy
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from crosswind.errors import StudyError
from crosswind.text.units import shown

SCHEMA = "crosswind.study/1"
_MEASURING_TABLES = ("path", "host", "workload", "part", "study", "exclude", "repetitions", "precision", "budget")


def canonical(name: str, document: Mapping[str, Any], absences: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A study's document as plain JSON data under its schema's name, with what leaves cells absent."""
    absent = {"absent": list(absences)} if absences else {}
    return {"schema": SCHEMA, "name": name, **absent, **copy.deepcopy(dict(document))}


def from_canonical(data: Mapping[str, Any]) -> tuple[str, dict[str, Any], Sequence[Mapping[str, Any]]]:
    """The name, the document and the absences of which `canonical` made the data. Raises: StudyError."""
    if data.get("schema") != SCHEMA:
        raise StudyError(f"{shown(data.get('schema'))} is not {SCHEMA}", hint="made by another version of Crosswind?")
    document = {key: value for key, value in data.items() if key not in {"schema", "name", "absent"}}
    return str(data.get("name") or "study"), document, data.get("absent", ())


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256, in hexadecimal, of all that is measured: not of titles, notes, and what the report makes of it."""
    measured = {"schema": SCHEMA} | {key: document[key] for key in _MEASURING_TABLES if key in document}
    if "study" in measured:
        # What may be absent somewhere changes nothing of what is measured where it is not.
        measured["study"] = {key: value for key, value in document["study"].items() if key != "optional_peers"}
    text = json.dumps(measured, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


KEY = re.compile(r"c\d{3,}-r\d{2,}", re.ASCII)
"""The form of every `repetition_key`."""


def repetition_key(cell: int, repetition: int) -> str:
    """What names a repetition of a cell."""
    return f"c{cell:03d}-r{repetition:02d}"
