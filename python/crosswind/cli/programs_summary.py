"""What `exec` and `shell` say after the client, for people."""

import signal
from collections.abc import Sequence
from statistics import median
from typing import Any

from crosswind.report.text.format import count_of, quantity

_DIRECTIONS = {"forward": "client to server", "reverse": "server to client"}


def lines_of(summary: dict[str, Any]) -> list[str]:
    """A summary (`crosswind.programs_summary`): one repetition in full, several with a line each."""
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


def _ended(one: dict[str, Any]) -> str:
    """How the client ended, and when."""
    if one["timed_out"]:
        return "the command was ended at its timeout"
    how = f"exit status {one['exit_status']}" if one["signal"] is None else f"signal {_signal_text(one['signal'])}"
    return f"{how} after {quantity(one['time_ns'], 'ns')}"


def _signal_text(number: int) -> str:
    """A signal with its name: "9 (SIGKILL)"."""
    names = {known.value: known.name for known in signal.Signals}
    return f"{number} ({names[number]})" if number in names else str(number)


def _path_lines(one: dict[str, Any]) -> list[str]:
    lines = [f"  {words}: {_amount(one[key])}" for key, words in _DIRECTIONS.items()]
    return [*lines, f"  {_again(one)}"]


def _amount(direction: dict[str, Any]) -> str:
    carried = f"{count_of(direction['packets'], 'packet')}, {_size(direction['bytes'])}"
    dropped = [f"{number} dropped by {cause}" for cause, number in direction["dropped"].items()]
    told = [f"{direction['icmp']} answered by ICMP"] if direction["icmp"] else []
    queued = [f"{direction['queued']} still under way"] if direction["queued"] else []
    return f"{carried} ({', '.join([*dropped, *told, *queued]) or 'none dropped'})"


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
