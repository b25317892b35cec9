"""Places for mistakes in a study, in its author's words.

Every error names the file and line (or the option), the dotted key, the value, and a correction.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crosswind.errors import StudyError
from crosswind.study.toml_text import DEEP_KEY, MOST_KEY_PARTS, Location, key_lines, line_number
from crosswind.text.units import shown


class DesignError(ValueError):
    """A mistake in a design: its place, the problem, a correction."""

    def __init__(self, location: Location, message: str, hint: str | None) -> None:
        super().__init__(message)
        self.location = location
        self.message = message
        self.hint = hint


@dataclass(frozen=True)
class Origin:
    """A study's source.

    Args: file: its shown name. lines: by key. options: words typed for keys set on the command line. flags: by key, in
        a study made from options.
    """

    file: str
    lines: Mapping[Location, int] = field(default_factory=dict)
    options: Mapping[Location, str] = field(default_factory=dict)
    flags: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_text(cls, file: str, text: str) -> "Origin":
        """The origin of a TOML text."""
        return cls(file, key_lines(text))

    def where(self, location: Location) -> str:
        """`study.toml:5`, or the option for this location."""
        if option := self._of_option(location):
            return self.options[option]
        line = line_number(self.lines, location)
        return self.file if line is None else f"{self.file}:{line}"

    def _of_option(self, location: Location) -> Location:
        """The place set by an option, at or around this location; () without one."""
        lengths = range(len(location), 0, -1)
        return next((location[:length] for length in lengths if location[:length] in self.options), ())

    def error(self, document: Mapping[str, Any], location: Location, message: str, hint: str | None) -> StudyError:
        """The error for a location. It does not repeat words in the option itself."""
        option = self._of_option(location)
        key = dotted(document, location).removeprefix(dotted(document, option))
        key = key.partition("].")[2] if key.startswith("[") else key.removeprefix(".")
        text = message if not key or key in message else f"{key}: {message}"
        return StudyError(f"{self.where(location)}: {text}", hint=hint)


def dotted(document: Mapping[str, Any], location: Location) -> str:
    """A location as a dotted key; a part goes by its name: `part.tcp.workload.size`."""
    words: list[str] = []
    value: Any = document
    for key in location:
        value = step(value, key)
        if isinstance(key, int):
            name = value.get("name") if isinstance(value, Mapping) else None
            if words == ["part"] and isinstance(name, str):
                words.append(_word(name))
            else:
                words[-1] = f"{words[-1]}[{key + 1}]"
        else:
            words.append(_word(key))
    return ".".join(words)


def _word(key: str) -> str:
    return key if key.replace("-", "").replace("_", "").isalnum() else shown(key)


def decoded(data: bytes, file: str) -> str:
    """UTF-8 as text. Raises: StudyError with file and line."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise StudyError(f"{file}:{line}: not UTF-8 text", hint="save the file as UTF-8") from None


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
        why = "a number has too many digits" if isinstance(error, ValueError) else "values are nested too deeply"
        raise StudyError(f"{file}: {why}", hint="a study is tables of short texts and numbers") from None


def step(value: Any, to: str | int) -> Any:
    """A document's value at a key or list index; None without one."""
    if isinstance(value, Mapping):
        return value.get(to)
    if isinstance(value, list) and isinstance(to, int) and to < len(value):
        return value[to]
    return None
