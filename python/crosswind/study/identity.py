"""A study as plain data that is kept and read again, the digest of what it measures, and the names of repetitions."""

import copy
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from crosswind.errors import StudyError
from crosswind.text.units import shown

SCHEMA = "crosswind.study/1"
_MEASURING_TABLES = ("path", "host", "workload", "part", "study", "exclude", "repetitions", "precision", "budget")


def canonical(name: str, document: Mapping[str, Any]) -> dict[str, Any]:
    """A study's document as plain JSON data under its schema's name."""
    return {"schema": SCHEMA, "name": name, **copy.deepcopy(dict(document))}


def from_canonical(data: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name and the document of which `canonical` made the data. Raises: StudyError."""
    if data.get("schema") != SCHEMA:
        raise StudyError(f"{shown(data.get('schema'))} is not {SCHEMA}", hint="made by another version of Crosswind?")
    document = {key: value for key, value in data.items() if key not in {"schema", "name"}}
    return str(data.get("name") or "study"), document


def digest(document: Mapping[str, Any]) -> str:
    """SHA-256, in hexadecimal, of all that is measured: not of titles, notes, and what the report makes of it."""
    measured = {"schema": SCHEMA} | {key: document[key] for key in _MEASURING_TABLES if key in document}
    text = json.dumps(measured, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


KEY = re.compile(r"c\d{3,}-r\d{2,}", re.ASCII)
"""The form of every `repetition_key`."""


def repetition_key(cell: int, repetition: int) -> str:
    """What names a repetition of a cell."""
    return f"c{cell:03d}-r{repetition:02d}"
