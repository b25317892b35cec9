"""An undelayed exchange's time, as the reference for delayed ones.

A cell without loss shows it; failing that, in virtual time, the path's own delay. On the machine's clock the shortest
exchange under loss lost nothing only if a message is one packet: with several, hardly any gets through, and the rest
wait for a window shrunk by losses.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from crosswind.analysis.settings import CellSettings, without_loss
from crosswind.catalog import Carrier, catalog
from crosswind.catalog.path_effect import DirectionEffect
from crosswind.cell.record import CellRun
from crosswind.models.situation import WINDOW_FIELD_BYTES, situation

ABSENT = "no exchange without delay to compare with: add a cell without loss (path.loss = 0%)"
"""The reason for a metric's missing value without a reference."""

_ONE_PACKET_BYTES = 1000
"""One packet over every transport, overhead included; some implementations send two."""
_PACKETS_EACH_WAY = 2
_SURE = 1e-3
"""Maximum probability for a loss in every exchange."""
_QUIC_INITIAL_BYTES = 12_000  # RFC 9002, section 7.2: ten packets of the 1200 bytes of RFC 9000
_HEADER_BYTES = 40  # RFC 791 and 9293


def baseline_times(cells: Mapping[int, Sequence[CellRun]]) -> dict[int, float | None]:
    """Each cell's undelayed exchange, ns; None if unknown."""
    groups: dict[str, list[int]] = {}
    for cell, runs in cells.items():
        groups.setdefault(
            json.dumps(without_loss(runs[0].parameters, runs[0].effect), sort_keys=True, default=str), []
        ).append(cell)
    times: dict[int, float | None] = {}
    for members in groups.values():
        times |= dict.fromkeys(members, _of_group([cells[member] for member in members]))
    return times


def _of_group(cells: Sequence[Sequence[CellRun]]) -> float | None:
    """For cells different in loss alone."""
    settings = [CellSettings.of(runs[0].parameters, runs[0].effect) for runs in cells]
    if any(setting.retransmitted_loss == 0 for setting in settings):
        return _shortest(cells)
    exact_ns = _of_path(cells[0], settings[0])
    if exact_ns is not None:
        return exact_ns
    lossy = zip(cells, settings, strict=True)
    return _shortest(cells) if any(_some_lost_nothing(runs, setting) for runs, setting in lossy) else None


def _shortest(cells: Sequence[Sequence[CellRun]]) -> float | None:
    rows = pl.concat([run.samples for runs in cells for run in runs], rechunk=False).filter(pl.col("outcome") == "ok")
    shortest_ns = rows.select((pl.col("received_ns") - pl.col("sent_ns")).min()).item()
    return None if shortest_ns is None else float(shortest_ns)


def _some_lost_nothing(runs: Sequence[CellRun], settings: CellSettings) -> bool:
    """Whether some exchange in a cell surely lost no packet."""
    if (settings.number("size_bytes") or 1) > _ONE_PACKET_BYTES or settings.mtu_bytes < 1.5 * _ONE_PACKET_BYTES - 1:
        return False
    kept = ((1 - settings.path.forward.loss) * (1 - settings.path.reverse.loss)) ** _PACKETS_EACH_WAY
    return (1 - kept) ** sum(int((run.samples["outcome"] == "ok").sum()) for run in runs) < _SURE


def _of_path(runs: Sequence[CellRun], settings: CellSettings) -> float | None:
    """The path's time for one message and its answer in one round trip; None where more may take part.

    One round trip takes a window as large as the message; on a kept connection it grows from message to message.
    Counted headers are those for TCP or UDP: a transport adds a few bytes.
    """
    parameters, size = runs[0].parameters, settings.number("size_bytes") or 1
    alone = not settings.is_delayed_at_random and settings.number("connections") in (1, None)
    if not alone or any(run.clock != "virtual" for run in runs) or not _fits_window(parameters, settings, size):
        return None
    direction = settings.workload.get("direction") or "echo"
    there, back = (1.0 if direction == "download" else size), (1.0 if direction == "upload" else size)
    taken = ((settings.path.forward, there), (settings.path.reverse, back))
    return sum(way.delay_ns + _serialisation_ns(way, payload, settings) for way, payload in taken)


def _fits_window(parameters: Mapping[str, Any], settings: CellSettings, size: float) -> bool:
    """Whether a message leaves in one flight, at the latest in a connection's second half."""
    read = situation(parameters, settings.path)
    is_tcp = catalog().transports[read.transport].carrier is not Carrier.QUIC
    initial = read.initial_window * read.mss_bytes if is_tcp else _QUIC_INITIAL_BYTES
    if size <= initial:
        return True
    doublings = math.ceil(math.log2(size / initial))
    grows = settings.workload.get("connection") != "new" and (settings.number("messages") or 0) > 2 * doublings
    return grows and size <= WINDOW_FIELD_BYTES


def _serialisation_ns(way: DirectionEffect, payload: float, settings: CellSettings) -> float:
    if way.rate_bps is None:
        return 0.0
    packets = math.ceil(payload / (settings.mtu_bytes - _HEADER_BYTES))
    return 8e9 * (payload + packets * (_HEADER_BYTES + way.frame_bytes)) / way.rate_bps
