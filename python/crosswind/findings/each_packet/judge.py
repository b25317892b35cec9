"""What each packet costs: repetitions with one packet lost or held back, beside the clean one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from crosswind.analysis.disturbed import (
    NOTHING_NS,
    Disturbance,
    Taken,
    disturbances,
    failure_of,
    packets_of,
    pairs_of,
    shared_connections,
    slope_ns,
)
from crosswind.catalog import catalog
from crosswind.catalog.disturbed import Packet, sampled
from crosswind.catalog.explained import Explained, Piece
from crosswind.catalog.metrics import METRICS
from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.cell.record import CellRun
from crosswind.decisions.statement import Note, Stored
from crosswind.findings.each_packet.curve import loss_curve
from crosswind.findings.each_packet.result import EachPacket, LossCurve, ModelSlope, PacketCost
from crosswind.findings.each_packet.sentence import each_packet_sentence
from crosswind.findings.judged import Context, Judging
from crosswind.models import MODELS, predict_situation
from crosswind.models.situation import situation
from crosswind.text.quantities import TIME

_HANDSHAKES = {
    "tcp_handshake": "transport_ns", "security_handshake": "security_ns", "upgrade_handshake": "upgrade_ns",
}  # fmt: skip
"""Handshakes, with their columns in samples."""
_NO_PARTS = ("exchange", "whole_ns")
_TIMELINES = 6
_TCP = 6
"""Its IP protocol number."""
_RATES = (1e-4, 2e-4)
"""Rates of loss for a model's slope."""


class AskedEachPacket(Stored):
    """The packets of some cells, as the plan has them."""

    cells: frozenset[int]
    most: int
    hold_ns: int | None = None
    note: Note = None


def judge_each_packet(context: Context) -> list[EachPacket]:
    """A run's cells with a clean repetition and some with a disturbed packet, under the first seed."""
    asked = map(AskedEachPacket.model_validate, context.record.asked.get("each_packet", ()))
    by_cell: dict[int, list[CellRun]] = {}
    for run in sorted(context.record.cells, key=lambda run: run.repetition):
        by_cell.setdefault(run.cell, []).append(run)
    made = ((each, by_cell.get(cell, [])) for each in asked for cell in sorted(each.cells))
    return [result for each, runs in made if (result := _each_packet(each, runs, context.level)) is not None]


def _each_packet(asked: AskedEachPacket, runs: list[CellRun], level: float) -> EachPacket | None:
    clean = next((run for run in runs if run.disturbed is None and run.finished is not None), None)
    if clean is None:
        return None
    packets = packets_of(clean)
    costs = disturbances(clean, runs, asked.hold_ns)
    if not costs and any(packets.values()):
        return None
    parts, sent = _parts(clean), _sent(clean)
    exchanges, connections = clean.samples.height, shared_connections(clean)
    taken = Taken.of(clean)
    clean_ns = taken.exchanges_ns + (0.0 if connections else taken.connecting_ns)
    is_lost = asked.hold_ns is None
    untried = len(set(sampled(packets, asked.most)) - {cost.packets[0] for cost in costs})
    # Sums need every chosen packet.
    summed = [] if untried else costs
    curve: LossCurve | None = None
    if is_lost and exchanges:
        curve = loss_curve(clean_ns / exchanges, exchanges, summed, pairs_of(clean, runs), level=level)
    result = EachPacket(
        cell=clean.cell,
        levels=clean.levels,
        hold_ns=asked.hold_ns,
        exchanges=exchanges,
        connections=connections,
        clean_ns=clean_ns,
        packets=packets,
        costs=[_cost(cost, parts, sent) for cost in costs],
        untried=untried,
        failure=failure_of(clean, runs, asked.hold_ns),
        slope_ns=slope_ns(clean, summed) if is_lost else None,
        slope_failed=None if untried else _share(((cost.weight, cost.failed) for cost in costs), exchanges),
        slope_delayed=None if untried else _share(((cost.weight, cost.delayed) for cost in costs), exchanges),
        slope_connect_ns=None if untried else _share(((cost.weight, cost.connect_ns) for cost in costs), connections),
        curve=curve,
        models=list(_models(clean, slope_ns(clean, summed, connecting=False))) if is_lost else [],
        timelines=list(_timelines(costs, taken)),
        of_one_seed=_of_one_seed(clean),
        note=asked.note,
    )
    return result.model_copy(update={"sentence": each_packet_sentence(result)})


def _timelines(costs: Sequence[Disturbance], before: Taken) -> Iterator[Explained]:
    """The exchanges that the costliest packets delay most, one for each cost.

    Shared connections' costs have none.
    """
    kinds = {round(cost.total_ns or 0, -6): cost for cost in reversed(costs) if (cost.total_ns or 0) > cost.connect_ns}
    for _, cost in sorted(kinds.items(), reverse=True)[:_TIMELINES]:
        run, now = cost.run, Taken.of(cost.run)
        grown = np.nan_to_num(now.whole_ns - before.whole_ns)
        place = int(grown.argmax())
        exchange = int(run.samples["exchange"].sort()[place])
        spent = next(run.spent.filter(exchange=exchange).iter_rows(named=True), None)
        pieces = run.pieces().filter(exchange=exchange).drop("exchange")
        if spent is None or pieces.is_empty():
            continue
        parts = {name.removesuffix("_ns"): ns for name, ns in spent.items() if name not in _NO_PARTS and ns}
        yield Explained(
            key=run.key,
            cell=run.cell,
            repetition=run.repetition,
            levels=run.levels,
            whole_ns=spent["whole_ns"],
            pieces=[Piece(**row) for row in pieces.iter_rows(named=True)],
            exchange=exchange,
            usual_ns=spent["whole_ns"] - float(grown[place]),
            parts=parts,
        )


def _cost(cost: Disturbance, parts_before: dict[str, float], sent: Mapping[Packet, tuple[int, str]]) -> PacketCost:
    at_ns, carries = sent.get(cost.packets[0], (None, None))
    return PacketCost.model_validate(
        {
            "direction": cost.direction,
            "index": cost.index,
            "at_ns": at_ns,
            "carries": carries,
            "cost_ns": cost.total_ns,
            "connect_ns": cost.connect_ns,
            "failed": cost.failed,
            "delayed": cost.delayed,
            "cause": _cause(_parts(cost.run), parts_before) if cost.total_ns else None,
            "key": cost.run.key,
        }
    )


def _share(of_packets: Iterable[tuple[float, float]], among: int) -> float:
    return sum(weight * number for weight, number in of_packets) / max(among, 1)


def _sent(clean: CellRun) -> dict[Packet, tuple[int, str]]:
    """Each packet's send time since the first packet, and its content."""
    own = clean.packets.filter(pl.col("copy") == 0).sort("in_ns")
    first, opened = own["in_ns"].min(), set[tuple[str, int, int]]()
    sent: dict[Packet, tuple[int, str]] = {}
    for row in own.iter_rows(named=True):
        flow = row["direction"], row["source_port"], row["destination_port"]
        # A connection's first packet in each direction, where nothing is lost.
        opens = row["protocol"] == _TCP and flow not in opened
        opened.add(flow)
        payload = "no data" if row["payload_bytes"] == 0 else f"{row['payload_bytes']} B"
        carries = ("SYN" if row["direction"] == "forward" else "SYN-ACK") if opens else payload
        sent[row["direction"], row["index"]] = row["in_ns"] - first, carries
    return sent


def _models(clean: CellRun, measured_ns: float | None) -> Iterator[ModelSlope]:
    """Slopes by models for this workload's times; none without a measured one."""
    if measured_ns is None:
        return
    cell = situation(clean.parameters, clean.effect, None)
    for name, model in MODELS.items():
        if model.is_slow or METRICS[model.metric].unit is not TIME:
            continue
        times = [predict_situation(name, replace(cell, loss=rate, loss_back=rate)) for rate in _RATES]
        values = [each.uncapped for each in times if each is not None and each.uncapped is not None]
        if len(values) == len(_RATES) and (difference := values[1] - values[0]):
            slope = difference / (_RATES[1] - _RATES[0])
            yield ModelSlope(model=name, title=model.title, slope_ns=slope, measured_ns=measured_ns)


def _of_one_seed(clean: CellRun) -> str | None:
    """What else is left to chance, so another seed may have other costs."""
    for direction in DIRECTIONS:
        effect = getattr(clean.effect, direction)
        if effect.loss:
            return "packets are lost at random"
        if effect.random_delay:
            return "packets are delayed at random"
        if effect.background_bps:
            return "background traffic is random"
        if clean.finished is not None and any(getattr(clean.finished.ledger, direction).dropped.values()):
            return "the path drops packets without loss too"
    return None


def _parts(run: CellRun) -> dict[str, float]:
    """A repetition's time breakdown, ns by part.

    A kept connection belongs to no exchange: its handshakes come from the samples.
    """
    names = [name for name in catalog().parts if f"{name}_ns" in run.spent.columns]
    sums = run.spent.select(pl.col(f"{name}_ns").sum() for name in names).row(0) if run.spent.height else ()
    parts = {name: float(total or 0) for name, total in zip(names, sums, strict=False)}
    if not any(parts.get(name) for name in _HANDSHAKES):
        parts |= {name: float(run.samples[column].sum() or 0) for name, column in _HANDSHAKES.items()}
    return parts


def _cause(parts: dict[str, float], before: dict[str, float]) -> str | None:
    """The part that grew most."""
    grown = {name: total - before.get(name, 0.0) for name, total in parts.items()}
    most = max(grown, key=lambda name: grown[name], default=None)
    return most if most is not None and grown[most] >= NOTHING_NS else None


JUDGING = Judging("each_packet", "each_packet", EachPacket, judge_each_packet)
