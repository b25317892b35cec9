"""What `exec` and `shell` say after the client: how it ended, what the path did, and whether to trust that."""

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from crosswind.cell.result import DirectionLedger, Fidelity
from crosswind.record import SAMPLE_SCHEMA
from crosswind.report.text.format import count_of, quantity
from crosswind.store.result import CellResult
from crosswind.store.run import Run
from crosswind.store.tables import read_table

SCHEMA = "crosswind.exec/1"
TIMED_OUT = 124
"""Exit status of a client that was ended at its timeout, as timeout(1) has it."""

_DIRECTIONS = {"forward": "client to server", "reverse": "server to client"}


def exit_status(result: CellResult) -> int:
    """What a client that has run makes its caller end with: 128 and the number of a signal that ended it."""
    assert result.finished is not None
    assert result.finished.program is not None  # The workload has one.
    if _timed_out(result):
        return TIMED_OUT
    signal = result.finished.program.signal
    return 128 + signal if signal is not None else result.finished.program.exit_code or 0


def summary_of(run: Run) -> dict[str, Any]:
    """The summary of a run whose repetitions have all finished, as docs/programs.md describes it."""
    results = list(run.results().values())
    repetitions = [_repetition(run.directory, result) for result in results]
    statuses = [repetition["exit_status"] for repetition in repetitions]
    return {
        "schema": SCHEMA,
        "exit_status": next(filter(None, statuses), 0),
        "clock": "virtual" if results[0].planned.is_virtual else "real",
        "seed": run.manifest.provenance["seed"],
        "repetitions": repetitions,
    }


def lines_of(summary: dict[str, Any]) -> list[str]:
    """The same for people: one repetition in full, several with a line each."""
    repetitions: list[dict[str, Any]] = summary["repetitions"]
    clock = "virtual time" if summary["clock"] == "virtual" else "real time"
    if len(repetitions) == 1:
        (only,) = repetitions
        lines = [f"crosswind: {_ended(only)}, {clock}", *_path_lines(only), f"  {_fidelity(only)}"]
        return [*lines, *_warning_lines(only)]
    times = [one["time_ns"] for one in repetitions if one["time_ns"] is not None]
    failed = sum(one["exit_status"] != 0 for one in repetitions)
    head = f"crosswind: {len(repetitions)} repetitions, {failed} of them failed, {clock}"
    if times:
        ends = f"{quantity(min(times), 'ns')} to {quantity(max(times), 'ns')}"
        head += f"; {ends}, median {quantity(median(times), 'ns')}"
    lines = [head]
    for number, one in enumerate(repetitions, start=1):
        carried = ", ".join(f"{words} {_amount(one[key])}" for key, words in _DIRECTIONS.items())
        lines.append(f"  #{number}: {_ended(one)}; {carried}; {_again(one)}; {_fidelity(one)}")
        lines += _warning_lines(one)
    return lines


def _repetition(directory: Path, result: CellResult) -> dict[str, Any]:
    finished = result.finished
    assert finished is not None
    assert finished.program is not None
    samples = read_table(directory / "cells" / result.key / "samples.parquet", SAMPLE_SCHEMA)
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
        "fidelity": _fidelity_numbers(finished.fidelity),
        "valid": finished.valid,
        "reasons": list(finished.reasons),
        "warnings": list(finished.warnings),
        "key": result.key,
    }


def _timed_out(result: CellResult) -> bool:
    return any(one.outcome == "timeout" for one in result.outcomes)


def _direction(ledger: DirectionLedger) -> dict[str, Any]:
    return {
        "packets": ledger.in_,
        "bytes": ledger.in_bytes,
        "delivered": ledger.delivered,
        "delivered_bytes": ledger.delivered_bytes,
        "dropped": {cause: number for cause, number in ledger.dropped.items() if number},
        "queued": ledger.queued,
    }


def _fidelity_numbers(fidelity: Fidelity | None) -> dict[str, Any] | None:
    if fidelity is None:
        return None
    late = fidelity.delay_error_ns
    return {"within_budget": fidelity.within_budget, "late_p99_ns": late.p99, "late_max_ns": late.max}


def _ended(one: dict[str, Any]) -> str:
    """How the client ended, and when."""
    if one["timed_out"]:
        return "the command was ended at its timeout"
    how = f"signal {one['signal']}" if one["signal"] is not None else f"exit status {one['exit_status']}"
    return f"{how} after {quantity(one['time_ns'], 'ns')}"


def _path_lines(one: dict[str, Any]) -> list[str]:
    lines = [f"  {words}: {_amount(one[key])}" for key, words in _DIRECTIONS.items()]
    return [*lines, f"  {_again(one)}"]


def _amount(direction: dict[str, Any]) -> str:
    carried = f"{count_of(direction['packets'], 'packet')}, {_size(direction['bytes'])}"
    dropped = [f"{number} dropped by {cause}" for cause, number in direction["dropped"].items()]
    queued = [f"{direction['queued']} still under way"] if direction["queued"] else []
    return f"{carried} ({', '.join([*dropped, *queued]) or 'none dropped'})"


def _size(size_bytes: int) -> str:
    """Three digits, or four: 1810 -> "1.81 kB"."""
    power = min(3, (len(str(size_bytes)) - 1) // 3)
    return f"{size_bytes / 1000**power:.{4 if power else 3}g} {('B', 'kB', 'MB', 'GB')[power]}"


def _again(one: dict[str, Any]) -> str:
    again = one["tcp_retransmits"]
    if again is None:
        return "TCP retransmissions not counted"
    return f"TCP retransmissions: client {again['client']}, server {again['server']}"


def _fidelity(one: dict[str, Any]) -> str:
    fidelity = one["fidelity"]
    if fidelity is None:
        return "a path without an emulator" if one["valid"] else f"NOT VALID: {'; '.join(one['reasons'])}"
    if one["valid"]:
        return f"fidelity: within budget, 99 % of packets at most {quantity(fidelity['late_p99_ns'], 'ns')} late"
    return f"NOT VALID: {'; '.join(one['reasons'])}"


def _warning_lines(one: dict[str, Any]) -> Sequence[str]:
    return [f"  warning: {text}" for text in one["warnings"]]
