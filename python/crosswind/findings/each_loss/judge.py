"""What losing each packet costs: repetitions with one packet lost, beside the one with none."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import polars as pl

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
"""Parts of connecting, and their columns of samples."""
NOTHING_NS = 1_000.0
"""Below it a loss costs nothing: a host's processing of another packet, in virtual time."""


class AskedEachLoss(Stored):
    """The losses of some cells' packets, as the plan has them."""

    cells: frozenset[int]
    note: Note = None


def judge_each_loss(context: Context) -> list[EachLoss]:
    """A run's cells with a repetition without loss and some with one."""
    asked = map(AskedEachLoss.model_validate, context.record.asked.get("each_loss", ()))
    by_cell: dict[int, list[CellRun]] = {}
    for run in context.record.cells:
        by_cell.setdefault(run.cell, []).append(run)
    made = ((each, by_cell.get(cell, [])) for each in asked for cell in sorted(each.cells))
    return [result for each, runs in made if (result := _each_loss(each, runs)) is not None]


def _each_loss(asked: AskedEachLoss, runs: Sequence[CellRun]) -> EachLoss | None:
    clean = next((run for run in runs if run.lost is None and run.finished is not None), None)
    if clean is None or clean.finished is None:
        return None
    losses = sorted(_losses(clean, runs), key=lambda loss: (DIRECTIONS.index(loss.direction), loss.index))
    packets = {direction: getattr(clean.finished.ledger, direction).in_ for direction in DIRECTIONS}
    if not losses and any(packets.values()):
        return None
    exchanges = clean.samples.height
    connections = _shared_connections(clean)
    weights = [weight for way in DIRECTIONS for weight in weights_of(losses, way, packets[way])]
    weighted = list(zip(weights, losses, strict=True))
    costs = [weight * (loss.cost_ns - loss.connect_ns) for weight, loss in weighted if loss.cost_ns is not None]
    failed = sum(weight * loss.failed for weight, loss in weighted)
    result = EachLoss(
        cell=clean.cell,
        levels=clean.levels,
        exchanges=exchanges,
        connections=connections,
        clean_ns=_exchanges_ns(clean) + (0.0 if connections else _connecting_ns(clean)),
        packets=packets,
        losses=losses,
        slope_ns=sum(costs) / exchanges if len(costs) == len(losses) and exchanges else None,
        slope_failed=failed / max(exchanges, 1),
        slope_connect_ns=sum(weight * loss.connect_ns for weight, loss in weighted) / max(connections, 1),
        of_one_seed=_of_one_seed(clean),
        note=asked.note,
    )
    return result.model_copy(update={"sentence": each_loss_sentence(result)})


def _of_one_seed(clean: CellRun) -> str | None:
    """What else in a cell is left to chance, so that another seed may have other costs."""
    for direction in DIRECTIONS:
        effect = getattr(clean.effect, direction)
        if effect.random_delay:
            return "packets are delayed at random"
        if effect.background_bps:
            return "background traffic is random"
        if clean.finished is not None and any(getattr(clean.finished.ledger, direction).dropped.values()):
            return "the path drops packets without loss too"
    return None


def weights_of(losses: Sequence[PacketLoss], direction: str, count: int) -> Iterator[float]:
    """For each of a direction's losses, how many packets it stands for: half of those up to either neighbour."""
    indexes = [loss.index for loss in losses if loss.direction == direction]
    edges = [-0.5, *((before + after) / 2 for before, after in pairwise(indexes)), count - 0.5]
    yield from (high - low for low, high in pairwise(edges) if indexes)


def _losses(clean: CellRun, runs: Sequence[CellRun]) -> Iterator[PacketLoss]:
    before, connecting_before = _exchanges_ns(clean), _connecting_ns(clean)
    failed_before, parts_before, connections = _failed(clean), _parts(clean), _shared_connections(clean)
    for run in runs:
        if run.lost is None:
            continue
        direction, index = run.lost
        failed = _failed(run) - failed_before
        is_whole = failed == 0 and run.failure is None and run.samples.height == clean.samples.height
        connecting = _connecting_ns(run) - connecting_before
        cost = _exchanges_ns(run) - before + connecting if is_whole else None
        cost = 0.0 if cost is not None and abs(cost) < NOTHING_NS else cost
        yield PacketLoss.model_validate(
            {
                "direction": direction,
                "index": index,
                "cost_ns": cost,
                "connect_ns": connecting if cost and connections else 0.0,
                "failed": failed,
                "cause": _cause(_parts(run), parts_before) if cost else None,
                "key": run.key,
            }
        )


def _shared_connections(run: CellRun) -> int:
    """Connections that are set up once for several exchanges; 0 where each exchange opens its own, or none is told."""
    told = run.samples["connect_ns"]
    opened = told.len() - told.null_count()
    return 0 if opened == run.samples.height else opened


def _connecting_ns(run: CellRun) -> float:
    return float(run.samples["connect_ns"].sum() or 0)


def _exchanges_ns(run: CellRun) -> float:
    """The sum of what a repetition's successful exchanges took.

    In an open loop an exchange begins when it is due: waiting behind others counts.
    """
    is_open = (run.parameters.get("workload") or {}).get("mode") == "open"
    begun = pl.col("intended_ns" if is_open else "sent_ns")
    took = pl.when(pl.col("outcome") == "ok").then(pl.col("received_ns") - begun)
    return float(run.samples.select(took.sum()).item() or 0)


def _failed(run: CellRun) -> int:
    return int((run.samples["outcome"] != "ok").sum())


def _parts(run: CellRun) -> dict[str, float]:
    """What a repetition's exchanges spent their time on, ns by part; empty if unknown.

    A connection that is kept belongs to no exchange: its handshakes are those of the samples.
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
