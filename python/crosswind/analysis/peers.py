"""What client programs say of themselves: how long sending took, and in which functions of theirs.

A client of the workload `program` may print one JSON object: `seconds` for `messages` of them, `functions` (each with
`name`, `calls`, `own_s`) and `version`. It is anybody's program: what is not of that shape is no report.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.analysis.result import Peer, PeerFunction
from crosswind.record import CellRun

ENDED = "the client program ended with"
"""How the warning of a cell begins whose client did not end well."""

_MOST_CHARACTERS = 200


@dataclass(frozen=True)
class _Function:
    name: str
    calls: float
    own_s: float


@dataclass(frozen=True)
class _Report:
    seconds: float
    messages: int
    version: str | None
    functions: tuple[_Function, ...]


def time_of_message(run: CellRun) -> float | None:
    """How long the client says that sending a message took, ns."""
    report = _report(run)
    return None if report is None else 1e9 * report.seconds / report.messages


def peers_of(cells: Iterable[tuple[int, Sequence[CellRun]]]) -> list[Peer]:
    """What the clients of some cells, by index, say in all repetitions: of those that report, or ended badly."""
    made = (_peer(cell, runs) for cell, runs in cells)
    return [one for one in made if one.messages or one.problem]


def with_last_words(warning: str, run: CellRun) -> str:
    """A warning, and where it is about the end of the client program, what that said last."""
    words = _last_words(run.client_err) if warning.startswith(ENDED) else ""
    return f"{warning}: {words}" if words else warning


def _peer(cell: int, runs: Sequence[CellRun]) -> Peer:
    reports = [report for run in runs if (report := _report(run)) is not None]
    messages = sum(one.messages for one in reports)
    seconds = sum(one.seconds for one in reports)
    calls: dict[str, float] = {}
    own_s: dict[str, float] = {}
    for function in (function for one in reports for function in one.functions):
        calls[function.name] = calls.get(function.name, 0.0) + function.calls
        own_s[function.name] = own_s.get(function.name, 0.0) + function.own_s
    warnings = [(text, run) for run in runs for text in (run.finished or {}).get("warnings") or []]
    problems = [with_last_words(str(text), run) for text, run in warnings if str(text).startswith(ENDED)]
    return Peer(
        cell=cell,
        version=next((one.version for one in reports if one.version), None),
        messages=messages,
        time_ns=1e9 * seconds / messages if messages else None,
        functions=[
            PeerFunction(name=name, calls=calls[name] / messages, own_ns=1e9 * own / messages, share=own / seconds)
            for name, own in sorted(own_s.items(), key=lambda item: -item[1])
        ],
        problem="; ".join(dict.fromkeys(problems)) or None,
    )


def _report(run: CellRun) -> _Report | None:
    """The report of a client; None where what it printed is something else."""
    try:
        said = json.loads(run.client_out)
        report = _Report(
            seconds=_positive(said["seconds"]),
            messages=int(_positive(said["messages"])),
            version=None if said.get("version") is None else _plain(str(said["version"])),
            functions=tuple(map(_function, said["functions"])),
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return report if report.messages else None


def _function(said: dict[str, Any]) -> _Function:
    own_s = float(said["own_s"])
    if not 0 <= own_s < math.inf:
        raise ValueError(own_s)
    return _Function(_plain(str(said["name"])), _positive(said["calls"]), own_s)


def _positive(said: object) -> float:
    if isinstance(said, bool) or not isinstance(said, int | float) or not 0 < said < 1e18:
        raise ValueError(said)
    return float(said)


def _last_words(text: str) -> str:
    """What an error says, `error: ...` and `hint: ...` as we write them; else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    told = {
        kind: line.removeprefix(f"{kind}: ")
        for line in lines
        for kind in ("error", "hint")
        if line.startswith(f"{kind}: ")
    }
    if "error" in told:
        return _plain(told["error"]) + (f" ({_plain(told['hint'])})" if "hint" in told else "")
    return _plain(lines[-1]) if lines else ""


def _plain(text: str) -> str:
    return "".join(character for character in text if character.isprintable())[:_MOST_CHARACTERS]
