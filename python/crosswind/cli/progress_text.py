"""Lines for a run's progress: a cell's state, and its failures."""

from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from crosswind.catalog.precision import CellPrecision
from crosswind.cell.events import Progress
from crosswind.cell.process import CellEnd
from crosswind.cell.record import output_of_program
from crosswind.cell.result import Finished
from crosswind.cli.text import levels_text, repetition_text, seconds_text, virtual_text
from crosswind.execution.concurrency import Concurrency
from crosswind.execution.tally import CellUnderWay, Tally
from crosswind.report.text.format import count_of, quantity, without_middle
from crosswind.store.plan import PlannedCell, kinds_of


def concurrency_text(now: Concurrency, *, only_virtual: bool = False) -> str:
    """Concurrency and fidelity: "37 at a time (limit 64), 0.2 % of packets late, CPU wait 0.4 %".

    Args: only_virtual: all cells are in virtual time, without a meaning for the rest.
    """
    if only_virtual:
        return f"{now.running} at a time"
    limit = "fixed" if now.limit is None else f"limit {now.limit}"
    window = now.window
    waits = max(window.starvation, window.probe_starvation)
    return (
        f"{now.running} at a time ({limit}), {100 * window.late_share:.2g} % of packets late, "
        f"CPU wait {100 * waits:.2g} %, {100 * now.pressure:.0f} % of the fidelity budget"
    )


def levels_of(plan: Sequence[PlannedCell]) -> dict[int, str]:
    """Each cell's levels in words."""
    return {planned.cell: levels_text(planned.levels) for planned in kinds_of(plan)}


def narrowness(state: CellPrecision) -> float:
    """How much of its target an interval has reached; 0 where there is none."""
    half = state.half_width
    return state.wanted / half if half and state.wanted is not None else 0.0


def cell_line(cell: CellUnderWay, wall_s: float, width: int) -> Text:
    """One line about a running cell. Where it is too long, levels lose their names, and then their middle."""
    parts = [_progress(cell.progress)]
    if cell.planned.is_virtual and cell.progress is not None:
        parts.append(virtual_text(cell.progress.elapsed_ns, wall_s))
    progress = Text("".join(f"  {part}" for part in parts), style="cyan")
    room = max(1, width - progress.cell_len - 2)
    name = repetition_text(cell.planned)
    if cell_len(name) > room:
        name = without_middle(f"{' '.join(cell.planned.levels.values())} #{cell.planned.repetition + 1}", room)
    line = Text(f"  {name}") + progress
    line.truncate(width, overflow="ellipsis")
    return line


def _progress(progress: Progress | None) -> str:
    if progress is None:
        return "starting"
    parts = [f"{progress.done}/{progress.total}"]
    if progress.median_ns is not None:
        parts.append(f"median {quantity(progress.median_ns, 'ns')}")
    if progress.lost:
        parts.append(f"{progress.lost} lost")
    return "  ".join(parts)


def outcome_text(finished: Finished, progress: Progress | None) -> str:
    """A cell's outcomes: "998 of 1000 ok, 2 x timeout, median 20.1 ms"."""
    if finished.program is not None:
        # It is one exchange, and why it failed has a line of its own.
        outcomes = finished.samples.outcomes
        return "done" if not outcomes else "timeout" if outcomes[0].outcome == "timeout" else finished.program.text()
    parts = [f"{finished.samples.ok} of {finished.samples.rows} ok"]
    for outcome in finished.samples.outcomes:
        # The text of a timeout says nothing more, and with loss there are timeouts in every cell.
        parts.append(f"{outcome.count} x timeout" if outcome.outcome == "timeout" else outcome.text())
    if progress is not None and progress.median_ns is not None:
        parts.append(f"median {quantity(progress.median_ns, 'ns')}")
    return ", ".join(parts)


def bad_news(planned: PlannedCell, end: CellEnd) -> list[str]:
    """A line for each problem in a repetition: failed, invalid, or without success."""
    name = repetition_text(planned)
    if end.failure is not None:
        kept = f" ({output_of_program(planned.key, '*')})" if planned.runs_programs or planned.peers else ""
        return [f"failed: {name}: {end.failure.message}{kept}"]
    if end.finished is None:
        return []
    finished = end.finished
    lines = [] if finished.valid else [f"invalid: {name}: {'; '.join(finished.reasons)}"]
    if not finished.samples.succeeded:
        why = "no exchange succeeded"
        if finished.program is not None:
            said = finished.samples.outcomes[0].first_error if finished.samples.outcomes else None
            why = f"{said or finished.program.text()} ({output_of_program(planned.key)})"
        lines.append(f"failed: {name}: {why}")
    return lines


def repetitions_text(tally: Tally) -> list[str]:
    """How often a repetition missed its fidelity budget and was run again, and why the first one did."""
    if not tally.repeated:
        return []
    times = "once" if tally.repeated == 1 else "twice" if tally.repeated == 2 else f"{tally.repeated} times"
    first = "" if tally.repeated == 1 else "first "
    return [f"retried {times}: timing was too inaccurate ({first}{tally.first_miss})"]


def troubles_text(tally: Tally) -> str:
    """How much went wrong so far: ", 1 failed, 2 repeated"; empty where nothing did."""
    counts = ((tally.failed, "failed"), (tally.invalid, "invalid"), (tally.repeated, "repeated"))
    lost = f", {count_of(tally.lost, 'exchange')} lost" if tally.lost else ""
    return "".join(f", {count} {name}" for count, name in counts if count) + lost


def left_text(seconds: float) -> str:
    """How long the rest takes: "about 20 s left"."""
    return f"about {seconds_text(seconds)} left"
