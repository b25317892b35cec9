"""A client program's own measurement, as printed (docs/programs.md), and the parts not understood.

The client in the workload `program` may print one JSON object, as all its standard output or as its last line:
`times_s` (each exchange), `seconds` for `messages`, `functions` (each with `name`, `calls`, `own_s`) and `version`. It
is anybody's program: an object without any of the first four is its own business.
"""

import difflib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from crosswind.cell.record import CellRun

_RESULTS = ("times_s", "seconds", "messages", "functions")
"""One such key makes an object a report."""

_KEYS = (*_RESULTS, "version")
_REMEMBERED = 128
"""Latest repetitions' reports: a cell's metrics, warnings and tables each ask for them."""
_MAX_TEXT = 200
_QUOTED = 60
_CLOSE = 0.75
"""Similarity between a key and the probably meant one (difflib's ratio)."""


@dataclass(frozen=True)
class ReportedFunction:
    """A client program's function: its calls, and the time in itself."""

    name: str
    calls: float
    own_s: float


@dataclass(frozen=True)
class ClientReport:
    """One repetition, by its client program.

    Attributes: times_s: each exchange's. seconds: for sending `messages`; None if not reported. remarks: on unknown
        input, each with its key.
    """

    times_s: tuple[float, ...] = ()
    seconds: float | None = None
    messages: int = 1
    version: str | None = None
    functions: tuple[ReportedFunction, ...] = ()
    remarks: tuple[str, ...] = field(default=())


def report_of(run: CellRun) -> ClientReport | None:
    """A repetition's printed report; None for other output."""
    return _read(run.client_out)


@lru_cache(maxsize=_REMEMBERED)
def _read(text: str) -> ClientReport | None:
    printed = _last_object(text)
    if printed is None:
        return _meant_as_report(text)
    if not any(key in printed for key in _RESULTS):
        misspelt = [remark for key in printed if (remark := _misspelt(key))]
        return ClientReport(remarks=tuple(misspelt)) if misspelt else None
    return _Reader(printed).report()


def printable(text: str) -> str:
    """A text without cursor movements, cut to a line."""
    return "".join(character for character in text if character.isprintable())[:_MAX_TEXT]


def _last_object(text: str) -> dict[str, Any] | None:
    """The JSON object in a text, or in its last line."""
    last_line = text.rstrip().rpartition("\n")[2]
    for candidate in (text, last_line):
        if not candidate.lstrip().startswith("{"):
            continue
        try:
            value = json.loads(candidate)
        except (ValueError, RecursionError):
            continue
        return dict(value)
    return None


def _meant_as_report(text: str) -> ClientReport | None:
    """The remark on a last line with a report's keys but without JSON, such as a Python dictionary."""
    last_line = text.rstrip().rpartition("\n")[2].strip()
    if not last_line.startswith("{") or not any(key in last_line for key in _RESULTS):
        return None
    try:
        json.loads(last_line)
    except (ValueError, RecursionError) as error:
        return ClientReport(remarks=(f"{_cut(last_line)} is not JSON ({printable(str(error))})",))
    return None


class _Reader:
    """Reads a report key by key, with remarks on unknown input."""

    def __init__(self, printed: Mapping[str, Any]) -> None:
        self._printed = printed
        self._remarks: list[str] = []

    def report(self) -> ClientReport:
        """The report, as far as it is understood."""
        seconds = self._value("seconds", _positive, "a number above 0")
        messages = self._value("messages", _whole, "a whole number above 0")
        if seconds is None and "seconds" not in self._printed:
            self._remarks += [
                f'"{key}" has no meaning without "seconds"' for key in ("messages", "functions") if key in self._printed
            ]
        version = self._printed.get("version")
        return ClientReport(
            times_s=tuple(self._times()),
            seconds=seconds,
            messages=1 if messages is None else int(messages),
            version=None if version is None else printable(str(version)),
            functions=tuple(self._functions()) if seconds is not None else (),
            remarks=(*self._remarks, *self._unknown_keys()),
        )

    def _value(self, key: str, read: Callable[[object], float], what: str) -> float | None:
        if key not in self._printed:
            return None
        try:
            return read(self._printed[key])
        except ValueError:
            self._remarks.append(f'"{key}" is {_quoted(self._printed[key])}, not {what}')
            return None

    def _times(self) -> Iterator[float]:
        listed = self._printed.get("times_s", [])
        if not isinstance(listed, list):
            self._remarks.append(f'"times_s" is {_quoted(listed)}, not a list of numbers')
            return
        missing, wrong = 0, []
        for entry in listed:
            if entry is None:
                missing += 1
                continue
            try:
                yield _from_zero(entry)
            except ValueError:
                wrong.append(entry)
        if missing:
            self._remarks.append(f'{missing} of {len(listed)} entries of "times_s" are null: exchanges without an end')
        if wrong:
            which = f"{len(wrong)} of {len(listed)} entries"
            self._remarks.append(f'{which} of "times_s" are no numbers from 0 up: {_quoted(wrong[0])}')

    def _functions(self) -> Iterator[ReportedFunction]:
        listed = self._printed.get("functions", [])
        if not isinstance(listed, list):
            self._remarks.append(f'"functions" is {_quoted(listed)}, not a list')
            return
        for number, entry in enumerate(listed):
            try:
                yield _function(entry)
            except (ValueError, TypeError, LookupError):
                needs = 'it needs a "name", "calls" above 0 and "own_s" from 0 up'
                self._remarks.append(f'"functions"[{number}] is {_quoted(entry)}; {needs}')

    def _unknown_keys(self) -> Iterable[str]:
        unknown = [key for key in self._printed if key not in _KEYS]
        return (_misspelt(key) or f'"{printable(key)}" is not known' for key in unknown)


def _misspelt(key: str) -> str | None:
    """The remark on a key close to a known one; None for every other key."""
    close = difflib.get_close_matches(key, _KEYS, n=1, cutoff=_CLOSE)
    return f'"{printable(key)}" is not known; did you mean "{close[0]}"?' if close and key not in _KEYS else None


def _function(printed: dict[str, Any]) -> ReportedFunction:
    """Raises: ValueError, TypeError, LookupError."""
    return ReportedFunction(printable(str(printed["name"])), _positive(printed["calls"]), _from_zero(printed["own_s"]))


def _positive(printed: object) -> float:
    number = _from_zero(printed)
    if number == 0:
        raise ValueError(printed)
    return number


def _whole(printed: object) -> float:
    number = _positive(printed)
    if number != math.floor(number):
        raise ValueError(printed)
    return number


def _from_zero(printed: object) -> float:
    if isinstance(printed, bool) or not isinstance(printed, int | float) or not 0 <= printed < 1e18:
        raise ValueError(printed)
    return float(printed)


def _quoted(printed: object) -> str:
    return _cut(json.dumps(printed, ensure_ascii=False))


def _cut(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _QUOTED else f"{text[: _QUOTED - 1]}…"
