"""Run records made by hand, whose every number a test can work out."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import polars as pl

from cell_events import FINISHED
from crosswind.analysis.cells import collect
from crosswind.analysis.result import CellResult
from crosswind.catalog.tables import SAMPLES
from crosswind.cell.failure import ErrorKind, Failure
from crosswind.cell.record import CellRun, RunRecord
from crosswind.cell.result import Finished
from crosswind.findings.judged import Context
from effects import effect_of

MS = 1_000_000


def finished(*, valid: bool = True, reasons: Sequence[str] = (), packets: int = 10, lost: int = 0) -> dict[str, Any]:
    """A `finished` event as it is stored: `packets` in and `lost` of them dropped, in each direction."""
    way = {
        "in": packets,
        "delivered": packets - lost,
        "dropped": {"loss": lost, "queue": 0, "device": 0},
        "marked": 0,
        "hops": [],
        "queued": 0,
        "in_bytes": packets * 60,
        "delivered_bytes": (packets - lost) * 60,
        "icmp": 0,
        "duplicated": 0,
        "corrupted": 0,
    }
    late = {"n": packets, "p50": 9_000, "p99": 41_000, "max": 90_000}
    return {
        **FINISHED,
        "valid": valid,
        "reasons": list(reasons),
        "ledger": {"forward": way, "reverse": way, "closed": True},
        "fidelity": {
            **FINISHED["fidelity"],
            "delay_error_ns": late,
            "starvation": waiting(0.01),
            "within_budget": valid,
        },
    }


def processor_time(client_ns: int, server_ns: int) -> dict[str, int]:
    """Processor time of both hosts, as a `finished` event has it."""
    return {"client_ns": client_ns, "server_ns": server_ns, "emulator_ns": 1}


def waiting(fraction: float) -> dict[str, Any]:
    """How long a thread waited for a processor: for this share of the time."""
    return {"run_ns": 1000, "wait_ns": 1, "elapsed_ns": 1_000_000, "fraction": fraction}


def echoes(rtts_ns: Sequence[int | None], *, connect_ns: int | None = None, connection: Sequence[int] | None = None):
    """Samples of echoes, one after the other; None is a timeout. The first one opened the connection."""
    count = len(rtts_ns)
    sent = [index * 1000 * MS for index in range(count)]
    return table(
        count,
        connection=list(connection or [0] * count),
        intended_ns=[at - 2 * MS for at in sent],
        sent_ns=sent,
        received_ns=[None if rtt is None else at + rtt for at, rtt in zip(sent, rtts_ns, strict=True)],
        connect_ns=[connect_ns] + [None] * (count - 1),
        outcome=["timeout" if rtt is None else "ok" for rtt in rtts_ns],
    )


def transfers(bits_per_s: Sequence[float], *, seconds: int = 8, connect_ns: int = MS):
    """Samples of transfers of some seconds each, every one numbered as connection 0."""
    count = len(bits_per_s)
    return table(
        count,
        connection=[0] * count,
        intended_ns=[0] * count,
        sent_ns=[0] * count,
        received_ns=[seconds * 1000 * MS] * count,
        connect_ns=[connect_ns] * count,
        received_bytes=[round(rate * seconds / 8) for rate in bits_per_s],
        wire_ns=[seconds * 1000 * MS - MS] * count,
        outcome=["ok"] * count,
    )


def timed(wire_ns: Sequence[int], *, size: int = 1_000_000):
    """Samples of transfers of a size that took so long on the wire; none: a repetition in which all of them failed."""
    count = len(wire_ns)
    return table(
        count,
        connection=[0] * count,
        intended_ns=[0] * count,
        sent_ns=[0] * count,
        received_ns=[time + MS for time in wire_ns],
        connect_ns=[MS] * count,
        received_bytes=[size] * count,
        wire_ns=list(wire_ns),
        outcome=["ok"] * count,
    )


COSTS = {"cpu_client", "cpu_server"}
"""Metrics that every cell with samples has, whatever its workload is."""


def path(*, loss: float = 0.0, delay_ns: int = 0, rate_bps: int | None = None) -> dict[str, Any]:
    """The same path in both directions."""
    way = {"loss": loss, "delay_ns": delay_ns, "rate_bps": rate_bps, "queue": None}
    return {"forward": way, "reverse": way}


def table(count: int, **columns: list[Any]) -> pl.DataFrame:
    """A samples table; columns not given are null."""
    columns = {"exchange": list(range(count)), "flow": [0] * count} | columns
    return pl.DataFrame([
        pl.Series(key, columns[key], dtype) if key in columns else nulls(key, count)
        for key, dtype in SAMPLES.schema.items()
    ])  # fmt: skip


@cache
def nulls(key: str, count: int) -> pl.Series:
    """A column that is null. Made once for all tables: simulated studies have thousands."""
    return pl.Series(key, [None] * count, SAMPLES.schema[key])


def run(cell: int, samples: pl.DataFrame | None, levels: dict[str, str] | None = None, **changes: Any) -> CellRun:
    """One repetition. Without samples it failed. changes: repetition, parameters, attempts, end (as `finished`)."""
    repetition = changes.get("repetition", 0)
    parameters = changes.get("parameters", {"workload": {"kind": "echo", "transport": "udp", "timeout_ns": 1000 * MS}})
    failure = None if samples is not None else Failure(ErrorKind.DEADLINE, "deadline of 600 s passed", "wait")
    end = None
    if samples is not None:
        given = changes.get("end", finished())
        counted = {"samples": counts_of(samples)} if given["samples"] is FINISHED["samples"] else {}
        end = Finished.from_stored(given | counted)
    return CellRun(
        key=f"{cell}-{repetition}",
        cell=cell,
        repetition=repetition,
        block=0,
        levels=levels or {},
        parameters=parameters,
        effect=effect_of(parameters),
        finished=end,
        failure=failure,
        samples=SAMPLES.empty if samples is None else samples,
        **({"attempts": changes["attempts"]} if "attempts" in changes else {}),
    )


def counts_of(samples: pl.DataFrame, errors: Mapping[str, str] | None = None) -> dict[str, Any]:
    """How many exchanges there are, and how those ended that did not go well, as a cell counts them."""
    failed = Counter(samples.filter(pl.col("outcome") != "ok")["outcome"]).most_common()
    outcomes = [{"outcome": name, "count": count, "first_error": (errors or {}).get(name)} for name, count in failed]
    lost = sum(count for _, count in failed)
    return {"rows": samples.height, "ok": samples.height - lost, "lost": lost, "outcomes": outcomes}


def runs(
    cell: int, tables: Sequence[pl.DataFrame], levels: dict[str, str] | None = None, **changes: Any
) -> list[CellRun]:
    """Repetitions of one cell, one for each samples table."""
    return [run(cell, samples, levels, repetition=at, **changes) for at, samples in enumerate(tables)]


def parted(values: Sequence[Any], parts: int) -> list[list[Any]]:
    """Values dealt out in turn, so that every part has some of all."""
    return [list(values[at::parts]) for at in range(parts)]


_KINDS = {
    "published": "published",
    "questions": "question",
    "figures": "figure",
    "fits": "fit",
    "thresholds": "threshold",
    "checks": "check",
    "ladders": "ladder",
    "break_evens": "break_even",
}
"""Kinds of finding, by the argument of `record` that has what is asked for."""


def record(*cells: CellRun, planned: int | None = None, **changes: Any) -> RunRecord:
    """A run of these repetitions. changes: those of the record, and of each kind what is asked for."""
    asked = {kind: changes.pop(name, changes.pop(kind, [])) for name, kind in _KINDS.items()}
    given = {"study": {}, "title": "A title", "name": "a-study", "models": [], "notes": []} | changes
    return RunRecord(
        asked=asked,
        cells=list(cells),
        planned=len(cells) if planned is None else planned,
        provenance={"seed": 1},
        **given,
    )


def texts(cell: CellResult) -> list[str]:
    """What a cell warns of."""
    return [warning.text for warning in cell.warnings]


def context_of(made: RunRecord) -> Context:
    """What findings of a run are made from, without the estimates that its report has beside them."""
    return Context(made, collect(made), [], 0.95, {})
