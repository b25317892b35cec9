"""What losing each packet costs: repetitions with one packet lost, beside the one with none."""

import polars as pl

from crosswind.analysis.losses import (
    NOTHING_NS,
    LossCost,
    connecting_ns,
    exchanges_ns,
    loss_costs,
    packets_of,
    shared_connections,
    slope_ns,
)
from crosswind.catalog import catalog
from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.cell.record import CellRun
from crosswind.decisions.statement import Note, Stored
from crosswind.findings.each_loss.result import EachLoss, PacketLoss
from crosswind.findings.each_loss.sentence import each_loss_sentence
from crosswind.findings.judged import Context, Judging

_HANDSHAKES = {
    "tcp_handshake": "transport_ns", "security_handshake": "security_ns", "upgrade_handshake": "upgrade_ns",
}  # fmt: skip
"""Handshakes, with their columns in samples."""


class AskedEachLoss(Stored):
    """The losses of some cells' packets, as the plan has them."""

    cells: frozenset[int]
    note: Note = None


def judge_each_loss(context: Context) -> list[EachLoss]:
    """A run's cells with a repetition without loss and some with one, under the first seed."""
    asked = map(AskedEachLoss.model_validate, context.record.asked.get("each_loss", ()))
    by_cell: dict[int, list[CellRun]] = {}
    for run in sorted(context.record.cells, key=lambda run: run.repetition):
        by_cell.setdefault(run.cell, []).append(run)
    made = ((each, by_cell.get(cell, [])) for each in asked for cell in sorted(each.cells))
    return [result for each, runs in made if (result := _each_loss(each, runs)) is not None]


def _each_loss(asked: AskedEachLoss, runs: list[CellRun]) -> EachLoss | None:
    clean = next((run for run in runs if run.lost is None and run.finished is not None), None)
    if clean is None:
        return None
    packets = {direction: packets_of(clean, direction) for direction in DIRECTIONS}
    costs = loss_costs(clean, runs)
    if not costs and any(packets.values()):
        return None
    parts = _parts(clean)
    exchanges, connections = clean.samples.height, shared_connections(clean)
    result = EachLoss(
        cell=clean.cell,
        levels=clean.levels,
        exchanges=exchanges,
        connections=connections,
        clean_ns=exchanges_ns(clean) + (0.0 if connections else connecting_ns(clean)),
        packets=packets,
        losses=[_loss(cost, parts) for cost in costs],
        slope_ns=slope_ns(clean, costs),
        slope_failed=sum(cost.weight * cost.failed for cost in costs) / max(exchanges, 1),
        slope_connect_ns=sum(cost.weight * cost.connect_ns for cost in costs) / max(connections, 1),
        of_one_seed=_of_one_seed(clean),
        note=asked.note,
    )
    return result.model_copy(update={"sentence": each_loss_sentence(result)})


def _loss(cost: LossCost, parts_before: dict[str, float]) -> PacketLoss:
    return PacketLoss.model_validate(
        {
            "direction": cost.direction,
            "index": cost.index,
            "cost_ns": cost.total_ns,
            "connect_ns": cost.connect_ns,
            "failed": cost.failed,
            "cause": _cause(_parts(cost.run), parts_before) if cost.total_ns else None,
            "key": cost.run.key,
        }
    )


def _of_one_seed(clean: CellRun) -> str | None:
    """What else is left to chance, so another seed may have other costs."""
    for direction in DIRECTIONS:
        effect = getattr(clean.effect, direction)
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


JUDGING = Judging("each_loss", "each_loss", EachLoss, judge_each_loss)
