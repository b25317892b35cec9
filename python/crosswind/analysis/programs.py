"""Client programs in a result: their ends and reports, summed over a cell's repetitions."""

from collections.abc import Callable, Iterable, Sequence

from crosswind.analysis.client_reports import ClientReport, report_of
from crosswind.analysis.result import ClientProgram, ProgramFunction, ProgramProblem
from crosswind.catalog.endpoints import runs_programs
from crosswind.catalog.warning import ResultWarning, WarningKind
from crosswind.cell.record import CellRun, output_of_program


def is_program(run: CellRun) -> bool:
    """Whether a repetition runs third-party programs."""
    return runs_programs(run.parameters)


def program_of(cell: int, runs: Sequence[CellRun]) -> ClientProgram | None:
    """A cell's client program over all repetitions; None if it ended well without a report."""
    reports = [report for run in runs if (report := report_of(run)) is not None]
    problems = [problem for run in runs if (problem := problem_of(run)) is not None]
    timed = [report for report in reports if report.seconds is not None]
    if not reports and not problems:
        return None
    messages = sum(report.messages for report in timed)
    return ClientProgram(
        cell=cell,
        version=next((report.version for report in reports if report.version), None),
        messages=messages,
        time_ns=1e9 * sum(report.seconds or 0.0 for report in timed) / messages if messages else None,
        functions=_summed(timed),
        problem="; ".join(dict.fromkeys(problem.text for problem in problems)) or None,
        problems=problems,
        remarks=list(dict.fromkeys(remark for report in reports for remark in report.remarks)),
    )


def problem_of(run: CellRun) -> ProgramProblem | None:
    """A client program's bad end and last output in a repetition; None for a good one."""
    end = run.finished.program if run.finished else None
    if run.finished is None or end is None or not run.finished.samples.outcomes:
        return None
    return ProgramProblem(
        repetition=run.repetition,
        exit_code=end.exit_code,
        signal=end.signal,
        text=run.finished.samples.outcomes[0].first_error or f"the client program ended with {end.text()}",
        log=output_of_program(run.key),
    )


def program_problems(runs: Iterable[CellRun]) -> list[str]:
    """Client programs' bad ends: each text once, with the first one's output file."""
    return _once(runs, lambda run: [problem.text] if (problem := problem_of(run)) else [], "client.err")


def program_remarks(runs: Iterable[CellRun]) -> list[ResultWarning]:
    """Remarks on client programs' reports: each once, with the first one's file."""
    remarks = _once(runs, lambda run: report.remarks if (report := report_of(run)) else (), "client.out")
    return [WarningKind.PROGRAM_REPORT.warning(remark=remark) for remark in remarks]


def _once(runs: Iterable[CellRun], texts_of: Callable[[CellRun], Iterable[str]], name: str) -> list[str]:
    places: dict[str, str] = {}
    for run in runs:
        for text in texts_of(run):
            places.setdefault(text, output_of_program(run.key, name))
    return [f"{text} ({place})" for text, place in places.items()]


def _summed(reports: Sequence[ClientReport]) -> list[ProgramFunction]:
    """All reports' functions, the longest first."""
    messages, seconds = sum(report.messages for report in reports), sum(report.seconds or 0.0 for report in reports)
    calls: dict[str, float] = {}
    own_s: dict[str, float] = {}
    for function in (function for report in reports for function in report.functions):
        calls[function.name] = calls.get(function.name, 0.0) + function.calls
        own_s[function.name] = own_s.get(function.name, 0.0) + function.own_s
    return [
        ProgramFunction(name=name, calls=calls[name] / messages, own_ns=1e9 * own / messages, share=own / seconds)
        for name, own in sorted(own_s.items(), key=lambda item: -item[1])
    ]
