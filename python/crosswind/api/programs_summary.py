"""The summary of programs on a path: their ends, the path's effects, and the fidelity."""

import math
from pathlib import Path
from typing import Any

import polars as pl

from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.cell.fidelity import Fidelity
from crosswind.cell.record import CellRun
from crosswind.cell.result import DirectionLedger
from crosswind.store.connections import connections_of
from crosswind.store.result import RepetitionResult
from crosswind.store.run import StoredRun

SCHEMA = "crosswind.exec/1"
TIMED_OUT = 124
"""Exit status for a client ended at its timeout, as in timeout(1)."""


def exit_status(result: RepetitionResult) -> int:
    """The exit status after running a client: 128 plus the number of a fatal signal."""
    assert result.finished is not None
    assert result.finished.program is not None  # The workload has one.
    if _timed_out(result):
        return TIMED_OUT
    signal = result.finished.program.signal
    return 128 + signal if signal is not None else result.finished.program.exit_code or 0


def summary_of(run: StoredRun) -> dict[str, Any]:
    """The summary of a run with only finished repetitions (docs/programs.md)."""
    results = list(run.results().values())
    repetitions = [_repetition(run, result) for result in results]
    statuses = [repetition["exit_status"] for repetition in repetitions]
    return {
        "schema": SCHEMA,
        "exit_status": next(filter(None, statuses), 0),
        "clock": "virtual" if results[0].planned.is_virtual else "real",
        "seed": run.manifest.provenance["seed"],
        "repetitions": repetitions,
    }


def _repetition(run: StoredRun, result: RepetitionResult) -> dict[str, Any]:
    finished = result.finished
    assert finished is not None
    assert finished.program is not None
    assert finished.ledger is not None  # Programs run on emulated paths alone.
    record = run.cell_run(result)
    samples = record.samples
    (sent_ns,), (received_ns,) = samples["sent_ns"].to_list(), samples["received_ns"].to_list()
    again = finished.tcp_retransmits
    return {
        "exit_status": exit_status(result),
        "signal": finished.program.signal,
        "timed_out": _timed_out(result),
        "time_ns": None if received_ns is None or sent_ns is None else received_ns - sent_ns,
        "forward": _direction(finished.ledger.forward),
        "reverse": _direction(finished.ledger.reverse),
        "tcp_retransmits": None if again is None else {"client": again.client, "server": again.server},
        "flows": _flows(record) if finished.flows else [],
        "connections": connections_of(run, result),
        "fidelity": _fidelity_numbers(finished.fidelity),
        "valid": finished.valid,
        "reasons": list(finished.reasons),
        "warnings": [warning.model_dump() for warning in finished.warnings],
        "key": result.key,
        "files": _files(run.directory, result.key),
    }


def _flows(record: CellRun) -> list[dict[str, Any]]:
    """The path's effect on the program's and each other flow's packets: in all, and while all ran."""
    # Only programs with company need numpy.
    from crosswind.analysis.flow_counts import IS_BACKGROUND, WORKLOAD, Flows

    assert record.finished is not None
    together = Flows.of(record)
    beside: list[dict[str, Any]] = [
        {"flow": flow.flow, "name": flow.name, "port": flow.port, "began_ns": flow.began_ns, "ended_ns": flow.ended_ns}
        for flow in record.finished.flows
    ]
    nothing: dict[str, Any] = {"port": None, "began_ns": None, "ended_ns": None}
    program = {"flow": WORKLOAD, "name": "the command", **nothing}
    others = {"flow": None, "name": "neither TCP nor UDP", **nothing}
    found, of_hosts = [], record.intervals.filter(~IS_BACKGROUND)
    for flow in (program, *beside, others):
        number: Any = flow["flow"]
        intervals = of_hosts.filter(pl.col("flow").eq_missing(pl.lit(number, pl.UInt16)))
        if number is None and intervals.is_empty():
            continue
        ways = {way: _counted(intervals.filter(pl.col("direction") == way)) for way in DIRECTIONS}
        shared: dict[str, Any] | None = None
        if together is not None and number is not None:
            way = together.directions[number]
            share = together.share([number])
            within = pl.col("from_ns").is_between(together.from_ns, together.to_ns - 1)
            shared = {
                "direction": way,
                "rate_bps": float(together.rates[number]),
                "share": None if math.isnan(share) else share,
                **_counted(intervals.filter(within, pl.col("direction") == way)),
            }
        found.append({**flow, **ways, "together": shared})
    return found


def _counted(intervals: pl.DataFrame) -> dict[str, int]:
    """Sums over a flow's intervals in one direction, under the path's names."""
    names = {"packets": "delivered", "bytes": "delivered_bytes"}
    columns = ("packets", "bytes", "dropped", "marked", "queued", "queueing_ns")
    return {names.get(column, column): int(intervals[column].sum()) for column in columns}


def _files(directory: Path, key: str) -> str | None:
    """The place of programs' {output} files in the run; None without any."""
    place = Path("cells", key, "output")
    try:
        return str(place) if any((directory / place).iterdir()) else None
    except OSError:
        return None


def _timed_out(result: RepetitionResult) -> bool:
    return any(outcome.outcome == "timeout" for outcome in result.outcomes)


def _direction(ledger: DirectionLedger) -> dict[str, Any]:
    return {
        "packets": ledger.in_,
        "bytes": ledger.in_bytes,
        "delivered": ledger.delivered,
        "delivered_bytes": ledger.delivered_bytes,
        "dropped": {cause: number for cause, number in ledger.dropped.items() if number},
        "marked": ledger.marked,
        "queued": ledger.queued,
        "duplicated": ledger.duplicated,
        "corrupted": ledger.corrupted,
        "icmp": ledger.icmp,
        "reordering": ledger.reordering.model_dump() if ledger.reordering else None,
    }


def _fidelity_numbers(fidelity: Fidelity | None) -> dict[str, Any] | None:
    if fidelity is None:
        return None
    late = fidelity.delay_error_ns
    return {"within_budget": fidelity.within_budget, "late_p99_ns": late.p99, "late_max_ns": late.max}
