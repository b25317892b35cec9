"""TOML as text: each key's line, and tables written back as TOML.

The standard library's reader forgets lines, and it has no writer. A location is a tuple as pydantic's: `("part", 1,
"path", "loss")`.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

Location = tuple[str | int, ...]

_KEY_PART = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)\s*""")
MOST_KEY_PARTS = 16
DEEP_KEY = re.compile(
    r"""(?:(?:"[^"\n]*+"|'[^'\n]*+'|(?<![A-Za-z0-9_-])[A-Za-z0-9_-]++)[ \t]*+\.[ \t]*+){%d}""" % MOST_KEY_PARTS  # noqa: UP031
)
"""A dotted key, or similar text, with more parts: reading it takes quadratic time."""

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


def key_lines(text: str) -> dict[Location, int]:
    """Line numbers, from 1, for every table header and key in a TOML text. Never raises.

    List entries count from where each begins a line. An inline table's keys have its key's line.
    """
    lines: dict[Location, int] = {}
    arrays: dict[Location, int] = {}
    table: Location = ()
    location: Location = ()
    scan = _Scan()
    for number, line in enumerate(text.split("\n"), start=1):
        at_statement, at_entry, entry = scan.at_statement, scan.at_entry, scan.entries
        scan.feed(line)
        stripped = line.strip()
        if not at_statement:
            if at_entry and stripped and stripped[0] not in "#],":
                lines.setdefault((*location, entry), number)
            continue
        is_array = stripped.startswith("[[")
        keys = _keys(stripped.lstrip("["))
        if not keys:
            continue
        if stripped.startswith("["):
            table = _resolve(keys, arrays, is_array)
            lines.setdefault(table, number)
        else:
            location = table + keys
            lines.setdefault(location, number)
    return lines


def line_number(lines: Mapping[Location, int], location: Location) -> int | None:
    """A location's line, or its nearest container's."""
    for length in range(len(location), 0, -1):
        if location[:length] in lines:
            return lines[location[:length]]
    return None


def write_toml(document: Mapping[str, Any]) -> str:
    """A document as TOML text, in its own order: tables, arrays of tables, lists and scalars."""
    return "\n".join(_table(document, ())).strip("\n") + "\n"


class _Scan:
    """Whether a line begins a statement, or goes on with a list or a multi-line string."""

    def __init__(self) -> None:
        self.depth = 0
        self.quote = ""
        self.entries = 0
        """Finished ones in the outermost list."""

    @property
    def at_statement(self) -> bool:
        return self.depth == 0 and self.quote == ""

    @property
    def at_entry(self) -> bool:
        return self.depth == 1 and self.quote == ""

    def feed(self, line: str) -> None:
        position = 0
        while position < len(line):
            if self.quote:
                position = self._inside_string(line, position)
            elif line[position] == "#":
                return
            elif line.startswith(('"""', "'''"), position):
                self.quote = line[position : position + 3]
                position += 3
            elif line[position] in "\"'":
                self.quote = line[position]
                position += 1
            else:
                self.depth = max(0, self.depth + (line[position] in "[{") - (line[position] in "]}"))
                self.entries = 0 if self.depth == 0 else self.entries + (self.depth == 1 and line[position] == ",")
                position += 1
        if len(self.quote) == 1:
            self.quote = ""

    def _inside_string(self, line: str, position: int) -> int:
        if self.quote[0] == '"' and line[position] == "\\":
            return position + 2
        if line.startswith(self.quote, position):
            position += len(self.quote)
            self.quote = ""
            return position
        return position + 1


def _keys(text: str) -> Location:
    keys: list[str] = []
    position = 0
    while match := _KEY_PART.match(text, position):
        part = match[1]
        keys.append(part[1:-1] if part[0] in "\"'" else part)
        position = match.end()
        if not text.startswith(".", position):
            break
        position += 1
    return tuple(keys)


def _resolve(keys: Location, arrays: dict[Location, int], is_array: bool) -> Location:
    location: Location = ()
    for place, key in enumerate(keys):
        location += (key,)
        if is_array and place == len(keys) - 1:
            arrays[location] = arrays.get(location, -1) + 1
        if location in arrays:
            location += (arrays[location],)
    return location


def _table(table: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    tables = {key: value for key, value in table.items() if isinstance(value, Mapping)}
    arrays = {key: value for key, value in table.items() if _is_array_of_tables(value)}
    for key, value in table.items():
        if key not in tables and key not in arrays:
            yield f"{_key(key)} = {write_value(value)}"
    for key, value in tables.items():
        yield from ("", f"[{'.'.join(map(_key, (*path, key)))}]")
        yield from _table(value, (*path, key))
    for key, items in arrays.items():
        for item in items:
            yield from ("", f"[[{'.'.join(map(_key, (*path, key)))}]]")
            yield from _table(item, (*path, key))


def _is_array_of_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, Mapping) for item in value)


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else write_value(key)


def write_value(value: object) -> str:
    """A scalar, or a list or an inline table of them, as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list):
        if any(isinstance(item, list) for item in value):
            return "[\n" + "".join(f"  {write_value(item)},\n" for item in value) + "]"
        return "[" + ", ".join(map(write_value, value)) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {write_value(item)}" for key, item in value.items()) + " }"
    # TOML's basic strings escape as JSON's do, but DEL too.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
