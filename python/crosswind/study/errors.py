"""Where in a study something is wrong, in the words of the person who wrote it.

Every error names the file and line (or the option of the command line), the dotted key, the value, and what would be
right.
"""

import signal
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from crosswind.errors import StudyError
from crosswind.study.format import StudyDocument, table_of
from crosswind.study.keys import KINDS, renamed
from crosswind.study.levels import did_you_mean
from crosswind.study.report_tables import Table
from crosswind.study.toml_text import DEEP_KEY, MOST_KEY_PARTS, Location, key_lines, line_of
from crosswind.units import UnitError, shown
from crosswind.visible import hidden_in, no_utf8_in

# The hints of pydantic are for programmers. These replace them, for the types of error that a study file can cause.
_HINTS = {
    "string_type": "write text in quotes",
    "int_type": "write a whole number, without quotes",
    "float_type": "write a number, without quotes",
    "list_type": "write a list, in [ and ]",
    "string_pattern_mismatch": "write lower-case letters, digits and -",
}


class DesignError(ValueError):
    """What a study cannot say: where it stands, what is wrong, what would be right."""

    def __init__(self, location: Location, message: str, hint: str | None) -> None:
        super().__init__(message)
        self.location = location
        self.message = message
        self.hint = hint


class CellError(DesignError):
    """A combination that cannot be run, or a choice of cells that names what does not exist."""


@dataclass(frozen=True)
class Origin:
    """Where a study was written.

    Args: file: name to show. lines: line of each key in it. options: for keys set on the command line, what was typed.
        flags: of a study that is made of options, the option of each key. declared: the document as its file has it,
        before levels were set anew or left out.
    """

    file: str
    lines: Mapping[Location, int] = field(default_factory=dict)
    options: Mapping[Location, str] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)
    declared: Mapping[str, Any] | None = None

    @classmethod
    def of_text(cls, file: str, text: str) -> "Origin":
        """The origin of a TOML text."""
        return cls(file, key_lines(text))

    def where(self, location: Location) -> str:
        """`study.toml:5`, or the option that set this location."""
        for length in range(len(location), 0, -1):
            if location[:length] in self.options:
                return self.options[location[:length]]
        line = line_of(self.lines, location)
        return self.file if line is None else f"{self.file}:{line}"

    def error(self, document: Mapping[str, Any], location: Location, message: str, hint: str | None) -> StudyError:
        """The error to raise for what stands at a location."""
        key = dotted(document, location)
        text = message if not key or key in message else f"{key}: {message}"
        return StudyError(f"{self.where(location)}: {text}", hint=hint)


def dotted(document: Mapping[str, Any], location: Location) -> str:
    """The key that a location is written with; a part goes by its name: `part.tcp.workload.size`."""
    words: list[str] = []
    value: Any = document
    for step in location:
        value = _step(value, step)
        if isinstance(step, int):
            name = value.get("name") if isinstance(value, Mapping) else None
            if words == ["part"] and isinstance(name, str):
                words.append(_word(name))
            else:
                words[-1] = f"{words[-1]}[{step + 1}]"
        else:
            words.append(_word(step))
    return ".".join(words)


def _word(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() else shown(key)


def read_toml(text: str, file: str) -> dict[str, Any]:
    """A TOML text as a dictionary. Raises: StudyError with file and line."""
    if deep := DEEP_KEY.search(text):
        raise StudyError(
            f"{file}:{text.count(chr(10), 0, deep.start()) + 1}: a key of more than {MOST_KEY_PARTS} parts",
            hint="a key of a study has at most four, as path.forward.loss",
        )
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        message = str(error)
        line = message.rpartition("(at line ")[2].partition(",")[0]
        where = f"{file}:{line}" if line.isdigit() else f"{file}:{text.count(chr(10)) + 1}"
        raise StudyError(
            f"{where}: not TOML: {message.partition(' (at ')[0]}",
            hint='a line is [table], key = "text", key = 5 or key = ["a", "b"]',
        ) from None
    except (ValueError, RecursionError) as error:
        raise StudyError(f"{file}: not TOML that can be read: {str(error)[:200]}") from None


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Lets Ctrl-C wait: pydantic drops one that comes while it builds its models, and then refuses what is right."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def read_document(document: Mapping[str, Any], origin: Origin) -> StudyDocument:
    """A dictionary as a checked study document. Raises: StudyError for the problem that stands first in the file."""
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
        first = min(details, key=lambda detail: line_of(origin.lines, detail["loc"]) or 0)
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
    """Where texts have characters that nobody sees. What programs are started with may have all that are UTF-8."""
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
    location = detail["loc"]
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
        header = ".".join(step for step in location if isinstance(step, str))
        header = f"[[{header}]]" if isinstance(location[-1], int) else f"[{header}]"
        return origin.error(document, location, f"{shown(detail['input'])} is not a table", f"write {header}")
    location = _existing(document, location)
    hint = _HINTS.get(kind, detail["msg"].replace("Input should", "it should"))
    return origin.error(document, location, f"{shown(_value_at(document, location))} is wrong", hint)


def _hint_of_unknown(location: Location, known: Sequence[str]) -> str:
    """A key's new name, the table that it belongs in, or the closest of those that stand there."""
    words = [step for step in location if isinstance(step, str)]
    if words[:1] == ["part"]:
        words = words[1:]
    home = next((key for key in KINDS if len(words) == 1 and key.partition(".")[2] == words[0]), None)
    if home is not None and words[0] not in known:
        part = "part." if location[0] == "part" else ""
        return f"{words[0]} belongs under [{part}{home.partition('.')[0]}]"
    return renamed(".".join(words)) or did_you_mean(str(location[-1]), known)


def _known_keys(location: Sequence[str | int]) -> list[str]:
    model: type[Table] = StudyDocument
    for step in location:
        if isinstance(step, str):
            model = table_of(model, step) or model
    return list(model.model_fields)


def _existing(document: object, location: Location) -> Location:
    """The part of a location that the document has: pydantic adds the branch of a union to it."""
    existing: Location = ()
    for step in location:
        document = _step(document, step)
        if document is None:
            break
        existing += (step,)
    return existing


def _value_at(document: object, location: Location) -> object:
    for step in location:
        document = _step(document, step)
    return document


def _step(value: Any, step: str | int) -> Any:
    if isinstance(value, Mapping):
        return value.get(step)
    if isinstance(value, list) and isinstance(step, int) and step < len(value):
        return value[step]
    return None
