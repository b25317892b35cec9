"""The whole document of a study: its design and its findings, read and checked, with errors in its writer's words."""

import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from pydantic import Field, ValidationError, create_model
from pydantic_core import ErrorDetails

from crosswind.errors import StudyError, did_you_mean
from crosswind.study.declared import declarations
from crosswind.study.errors import Origin, step
from crosswind.study.format import DesignDocument, table_of
from crosswind.study.keys import SETTINGS
from crosswind.study.tables import TomlTable
from crosswind.study.toml_text import Location, line_number
from crosswind.text.units import UnitError, shown
from crosswind.text.visible import hidden_in, no_utf8_in

# For study files, instead of pydantic's hints for programmers.
_HINTS = {
    "string_type": "write text in quotes",
    "int_type": "write a whole number, without quotes",
    "float_type": "write a number, without quotes",
    "list_type": "write a list, in [ and ]",
    "string_pattern_mismatch": "write lower-case letters, digits and -",
}


def _finding(model: Any) -> tuple[Any, Any]:
    """A field with one kind's tables."""
    return list[model], Field(default_factory=list)


_FINDINGS: dict[str, Any] = {kind: _finding(declaration.model) for kind, declaration in declarations().items()}
StudyDocument = create_model(
    "StudyDocument",
    __base__=DesignDocument,
    __doc__="A Crosswind study file: the design of an experiment and what it is to find. A list is a factor.",
    **_FINDINGS,
)


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Defers Ctrl-C: pydantic drops one while building models, and then refuses correct input."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def read_document(document: Mapping[str, Any], origin: Origin) -> DesignDocument:
    """A dictionary as a checked document. Raises: StudyError for the first problem in the file."""
    try:
        for location, name in _hidden_characters(document, ()):
            raise origin.error(
                document,
                location,
                f"has the hidden character {name}",
                "remove it: readers cannot see it",
            )
        with _interrupts_held_back():
            return StudyDocument.model_validate(document)
    except ValidationError as problems:
        details = problems.errors(include_url=False)
        first = min(details, key=lambda detail: line_number(origin.lines, detail["loc"]) or 0)
        error = _error_of(first, document, origin)
        others = len({origin.where(_existing(document, detail["loc"])) for detail in details}) - 1
        if others > 0:
            error.message += f" (and {others} more problem{'s' if others > 1 else ''})"
            error.args = (error.message,)
        raise error from None
    except RecursionError:
        raise StudyError(f"{origin.file}: values are nested too deeply") from None


def _hidden_characters(
    value: object, location: Location, find: Callable[[str], str | None] = hidden_in
) -> Iterator[tuple[Location, str]]:
    """Invisible characters in texts. Programs' arguments may have any UTF-8."""
    if isinstance(value, str) and (name := find(value)):
        yield location, name
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            if name := find(str(key)):
                yield location, name
            of_program = location[-1:] == ("workload",) and key in ("client", "server")
            yield from _hidden_characters(inner, (*location, key), no_utf8_in if of_program else find)
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _hidden_characters(inner, (*location, number), find)


def _error_of(detail: ErrorDetails, document: Mapping[str, Any], origin: Origin) -> StudyError:
    location = _written(document, detail["loc"])
    kind = detail["type"]
    cause = detail.get("ctx", {}).get("error")
    if isinstance(cause, UnitError):
        return origin.error(document, location, cause.message, cause.hint)
    if kind == "extra_forbidden":
        known = _known_keys(location[:-1])
        what = "unknown table" if isinstance(detail["input"], Mapping) else "unknown key"
        return origin.error(document, location, what, _hint_of_unknown(location, known))
    if kind == "missing":
        return origin.error(document, location, "is missing", f"write {location[-1]} = ...")
    if kind in {"model_type", "dict_type"}:
        header = ".".join(key for key in location if isinstance(key, str))
        header = f"[[{header}]]" if isinstance(location[-1], int) else f"[{header}]"
        return origin.error(document, location, f"{shown(detail['input'])} is not a table", f"write {header}")
    location = _existing(document, location)
    hint = _HINTS.get(kind, detail["msg"].replace("Input should", "it should"))
    return origin.error(document, location, f"{shown(_value_at(document, location))} is wrong", hint)


def _hint_of_unknown(location: Location, known: Sequence[str]) -> str:
    """The table of a key, or the closest known one."""
    words = [key for key in location if isinstance(key, str)]
    if words[:1] == ["part"]:
        words = words[1:]
    home = next((key for key in SETTINGS if len(words) == 1 and key.partition(".")[2] == words[0]), None)
    if home is not None and words[0] not in known:
        part = "part." if location[0] == "part" else ""
        return f"{words[0]} belongs under [{part}{home.partition('.')[0]}]"
    return did_you_mean(str(location[-1]), known)


def _known_keys(location: Sequence[str | int]) -> list[str]:
    model: type[TomlTable] = StudyDocument
    for key in location:
        if isinstance(key, str):
            model = table_of(model, key) or model
    return list(model.model_fields)


def _existing(document: object, location: Location) -> Location:
    """A location's part in the document: pydantic adds branches for unions."""
    existing: Location = ()
    for key in location:
        inner = step(document, key)
        if inner is not None:
            document = inner
            existing += (key,)
    return existing


def _written(document: object, location: Location) -> Location:
    """A location without branches for unions; its last key may be missing."""
    return (*_existing(document, location[:-1]), *location[-1:])


def _value_at(document: object, location: Location) -> object:
    for key in location:
        document = step(document, key)
    return document
