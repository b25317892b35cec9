"""The page for a programs' summary (`crosswind.api.programs_summary`): their ends, the path's effects, and fidelity."""

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from crosswind.catalog.explained import Connection
from crosswind.catalog.path_effect import DIRECTION_NAMES
from crosswind.catalog.warning import ResultWarning
from crosswind.report.page import Page, Section, Sentence, Tone
from crosswind.report.tables.table import Table, names, numbers
from crosswind.report.text.connections import connection_sentence, spent_text
from crosswind.report.text.format import NOT_MEASURED, bytes_text, count_of, quantity, short_number
from crosswind.text.quantities import RATE

_LONGEST = 3
"""Connections with their own sentence."""


def page_of(summary: dict[str, Any]) -> Page:
    """One repetition in full, several with a line each."""
    repetitions: list[dict[str, Any]] = summary["repetitions"]
    clock = "virtual time" if summary["clock"] == "virtual" else "real time"
    several = len(repetitions) > 1
    names = [f"#{number}: " if several else "" for number in range(1, len(repetitions) + 1)]
    return Page(
        title=f"{_ends_summary(repetitions) if several else _ended(repetitions[0])}, {clock}",
        about="crosswind exec",
        verdict=_fidelity(names, repetitions),
        banners=[
            Sentence(f"warning: {name}{ResultWarning(**warning).sentence}", Tone.DOUBTFUL)
            for name, repetition in zip(names, repetitions, strict=True)
            for warning in repetition["warnings"]
        ],
        lines=[
            Sentence(text)
            for text in (
                *(map(_one_line, names, repetitions) if several else _lines(repetitions[0])),
                *_round_trips(summary),
                *_places(summary),
            )
        ],
        sections=[Section("Flows", tables=_flow_tables(repetitions))],
    )


def _ends_summary(repetitions: Sequence[dict[str, Any]]) -> str:
    failed = sum(repetition["exit_status"] != 0 for repetition in repetitions)
    times = [repetition["time_ns"] for repetition in repetitions if repetition["time_ns"] is not None]
    ended = f"{len(repetitions)} repetitions, {failed} of them failed"
    if not times:
        return ended
    return (
        f"{ended}, {quantity(min(times), 'ns')} to {quantity(max(times), 'ns')}, median {quantity(median(times), 'ns')}"
    )


def _one_line(name: str, repetition: dict[str, Any]) -> str:
    carried = ", ".join(f"{words} {_amount(repetition[key])}" for key, words in DIRECTION_NAMES.items())
    return f"{name}{_ended(repetition)}; {carried}; {_retransmissions(repetition)}"


def _lines(repetition: dict[str, Any]) -> Iterator[str]:
    """The path's traffic, and time breakdowns for the command's longest connections, and for flows."""
    yield from (f"{words}: {_amount(repetition[key])}" for key, words in DIRECTION_NAMES.items())
    yield _retransmissions(repetition)
    connections: Sequence[Connection] = repetition["connections"]
    names_of_flows = {flow["port"]: flow["name"] for flow in repetition["flows"] if flow["port"] is not None}
    own = [connection for connection in connections if connection.server_port not in names_of_flows]
    yield from map(connection_sentence, own[:_LONGEST])
    if others := own[_LONGEST:]:
        yield f"{count_of(len(others), 'other connection')}: {spent_text(others)}"
    for name in dict.fromkeys(names_of_flows.values()):
        of_flow = [connection for connection in connections if names_of_flows.get(connection.server_port) == name]
        if of_flow:
            yield f"{name}, {count_of(len(of_flow), 'connection')}: {spent_text(of_flow)}"
    if repetition["flows"] and all(flow["together"] is None for flow in repetition["flows"]):
        yield "flows: not all of them ran beside the command for a tenth of a second, so there are no rates and shares"


def _flow_tables(repetitions: Sequence[dict[str, Any]]) -> list[Table]:
    """The command's and each named flow's share while all ran, and the path's effects on it."""
    groups = [
        (number, name, [flow["together"] for flow in repetition["flows"] if flow["name"] == name])
        for number, repetition in enumerate(repetitions, 1)
        for name in dict.fromkeys(flow["name"] for flow in repetition["flows"] if flow["flow"] is not None)
    ]
    known = [flow for _, _, flows in groups for flow in flows if flow is not None]
    if not known:
        return []
    divisor, unit = RATE.scale_for([flow["rate_bps"] for flow in known])
    ways = {DIRECTION_NAMES[flow["direction"]] for flow in known}
    directed = ["direction"] if len(ways) > 1 else []
    rows = []
    for number, name, flows in groups:
        told = [NOT_MEASURED] * 4
        if None not in flows:
            delivered, dropped, marked = (
                sum(flow[key] for flow in flows) for key in ("delivered", "dropped", "marked")
            )
            told = [
                short_number(sum(flow["rate_bps"] for flow in flows) / divisor),
                _percent(sum(flow["share"] or 0 for flow in flows), 1),
                _percent(dropped, dropped + delivered),
                _percent(marked, delivered),
            ]
        # Flows under one name are alike, and go one way.
        way = [DIRECTION_NAMES[flows[0]["direction"]] if flows[0] else ""] if directed else []
        several = [f"#{number}"] if len(repetitions) > 1 else []
        rows.append([*several, name if len(flows) == 1 else f"{name} ({len(flows)})", *way, *told])
    numbered = ["repetition"] if len(repetitions) > 1 else []
    rate = f"rate, {unit}" if directed else f"{ways.pop()}, {unit}"
    columns = [*names(*numbered, "flow", *directed), *numbers(rate, "share, %", "dropped, %", "marked, %")]
    return [Table("Flows", columns, rows)]


def _percent(part: float, whole: float) -> str:
    return short_number(100 * part / whole) if whole else NOT_MEASURED


def _round_trips(summary: dict[str, Any]) -> Iterator[str]:
    if "round_trips" not in summary:
        return
    line = summary["round_trips"]
    if line is None:
        yield "round trips: not known, since the command did not succeed over every delay"
        return
    besides, off = (quantity(round(line[name]), "ns") for name in ("offset_ns", "deviation_ns"))
    over = ", ".join(line["delays"])
    yield f"round trips: {line['trips']:.2f}, and {besides} besides (over delays of {over} each way; {off} off a line)"


def _places(summary: dict[str, Any]) -> Iterator[str]:
    """Where the run and the programs' files are, if they are kept."""
    if summary["run"] is not None:
        yield f"run: {summary['run']}"
        files = filter(None, (repetition["files"] for repetition in summary["repetitions"]))
        yield from (f"files: {Path(summary['run'], place)}" for place in files)


def _ended(repetition: dict[str, Any]) -> str:
    """How the client ended, and when."""
    if repetition["timed_out"]:
        return "the command was ended at its timeout"
    how = (
        f"exit status {repetition['exit_status']}"
        if repetition["signal"] is None
        else f"signal {_signal_text(repetition['signal'])}"
    )
    return f"{how} after {quantity(repetition['time_ns'], 'ns')}"


def _signal_text(number: int) -> str:
    """A signal with its name: "9 (SIGKILL)"."""
    names = {known.value: known.name for known in signal.Signals}
    return f"{number} ({names[number]})" if number in names else str(number)


def _amount(direction: dict[str, Any]) -> str:
    carried = f"{count_of(direction['packets'], 'packet')}, {bytes_text(direction['bytes'])}"
    dropped = [f"{number} dropped by {cause}" for cause, number in direction["dropped"].items()]
    dropped += [f"{direction[name]} {name}" for name in ("duplicated", "corrupted") if direction[name]]
    marked = [f"{direction['marked']} marked"] if direction["marked"] else []
    if late := direction["reordering"]:
        offset = quantity(late["late_time_offset_ns"], "ns")
        marked.append(f"{late['packets']} reordered by up to {count_of(late['extent'], 'packet')} and {offset}")
    told = [f"{direction['icmp']} answered by ICMP"] if direction["icmp"] else []
    queued = [f"{direction['queued']} still under way"] if direction["queued"] else []
    if marked and not dropped:
        dropped = ["none dropped"]
    return f"{carried} ({', '.join([*dropped, *marked, *told, *queued]) or 'none dropped'})"


def _retransmissions(repetition: dict[str, Any]) -> str:
    again = repetition["tcp_retransmits"]
    if again is None:
        return "TCP retransmissions not counted"
    return f"TCP retransmissions: client {again['client']}, server {again['server']}"


def _fidelity(names: Sequence[str], repetitions: Sequence[dict[str, Any]]) -> Sentence:
    """Whether to trust the numbers, and how late packets were at most."""
    reasons = [
        f"{name}{'; '.join(repetition['reasons'])}"
        for name, repetition in zip(names, repetitions, strict=True)
        if not repetition["valid"]
    ]
    if reasons:
        return Sentence(f"NOT VALID: {'; '.join(reasons)}", Tone.BAD)
    late_ns = [repetition["fidelity"]["late_p99_ns"] for repetition in repetitions if repetition["fidelity"]]
    if not late_ns:
        return Sentence("a path without an emulator", Tone.GOOD)
    late = quantity(max(late_ns), "ns")
    return Sentence(f"fidelity: within budget, 99 % of packets at most {late} late", Tone.GOOD)
