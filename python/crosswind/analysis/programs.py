"""What client programs say of themselves: how long sending took, and in which of their functions.

A client of the workload `program` may print one JSON object: `seconds` for `messages` of them, `functions` (each with
`name`, `calls`, `own_s`) and `version`. It is anybody's program: what is not of that shape is no report.
"""

import json
import math
import signal
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.analysis.result import ClientProgram, ProgramFunction, ProgramProblem
from crosswind.cell.result import ProgramEnd
from crosswind.record import CellRun

_MAX_TEXT = 200


@dataclass(frozen=True)
class ReportedFunction:
    """A function of a client program: how often it was called, and the time in itself."""

    name: str
    calls: float
    own_s: float


@dataclass(frozen=True)
class ProgramReport:
    """What a client program says: sending `messages` took it so many seconds."""

    seconds: float
    messages: int
    version: str | None
    functions: tuple[ReportedFunction, ...]


def report_of(run: CellRun) -> ProgramReport | None:
    """The report that the client program of a repetition printed; None where it printed something else."""
    try:
        printed = json.loads(run.client_out)
        report = ProgramReport(
            seconds=_positive(printed["seconds"]),
            messages=int(_positive(printed["messages"])),
            version=None if printed.get("version") is None else _printable(str(printed["version"])),
            functions=tuple(map(_function, printed["functions"])),
        )
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return None
    return report if report.messages else None


def program_of(cell: int, runs: Sequence[CellRun]) -> ClientProgram | None:
    """What the client program of a cell says in all repetitions; None where it says nothing and ended well."""
    reports = [report for run in runs if (report := report_of(run)) is not None]
    problems = [problem for run in runs if (problem := _problem(run)) is not None]
    if not reports and not problems:
        return None
    messages = sum(report.messages for report in reports)
    return ClientProgram(
        cell=cell,
        version=next((report.version for report in reports if report.version), None),
        messages=messages,
        time_ns=1e9 * sum(report.seconds for report in reports) / messages if messages else None,
        functions=_summed(reports),
        problem="; ".join(dict.fromkeys(problem.text for problem in problems)) or None,
        problems=problems,
    )


def program_problems(runs: Iterable[CellRun]) -> list[str]:
    """How the client programs of some repetitions ended that did not end well, each text once."""
    return list(dict.fromkeys(problem.text for run in runs if (problem := _problem(run)) is not None))


def _summed(reports: Sequence[ProgramReport]) -> list[ProgramFunction]:
    """The functions of all reports, those that took longest first."""
    messages, seconds = sum(report.messages for report in reports), sum(report.seconds for report in reports)
    calls: dict[str, float] = {}
    own_s: dict[str, float] = {}
    for function in (function for report in reports for function in report.functions):
        calls[function.name] = calls.get(function.name, 0.0) + function.calls
        own_s[function.name] = own_s.get(function.name, 0.0) + function.own_s
    return [
        ProgramFunction(name=name, calls=calls[name] / messages, own_ns=1e9 * own / messages, share=own / seconds)
        for name, own in sorted(own_s.items(), key=lambda item: -item[1])
    ]


def _problem(run: CellRun) -> ProgramProblem | None:
    """How the client program of a repetition ended, and what it wrote last; None where it ended well."""
    end = run.finished.program if run.finished else None
    if end is None or end.ok:
        return None
    last_words = _last_words(run.client_err)
    text = f"the client program ended with {_end(end)}" + (f": {last_words}" if last_words else "")
    return ProgramProblem(repetition=run.repetition, exit_code=end.exit_code, signal=end.signal, text=text)


def _end(end: ProgramEnd) -> str:
    if end.signal is None:
        return f"exit status {end.exit_code}"
    try:
        return f"signal {end.signal} ({signal.Signals(end.signal).name})"
    except ValueError:
        return f"signal {end.signal}"


def _function(printed: dict[str, Any]) -> ReportedFunction:
    own_s = float(printed["own_s"])
    if not 0 <= own_s < math.inf:
        raise ValueError(own_s)
    return ReportedFunction(_printable(str(printed["name"])), _positive(printed["calls"]), own_s)


def _positive(printed: object) -> float:
    if isinstance(printed, bool) or not isinstance(printed, int | float) or not 0 < printed < 1e18:
        raise ValueError(printed)
    return float(printed)


def _last_words(text: str) -> str:
    """What a program wrote to standard error: its lines `error: ...` and `hint: ...`, else its last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    marked = {
        kind: line.removeprefix(f"{kind}: ")
        for line in lines
        for kind in ("error", "hint")
        if line.startswith(f"{kind}: ")
    }
    if "error" in marked:
        return _printable(marked["error"]) + (f" ({_printable(marked['hint'])})" if "hint" in marked else "")
    return _printable(lines[-1]) if lines else ""


def _printable(text: str) -> str:
    return "".join(character for character in text if character.isprintable())[:_MAX_TEXT]
