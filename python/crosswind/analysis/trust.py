"""Whether to trust a cell: why it is not valid, its warnings, its failures by cause, its ledger and its fidelity."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from crosswind.analysis.programs import is_program, program_problems, program_remarks
from crosswind.analysis.result import Clock, DelayError, DirectionPackets, Fidelity, Ledger
from crosswind.catalog.endpoints import peers_of
from crosswind.catalog.warning import ResultWarning, WarningKind
from crosswind.cell.record import CellRun, output_of_program
from crosswind.cell.result import (
    BackgroundLedger,
    DirectionLedger,
    FailureCount,
    Finished,
    HopLedger,
    Reordering,
    added_up,
)
from crosswind.stats.estimate import Interval
from crosswind.stats.share import Share, share_interval


def reason_of(runs: Sequence[CellRun]) -> str | None:
    """Why a cell is invalid, each cause once with its repetitions; None if valid."""
    causes: dict[str, list[int]] = {}
    for run in runs:
        for cause in _causes(run):
            causes.setdefault(cause, []).append(run.repetition + 1)
    if not causes and all(_fruitless(run) for run in runs):
        return _fruitless_text(runs)
    return causes_text(causes)


def causes_text(causes: Mapping[str, Sequence[int]]) -> str | None:
    """Why a cell is invalid: each cause after its affected repetitions. None without a cause."""
    return "; ".join(f"{repetitions_text(numbers)}{cause}" for cause, numbers in causes.items()) or None


def cause_of_failure(message: str, hints: Iterable[str] = ()) -> str:
    """A failed repetition's share in its cell's reason."""
    hint = ": ".join(hints)
    return f" failed: {message}" + (f" ({hint})" if hint else "")


def cause_of_invalidity(reasons: Sequence[str]) -> str:
    """An invalid measured repetition's share in its cell's reason."""
    return f": {', '.join(reasons) or 'marked invalid'}"


def clock_of(runs: Sequence[CellRun]) -> tuple[Clock, str | None]:
    """A cell's clock, and its kernel's release; None without a result."""
    kernels = (run.finished.versions.kernel for run in runs if run.finished is not None)
    return runs[0].clock, next(kernels, None)


def warnings_of(runs: Sequence[CellRun]) -> list[ResultWarning]:
    """A cell's warnings, each once."""
    given = [warning for run in runs if run.finished is not None for warning in run.finished.warnings]
    if is_program(runs[0]):
        # Where none succeeded, the reason says it.
        problems = [] if all(_fruitless(run) for run in runs) else program_problems(runs)
        failed = [WarningKind.PROGRAM_FAILED.warning(problem=problem) for problem in problems]
        return list(dict.fromkeys([*failed, *program_remarks(runs), *given]))
    return list(dict.fromkeys([*_many_failures(runs), *given]))


def failures_of(runs: Iterable[CellRun]) -> list[FailureCount]:
    """Some repetitions' failed exchanges by outcome, the most frequent first."""
    return added_up(count for run in runs if run.finished for count in run.finished.samples.outcomes)


def ledger_of(finished: Iterable[Finished]) -> Ledger | None:
    """The sum over some repetitions' ledgers; None without one."""
    ledgers = [end.ledger for end in finished if end.ledger]
    if not ledgers:
        return None
    return Ledger(
        forward=_direction([ledger.forward for ledger in ledgers]),
        reverse=_direction([ledger.reverse for ledger in ledgers]),
        closed=all(ledger.closed for ledger in ledgers),
    )


def packet_loss_of(
    finished: Iterable[Finished], *, exact: bool, level: float
) -> dict[Literal["forward", "reverse"], Interval]:
    """The dropped share in each direction, over repetitions; none without a packet."""
    ledgers = [end.ledger for end in finished if end.ledger]
    shares: dict[Literal["forward", "reverse"], Interval] = {}
    for way in ("forward", "reverse"):
        own: list[DirectionLedger] = [getattr(ledger, way) for ledger in ledgers]
        entered, dropped = [counted.in_ for counted in own], [sum(counted.dropped.values()) for counted in own]
        if any(entered):
            shares[way] = share_interval(Share.of(dropped, entered, exact=exact), level=level)
    return shares


def fidelity_of(finished: Iterable[Finished]) -> Fidelity | None:
    """The worst fidelity among some repetitions; None for a path without an emulator."""
    parts = [end.fidelity for end in finished if end.fidelity]
    if not parts:
        return None
    errors = [part.delay_error_ns for part in parts]
    waited = [part.starvation.fraction for part in parts if part.starvation]
    pairs = [part.probe_starvation for part in parts if part.probe_starvation]
    delays = [part.exchange_delay for part in parts if part.exchange_delay]
    probes = [host.fraction for pair in pairs for host in (pair.client, pair.server)]
    return Fidelity(
        delay_error=DelayError(
            p50=max(error.p50 for error in errors),
            p99=max(error.p99 for error in errors),
            max=max(error.max for error in errors),
        ),
        starvation=max(waited, default=None),
        realtime=all(part.realtime for part in parts),
        within_budget=all(part.within_budget for part in parts),
        probe_starvation=max(probes, default=None),
        exchange_delay=max((delay.hosts_ns + delay.path_ns for delay in delays), default=None),
        kernel_drops=sum(part.kernel_drops for part in parts),
    )


def _causes(run: CellRun) -> list[str]:
    """Why a repetition is not valid."""
    finished = run.finished
    if finished is None:
        return [_failure(run)]
    return [] if finished.valid else [cause_of_invalidity(finished.reasons)]


def _many_failures(runs: Sequence[CellRun]) -> list[ResultWarning]:
    """The warning for successes missing from a repetition, or from half of all exchanges."""
    fruitless = [run for run in runs if _fruitless(run)]
    if len(fruitless) == len(runs):
        return []
    return failures_warning(
        [run.repetition + 1 for run in fruitless],
        _fruitless_text(fruitless) if fruitless else "",
        failed=sum(int((run.samples["outcome"] != "ok").sum()) for run in runs),
        exchanges=sum(run.samples.height for run in runs),
        counts=_counts(runs),
    )


def failures_warning(
    fruitless: Sequence[int], why: str, *, failed: int, exchanges: int, counts: str
) -> list[ResultWarning]:
    """A cell's warning for successes missing from a repetition, or from half of all exchanges.

    Args: fruitless: repetitions without a success, counted from 1. why: the text about these. counts: the failures.
    """
    if fruitless:
        return [WarningKind.FRUITLESS.warning(repetitions=repetitions_text(fruitless), why=why)]
    if 2 * failed <= exchanges:
        return []
    return [WarningKind.EXCHANGES_FAILED.warning(failed=failed, exchanges=exchanges, counts=counts)]


def _fruitless(run: CellRun) -> bool:
    """Whether a repetition has exchanges without any success."""
    return run.samples.height > 0 and not bool((run.samples["outcome"] == "ok").any())


def _fruitless_text(runs: Sequence[CellRun]) -> str:
    """The text about repetitions without any success."""
    if is_program(runs[0]):
        return f"the client program never succeeded: {'; '.join(program_problems(runs))}"
    return f"no exchange succeeded: {_counts(runs)}"


def _counts(runs: Iterable[CellRun]) -> str:
    """`300 x certificate (cannot connect: it has expired), 2 x timeout`."""
    return ", ".join(failures.text() for failures in failures_of(runs))


def _failure(run: CellRun) -> str:
    """Why a repetition failed, and the remedy."""
    if run.failure is None:
        return cause_of_failure("no result")
    outputs = [output_of_program(run.key, "*")] if peers_of(run.parameters) else []
    hints = [*filter(None, [run.failure.hint]), *outputs]
    return cause_of_failure(run.failure.message, hints)


def repetitions_text(numbers: Sequence[int]) -> str:
    """Numbers as words: "repetition 3", "repetitions 1, 2 and 5", "repetitions 1 to 5"."""
    if len(numbers) == 1:
        return f"repetition {numbers[0]}"
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"repetitions {numbers[0]} to {numbers[-1]}"
    return f"repetitions {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


_OF_DIRECTION = ("in_", "duplicated", "delivered", "marked", "queued", "in_bytes", "delivered_bytes", "corrupted")
_OF_HOP = ("marked", "background_carried", "background_dropped")
_OF_BACKGROUND = ("in_", "carried", "carried_bytes", "marked", "queued")


def _summed(counts: Sequence[DirectionLedger | HopLedger | BackgroundLedger], names: Iterable[str]) -> dict[str, Any]:
    """Counts over repetitions, and drops by cause."""
    causes = dict.fromkeys(cause for count in counts for cause in count.dropped)
    dropped = {cause: sum(count.dropped.get(cause, 0) for count in counts) for cause in causes}
    return {"dropped": dropped, **{name: sum(getattr(count, name) for count in counts) for name in names}}


def _direction(ledgers: Sequence[DirectionLedger]) -> DirectionPackets:
    background = [ledger.background for ledger in ledgers if ledger.background]
    reordering = [ledger.reordering for ledger in ledgers if ledger.reordering]
    return DirectionPackets.model_validate({
        **_summed(ledgers, _OF_DIRECTION),
        "hops": [_summed(of, _OF_HOP) for of in zip(*(ledger.hops for ledger in ledgers), strict=True)],
        "reordering": _added_up(reordering) if reordering else None,
        "background": _summed(background, _OF_BACKGROUND) if background else None,
    })  # fmt: skip


def _added_up(counts: Sequence[Reordering]) -> dict[str, int]:
    """All reordered packets, with the largest distances."""
    return {
        "packets": sum(count.packets for count in counts),
        "extent": max(count.extent for count in counts),
        "late_time_offset_ns": max(count.late_time_offset_ns for count in counts),
    }
